/* See chat_input.h. Trees are immutable and may be shared, so only the nodes on the way to a change are made anew. */
#include "text/chat_input.h"

json *chat_input_share(arena *a, const json *value) {
    json *copy = arena_alloc(a, sizeof *copy);
    *copy = *value;
    copy->next = NULL;
    return copy;
}

typedef err_code change_member(arena *a, const json *member, json **out, error *err);

/* The object with the member `name` replaced by what change makes of it. A repeated key counts once, its last value. */
static err_code with_member(arena *a, const json *object, const char *name, change_member *change, json **out,
                            error *err) {
    *out = json_new(a, JSON_OBJECT);
    for (const json *m = object->first; m; m = m->next) {
        json *item;
        if (json_get_span(object, m->key) != m) continue;
        if (span_is(m->key, name))
            ERR_TRY(change(a, m, &item, err));
        else
            item = chat_input_share(a, m);
        json_set(*out, m->key, item);
    }
    return ERR_OK;
}

static err_code change_items(arena *a, const json *array, change_member *change, json **out, error *err) {
    if (!json_is(array, JSON_ARRAY)) {
        *out = chat_input_share(a, array);
        return ERR_OK;
    }
    *out = json_new(a, JSON_ARRAY);
    for (const json *i = array->first; i; i = i->next) {
        json *item;
        if (json_is(i, JSON_OBJECT))
            ERR_TRY(change(a, i, &item, err));
        else
            item = chat_input_share(a, i);
        json_append(*out, item);
    }
    return ERR_OK;
}

static err_code parse_text(arena *a, const json *arguments, json **out, error *err) {
    const json *parsed = arguments;
    if (json_is(arguments, JSON_STRING)) ERR_TRY(json_parse(a, arguments->text, JSON_DEPTH_DEFAULT, &parsed, err));
    *out = chat_input_share(a, parsed);
    return ERR_OK;
}

static err_code parse_function(arena *a, const json *function, json **out, error *err) {
    return with_member(a, function, "arguments", parse_text, out, err);
}

static err_code parse_call(arena *a, const json *call, json **out, error *err) {
    bool wrapped = json_is(json_get(call, "function"), JSON_OBJECT);
    return wrapped ? with_member(a, call, "function", parse_function, out, err) : parse_function(a, call, out, err);
}

static err_code parse_calls(arena *a, const json *calls, json **out, error *err) {
    return change_items(a, calls, parse_call, out, err);
}

static err_code parse_message(arena *a, const json *message, json **out, error *err) {
    return with_member(a, message, "tool_calls", parse_calls, out, err);
}

static err_code parse_messages(arena *a, const json *messages, json **out, error *err) {
    return change_items(a, messages, parse_message, out, err);
}

err_code chat_input_variables(arena *a, const json *input, const json **out, error *err) {
    if (!json_is(input, JSON_OBJECT)) ERR_FAIL(err, ERR_INVALID, "the request must be a JSON object");
    const json *parse = json_get(input, "parse_arguments");
    bool parse_arguments = parse && !json_is(parse, JSON_NULL) && !json_is(parse, JSON_FALSE);
    json *variables = json_new(a, JSON_OBJECT);
    for (const json *m = input->first; m; m = m->next) {
        json *item;
        if (m == parse || json_get_span(input, m->key) != m) continue;
        if (parse_arguments && span_is(m->key, "messages"))
            ERR_TRY(parse_messages(a, m, &item, err));
        else
            item = chat_input_share(a, m);
        json_set(variables, m->key, item);
    }
    if (!json_get(input, "tools")) json_set(variables, span_text("tools"), json_new(a, JSON_NULL));
    if (!json_get(input, "add_generation_prompt"))
        json_set(variables, span_text("add_generation_prompt"), json_new(a, JSON_FALSE));
    *out = variables;
    return ERR_OK;
}
