/* Embedding rows, norm, residual addition and the gated activation; compiled per instruction set (see simd_avx512.h). */

enum { ROWS_TASK = 16384 }; /* elements worth a task */

typedef struct rows_job {
    float *out;
    const float *x, *y, *scale;
    const matrix *table;
    const int32_t *ids;
    int rows, width, rows_per_task;
    int64_t count;
    float eps;
} rows_job;

/* Runs task over the rows in groups of about ROWS_TASK elements. */
static void run_rows(pool *p, rows_job *job, void (*task)(void *job, int index)) {
    job->rows_per_task = job->width >= ROWS_TASK ? 1 : ROWS_TASK / job->width;
    pool_run(p, (job->rows + job->rows_per_task - 1) / job->rows_per_task, task, job);
}

static void embed_task(void *context, int index) {
    const rows_job *job = context;
    const int first = index * job->rows_per_task, end = int_min(job->rows, first + job->rows_per_task);
    for (int r = first; r < end; r++) {
        size_t at = (size_t)job->ids[r] * (size_t)job->width;
        widen_row(job->table->type, job->out + (size_t)r * (size_t)job->width, job->table->data, at, job->width,
                  job->width);
    }
}

void ISA(embed)(pool *p, float *out, const matrix *table, const int32_t *ids, int rows) {
    HEARTH_ASSERT(table->form == MATRIX_PLAIN);
    HEARTH_ASSERT(table->type == DTYPE_BF16 || table->type == DTYPE_F16 || table->type == DTYPE_F32);
    run_rows(p, &(rows_job){.out = out, .table = table, .ids = ids, .rows = rows, .width = table->cols}, embed_task);
}

static void rms_norm_task(void *context, int index) {
    const rows_job *job = context;
    const int first = index * job->rows_per_task, end = int_min(job->rows, first + job->rows_per_task);
    for (int r = first; r < end; r++) {
        size_t at = (size_t)r * (size_t)job->width;
        norm_row(job->out + at, job->x + at, job->scale, job->width, job->eps);
    }
}

void ISA(rms_norm)(pool *p, float *out, const float *x, const float *scale, int rows, int width, float eps) {
    run_rows(p, &(rows_job){.out = out, .x = x, .scale = scale, .rows = rows, .width = width, .eps = eps},
             rms_norm_task);
}

static void add_task(void *context, int index) {
    const rows_job *job = context;
    int64_t i = (int64_t)index * ROWS_TASK, end = i + ROWS_TASK < job->count ? i + ROWS_TASK : job->count;
    for (; i + VL <= end; i += VL) v_store(job->out + i, v_add(v_load(job->x + i), v_load(job->y + i)));
    const int n = (int)(end - i);
    if (n) v_store_n(job->out + i, v_add(v_load_n(job->x + i, n), v_load_n(job->y + i, n)), n);
}

void ISA(add)(pool *p, float *x, const float *y, int64_t count) {
    pool_run(p, (int)((count + ROWS_TASK - 1) / ROWS_TASK), add_task,
             &(rows_job){.out = x, .x = x, .y = y, .count = count});
}

static void swiglu_task(void *context, int index) {
    const rows_job *job = context;
    int64_t i = (int64_t)index * ROWS_TASK, end = i + ROWS_TASK < job->count ? i + ROWS_TASK : job->count;
    for (; i + VL <= end; i += VL) v_store(job->out + i, v_mul(v_silu(v_load(job->x + i)), v_load(job->y + i)));
    const int n = (int)(end - i);
    if (n) v_store_n(job->out + i, v_mul(v_silu(v_load_n(job->x + i, n)), v_load_n(job->y + i, n)), n);
}

void ISA(swiglu)(pool *p, float *out, const float *gate, const float *up, int64_t count) {
    pool_run(p, (int)((count + ROWS_TASK - 1) / ROWS_TASK), swiglu_task,
             &(rows_job){.out = out, .x = gate, .y = up, .count = count});
}
