/* Hearth: a language-model runtime for agents that live on the device.
 *
 * Two nouns. An *engine* is a loaded checkpoint with its tokenizer, chat template, state and threads; a *request* is one
 * answer being made. Callers always hand over the whole conversation; the engine decides what it can reuse, and the
 * answer is the same whatever it reuses.
 *
 *     hearth_engine *engine;
 *     hearth_error error;
 *     if (hearth_engine_open("models/Qwen3.6-27B", NULL, &engine, &error)) { puts(error.message); ... }
 *     hearth_request_params params = hearth_request_defaults();
 *     params.messages = "[{\"role\":\"user\",\"content\":\"Hello\"}]";
 *     hearth_request *request;
 *     hearth_request_create(engine, &params, &request, &error);
 *     hearth_event event;
 *     while (hearth_request_next(request, &event, -1)) { ... }
 *     hearth_request_destroy(request);
 *     hearth_engine_close(engine);
 *
 * Threads: an engine may be used from several threads; one request from one thread at a time, except
 * hearth_request_cancel, which may be called from any thread until destroy. Text is UTF-8. Nothing here prints or exits. */
#ifndef HEARTH_H
#define HEARTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_VERSION "0.1.0"
#define HEARTH_PARALLEL_MAX 64

typedef enum {
    HEARTH_OK = 0,
    HEARTH_INVALID,          /* the request or an option is wrong; `param` names the field */
    HEARTH_NOT_FOUND,        /* no such file or directory */
    HEARTH_IO,               /* the operating system refused */
    HEARTH_FORMAT,           /* a checkpoint file is malformed */
    HEARTH_UNSUPPORTED,      /* well formed, but not something this build can do */
    HEARTH_CONTEXT_EXCEEDED, /* prompt + answer do not fit; the message has both numbers */
    HEARTH_BUSY,             /* the queue is full; try again after retry_after_s */
    HEARTH_MEMORY,           /* a memory plan does not fit; the message has the numbers */
    HEARTH_CANCELLED,
    HEARTH_INTERNAL, /* a result that cannot be right, such as a non-finite logit */
} hearth_status;

typedef struct hearth_error {
    hearth_status status;
    int retry_after_s; /* HEARTH_BUSY */
    char param[64];    /* the field at fault, "" when there is none */
    char message[512];
} hearth_error;

/* ---- engine */

typedef struct hearth_engine hearth_engine;

/* How keys and values of past tokens are stored. FP8 (E4M3) takes half the memory of bf16 and uses the checkpoint's scales,
 * 1 where it has none. */
typedef enum {
    HEARTH_KV_AUTO, /* FP8 where the checkpoint has scales for it, else bf16 */
    HEARTH_KV_FP32,
    HEARTH_KV_BF16,
    HEARTH_KV_FP8,
} hearth_kv_type;

/* What inputs of weight matrices are rounded to before they are multiplied. */
typedef enum {
    HEARTH_ACTIVATIONS_AUTO,  /* exact */
    HEARTH_ACTIVATIONS_EXACT, /* nothing: fp32 */
    HEARTH_ACTIVATIONS_NVFP4, /* as the checkpoint means it (W4A4, W8A8), to see what that costs; slower. Fails with a
                               * checkpoint that quantises no inputs */
} hearth_activations;

typedef struct hearth_options {
    int context_max;      /* tokens of one request, prompt and answer; 0 = min(32768, the model's limit) */
    int parallel;         /* requests running at once, at most HEARTH_PARALLEL_MAX; 0 = 1 */
    int queue_max;        /* requests waiting beyond those; 0 = 64 */
    int threads;          /* CPU threads; 0 = all this process may use */
    uint64_t cache_bytes; /* KV pages, states and snapshots; 0 = a quarter of the memory there is before loading */
    bool reasoning;       /* default of enable_thinking */
    const char *name;     /* model id; NULL = the directory's name */
    hearth_kv_type kv;
    hearth_activations activations;
    /* Called from hearth_engine_open while it loads; may be NULL. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
} hearth_options;

/* Loads a checkpoint directory. options may be NULL. Blocks until requests can run. Without a tokenizer.json only
 * prompt_ids requests run, and the text of a token is its id in decimal and a space. */
hearth_status hearth_engine_open(const char *model_dir, const hearth_options *options, hearth_engine **engine,
                                 hearth_error *error);
/* Cancels what runs, waits for the threads, frees everything. All requests must have been destroyed. */
void hearth_engine_close(hearth_engine *engine);

typedef struct hearth_info {
    const char *name;       /* model id; owned by the engine */
    const char *chat_error; /* why no conversation can be rendered (no tokenizer, no template); NULL when it can */
    int context_max, vocabulary, parallel;
    hearth_kv_type kv;                                             /* as chosen, never AUTO */
    int64_t created;                                               /* Unix seconds when the engine was opened */
    uint64_t weight_bytes, kv_bytes, state_bytes, workspace_bytes; /* the memory plan */
} hearth_info;
hearth_info hearth_engine_info(const hearth_engine *engine);

/* ---- request */

typedef struct hearth_request hearth_request;

typedef struct hearth_request_params {
    /* The prompt: messages (JSON array, OpenAI form; tools and template_kwargs may be NULL), or token ids. JSON need not
     * be NUL-terminated when its size is given (0 = strlen). Everything is copied. */
    const char *messages, *tools, *template_kwargs;
    size_t messages_size, tools_size, template_kwargs_size;
    const int32_t *prompt_ids;
    size_t prompt_id_count;
    bool tool_calls; /* parse tool calls; false (tool_choice none) leaves tools out of the prompt and calls as text */
    bool raw_output; /* with prompt_ids: no reasoning or tool-call parsing, all text is content */
    int max_tokens;  /* 0 = whatever fits in the context */
    const char *const
        *stop; /* at most 16; the answer ends before the first one in its content (not in reasoning or calls) */
    int stop_count;
    double temperature, top_p, min_p; /* negative = the checkpoint's generation_config.json, else 1, 1, 0 */
    int top_k;                        /* negative likewise, 0 = off */
    bool has_seed;
    uint64_t seed;        /* the same seed gives the same text, alone or among neighbours */
    bool ignore_stop_ids; /* run to max_tokens (benchmarks) */
    /* Called from an engine thread when hearth_request_next has something new, perhaps before hearth_request_create
     * returns; must be quick and must not call back into the library. NULL when the caller waits. */
    void (*ready)(void *context);
    void *ready_context;
} hearth_request_params;

hearth_request_params hearth_request_defaults(void);

/* Queues a request and returns at once. Fails when parameters are out of range (HEARTH_INVALID) or the queue is full
 * (HEARTH_BUSY). What is wrong with the conversation itself arrives as the first event, HEARTH_EVENT_ERROR. */
hearth_status hearth_request_create(hearth_engine *engine, const hearth_request_params *params,
                                    hearth_request **request, hearth_error *error);

typedef enum {
    HEARTH_EVENT_START,          /* accepted: rendered, counted, fits; usage.prompt_tokens is set. Comes first */
    HEARTH_EVENT_REASONING,      /* text */
    HEARTH_EVENT_CONTENT,        /* text */
    HEARTH_EVENT_CALL_BEGIN,     /* text = function name, index = 0, 1, ... */
    HEARTH_EVENT_CALL_ARGUMENTS, /* text = next piece of the arguments' JSON text, index */
    HEARTH_EVENT_CALL_END,       /* the pieces of `index` are one complete JSON object */
    HEARTH_EVENT_FINISH,         /* last event: finish, usage, timing */
    HEARTH_EVENT_ERROR,          /* last event: error */
} hearth_event_type;

typedef enum { HEARTH_FINISH_STOP, HEARTH_FINISH_LENGTH, HEARTH_FINISH_TOOL_CALLS } hearth_finish;

/* Why a prompt was not reused as far as it has tokens in common with earlier ones; docs/prefix-cache.md. */
typedef enum {
    HEARTH_REUSE_FULL, /* it was */
    HEARTH_REUSE_COLD, /* it has none in common with what is stored */
    HEARTH_REUSE_BEFORE_FIRST_SNAPSHOT,
    HEARTH_REUSE_BETWEEN_SNAPSHOTS,
    HEARTH_REUSE_SNAPSHOT_EVICTED,
    HEARTH_REUSE_PAGES_EVICTED,
    HEARTH_REUSE_COUNT
} hearth_reuse;
const char *hearth_reuse_name(hearth_reuse reuse); /* "full", "cold", "before_first_snapshot" ... */

/* completion_tokens: all that were chosen but the stop id. cached_tokens: of the prompt, not computed again.
 * common_tokens: of the prompt, those that some earlier one began with too. */
typedef struct hearth_usage {
    int prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens;
    int common_tokens;
    hearth_reuse reuse; /* why cached_tokens is less */
} hearth_usage;

typedef struct hearth_timing {
    double queue_ms, prepare_ms, prefill_ms, decode_ms; /* prepare = template and tokenizer */
} hearth_timing;

typedef struct hearth_event {
    hearth_event_type type;
    int index;
    const char *text; /* NUL-terminated, valid UTF-8, whole characters; valid until the next call on this request */
    size_t text_size;
    hearth_finish finish;
    hearth_usage usage;
    hearth_timing timing;
    hearth_error error;
} hearth_event;

/* Takes the next event. timeout_ms: -1 waits, 0 polls. False when there is none (yet, or after the last one:
 * hearth_request_finished tells). */
bool hearth_request_next(hearth_request *request, hearth_event *event, int timeout_ms);
bool hearth_request_finished(const hearth_request *request); /* the last event has been taken */
/* Stops the work within one step; what was prefilled stays reusable. An ERROR event with HEARTH_CANCELLED ends it. */
void hearth_request_cancel(hearth_request *request);
/* Cancels if need be and frees, without waiting for the work to stop. `ready` is not called after this returns: it waits
 * for a call under way, so `ready` must not wait for the caller of destroy. */
void hearth_request_destroy(hearth_request *request);

/* ---- text */

/* *ids is malloc'd, the caller frees it. add tokens such as <|im_end|> in text are parsed. */
hearth_status hearth_tokenize(const hearth_engine *engine, const char *text, size_t size, int32_t **ids, size_t *count,
                              hearth_error *error);
/* *text is malloc'd, NUL-terminated, invalid parts replaced by U+FFFD. HEARTH_INVALID for an id out of range. */
hearth_status hearth_detokenize(const hearth_engine *engine, const int32_t *ids, size_t count, char **text,
                                size_t *size, hearth_error *error);

/* ---- counters since open, for /metrics */

typedef struct hearth_stats {
    uint64_t requests_finished, requests_failed, requests_cancelled, requests_refused;
    uint64_t prompt_tokens, cached_tokens, prefilled_tokens, generated_tokens;
    uint64_t steps;            /* forward steps */
    double step_seconds;       /* time inside them */
    double seconds_since_step; /* 0 when idle; grows when work is pending and the scheduler makes no progress */
    int running, queued;
    int kv_pages_used, kv_pages_total, snapshots_used, snapshots_total;
    uint64_t cache_evictions;                       /* snapshots given up */
    uint64_t reuse_requests[HEARTH_REUSE_COUNT];    /* requests begun, by hearth_reuse */
    uint64_t reuse_lost_tokens[HEARTH_REUSE_COUNT]; /* in common with earlier prompts, but computed again */
} hearth_stats;
hearth_stats hearth_engine_stats(const hearth_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
