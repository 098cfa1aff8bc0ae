/* Binding tensors: a checkpoint that does not fit the model is refused with every name that explains why. The good one is
 * tests/golden/small; each case edits its header. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "model/model.h"
#include "support.h"

static const char SOURCE[] = "tests/golden/small";

static buffer load(const char *name) {
    error err;
    buffer b = {0};
    char *path = file_join(SOURCE, name);
    if (file_read(path, 16 << 20, &b, &err)) fail_msg("%s", err.message);
    free(path);
    return b;
}

static void store(const char *dir, const char *name, const buffer *b) {
    error err;
    char *path = file_join(dir, name);
    if (file_make_dirs(dir, &err) || file_write_atomic(path, span_make(b->data, b->size), &err))
        fail_msg("%s", err.message);
    free(path);
}

/* text with every `from` replaced by `to`. */
static buffer replaced(span text, const char *from, const char *to) {
    buffer out = {0};
    span rest = text;
    for (ptrdiff_t at; *from && (at = span_find(rest, span_text(from))) >= 0;) {
        buffer_append(&out, rest.data, (size_t)at);
        buffer_text(&out, to);
        rest = span_make(rest.data + at + strlen(from), rest.size - (size_t)at - strlen(from));
    }
    buffer_append(&out, rest.data, rest.size);
    return out;
}

/* The small checkpoint with an edit in the safetensors header and one in config.json, opened. */
static err_code open_edited(const char *from, const char *to, const char *config_from, const char *config_to,
                            error *err) {
    const char *dir = test_temp("edited");
    buffer file = load("model.safetensors"), config = load("config.json"), out = {0};
    uint64_t size = 0;
    for (int i = 7; i >= 0; i--) size = size << 8 | (uint8_t)file.data[i];
    buffer header = replaced(span_make(file.data + 8, size), from, to);
    for (int i = 0; i < 8; i++) buffer_char(&out, (char)(header.size >> (8 * i)));
    buffer_append(&out, header.data, header.size);
    buffer_append(&out, file.data + 8 + size, file.size - 8 - size);
    buffer text = replaced(span_make(config.data, config.size), config_from, config_to);
    store(dir, "model.safetensors", &out);
    store(dir, "config.json", &text);
    model *m = NULL;
    err_code code = model_open(dir, NULL, &m, err);
    model_close(m);
    buffer_deinit(&file), buffer_deinit(&config), buffer_deinit(&out), buffer_deinit(&header), buffer_deinit(&text);
    return code;
}

static void test_good(void **state) {
    (void)state;
    error err = {0};
    if (open_edited("", "", "", "", &err)) fail_msg("%s", err.message);
    /* names without the nesting, as text-only exports write them */
    if (open_edited("model.language_model.", "model.", "", "", &err)) fail_msg("%s", err.message);
    /* no MTP layer: the draft head of the config is off, so its tensors would be unknown */
    assert_int_equal(open_edited("", "", "\"mtp_num_hidden_layers\": 1", "\"mtp_num_hidden_layers\": 0", &err),
                     ERR_FORMAT);
    assert_non_null(strstr(err.message, "mtp.fc.weight is unknown (model.safetensors)"));
}

static void test_problems(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *config_from, *config_to, *messages[3];
    } cases[] = {
        {"mtp.fc.weight",
         "mtp.other.weight",
         "",
         "",
         {"mtp.fc.weight is missing", "mtp.other.weight is unknown", "(2)"}},
        {"lm_head.weight", "head.weight", "", "", {"lm_head.weight is missing", "head.weight is unknown", "(2)"}},
        {"",
         "",
         "\"tie_word_embeddings\": false",
         "\"tie_word_embeddings\": true",
         {"lm_head.weight is there though tie_word_embeddings is true", "(1)", ""}},
        {"\"shape\":[120,36]",
         "\"shape\":[36,120]",
         "",
         "",
         {"model.language_model.embed_tokens.weight is [36,120], must be [120,36]", "lm_head.weight is [36,120]", ""}},
        {"\"shape\":[36,72]", "\"shape\":[36,8,9]", "", "", {"mtp.fc.weight is [36,8,9], must be [36,72]", "", ""}},
        {"BF16",
         "I16",
         "",
         "",
         {"embed_tokens.weight has dtype I16 (known: BF16, F16, F32)", "; and 5", "tensors do not fit"}},
        {"", "", "\"hidden_size\": 36", "\"hidden_size\": 40", {"is [120,36], must be [120,40]", "more", ""}},
        {"", "", "\"num_hidden_layers\": 3,", "\"num_hidden_layers\": 3, \"mtp_num_hidden_layers\": 1,", {"", "", ""}},
        {"linear_attn.A_log",
         "linear_attn.D",
         "",
         "",
         {"layers.0.linear_attn.A_log is missing", "layers.1.linear_attn.A_log is missing",
          "layers.0.linear_attn.D is unknown"}},
        {"lm_head.weight", "model.visual.x", "vision_config", "visions", {"model.visual.x is unknown", "", ""}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err = {0};
        err_code code = open_edited(cases[i].from, cases[i].to, cases[i].config_from, cases[i].config_to, &err);
        if (!*cases[i].messages[0]) {
            if (code) fail_msg("case %zu: %s", i, err.message); /* a repeated key: the last one counts */
            continue;
        }
        assert_int_equal(code, ERR_FORMAT);
        for (int k = 0; k < 3; k++)
            if (!strstr(err.message, cases[i].messages[k]))
                fail_msg("case %zu: '%s' lacks '%s'", i, err.message, cases[i].messages[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_problems)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
