/* See replay.h. */
#include "bench/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "bench/http_client.h"

enum { MAX_TOKENS_DEFAULT = 1024, TIMEOUT_S_DEFAULT = 600, ERROR_BODY_MAX = 64 * 1024 };

typedef struct session {
    const trace *trace;
    const replay_options *options;
    const replay_observer *observer;
    http_client *http;
    char *chat_url, *authorization; /* owned; authorization NULL without a key */
    const char *model;
    replay_result *out;
} session;

/* Addresses. Users write the base with and without "/v1" and with a slash at the end; all mean the same. */
static char *make_url(const char *base, const char *path) {
    size_t size = strlen(base);
    while (size && base[size - 1] == '/') size--;
    if (size >= 3 && memcmp(base + size - 3, "/v1", 3) == 0) size -= 3;
    buffer url = {0};
    buffer_append(&url, base, size);
    buffer_text(&url, path);
    return buffer_take(&url);
}

static char *make_header(const char *name, span value) {
    buffer header = {0};
    buffer_printf(&header, "%s: ", name);
    for (size_t i = 0; i < value.size; i++) /* a line break would begin a header of its own */
        buffer_char(&header, (unsigned char)value.data[i] < ' ' ? '_' : value.data[i]);
    return buffer_take(&header);
}

/* The body. The order of the members is the official client's. */
static void write_body(buffer *out, const char *model, const json *messages, const json *tools, int max_tokens,
                       bool ask_usage) {
    buffer_text(out, "{\"model\":");
    json_write_bytes(out, span_text(model));
    buffer_text(out, ",\"messages\":");
    json_write(out, messages, JSON_COMPACT);
    buffer_printf(out, ",\"temperature\":0.0,\"max_completion_tokens\":%d,\"stream\":true,\"seed\":42", max_tokens);
    if (tools) {
        buffer_text(out, ",\"tools\":");
        json_write(out, tools, JSON_COMPACT);
    }
    if (ask_usage) buffer_text(out, ",\"stream_options\":{\"include_usage\":true}");
    buffer_char(out, '}');
}

/* One exchange. */

typedef struct exchange {
    event_stream events;
    reply *answer;
    buffer error_body; /* of an answer with another status than 200 */
    uint64_t now_ns;
    const replay_observer *observer;
} exchange;

static err_code on_event(void *context, span data, error *err) {
    (void)err;
    exchange *x = context;
    reply_event(x->answer, data, x->now_ns);
    return ERR_OK;
}

static void on_body(void *context, int status, span bytes, uint64_t now_ns) {
    exchange *x = context;
    x->now_ns = now_ns;
    if (status != 200) {
        size_t room = ERROR_BODY_MAX - x->error_body.size;
        buffer_append(&x->error_body, bytes.data, bytes.size < room ? bytes.size : room);
        return;
    }
    error err;
    if (event_stream_feed(&x->events, bytes, &err) != ERR_OK && !x->answer->error_text.size)
        buffer_text(&x->answer->error_text, err.message);
}

static bool on_cancel(void *context) {
    const replay_observer *observer = ((exchange *)context)->observer;
    return observer && observer->cancelled && observer->cancelled(observer->context);
}

static void set_reason(turn_result *turn, turn_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_reason(turn_result *turn, turn_state state, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(turn->reason, sizeof turn->reason, format, args);
    va_end(args);
    turn->reason[utf8_complete(span_text(turn->reason))] = 0;
    for (char *p = turn->reason; *p; p++)
        if (*p == '\n' || *p == '\r' || *p == '\t') *p = ' ';
    turn->state = state;
}

/* OpenAI's {"error": {"message"}} when the body is one, else the beginning of the body. */
static void describe_status(turn_result *turn, const buffer *body) {
    arena *a = arena_create();
    const json *parsed = NULL;
    json_parse(a, span_make(body->data, body->size), JSON_DEPTH_DEFAULT, &parsed, NULL);
    const json *message = json_get(json_get(parsed, "error"), "message");
    buffer text = {0};
    if (json_is(message, JSON_STRING))
        utf8_repair(&text, message->text);
    else
        utf8_repair(&text, span_make(body->data, body->size < 160 ? body->size : 160));
    set_reason(turn, TURN_FAILED, "status %d: %s", turn->status, text.size ? text.data : "no body");
    buffer_deinit(&text);
    arena_destroy(a);
}

/* What became of the turn. A stream that began (200 and at least one event) and did not end well is unfinished: clients
 * that do not look take it for an answer. Where nothing usable came it failed. */
static void classify(turn_result *turn, err_code code, const error *err, const buffer *error_body) {
    const reply *r = &turn->answer;
    if (code != ERR_OK && (turn->status == 0 || r->events == 0 || code != ERR_IO))
        set_reason(turn, TURN_FAILED, "%s", err->message);
    else if (turn->status != 200)
        describe_status(turn, error_body);
    else if (r->malformed)
        set_reason(turn, TURN_FAILED, "%s", r->error_text.data);
    else if (r->error_text.size)
        set_reason(turn, TURN_UNFINISHED, "%s", r->error_text.data);
    else if (code != ERR_OK)
        set_reason(turn, TURN_UNFINISHED, "cut: %s", err->message);
    else if (!r->events)
        set_reason(turn, TURN_UNFINISHED, "status 200, but no events in the answer");
    else if (!r->finish_reason.size)
        set_reason(turn, TURN_UNFINISHED, "the stream ended without a finish_reason");
    else
        turn->state = TURN_ANSWERED;
}

static void send_turn(session *s, const trace_conversation *c, const json *messages, turn_result *turn) {
    buffer body = {0};
    int max_tokens = s->options->max_tokens ? s->options->max_tokens : MAX_TOKENS_DEFAULT;
    write_body(&body, s->model, messages, c->tools, max_tokens, !s->options->official);
    char *session_id = make_header("X-Session-ID", c->id);
    const char *headers[] = {
        "Content-Type: application/json", "Accept: text/event-stream", "Expect:", session_id, s->authorization, NULL};
    exchange x = {.answer = &turn->answer, .observer = s->observer};
    x.events = (event_stream){.on_event = on_event, .context = &x};
    http_request request = {.url = s->chat_url,
                            .headers = headers,
                            .body = span_make(body.data, body.size),
                            .on_body = on_body,
                            .context = &x,
                            .cancelled = on_cancel};
    http_outcome outcome;
    error err = {0};
    err_code code = http_client_send(s->http, &request, &outcome, &err);
    turn->start_ns = outcome.start_ns;
    turn->end_ns = outcome.end_ns;
    turn->status = outcome.status;
    turn->new_connection = outcome.new_connection;
    classify(turn, code, &err, &x.error_body);
    s->out->stopped |= code == ERR_CANCELLED;
    event_stream_deinit(&x.events);
    buffer_deinit(&x.error_body);
    buffer_deinit(&body);
    free(session_id);
}

static void score_turn(const trace_turn *recorded, turn_result *turn) {
    tool_call_actions(recorded->calls, &turn->recorded);
    arena *a = arena_create();
    if (turn->state != TURN_FAILED)
        tool_call_actions(reply_calls_json(a, &turn->answer.message, CALLS_AS_SENT), &turn->answered);
    arena_destroy(a);
    turn->scored = turn->recorded.count > 0;
    turn->score = action_iou(&turn->recorded, &turn->answered);
}

static void skip_turn(const trace_turn *recorded, turn_result *turn, bool stopped) {
    set_reason(turn, TURN_SKIPPED, "%s",
               stopped ? "not asked: the run was stopped" : "not asked: an earlier turn of the conversation failed");
    tool_call_actions(recorded->calls, &turn->recorded);
    turn->scored = turn->recorded.count > 0;
}

static bool tell(session *s, const turn_result *turn, bool done) {
    const replay_observer *o = s->observer;
    return !o || !o->on_turn || o->on_turn(o->context, s->trace, turn, done);
}

static void replay_conversation(session *s, size_t index, turn_result *turns) {
    const trace_conversation *c = &s->trace->conversations[index];
    transcript history;
    transcript_begin(&history, c);
    bool failed = false;
    for (size_t i = 0; i < c->turn_count; i++) {
        turn_result *turn = &turns[i];
        *turn = (turn_result){.conversation = index,
                              .turn = i,
                              .prompt_tokens = TOKENS_UNKNOWN,
                              .cached_tokens = TOKENS_UNKNOWN,
                              .output_tokens = TOKENS_UNKNOWN,
                              .rest_tokens = TOKENS_UNKNOWN};
        transcript_extend(&history, c, i);
        if (!failed && !s->out->stopped) s->out->stopped = !tell(s, turn, false);
        if (failed || s->out->stopped) {
            skip_turn(&c->turns[i], turn, s->out->stopped);
        } else {
            send_turn(s, c, history.messages, turn);
            score_turn(&c->turns[i], turn);
            s->out->end_ns = turn->end_ns;
            failed = turn->state == TURN_FAILED;
        }
        if (!tell(s, turn, true)) s->out->stopped = true;
    }
    transcript_end(&history);
}

/* The model's name, where the user gave none. */

static void on_list(void *context, int status, span bytes, uint64_t now_ns) {
    (void)status, (void)now_ns;
    buffer *body = context;
    size_t room = ERROR_BODY_MAX - body->size;
    buffer_append(body, bytes.data, bytes.size < room ? bytes.size : room);
}

static err_code fetch_model(session *s, char **out, error *err) {
    char *url = make_url(s->options->base_url, "/v1/models");
    const char *headers[] = {"Accept: application/json", s->authorization, NULL};
    buffer body = {0};
    http_request request = {.url = url, .headers = headers, .on_body = on_list, .context = &body};
    http_outcome outcome;
    error inner;
    err_code code = http_client_send(s->http, &request, &outcome, &inner);
    arena *a = arena_create();
    const json *list = NULL;
    if (code == ERR_OK && outcome.status == 200)
        json_parse(a, span_make(body.data, body.size), JSON_DEPTH_DEFAULT, &list, NULL);
    const json *id = json_get(json_at(json_get(list, "data"), 0), "id");
    if (json_is(id, JSON_STRING))
        *out = mem_copy(id->text.data, id->text.size);
    else if (code != ERR_OK)
        code = error_set(err, ERR_IO, __FILE__, __LINE__, "%s: %s", url, inner.message);
    else
        code = error_set(err, ERR_FORMAT, __FILE__, __LINE__,
                         "%s: status %d and no list of models; name one with --model", url, outcome.status);
    arena_destroy(a);
    buffer_deinit(&body);
    free(url);
    return code;
}

static err_code run_session(session *s, error *err) {
    replay_result *out = s->out;
    if (s->options->model)
        out->model = mem_copy(s->options->model, strlen(s->options->model));
    else
        ERR_TRY(fetch_model(s, &out->model, err));
    s->model = out->model;
    out->turns = mem_zero(s->trace->turn_count, sizeof *out->turns);
    out->started_unix_s = clock_unix_s();
    out->start_ns = out->end_ns = clock_ns();
    for (size_t i = 0; i < s->trace->count; i++) {
        replay_conversation(s, i, out->turns + out->count);
        out->count += s->trace->conversations[i].turn_count;
    }
    return ERR_OK;
}

err_code replay_run(const trace *t, const replay_options *options, const replay_observer *observer, replay_result *out,
                    error *err) {
    *out = (replay_result){0};
    session s = {.trace = t, .options = options, .observer = observer, .out = out};
    ERR_TRY(http_client_open(options->timeout_s ? options->timeout_s : TIMEOUT_S_DEFAULT, &s.http, err));
    s.chat_url = make_url(options->base_url, "/v1/chat/completions");
    buffer bearer = {0};
    if (options->api_key) {
        buffer_printf(&bearer, "Bearer %s", options->api_key);
        s.authorization = make_header("Authorization", span_make(bearer.data, bearer.size));
    }
    buffer_deinit(&bearer);
    err_code code = run_session(&s, err);
    free(s.chat_url);
    free(s.authorization);
    http_client_close(s.http);
    if (code != ERR_OK) replay_result_deinit(out);
    return code;
}

void replay_result_deinit(replay_result *r) {
    for (size_t i = 0; i < r->count; i++) {
        reply_deinit(&r->turns[i].answer);
        action_list_deinit(&r->turns[i].recorded);
        action_list_deinit(&r->turns[i].answered);
    }
    free(r->turns);
    free(r->model);
    *r = (replay_result){0};
}

/* Token counts, after the run so that counting does not disturb it. */

static bool has_answer(const turn_result *turn) {
    return turn->state == TURN_ANSWERED || turn->state == TURN_UNFINISHED;
}

static void count_from_usage(turn_result *turn) {
    const reply_usage *u = &turn->answer.usage;
    if (u->cached_known) turn->cached_tokens = u->cached_tokens;
    if (!u->known) return;
    turn->prompt_tokens = u->prompt_tokens;
    turn->output_tokens = u->completion_tokens;
    if (turn->answer.first_ns) turn->rest_tokens = u->completion_tokens > 0 ? u->completion_tokens - 1 : 0;
}

static err_code count_conversation(const trace_conversation *c, token_counter *counter, turn_result *turns,
                                   error *err) {
    transcript history;
    transcript_begin(&history, c);
    err_code code = ERR_OK;
    for (size_t i = 0; i < c->turn_count && code == ERR_OK; i++) {
        transcript_extend(&history, c, i);
        if (!has_answer(&turns[i])) continue;
        size_t prompt = 0;
        code = token_counter_prompt(counter, history.messages, c->tools, &prompt, err);
        turns[i].prompt_tokens = (int64_t)prompt;
        turns[i].output_tokens = (int64_t)token_counter_message(counter, &turns[i].answer.message);
        turns[i].rest_tokens = (int64_t)token_counter_message(counter, &turns[i].answer.rest);
    }
    transcript_end(&history);
    return code;
}

err_code replay_count_tokens(const trace *t, token_counter *counter, replay_result *result, error *err) {
    for (size_t i = 0; i < result->count; i++) count_from_usage(&result->turns[i]);
    if (!counter) return ERR_OK;
    result->counted_by_client = true;
    turn_result *turns = result->turns;
    for (size_t i = 0; i < t->count; turns += t->conversations[i++].turn_count)
        ERR_TRY(count_conversation(&t->conversations[i], counter, turns, err));
    return ERR_OK;
}

static err_code measure_conversation(const trace_conversation *c, token_counter *counter, size_t *total,
                                     size_t *longest, error *err) {
    transcript history;
    transcript_begin(&history, c);
    err_code code = ERR_OK;
    for (size_t i = 0; i < c->turn_count && code == ERR_OK; i++) {
        size_t prompt = 0;
        transcript_extend(&history, c, i);
        code = token_counter_prompt(counter, history.messages, c->tools, &prompt, err);
        *total += prompt;
        if (prompt > *longest) *longest = prompt;
    }
    transcript_end(&history);
    return code;
}

err_code replay_measure_prompts(const trace *t, token_counter *counter, size_t *total, size_t *longest, error *err) {
    *total = *longest = 0;
    for (size_t i = 0; i < t->count; i++)
        ERR_TRY(measure_conversation(&t->conversations[i], counter, total, longest, err));
    return ERR_OK;
}
