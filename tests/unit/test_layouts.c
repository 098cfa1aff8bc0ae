/* Quantised checkpoints with one thing wrong: each is refused by name and number, or loaded with a warning that says so.
 *
 * The good checkpoints are the reference ones. A case edits one tensor's entry in the header, some bytes of one tensor, or
 * one of the two configuration files, and opens the result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/quant_config.h"
#include "golden_files.h"
#include "model/model.h"
#include "support.h"

typedef enum {
    ENTRY,  /* in the header entry of tensor `name`: from -> to */
    NAME,   /* the tensor's name becomes `to` */
    BYTES,  /* `count` bytes of the tensor from byte `at` on become `value` */
    FLOAT,  /* the tensor's F32 number `at` becomes `number` */
    CONFIG, /* config.json: from -> to, everywhere */
    HF,     /* hf_quant_config.json: the same */
    HEADER, /* the whole header: from -> to, everywhere */
    CUT,    /* the last `count` bytes of the file are missing */
} edit_kind;

enum { ALL = -1 };

typedef struct mutation {
    const char *layout; /* nvfp4, mixed, ct, fp8: of tiny-b */
    edit_kind kind;
    const char *name, *from, *to;
    int at, count;
    unsigned value;
    double number;
    const char *message; /* part of the error; NULL: it loads */
    const char *warning; /* then part of a warning */
} mutation;

typedef struct files {
    buffer data, config, hf;
} files;

static char dir_of[1024];

/* The sources are one file here, two shards for ct: its cases take the shard that has the tensor. */
static buffer load(const char *name, bool required) {
    error err;
    buffer b = {0};
    char *path = file_join(dir_of, name);
    if (file_exists(path) ? file_read(path, 64 << 20, &b, &err) != ERR_OK : required) fail_msg("cannot read %s", path);
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

static uint64_t header_size(const buffer *file) {
    uint64_t size = 0;
    for (int i = 7; i >= 0; i--) size = size << 8 | (uint8_t)file->data[i];
    return size;
}

static int replace_in(buffer *text, size_t first, size_t end, const char *from, const char *to) {
    buffer out = {0};
    int count = 0;
    buffer_append(&out, text->data, first);
    span rest = span_make(text->data + first, end - first);
    for (ptrdiff_t at; (at = span_find(rest, span_text(from))) >= 0; count++) {
        buffer_append(&out, rest.data, (size_t)at);
        buffer_text(&out, to);
        rest = span_make(rest.data + at + strlen(from), rest.size - (size_t)at - strlen(from));
    }
    buffer_append(&out, rest.data, rest.size);
    buffer_append(&out, text->data + end, text->size - end);
    buffer_deinit(text);
    *text = out;
    return count;
}

/* Where the header entry of a tensor begins and ends in the file. */
static bool find_entry(const buffer *file, const char *name, size_t *first, size_t *end) {
    char quoted[256];
    snprintf(quoted, sizeof quoted, "\"%s\":{", name);
    ptrdiff_t at = span_find(span_make(file->data + 8, header_size(file)), span_text(quoted));
    if (at < 0) return false;
    *first = 8 + (size_t)at;
    *end = *first + (size_t)(strchr(file->data + *first, '}') - (file->data + *first));
    return true;
}

static void edit_header(buffer *file, const mutation *m) {
    uint64_t size = header_size(file);
    size_t before = file->size, first = 8, end = 8 + size;
    if (m->kind != HEADER && !find_entry(file, m->name, &first, &end)) fail_msg("no tensor %s", m->name);
    const char *from = m->kind == NAME ? m->name : m->from;
    assert_true(replace_in(file, first, end, from, m->to) > 0);
    size += file->size - before;
    for (int i = 0; i < 8; i++) file->data[i] = (char)(size >> (8 * i));
}

static void edit_data(buffer *file, const mutation *m) {
    size_t first, end;
    long long from, to;
    if (!find_entry(file, m->name, &first, &end)) fail_msg("no tensor %s", m->name);
    const char *offsets = strstr(file->data + first, "\"data_offsets\":[");
    assert_int_equal(sscanf(offsets, "\"data_offsets\":[%lld,%lld]", &from, &to), 2);
    char *data = file->data + 8 + header_size(file) + from;
    if (m->kind == FLOAT) {
        float x = (float)m->number;
        memcpy(data + 4 * m->at, &x, sizeof x);
    } else {
        memset(data + m->at, (int)m->value, m->count == ALL ? (size_t)(to - from - m->at) : (size_t)m->count);
    }
}

static void apply(files *f, const mutation *m) {
    switch (m->kind) {
        case CONFIG:
            assert_true(replace_in(&f->config, 0, f->config.size, m->from, m->to) > 0);
            break;
        case HF:
            assert_true(replace_in(&f->hf, 0, f->hf.size, m->from, m->to) > 0);
            break;
        case BYTES:
        case FLOAT:
            edit_data(&f->data, m);
            break;
        case CUT:
            f->data.size -= (size_t)m->count;
            break;
        default:
            edit_header(&f->data, m);
    }
}

/* The shard that holds the tensor; the only one where no tensor is named. */
static const char *shard_of(const mutation *m) {
    static const char *const names[] = {"model.safetensors", "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors"};
    for (int i = 0; i < 3; i++) {
        size_t first, end;
        buffer file = load(names[i], false);
        bool found = file.data && (!m->name || find_entry(&file, m->name, &first, &end));
        buffer_deinit(&file);
        if (found) return names[i];
    }
    fail_msg("no tensor %s", m->name);
    return NULL;
}

static err_code open_mutation(const mutation *m, model **out, error *err) {
    const char *dir = test_temp("layouts"), *shard = shard_of(m);
    static const char *const others[] = {"model.safetensors", "model-00001-of-00002.safetensors",
                                         "model-00002-of-00002.safetensors", "model.safetensors.index.json"};
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
    files f = {load(shard, true), load("config.json", true), load("hf_quant_config.json", false)};
    for (int i = 0; i < 4; i++) {
        buffer other = load(others[i], false);
        if (other.data) store(dir, others[i], &other);
        buffer_deinit(&other);
    }
    apply(&f, m);
    store(dir, shard, &f.data);
    store(dir, "config.json", &f.config);
    if (f.hf.data) store(dir, "hf_quant_config.json", &f.hf);
    buffer_deinit(&f.data), buffer_deinit(&f.config), buffer_deinit(&f.hf);
    return model_open(dir, &(model_options){.rows_max = 1, .segments_max = 1}, out, err);
}

static bool warned(const model *m, const char *part) {
    for (int i = 0; i < model_warning_count(m); i++)
        if (strstr(model_warning(m, i), part)) return true;
    return false;
}

static bool find_layout(const char *layout) {
    char name[64];
    snprintf(name, sizeof name, "tiny-b-%s", layout);
    const char *dir = golden_checkpoint(name);
    if (dir) snprintf(dir_of, sizeof dir_of, "%s", dir);
    return dir != NULL;
}

static void check(const mutation *m, size_t index) {
    error err = {0};
    model *opened = NULL;
    if (!find_layout(m->layout)) skip();
    err_code code = open_mutation(m, &opened, &err);
    if (m->message) {
        if (!code) fail_msg("case %zu loads; expected '%s'", index, m->message);
        if (!strstr(err.message, m->message)) fail_msg("case %zu: '%s' lacks '%s'", index, err.message, m->message);
        return;
    }
    if (code) fail_msg("case %zu: %s", index, err.message);
    if (m->warning && !warned(opened, m->warning))
        fail_msg("case %zu: no warning '%s' among %d (first: %s)", index, m->warning, model_warning_count(opened),
                 model_warning_count(opened) ? model_warning(opened, 0) : "none");
    if (!m->warning) assert_int_equal(model_warning_count(opened), 0);
    model_close(opened);
}

#define L0 "model.language_model.layers.0."
#define L3 "model.language_model.layers.3."
#define UP L0 "mlp.up_proj"
#define GATE L0 "mlp.gate_proj"
#define QKV L0 "linear_attn.in_proj_qkv"

static const mutation cases[] = {
    /* unchanged, and what changes nothing */
    {"nvfp4", HEADER, .from = "{", .to = "{"},
    {"mixed", HEADER, .from = "{", .to = "{"},
    {"ct", HEADER, .name = UP ".weight_packed", .from = "{", .to = "{"},
    {"fp8", HEADER, .from = "{", .to = "{"},
    {"nvfp4", ENTRY, UP ".weight_scale_2", .from = "\"shape\":[]", .to = "\"shape\":[1]"},
    /* scales that cannot be right */
    {"nvfp4", BYTES, UP ".weight_scale", .at = 5, .count = 1, .value = 0x7f,
     .message = "up_proj.weight: 1 NaN, 0 infinite, 0 negative block scales"},
    {"nvfp4", BYTES, UP ".weight_scale", .at = 8, .count = 1, .value = 0xff, .message = "1 NaN"},
    {"nvfp4", BYTES, UP ".weight_scale", .at = 2047, .count = 1, .value = 0xb8, .message = "1 negative"},
    {"nvfp4", BYTES, "lm_head.weight_scale", .at = 17, .count = 3, .value = 0x90,
     .message = "lm_head.weight: 0 NaN, 0 infinite, 3 negative"},
    {"nvfp4", FLOAT, UP ".weight_scale_2", .number = 0,
     .message = UP ".weight_scale_2 is 0, must be a finite number above 0"},
    {"nvfp4", FLOAT, UP ".weight_scale_2", .number = -0.5, .message = "weight_scale_2 is -0.5"},
    {"nvfp4", FLOAT, UP ".weight_scale_2", .number = INFINITY, .message = "weight_scale_2 is inf"},
    {"nvfp4", BYTES, UP ".weight_scale_2", .count = 4, .value = 0xff, .message = "weight_scale_2 is"},
    {"nvfp4", BYTES, UP ".input_scale", .count = 4, .value = 0xff, .message = "input_scale is"},
    {"nvfp4", FLOAT, L3 "self_attn.k_proj.k_scale", .number = -1, .message = "k_scale is -1"},
    {"nvfp4", FLOAT, L3 "self_attn.v_proj.v_scale", .number = 0, .message = "v_scale is 0"},
    {"mixed", FLOAT, QKV ".weight_scale", .number = 0, .message = QKV ".weight_scale is 0"},
    {"mixed", FLOAT, QKV ".weight_scale", .number = -2, .message = QKV ".weight_scale is -2"},
    {"ct", FLOAT, UP ".weight_global_scale", .number = 0, .message = UP ".weight_global_scale is 0"},
    {"ct", FLOAT, UP ".weight_global_scale", .number = -3, .message = "weight_global_scale is -3"},
    {"ct", FLOAT, UP ".input_global_scale", .number = INFINITY, .message = "input_global_scale is inf"},
    {"fp8", BYTES, QKV ".weight_scale_inv", .at = 0, .count = 2, .value = 0xff, .message = "in_proj_qkv.weight: 1 NaN"},
    {"fp8", FLOAT, "mtp.layers.0.mlp.up_proj.weight_scale_inv", .at = 1, .number = -1, .message = "1 negative scales"},
    {"fp8", FLOAT, "mtp.layers.0.mlp.up_proj.weight_scale_inv", .at = 1, .number = INFINITY, .message = "1 infinite"},
    {"fp8", BYTES, QKV ".weight", .at = 77, .count = 2, .value = 0x7f, .message = "in_proj_qkv.weight: 2 NaN"},
    {"mixed", BYTES, QKV ".weight", .at = 40959, .count = 1, .value = 0xff, .message = "in_proj_qkv.weight: 1 NaN"},
    /* nothing but zeros */
    {"nvfp4", BYTES, UP ".weight", .count = ALL, .value = 0x80, .message = "up_proj.weight is all zero"},
    {"nvfp4", BYTES, UP ".weight_scale", .count = ALL, .value = 0, .message = "up_proj.weight is all zero"},
    {"nvfp4", BYTES, L0 "linear_attn.in_proj_a.weight", .count = ALL, .value = 0,
     .message = "in_proj_a.weight is all zero"},
    {"fp8", BYTES, QKV ".weight", .count = ALL, .value = 0x80, .message = "in_proj_qkv.weight is all zero"},
    {"ct", BYTES, UP ".weight_packed", .count = ALL, .value = 0, .message = "up_proj.weight_packed is all zero"},
    {"nvfp4", BYTES, "model.language_model.embed_tokens.weight", .count = ALL, .value = 0,
     .message = "embed_tokens.weight is all zero"},
    /* shapes and types */
    {"nvfp4", ENTRY, UP ".weight_scale", "[256,8]", "[8,256]",
     .message = "up_proj.weight_scale is [8,256], must be [256,8]"},
    {"nvfp4", ENTRY, UP ".weight", "[256,64]", "[128,128]", .message = "up_proj.weight is [128,128], must be [256,64]"},
    {"nvfp4", ENTRY, UP ".weight_scale", "[256,8]", "[2048]",
     .message = "up_proj.weight_scale is [2048], must be [256,8]"},
    {"nvfp4", ENTRY, UP ".weight_scale", "F8_E4M3", "U8",
     .message = "up_proj.weight_scale has dtype U8, must be F8_E4M3"},
    {"nvfp4", ENTRY, UP ".weight_scale", "F8_E4M3", "F8_E5M2", .message = "has dtype F8_E5M2, must be F8_E4M3"},
    {"nvfp4", ENTRY, UP ".weight", "U8", "I8", .message = "up_proj.weight has dtype I8"},
    {"nvfp4", ENTRY, UP ".weight_scale_2", "\"dtype\":\"F32\",\"shape\":[]", "\"dtype\":\"BF16\",\"shape\":[2]",
     .message = "weight_scale_2 is [2], must be one number"},
    {"nvfp4", ENTRY, UP ".weight_scale_2", "F32", "I32", .message = "weight_scale_2 has dtype I32"},
    {"nvfp4", ENTRY, "model.language_model.embed_tokens.weight", "F16", "I16",
     .message = "embed_tokens.weight has dtype I16"},
    {"fp8", ENTRY, QKV ".weight_scale_inv", "[3,1]", "[1,3]", .message = "weight_scale_inv is [1,3], must be [3,1]"},
    {"fp8", ENTRY, QKV ".weight_scale_inv", "BF16", "I16", .message = "weight_scale_inv has dtype I16"},
    {"fp8", ENTRY, QKV ".weight", "[320,128]", "[128,320]",
     .message = "in_proj_qkv.weight is [128,320], must be [320,128]"},
    {"ct", ENTRY, UP ".weight_packed", "U8", "I8", .message = "weight_packed has dtype I8, must be U8"},
    {"mixed", ENTRY, QKV ".weight", "F8_E4M3", "F8_E5M2", .message = "in_proj_qkv.weight has dtype F8_E5M2"},
    /* missing and left over */
    {"nvfp4", NAME, UP ".weight_scale", .to = UP ".weight_scales", .message = "up_proj.weight_scale is missing"},
    {"nvfp4", NAME, UP ".weight_scale_2", .to = UP ".weight_scale_3", .message = "up_proj.weight_scale_3 is unknown"},
    {"nvfp4", NAME, UP ".weight", .to = UP ".qweight", .message = UP ".weight is missing"},
    {"nvfp4", NAME, UP ".input_scale", .to = UP ".pre_quant_scale", .message = "pre_quant_scale is unknown"},
    {"nvfp4", NAME, L3 "self_attn.k_proj.k_scale", .to = L3 "self_attn.k_proj.k_zero",
     .message = "has a scale for values only"},
    {"nvfp4", NAME, L0 "linear_attn.in_proj_a.weight", .to = L0 "linear_attn.in_proj_ba.weight",
     .message = "in_proj_ba.weight is unknown"},
    {"mixed", NAME, QKV ".weight_scale", .to = QKV ".scale", .message = "in_proj_qkv.weight_scale is missing"},
    {"fp8", NAME, QKV ".weight_scale_inv", .to = QKV ".weight_scale_invs",
     .message = "in_proj_qkv.weight_scale is missing"},
    {"fp8", NAME, "model.visual.merger.norm.bias", .to = "visual.x"},
    /* methods */
    {"nvfp4", CONFIG, .from = "\"quant_method\": \"modelopt\"", .to = "\"quant_method\": \"awq\"",
     .message = "quant_method is \"awq\", this build knows modelopt"},
    {"nvfp4", CONFIG, .from = "\"quant_method\": \"modelopt\"", .to = "\"quant_method\": 4",
     .message = "quant_method is 4"},
    {"nvfp4", HF, .from = "\"NVFP4\"", .to = "\"W4A8_AWQ\"",
     .message = "hf_quant_config.json: quant_algo is \"W4A8_AWQ\""},
    {"nvfp4", HF, .from = "\"NVFP4\"", .to = "\"FP8\"",
     .message = "hf_quant_config.json says ModelOpt FP8, config.json says ModelOpt NVFP4"},
    {"nvfp4", HF, .from = "\"group_size\": 16", .to = "\"group_size\": 32",
     .message = "group_size is 32, this build knows 16"},
    {"nvfp4", HF, .from = "\"quantization\"", .to = "\"quantisation\"", .message = "quantization is missing"},
    {"nvfp4", HF, .from = "{", .to = "[", .message = "hf_quant_config.json: byte"},
    {"mixed", HF, .from = "W4A16_NVFP4", .to = "INT4_AWQ", .message = "has quant_algo \"INT4_AWQ\""},
    {"mixed", CONFIG, .from = "\"quantized_layers\": {", .to = "\"quantised_layers\": {",
     .message = "quantized_layers is missing"},
    {"ct", CONFIG, .name = UP ".weight_packed", .from = "\"format\": \"nvfp4-pack-quantized\"",
     .to = "\"format\": \"pack-quantized\"",
     .message = "format is \"pack-quantized\", this build knows nvfp4-pack-quantized"},
    {"ct", CONFIG, .name = UP ".weight_packed", .from = "\"num_bits\": 4", .to = "\"num_bits\": 8",
     .message = "num_bits is 8"},
    {"ct", CONFIG, .name = UP ".weight_packed", .from = "\"group_size\": 16", .to = "\"group_size\": 128",
     .message = "group_size is 128"},
    {"fp8", CONFIG, .from = "\"weight_block_size\"", .to = "\"block\"", .message = "weight_block_size is missing"},
    {"fp8", CONFIG, .from = "\"e4m3\"", .to = "\"e5m2\"", .message = "fmt is \"e5m2\""},
    {"fp8", CONFIG, .from = "\"dynamic\"", .to = "\"static\"", .message = "activation_scheme is \"static\""},
    {"nvfp4", CONFIG, .from = "qwen3_5\"", .to = "qwen3_5_moe\"", .message = "model_type is \"qwen3_5_moe\""},
    /* the file itself */
    {"nvfp4", CUT, .count = 1, .message = "past the end of the file"},
    {"nvfp4", CUT, .count = 500000, .message = "past the end of the file"},
    {"nvfp4", ENTRY, UP ".weight", "U8", "U4", .message = "dtype 'U4' is not known"},
    {"nvfp4", ENTRY, UP ".weight", "[256,64]", "[256,65]", .message = "elements of U8 need"},
    {"nvfp4", HEADER, .from = "\"dtype\"", .to = "\"type\"", .message = "no dtype"},
    /* loaded, but said */
    {"nvfp4", FLOAT, UP ".weight_scale_2", .number = 800, .warning = "is it stored as its reciprocal?"},
    {"ct", FLOAT, UP ".weight_global_scale", .number = 0.01, .warning = "is it stored as its reciprocal?"},
    {"nvfp4", BYTES, UP ".weight_scale", .at = 3, .count = 2, .value = 0,
     .warning = "2 block scales are zero over codes that are not"},
    {"nvfp4", BYTES, UP ".weight_scale", .at = 3, .count = 1, .value = 0x80, .warning = "1 block scales are zero"},
    {"nvfp4", BYTES, UP ".weight", .at = 64, .count = 192, .value = 0,
     .warning = "up_proj.weight: 3 of 256 rows are all zero"},
    {"nvfp4", BYTES, "lm_head.weight", .at = 638 * 64, .count = ALL, .value = 0},
    {"nvfp4", BYTES, "lm_head.weight", .at = 600 * 64, .count = 128, .value = 0,
     .warning = "lm_head.weight: 2 of 640 rows are all zero"},
    {"fp8", BYTES, QKV ".weight", .at = 0, .count = 128, .value = 0,
     .warning = "in_proj_qkv.weight: 1 of 320 rows are all zero"},
    {"fp8", BYTES, QKV ".weight_scale_inv", .at = 4, .count = 2, .value = 0, .warning = "1 block scales are zero"},
    {"nvfp4", HF, .from = "*linear_attn.in_proj_a", .to = "*mlp.gate_proj",
     .warning = "stored otherwise than the configuration (ModelOpt NVFP4) says"},
    {"fp8", CONFIG, .from = "\"lm_head\"", .to = "\"head\"", .warning = "lm_head and 0 other matrices"},
    {"ct", CONFIG, .name = UP ".weight_packed", .from = "re:.*mtp.*", .to = "re:mtp[", .warning = "mtp.fc and"},
};

static void test_mutations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i], i);
    print_message("%zu mutations\n", sizeof cases / sizeof *cases);
}

/* The dialects of the exception lists. */
static void test_lists(void **state) {
    (void)state;
    static const struct {
        const char *layout, *module;
        quant_algo algo;
    } asked[] = {
        {"nvfp4", UP, QUANT_NVFP4},
        {"nvfp4", L0 "linear_attn.in_proj_a", QUANT_NONE},
        {"nvfp4", "model.visual.merger.linear_fc1", QUANT_NONE},
        {"nvfp4", "mtp.fc", QUANT_NVFP4},
        {"mixed", UP, QUANT_W4A16_NVFP4},
        {"mixed", QKV, QUANT_FP8},
        {"mixed", "mtp.fc", QUANT_NONE},
        {"ct", UP, QUANT_NVFP4},
        {"ct", QKV, QUANT_NONE},
        {"ct", "mtp.layers.0.mlp.up_proj", QUANT_NONE},
        {"ct", "lm_head", QUANT_NONE},
        {"fp8", QKV, QUANT_FP8_BLOCK},
        {"fp8", "lm_head", QUANT_NONE},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        error err;
        quant_config *q = NULL;
        if (!find_layout(asked[i].layout)) skip();
        if (quant_config_read(dir_of, &q, &err)) fail_msg("%s", err.message);
        assert_int_equal(quant_config_of(q, asked[i].module), asked[i].algo);
        quant_config_free(q);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
