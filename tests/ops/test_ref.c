/* The scalar oracle against sums done by hand: small integers and powers of two, so that every expected value is exact and
 * an error of order, sign or index cannot hide. Whole-model numbers are in test_golden_model.c. */
#include <math.h>
#include <string.h>

#include "ops/ops.h"
#include "support.h"

static const ops *o; /* the table under test */

#define assert_close(a, b) assert_true(fabs((double)(a) - (double)(b)) <= 1e-6 * (1 + fabs((double)(b))))

static void test_embed(void **state) {
    (void)state;
    static const uint16_t bf16[] = {0x3f80, 0x4000, 0x4040, 0xbf80, 0xc000, 0xc040}; /* 1 2 3 / -1 -2 -3 */
    const matrix table = {.type = DTYPE_BF16, .rows = 2, .cols = 3, .data = bf16};
    float out[9];
    o->embed(NULL, out, &table, (const int32_t[]){1, 0, 1}, 3);
    static const float want[] = {-1, -2, -3, 1, 2, 3, -1, -2, -3};
    assert_memory_equal(out, want, sizeof want);
}

/* W[n,k] x[r,k] over every dtype and a width that is no multiple of 16. */
static void test_matmul(void **state) {
    (void)state;
    enum { COLS = 19, ROWS = 3, N = 2 };
    float w32[ROWS * COLS], x[N * COLS], out[N * ROWS];
    uint16_t wb[ROWS * COLS], wh[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        w32[i] = (float)(i % 7 - 3);
        wb[i] = f32_to_bf16(w32[i]);
        wh[i] = f32_to_f16(w32[i]);
    }
    for (int i = 0; i < N * COLS; i++) x[i] = (float)(i % 5 - 2) * 0.5f;
    const matrix types[] = {{.type = DTYPE_F32, .rows = ROWS, .cols = COLS, .data = w32},
                            {.type = DTYPE_BF16, .rows = ROWS, .cols = COLS, .data = wb},
                            {.type = DTYPE_F16, .rows = ROWS, .cols = COLS, .data = wh}};
    for (int t = 0; t < 3; t++) {
        o->matmul(NULL, out, x, &types[t], N);
        for (int r = 0; r < N; r++)
            for (int n = 0; n < ROWS; n++) {
                float want = 0;
                for (int k = 0; k < COLS; k++) want += w32[n * COLS + k] * x[r * COLS + k];
                assert_true(out[r * ROWS + n] == want);
            }
    }
}

/* The order of a sum is part of the contract: lane k mod 16, then the tree. Big and small terms make it visible. */
static void test_dot_order(void **state) {
    (void)state;
    float x[32], w[32], out;
    const matrix m = {.type = DTYPE_F32, .rows = 1, .cols = 32, .data = w};
    for (int i = 0; i < 32; i++) x[i] = 1, w[i] = 0;
    w[0] = 0x1p24f, w[16] = 1, w[8] = 1; /* lane 0: 2^24 + 1 = 2^24; then + lane 8: 2^24 */
    o->matmul(NULL, &out, x, &m, 1);
    assert_true(out == 0x1p24f);
    w[16] = 0, w[24] = 1; /* lane 8: 1 + 1 = 2; 2^24 + 2 is exact */
    o->matmul(NULL, &out, x, &m, 1);
    assert_true(out == 0x1p24f + 2);
    w[8] = w[24] = 0, w[1] = w[9] = 1; /* lanes 1 and 9 meet first, then lane 0 */
    o->matmul(NULL, &out, x, &m, 1);
    assert_true(out == 0x1p24f + 2);
}

static void test_rows(void **state) {
    (void)state;
    float x[] = {3, 4, -3, 4}, out[4];
    static const float scale[] = {2, 1};
    o->rms_norm(NULL, out, x, scale, 2, 2, 0); /* root of (9 + 16) / 2 */
    assert_close(out[0], 6 / sqrt(12.5));
    assert_close(out[1], 4 / sqrt(12.5));
    assert_close(out[2], -6 / sqrt(12.5));
    o->rms_norm(NULL, out, x, scale, 1, 2, 87.5f); /* eps inside the root: 10 */
    assert_true(out[0] == 3.0f / 10 * 2 && out[1] == 4.0f / 10);
    o->rms_norm(NULL, x, x, scale, 1, 2, 87.5f); /* in place */
    assert_true(x[0] == out[0] && x[1] == out[1]);
    float a[] = {1, 2, 3}, b[] = {10, 20, 30};
    o->add(NULL, a, b, 3);
    assert_true(a[0] == 11 && a[1] == 22 && a[2] == 33);
    float gate[] = {0, 1, -100}, up[] = {5, 2, 3};
    o->swiglu(NULL, gate, gate, up, 3); /* in place */
    assert_true(gate[0] == 0);
    assert_close(gate[1], 2 / (1 + exp(-1)));
    assert_true(fabsf(gate[2]) < 1e-40f && !isnan(gate[2]));
}

/* ---- attention: one head of size 4, two of them rotated */

enum { DIM = 4 };
static float pool_k[2 * 2 * KV_PAGE * DIM], pool_v[2 * 2 * KV_PAGE * DIM]; /* layers 2, pages 2, one head */
static const float inv_freq[] = {0.5f};
static const attention_shape one_head = {1, 1, DIM, 2, inv_freq};
static const kv_pool pages = {
    .type = DTYPE_F32, .layers = 2, .kv_heads = 1, .head_dim = DIM, .page_count = 2, .k = pool_k, .v = pool_v};
static const int32_t page_table[] = {1, 0}; /* the first 64 slots lie in page 1 */

static float *slot_of(float *base, int layer, int slot) {
    return base + ((layer * 2 + page_table[slot / KV_PAGE]) * KV_PAGE + slot % KV_PAGE) * DIM;
}

static void test_store(void **state) {
    (void)state;
    const sequence seq = {.pages = page_table, .length = 63};
    static const int32_t parents[] = {-1, 0, 0}, depth[] = {0, 1, 1};
    const segment tree = {.seq = &seq, .count = 3, .parents = parents, .depth = depth};
    const segment chain = {.seq = &seq, .count = 3};
    static const float ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
    float qg[3 * 2 * DIM], k[3 * DIM], v[3 * DIM], q[3 * DIM], gate[3 * DIM];
    for (int i = 0; i < 3 * DIM; i++) k[i] = i % DIM ? 0 : 2, v[i] = (float)i; /* k normed: (2, 0, 0, 0) */
    for (int i = 0; i < 3 * 2 * DIM; i++)
        qg[i] = i % 8 == 1 ? 4 : i % 8 >= 4 ? (float)i : 0; /* q normed: (0, 2, 0, 0) */
    for (int t = 0; t < 2; t++) {
        memset(pool_k, 0, sizeof pool_k);
        memset(pool_v, 0, sizeof pool_v);
        o->qkv_store(NULL, q, gate, qg, k, v, ones, twos, 0, &one_head, &pages, 1, t ? &tree : &chain, 1);
        for (int i = 0; i < 3; i++) {
            double angle = 0.5 * (63 + (t ? depth[i] : i));
            const float *row = slot_of(pool_k, 1, 63 + i);
            assert_close(q[i * DIM], -2 * sin(angle));
            assert_close(q[i * DIM + 1], 2 * cos(angle));
            assert_close(row[0], 4 * cos(angle)); /* k_scale = 2 */
            assert_close(row[1], 4 * sin(angle));
            assert_true(row[2] == 0 && row[3] == 0);
            assert_memory_equal(slot_of(pool_v, 1, 63 + i), v + i * DIM, DIM * sizeof(float));
            assert_memory_equal(gate + i * DIM, qg + i * 8 + 4, DIM * sizeof(float));
        }
        for (int i = 0; i < 2 * KV_PAGE * DIM; i++) assert_true(pool_k[i] == 0); /* the other layer */
    }
}

/* Keys that score log 1, log 2, log 3, ... make weights that are proportional to 1, 2, 3. */
static void test_attention(void **state) {
    (void)state;
    const sequence seq = {.pages = page_table, .length = 63};
    static const int32_t parents[] = {-1, 0, 0, 2}, depth[] = {0, 1, 1, 2};
    const segment tree = {.seq = &seq, .count = 4, .parents = parents, .depth = depth};
    const segment chain = {.seq = &seq, .count = 4};
    float q[4 * DIM] = {0}, gate[4 * DIM], out[4 * DIM];
    for (int i = 0; i < 4; i++) q[i * DIM + 3] = 2; /* times 1 / sqrt(4) */
    for (int i = 0; i < 4 * DIM; i++) gate[i] = (float)i - 5;
    double weight[67];
    for (int s = 0; s < 67; s++) {
        weight[s] = s % 9 + 1;
        memset(slot_of(pool_k, 0, s), 0, DIM * sizeof(float));
        slot_of(pool_k, 0, s)[3] = (float)log(weight[s]);
        for (int d = 0; d < DIM; d++) slot_of(pool_v, 0, s)[d] = (float)(s * (d + 1) % 13) - 6;
    }
    static const int paths[2][4][4] = {{{63}, {63, 64}, {63, 64, 65}, {63, 64, 65, 66}},
                                       {{63}, {63, 64}, {63, 65}, {63, 65, 66}}};
    for (int t = 0; t < 2; t++) {
        o->attention(NULL, out, q, gate, &one_head, &pages, 0, t ? &tree : &chain, 1);
        for (int i = 0; i < 4; i++)
            for (int d = 0; d < DIM; d++) {
                double sum = 0, total = 0;
                for (int s = 0; s < 63; s++) sum += weight[s] * (double)slot_of(pool_v, 0, s)[d], total += weight[s];
                for (int n = 0; n < 4 && paths[t][i][n]; n++) {
                    int s = paths[t][i][n];
                    sum += weight[s] * (double)slot_of(pool_v, 0, s)[d], total += weight[s];
                }
                assert_close(out[i * DIM + d], sum / total / (1 + exp(-(double)gate[i * DIM + d])));
            }
    }
}

/* ---- Gated DeltaNet: one key head of size 1, one value head of size 2: channels q | k | v v */

static const gdn_shape tiny = {1, 1, 1, 2, 4};
enum { CHANNELS = 4 };

static void test_conv(void **state) {
    (void)state;
    float conv[2 * 3 * CHANNELS], captured[2 * 3 * CHANNELS] = {0};
    float taps[CHANNELS * 4], raw[3 * CHANNELS], out[3 * CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        for (int t = 0; t < 4; t++) taps[c * 4 + t] = (float)((c + 1) * (1 << t)) / 8;
    for (int i = 0; i < 3 * CHANNELS; i++) raw[i] = (float)(i % 3 - 1);
    for (int t = 0; t < 2; t++) {
        for (int i = 0; i < 2 * 3 * CHANNELS; i++) conv[i] = (float)(i % 5 - 2);
        float before[3 * CHANNELS];
        memcpy(before, conv + 3 * CHANNELS, sizeof before); /* layer 1 */
        const sequence seq = {.conv = conv};
        const capture at2 = {.after = 2, .conv = captured};
        static const int32_t parents[] = {-1, 0, 0}, depth[] = {0, 1, 1};
        const segment chain = {.seq = &seq, .count = 3, .captures = &at2, .capture_count = 1};
        const segment tree = {.seq = &seq, .count = 3, .parents = parents, .depth = depth};
        o->conv(NULL, out, raw, taps, &tiny, 1, t ? &tree : &chain, 1);
        static const int windows[2][3][4] = {{{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}}, /* 0..2 state, 3..5 rows */
                                             {{0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 5}}};
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < CHANNELS; c++) {
                double sum = 0;
                for (int k = 0; k < 4; k++) {
                    int w = windows[t][i][k];
                    sum += (double)taps[c * 4 + k] *
                           (double)(w < 3 ? before[w * CHANNELS + c] : raw[(w - 3) * CHANNELS + c]);
                }
                assert_close(out[i * CHANNELS + c], sum / (1 + exp(-sum)));
            }
        if (t)
            assert_memory_equal(conv + 3 * CHANNELS, before, sizeof before);
        else
            assert_memory_equal(conv + 3 * CHANNELS, raw, sizeof raw); /* three rows: all of the state */
        for (int i = 0; i < 3 * CHANNELS; i++) assert_true(conv[i] == (float)(i % 5 - 2)); /* layer 0 */
    }
    assert_true(captured[3 * CHANNELS] ==
                (float)((2 * CHANNELS + 3 * CHANNELS) % 5 - 2)); /* oldest: the state's last row */
    assert_memory_equal(captured + 4 * CHANNELS, raw, 2 * CHANNELS * sizeof(float));
}

/* Two tokens with decay 1/2: k = q = 1 after normalisation (but for the 1e-6), so that S is the value itself. */
static void test_gdn(void **state) {
    (void)state;
    float s[2] = {8, 4}, captured[2] = {0}, out[4];
    const sequence seq = {.recurrent = s};
    const capture at1 = {.after = 1, .recurrent = captured};
    const segment chain = {.seq = &seq, .count = 2, .captures = &at1, .capture_count = 1};
    float mixed[] = {5, 5, 10, 20, 5, -5, 1, 3}, a[] = {0, 0}, b[] = {0, 100}, z[] = {1, 1, 1, 1};
    float neg_exp_a = -1, dt_bias = 0, norm_scale[] = {1, 2}; /* decay = exp(-softplus(0)) = 1/2; beta = 1/2, 1 */
    o->gdn(NULL, out, mixed, a, b, z, &neg_exp_a, &dt_bias, norm_scale, 0, &tiny, 0, &chain, 1, NULL, mixed);
    /* token 1: S = (4, 2); u = ((10, 20) - S) / 2 = (3, 9); S = (7, 11); o = S */
    assert_close(captured[0], 7);
    assert_close(captured[1], 11);
    double root = sqrt((49 + 121) / 2.0), silu = 1 / (1 + exp(-1));
    assert_close(out[0], 7 / root * silu);
    assert_close(out[1], 11 / root * 2 * silu);
    /* token 2, k = -1: S = (3.5, 5.5); u = (1, 3) + S = (4.5, 8.5); S -= u: (-1, -3); o = S q = S */
    assert_close(s[0], -1);
    assert_close(s[1], -3);
    assert_true(out[2] < 0 && out[3] < 0);
}

/* A tree leaves the state alone; committing a path gives the chain's bits. */
static void test_gdn_tree(void **state) {
    (void)state;
    enum { N = 5 };
    static const int32_t parents[N] = {-1, 0, 0, 2, 1}, depth[N] = {0, 1, 1, 2, 2}, path[] = {0, 2, 3};
    float mixed[N * CHANNELS], a[N], b[N], z[N * 2], out[N * 2], chain_out[3 * 2];
    for (int i = 0; i < N * CHANNELS; i++) mixed[i] = (float)(i * 7 % 11) - 5.25f;
    for (int i = 0; i < N; i++) a[i] = (float)i - 2, b[i] = 1 - (float)i * 0.5f, z[2 * i] = 1, z[2 * i + 1] = (float)i;
    float s[2] = {1, -2}, t[2] = {1, -2}, conv[12] = {0}, conv2[12] = {0};
    float neg_exp_a = -0.5f, dt_bias = 0.25f, norm_scale[] = {1, 1};
    float raw[N * CHANNELS], k[N], v[N * 2], decay[N], beta[N];
    const gdn_stash stash = {raw, k, v, decay, beta};
    const sequence seq = {.recurrent = s, .conv = conv}, other = {.recurrent = t, .conv = conv2};
    const segment tree = {.seq = &seq, .count = N, .parents = parents, .depth = depth};
    o->gdn(NULL, out, mixed, a, b, z, &neg_exp_a, &dt_bias, norm_scale, 1e-6f, &tiny, 0, &tree, 1, &stash, mixed);
    assert_true(s[0] == 1 && s[1] == -2);
    float m2[3 * CHANNELS], a2[3], b2[3], z2[6], taps[CHANNELS * 4] = {0}, ignored[3 * CHANNELS];
    for (int i = 0; i < 3; i++) {
        memcpy(m2 + i * CHANNELS, mixed + path[i] * CHANNELS, CHANNELS * sizeof(float));
        a2[i] = a[path[i]], b2[i] = b[path[i]], z2[2 * i] = z[2 * path[i]], z2[2 * i + 1] = z[2 * path[i] + 1];
    }
    const segment chain = {.seq = &other, .count = 3};
    o->conv(NULL, ignored, m2, taps, &tiny, 0, &chain, 1);
    o->gdn(NULL, chain_out, m2, a2, b2, z2, &neg_exp_a, &dt_bias, norm_scale, 1e-6f, &tiny, 0, &chain, 1, NULL, m2);
    for (int i = 0; i < 3; i++) assert_memory_equal(out + 2 * path[i], chain_out + 2 * i, 2 * sizeof(float));
    o->gdn_commit(NULL, &seq, &tiny, 0, &stash, path, 3);
    assert_memory_equal(s, t, sizeof s);
    assert_memory_equal(conv, conv2, sizeof conv);
}

/* exp(a + dt_bias) overflows fp32 long before softplus does. */
static void test_large_gate(void **state) {
    (void)state;
    float s[2] = {8, 4}, out[2], mixed[] = {1, 1, 0, 0}, a = 5, b = -200, z[] = {1, 1};
    float neg_exp_a = -0x1p-7f, dt_bias = 95, norm_scale[] = {1, 1};
    const sequence seq = {.recurrent = s};
    const segment chain = {.seq = &seq, .count = 1};
    o->gdn(NULL, out, mixed, &a, &b, z, &neg_exp_a, &dt_bias, norm_scale, 1e-6f, &tiny, 0, &chain, 1, NULL, mixed);
    assert_close(s[0], 8 * exp(-100.0 / 128)); /* beta = 0: only the decay acts */
}

int main(void) {
    o = ops_cpu_scalar();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),      cmocka_unit_test(test_matmul), cmocka_unit_test(test_dot_order),
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_store),  cmocka_unit_test(test_attention),
        cmocka_unit_test(test_conv),       cmocka_unit_test(test_gdn),    cmocka_unit_test(test_gdn_tree),
        cmocka_unit_test(test_large_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
