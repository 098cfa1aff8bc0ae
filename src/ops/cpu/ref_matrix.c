/* Embedding rows and matrix products of the scalar oracle. */
#include <stdlib.h>

#include "base/memory.h"
#include "ops/cpu/ref.h"

void ref_embed(pool *p, float *out, const matrix *table, const int32_t *ids, int rows) {
    (void)p;
    for (int r = 0; r < rows; r++)
        ref_widen(out + (int64_t)r * table->cols, table->type, table->data, (int64_t)ids[r] * table->cols, table->cols);
}

/* One row of W is widened once and meets every row of x: the order inside a dot product does not depend on `rows`. */
void ref_matmul(pool *p, float *out, const float *x, const matrix *w, int rows) {
    (void)p;
    float *wide = mem_alloc((size_t)w->cols * sizeof *wide);
    for (int n = 0; n < w->rows; n++) {
        ref_widen(wide, w->type, w->data, (int64_t)n * w->cols, w->cols);
        for (int r = 0; r < rows; r++) out[(int64_t)r * w->rows + n] = ref_dot(wide, x + (int64_t)r * w->cols, w->cols);
    }
    free(wide);
}
