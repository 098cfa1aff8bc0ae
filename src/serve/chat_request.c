/* See chat_request.h. One table lists every known field with the function that takes its value; unknown members of the
 * request are looked up there and refused by name. */
#include "serve/chat_request.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct parse {
    arena *a;
    chat_request *out;
    const char *model;
    int context_max;
    api_error *e;
    const json *root;
    uint64_t seen; /* fields given so far, a bit each */
    bool has_stream_options, has_max_tokens, thinking_off;
    const json *kwargs;
} parse;

typedef struct field field;
struct field {
    const char *name;
    bool (*take)(parse *p, const field *f, const json *value); /* value is never null */
    double min, max;                                           /* for numbers */
};

static bool wrong(parse *p, const char *name, const char *expected) {
    return api_fail(p->e, 400, "invalid_value", name, "%s must be %s", name, expected);
}

static bool unsupported(parse *p, const char *name, const char *why) {
    return api_fail(p->e, 400, "unsupported", name, "%s: %s", name, why);
}

/* ---- fields that are honoured */

static bool take_model(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_STRING)) return wrong(p, f->name, "a string");
    if (span_is(v->text, p->model)) return true;
    int shown = v->text.size > 100 ? 100 : (int)v->text.size;
    return api_fail(p->e, 404, "model_not_found", f->name, "the model '%.*s' does not exist; this server has '%s'",
                    shown, v->text.data, p->model);
}

static bool take_messages(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_ARRAY) || !v->count) return wrong(p, f->name, "a non-empty array");
    p->out->params.messages = v->source.data;
    p->out->params.messages_size = v->source.size;
    return true;
}

static bool take_tools(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_ARRAY)) return wrong(p, f->name, "an array");
    if (!v->count) return true;
    p->out->params.tools = v->source.data;
    p->out->params.tools_size = v->source.size;
    return true;
}

static bool take_tool_choice(parse *p, const field *f, const json *v) {
    if (json_string_is(v, "auto")) return true;
    if (json_string_is(v, "none")) {
        p->out->params.tool_calls = false;
        return true;
    }
    if (json_string_is(v, "required") || json_is(v, JSON_OBJECT))
        return unsupported(p, f->name, "only 'none' and 'auto' are supported; a call cannot be forced yet");
    return wrong(p, f->name, "'none' or 'auto'");
}

static bool take_switch(parse *p, const field *f, const json *v, bool *out) {
    if (!json_is(v, JSON_TRUE) && !json_is(v, JSON_FALSE)) return wrong(p, f->name, "true or false");
    *out = json_is(v, JSON_TRUE);
    return true;
}

static bool take_stream(parse *p, const field *f, const json *v) { return take_switch(p, f, v, &p->out->stream); }

static bool take_ignore_eos(parse *p, const field *f, const json *v) {
    return take_switch(p, f, v, &p->out->params.ignore_stop_ids);
}

static bool take_stream_options(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_OBJECT)) return wrong(p, f->name, "an object");
    p->has_stream_options = true;
    for (const json *m = v->first; m; m = m->next) {
        if (json_is(m, JSON_NULL)) continue;
        static const field include_usage = {.name = "stream_options.include_usage"};
        if (span_is(m->key, "include_usage")) {
            if (!take_switch(p, &include_usage, m, &p->out->include_usage)) return false;
        } else if (!span_is(m->key, "include_obfuscation") || !json_is(m, JSON_FALSE)) {
            return unsupported(p, f->name, "only include_usage is supported");
        }
    }
    return true;
}

/* A stop string goes to the library NUL-terminated. */
static bool take_stop_string(parse *p, const json *v, const char *name) {
    if (!json_is(v, JSON_STRING)) return wrong(p, name, "a string");
    if (!v->text.size) return wrong(p, name, "a string that is not empty");
    if (memchr(v->text.data, 0, v->text.size)) return wrong(p, name, "a string without NUL");
    hearth_request_params *params = &p->out->params;
    p->out->stop[params->stop_count++] = arena_copy(p->a, v->text.data, v->text.size);
    params->stop = p->out->stop;
    return true;
}

static bool take_stop(parse *p, const field *f, const json *v) {
    if (json_is(v, JSON_STRING)) return take_stop_string(p, v, f->name);
    if (!json_is(v, JSON_ARRAY)) return wrong(p, f->name, "a string or an array of strings");
    if (v->count > STOP_MAX)
        return api_fail(p->e, 400, "invalid_value", f->name, "stop has %u strings; at most %d are accepted", v->count,
                        STOP_MAX);
    int index = 0;
    for (const json *item = v->first; item; item = item->next) {
        char name[32];
        snprintf(name, sizeof name, "stop[%d]", index++);
        if (!take_stop_string(p, item, name)) return false;
    }
    return true;
}

/* A whole number however it is written: 3, 3.0, 1e12. */
static bool whole_number(const json *v, double *out) {
    return json_is(v, JSON_NUMBER) && json_double(v, out) && *out == floor(*out);
}

static bool take_number(parse *p, const field *f, const json *v, double *out) {
    double d;
    if (json_is(v, JSON_NUMBER) && json_double(v, &d) && d >= f->min && d <= f->max) {
        *out = d;
        return true;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %g to %g", f->min, f->max);
    return wrong(p, f->name, expected);
}

static bool take_temperature(parse *p, const field *f, const json *v) {
    return take_number(p, f, v, &p->out->params.temperature);
}

static bool take_top_p(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_NUMBER) || !json_double(v, &p->out->params.top_p) || p->out->params.top_p <= 0 ||
        p->out->params.top_p > 1)
        return wrong(p, f->name, "a number above 0 and at most 1");
    return true;
}

static bool take_min_p(parse *p, const field *f, const json *v) { return take_number(p, f, v, &p->out->params.min_p); }

static bool take_top_k(parse *p, const field *f, const json *v) {
    double d;
    if (!whole_number(v, &d) || d < -1 || d > INT_MAX) return wrong(p, f->name, "a whole number, 0 or -1 for no limit");
    p->out->params.top_k = d < 0 ? 0 : (int)d;
    return true;
}

static bool take_seed(parse *p, const field *f, const json *v) {
    int64_t seed;
    if (!json_integer(v, &seed)) return wrong(p, f->name, "a whole number from -2^63 to 2^63 - 1");
    p->out->params.has_seed = true;
    p->out->params.seed = (uint64_t)seed;
    return true;
}

static bool take_max_tokens(parse *p, const field *f, const json *v) {
    double d;
    if (!whole_number(v, &d)) return wrong(p, f->name, "a whole number");
    if (d < 1) return wrong(p, f->name, "at least 1; leave it out for as many tokens as the context has room for");
    if (d > p->context_max)
        return api_fail(p->e, 400, "context_length_exceeded", f->name,
                        "%s is %.0f, but prompt and answer together have at most %d tokens", f->name, d,
                        p->context_max);
    if (p->has_max_tokens && p->out->params.max_tokens != (int)d)
        return api_fail(p->e, 400, "invalid_value", f->name,
                        "max_tokens and max_completion_tokens differ; send one of them");
    p->has_max_tokens = true;
    p->out->params.max_tokens = (int)d;
    return true;
}

static bool take_kwargs(parse *p, const field *f, const json *v) {
    if (!json_is(v, JSON_OBJECT)) return wrong(p, f->name, "an object");
    p->kwargs = v;
    p->out->params.template_kwargs = v->source.data;
    p->out->params.template_kwargs_size = v->source.size;
    return true;
}

/* Of the efforts only "none" has a meaning for these models: thinking off. */
static bool take_reasoning_effort(parse *p, const field *f, const json *v) {
    if (!json_string_is(v, "none"))
        return unsupported(p, f->name,
                           "only 'none' is supported; thinking is on or off by "
                           "chat_template_kwargs.enable_thinking");
    p->thinking_off = true;
    return true;
}

/* ---- fields that are accepted at their neutral value only */

static bool take_response_format(parse *p, const field *f, const json *v) {
    if (json_is(v, JSON_OBJECT) && json_string_is(json_get(v, "type"), "text")) return true;
    return unsupported(p, f->name, "only {\"type\":\"text\"} is supported");
}

static bool take_false_only(parse *p, const field *f, const json *v) {
    return json_is(v, JSON_FALSE) || unsupported(p, f->name, "only false is supported");
}

static bool take_true_only(parse *p, const field *f, const json *v) {
    return json_is(v, JSON_TRUE) || unsupported(p, f->name, "only true is supported");
}

static bool take_one_value(parse *p, const field *f, const json *v) {
    double d;
    if (json_is(v, JSON_NUMBER) && json_double(v, &d) && d == f->min) return true;
    char why[64];
    snprintf(why, sizeof why, "only %g is supported", f->min);
    return unsupported(p, f->name, why);
}

static bool take_empty_only(parse *p, const field *f, const json *v) {
    if ((json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY)) && !v->count) return true;
    return unsupported(p, f->name, "not supported; leave it out");
}

static bool take_modalities(parse *p, const field *f, const json *v) {
    if (json_is(v, JSON_ARRAY) && v->count == 1 && json_string_is(v->first, "text")) return true;
    return unsupported(p, f->name, "only [\"text\"] is supported");
}

static bool take_verbosity(parse *p, const field *f, const json *v) {
    return json_string_is(v, "medium") || unsupported(p, f->name, "not supported; leave it out");
}

static bool take_legacy(parse *p, const field *f, const json *v) {
    (void)v;
    return unsupported(p, f->name, "not supported; use tools and tool_choice");
}

static bool take_never(parse *p, const field *f, const json *v) {
    (void)v;
    return unsupported(p, f->name, "not supported; leave it out");
}

/* ---- fields that cannot change the answer */

static bool take_ignored(parse *p, const field *f, const json *v) {
    (void)p, (void)f, (void)v;
    return true;
}

static const field fields[] = {
    {.name = "model", .take = take_model},
    {.name = "messages", .take = take_messages},
    {.name = "tools", .take = take_tools},
    {.name = "tool_choice", .take = take_tool_choice},
    {.name = "stream", .take = take_stream},
    {.name = "stream_options", .take = take_stream_options},
    {.name = "stop", .take = take_stop},
    {.name = "seed", .take = take_seed},
    {.name = "temperature", .take = take_temperature, .min = 0, .max = 2},
    {.name = "top_p", .take = take_top_p},
    {.name = "top_k", .take = take_top_k},
    {.name = "min_p", .take = take_min_p, .min = 0, .max = 1},
    {.name = "max_tokens", .take = take_max_tokens},
    {.name = "max_completion_tokens", .take = take_max_tokens},
    {.name = "chat_template_kwargs", .take = take_kwargs},
    {.name = "reasoning_effort", .take = take_reasoning_effort},
    {.name = "ignore_eos", .take = take_ignore_eos},
    {.name = "response_format", .take = take_response_format},
    {.name = "n", .take = take_one_value, .min = 1},
    {.name = "logprobs", .take = take_false_only},
    {.name = "top_logprobs", .take = take_one_value, .min = 0},
    {.name = "logit_bias", .take = take_empty_only},
    {.name = "presence_penalty", .take = take_one_value, .min = 0},
    {.name = "frequency_penalty", .take = take_one_value, .min = 0},
    {.name = "repetition_penalty", .take = take_one_value, .min = 1},
    {.name = "parallel_tool_calls", .take = take_true_only},
    {.name = "modalities", .take = take_modalities},
    {.name = "verbosity", .take = take_verbosity},
    {.name = "store", .take = take_false_only},
    {.name = "functions", .take = take_legacy},
    {.name = "function_call", .take = take_legacy},
    {.name = "audio", .take = take_never},
    {.name = "prediction", .take = take_never},
    {.name = "web_search_options", .take = take_never},
    {.name = "user", .take = take_ignored},
    {.name = "metadata", .take = take_ignored},
    {.name = "service_tier", .take = take_ignored},
    {.name = "safety_identifier", .take = take_ignored},
    {.name = "prompt_cache_key", .take = take_ignored},
    {.name = "prompt_cache_retention", .take = take_ignored},
    {.name = "cache_prompt", .take = take_ignored},
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };
_Static_assert(FIELD_COUNT <= 64, "seen has a bit for each field");

static const field *find_field(span name) {
    for (int i = 0; i < FIELD_COUNT; i++)
        if (span_is(name, fields[i].name)) return &fields[i];
    return NULL;
}

static bool take_member(parse *p, const json *m) {
    const field *f = find_field(m->key);
    if (f) {
        uint64_t bit = (uint64_t)1 << (f - fields);
        if (p->seen & bit)
            return api_fail(p->e, 400, "invalid_value", f->name, "the field '%s' is given more than once", f->name);
        p->seen |= bit;
        return json_is(m, JSON_NULL) || f->take(p, f, m);
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", m->key.size > 60 ? 60 : (int)m->key.size, m->key.data);
    return api_fail(p->e, 400, "unknown_field", name, "unknown field '%s'; no field is ignored silently", name);
}

/* reasoning_effort "none" is another spelling of enable_thinking false. */
static bool merge_thinking_off(parse *p) {
    const json *given = json_get(p->kwargs, "enable_thinking");
    if (given && !json_is(given, JSON_FALSE))
        return wrong(p, "reasoning_effort", "left out when chat_template_kwargs.enable_thinking is given");
    if (given) return true;
    json *kwargs = p->kwargs ? json_clone(p->a, p->kwargs) : json_new(p->a, JSON_OBJECT);
    json_set(kwargs, span_text("enable_thinking"), json_new(p->a, JSON_FALSE));
    buffer text = {0};
    json_write(&text, kwargs, JSON_COMPACT);
    p->out->params.template_kwargs = arena_copy(p->a, text.data, text.size);
    p->out->params.template_kwargs_size = text.size;
    buffer_deinit(&text);
    return true;
}

bool chat_request_parse(arena *a, span body, const char *model, int context_max, chat_request *out, api_error *e) {
    *out = (chat_request){.params = hearth_request_defaults()};
    out->params.tool_calls = true;
    parse p = {.a = a, .out = out, .model = model, .context_max = context_max, .e = e};
    error why;
    if (json_parse(a, body, JSON_DEPTH_DEFAULT, &p.root, &why))
        return api_fail(e, 400, "invalid_json", NULL, "the body is not valid JSON: %s", why.message);
    if (!json_is(p.root, JSON_OBJECT)) return api_fail(e, 400, "invalid_json", NULL, "the body must be a JSON object");
    for (const json *m = p.root->first; m; m = m->next)
        if (!take_member(&p, m)) return false;
    if (!out->params.tools) out->params.tool_calls = false; /* without tools what looks like a call is text */
    if (!out->params.messages) return api_fail(e, 400, "missing_field", "messages", "messages is missing");
    if (p.has_stream_options && !out->stream)
        return api_fail(e, 400, "invalid_value", "stream_options", "stream_options is only allowed with stream true");
    return !p.thinking_off || merge_thinking_off(&p);
}
