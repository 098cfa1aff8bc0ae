/* Check of the small-M NVFP4 product: all E4M3 scales (subnormal, negative, zero), every epilogue, parts and splits of
 * both kinds, 1 to 64 rows. */
#ifndef HEARTH_TESTS_GPU_CHECK_SMALL_M_CUH
#define HEARTH_TESTS_GPU_CHECK_SMALL_M_CUH

#include "gpu_support.cuh"

typedef struct matmul_case {
    int rows, cols, part_tiles, split; /* part_tiles 0: the plan's own choice */
    matmul_epilogue epilogue;
    int m_max;
} matmul_case;

typedef struct matmul_data {
    nvfp4_matrix w;
    const uint8_t *codes, *scales;
    const uint16_t *x;
    void *device_x, *workspace;
    int out_cols;
    size_t element;
} matmul_data;

/* One for all cases: products of different plans must leave it fit for each other. */
enum { WORKSPACE_BYTES = 160 << 20 };
static void *shared_workspace;

static matmul_data make_matmul(const matmul_case *c) {
    matmul_data d = {};
    nvfp4_plan plan = nvfp4_plan_make(c->rows, c->cols, multiprocessor_count());
    if (c->part_tiles) {
        plan.part_tiles = c->part_tiles;
        plan.split = c->split;
        plan.parts = (plan.tiles + plan.part_tiles - 1) / plan.part_tiles;
    }
    size_t count = (size_t)c->rows * (size_t)c->cols;
    uint8_t *codes = (uint8_t *)host_buffer(count / 2), *scales = (uint8_t *)host_buffer(count / 16);
    uint16_t *x = (uint16_t *)host_buffer((size_t)c->m_max * c->cols * 2);
    for (size_t i = 0; i < count / 2; i++) codes[i] = (uint8_t)random_bits();
    for (size_t i = 0; i < count / 16; i++)
        while (((scales[i] = (uint8_t)random_bits()) & 0x7f) == 0x7f) continue;
    for (int i = 0; i < c->m_max * c->cols; i++) x[i] = bf16_of(random_unit());
    uint8_t *packed = (uint8_t *)host_buffer((size_t)plan.bytes);
    OP_DO(nvfp4_pack(packed, &plan, codes, scales, c->epilogue == MATMUL_SWIGLU, &op_error));
    d.w.plan = plan;
    d.w.data = device_copy(packed, (size_t)plan.bytes);
    d.w.scale = 0.37f / 4096;
    d.codes = codes, d.scales = scales, d.x = x;
    d.device_x = device_copy(x, (size_t)c->m_max * c->cols * 2);
    if (shared_workspace == NULL) shared_workspace = device_buffer(WORKSPACE_BYTES, 0);
    if (cuda_small_matmul_workspace(&plan) > WORKSPACE_BYTES) exit(3);
    d.workspace = shared_workspace;
    d.out_cols = c->epilogue == MATMUL_SWIGLU ? c->rows / 2 : c->rows;
    d.element = c->epilogue == MATMUL_F32 || c->epilogue == MATMUL_ADD ? 4 : 2;
    free(packed);
    return d;
}

static double *matmul_reference(const matmul_case *c, const matmul_data *d) {
    double *product = (double *)host_buffer((size_t)c->m_max * c->rows * sizeof(double));
    double *row = (double *)host_buffer((size_t)c->cols * sizeof(double));
    for (int n = 0; n < c->rows; n++) {
        for (int k = 0; k < c->cols; k++) {
            size_t at = (size_t)n * c->cols + k;
            row[k] = (double)e2m1_value(d->codes[at / 2] >> (k % 2 * 4) & 15) * e4m3_value(d->scales[at / 16]);
        }
        for (int m = 0; m < c->m_max; m++) {
            double sum = 0;
            for (int k = 0; k < c->cols; k++) sum += row[k] * bf16_value(d->x[(size_t)m * c->cols + k]);
            product[(size_t)m * c->rows + n] = sum * d->w.scale;
        }
    }
    free(row);
    if (c->epilogue == MATMUL_ADD)
        for (int i = 0; i < c->m_max * c->rows; i++) product[i] += 1;
    if (c->epilogue != MATMUL_SWIGLU) return product;
    double *out = (double *)host_buffer((size_t)c->m_max * c->rows / 2 * sizeof(double));
    for (int m = 0; m < c->m_max; m++)
        for (int i = 0; i < c->rows / 2; i++) {
            double gate = product[(size_t)m * c->rows + i], up = product[(size_t)m * c->rows + c->rows / 2 + i];
            out[(size_t)m * (c->rows / 2) + i] = gate / (1 + exp(-gate)) * up;
        }
    free(product);
    return out;
}

/* The first m rows; owned by the caller. */
static void *run_matmul(const matmul_case *c, const matmul_data *d, int m, cuda_route route) {
    size_t count = (size_t)m * (size_t)d->out_cols;
    void *y = device_buffer(count * d->element, 0xff);
    if (c->epilogue == MATMUL_ADD) {
        float *ones = (float *)host_buffer(count * 4);
        for (size_t i = 0; i < count; i++) ones[i] = 1;
        CUDA_DO(cudaMemcpy(y, ones, count * 4, cudaMemcpyHostToDevice));
        free(ones);
    }
    small_matmul args = {&d->w, d->device_x, y, d->workspace, m, c->epilogue, route};
    OP_DO(cuda_small_matmul(&args, NULL, &op_error));
    CUDA_DO(cudaDeviceSynchronize());
    void *out = host_copy(y, count * d->element);
    CUDA_DO(cudaFree(y));
    return out;
}

static void check_matmul_case(const matmul_case *c, bool every_m) {
    char name[128];
    printf("seed %llu\n", (unsigned long long)random_state);
    matmul_data d = make_matmul(c);
    double *want = matmul_reference(c, &d);
    size_t count = (size_t)c->m_max * (size_t)d.out_cols, row = (size_t)d.out_cols * d.element;
    uint8_t *most = (uint8_t *)run_matmul(c, &d, c->m_max, ROUTE_BULK);
    float *got = (float *)host_buffer(count * sizeof(float));
    for (size_t i = 0; i < count; i++) got[i] = d.element == 4 ? ((float *)most)[i] : bf16_value(((uint16_t *)most)[i]);
    snprintf(name, sizeof name, "small_matmul %d x %d part %d split %d epilogue %d m %d: error", c->rows, c->cols,
             d.w.plan.part_tiles, d.w.plan.split, c->epilogue, c->m_max);
    case_close(name, got, want, count, d.element == 4 ? 1e-11 : 4e-6);
    size_t wrong = 0;
    for (int route = 0; route < 2; route++)
        for (int m = 1; m <= c->m_max; m += every_m || m == 1 ? 1 : 7) {
            uint8_t *some = (uint8_t *)run_matmul(c, &d, m, (cuda_route)route);
            wrong += memcmp(some, most, (size_t)m * row) != 0;
            free(some);
        }
    snprintf(name, sizeof name, "small_matmul %d x %d: bits of both routes, m 1..%d", c->rows, c->cols, c->m_max);
    case_result(wrong == 0, name, (double)wrong, 0);
    CUDA_DO(cudaFree((void *)d.w.data));
    CUDA_DO(cudaFree(d.device_x));
    free(most), free(got), free(want), free((void *)d.codes), free((void *)d.scales), free((void *)d.x);
}

static void check_small_matmul(bool quick) {
    static const matmul_case cases[] = {
        {96, 1536, 2, 2, MATMUL_F32, 20},      {72, 192, 1, 1, MATMUL_F32, 64},
        {400, 2560, 5, 2, MATMUL_BF16, 64},    {4096, 1088, 0, 0, MATMUL_F32, 64},
        {544, 2048, 17, 1, MATMUL_SWIGLU, 64}, {5120, 6144, 0, 0, MATMUL_ADD, 33},
        {7168, 5120, 0, 0, MATMUL_SWIGLU, 16}, {600, 1024, 18, 2, MATMUL_BF16, 64},
    };
    for (int i = 0; i < (quick ? 2 : (int)(sizeof cases / sizeof cases[0])); i++) {
        random_state = 100 + (uint64_t)i;
        check_matmul_case(&cases[i], !quick && i < 5);
    }
}

#endif
