/* See snapshot_policy.h. */
#include "cache/snapshot_policy.h"

#include "base/error.h"

void snapshot_policy_learn(snapshot_policy *p, const prefix_match *m, int count) {
    int beyond = m->common - m->resumed;
    if (!m->snapshot || m->common >= count - 1 || beyond <= 0 || beyond > SNAPSHOT_REPEATED_MAX) return;
    if (m->kind == SNAPSHOT_HISTORY) p->repeated = beyond;
    if (m->kind == SNAPSHOT_GENERATION && p->repeated + beyond <= SNAPSHOT_REPEATED_MAX) p->repeated += beyond;
}

typedef struct plan {
    snapshot_want *wants;
    int count, max, after, before; /* positions lie between after and before */
} plan;

/* Wants come in order of importance: the first to name a position has it, the first of all is needed, and none is taken
 * when there is no room. */
static void want(plan *p, int position, snapshot_kind kind) {
    if (position <= p->after || position >= p->before || p->count >= p->max) return;
    int at = p->count;
    for (int i = 0; i < p->count; i++)
        if (p->wants[i].position == position) return;
    for (; at > 0 && p->wants[at - 1].position > position; at--) p->wants[at] = p->wants[at - 1];
    p->wants[at] = (snapshot_want){position, kind, p->count == 0};
    p->count++;
}

static void want_intervals(plan *p) {
    int step = SNAPSHOT_INTERVAL_TOKENS;
    while ((p->before - 1) / step - p->after / step > SNAPSHOT_INTERVALS_MAX) step *= 2;
    for (int at = p->after - p->after % step + step; at < p->before; at += step) want(p, at, SNAPSHOT_INTERVAL);
}

int snapshot_policy_plan(const snapshot_policy *p, const prompt_shape *shape, const prefix_match *m, int wants_max,
                         snapshot_want out[SNAPSHOT_WANTS_MAX]) {
    HEARTH_ASSERT(wants_max <= SNAPSHOT_WANTS_MAX && shape->history >= 0 && shape->history <= shape->count &&
                  m->resumed < shape->count);
    plan made = {.wants = out, .max = wants_max, .after = m->resumed, .before = shape->count};
    int ends = shape->message_end_count;
    if (shape->history < shape->count) {
        if (p->repeated) want(&made, shape->history + p->repeated, SNAPSHOT_GENERATION);
        want(&made, shape->history, SNAPSHOT_HISTORY);
    }
    if (m->common - m->resumed >= SNAPSHOT_BRANCH_MIN) want(&made, m->common, SNAPSHOT_BRANCH);
    if (ends && shape->all_messages) want(&made, shape->message_ends[0], SNAPSHOT_SYSTEM);
    for (int i = ends > 2 ? ends - 2 : 0; i < ends; i++) want(&made, shape->message_ends[i], SNAPSHOT_MESSAGE);
    want(&made, shape->count - 1, SNAPSHOT_PROMPT_END);
    want_intervals(&made);
    return made.count;
}
