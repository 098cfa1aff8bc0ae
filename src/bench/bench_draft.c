/* See bench_draft.h.
 *
 * Every turn is decoded once per drafter, teacher-forced. The first token of an answer comes from the prompt's last row
 * and is the first root; every step drafts behind the root, and yields the drafts along the recorded answer plus the
 * token that the target chooses at the last of them, which is the next root. */
#include "bench/bench_draft.h"

#include <stdio.h>
#include <stdlib.h>

#include "decode/draft_tree.h"
#include "decode/simulated_mtp.h"

typedef enum { NO_LOOKUP, LOOKUP_BEHIND, LOOKUP_EVERYWHERE } lookup_use;

/* Passes and top-k of the MTP layer (0 passes: unused), and where the context lookup continues. */
static const struct method {
    const char *name; /* NULL: named after its limits */
    bool wide;        /* as many nodes as allowed, else one a pass */
    int steps, top_k;
    lookup_use lookup;
} methods[DRAFT_BENCH_ROWS] = {
    {"mtp-3", false, 3, 1, NO_LOOKUP},    {"mtp-5", false, 5, 1, NO_LOOKUP},
    {NULL, true, 8, 2, NO_LOOKUP},        {"lookup", true, 0, 1, LOOKUP_BEHIND},
    {"graft", true, 3, 1, LOOKUP_BEHIND}, {"graft-tree", true, 3, 2, LOOKUP_EVERYWHERE},
};

typedef struct turn_data {
    token_list prompt, answer; /* owned */
} turn_data;

typedef struct run {
    const struct method *method;
    const simulated_mtp *mtp;
    int nodes;
    lookup *sequence; /* borrowed */
    draft_tree tree;
    uint64_t turn;         /* counted over the trace */
    const int32_t *answer; /* of this turn */
    int32_t answer_count, done;
    int32_t *context; /* owned: prompt and answer */
    int32_t context_count;
} run;

/* The node's token in the answer when all of its path is right, else -1. */
static int32_t right_after(const run *r, const draft_tree *t, int node) {
    int32_t path[DRAFT_NODES_MAX];
    int depth = draft_tree_path(t, node, path);
    for (int i = 0; i < depth; i++)
        if (r->done + i >= r->answer_count || path[i] != r->answer[r->done + i]) return -1;
    return r->done + depth < r->answer_count ? r->answer[r->done + depth] : -1;
}

static err_code propose(void *context, const draft_tree *t, const int *nodes, int count, int top_k, draft_proposal *out,
                        int *found, error *err) {
    (void)err;
    const run *r = context;
    for (int i = 0; i < count; i++) {
        const draft_node *parent = &t->nodes[nodes[i]];
        simulated_place place = {.turn = r->turn,
                                 .position = r->done + parent->depth,
                                 .depth = parent->depth + 1,
                                 .parent = parent->token,
                                 .target = right_after(r, t, nodes[i])};
        int32_t best[2];
        simulated_mtp_propose(r->mtp, &place, r->context, r->context_count, best);
        found[i] = top_k < 2 ? top_k : 2;
        for (int k = 0; k < found[i]; k++)
            out[i * top_k + k] = (draft_proposal){best[k], simulated_mtp_acceptance(r->mtp, place.depth, k)};
    }
    return ERR_OK;
}

static err_code draft(run *r, draft_bench_row *row, error *err) {
    const struct method *m = r->method;
    const drafter mtp = {DRAFT_MTP, r, propose};
    int limit = m->wide || r->nodes < m->steps ? r->nodes : m->steps, passes;
    draft_tree_begin(&r->tree, r->answer[r->done - 1], limit);
    ERR_TRY(draft_tree_grow(&r->tree, &mtp, m->steps, m->top_k, &passes, err));
    if (m->lookup == LOOKUP_BEHIND) draft_tree_lookup(&r->tree, r->sequence, r->tree.count - 1);
    if (m->lookup == LOOKUP_EVERYWHERE) draft_tree_graft(&r->tree, r->sequence);
    draft_tree_finish(&r->tree);
    row->passes += (uint64_t)passes;
    return ERR_OK;
}

/* Tokens the step yields: the walk along the answer, and the choice at its end. */
static int32_t walk(const run *r) {
    int32_t yield = 0;
    for (int node = 0; node >= 0 && r->done + yield < r->answer_count; yield++)
        node = draft_tree_child(&r->tree, node, r->answer[r->done + yield]);
    return yield;
}

static void advance(run *r, int32_t count) {
    lookup_append(r->sequence, r->answer + r->done, count);
    for (int32_t i = 0; i < count; i++) r->context[r->context_count++] = r->answer[r->done++];
}

static err_code run_turn(run *r, const turn_data *turn, draft_bench_row *row, error *err) {
    r->answer = turn->answer.ids;
    r->answer_count = (int32_t)turn->answer.count;
    r->context_count = r->done = 0;
    for (size_t i = 0; i < turn->prompt.count; i++) r->context[r->context_count++] = turn->prompt.ids[i];
    lookup_sync(r->sequence, r->context, r->context_count);
    if (r->answer_count) advance(r, 1);
    while (r->done < r->answer_count) {
        ERR_TRY(draft(r, row, err));
        int32_t yield = walk(r);
        row->steps++;
        row->tokens += (uint64_t)yield;
        row->drafts += (uint64_t)(r->tree.count - 1);
        advance(r, yield);
    }
    return ERR_OK;
}

static err_code run_conversation(const turn_data *turns, size_t count, uint64_t first_turn, const simulated_mtp *mtp,
                                 int nodes, draft_bench_report *out, error *err) {
    size_t longest = 1;
    for (size_t i = 0; i < count; i++) {
        size_t size = turns[i].prompt.count + turns[i].answer.count;
        if (size > longest) longest = size;
    }
    if (longest > LOOKUP_TOKENS_LIMIT)
        ERR_FAIL(err, ERR_LIMIT, "a prompt of %zu tokens; at most %d", longest, (int)LOOKUP_TOKENS_LIMIT);
    run *r = mem_zero(1, sizeof *r);
    r->mtp = mtp;
    r->nodes = nodes;
    r->context = mem_zero(longest, sizeof *r->context);
    r->sequence = lookup_create((int32_t)longest);
    err_code code = ERR_OK;
    for (int m = 0; m < DRAFT_BENCH_ROWS && code == ERR_OK; m++) {
        r->method = &methods[m];
        for (size_t i = 0; i < count && code == ERR_OK; i++) {
            r->turn = first_turn + i;
            code = run_turn(r, &turns[i], &out->rows[m], err);
        }
    }
    lookup_destroy(r->sequence);
    free(r->context);
    free(r);
    return code;
}

static err_code read_turns(const trace_conversation *c, turn_tokens *tokens, turn_data *out, draft_bench_report *report,
                           error *err) {
    transcript history;
    transcript_begin(&history, c);
    err_code code = ERR_OK;
    for (size_t i = 0; i < c->turn_count && code == ERR_OK; i++) {
        transcript_extend(&history, c, i);
        code = turn_tokens_read(tokens, c, i, history.messages, &out[i].prompt, &out[i].answer, err);
        report->prompt_tokens += out[i].prompt.count;
        report->output_tokens += out[i].answer.count;
    }
    transcript_end(&history);
    return code;
}

err_code draft_bench_check(const draft_bench_options *options, error *err) {
    simulated_mtp mtp;
    const draft_limits limits = {.steps = DRAFT_STEPS_MAX, .top_k = 1, .nodes = options->nodes};
    ERR_TRY(draft_limits_check(&limits, err));
    return simulated_mtp_parse(options->acceptance, options->acceptance_top2, &mtp, err);
}

static void name_rows(draft_bench_report *r, int nodes) {
    for (int i = 0; i < DRAFT_BENCH_ROWS; i++) {
        const struct method *m = &methods[i];
        draft_bench_row *row = &r->rows[i];
        if (m->name)
            snprintf(row->drafter, sizeof row->drafter, "%s", m->name);
        else
            snprintf(row->drafter, sizeof row->drafter, "tree-%d-%d-%d", m->steps, m->top_k, nodes);
        row->simulated = m->steps > 0;
    }
}

err_code draft_bench_run(const trace *t, turn_tokens *tokens, const draft_bench_options *options,
                         draft_bench_report *out, error *err) {
    simulated_mtp mtp;
    *out = (draft_bench_report){.conversations = t->count, .turns = t->turn_count};
    ERR_TRY(draft_bench_check(options, err));
    ERR_TRY(simulated_mtp_parse(options->acceptance, options->acceptance_top2, &mtp, err));
    name_rows(out, options->nodes);
    uint64_t first = 0;
    err_code code = ERR_OK;
    for (size_t i = 0; i < t->count && code == ERR_OK; i++) {
        const trace_conversation *c = &t->conversations[i];
        turn_data *turns = mem_zero(c->turn_count, sizeof *turns);
        code = read_turns(c, tokens, turns, out, err);
        if (code == ERR_OK) code = run_conversation(turns, c->turn_count, first, &mtp, options->nodes, out, err);
        first += c->turn_count;
        for (size_t k = 0; k < c->turn_count; k++) {
            token_list_deinit(&turns[k].prompt);
            token_list_deinit(&turns[k].answer);
        }
        free(turns);
    }
    return code;
}

/* ---- report */

static double per_step(const draft_bench_row *row, uint64_t value) {
    return row->steps ? (double)value / (double)row->steps : 0;
}

void draft_bench_text(const draft_bench_report *r, const draft_bench_options *options, buffer *out) {
    buffer_printf(out, "%zu conversations, %zu turns, %llu output tokens; at most %d drafts a step\n\n",
                  r->conversations, r->turns, (unsigned long long)r->output_tokens, options->nodes);
    buffer_printf(out, "%-14s %12s %11s %12s\n", "drafter", "tokens/step", "mean width", "MTP passes");
    for (int i = 0; i < DRAFT_BENCH_ROWS; i++) {
        const draft_bench_row *row = &r->rows[i];
        buffer_printf(out, "%-14s %12.3f %11.2f %12.2f%s\n", row->drafter, per_step(row, row->tokens),
                      per_step(row, row->drafts), per_step(row, row->passes), row->simulated ? "  simulated" : "");
    }
    buffer_printf(out,
                  "\nsimulated: MTP drafts are right with given probabilities (%s; one of two %s);\n"
                  "the lookup is real in every row.\n",
                  options->acceptance, options->acceptance_top2);
}

static json *new_double(arena *a, double value) {
    buffer text = {0};
    json_write_double(&text, value);
    json *number = json_new_number(a, span_make(arena_copy(a, text.data, text.size), text.size));
    buffer_deinit(&text);
    return number;
}

static void set_list(arena *a, json *object, const char *key, const double *values, int count) {
    json *list = json_new(a, JSON_ARRAY);
    for (int i = 0; i < count; i++) json_append(list, new_double(a, values[i]));
    json_set(object, span_text(key), list);
}

static json *row_json(arena *a, const draft_bench_row *row) {
    json *o = json_new(a, JSON_OBJECT);
    json_set(o, span_text("drafter"), json_new_string(a, span_text(row->drafter)));
    json_set(o, span_text("tokens_per_step"), new_double(a, per_step(row, row->tokens)));
    json_set(o, span_text("mean_width"), new_double(a, per_step(row, row->drafts)));
    json_set(o, span_text("mtp_passes_per_step"), new_double(a, per_step(row, row->passes)));
    json_set(o, span_text("steps"), json_new_integer(a, (int64_t)row->steps));
    json_set(o, span_text("tokens"), json_new_integer(a, (int64_t)row->tokens));
    json_set(o, span_text("simulated"), json_new(a, row->simulated ? JSON_TRUE : JSON_FALSE));
    return o;
}

void draft_bench_json(const draft_bench_report *r, const draft_bench_options *options, buffer *out) {
    arena *a = arena_create();
    json *o = json_new(a, JSON_OBJECT), *rows = json_new(a, JSON_ARRAY);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"conversations", (int64_t)r->conversations},
                  {"turns", (int64_t)r->turns},
                  {"prompt_tokens", (int64_t)r->prompt_tokens},
                  {"output_tokens", (int64_t)r->output_tokens},
                  {"draft_nodes", options->nodes}};
    for (int i = 0; i < DRAFT_BENCH_ROWS; i++) json_append(rows, row_json(a, &r->rows[i]));
    json_set(o, span_text("rows"), rows);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_set(o, span_text(counts[i].key), json_new_integer(a, counts[i].value));
    simulated_mtp mtp;
    error ignored;
    if (simulated_mtp_parse(options->acceptance, options->acceptance_top2, &mtp, &ignored) == ERR_OK) {
        set_list(a, o, "mtp_acceptance", mtp.top1, 8);
        set_list(a, o, "mtp_top2", mtp.top2, 8);
    }
    json_write(out, o, JSON_SPACED);
    buffer_char(out, '\n');
    arena_destroy(a);
}
