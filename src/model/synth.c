/* See synth.h. Shapes are those of the published Qwen3.5 / 3.6 models, apart from "tiny".
 *
 * Weights: a tensor is cut into chunks of CHUNK elements; a chunk's generator is seeded by (seed, tensor name, chunk), so
 * chunks can be made in any order by any thread. An element is one of 4096 equally likely values of the wanted
 * distribution, looked up by 12 random bits: five elements per 64-bit draw, faster than a disk takes them. */
#include "model/synth.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "format/safetensors_write.h"
#include "model/synth_text.h"
#include "text/tokenizer.h"

typedef struct shape {
    const char *name;
    int layers, hidden, ffn, heads, kv_heads, head_dim, key_heads, value_heads, gdn_dim;
    bool tied;
} shape;

static const shape shapes[] = {
    {"tiny", 4, 128, 256, 4, 2, 64, 2, 4, 32, true},         {"0.8b", 24, 1024, 3584, 8, 2, 256, 16, 16, 128, true},
    {"2b", 24, 2048, 6144, 8, 2, 256, 16, 16, 128, true},    {"4b", 32, 2560, 9216, 16, 4, 256, 16, 32, 128, true},
    {"9b", 32, 4096, 12288, 16, 4, 256, 16, 32, 128, false}, {"27b", 64, 5120, 17408, 24, 4, 256, 16, 48, 128, false},
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes, INTERVAL = 4, VOCAB_STEP = 256 };

/* What a tensor is filled with. */
typedef enum { FILL_NORMAL, FILL_UNIFORM } fill_kind;
typedef struct fill {
    fill_kind kind;
    float a, b; /* NORMAL: mean, deviation. UNIFORM: from, to */
} fill;

typedef struct plan {
    arena *names;
    tensor_plan *tensors; /* owned */
    fill *fills;          /* owned */
    int count, capacity;
} plan;

static void plan_add(plan *p, const char *prefix, const char *name, fill f, int rank, const int64_t *dims) {
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 256;
        p->tensors = mem_grow(p->tensors, (size_t)p->capacity, sizeof *p->tensors);
        p->fills = mem_grow(p->fills, (size_t)p->capacity, sizeof *p->fills);
    }
    char full[160];
    int length = snprintf(full, sizeof full, "%s%s", prefix, name);
    tensor_plan *t = &p->tensors[p->count];
    *t = (tensor_plan){.name = arena_copy(p->names, full, (size_t)length), .type = DTYPE_BF16, .rank = rank};
    memcpy(t->shape, dims, (size_t)rank * sizeof *dims);
    p->fills[p->count++] = f;
}

static void add_vector(plan *p, const char *prefix, const char *name, fill f, int64_t n) {
    plan_add(p, prefix, name, f, 1, &n);
}

static void add_norm(plan *p, const char *prefix, const char *name, float mean, int64_t n) {
    add_vector(p, prefix, name, (fill){FILL_NORMAL, mean, 0.1f}, n);
}

static void add_linear(plan *p, const char *prefix, const char *name, float gain, int64_t rows, int64_t cols) {
    plan_add(p, prefix, name, (fill){FILL_NORMAL, 0, gain / sqrtf((float)cols)}, 2, (int64_t[]){rows, cols});
}

static void add_attention(plan *p, const char *layer, const shape *s, float gain) {
    int64_t q = (int64_t)s->heads * s->head_dim, kv = (int64_t)s->kv_heads * s->head_dim;
    add_linear(p, layer, "self_attn.q_proj.weight", 1, 2 * q, s->hidden);
    add_linear(p, layer, "self_attn.k_proj.weight", 1, kv, s->hidden);
    add_linear(p, layer, "self_attn.v_proj.weight", 1, kv, s->hidden);
    add_linear(p, layer, "self_attn.o_proj.weight", gain, s->hidden, q);
    add_norm(p, layer, "self_attn.q_norm.weight", 0.4f, s->head_dim); /* sharper than uniform attention */
    add_norm(p, layer, "self_attn.k_norm.weight", 0.4f, s->head_dim);
}

static void add_gdn(plan *p, const char *layer, const shape *s, float gain) {
    int64_t keys = (int64_t)s->key_heads * s->gdn_dim, values = (int64_t)s->value_heads * s->gdn_dim;
    int64_t channels = 2 * keys + values;
    add_linear(p, layer, "linear_attn.in_proj_qkv.weight", 1, channels, s->hidden);
    add_linear(p, layer, "linear_attn.in_proj_z.weight", 1, values, s->hidden);
    add_linear(p, layer, "linear_attn.in_proj_b.weight", 1, s->value_heads, s->hidden);
    add_linear(p, layer, "linear_attn.in_proj_a.weight", 0.5f, s->value_heads, s->hidden);
    add_linear(p, layer, "linear_attn.out_proj.weight", gain, s->hidden, values);
    plan_add(p, layer, "linear_attn.conv1d.weight", (fill){FILL_NORMAL, 0, 0.6f}, 3, (int64_t[]){channels, 1, 4});
    add_vector(p, layer, "linear_attn.A_log", (fill){FILL_UNIFORM, -3, 2}, s->value_heads);
    add_vector(p, layer, "linear_attn.dt_bias", (fill){FILL_UNIFORM, -5, -0.5f}, s->value_heads);
    add_norm(p, layer, "linear_attn.norm.weight", 1, s->gdn_dim);
}

static void add_layer(plan *p, const char *layer, const shape *s, bool full_attention, float gain) {
    add_norm(p, layer, "input_layernorm.weight", 0, s->hidden);
    add_norm(p, layer, "post_attention_layernorm.weight", 0, s->hidden);
    if (full_attention)
        add_attention(p, layer, s, gain);
    else
        add_gdn(p, layer, s, gain);
    add_linear(p, layer, "mlp.gate_proj.weight", 1.3f, s->ffn, s->hidden);
    add_linear(p, layer, "mlp.up_proj.weight", 1.3f, s->ffn, s->hidden);
    add_linear(p, layer, "mlp.down_proj.weight", gain, s->hidden, s->ffn);
}

/* Logits should deviate by about 3.5, as trained models' do; with a tied head the final norm sets that scale. */
static const float logit_deviation = 3.5f;

static void make_plan(plan *p, const shape *s, int64_t vocab) {
    const char *model = "model.language_model.";
    float embed = s->tied ? 0.3f : 1, gain = 1;
    float last_norm = s->tied ? logit_deviation / (embed * sqrtf((float)s->hidden)) - 1 : 0;
    plan_add(p, model, "embed_tokens.weight", (fill){FILL_NORMAL, 0, embed}, 2, (int64_t[]){vocab, s->hidden});
    for (int i = 0; i < s->layers; i++) {
        char layer[64];
        snprintf(layer, sizeof layer, "%slayers.%d.", model, i);
        add_layer(p, layer, s, (i + 1) % INTERVAL == 0, gain);
    }
    add_norm(p, model, "norm.weight", last_norm, s->hidden);
    if (!s->tied) add_linear(p, "", "lm_head.weight", logit_deviation, vocab, s->hidden);
    add_norm(p, "mtp.", "pre_fc_norm_embedding.weight", 0, s->hidden);
    add_norm(p, "mtp.", "pre_fc_norm_hidden.weight", 0, s->hidden);
    add_norm(p, "mtp.", "norm.weight", last_norm, s->hidden);
    add_linear(p, "mtp.", "fc.weight", 1, s->hidden, 2 * s->hidden);
    add_layer(p, "mtp.layers.0.", s, true, gain);
}

static void plan_deinit(plan *p) {
    free(p->tensors);
    free(p->fills);
    arena_destroy(p->names);
}

/* ---- values */

enum { TABLE = 4096, CHUNK = 5 << 18 }; /* elements; a multiple of 5 */

/* Quantile function of the normal distribution by bisection of erfc: exact enough for bf16 and the same everywhere,
 * since the result is rounded to 8 bits; made once per distinct scale. */
static double normal_quantile(double p) {
    double lo = -8, hi = 8;
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        if (0.5 * erfc(-mid / sqrt(2)) < p)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void make_table(uint16_t table[TABLE], const double quantiles[TABLE], const fill *f) {
    for (int i = 0; i < TABLE; i++) {
        double u = (i + 0.5) / TABLE;
        double value = f->kind == FILL_NORMAL ? f->a + f->b * quantiles[i] : f->a + (f->b - f->a) * u;
        table[i] = f32_to_bf16((float)value);
    }
}

static uint64_t mix(uint64_t z) { /* SplitMix64's finaliser */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t name_hash(uint64_t seed, const char *name) { /* FNV-1a over the name, then mixed with the seed */
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return mix(h ^ mix(seed + 0x9e3779b97f4a7c15u));
}

static void fill_chunk(uint16_t *out, size_t count, const uint16_t table[TABLE], uint64_t key) {
    size_t i = 0;
    for (uint64_t n = 0; i < count; n++) {
        uint64_t bits = mix(key + n * 0x9e3779b97f4a7c15u);
        for (int k = 0; k < 5 && i < count; k++, bits >>= 12) out[i++] = table[bits & (TABLE - 1)];
    }
}

typedef struct batch {
    uint16_t *out;
    uint64_t first_chunk, count; /* chunk number of out[0], elements in the batch */
    const uint16_t *table;
    uint64_t key;
} batch;

static void batch_task(void *context, int index) {
    batch *b = context;
    uint64_t begin = (uint64_t)index * CHUNK, left = b->count - begin;
    fill_chunk(b->out + begin, left < CHUNK ? left : CHUNK, b->table, mix(b->key + b->first_chunk + (uint64_t)index));
}

typedef struct maker {
    const synth_options *options;
    double *quantiles; /* [TABLE] */
    uint16_t *out;     /* one batch */
    uint64_t done, total;
} maker;

enum { BATCH_CHUNKS = 16 };

static err_code write_tensor(maker *m, safetensors_writer *w, const tensor_plan *t, const fill *f, error *err) {
    uint16_t table[TABLE];
    make_table(table, m->quantiles, f);
    uint64_t count = tensor_plan_count(t), key = name_hash(m->options->seed, t->name);
    for (uint64_t at = 0; at < count; at += (uint64_t)BATCH_CHUNKS * CHUNK) {
        uint64_t n = count - at < (uint64_t)BATCH_CHUNKS * CHUNK ? count - at : (uint64_t)BATCH_CHUNKS * CHUNK;
        batch b = {m->out, at / CHUNK, n, table, key};
        pool_run(m->options->pool, (int)((n + CHUNK - 1) / CHUNK), batch_task, &b);
        ERR_TRY(safetensors_write_data(w, m->out, n * sizeof *m->out, err));
        m->done += n * sizeof *m->out;
        if (m->options->progress) m->options->progress(m->options->progress_context, m->done, m->total);
    }
    return ERR_OK;
}

/* ---- files */

static const uint64_t shard_bytes_max = (uint64_t)4 << 30;

/* Tensors [first, end) of the shard that starts at first. */
static int shard_end(const plan *p, int first) {
    uint64_t bytes = 0;
    int end = first;
    while (end < p->count && (end == first || bytes + tensor_plan_bytes(&p->tensors[end]) <= shard_bytes_max))
        bytes += tensor_plan_bytes(&p->tensors[end++]);
    return end;
}

static err_code write_shard(maker *m, const plan *p, int first, int end, const char *path, error *err) {
    safetensors_writer *w;
    ERR_TRY(safetensors_write_begin(path, p->tensors + first, end - first, &w, err));
    for (int i = first; i < end; i++) {
        err_code code = write_tensor(m, w, &p->tensors[i], &p->fills[i], err);
        if (code != ERR_OK) {
            safetensors_write_abort(w);
            return code;
        }
    }
    return safetensors_write_end(w, err);
}

static err_code write_text(const char *dir, const char *name, span text, error *err) {
    char *path = file_join(dir, name);
    err_code code = file_write_atomic(path, text, err);
    free(path);
    return code;
}

static err_code write_weights(maker *m, const plan *p, const char *dir, error *err) {
    int shards = 0;
    for (int at = 0; at < p->count; at = shard_end(p, at)) shards++;
    buffer index = {0};
    buffer_printf(&index, "{\"metadata\": {\"total_size\": %llu}, \"weight_map\": {", (unsigned long long)m->total);
    err_code code = ERR_OK;
    for (int at = 0, number = 1; at < p->count && code == ERR_OK; number++) {
        char name[64];
        if (shards == 1)
            snprintf(name, sizeof name, "model.safetensors");
        else
            snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", number, shards);
        int end = shard_end(p, at);
        for (int i = at; i < end; i++)
            buffer_printf(&index, "%s\n\"%s\": \"%s\"", i ? "," : "", p->tensors[i].name, name);
        char *path = file_join(dir, name);
        code = write_shard(m, p, at, end, path, err);
        free(path);
        at = end;
    }
    buffer_text(&index, "}}\n");
    if (code == ERR_OK && shards > 1)
        code = write_text(dir, "model.safetensors.index.json", span_make(index.data, index.size), err);
    buffer_deinit(&index);
    return code;
}

static void append_layer_types(buffer *out, const shape *s) {
    for (int i = 0; i < s->layers; i++)
        buffer_printf(out, "%s\"%s_attention\"", i ? ", " : "", (i + 1) % INTERVAL ? "linear" : "full");
}

static err_code write_config(const char *dir, const shape *s, int64_t vocab, const int32_t stop[2], error *err) {
    buffer b = {0};
    buffer_printf(&b,
                  "{\n  \"architectures\": [\"Qwen3_5ForConditionalGeneration\"],\n  \"model_type\": \"qwen3_5\",\n"
                  "  \"tie_word_embeddings\": %s,\n  \"text_config\": {\n    \"model_type\": \"qwen3_5_text\",\n"
                  "    \"attention_bias\": false,\n    \"attn_output_gate\": true,\n    \"dtype\": \"bfloat16\",\n"
                  "    \"eos_token_id\": %d,\n    \"full_attention_interval\": %d,\n    \"head_dim\": %d,\n"
                  "    \"hidden_act\": \"silu\",\n    \"hidden_size\": %d,\n    \"intermediate_size\": %d,\n"
                  "    \"linear_conv_kernel_dim\": 4,\n    \"linear_key_head_dim\": %d,\n"
                  "    \"linear_num_key_heads\": %d,\n    \"linear_num_value_heads\": %d,\n"
                  "    \"linear_value_head_dim\": %d,\n    \"mamba_ssm_dtype\": \"float32\",\n"
                  "    \"max_position_embeddings\": 262144,\n    \"mtp_num_hidden_layers\": 1,\n"
                  "    \"mtp_use_dedicated_embeddings\": false,\n    \"num_attention_heads\": %d,\n"
                  "    \"num_hidden_layers\": %d,\n    \"num_key_value_heads\": %d,\n    \"rms_norm_eps\": 1e-06,\n"
                  "    \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000, "
                  "\"partial_rotary_factor\": 0.25},\n    \"tie_word_embeddings\": %s,\n    \"vocab_size\": %lld,\n"
                  "    \"layer_types\": [",
                  s->tied ? "true" : "false", stop[0], INTERVAL, s->head_dim, s->hidden, s->ffn, s->gdn_dim,
                  s->key_heads, s->value_heads, s->gdn_dim, s->heads, s->layers, s->kv_heads,
                  s->tied ? "true" : "false", (long long)vocab);
    append_layer_types(&b, s);
    buffer_text(&b, "]\n  }\n}\n");
    err_code code = write_text(dir, "config.json", span_make(b.data, b.size), err);
    buffer_clear(&b);
    buffer_printf(
        &b,
        "{\n  \"do_sample\": true,\n  \"eos_token_id\": [%d, %d],\n  \"temperature\": 1.0,\n  \"top_k\": 20,\n"
        "  \"top_p\": 0.95\n}\n",
        stop[0], stop[1]);
    if (code == ERR_OK) code = write_text(dir, "generation_config.json", span_make(b.data, b.size), err);
    buffer_deinit(&b);
    return code;
}

static err_code copy_file(const char *from_dir, const char *to_dir, const char *name, bool needed, error *err) {
    char *from = file_join(from_dir, name);
    err_code code = ERR_OK;
    if (needed || file_exists(from)) {
        buffer b = {0};
        code = file_read(from, (size_t)256 << 20, &b, err);
        if (code == ERR_OK) code = write_text(to_dir, name, span_make(b.data, b.size), err);
        buffer_deinit(&b);
    }
    free(from);
    return code;
}

static err_code write_tokenizer(const char *dir, const synth_options *options, error *err) {
    if (options->tokenizer_dir) {
        ERR_TRY(copy_file(options->tokenizer_dir, dir, "tokenizer.json", true, err));
        ERR_TRY(copy_file(options->tokenizer_dir, dir, "tokenizer_config.json", false, err));
        return copy_file(options->tokenizer_dir, dir, "chat_template.jinja", false, err);
    }
    buffer b = {0};
    synth_tokenizer_json(&b);
    err_code code = write_text(dir, "tokenizer.json", span_make(b.data, b.size), err);
    buffer_deinit(&b);
    ERR_TRY(code);
    ERR_TRY(write_text(dir, "tokenizer_config.json", span_text(synth_tokenizer_config), err));
    return write_text(dir, "chat_template.jinja", span_text(synth_chat_template), err);
}

/* Stop ids: the end of a turn and of a text, where the tokenizer has them; else its last id. */
static err_code read_vocabulary(const char *dir, int64_t *vocab, int32_t stop[2], error *err) {
    tokenizer *t;
    ERR_TRY(tokenizer_open(dir, &t, err));
    int32_t count = tokenizer_count(t);
    stop[0] = tokenizer_find(t, span_text("<|im_end|>"));
    stop[1] = tokenizer_find(t, span_text("<|endoftext|>"));
    for (int i = 0; i < 2; i++)
        if (stop[i] < 0) stop[i] = stop[1 - i] >= 0 ? stop[1 - i] : count - 1;
    *vocab = ((int64_t)count + VOCAB_STEP - 1) / VOCAB_STEP * VOCAB_STEP;
    tokenizer_close(t);
    return ERR_OK;
}

static err_code fill_dir(const char *dir, const shape *s, const synth_options *options, error *err) {
    int64_t vocab;
    int32_t stop[2];
    ERR_TRY(write_tokenizer(dir, options, err));
    ERR_TRY(read_vocabulary(dir, &vocab, stop, err));
    ERR_TRY(write_config(dir, s, vocab, stop, err));
    plan p = {.names = arena_create()};
    make_plan(&p, s, vocab);
    maker m = {.options = options};
    for (int i = 0; i < p.count; i++) m.total += tensor_plan_bytes(&p.tensors[i]);
    m.quantiles = mem_alloc(TABLE * sizeof *m.quantiles);
    for (int i = 0; i < TABLE; i++) m.quantiles[i] = normal_quantile((i + 0.5) / TABLE);
    m.out = mem_alloc((size_t)BATCH_CHUNKS * CHUNK * sizeof *m.out);
    err_code code = write_weights(&m, &p, dir, err);
    free(m.out);
    free(m.quantiles);
    plan_deinit(&p);
    return code;
}

static bool is_empty_or_absent(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) return errno == ENOENT;
    int others = 0;
    for (struct dirent *e; (e = readdir(d));) others += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return others == 0;
}

/* Whether synth could have written it. */
static bool is_own_file(const char *name) {
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return true; /* or its temporary file */
    return !strncmp(name, "model", 5) && strstr(name, ".safetensors");
}

/* Removes what an interrupted run left: its own files only, and never through a symbolic link. */
static void remove_dir(const char *dir) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) return;
    for (struct dirent *e; (e = readdir(d));)
        if (is_own_file(e->d_name)) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(dir);
}

err_code synth_write(const char *preset, const char *dir, const synth_options *options, error *err) {
    const shape *s = NULL;
    for (int i = 0; i < SHAPE_COUNT; i++)
        if (!strcmp(shapes[i].name, preset)) s = &shapes[i];
    if (!s) {
        char known[64] = "";
        for (int i = 0; i < SHAPE_COUNT; i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", shapes[i].name);
        ERR_FAIL(err, ERR_INVALID, "unknown preset '%s' (known: %s)", preset, known);
    }
    if (!is_empty_or_absent(dir)) ERR_FAIL(err, ERR_INVALID, "%s: exists and is not an empty directory", dir);
    size_t length = strlen(dir);
    while (length > 1 && dir[length - 1] == '/') length--;
    buffer partial = {0};
    buffer_append(&partial, dir, length);
    buffer_text(&partial, ".partial");
    remove_dir(partial.data);
    err_code code = ERR_OK;
    if (!is_empty_or_absent(partial.data))
        code = error_set(err, ERR_INVALID, __FILE__, __LINE__, "%s: is in the way and not synth's own", partial.data);
    bool mine = code == ERR_OK;
    if (code == ERR_OK) code = file_make_dirs(partial.data, err);
    if (code == ERR_OK) code = fill_dir(partial.data, s, options, err);
    if (code == ERR_OK && rename(partial.data, dir) != 0)
        code = error_set(err, ERR_IO, __FILE__, __LINE__, "%s: cannot rename to %s: %s", partial.data, dir,
                         strerror(errno));
    if (code != ERR_OK && mine) remove_dir(partial.data);
    buffer_deinit(&partial);
    return code;
}
