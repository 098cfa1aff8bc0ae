/* Sizes of a sequence's state and of the KV pool, on the numbers of the 27B model. */
#include "model/model.h"
#include "support.h"

static const model_config LARGE = {.layers = 64,
                                   .attention_layers = 16,
                                   .gdn_layers = 48,
                                   .mtp_layers = 1,
                                   .heads = 24,
                                   .kv_heads = 4,
                                   .head_dim = 256,
                                   .key_heads = 16,
                                   .value_heads = 48,
                                   .key_dim = 128,
                                   .value_dim = 128,
                                   .conv_taps = 4,
                                   .channels = 10240};

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(model_recurrent_count(&LARGE) * 4, 150994944); /* 151 MB */
    assert_int_equal(model_conv_count(&LARGE), 48 * 3 * 10240);
    assert_int_equal(model_kv_page_bytes(&LARGE, DTYPE_BF16), (uint64_t)17 * 2 * 4 * 64 * 256 * 2);
    assert_int_equal(model_kv_page_bytes(&LARGE, DTYPE_F32), 2 * model_kv_page_bytes(&LARGE, DTYPE_BF16));
}

static void test_pool(void **state) {
    (void)state;
    error err;
    kv_pool kv;
    assert_int_equal(model_kv_init(&LARGE, DTYPE_BF16, 3, &kv, &err), ERR_OK);
    assert_int_equal(kv.layers, 17);
    assert_int_equal(kv.page_count, 3);
    size_t half = 3 * model_kv_page_bytes(&LARGE, DTYPE_BF16) / 2;
    for (size_t i = 0; i < half; i += 4096) assert_true(((char *)kv.k)[i] == 0 && ((char *)kv.v)[i] == 0);
    ((char *)kv.k)[half - 1] = 1, ((char *)kv.v)[half - 1] = 1; /* the last byte is ours */
    model_kv_deinit(&kv);
    assert_null(kv.k);
    /* more than any machine maps: an error with the number, not a crash */
    assert_int_equal(model_kv_init(&LARGE, DTYPE_F32, INT32_MAX, &kv, &err), ERR_MEMORY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
