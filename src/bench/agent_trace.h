/* Recorded agent conversations, in the schema of the MLPerf Edge Agentic trace.
 *
 * One JSON object a line, lines of a conversation adjacent, `turn` counting 1, 2, 3 ... inside it:
 *   odd turns    {"conversation_id", "turn", "role": "user", "content"[, "system"][, "tools"]}   first, maybe later too
 *                {"conversation_id", "turn", "role": "tool", "tool_results": [{"tool_call_id", "content"}]}
 *   even turns   {"conversation_id", "turn", "role": "assistant"[, "reasoning_content"][, "tool_calls"][, "content"]}
 * Other members are passed over. A pair of lines is one turn of the replay: what the agent was told, and what it did. */
#ifndef HEARTH_BENCH_AGENT_TRACE_H
#define HEARTH_BENCH_AGENT_TRACE_H

#include "base/json.h"

enum { TRACE_BYTES_MAX = 1 << 30 };

typedef struct trace_turn {
    int number;            /* `turn` of the assistant line */
    const json *user;      /* string: what the user says; NULL in a turn that brings tool results */
    const json *results;   /* array of {"tool_call_id", "content"}, strings; NULL when user is set */
    const json *calls;     /* recorded tool calls: array, or NULL */
    const json *reasoning; /* recorded reasoning: string, or NULL */
    const json *content;   /* recorded text: string, or NULL */
} trace_turn;

typedef struct trace_conversation {
    span id;
    const json *system; /* string, or NULL */
    const json *tools;  /* array, or NULL */
    trace_turn *turns;  /* owned */
    size_t turn_count;
} trace_conversation;

typedef struct trace {
    trace_conversation *conversations; /* owned */
    size_t count;
    size_t turn_count; /* of all conversations */
    buffer text;       /* owned: the file, which the trees borrow */
    arena *memory;     /* owned: the trees */
} trace;

/* Reads the file, keeping the first conversations_max conversations and the first turns_max turns of each (0 = all).
 * Errors say "file:line: `field` ...". */
err_code trace_read(const char *path, size_t conversations_max, size_t turns_max, trace *out, error *err);
void trace_deinit(trace *t);

/* Messages to send, growing turn by turn. What the server answered plays no part: the recorded answers are sent back. */
typedef struct transcript {
    arena *memory;  /* owned */
    json *messages; /* in memory; borrows from the trace */
} transcript;
void transcript_begin(transcript *t, const trace_conversation *c);
/* Adds what precedes the answer of turn `at`; called for 0, 1, 2 ... in order. */
void transcript_extend(transcript *t, const trace_conversation *c, size_t at);
void transcript_end(transcript *t);

#endif
