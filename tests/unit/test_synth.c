/* A synthetic checkpoint is a checkpoint: it loads, its numbers are sane, and it is the same bytes everywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/model.h"
#include "model/synth.h"
#include "support.h"
#include "text/tokenizer.h"

static error err;

static void write_preset(const char *dir, uint64_t seed, pool *p) {
    synth_options options = {.seed = seed, .pool = p};
    if (synth_write("tiny", dir, &options, &err) != ERR_OK) fail_msg("%s", err.message);
}

static void same_file(const char *a_dir, const char *b_dir, const char *name, bool same) {
    char *a = file_join(a_dir, name), *b = file_join(b_dir, name);
    file_map left, right;
    assert_int_equal(file_map_open(a, &left, &err), ERR_OK);
    assert_int_equal(file_map_open(b, &right, &err), ERR_OK);
    assert_int_equal(left.size, right.size);
    assert_int_equal(memcmp(left.data, right.data, left.size) == 0, same);
    file_map_close(&left);
    file_map_close(&right);
    free(a);
    free(b);
}

static void test_same_bytes(void **state) {
    (void)state;
    pool *three;
    assert_int_equal(pool_create(3, &three, &err), ERR_OK);
    write_preset(test_temp("one"), 7, NULL);
    write_preset(test_temp("three"), 7, three);
    write_preset(test_temp("other"), 8, NULL);
    same_file(test_temp("one"), test_temp("three"), "model.safetensors", true);
    same_file(test_temp("one"), test_temp("other"), "model.safetensors", false);
    pool_destroy(three);
}

static void test_loads_and_runs(void **state) {
    (void)state;
    const char *dir = test_temp("runs");
    write_preset(dir, 0, NULL);
    tokenizer *t;
    if (tokenizer_open(dir, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    token_list ids = {0};
    const char *text = "<|im_start|>user\nNaïve \xf0\x9f\x8c\xa7 rain<|im_end|>\n";
    assert_int_equal(tokenizer_encode(t, span_text(text), true, &ids, &err), ERR_OK);
    buffer back = {0};
    tokenizer_decode(t, ids.ids, ids.count, false, &back);
    assert_string_equal(back.data, text);

    model *m;
    if (model_open(dir, NULL, &m, &err) != ERR_OK) fail_msg("%s", err.message);
    const model_config *c = model_get_config(m);
    assert_int_equal(c->layers, 4);
    assert_int_equal(c->hidden, 128);
    assert_int_equal(c->vocab_rows, 512);
    assert_int_equal(c->stop_count, 2);
    kv_pool kv;
    assert_int_equal(model_kv_init(c, DTYPE_F32, 1, &kv, &err), ERR_OK);
    int32_t page = 0;
    sequence seq = {.pages = &page,
                    .recurrent = mem_zero((size_t)model_recurrent_count(c), sizeof(float)),
                    .conv = mem_zero((size_t)model_conv_count(c), sizeof(float))};
    float *logits = mem_alloc((size_t)c->vocab_rows * sizeof *logits);
    model_segment step = {
        .seq = &seq, .count = (int)ids.count, .tokens = ids.ids, .logits_from = (int)ids.count - 1, .logits = logits};
    assert_int_equal(model_forward(m, &kv, &step, 1, &err), ERR_OK);
    double sum = 0, squares = 0;
    for (int i = 0; i < c->vocab_rows; i++) {
        assert_true(isfinite(logits[i]));
        sum += (double)logits[i];
        squares += (double)logits[i] * (double)logits[i];
    }
    double mean = sum / c->vocab_rows, deviation = sqrt(squares / c->vocab_rows - mean * mean);
    assert_true(deviation > 1 && deviation < 10);
    free(logits);
    free(seq.recurrent);
    free(seq.conv);
    model_kv_deinit(&kv);
    model_close(m);
    buffer_deinit(&back);
    token_list_deinit(&ids);
    tokenizer_close(t);
}

static void test_refuses(void **state) {
    (void)state;
    synth_options options = {0};
    assert_int_equal(synth_write("13b", test_temp("x"), &options, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "'13b'"));
    const char *full = test_temp("full");
    assert_int_equal(file_make_dirs(full, &err), ERR_OK);
    char *inside = file_join(full, "precious");
    assert_int_equal(file_write_atomic(inside, span_text("data"), &err), ERR_OK);
    assert_int_equal(synth_write("tiny", full, &options, &err), ERR_INVALID);
    assert_true(file_exists(inside));
    free(inside);
    /* Without a tokenizer to copy nothing is left behind. */
    options.tokenizer_dir = test_temp("no-such-dir");
    assert_int_not_equal(synth_write("tiny", test_temp("y"), &options, &err), ERR_OK);
    assert_false(file_exists(test_temp("y")));
    assert_false(file_exists(test_temp("y.partial")));
}

/* DIR.partial may be a leftover of synth, or somebody's directory. */
static void test_partial_directory(void **state) {
    (void)state;
    synth_options options = {0};
    assert_int_equal(file_make_dirs(test_temp("left.partial"), &err), ERR_OK);
    char *old = file_join(test_temp("left.partial"), "model.safetensors");
    assert_int_equal(file_write_atomic(old, span_text("half"), &err), ERR_OK);
    assert_int_equal(synth_write("tiny", test_temp("left"), &options, &err), ERR_OK);

    assert_int_equal(file_make_dirs(test_temp("user.partial"), &err), ERR_OK);
    char *precious = file_join(test_temp("user.partial"), "thesis.txt");
    assert_int_equal(file_write_atomic(precious, span_text("data"), &err), ERR_OK);
    assert_int_equal(synth_write("tiny", test_temp("user"), &options, &err), ERR_INVALID);
    assert_true(file_exists(precious));

    assert_int_equal(symlink(test_temp("user.partial"), test_temp("link.partial")), 0);
    assert_int_equal(synth_write("tiny", test_temp("link"), &options, &err), ERR_INVALID);
    assert_true(file_exists(precious));
    free(old);
    free(precious);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_loads_and_runs),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_partial_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
