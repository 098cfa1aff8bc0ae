/* Gated DeltaNet: convolution, delta rule, replay; compiled per instruction set (see simd_avx512.h).
 *
 * The delta rule couples nothing across value columns, so a task is one value head of one segment times a block of
 * GDN_COLUMNS columns, and it runs the segment's tokens one after another on its slice of the state. A slice is copied
 * into scratch first, where its rows lie side by side: 32 KB for 128 key dims, which stays in the first-level cache for
 * the whole segment. Four registers a row are as many as needed: S^T k is one chain of FMAs per column, and four chains
 * in flight take as long as the arithmetic of the pass.
 *
 * A tree keeps a slice per node (the committed one first), each computed from its parent's. The heads' norm and gate need
 * all columns of a head, and the normalised q, k and the gates are shared by many tasks: these are passes of their own
 * before and after. */

enum { GDN_COLUMNS = 4 * VL, CONV_BLOCK = 512 /* channels per task */ };

/* Where a slice lies: head h, columns first .. first+n of one layer's state. */
typedef struct gdn_slice {
    size_t at;    /* of its first element in a recurrent state */
    int first, n; /* n <= GDN_COLUMNS */
} gdn_slice;

static gdn_slice slice_of(const gdn_shape *g, int layer, int head, int block) {
    gdn_slice s = {.first = block * GDN_COLUMNS};
    s.n = int_min(GDN_COLUMNS, g->value_dim - s.first);
    s.at = ((size_t)layer * (size_t)g->value_heads + (size_t)head) * (size_t)g->key_dim * (size_t)g->value_dim +
           (size_t)s.first;
    return s;
}

static int column_blocks(const gdn_shape *g) { return (g->value_dim + GDN_COLUMNS - 1) / GDN_COLUMNS; }

static void slice_read(float *slice, const float *state, const gdn_slice *s, const gdn_shape *g) {
    for (int i = 0; i < g->key_dim; i++) {
        const float *row = state + s->at + (size_t)i * (size_t)g->value_dim;
        for (int c = 0; c < GDN_COLUMNS; c += VL) v_store(slice + i * GDN_COLUMNS + c, v_load_n(row + c, s->n - c));
    }
}

static void slice_write(float *state, const float *slice, const gdn_slice *s, const gdn_shape *g) {
    for (int i = 0; i < g->key_dim; i++) {
        float *row = state + s->at + (size_t)i * (size_t)g->value_dim;
        for (int c = 0; c < s->n; c += VL) v_store_n(row + c, v_load(slice + i * GDN_COLUMNS + c), s->n - c);
    }
}

/* One token of one slice: S' = from * decay; u = beta (v - S'^T k); to = S' + k u^T; with `read`, o = to^T q.
 * from and to may be the same. v and o have n valid columns. */
SIMD void slice_step(float *to, const float *from, const float *k, const float *q, const float *v, float decay,
                     float beta, int key_dim, int n, const bool read, float *o) {
    vf u[4], out[4];
    const vf decays = v_set(decay);
    UNROLL for (int c = 0; c < 4; c++) u[c] = out[c] = v_zero();
    for (int i = 0; i < key_dim; i++) {
        const vf key = v_set(k[i]);
        UNROLL for (int c = 0; c < 4; c++) {
            const vf s = v_mul(v_load(from + i * GDN_COLUMNS + c * VL), decays);
            v_store(to + i * GDN_COLUMNS + c * VL, s);
            u[c] = v_fma(key, s, u[c]);
        }
    }
    UNROLL for (int c = 0; c < 4; c++) u[c] = v_mul(v_set(beta), v_sub(v_load_n(v + c * VL, n - c * VL), u[c]));
    for (int i = 0; i < key_dim; i++) {
        const vf key = v_set(k[i]), query = read ? v_set(q[i]) : v_zero();
        UNROLL for (int c = 0; c < 4; c++) {
            const vf s = v_fma(key, u[c], v_load(to + i * GDN_COLUMNS + c * VL));
            v_store(to + i * GDN_COLUMNS + c * VL, s);
            if (read) out[c] = v_fma(query, s, out[c]);
        }
    }
    if (!read) return;
    UNROLL for (int c = 0; c < 4; c++) {
        if (c * VL < n) v_store_n(o + c * VL, out[c], n - c * VL);
    }
}

typedef struct gdn_job {
    float *out;
    const float *mixed, *a, *b, *z, *neg_exp_a, *dt_bias, *norm_scale, *raw;
    float eps;
    const gdn_shape *shape;
    const segment *segments;
    int layer, channels, keys, values; /* widths: key_heads * key_dim, value_heads * value_dim */
    const gdn_stash *stash;
    float *q, *k, *decay, *beta; /* shared scratch, [rows, ...] */
} gdn_job;

static const segment *segment_of_row(const segment *segments, int row) {
    while (row >= segments->row + segments->count) segments++;
    return segments;
}

static void l2_norm_row(float *out, const float *x, int count, bool scaled) {
    const vf root = v_set(sqrtf(dot(x, x, count) + 1e-6f)), scale = v_set(sqrtf((float)count));
    for (int i = 0; i < count; i += VL) {
        vf y = v_div(v_load_n(x + i, count - i), root);
        v_store_n(out + i, scaled ? v_div(y, scale) : y, count - i);
    }
}

/* decay = exp(neg_exp_a softplus(a + dt_bias)), beta = sigmoid(b) */
static void gate_row(const gdn_job *job, size_t row) {
    const int heads = job->shape->value_heads;
    const size_t at = row * (size_t)heads;
    for (int h = 0; h < heads; h += VL) {
        const int n = heads - h;
        vf dt = v_softplus(v_add(v_load_n(job->a + at + h, n), v_load_n(job->dt_bias + h, n)));
        v_store_n(job->decay + at + h, v_exp(v_mul(v_load_n(job->neg_exp_a + h, n), dt)), n);
        v_store_n(job->beta + at + h, v_sigmoid(v_load_n(job->b + at + h, n)), n);
    }
}

static void stash_row(const gdn_job *job, size_t row) {
    const gdn_stash *s = job->stash;
    const size_t channels = (size_t)job->channels, keys = (size_t)job->keys, values = (size_t)job->values;
    const size_t heads = (size_t)job->shape->value_heads;
    memcpy(s->raw + row * channels, job->raw + row * channels, channels * sizeof(float));
    memcpy(s->k + row * keys, job->k + row * keys, keys * sizeof(float));
    memcpy(s->v + row * values, job->mixed + row * channels + 2 * keys, values * sizeof(float));
    memcpy(s->gate + row * heads, job->decay + row * heads, heads * sizeof(float));
    memcpy(s->beta + row * heads, job->beta + row * heads, heads * sizeof(float));
}

static void gdn_prepare(void *context, int index) {
    const gdn_job *job = context;
    const gdn_shape *g = job->shape;
    const size_t row = (size_t)index;
    const float *mixed = job->mixed + row * (size_t)job->channels;
    for (int h = 0; h < g->key_heads; h++) {
        const int at = h * g->key_dim;
        l2_norm_row(job->q + row * (size_t)job->keys + at, mixed + at, g->key_dim, true);
        l2_norm_row(job->k + row * (size_t)job->keys + at, mixed + job->keys + at, g->key_dim, false);
    }
    gate_row(job, row);
    if (job->stash && segment_of_row(job->segments, index)->parents) stash_row(job, row);
}

/* Row `row` for one slice of head `head`. */
static void gdn_token(const gdn_job *job, int head, const gdn_slice *s, size_t row, float *to, const float *from) {
    const gdn_shape *g = job->shape;
    const size_t key_at = row * (size_t)job->keys + (size_t)(head / (g->value_heads / g->key_heads) * g->key_dim);
    const size_t column = (size_t)(head * g->value_dim + s->first), gate = row * (size_t)g->value_heads + (size_t)head;
    const float *v = job->mixed + row * (size_t)job->channels + 2 * job->keys + column;
    slice_step(to, from, job->k + key_at, job->q + key_at, v, job->decay[gate], job->beta[gate], g->key_dim, s->n, true,
               job->out + row * (size_t)job->values + column);
}

static void gdn_chain(const gdn_job *job, const segment *seg, int head, const gdn_slice *s) {
    float *slice = thread_scratch(SCRATCH_TASK, (size_t)job->shape->key_dim * GDN_COLUMNS * sizeof *slice);
    const capture *next = seg->captures, *last = next + seg->capture_count;
    slice_read(slice, seg->seq->recurrent, s, job->shape);
    for (int i = 0; i < seg->count; i++) {
        gdn_token(job, head, s, (size_t)(seg->row + i), slice, slice);
        for (; next < last && next->after == i + 1; next++) slice_write(next->recurrent, slice, s, job->shape);
    }
    slice_write(seg->seq->recurrent, slice, s, job->shape);
}

static void gdn_tree(const gdn_job *job, const segment *seg, int head, const gdn_slice *s) {
    const size_t size = (size_t)job->shape->key_dim * GDN_COLUMNS;
    float *slices = thread_scratch(SCRATCH_TASK, ((size_t)seg->count + 1) * size * sizeof *slices);
    slice_read(slices, seg->seq->recurrent, s, job->shape);
    for (int i = 0; i < seg->count; i++) {
        const float *from = slices + (size_t)(seg->parents[i] + 1) * size;
        gdn_token(job, head, s, (size_t)(seg->row + i), slices + (size_t)(i + 1) * size, from);
    }
}

static void gdn_task(void *context, int index) {
    const gdn_job *job = context;
    const int blocks = column_blocks(job->shape), per_segment = blocks * job->shape->value_heads;
    const segment *seg = job->segments + index / per_segment;
    const int head = index % per_segment / blocks;
    const gdn_slice s = slice_of(job->shape, job->layer, head, index % blocks);
    (seg->parents ? gdn_tree : gdn_chain)(job, seg, head, &s);
}

/* out = rms_norm(out) * silu(z), head by head of one row */
static void gdn_finish(void *context, int index) {
    const gdn_job *job = context;
    const int width = job->shape->value_dim;
    for (int h = 0; h < job->shape->value_heads; h++) {
        const size_t at = (size_t)index * (size_t)job->values + (size_t)(h * width);
        float *out = job->out + at;
        norm_row(out, out, job->norm_scale, width, job->eps);
        for (int i = 0; i < width; i += VL) {
            const int n = width - i;
            v_store_n(out + i, v_mul(v_load_n(out + i, n), v_silu(v_load_n(job->z + at + i, n))), n);
        }
    }
}

static int row_count(const segment *segments, int segment_count) {
    return segment_count ? segments[segment_count - 1].row + segments[segment_count - 1].count : 0;
}

void ISA(gdn)(pool *p, float *out, const float *mixed, const float *a, const float *b, const float *z,
              const float *neg_exp_a, const float *dt_bias, const float *norm_scale, float eps, const gdn_shape *shape,
              int layer, const segment *segments, int segment_count, const gdn_stash *stash, const float *raw) {
    gdn_job job = {out,
                   mixed,
                   a,
                   b,
                   z,
                   neg_exp_a,
                   dt_bias,
                   norm_scale,
                   raw,
                   eps,
                   shape,
                   segments,
                   layer,
                   .keys = shape->key_heads * shape->key_dim,
                   .values = shape->value_heads * shape->value_dim,
                   .stash = stash};
    job.channels = 2 * job.keys + job.values;
    const int rows = row_count(segments, segment_count);
    const size_t keys = (size_t)rows * (size_t)job.keys, heads = (size_t)rows * (size_t)shape->value_heads;
    job.q = thread_scratch(SCRATCH_CALL, 2 * (keys + heads) * sizeof(float));
    job.k = job.q + keys;
    job.decay = job.k + keys;
    job.beta = job.decay + heads;
    pool_run(p, rows, gdn_prepare, &job);
    pool_run(p, segment_count * shape->value_heads * column_blocks(shape), gdn_task, &job);
    pool_run(p, rows, gdn_finish, &job);
}

/* ---- convolution */

typedef struct conv_job {
    float *out;
    const float *raw, *taps;
    const gdn_shape *shape;
    const segment *segments;
    size_t channels, state_at; /* of the layer in a conv state */
    int blocks;
} conv_job;

/* The raw input `back` steps before node i (0 = the node itself): a row of this step or of the committed state. */
static const float *raw_at(const conv_job *job, const segment *seg, int i, int back) {
    for (; back > 0 && i >= 0; back--) i = seg->parents ? seg->parents[i] : i - 1;
    if (i >= 0) return job->raw + (size_t)(seg->row + i) * job->channels;
    return seg->seq->conv + job->state_at + (size_t)(job->shape->conv_taps - 2 - back) * job->channels;
}

/* The window after node i for n channels from `first` on. Oldest row first: a row that comes from the state itself lies
 * at or after its target. */
static void conv_state_write(const conv_job *job, const segment *seg, int i, float *conv, size_t first, int n) {
    const int rows = job->shape->conv_taps - 1;
    const float *from[CONV_TAPS_MAX];
    for (int t = 0; t < rows; t++) from[t] = raw_at(job, seg, i, rows - 1 - t);
    for (int t = 0; t < rows; t++)
        memmove(conv + job->state_at + (size_t)t * job->channels + first, from[t] + first, (size_t)n * sizeof *conv);
}

static void conv_row(const conv_job *job, const segment *seg, int i, const float *taps, size_t first, int n) {
    const int tap_count = job->shape->conv_taps;
    const float *window[CONV_TAPS_MAX];
    for (int t = 0; t < tap_count; t++) window[t] = raw_at(job, seg, i, tap_count - 1 - t) + first;
    float *out = job->out + (size_t)(seg->row + i) * job->channels + first;
    for (int c = 0; c < n; c += VL) {
        vf sum = v_zero();
        for (int t = 0; t < tap_count; t++)
            sum = v_fma(v_load(taps + t * CONV_BLOCK + c), v_load_n(window[t] + c, n - c), sum);
        v_store_n(out + c, v_silu(sum), n - c);
    }
}

static void conv_task(void *context, int index) {
    const conv_job *job = context;
    const segment *seg = job->segments + index / job->blocks;
    const size_t first = (size_t)(index % job->blocks) * CONV_BLOCK;
    const int n = job->channels - first < CONV_BLOCK ? (int)(job->channels - first) : CONV_BLOCK;
    const int tap_count = job->shape->conv_taps;
    float taps[CONV_TAPS_MAX * CONV_BLOCK]; /* [tap][channel] */
    for (int t = 0; t < tap_count; t++) {
        for (int c = 0; c < CONV_BLOCK; c++)
            taps[t * CONV_BLOCK + c] = c < n ? job->taps[(first + (size_t)c) * (size_t)tap_count + (size_t)t] : 0;
    }
    for (int i = 0; i < seg->count; i++) conv_row(job, seg, i, taps, first, n);
    if (seg->parents) return;
    for (int c = 0; c < seg->capture_count; c++)
        conv_state_write(job, seg, seg->captures[c].after - 1, seg->captures[c].conv, first, n);
    conv_state_write(job, seg, seg->count - 1, seg->seq->conv, first, n);
}

static conv_job conv_job_of(const gdn_shape *shape, int layer) {
    conv_job job = {.shape = shape};
    job.channels = (size_t)(2 * shape->key_heads * shape->key_dim + shape->value_heads * shape->value_dim);
    job.state_at = (size_t)layer * (size_t)(shape->conv_taps - 1) * job.channels;
    job.blocks = (int)((job.channels + CONV_BLOCK - 1) / CONV_BLOCK);
    return job;
}

void ISA(conv)(pool *p, float *out, const float *raw, const float *taps, const gdn_shape *shape, int layer,
               const segment *segments, int segment_count) {
    conv_job job = conv_job_of(shape, layer);
    job.out = out;
    job.raw = raw;
    job.taps = taps;
    job.segments = segments;
    pool_run(p, segment_count * job.blocks, conv_task, &job);
}

/* ---- replay of an accepted path */

typedef struct commit_job {
    const sequence *seq;
    const gdn_shape *shape;
    int layer;
    const gdn_stash *stash;
    const int32_t *path;
    int path_count;
} commit_job;

static void commit_slice(const commit_job *job, int head, int block) {
    const gdn_shape *g = job->shape;
    const gdn_slice s = slice_of(g, job->layer, head, block);
    float *slice = thread_scratch(SCRATCH_TASK, (size_t)g->key_dim * GDN_COLUMNS * sizeof *slice);
    slice_read(slice, job->seq->recurrent, &s, g);
    for (int n = 0; n < job->path_count; n++) {
        const size_t row = (size_t)job->path[n], gate = row * (size_t)g->value_heads + (size_t)head;
        const size_t key = row * (size_t)g->key_heads + (size_t)(head / (g->value_heads / g->key_heads));
        slice_step(slice, slice, job->stash->k + key * (size_t)g->key_dim, NULL,
                   job->stash->v + gate * (size_t)g->value_dim + s.first, job->stash->gate[gate],
                   job->stash->beta[gate], g->key_dim, s.n, false, NULL);
    }
    slice_write(job->seq->recurrent, slice, &s, g);
}

static void commit_conv(const commit_job *job) {
    const conv_job c = conv_job_of(job->shape, job->layer);
    const int rows = job->shape->conv_taps - 1;
    float *conv = job->seq->conv + c.state_at;
    for (int t = 0; t < rows; t++) {
        const int from = job->path_count - rows + t; /* in the path; before it lies the committed window */
        const float *row = from >= 0 ? job->stash->raw + (size_t)job->path[from] * c.channels
                                     : conv + (size_t)(from + rows) * c.channels;
        memmove(conv + (size_t)t * c.channels, row, c.channels * sizeof *conv);
    }
}

static void commit_task(void *context, int index) {
    const commit_job *job = context;
    const int blocks = column_blocks(job->shape);
    if (index == job->shape->value_heads * blocks) {
        commit_conv(job);
    } else {
        commit_slice(job, index / blocks, index % blocks);
    }
}

void ISA(gdn_commit)(pool *p, const sequence *seq, const gdn_shape *shape, int layer, const gdn_stash *stash,
                     const int32_t *path, int path_count) {
    commit_job job = {seq, shape, layer, stash, path, path_count};
    pool_run(p, shape->value_heads * column_blocks(shape) + 1, commit_task, &job);
}
