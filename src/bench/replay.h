/* Replays recorded conversations against a server, one request at a time, and keeps what came back.
 *
 * Teacher-forced: every request carries the recorded history, never the server's own answers, so that all servers are
 * asked the same questions whatever they answer. The next turn goes out when the previous answer is complete; nothing
 * warms the server up. Protocol and numbers follow the MLPerf Edge Agentic client; docs/bench.md says where not. */
#ifndef HEARTH_BENCH_REPLAY_H
#define HEARTH_BENCH_REPLAY_H

#include "bench/agent_trace.h"
#include "bench/reply.h"
#include "bench/shell_actions.h"
#include "bench/token_count.h"

typedef struct replay_options {
    const char *base_url; /* "http://host:port", with or without a final "/v1" */
    const char *model;    /* NULL: the first that /v1/models names */
    const char *api_key;  /* NULL: none */
    int max_tokens;       /* 0: 1024, as the official client asks */
    int timeout_s;        /* 0: 600 */
    bool official;        /* the official body only: the server is not asked for its usage numbers */
} replay_options;

typedef enum {
    TURN_ANSWERED,   /* a whole answer with a finish_reason */
    TURN_UNFINISHED, /* status 200, but cut, with an error object inside, or without a finish_reason */
    TURN_FAILED,     /* no usable answer: connection refused or closed, another status, timed out */
    TURN_SKIPPED,    /* not asked, since an earlier turn of the conversation failed or the run was stopped */
} turn_state;

enum { TOKENS_UNKNOWN = -1 };

typedef struct turn_result {
    size_t conversation, turn; /* indexes into the trace */
    turn_state state;
    char reason[256]; /* why it is not TURN_ANSWERED */
    int status;       /* HTTP; 0 = none */
    uint64_t start_ns, end_ns;
    bool new_connection;
    reply answer;
    action_list recorded, answered;
    bool scored; /* the recorded turn has an action */
    double score;
    int64_t prompt_tokens, cached_tokens, output_tokens, rest_tokens; /* TOKENS_UNKNOWN where nobody counted them */
} turn_result;

typedef struct replay_result {
    char *model;        /* owned */
    turn_result *turns; /* owned; one for every turn of the trace, in order */
    size_t count;
    uint64_t start_ns, end_ns; /* first request to last answer */
    int64_t started_unix_s;
    bool stopped;           /* the observer ended it */
    bool counted_by_client; /* output and prompt tokens come from a tokenizer, not from the server */
} replay_result;

/* Told after every turn (done = false: before the request of the turn goes out). Returns false to stop the run. */
typedef struct replay_observer {
    bool (*on_turn)(void *context, const trace *t, const turn_result *turn, bool done);
    bool (*cancelled)(void *context); /* asked while a request runs */
    void *context;
} replay_observer;

/* Fails only when nothing can be replayed: no libcurl, no model name. What happens to the turns is in the result. */
err_code replay_run(const trace *t, const replay_options *options, const replay_observer *observer, replay_result *out,
                    error *err);
void replay_result_deinit(replay_result *r);

/* Fills the token counts. counter NULL: from the server's usage. Fails when the template refuses a prompt. */
err_code replay_count_tokens(const trace *t, token_counter *counter, replay_result *result, error *err);

/* The prompts of the whole trace, without a server. */
err_code replay_measure_prompts(const trace *t, token_counter *counter, size_t *total, size_t *longest, error *err);

#endif
