/* Reading the two descriptions of a quantised checkpoint; see quant_config.h.
 *
 * Lists of exceptions name modules in three dialects: whole names, shell wildcards (ModelOpt: "*linear_attn.conv1d*") and
 * regular expressions that must match from the start ("re:.*visual.*", compressed-tensors). Lists name the checkpoint's
 * own modules (q_proj, k_proj, v_proj, never a fused qkv_proj), which is also how they are asked for here. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "format/quant_config.h"

#include <fnmatch.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

enum { FILE_BYTES_MAX = 64 << 20, LISTS_MAX = 2, MATCH_STEPS_MAX = 100000 };

struct quant_config {
    arena *tree;
    buffer texts[2]; /* config.json, hf_quant_config.json: the trees borrow from them */
    const char *name;
    quant_algo everywhere;         /* of modules that no list names */
    const json *ignore[LISTS_MAX]; /* arrays of names and patterns */
    const json *layers;            /* ModelOpt mixed: object of module -> {"quant_algo"} */
};

static const struct {
    const char *text;
    quant_algo algo;
} algos[] = {{"NVFP4", QUANT_NVFP4}, {"W4A16_NVFP4", QUANT_W4A16_NVFP4}, {"FP8", QUANT_FP8}};

static int shown(span text) { return (int)(text.size < 80 ? text.size : 80); }

static err_code unknown(const char *file, const char *field, const json *value, const char *known, error *err) {
    if (!value) ERR_FAIL(err, ERR_FORMAT, "%s: %s is missing (known: %s)", file, field, known);
    ERR_FAIL(err, ERR_UNSUPPORTED, "%s: %s is %.*s, this build knows %s", file, field, shown(value->source),
             value->source.data, known);
}

/* A member that is there and not null. */
static const json *member(const json *object, const char *name) {
    const json *value = json_get(object, name);
    return value && !json_is(value, JSON_NULL) ? value : NULL;
}

static err_code expect_number(const char *file, const json *object, const char *field, int64_t want, error *err) {
    const json *value = member(object, field);
    int64_t is;
    if (!value || (json_integer(value, &is) && is == want)) return ERR_OK;
    ERR_FAIL(err, ERR_UNSUPPORTED, "%s: %s is %.*s, this build knows %d", file, field, shown(value->source),
             value->source.data, (int)want);
}

static bool find_algo(const json *value, quant_algo *out) {
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++)
        if (json_string_is(value, algos[i].text)) return *out = algos[i].algo, true;
    return false;
}

/* ---- ModelOpt */

static err_code check_layers(const char *file, const json *layers, error *err) {
    if (!json_is(layers, JSON_OBJECT)) return unknown(file, "quantized_layers", layers, "an object", err);
    for (const json *l = layers->first; l; l = l->next) {
        quant_algo algo;
        const json *value = json_get(l, "quant_algo");
        if (!find_algo(value, &algo))
            ERR_FAIL(err, ERR_UNSUPPORTED, "%s: quantized_layers: %.*s has quant_algo %.*s, this build knows %s", file,
                     shown(l->key), l->key.data, value ? shown(value->source) : 4, value ? value->source.data : "none",
                     "NVFP4, W4A16_NVFP4, FP8");
        ERR_TRY(expect_number(file, l, "group_size", 16, err));
    }
    return ERR_OK;
}

/* The fields stand under "quantization" in hf_quant_config.json, flat in config.json. */
static err_code read_modelopt(quant_config *q, const char *file, const json *fields, error *err) {
    const json *algo = member(fields, "quant_algo");
    bool mixed = json_string_is(algo, "MIXED_PRECISION");
    q->everywhere = QUANT_NONE;
    if (!mixed && !find_algo(algo, &q->everywhere))
        return unknown(file, "quant_algo", algo, "NVFP4, W4A16_NVFP4, FP8, MIXED_PRECISION", err);
    ERR_TRY(expect_number(file, fields, "group_size", 16, err));
    if (mixed) {
        q->layers = member(fields, "quantized_layers");
        ERR_TRY(check_layers(file, q->layers, err));
    }
    q->name = mixed                          ? "ModelOpt mixed"
              : q->everywhere == QUANT_FP8   ? "ModelOpt FP8"
              : q->everywhere == QUANT_NVFP4 ? "ModelOpt NVFP4"
                                             : "ModelOpt W4A16 NVFP4";
    return ERR_OK;
}

/* ---- compressed-tensors */

static err_code check_group(const char *file, const json *group, error *err) {
    const json *format = member(group, "format"), *weights = member(group, "weights");
    if (format && !json_string_is(format, "nvfp4-pack-quantized"))
        return unknown(file, "config_groups format", format, "nvfp4-pack-quantized", err);
    if (!json_string_is(member(weights, "type"), "float"))
        return unknown(file, "config_groups weights.type", member(weights, "type"), "float", err);
    ERR_TRY(expect_number(file, weights, "num_bits", 4, err));
    return expect_number(file, weights, "group_size", 16, err);
}

static err_code read_compressed(quant_config *q, const char *file, const json *fields, error *err) {
    const json *groups = member(fields, "config_groups");
    if (!json_string_is(member(fields, "format"), "nvfp4-pack-quantized"))
        return unknown(file, "format", member(fields, "format"), "nvfp4-pack-quantized", err);
    if (!json_is(groups, JSON_OBJECT) || !groups->count)
        return unknown(file, "config_groups", groups, "an object with groups", err);
    q->everywhere = QUANT_W4A16_NVFP4;
    for (const json *g = groups->first; g; g = g->next) {
        ERR_TRY(check_group(file, g, err));
        if (member(g, "input_activations")) q->everywhere = QUANT_NVFP4;
    }
    q->name = "compressed-tensors NVFP4";
    return ERR_OK;
}

/* ---- fp8 in blocks */

static err_code read_fp8(quant_config *q, const char *file, const json *fields, error *err) {
    const json *block = member(fields, "weight_block_size"), *fmt = member(fields, "fmt");
    const json *scheme = member(fields, "activation_scheme");
    int64_t rows = 0, cols = 0;
    if (fmt && !json_string_is(fmt, "e4m3") && !json_string_is(fmt, "float8_e4m3fn"))
        return unknown(file, "fmt", fmt, "e4m3", err);
    if (!json_integer(json_at(block, 0), &rows) || !json_integer(json_at(block, 1), &cols) || rows != 128 ||
        cols != 128 || block->count != 2)
        return unknown(file, "weight_block_size", block, "[128, 128]", err);
    if (scheme && !json_string_is(scheme, "dynamic")) return unknown(file, "activation_scheme", scheme, "dynamic", err);
    q->everywhere = QUANT_FP8_BLOCK;
    q->name = "FP8, blocks of 128 x 128";
    return ERR_OK;
}

/* ---- both files */

static err_code parse(quant_config *q, const char *dir, const char *file, buffer *text, const json **root, error *err) {
    char *path = file_join(dir, file);
    error inner;
    *root = NULL;
    err_code code = file_exists(path) ? file_read(path, FILE_BYTES_MAX, text, err) : ERR_OK;
    free(path);
    ERR_TRY(code);
    if (!text->data) return ERR_OK;
    if (json_parse(q->tree, span_make(text->data, text->size), JSON_DEPTH_DEFAULT, root, &inner))
        ERR_FAIL(err, ERR_FORMAT, "%s: %s", file, inner.message);
    return ERR_OK;
}

static err_code add_list(quant_config *q, int at, const char *file, const json *fields, const char *name, error *err) {
    const json *list = member(fields, name);
    if (!list) return ERR_OK;
    if (!json_is(list, JSON_ARRAY)) return unknown(file, name, list, "an array of names", err);
    for (const json *item = list->first; item; item = item->next)
        if (!json_is(item, JSON_STRING)) return unknown(file, name, item, "names", err);
    q->ignore[at] = list;
    return ERR_OK;
}

static err_code read_config(quant_config *q, const json *fields, error *err) {
    static const char file[] = "config.json: quantization_config";
    const json *method = member(fields, "quant_method");
    if (json_string_is(method, "modelopt")) {
        ERR_TRY(read_modelopt(q, file, fields, err));
        return add_list(q, 0, file, fields, member(fields, "ignore") ? "ignore" : "exclude_modules", err);
    }
    if (json_string_is(method, "compressed-tensors")) {
        ERR_TRY(read_compressed(q, file, fields, err));
        return add_list(q, 0, file, fields, "ignore", err);
    }
    if (json_string_is(method, "fp8")) {
        ERR_TRY(read_fp8(q, file, fields, err));
        return add_list(q, 0, file, fields, "modules_to_not_convert", err);
    }
    return unknown(file, "quant_method", method, "modelopt, compressed-tensors, fp8", err);
}

static err_code read_hf_quant(quant_config *q, const json *root, error *err) {
    static const char file[] = "hf_quant_config.json";
    const json *fields = member(root, "quantization");
    const char *before = q->name;
    if (!fields) return unknown(file, "quantization", NULL, "an object", err);
    ERR_TRY(read_modelopt(q, file, fields, err));
    if (before && strcmp(before, q->name) != 0)
        ERR_FAIL(err, ERR_FORMAT, "%s says %s, config.json says %s: two descriptions of one checkpoint differ", file,
                 q->name, before);
    return add_list(q, 1, file, fields, "exclude_modules", err);
}

static err_code read_both(quant_config *q, const char *dir, error *err) {
    const json *config, *hf;
    ERR_TRY(parse(q, dir, "config.json", &q->texts[0], &config, err));
    ERR_TRY(parse(q, dir, "hf_quant_config.json", &q->texts[1], &hf, err));
    const json *fields = member(config, "quantization_config");
    if (!fields) fields = member(member(config, "text_config"), "quantization_config");
    if (fields) ERR_TRY(read_config(q, fields, err));
    return hf ? read_hf_quant(q, hf, err) : ERR_OK;
}

err_code quant_config_read(const char *dir, quant_config **out, error *err) {
    quant_config *q = mem_zero(1, sizeof *q);
    q->tree = arena_create();
    err_code code = read_both(q, dir, err);
    if (code) {
        quant_config_free(q);
        return code;
    }
    *out = q;
    return ERR_OK;
}

void quant_config_free(quant_config *q) {
    if (!q) return;
    arena_destroy(q->tree);
    buffer_deinit(&q->texts[0]);
    buffer_deinit(&q->texts[1]);
    free(q);
}

const char *quant_config_name(const quant_config *q) { return q->name ? q->name : "none"; }

/* ---- asking */

/* Python's re.match: the expression must match from the start, not to the end. */
static bool expression_matches(span pattern, const char *text) {
    int code;
    PCRE2_SIZE at;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size, PCRE2_ANCHORED, &code, &at, NULL);
    if (!compiled) return false;
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_set_match_limit(limits, MATCH_STEPS_MAX);
    bool found = pcre2_match(compiled, (PCRE2_SPTR)text, strlen(text), 0, 0, data, limits) >= 0;
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    pcre2_code_free(compiled);
    return found;
}

static bool listed(span entry, const char *module) {
    static const char mark[] = "re:";
    if (span_is(entry, module)) return true;
    if (span_starts(entry, span_text(mark)))
        return expression_matches(span_make(entry.data + strlen(mark), entry.size - strlen(mark)), module);
    if (!entry.size || !memchr(entry.data, '*', entry.size)) return false;
    char *pattern = mem_copy(entry.data, entry.size);
    bool found = fnmatch(pattern, module, 0) == 0;
    free(pattern);
    return found;
}

quant_algo quant_config_of(const quant_config *q, const char *module) {
    quant_algo algo = q->everywhere;
    if (q->layers) {
        const json *layer = json_get(q->layers, module);
        if (!find_algo(json_get(layer, "quant_algo"), &algo)) return QUANT_NONE;
    }
    for (int i = 0; i < LISTS_MAX; i++)
        for (const json *item = q->ignore[i] ? q->ignore[i]->first : NULL; item; item = item->next)
            if (listed(item->text, module)) return QUANT_NONE;
    return algo;
}
