/* An MTP head whose acceptance is given, for measuring drafting without trained weights.
 *
 * The target's tokens are known (a recorded output). For the draft at depth d, given that the path before it is right,
 * the best proposal is right with probability top1[d], and one of the two best with top2[d]; depths past the last value
 * use that. Which it is comes from a hash of (turn, position) and nothing else, so every run and every drafter meets the
 * same luck. A proposal that is not meant to be right is a wrong token on purpose: one that stands behind the same token
 * elsewhere in the context, so that a lookup grafted onto it finds something to waste nodes on, as on a real mistake.
 *
 * Numbers made with it are simulated and must be labelled so. */
#ifndef HEARTH_DECODE_SIMULATED_MTP_H
#define HEARTH_DECODE_SIMULATED_MTP_H

#include <stdint.h>

#include "base/error.h"

enum { SIMULATED_DEPTHS_MAX = 16 };

typedef struct simulated_mtp {
    double top1[SIMULATED_DEPTHS_MAX], top2[SIMULATED_DEPTHS_MAX]; /* by depth - 1; filled to the end */
} simulated_mtp;

/* Lists such as ".87,.80,.75": 1 .. 16 numbers in 0 .. 1; top2 nowhere less than top1. ERR_INVALID says which is wrong. */
err_code simulated_mtp_parse(const char *top1, const char *top2, simulated_mtp *out, error *err);

/* Where the draft stands: its position in the turn's output, and its depth below the root (from 1). */
typedef struct simulated_place {
    uint64_t turn;
    int64_t position;
    int depth;
    int32_t parent; /* the token before it */
    int32_t target; /* the right token, or -1 when the path before it is wrong or the output has ended */
} simulated_place;

/* Estimated acceptance of the rank-th best proposal (0, 1; more are never right) at a depth. */
double simulated_mtp_acceptance(const simulated_mtp *m, int depth, int rank);

/* The two best proposals, different from each other. context[0..count): the sequence so far, for wrong tokens. */
void simulated_mtp_propose(const simulated_mtp *m, const simulated_place *place, const int32_t *context, int32_t count,
                           int32_t out[2]);

#endif
