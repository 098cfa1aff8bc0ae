/* How many rows a step may have so that it stays short.
 *
 * A step costs about a + b * rows: reading the weights, then work per row. Both are learnt from the steps that ran, by
 * least squares over a fading window, since b grows with the context and differs between machines by orders of
 * magnitude. Rows are then chosen so that a step takes at most the target, or twice a where a alone is longer than that:
 * a machine that needs seconds for one row would only get slower by taking rows one by one. */
#ifndef HEARTH_ENGINE_STEP_BUDGET_H
#define HEARTH_ENGINE_STEP_BUDGET_H

typedef struct step_budget {
    double target_ms;
    int rows_max, rows_tried;    /* never more than twice what was tried before */
    double weight, x, y, xx, xy; /* fading sums over steps: rows, ms */
} step_budget;

void step_budget_init(step_budget *b, double target_ms, int rows_max);
void step_budget_record(step_budget *b, int rows, double ms);
int step_budget_rows(const step_budget *b); /* 1 .. rows_max */

#endif
