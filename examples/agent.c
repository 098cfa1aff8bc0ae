/* An agent in one file: the model may call a calculator as often as it likes, then answers.
 *
 *     make build/examples/agent && build/examples/agent MODEL_DIR "What is 17 * 23 + 4?"
 *
 * The loop is the whole idea: send the conversation, collect the answer; if it has tool calls, append them and their
 * results and send it again. The engine computes only what is new. A real program would use a JSON library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hearth.h"

enum { ROUNDS_MAX = 8, CALLS_MAX = 4 };

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"calculate\",\"description\":\"Multiplies, adds or subtracts.\","
    "\"parameters\":{\"type\":\"object\",\"required\":[\"a\",\"operator\",\"b\"],\"properties\":{"
    "\"a\":{\"type\":\"number\"},\"operator\":{\"type\":\"string\",\"enum\":[\"+\",\"-\",\"*\"]},"
    "\"b\":{\"type\":\"number\"}}}}}]";

static char conversation[1 << 20]; /* JSON, without the closing bracket */

static void append(const char *text) {
    size_t used = strlen(conversation);
    if (used + strlen(text) + 2 > sizeof conversation) exit(1);
    memcpy(conversation + used, text, strlen(text) + 1);
}

static void append_string(const char *before, const char *text) {
    append(before);
    append("\"");
    for (; *text; text++) {
        char piece[8] = {*text};
        if (*text == '"' || *text == '\\' || (unsigned char)*text < 32) snprintf(piece, sizeof piece, "\\u%04x", *text);
        append(piece);
    }
    append("\"");
}

/* The arguments are one JSON object, as the model wrote it: {"a": 17, "operator": "*", "b": 23} in any order. */
static void calculate(const char *arguments, char *result, size_t size) {
    const char *a = strstr(arguments, "\"a\""), *b = strstr(arguments, "\"b\""), *o = strstr(arguments, "\"operator\"");
    double x, y;
    char sign;
    if (a && b && o && sscanf(a, "\"a\" : %lf", &x) == 1 && sscanf(b, "\"b\" : %lf", &y) == 1 &&
        sscanf(o, "\"operator\" : \"%c", &sign) == 1 && strchr("+-*", sign))
        snprintf(result, size, "%.15g", sign == '+' ? x + y : sign == '-' ? x - y : x * y);
    else
        snprintf(result, size, "error: a, operator and b are needed");
}

typedef struct call {
    char name[65], arguments[4096];
} call;

static void add(char *to, size_t size, const char *text) { strncat(to, text, size - strlen(to) - 1); }

/* Runs one request; fills calls and content. Returns the number of calls, or -1 after printing what went wrong. */
static int answer(hearth_engine *engine, call *calls, char *content, size_t content_size) {
    hearth_request_params params = hearth_request_defaults();
    append("]");
    params.messages = conversation;
    params.tools = TOOLS;
    hearth_request *request;
    hearth_error error;
    if (hearth_request_create(engine, &params, &request, &error) != HEARTH_OK) return puts(error.message), -1;
    conversation[strlen(conversation) - 1] = 0;
    int count = content[0] = 0;
    hearth_event event;
    while (hearth_request_next(request, &event, -1)) {
        call *c = &calls[event.index < CALLS_MAX ? event.index : CALLS_MAX - 1];
        if (event.type == HEARTH_EVENT_CONTENT) {
            fputs(event.text, stdout);
            add(content, content_size, event.text);
        } else if (event.type == HEARTH_EVENT_CALL_BEGIN) {
            *c = (call){0};
            add(c->name, sizeof c->name, event.text);
        } else if (event.type == HEARTH_EVENT_CALL_ARGUMENTS) {
            add(c->arguments, sizeof c->arguments, event.text);
        } else if (event.type == HEARTH_EVENT_CALL_END) {
            count = event.index < CALLS_MAX ? event.index + 1 : CALLS_MAX;
        } else if (event.type == HEARTH_EVENT_ERROR) {
            puts(event.error.message);
            count = -1;
        }
    }
    hearth_request_destroy(request);
    return count;
}

int main(int argc, char **argv) {
    hearth_engine *engine;
    hearth_error error;
    if (argc < 3) return fprintf(stderr, "usage: %s MODEL_DIR QUESTION\n", argv[0]), 2;
    if (hearth_engine_open(argv[1], NULL, &engine, &error) != HEARTH_OK) return puts(error.message), 1;
    append_string("[{\"role\":\"user\",\"content\":", argv[2]);
    append("}");
    static call calls[CALLS_MAX];
    static char content[1 << 16];
    int count = 1;
    for (int round = 0; round < ROUNDS_MAX && (count = answer(engine, calls, content, sizeof content)) > 0; round++) {
        append_string(",{\"role\":\"assistant\",\"content\":", content);
        for (int i = 0; i < count; i++) {
            append_string(i ? ",{\"function\":{\"name\":" : ",\"tool_calls\":[{\"function\":{\"name\":", calls[i].name);
            append_string(",\"arguments\":", calls[i].arguments);
            append("}}");
        }
        append("]}");
        for (int i = 0; i < count; i++) {
            char result[64];
            calculate(calls[i].arguments, result, sizeof result);
            printf("[%s %s = %s]\n", calls[i].name, calls[i].arguments, result);
            append_string(",{\"role\":\"tool\",\"content\":", result);
            append("}");
        }
    }
    hearth_engine_close(engine);
    return count == 0 ? 0 : 1;
}
