/* Where to take snapshots of a prompt: at the places where later prompts are likely to leave it.
 *
 * A snapshot costs a copy of the whole recurrent state (151 MB for a 27B model), so there are few and each has a reason:
 *
 *     end of system message and tools    other conversations of the same agent
 *     ends of the last two messages      the last message edited, a turn tried again
 *     end of the history                 the next turn, where the generation prompt is not repeated in the history
 *     inside the generation prompt       the next turn, as far as it repeats the generation prompt (learnt, see below)
 *     one token before the end           the same prompt again
 *     where it left a stored path        others will leave it there too: prompts with one long prefix and different tails
 *     intervals of a long prefill        edits in the middle, cancellation
 *
 * and, by the caller, the end of what was computed. Which of them are kept is the prefix tree's decision.
 *
 * Templates often repeat a part of the generation prompt when they render the answer as history: `<think>` is there
 * both times, what follows is not. How many tokens that is is not guessed from the template: when a prompt comes back to
 * the end of an earlier history and goes on along the old path for a few tokens, that number is remembered, and from
 * then on a snapshot is taken there. */
#ifndef HEARTH_CACHE_SNAPSHOT_POLICY_H
#define HEARTH_CACHE_SNAPSHOT_POLICY_H

#include "cache/prefix_tree.h"

enum {
    SNAPSHOT_WANTS_MAX = 16,
    SNAPSHOT_INTERVAL_TOKENS = 2048, /* doubled until there are at most SNAPSHOT_INTERVALS_MAX */
    SNAPSHOT_INTERVALS_MAX = 6,
    SNAPSHOT_BRANCH_MIN = 16,  /* tokens a branch point must save */
    SNAPSHOT_REPEATED_MAX = 32 /* tokens of a generation prompt that may be learnt */
};

typedef struct snapshot_policy {
    int repeated; /* tokens of the generation prompt that the next turn's history repeats; 0 = none known */
} snapshot_policy;

typedef struct prompt_shape {
    int count, history;      /* ids; of them those before the generation prompt */
    const int *message_ends; /* ascending; the last messages' ends, borrowed */
    int message_end_count;
    bool all_messages; /* message_ends has every message, so the first is the end of system message and tools */
} prompt_shape;

typedef struct snapshot_want {
    int position; /* tokens it stands after */
    snapshot_kind kind;
    bool needed; /* the next turn resumes here: taken whatever must go for it */
} snapshot_want;

/* Takes note of where a prompt of `count` ids left what was stored. */
void snapshot_policy_learn(snapshot_policy *p, const prefix_match *m, int count);
/* At most wants_max positions in (m->resumed, count), the most important ones, ascending, each once. Returns how many. */
int snapshot_policy_plan(const snapshot_policy *p, const prompt_shape *shape, const prefix_match *m, int wants_max,
                         snapshot_want out[SNAPSHOT_WANTS_MAX]);

#endif
