/* The text thread: takes requests in order of arrival, renders and tokenises their conversation, counts it, notes
 * where its messages end, and hands them on to the engine thread. */
#include <stdlib.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "text/message.h"

static void emit(void *context, hearth_event_type type, int index, span text) {
    hearth_event event = {.type = type, .index = index};
    request_push(context, &event, text);
}

static void create_generation(hearth_request *r, const json *tools, bool reasoning_open) {
    generation_options options = {
        .tokens = r->engine->tokens,
        .tools = tools,
        .raw = r->raw_output || !r->engine->tokens,
        .parse_calls = r->tool_calls && tools,
        .reasoning_open = reasoning_open,
        .stop = (const char *const *)r->stop,
        .stop_count = r->stop_count,
        .emit = emit,
        .context = r,
    };
    r->generation = generation_create(&options);
}

/* Where later prompts are likely to leave this one (cache/snapshot_policy.h). */
static void keep_message_ends(hearth_request *r, const chat_prompt *prompt) {
    HEARTH_ASSERT(prompt->message_end_count <= MESSAGE_ENDS_MAX);
    r->message_end_count = prompt->message_end_count;
    for (int i = 0; i < prompt->message_end_count; i++) r->message_ends[i] = (int)prompt->message_ends[i];
}

static err_code parse_field(hearth_request *r, const char *name, const char *text, size_t size, const json **out,
                            error *err) {
    *out = NULL;
    if (!text) return ERR_OK;
    error why;
    if (json_parse(r->json, span_make(text, size), JSON_DEPTH_DEFAULT, out, &why) == ERR_OK) return ERR_OK;
    ERR_FAIL(err, ERR_INVALID, "%s: %s", name, why.message);
}

static err_code render(hearth_request *r, error *err) {
    hearth_engine *e = r->engine;
    if (e->format_error.code != ERR_OK) {
        *err = e->format_error;
        return err->code;
    }
    r->json = arena_create();
    const json *messages, *tools, *kwargs;
    ERR_TRY(parse_field(r, "messages", r->messages, r->messages_size, &messages, err));
    ERR_TRY(parse_field(r, "tools", r->tools, r->tools_size, &tools, err));
    ERR_TRY(parse_field(r, "chat_template_kwargs", r->template_kwargs, r->template_kwargs_size, &kwargs, err));
    if (!r->tool_calls) tools = NULL;
    ERR_TRY(tools_normalize(r->json, tools, &tools, err));
    chat_prompt prompt;
    ERR_TRY(chat_format_prompt(e->format, messages, tools, kwargs, &prompt, err));
    if (prompt.ids.count == 0 || prompt.ids.count > INT32_MAX) {
        size_t count = prompt.ids.count;
        chat_prompt_deinit(&prompt);
        ERR_FAIL(err, ERR_INVALID, "messages: the rendered prompt has %zu tokens", count);
    }
    r->ids = prompt.ids.ids;
    r->count = (int)prompt.ids.count;
    r->history = prompt.history_count < prompt.ids.count ? (int)prompt.history_count : r->count;
    keep_message_ends(r, &prompt);
    create_generation(r, tools, prompt.reasoning_open);
    prompt.ids = (token_list){0};
    chat_prompt_deinit(&prompt);
    return ERR_OK;
}

static void take_ids(hearth_request *r) {
    r->history = r->count;
    create_generation(r, NULL, false);
}

/* The whole answer must fit when its length is given; else it may use what is left. */
static hearth_status fit(hearth_request *r, hearth_error *fault) {
    int context = r->engine->context_max;
    if (r->count >= context)
        return hearth_fail(fault, HEARTH_CONTEXT_EXCEEDED, r->messages ? "messages" : "prompt",
                           "the prompt has %d tokens and leaves no room for an answer: the context is %d tokens",
                           r->count, context);
    if (r->max_tokens > context - r->count)
        return hearth_fail(fault, HEARTH_CONTEXT_EXCEEDED, "max_tokens",
                           "the prompt's %d tokens and an answer of up to %d make %lld: the context is %d tokens",
                           r->count, r->max_tokens, (long long)r->count + r->max_tokens, context);
    if (r->max_tokens == 0) r->max_tokens = context - r->count;
    return HEARTH_OK;
}

static hearth_status prepare(hearth_request *r, hearth_error *fault) {
    if (atomic_load(&r->cancelled)) return hearth_fail(fault, HEARTH_CANCELLED, "", "cancelled");
    if (r->messages) {
        error err;
        if (render(r, &err) != ERR_OK) {
            hearth_error_from_request(fault, &err);
            return fault->status;
        }
    } else {
        take_ids(r);
    }
    return fit(r, fault);
}

/* Hands the request on, or ends it. */
static void process(hearth_request *r) {
    hearth_engine *e = r->engine;
    r->preparing_ns = clock_ns();
    hearth_event event = {.type = HEARTH_EVENT_ERROR};
    hearth_status status = prepare(r, &event.error);
    r->prepared_ns = clock_ns();
    r->usage.prompt_tokens = r->count;
    if (status != HEARTH_OK) {
        engine_end_request(r, &event);
        return;
    }
    event = (hearth_event){.type = HEARTH_EVENT_START, .usage = r->usage, .timing = request_timing(r, r->prepared_ns)};
    request_push(r, &event, (span){0});
    pthread_mutex_lock(&e->lock);
    request_queue_push(&e->waiting, r);
    pthread_cond_signal(&e->step_work);
    pthread_mutex_unlock(&e->lock);
}

void *prepare_thread(void *engine) {
    hearth_engine *e = engine;
    for (;;) {
        pthread_mutex_lock(&e->lock);
        while (!e->queued.first && !e->closing) pthread_cond_wait(&e->text_work, &e->lock);
        hearth_request *r = request_queue_pop(&e->queued);
        pthread_mutex_unlock(&e->lock);
        if (!r) return NULL; /* closing */
        process(r);
    }
}
