/* Check of the row operators: norm against double precision and row by row; argmax against a scan, with ties, both
 * zeros, infinities and the largest value in the unused tail. */
#ifndef HEARTH_TESTS_GPU_CHECK_ROWS_CUH
#define HEARTH_TESTS_GPU_CHECK_ROWS_CUH

#include "gpu_support.cuh"

static void check_rms_norm(int rows, int width) {
    char name[100];
    size_t count = (size_t)rows * (size_t)width;
    float *x = random_floats(count, 3), *scale = random_floats((size_t)width, 1);
    float *dx = (float *)device_copy(x, count * 4), *dscale = (float *)device_copy(scale, (size_t)width * 4);
    void *out = device_buffer(count * 2, 0xff);
    OP_DO(cuda_rms_norm(out, dx, dscale, rows, width, 1e-6f, NULL, &op_error));
    CUDA_DO(cudaDeviceSynchronize());
    uint16_t *bits = (uint16_t *)host_copy(out, count * 2);
    float *got = (float *)host_buffer(count * 4);
    double *want = (double *)host_buffer(count * 8);
    size_t wrong = 0;
    for (int r = 0; r < rows; r++) {
        const float *row = x + (size_t)r * width;
        double squares = 0;
        for (int i = 0; i < width; i++) squares += (double)row[i] * row[i];
        for (int i = 0; i < width; i++) {
            want[(size_t)r * width + i] = row[i] / sqrt(squares / width + 1e-6) * scale[i];
            got[(size_t)r * width + i] = bf16_value(bits[(size_t)r * width + i]);
        }
        OP_DO(cuda_rms_norm(out, dx + (size_t)r * width, dscale, 1, width, 1e-6f, NULL, &op_error));
        CUDA_DO(cudaDeviceSynchronize());
        uint16_t *alone = (uint16_t *)host_copy(out, (size_t)width * 2);
        wrong += memcmp(alone, bits + (size_t)r * width, (size_t)width * 2) != 0;
        free(alone);
    }
    snprintf(name, sizeof name, "rms_norm %d x %d: error", rows, width);
    case_close(name, got, want, count, 4e-6);
    snprintf(name, sizeof name, "rms_norm %d x %d: bits of every row alone", rows, width);
    case_result(wrong == 0, name, (double)wrong, 0);
}

static void check_argmax(int rows, int count, int stride) {
    char name[100];
    float *x = random_floats((size_t)rows * (size_t)stride, 5);
    int32_t want[64];
    for (int r = 0; r < rows; r++) {
        float *row = x + (size_t)r * stride;
        for (int i = count; i < stride; i++) row[i] = 100;
        for (int i = 0; r % 4 == 0 && i < count; i += 7) row[i] = 5.5f;                    /* ties */
        for (int i = 0; r % 4 == 1 && i < count; i++) row[i] = -1 - fabsf(row[i]);         /* all negative */
        for (int i = 0; r % 4 == 2 && i < count; i++) row[i] = i % 2 && i > 2 ? 0 : -0.0f; /* both zeros */
        if (r % 8 == 3) row[count - 1] = INFINITY;
        if (r % 8 == 7)
            for (int i = 0; i < count; i++) row[i] = -INFINITY;
        want[r] = 0;
        for (int i = 1; i < count; i++)
            if (row[i] > row[want[r]]) want[r] = i;
    }
    float *dx = (float *)device_copy(x, (size_t)rows * (size_t)stride * 4);
    int32_t *ids = (int32_t *)device_buffer((size_t)rows * 4, 0xff);
    void *workspace = device_buffer((size_t)rows * 16, 0);
    for (int again = 0; again < 2; again++)
        OP_DO(cuda_argmax(ids, dx, rows, count, stride, workspace, NULL, &op_error));
    CUDA_DO(cudaDeviceSynchronize());
    snprintf(name, sizeof name, "argmax %d x %d of %d", rows, count, stride);
    case_equal(name, host_copy(ids, (size_t)rows * 4), want, (size_t)rows * 4);
}

static void check_rows(bool quick) {
    random_state = 400;
    printf("seed %llu\n", (unsigned long long)random_state);
    check_rms_norm(3, 96);
    if (!quick) check_rms_norm(16, 5120);
    check_argmax(8, 77, 80);
    if (!quick) check_argmax(16, 248077, 248320);
}

#endif
