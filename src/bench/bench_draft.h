/* hearth bench draft: how many tokens a step yields with each drafter, counted on recorded answers. No model is run.
 *
 * docs/drafting.md defines every number. The counts depend on the trace, the tokenizer and the options alone. */
#ifndef HEARTH_BENCH_BENCH_DRAFT_H
#define HEARTH_BENCH_BENCH_DRAFT_H

#include "bench/agent_trace.h"
#include "bench/turn_tokens.h"

typedef struct draft_bench_options {
    const char *acceptance, *acceptance_top2; /* lists by depth; see decode/simulated_mtp.h */
    int nodes;                                /* most drafts a step */
} draft_bench_options;

enum { DRAFT_BENCH_ROWS = 6 };

typedef struct draft_bench_row {
    char drafter[24];
    bool simulated;          /* its MTP drafts are */
    uint64_t steps, tokens;  /* steps made, tokens they yielded */
    uint64_t drafts, passes; /* drafts verified, passes of the MTP layer */
} draft_bench_row;

typedef struct draft_bench_report {
    size_t conversations, turns;
    uint64_t prompt_tokens, output_tokens;
    draft_bench_row rows[DRAFT_BENCH_ROWS];
} draft_bench_report;

err_code draft_bench_check(const draft_bench_options *options, error *err);
err_code draft_bench_run(const trace *t, turn_tokens *tokens, const draft_bench_options *options,
                         draft_bench_report *out, error *err);

/* The same figures as a table for people and as one JSON object. */
void draft_bench_text(const draft_bench_report *r, const draft_bench_options *options, buffer *out);
void draft_bench_json(const draft_bench_report *r, const draft_bench_options *options, buffer *out);

#endif
