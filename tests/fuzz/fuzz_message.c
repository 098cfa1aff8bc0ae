/* Any JSON as messages and as tools: an error, or a tree with the promised shape. */
#include <stdint.h>
#include <stdlib.h>

#include "text/message.h"

static void check_calls(const json *calls) {
    HEARTH_ASSERT(json_is(calls, JSON_ARRAY) && calls->count > 0);
    for (const json *call = calls->first; call; call = call->next) {
        const json *function = json_get(call, "function");
        HEARTH_ASSERT(json_is(json_get(call, "id"), JSON_STRING));
        HEARTH_ASSERT(json_is(json_get(function, "name"), JSON_STRING));
        HEARTH_ASSERT(json_is(json_get(function, "arguments"), JSON_OBJECT));
    }
}

static void check_messages(const json *messages) {
    for (const json *message = messages->first; message; message = message->next) {
        const json *role = json_get(message, "role"), *calls = json_get(message, "tool_calls");
        HEARTH_ASSERT(message == messages->first || !json_string_is(role, "system"));
        HEARTH_ASSERT(json_is(json_get(message, "content"), JSON_STRING));
        if (json_string_is(role, "assistant") && calls) check_calls(calls);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_create();
    char *text = mem_copy(data, size);
    const json *value, *out = NULL;
    error err;
    if (json_parse(a, span_make(text, size), JSON_DEPTH_DEFAULT, &value, NULL) == ERR_OK) {
        if (messages_normalize(a, value, &out, &err) == ERR_OK) {
            check_messages(out);
            buffer written = {0};
            json_write(&written, out, JSON_COMPACT);
            buffer_deinit(&written);
        }
        HEARTH_ASSERT(tools_normalize(a, value, &out, &err) == ERR_OK || err.code == ERR_INVALID);
    }
    free(text);
    arena_destroy(a);
    return 0;
}
