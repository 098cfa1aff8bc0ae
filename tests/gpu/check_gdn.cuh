/* Check of Gated DeltaNet: outputs and states against double precision, the bits of tree nodes against the chain that
 * leads to them, of a commit against the chain, and of segments run together against segments run alone. */
#ifndef HEARTH_TESTS_GPU_CHECK_GDN_CUH
#define HEARTH_TESTS_GPU_CHECK_GDN_CUH

#include "gpu_support.cuh"

enum { GDN_KEYS = 16, GDN_VALUES = 48, GDN_CHANNELS = (2 * GDN_KEYS + GDN_VALUES) * 128, GDN_OUT = GDN_VALUES * 128 };
enum { GDN_STATE = GDN_VALUES * 128 * 128, GDN_CONV = 3 * GDN_CHANNELS, GDN_NODES = 20, GDN_SAVES = 8 };

/* Host inputs of up to GDN_NODES rows and a committed state; and the same on the device. */
typedef struct gdn_data {
    float *raw, *z, *a, *b, *taps, *neg_exp_a, *dt_bias, *norm_scale, *recurrent, *conv;
    cuda_gdn_step step; /* device pointers; segments, stash and out are set by run_gdn */
    float *stash_memory;
    cuda_gdn_stash stash;
} gdn_data;

static gdn_data make_gdn(void) {
    gdn_data d = {};
    d.raw = random_floats((size_t)GDN_NODES * GDN_CHANNELS, 1);
    d.z = random_floats((size_t)GDN_NODES * GDN_OUT, 2);
    d.a = random_floats(GDN_NODES * GDN_VALUES, 2);
    d.b = random_floats(GDN_NODES * GDN_VALUES, 2);
    d.taps = random_floats((size_t)GDN_CHANNELS * 4, 1);
    d.neg_exp_a = random_floats(GDN_VALUES, 1);
    for (int i = 0; i < GDN_VALUES; i++) d.neg_exp_a[i] = -fabsf(d.neg_exp_a[i]) - 0.01f;
    d.dt_bias = random_floats(GDN_VALUES, 1);
    d.norm_scale = random_floats(128, 1);
    d.recurrent = random_floats(GDN_STATE, 0.2f);
    d.conv = random_floats(GDN_CONV, 1);
    cuda_gdn_step *s = &d.step;
    s->key_heads = GDN_KEYS, s->value_heads = GDN_VALUES, s->rows = GDN_NODES;
    s->raw_stride = GDN_CHANNELS, s->z_stride = GDN_OUT, s->eps = 1e-6f;
    s->raw = (float *)device_copy(d.raw, (size_t)GDN_NODES * GDN_CHANNELS * 4);
    s->z = (float *)device_copy(d.z, (size_t)GDN_NODES * GDN_OUT * 4);
    s->a = (float *)device_copy(d.a, GDN_NODES * GDN_VALUES * 4);
    s->b = (float *)device_copy(d.b, GDN_NODES * GDN_VALUES * 4);
    s->taps = (float *)device_copy(d.taps, (size_t)GDN_CHANNELS * 16);
    s->neg_exp_a = (float *)device_copy(d.neg_exp_a, GDN_VALUES * 4);
    s->dt_bias = (float *)device_copy(d.dt_bias, GDN_VALUES * 4);
    s->norm_scale = (float *)device_copy(d.norm_scale, 128 * 4);
    s->out = device_buffer((size_t)GDN_NODES * GDN_OUT * 2, 0xff);
    s->workspace = device_buffer(cuda_gdn_workspace(GDN_KEYS, GDN_VALUES, GDN_NODES), 0);
    size_t nodes = GDN_NODES, sizes[5] = {nodes * GDN_CHANNELS, nodes * GDN_KEYS * 128, nodes * GDN_OUT,
                                          nodes * GDN_VALUES, nodes * GDN_VALUES};
    float **parts[5] = {&d.stash.raw, &d.stash.k, &d.stash.v, &d.stash.gate, &d.stash.beta};
    for (int i = 0; i < 5; i++) *parts[i] = (float *)device_buffer(sizes[i] * 4, 0xff);
    return d;
}

/* A sequence's device state, fresh from the committed one. */
typedef struct gdn_sequence {
    float *recurrent, *conv, *branches;
} gdn_sequence;

static gdn_sequence make_sequence(const gdn_data *d) {
    gdn_sequence s = {(float *)device_copy(d->recurrent, (size_t)GDN_STATE * 4),
                      (float *)device_copy(d->conv, (size_t)GDN_CONV * 4),
                      (float *)device_buffer((size_t)GDN_SAVES * GDN_STATE * 4, 0xff)};
    return s;
}

static void free_sequence(gdn_sequence *s) {
    CUDA_DO(cudaFree(s->recurrent));
    CUDA_DO(cudaFree(s->conv));
    CUDA_DO(cudaFree(s->branches));
}

/* A segment of rows; parents NULL for a chain. Chooses the nodes to save. */
static cuda_gdn_segment make_segment(const gdn_sequence *s, int row, int count, const int32_t *parents) {
    cuda_gdn_segment seg = {row, count, NULL, NULL, s->recurrent, s->conv, s->branches};
    if (parents == NULL) return seg;
    int32_t saves[GDN_NODES], next = 0;
    for (int i = 0; i < count; i++) {
        saves[i] = -1;
        for (int j = i + 2; j < count && saves[i] < 0; j++)
            if (parents[j] == i) saves[i] = next++;
    }
    if (next > GDN_SAVES) exit(3);
    seg.parents = (int32_t *)device_copy(parents, (size_t)count * 4);
    seg.saves = (int32_t *)device_copy(saves, (size_t)count * 4);
    return seg;
}

/* Runs segments over the step's rows; the rows' outputs, owned by the caller. */
static uint16_t *run_gdn(gdn_data *d, const cuda_gdn_segment *segments, int count) {
    cuda_gdn_step step = d->step;
    cuda_gdn_segment *device = (cuda_gdn_segment *)device_copy(segments, (size_t)count * sizeof *segments);
    CUDA_DO(cudaMemset(step.out, 0xff, (size_t)GDN_NODES * GDN_OUT * 2));
    step.segments = device;
    step.segment_count = count;
    step.stash = &d->stash;
    OP_DO(cuda_gdn(&step, NULL, &op_error));
    CUDA_DO(cudaDeviceSynchronize());
    CUDA_DO(cudaFree(device));
    return (uint16_t *)host_copy(step.out, (size_t)GDN_NODES * GDN_OUT * 2);
}

/* ---- double precision */

static double silu_double(double x) { return x / (1 + exp(-x)); }

/* Channel `c` of the convolution of the last row of path[0 .. n). */
static double conv_double(const gdn_data *d, const int *path, int n, int c) {
    double sum = 0;
    for (int t = 0; t < 4; t++) {
        int at = n - 4 + t;
        double x = at >= 0 ? d->raw[(size_t)path[at] * GDN_CHANNELS + c] : d->conv[(size_t)(at + 3) * GDN_CHANNELS + c];
        sum += d->taps[c * 4 + t] * x;
    }
    return silu_double(sum);
}

/* Row path[n-1] on `state`, which advances; out [GDN_OUT]. */
static void token_double(const gdn_data *d, const int *path, int n, double *state, double *out) {
    int row = path[n - 1];
    for (int h = 0; h < GDN_VALUES; h++) {
        double q[128], k[128], qq = 0, kk = 0, o[128], squares = 0, *s = state + (size_t)h * 128 * 128;
        for (int i = 0; i < 128; i++) {
            q[i] = conv_double(d, path, n, h / 3 * 128 + i);
            k[i] = conv_double(d, path, n, (GDN_KEYS + h / 3) * 128 + i);
            qq += q[i] * q[i];
            kk += k[i] * k[i];
        }
        for (int i = 0; i < 128; i++) q[i] /= sqrt(qq + 1e-6) * sqrt(128.0), k[i] /= sqrt(kk + 1e-6);
        double x = (double)d->a[row * GDN_VALUES + h] + d->dt_bias[h];
        double decay = exp(d->neg_exp_a[h] * log1p(exp(x))), beta = 1 / (1 + exp(-(double)d->b[row * GDN_VALUES + h]));
        for (int j = 0; j < 128; j++) {
            double u = 0;
            for (int i = 0; i < 128; i++) u += (s[i * 128 + j] *= decay) * k[i];
            u = beta * (conv_double(d, path, n, (2 * GDN_KEYS + h) * 128 + j) - u);
            o[j] = 0;
            for (int i = 0; i < 128; i++) o[j] += (s[i * 128 + j] += k[i] * u) * q[i];
            squares += o[j] * o[j];
        }
        for (int j = 0; j < 128; j++)
            out[h * 128 + j] = o[j] / sqrt(squares / 128 + 1e-6) * d->norm_scale[j] *
                               silu_double(d->z[(size_t)row * GDN_OUT + h * 128 + j]);
    }
}

static double *committed_double(const gdn_data *d) {
    double *state = (double *)host_buffer((size_t)GDN_STATE * 8);
    for (int i = 0; i < GDN_STATE; i++) state[i] = d->recurrent[i];
    return state;
}

static float *widen_bf16(const uint16_t *from, size_t count) {
    float *out = (float *)host_buffer(count * 4);
    for (size_t i = 0; i < count; i++) out[i] = bf16_value(from[i]);
    return out;
}

/* ---- cases */

static void check_gdn_chain(gdn_data *d, int count) {
    char name[100];
    gdn_sequence seq = make_sequence(d);
    cuda_gdn_segment seg = make_segment(&seq, 0, count, NULL);
    float *got = widen_bf16(run_gdn(d, &seg, 1), (size_t)count * GDN_OUT);
    double *want = (double *)host_buffer((size_t)count * GDN_OUT * 8), *state = committed_double(d);
    int path[GDN_NODES];
    for (int i = 0; i < count; i++) {
        path[i] = i;
        token_double(d, path, i + 1, state, want + (size_t)i * GDN_OUT);
    }
    snprintf(name, sizeof name, "gdn chain of %d: outputs", count);
    case_close(name, got, want, (size_t)count * GDN_OUT, 4e-6);
    snprintf(name, sizeof name, "gdn chain of %d: recurrent state", count);
    case_close(name, (float *)host_copy(seq.recurrent, (size_t)GDN_STATE * 4), state, GDN_STATE, 1e-11);
    float *conv = (float *)host_copy(seq.conv, (size_t)GDN_CONV * 4);
    size_t wrong = 0;
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < GDN_CHANNELS; c++) {
            int at = count - 3 + t;
            float x = at >= 0 ? d->raw[(size_t)at * GDN_CHANNELS + c] : d->conv[(size_t)(at + 3) * GDN_CHANNELS + c];
            wrong += conv[t * GDN_CHANNELS + c] != x;
        }
    snprintf(name, sizeof name, "gdn chain of %d: conv state", count);
    case_result(wrong == 0, name, (double)wrong, 0);
    free_sequence(&seq);
}

/* Chain over an arbitrary path: its rows are gathered to the front of the step. */
static gdn_data gather_rows(const gdn_data *d, const int *path, int count) {
    gdn_data g = *d;
    struct {
        const float *from;
        const float **to;
        size_t width;
    } parts[] = {{d->raw, &g.step.raw, GDN_CHANNELS},
                 {d->z, &g.step.z, GDN_OUT},
                 {d->a, &g.step.a, GDN_VALUES},
                 {d->b, &g.step.b, GDN_VALUES}};
    for (int i = 0; i < 4; i++) {
        float *rows = random_floats(GDN_NODES * parts[i].width, 1);
        for (int n = 0; n < count; n++)
            memcpy(rows + n * parts[i].width, parts[i].from + path[n] * parts[i].width, parts[i].width * 4);
        *parts[i].to = (float *)device_copy(rows, GDN_NODES * parts[i].width * 4);
        free(rows);
    }
    return g;
}

static void check_gdn_tree(gdn_data *d, const int32_t *parents, int count, const char *what) {
    char name[100];
    gdn_sequence seq = make_sequence(d);
    cuda_gdn_segment seg = make_segment(&seq, 0, count, parents);
    uint16_t *bits = run_gdn(d, &seg, 1);
    double *want = (double *)host_buffer((size_t)count * GDN_OUT * 8), *states[GDN_NODES];
    size_t row_bytes = GDN_OUT * 2, different = 0, commits = 0;
    for (int i = 0; i < count; i++) {
        int path[GDN_NODES], n = 0, chain[GDN_NODES];
        for (int j = i; j >= 0; j = parents[j]) chain[n++] = j;
        for (int j = 0; j < n; j++) path[j] = chain[n - 1 - j];
        states[i] = committed_double(d);
        if (n > 1) memcpy(states[i], states[path[n - 2]], (size_t)GDN_STATE * 8);
        token_double(d, path, n, states[i], want + (size_t)i * GDN_OUT);
        gdn_data rows = gather_rows(d, path, n);
        gdn_sequence alone = make_sequence(d), committed = make_sequence(d);
        cuda_gdn_segment one = make_segment(&alone, 0, n, NULL);
        uint16_t *chain_bits = run_gdn(&rows, &one, 1);
        different += memcmp(chain_bits + (size_t)(n - 1) * GDN_OUT, bits + (size_t)i * GDN_OUT, row_bytes) != 0;
        int32_t device_path[GDN_NODES + 1];
        for (int j = 0; j < n; j++) device_path[j] = path[j];
        device_path[GDN_NODES] = n;
        int32_t *on_device = (int32_t *)device_copy(device_path, sizeof device_path);
        cuda_gdn_commit_args commit = {
            GDN_KEYS, GDN_VALUES, 1, committed.recurrent, committed.conv,       0, 0, d->stash, 0,
            0,        0,          0, on_device,           on_device + GDN_NODES};
        OP_DO(cuda_gdn_commit(&commit, NULL, &op_error));
        CUDA_DO(cudaDeviceSynchronize());
        commits += memcmp(host_copy(committed.recurrent, (size_t)GDN_STATE * 4),
                          host_copy(alone.recurrent, (size_t)GDN_STATE * 4), (size_t)GDN_STATE * 4) != 0;
        commits += memcmp(host_copy(committed.conv, (size_t)GDN_CONV * 4), host_copy(alone.conv, (size_t)GDN_CONV * 4),
                          (size_t)GDN_CONV * 4) != 0;
        free_sequence(&alone);
        free_sequence(&committed);
        free(chain_bits);
    }
    snprintf(name, sizeof name, "gdn %s of %d: outputs", what, count);
    case_close(name, widen_bf16(bits, (size_t)count * GDN_OUT), want, (size_t)count * GDN_OUT, 4e-6);
    snprintf(name, sizeof name, "gdn %s of %d: bits of every node as in its chain", what, count);
    case_result(different == 0, name, (double)different, 0);
    snprintf(name, sizeof name, "gdn %s of %d: commit of every path as its chain", what, count);
    case_result(commits == 0, name, (double)commits, 0);
    float *after = (float *)host_copy(seq.recurrent, (size_t)GDN_STATE * 4);
    case_equal("gdn tree leaves the committed state", after, d->recurrent, (size_t)GDN_STATE * 4);
    for (int i = 0; i < count; i++) free(states[i]);
    free_sequence(&seq);
}

static void check_gdn_together(gdn_data *d, const int32_t *parents) {
    gdn_sequence s[4] = {make_sequence(d), make_sequence(d), make_sequence(d), make_sequence(d)};
    cuda_gdn_segment both[2] = {make_segment(&s[0], 0, 7, parents), make_segment(&s[1], 7, 5, NULL)};
    cuda_gdn_segment tree = make_segment(&s[2], 0, 7, parents), chain = make_segment(&s[3], 7, 5, NULL);
    uint16_t *together = run_gdn(d, both, 2), *first = run_gdn(d, &tree, 1), *second = run_gdn(d, &chain, 1);
    case_equal("gdn tree beside a chain: bits", together, first, (size_t)7 * GDN_OUT * 2);
    case_equal("gdn chain beside a tree: bits", together + (size_t)7 * GDN_OUT, second + (size_t)7 * GDN_OUT,
               (size_t)5 * GDN_OUT * 2);
    for (int i = 0; i < 4; i++) free_sequence(&s[i]);
}

static void check_gdn(bool quick) {
    static const int32_t bushy[16] = {-1, 0, 1, 1, 0, 4, 5, 2, 3, 3, 0, 10, 6, 12, 13, 9};
    static const int32_t flat[7] = {-1, 0, 0, -1, 3, 1, 4};
    random_state = 200;
    printf("seed %llu\n", (unsigned long long)random_state);
    gdn_data d = make_gdn();
    check_gdn_chain(&d, quick ? 2 : 1);
    if (!quick) check_gdn_chain(&d, 20);
    check_gdn_tree(&d, flat, quick ? 3 : 7, "tree with two roots");
    if (!quick) check_gdn_tree(&d, bushy, 16, "tree");
    check_gdn_together(&d, flat);
}

#endif
