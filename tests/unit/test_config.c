/* config.json and generation_config.json: the published form, its variants, and what is refused by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/config.h"
#include "support.h"

/* A complete flat configuration; tests change one place of it. */
static const char BASE[] =
    "{\"model_type\": \"qwen3_5_text\", \"attention_bias\": false, \"hidden_act\": \"silu\", \"hidden_size\": 64,\n"
    "\"intermediate_size\": 96, \"num_hidden_layers\": 4, \"num_attention_heads\": 6, \"num_key_value_heads\": 2,\n"
    "\"head_dim\": 32, \"vocab_size\": 100, \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-06,\n"
    "\"linear_conv_kernel_dim\": 4, \"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4,\n"
    "\"linear_key_head_dim\": 16, \"linear_value_head_dim\": 24, \"mtp_num_hidden_layers\": 1,\n"
    "\"full_attention_interval\": 2, \"tie_word_embeddings\": true, \"eos_token_id\": 7,\n"
    "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000, \"partial_rotary_factor\": 0.25}}";

/* BASE with the first `from` replaced by `to`; "" = unchanged. */
static char *edited(const char *from, const char *to) {
    buffer out = {0};
    const char *at = strstr(BASE, from);
    if (!at) fail_msg("'%s' is not in the base configuration", from);
    buffer_append(&out, BASE, (size_t)(at - BASE));
    buffer_text(&out, to);
    buffer_text(&out, at + strlen(from));
    return buffer_take(&out);
}

static const char *write_dir(const char *config, const char *generation) {
    static char name[32];
    static int number;
    error err;
    snprintf(name, sizeof name, "config%d", number++);
    const char *dir = test_temp(name);
    char *a = file_join(dir, "config.json"), *b = file_join(dir, "generation_config.json");
    if (file_make_dirs(dir, &err) || (config && file_write_atomic(a, span_text(config), &err)) ||
        (generation && file_write_atomic(b, span_text(generation), &err)))
        fail_msg("%s", err.message);
    free(a);
    free(b);
    return dir;
}

static model_config read_ok(const char *config, const char *generation) {
    error err;
    model_config c;
    if (model_config_read(write_dir(config, generation), &c, &err)) fail_msg("%s", err.message);
    return c;
}

static void test_flat(void **state) {
    (void)state;
    model_config c = read_ok(BASE, NULL);
    assert_int_equal(c.layers, 4);
    assert_int_equal(c.attention_layers, 2);
    assert_int_equal(c.gdn_layers, 2);
    assert_true(!c.full_attention[0] && c.full_attention[1] && !c.full_attention[2] && c.full_attention[3]);
    assert_int_equal(c.rotary_dim, 8);
    assert_int_equal(c.channels, 2 * 2 * 16 + 4 * 24);
    assert_true(c.rope_theta == 1e7);
    assert_true(c.norm_eps == 1e-6f);
    assert_true(c.tied_head && !c.vision);
    assert_int_equal(c.mtp_layers, 1);
    assert_int_equal(c.context_max, 4096);
    assert_string_equal(c.model_type, "qwen3_5_text");
    assert_int_equal(c.stop_count, 1); /* without generation_config.json */
    assert_int_equal(c.stop_ids[0], 7);
    assert_true(c.temperature == 1 && c.top_p == 1 && c.min_p == 0 && c.top_k == 0 && c.do_sample);
}

static void test_generation(void **state) {
    (void)state;
    model_config c = read_ok(BASE,
                             "{\"eos_token_id\": [9, 8, 9], \"temperature\": 0.7, \"top_k\": 20, \"top_p\": 0.95,"
                             " \"min_p\": 0.05, \"do_sample\": false}");
    assert_int_equal(c.stop_count, 2);
    assert_int_equal(c.stop_ids[0], 9);
    assert_int_equal(c.stop_ids[1], 8);
    assert_true(c.temperature == 0.7f && c.top_p == 0.95f && c.min_p == 0.05f && c.top_k == 20 && !c.do_sample);
    c = read_ok(BASE, "{\"eos_token_id\": 3}");
    assert_int_equal(c.stop_count, 1);
    assert_int_equal(c.stop_ids[0], 3);
    c = read_ok(BASE, "{\"temperature\": null}");
    assert_int_equal(c.stop_ids[0], 7);
}

/* The same model said in other ways. */
static void test_variants(void **state) {
    (void)state;
    static const char *const variants[][2] = {
        {"\"full_attention_interval\": 2",
         "\"layer_types\": [\"linear_attention\", \"full_attention\", \"linear_attention\", \"full_attention\"]"},
        {"\"rope_parameters\"", "\"rope_scaling\""},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000, \"partial_rotary_factor\": 0.25}",
         "\"rope_theta\": 1e7, \"partial_rotary_factor\": 0.25, \"rope_scaling\": null"},
        {"\"partial_rotary_factor\": 0.25}", "\"mrope_section\": [2, 1, 1]}, \"partial_rotary_factor\": 0.25"},
        {"\"rope_type\": \"default\"", "\"type\": \"default\""},
        {"\"attention_bias\": false",
         "\"attention_bias\": null, \"sliding_window\": null, \"output_gate_type\": \"swish\""},
        {"\"attention_bias\": false", "\"use_sliding_window\": false, \"sliding_window\": 4096, \"unheard_of\": 1"},
    };
    model_config want = read_ok(BASE, NULL);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        char *text = edited(variants[i][0], variants[i][1]);
        model_config c = read_ok(text, NULL);
        assert_memory_equal(&c, &want, sizeof c);
        free(text);
    }
}

static void test_nested(void **state) {
    (void)state;
    buffer text = {0};
    buffer_printf(&text, "{\"model_type\": \"qwen3_5\", \"text_config\": %s, \"vision_config\": {\"depth\": 1}}", BASE);
    model_config c = read_ok(text.data, NULL), flat = read_ok(BASE, NULL);
    assert_true(c.vision);
    assert_string_equal(c.model_type, "qwen3_5");
    assert_int_equal(c.hidden, flat.hidden);
    assert_int_equal(c.rotary_dim, flat.rotary_dim);
    buffer_deinit(&text);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *message; /* message must be part of the error, with the file's name */
    } cases[] = {
        {"qwen3_5_text", "qwen3_next", "model_type is \"qwen3_next\""},
        {"qwen3_5_text", "qwen3_5_moe", "model_type is \"qwen3_5_moe\""},
        {"\"model_type\": \"qwen3_5_text\"", "\"model_type\": 3", "model_type is 3"},
        {"\"model_type\": \"qwen3_5_text\",", "", "model_type is missing"},
        {"\"attention_bias\": false", "\"attention_bias\": true", "attention_bias is true"},
        {"\"attention_bias\": false", "\"attention_bias\": \"no\"", "attention_bias is \"no\""},
        {"\"silu\"", "\"gelu\"", "hidden_act is \"gelu\""},
        {"\"attention_bias\": false", "\"attn_output_gate\": false", "attn_output_gate is false"},
        {"\"attention_bias\": false", "\"output_gate_type\": \"sigmoid\"", "output_gate_type is \"sigmoid\""},
        {"\"attention_bias\": false", "\"mtp_use_dedicated_embeddings\": true", "mtp_use_dedicated_embeddings is true"},
        {"\"attention_bias\": false", "\"use_sliding_window\": true", "use_sliding_window is true"},
        {"\"attention_bias\": false", "\"sliding_window\": 4096", "sliding_window is 4096"},
        {"\"attention_bias\": false", "\"num_experts\": 8", "num_experts is 8"},
        {"\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"", "rope_parameters.rope_type is \"yarn\""},
        {"\"rope_type\": \"default\"", "\"type\": \"linear\"", "rope_parameters.type is \"linear\""},
        {"\"partial_rotary_factor\": 0.25}", "\"partial_rotary_factor\": 0.25}, \"rope_theta\": 5", "rope_theta is"},
        {"\"rope_theta\": 10000000, ", "", "rope_theta is missing"},
        {"0.25", "1.5", "partial_rotary_factor is 1.5"},
        {"0.25", "0.3", "9 rotary dimensions"},
        {"0.25", "0.01", "0 rotary dimensions"},
        {"\"full_attention_interval\": 2", "\"layer_types\": [\"full_attention\"]", "layer_types"},
        {"\"full_attention_interval\": 2",
         "\"layer_types\": [\"full_attention\", \"x\", \"full_attention\", \"full_attention\"]",
         "layer_types is \"x\""},
        {"\"full_attention_interval\": 2", "\"full_attention_interval\": 0", "full_attention_interval is 0"},
        {"\"num_hidden_layers\": 4", "\"num_hidden_layers\": 0", "num_hidden_layers is 0"},
        {"\"num_hidden_layers\": 4", "\"num_hidden_layers\": 257", "num_hidden_layers is 257, must be 1 .. 256"},
        {"\"hidden_size\": 64", "\"hidden_size\": -64", "hidden_size is -64"},
        {"\"hidden_size\": 64", "\"hidden_size\": 64.5", "hidden_size is 64.5"},
        {"\"hidden_size\": 64", "\"hidden_size\": \"64\"", "hidden_size is \"64\""},
        {"\"hidden_size\": 64", "\"hidden_size\": 99999999999999999999", "hidden_size is 99999999999999999999"},
        {"\"hidden_size\": 64,", "", "hidden_size is missing"},
        {"\"num_attention_heads\": 6", "\"num_attention_heads\": 7", "num_attention_heads 7 is not a multiple"},
        {"\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 5",
         "linear_num_value_heads 5 is not a multiple"},
        {"\"linear_conv_kernel_dim\": 4", "\"linear_conv_kernel_dim\": 3", "linear_conv_kernel_dim is 3"},
        {"\"mtp_num_hidden_layers\": 1", "\"mtp_num_hidden_layers\": 2", "mtp_num_hidden_layers is 2"},
        {"\"head_dim\": 32", "\"head_dim\": 1024", "head_dim is 1024"},
        {"1e-06", "2", "rms_norm_eps is 2"},
        {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", "tie_word_embeddings is 1"},
        {"\"eos_token_id\": 7", "\"eos_token_id\": 100", "eos_token_id is 100, must be 0 .. 99"},
        {"\"eos_token_id\": 7", "\"eos_token_id\": [1,2,3,4,5,6,7,8,9]", "more than 8"},
        {"\"eos_token_id\": 7", "\"eos_token_id\": [1,", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err = {0};
        model_config c;
        char *text = edited(cases[i].from, cases[i].to);
        assert_int_not_equal(model_config_read(write_dir(text, NULL), &c, &err), ERR_OK);
        if (!strstr(err.message, cases[i].message) || !strstr(err.message, "config.json"))
            fail_msg("%s: '%s', without '%s'", cases[i].to, err.message, cases[i].message);
        free(text);
    }
}

static void test_bad_generation(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"eos_token_id\": -1}", "eos_token_id is -1"},
        {"{\"eos_token_id\": [1, \"2\"]}", "eos_token_id is \"2\""},
        {"{\"temperature\": -1}", "temperature is -1"},
        {"{\"top_p\": 1.01}", "top_p is 1.01"},
        {"{\"top_k\": 2.5}", "top_k is 2.5"},
        {"{\"do_sample\": \"yes\"}", "do_sample is \"yes\""},
        {"[]", "not an object"},
        {"", "generation_config.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err = {0};
        model_config c;
        assert_int_not_equal(model_config_read(write_dir(BASE, cases[i][0]), &c, &err), ERR_OK);
        if (!strstr(err.message, cases[i][1]) || !strstr(err.message, "generation_config.json"))
            fail_msg("'%s' gives '%s'", cases[i][0], err.message);
    }
}

static void test_tied_disagree(void **state) {
    (void)state;
    error err = {0};
    model_config c;
    buffer text = {0};
    buffer_printf(&text, "{\"model_type\": \"qwen3_5\", \"tie_word_embeddings\": false, \"text_config\": %s}", BASE);
    assert_int_equal(model_config_read(write_dir(text.data, NULL), &c, &err), ERR_FORMAT);
    assert_non_null(strstr(err.message, "tie_word_embeddings"));
    buffer_deinit(&text);
    assert_int_not_equal(model_config_read(write_dir(NULL, NULL), &c, &err), ERR_OK); /* no file at all */
}

static void test_published(void **state) {
    (void)state;
    error err;
    model_config c;
    if (model_config_read(test_need_shared("oracle/ckpt/tiny-b"), &c, &err)) fail_msg("%s", err.message);
    assert_int_equal(c.hidden, 128);
    assert_int_equal(c.attention_layers, 1);
    assert_int_equal(c.rotary_dim, 16);
    assert_int_equal(c.stop_count, 2);
    assert_int_equal(c.stop_ids[0], 599);
    assert_int_equal(c.top_k, 20);
    assert_true(c.vision && !c.tied_head);
    assert_int_not_equal(model_config_read(test_need_shared("oracle/ckpt/tiny-moe"), &c, &err), ERR_OK);
    assert_non_null(strstr(err.message, "qwen3_5_moe"));
    /* A quantised checkpoint has the shapes of the one it was made from; how it is stored is quant_config's business. */
    if (model_config_read(test_need_shared("oracle/ckpt/tiny-b-nvfp4"), &c, &err)) fail_msg("%s", err.message);
    assert_int_equal(c.hidden, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),          cmocka_unit_test(test_generation), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_nested),        cmocka_unit_test(test_refused),    cmocka_unit_test(test_bad_generation),
        cmocka_unit_test(test_tied_disagree), cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
