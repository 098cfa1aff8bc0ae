/* Reading config.json and generation_config.json; see config.h.
 *
 * Fields stand at top level or under text_config. A field that would change the mathematics in a way this build does not
 * know is refused by name; fields that only describe training or the vision tower are not looked at. Numbers have ranges
 * wide enough for every published model and small enough that sizes computed from them cannot overflow 64 bits. */
#include "model/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "ops/ops.h"

enum { CONFIG_BYTES_MAX = 16 << 20 };

/* One parsed file: fields are looked up in `text` first, then in `top`. */
typedef struct source {
    const char *file;
    const json *top, *text;
} source;

static const json *field(const source *s, const char *name) {
    const json *value = json_get(s->text, name);
    if (!value || json_is(value, JSON_NULL)) value = json_get(s->top, name);
    return value && !json_is(value, JSON_NULL) ? value : NULL;
}

/* The field's text as it stands in the file, cut to fit a message. */
static int shown(const json *value) { return (int)(value->source.size < 80 ? value->source.size : 80); }

static err_code bad_value(const source *s, const char *name, const json *value, const char *want, error *err) {
    if (!value) ERR_FAIL(err, ERR_FORMAT, "%s: %s is missing (%s)", s->file, name, want);
    ERR_FAIL(err, ERR_FORMAT, "%s: %s is %.*s, must be %s", s->file, name, shown(value), value->source.data, want);
}

static err_code unsupported(const source *s, const char *name, const json *value, const char *known, error *err) {
    ERR_FAIL(err, ERR_UNSUPPORTED, "%s: %s is %.*s, this build knows %s", s->file, name, shown(value),
             value->source.data, known);
}

static err_code range_error(const source *s, const char *name, const json *value, double min, double max, error *err) {
    char want[64];
    snprintf(want, sizeof want, "%.17g .. %.17g", min, max);
    return bad_value(s, name, value, want, err);
}

static err_code read_i64(const source *s, const char *name, int64_t min, int64_t max, int64_t *out, error *err) {
    const json *value = field(s, name);
    if (!value || !json_integer(value, out) || *out < min || *out > max)
        return range_error(s, name, value, (double)min, (double)max, err);
    return ERR_OK;
}

static err_code read_int(const source *s, const char *name, int min, int max, int *out, error *err) {
    int64_t value;
    ERR_TRY(read_i64(s, name, min, max, &value, err));
    *out = (int)value;
    return ERR_OK;
}

static err_code read_int_or(const source *s, const char *name, int absent, int min, int max, int *out, error *err) {
    *out = absent;
    return field(s, name) ? read_int(s, name, min, max, out, err) : ERR_OK;
}

static err_code read_number_or(const source *s, const char *name, double absent, double min, double max, double *out,
                               error *err) {
    const json *value = field(s, name);
    *out = absent;
    if (value && (!json_is(value, JSON_NUMBER) || !json_double(value, out) || !(*out >= min && *out <= max)))
        return range_error(s, name, value, min, max, err);
    return ERR_OK;
}

static err_code read_bool_or(const source *s, const char *name, bool absent, bool *out, error *err) {
    const json *value = field(s, name);
    *out = value ? json_is(value, JSON_TRUE) : absent;
    if (value && !json_is(value, JSON_TRUE) && !json_is(value, JSON_FALSE))
        return bad_value(s, name, value, "true or false", err);
    return ERR_OK;
}

static err_code refuse_unless(const source *s, const char *name, bool wanted, error *err) {
    bool value;
    ERR_TRY(read_bool_or(s, name, wanted, &value, err));
    if (value != wanted) return unsupported(s, name, field(s, name), wanted ? "true" : "false", err);
    return ERR_OK;
}

/* Absent, or one of two known words. */
static err_code refuse_other_word(const source *s, const char *name, const char *known, const char *synonym,
                                  error *err) {
    const json *value = field(s, name);
    if (!value || json_string_is(value, known) || json_string_is(value, synonym)) return ERR_OK;
    return unsupported(s, name, value, known, err);
}

static err_code read_model_type(const source *s, model_config *c, error *err) {
    const json *value = json_get(s->top, "model_type");
    if (!json_is(value, JSON_STRING)) return bad_value(s, "model_type", value, "a string", err);
    size_t size = value->text.size < sizeof c->model_type - 1 ? value->text.size : sizeof c->model_type - 1;
    memcpy(c->model_type, value->text.data, size);
    if (!json_string_is(value, "qwen3_5") && !json_string_is(value, "qwen3_5_text"))
        return unsupported(s, "model_type", value, "qwen3_5 and qwen3_5_text", err);
    const json *inner = json_get(s->text, "model_type");
    if (inner && !json_string_is(inner, "qwen3_5_text") && !json_string_is(inner, "qwen3_5"))
        return unsupported(s, "text_config.model_type", inner, "qwen3_5_text", err);
    return ERR_OK;
}

static err_code refuse_unknown(const source *s, error *err) {
    const json *experts = field(s, "num_experts");
    if (experts) return unsupported(s, "num_experts", experts, "dense models", err);
    ERR_TRY(refuse_other_word(s, "hidden_act", "silu", "swish", err));
    ERR_TRY(refuse_other_word(s, "output_gate_type", "swish", "silu", err));
    ERR_TRY(refuse_unless(s, "attention_bias", false, err));
    ERR_TRY(refuse_unless(s, "attn_output_gate", true, err));
    ERR_TRY(refuse_unless(s, "mtp_use_dedicated_embeddings", false, err));
    ERR_TRY(refuse_unless(s, "use_sliding_window", false, err));
    bool windows_off = json_is(field(s, "use_sliding_window"), JSON_FALSE);
    if (field(s, "sliding_window") && !windows_off)
        return unsupported(s, "sliding_window", field(s, "sliding_window"), "null", err);
    return ERR_OK;
}

static err_code read_sizes(const source *s, model_config *c, error *err) {
    double eps;
    ERR_TRY(read_int(s, "num_hidden_layers", 1, LAYERS_MAX, &c->layers, err));
    ERR_TRY(read_int(s, "hidden_size", 1, 1 << 16, &c->hidden, err));
    ERR_TRY(read_int(s, "intermediate_size", 1, 1 << 20, &c->ffn, err));
    ERR_TRY(read_int(s, "vocab_size", 1, 1 << 24, &c->vocab_rows, err));
    ERR_TRY(read_i64(s, "max_position_embeddings", 1, 1 << 30, &c->context_max, err));
    ERR_TRY(read_number_or(s, "rms_norm_eps", 1e-6, 0, 1, &eps, err));
    c->norm_eps = (float)eps;
    return read_int_or(s, "mtp_num_hidden_layers", 0, 0, 1, &c->mtp_layers, err);
}

static err_code must_divide(const source *s, const char *name, int value, const char *by, int divisor, error *err) {
    if (value % divisor)
        ERR_FAIL(err, ERR_FORMAT, "%s: %s %d is not a multiple of %s %d", s->file, name, value, by, divisor);
    return ERR_OK;
}

static err_code read_attention(const source *s, model_config *c, error *err) {
    ERR_TRY(read_int(s, "num_attention_heads", 1, 1024, &c->heads, err));
    ERR_TRY(read_int(s, "num_key_value_heads", 1, 1024, &c->kv_heads, err));
    ERR_TRY(read_int(s, "head_dim", 2, HEAD_DIM_MAX, &c->head_dim, err));
    return must_divide(s, "num_attention_heads", c->heads, "num_key_value_heads", c->kv_heads, err);
}

static err_code read_gdn(const source *s, model_config *c, error *err) {
    ERR_TRY(read_int(s, "linear_num_key_heads", 1, 1024, &c->key_heads, err));
    ERR_TRY(read_int(s, "linear_num_value_heads", 1, 1024, &c->value_heads, err));
    ERR_TRY(read_int(s, "linear_key_head_dim", 1, GDN_DIM_MAX, &c->key_dim, err));
    ERR_TRY(read_int(s, "linear_value_head_dim", 1, GDN_DIM_MAX, &c->value_dim, err));
    ERR_TRY(read_int(s, "linear_conv_kernel_dim", 1, 64, &c->conv_taps, err));
    if (c->conv_taps != 4)
        return unsupported(s, "linear_conv_kernel_dim", field(s, "linear_conv_kernel_dim"), "4", err);
    c->channels = 2 * c->key_heads * c->key_dim + c->value_heads * c->value_dim;
    return must_divide(s, "linear_num_value_heads", c->value_heads, "linear_num_key_heads", c->key_heads, err);
}

static err_code layer_types_listed(const source *s, const json *list, model_config *c, error *err) {
    if (!json_is(list, JSON_ARRAY) || (int64_t)list->count != c->layers)
        return bad_value(s, "layer_types", list, "an array of num_hidden_layers names", err);
    int i = 0;
    for (const json *item = list->first; item; item = item->next, i++) {
        c->full_attention[i] = json_string_is(item, "full_attention");
        if (!c->full_attention[i] && !json_string_is(item, "linear_attention"))
            return unsupported(s, "layer_types", item, "full_attention and linear_attention", err);
    }
    return ERR_OK;
}

static err_code read_layer_types(const source *s, model_config *c, error *err) {
    const json *list = field(s, "layer_types");
    if (list) {
        ERR_TRY(layer_types_listed(s, list, c, err));
    } else {
        int interval;
        ERR_TRY(read_int(s, "full_attention_interval", 1, LAYERS_MAX, &interval, err));
        for (int i = 0; i < c->layers; i++) c->full_attention[i] = (i + 1) % interval == 0;
    }
    for (int i = 0; i < c->layers; i++) c->attention_layers += c->full_attention[i];
    c->gdn_layers = c->layers - c->attention_layers;
    return ERR_OK;
}

/* rope_type (older files: type) must say that positions are plain. Multi-axis sections are fine: for text all axes hold
 * the same position. */
static err_code check_rope_type(const source *s, const char *name, const json *rope, error *err) {
    static const char *const keys[] = {"rope_type", "type"};
    for (int i = 0; i < 2; i++) {
        const json *type = json_get(rope, keys[i]);
        char full[64];
        snprintf(full, sizeof full, "%s.%s", name, keys[i]);
        if (type && !json_string_is(type, "default")) return unsupported(s, full, type, "default", err);
    }
    return ERR_OK;
}

/* A number that may stand in the rope object, beside it, or in both; then they must agree. */
static err_code read_rope_number(const source *s, const json *rope, const char *name, double min, double max,
                                 double *out, error *err) {
    const json *outer = field(s, name), *inner = json_get(rope, name);
    double a, b;
    if (!inner) inner = outer;
    if (!outer) outer = inner;
    if (!inner || !json_double(inner, &a) || !(a >= min && a <= max)) return range_error(s, name, inner, min, max, err);
    if (!json_double(outer, &b) || a != b)
        ERR_FAIL(err, ERR_FORMAT, "%s: %s is %.*s in the rope parameters but %.*s beside them", s->file, name,
                 shown(inner), inner->source.data, shown(outer), outer->source.data);
    *out = a;
    return ERR_OK;
}

static err_code read_rope(const source *s, model_config *c, error *err) {
    const char *name = field(s, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json *rope = field(s, name);
    double factor;
    if (rope && !json_is(rope, JSON_OBJECT)) return bad_value(s, name, rope, "an object", err);
    ERR_TRY(check_rope_type(s, name, rope, err));
    if (field(s, "rope_scaling")) ERR_TRY(check_rope_type(s, "rope_scaling", field(s, "rope_scaling"), err));
    ERR_TRY(read_rope_number(s, rope, "rope_theta", 1, 1e15, &c->rope_theta, err));
    ERR_TRY(read_rope_number(s, rope, "partial_rotary_factor", 0, 1, &factor, err));
    c->rotary_dim = (int)((double)c->head_dim * factor);
    if (c->rotary_dim < 2 || c->rotary_dim % 2)
        ERR_FAIL(err, ERR_FORMAT,
                 "%s: head_dim %d times partial_rotary_factor %g gives %d rotary dimensions, not an even number",
                 s->file, c->head_dim, factor, c->rotary_dim);
    return ERR_OK;
}

/* The text model's own field wins; where it is silent the outer one counts, as in transformers' composite models. */
static err_code read_tied(const source *s, model_config *c, error *err) {
    const json *inner = json_get(s->text, "tie_word_embeddings"), *outer = json_get(s->top, "tie_word_embeddings");
    if (inner && outer && inner->type != outer->type)
        ERR_FAIL(err, ERR_FORMAT, "%s: tie_word_embeddings is %.*s in text_config but %.*s outside", s->file,
                 shown(inner), inner->source.data, shown(outer), outer->source.data);
    return read_bool_or(s, "tie_word_embeddings", false, &c->tied_head, err);
}

static err_code add_stop_id(const source *s, const json *value, model_config *c, error *err) {
    int64_t id;
    if (!json_integer(value, &id) || id < 0 || id >= c->vocab_rows)
        return range_error(s, "eos_token_id", value, 0, c->vocab_rows - 1, err);
    for (int i = 0; i < c->stop_count; i++)
        if (c->stop_ids[i] == id) return ERR_OK;
    if (c->stop_count == STOP_IDS_MAX)
        ERR_FAIL(err, ERR_LIMIT, "%s: eos_token_id: more than %d ids", s->file, STOP_IDS_MAX);
    c->stop_ids[c->stop_count++] = (int32_t)id;
    return ERR_OK;
}

static err_code read_stop_ids(const source *s, model_config *c, error *err) {
    const json *value = field(s, "eos_token_id");
    if (!value) return ERR_OK;
    c->stop_count = 0; /* generation_config.json replaces what config.json said */
    if (!json_is(value, JSON_ARRAY)) return add_stop_id(s, value, c, err);
    for (const json *item = value->first; item; item = item->next) ERR_TRY(add_stop_id(s, item, c, err));
    return ERR_OK;
}

static err_code read_sampling(const source *s, model_config *c, error *err) {
    double temperature, top_p, min_p;
    ERR_TRY(read_number_or(s, "temperature", 1, 0, 100, &temperature, err));
    ERR_TRY(read_number_or(s, "top_p", 1, 0, 1, &top_p, err));
    ERR_TRY(read_number_or(s, "min_p", 0, 0, 1, &min_p, err));
    ERR_TRY(read_int_or(s, "top_k", 0, 0, 1 << 24, &c->top_k, err));
    c->temperature = (float)temperature, c->top_p = (float)top_p, c->min_p = (float)min_p;
    return read_bool_or(s, "do_sample", true, &c->do_sample, err);
}

static err_code read_model(const source *s, model_config *c, error *err) {
    ERR_TRY(read_model_type(s, c, err));
    ERR_TRY(refuse_unknown(s, err));
    ERR_TRY(read_sizes(s, c, err));
    ERR_TRY(read_attention(s, c, err));
    ERR_TRY(read_gdn(s, c, err));
    ERR_TRY(read_layer_types(s, c, err));
    ERR_TRY(read_rope(s, c, err));
    ERR_TRY(read_tied(s, c, err));
    c->vision = json_is(json_get(s->top, "vision_config"), JSON_OBJECT);
    return read_stop_ids(s, c, err);
}

static err_code read_generation(const source *s, model_config *c, error *err) {
    ERR_TRY(read_stop_ids(s, c, err));
    return read_sampling(s, c, err);
}

/* Parses DIR/name and hands it to read. */
static err_code read_file(const char *dir, const char *name, err_code (*read)(const source *, model_config *, error *),
                          model_config *c, error *err) {
    char *path = file_join(dir, name);
    buffer bytes = {0};
    arena *a = arena_create();
    source s = {.file = name};
    error inner = {0};
    err_code code = file_read(path, CONFIG_BYTES_MAX, &bytes, err);
    if (!code && json_parse(a, span_make(bytes.data, bytes.size), JSON_DEPTH_DEFAULT, &s.top, &inner))
        code = error_set(err, ERR_FORMAT, __FILE__, __LINE__, "%s: %s", path, inner.message);
    if (!code && !json_is(s.top, JSON_OBJECT))
        code = error_set(err, ERR_FORMAT, __FILE__, __LINE__, "%s: not an object", path);
    if (!code) {
        s.text = json_get(s.top, "text_config");
        code = read(&s, c, err);
    }
    arena_destroy(a);
    buffer_deinit(&bytes);
    free(path);
    return code;
}

err_code model_config_read(const char *dir, model_config *out, error *err) {
    *out = (model_config){.temperature = 1, .top_p = 1, .do_sample = true};
    ERR_TRY(read_file(dir, "config.json", read_model, out, err));
    char *path = file_join(dir, "generation_config.json");
    bool present = file_exists(path);
    free(path);
    return present ? read_file(dir, "generation_config.json", read_generation, out, err) : ERR_OK;
}
