/* Bench of Gated DeltaNet: the 48 layers of one 27B step as a chain of launches over 48 different states, and the commit
 * of a path into all of them. Bytes: the states read, and written where the contract says so. */
#ifndef HEARTH_TESTS_GPU_BENCH_GDN_CUH
#define HEARTH_TESTS_GPU_BENCH_GDN_CUH

#include "gpu_support.cuh"

enum { GDN_LAYERS = 48, GDN_KEYS = 16, GDN_VALUES = 48, GDN_ROWS = 16, GDN_SAVES = 8 };
enum { GDN_CHANNELS = (2 * GDN_KEYS + GDN_VALUES) * 128, GDN_OUT = GDN_VALUES * 128, GDN_STATE = GDN_OUT * 128 };

typedef struct gdn_bench {
    cuda_gdn_step step;
    cuda_gdn_stash stash;
    float *recurrent, *conv, *branches;
    int32_t *parents, *saves;
} gdn_bench;

static float *device_random(size_t count, float scale) {
    float *host = random_floats(count, scale), *device = (float *)device_copy(host, count * 4);
    free(host);
    return device;
}

static gdn_bench make_gdn_bench(void) {
    gdn_bench b = {};
    cuda_gdn_step *s = &b.step;
    s->key_heads = GDN_KEYS, s->value_heads = GDN_VALUES, s->rows = GDN_ROWS;
    s->raw_stride = GDN_CHANNELS, s->z_stride = GDN_OUT, s->eps = 1e-6f;
    s->raw = device_random((size_t)GDN_ROWS * GDN_CHANNELS, 1);
    s->z = device_random((size_t)GDN_ROWS * GDN_OUT, 1);
    s->a = device_random(GDN_ROWS * GDN_VALUES, 1);
    s->b = device_random(GDN_ROWS * GDN_VALUES, 1);
    s->taps = device_random(GDN_CHANNELS * 4, 1);
    s->neg_exp_a = device_random(GDN_VALUES, 0.1f); /* of either sign: the state neither dies nor grows */
    s->dt_bias = device_random(GDN_VALUES, 1);
    s->norm_scale = device_random(128, 1);
    s->out = device_buffer((size_t)GDN_ROWS * GDN_OUT * 2, 0);
    s->workspace = device_buffer(cuda_gdn_workspace(GDN_KEYS, GDN_VALUES, GDN_ROWS), 0);
    b.recurrent = device_random((size_t)GDN_LAYERS * GDN_STATE, 0.1f);
    b.conv = device_random((size_t)GDN_LAYERS * 3 * GDN_CHANNELS, 1);
    b.branches = (float *)device_buffer((size_t)GDN_SAVES * GDN_STATE * 4, 0);
    b.stash.raw = (float *)device_buffer((size_t)GDN_LAYERS * GDN_ROWS * GDN_CHANNELS * 4, 0);
    b.stash.k = (float *)device_buffer((size_t)GDN_LAYERS * GDN_ROWS * GDN_KEYS * 512, 0);
    b.stash.v = (float *)device_buffer((size_t)GDN_LAYERS * GDN_ROWS * GDN_OUT * 4, 0);
    b.stash.gate = (float *)device_buffer((size_t)GDN_LAYERS * GDN_ROWS * GDN_VALUES * 4, 0);
    b.stash.beta = (float *)device_buffer((size_t)GDN_LAYERS * GDN_ROWS * GDN_VALUES * 4, 0);
    return b;
}

static void bench_gdn_rows(gdn_bench *b, int count, const int32_t *parents, const int32_t *saves, const char *what,
                           double bandwidth, cudaStream_t stream) {
    cuda_gdn_segment segments[GDN_LAYERS];
    for (int l = 0; l < GDN_LAYERS; l++) {
        cuda_gdn_segment seg = {
            0,          count, NULL, NULL, b->recurrent + (size_t)l * GDN_STATE, b->conv + (size_t)l * 3 * GDN_CHANNELS,
            b->branches};
        if (parents) seg.parents = (int32_t *)device_copy(parents, (size_t)count * 4);
        if (parents) seg.saves = (int32_t *)device_copy(saves, (size_t)count * 4);
        segments[l] = seg;
    }
    cuda_gdn_segment *device = (cuda_gdn_segment *)device_copy(segments, sizeof segments);
    graph_begin(stream);
    for (int l = 0; l < GDN_LAYERS; l++) {
        cuda_gdn_step step = b->step;
        step.segments = device + l;
        step.segment_count = 1;
        step.stash = &b->stash;
        OP_DO(cuda_gdn(&step, stream, &op_error));
    }
    timing t = time_graph(graph_end(stream), stream, 31);
    double bytes = (double)GDN_LAYERS * GDN_STATE * 4 * (parents ? 1 : 2), floor_ms = bytes / bandwidth * 1e3;
    printf("gdn %-28s %.3f ms +- %.3f for %d layers, %.2f us each, state %.0f MB, floor %.3f ms\n", what, t.median_ms,
           t.spread_ms, GDN_LAYERS, t.median_ms / GDN_LAYERS * 1e3, bytes / 1e6, floor_ms);
}

static void bench_gdn_commit(gdn_bench *b, int count, double bandwidth, cudaStream_t stream) {
    static const int32_t rows[GDN_ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    int64_t size = GDN_ROWS;
    cuda_gdn_commit_args commit = {GDN_KEYS,
                                   GDN_VALUES,
                                   GDN_LAYERS,
                                   b->recurrent,
                                   b->conv,
                                   GDN_STATE,
                                   3 * GDN_CHANNELS,
                                   b->stash,
                                   size * GDN_CHANNELS,
                                   size * GDN_KEYS * 128,
                                   size * GDN_OUT,
                                   size * GDN_VALUES,
                                   (int32_t *)device_copy(rows, sizeof rows),
                                   (int32_t *)device_copy(&count, 4)};
    graph_begin(stream);
    OP_DO(cuda_gdn_commit(&commit, stream, &op_error));
    timing t = time_graph(graph_end(stream), stream, 31);
    double bytes = 2.0 * GDN_LAYERS * GDN_STATE * 4;
    printf("gdn commit of %2d tokens, all layers: %.3f ms +- %.3f, state %.0f MB, floor %.3f ms\n", count, t.median_ms,
           t.spread_ms, bytes / 1e6, bytes / bandwidth * 1e3);
}

static void bench_gdn(double bandwidth, cudaStream_t stream) {
    static const int32_t line[16] = {-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    static const int32_t no_saves[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    static const int32_t bushy[16] = {-1, 0, 1, 1, 0, 4, 5, 2, 3, 3, 0, 10, 6, 12, 13, 9};
    static const int32_t saves[16] = {0, 1, 2, 3, -1, -1, 4, -1, -1, 5, -1, -1, -1, -1, -1, -1};
    gdn_bench b = make_gdn_bench();
    bench_gdn_rows(&b, 1, NULL, NULL, "chain of 1 (state advances)", bandwidth, stream);
    bench_gdn_rows(&b, 1, line, no_saves, "tree of 1", bandwidth, stream);
    bench_gdn_rows(&b, 4, line, no_saves, "tree of 4, a line", bandwidth, stream);
    bench_gdn_rows(&b, 8, line, no_saves, "tree of 8, a line", bandwidth, stream);
    bench_gdn_rows(&b, 16, line, no_saves, "tree of 16, a line", bandwidth, stream);
    bench_gdn_rows(&b, 16, bushy, saves, "tree of 16, six branch points", bandwidth, stream);
    bench_gdn_commit(&b, 1, bandwidth, stream);
    bench_gdn_commit(&b, 4, bandwidth, stream);
    bench_gdn_commit(&b, 16, bandwidth, stream);
}

#endif
