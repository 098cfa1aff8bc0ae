/* IoU: how far an answer's shell actions agree with the recorded ones.
 *
 * An agent's turn is a few shell commands. Two turns are compared by the programs they run, as a multiset: `cat` twice
 * and `grep` once. Arguments do not count, since they follow from what the agent saw before. The rules are those of the
 * MLPerf Edge Agentic scorer; docs/bench.md states them. */
#ifndef HEARTH_BENCH_SHELL_ACTIONS_H
#define HEARTH_BENCH_SHELL_ACTIONS_H

#include "base/json.h"

typedef struct action_list {
    const char **names; /* owned array of static strings, in the order of the commands */
    size_t count, capacity;
} action_list;

void action_list_deinit(action_list *l);

/* Appends the actions of one command line, which may be a whole script. */
void shell_actions(span command, action_list *out);
/* Appends the actions of a message's tool calls: [{"function": {"name": "bash", "arguments": text or object}}]. Calls of
 * other tools, and arguments that are not an object with a command, give nothing. NULL and non-arrays neither. */
void tool_call_actions(const json *tool_calls, action_list *out);

/* |a and b| / |a or b| of the multisets; 0 when both are empty. */
double action_iou(const action_list *a, const action_list *b);

#endif
