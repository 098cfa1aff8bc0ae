/* See step_budget.h. */
#include "engine/step_budget.h"

enum { ROWS_FIRST = 16 };
static const double FADE = 0.9;
/* Steps of nearly one size (variance over squared mean) say nothing of the slope; a growing context would pass for it. */
static const double SPREAD_MIN = 0.1;

void step_budget_init(step_budget *b, double target_ms, int rows_max) {
    *b = (step_budget){.target_ms = target_ms, .rows_max = rows_max, .rows_tried = ROWS_FIRST / 2};
}

void step_budget_record(step_budget *b, int rows, double ms) {
    if (rows > b->rows_tried) b->rows_tried = rows;
    b->weight = b->weight * FADE + 1;
    b->x = b->x * FADE + rows;
    b->y = b->y * FADE + ms;
    b->xx = b->xx * FADE + (double)rows * rows;
    b->xy = b->xy * FADE + rows * ms;
}

int step_budget_rows(const step_budget *b) {
    int limit = 2 * b->rows_tried < b->rows_max ? 2 * b->rows_tried : b->rows_max;
    if (b->weight == 0) return limit;
    double per_row = b->y / b->x, fixed = 0; /* all cost on the rows: safe, and right where weights are small */
    double spread = b->weight * b->xx - b->x * b->x;
    if (spread > SPREAD_MIN * b->x * b->x) {
        double slope = (b->weight * b->xy - b->x * b->y) / spread, at_zero = (b->y - slope * b->x) / b->weight;
        if (slope > 0 && at_zero > 0) per_row = slope, fixed = at_zero;
    }
    double time = b->target_ms > 2 * fixed ? b->target_ms - fixed : fixed;
    double rows = time / per_row;
    return rows >= limit ? limit : rows < 1 ? 1 : (int)rows;
}
