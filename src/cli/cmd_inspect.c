/* hearth inspect: what a checkpoint holds, what it will cost, and what looks wrong, without loading it.
 *
 * Tensors are grouped by name with the layer numbers taken out, so that a thousand tensors read as a page. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/cli.h"
#include "cli/stored_format.h"
#include "format/checkpoint.h"
#include "model/model.h"
#include "text/chat.h"

typedef struct group {
    char name[200]; /* "model.layers.*.mlp.up_proj.weight" */
    const tensor *sample;
    stored_format format;
    bool same_shape;
    int count;
    uint64_t bytes;
} group;

static int warnings;

static void warn(const char *what, const char *detail) {
    printf("warning: %s%s\n", what, detail);
    warnings++;
}

static void print_size(uint64_t bytes) {
    if (bytes >= 1000000000)
        printf("%.2f GB", (double)bytes / 1e9);
    else if (bytes >= 1000000)
        printf("%.2f MB", (double)bytes / 1e6);
    else
        printf("%.2f kB", (double)bytes / 1e3);
}

/* Runs of digits that make up a whole name part become '*'. */
static void group_name(const char *name, char *out, size_t size) {
    size_t n = 0;
    for (const char *p = name; *p && n + 2 < size;) {
        size_t part = strcspn(p, ".");
        size_t digits = strspn(p, "0123456789");
        if (part && digits == part) {
            out[n++] = '*';
        } else {
            for (size_t i = 0; i < part && n + 2 < size; i++) out[n++] = p[i];
        }
        p += part;
        if (*p == '.') out[n++] = *p++;
    }
    out[n] = 0;
}

static bool same_shape(const tensor *a, const tensor *b) {
    return a->type == b->type && a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

/* Scales belong to their matrix: they add their bytes to its group. */
static int make_groups(const checkpoint *c, group *groups) {
    int count = 0;
    for (int i = 0; i < checkpoint_count(c); i++) {
        const tensor *t = checkpoint_at(c, i);
        stored_format format = stored_format_of(c, t);
        const tensor *owner = format.owner;
        char name[sizeof groups->name];
        group_name(owner->name, name, sizeof name);
        int g = 0;
        while (g < count && (strcmp(groups[g].name, name) || strcmp(groups[g].format.name, format.name))) g++;
        if (g == count) {
            groups[count++] = (group){.sample = owner, .format = format, .same_shape = true};
            memcpy(groups[g].name, name, sizeof name);
        }
        groups[g].same_shape &= same_shape(groups[g].sample, owner);
        groups[g].count += t == owner;
        groups[g].bytes += t->bytes;
    }
    return count;
}

static void print_shape(const tensor *t, int columns_per_element) {
    putchar('[');
    for (int i = 0; i < t->rank; i++)
        printf("%s%" PRId64, i ? ", " : "", t->shape[i] * (i + 1 == t->rank ? columns_per_element : 1));
    putchar(']');
}

/* Each format once, with the bytes of all groups that have it. */
static void print_formats(const group *groups, int count) {
    printf("formats\n");
    for (int i = 0; i < count; i++) {
        const char *name = groups[i].format.name;
        uint64_t bytes = 0;
        bool first = true;
        for (int k = 0; k < count; k++) {
            if (strcmp(groups[k].format.name, name)) continue;
            first &= k >= i;
            bytes += groups[k].bytes;
        }
        if (!first) continue;
        printf("  %-10s ", name);
        print_size(bytes);
        putchar('\n');
    }
}

static void print_groups(const checkpoint *c) {
    group *groups = mem_zero((size_t)checkpoint_count(c), sizeof *groups);
    int count = make_groups(c, groups);
    printf("tensors (%d); packed matrices with their scales\n", checkpoint_count(c));
    for (int i = 0; i < count; i++) {
        const group *g = &groups[i];
        printf("  %-72s %4d x %-10s ", g->name, g->count, g->format.name);
        print_shape(g->sample, g->format.columns_per_element);
        printf("%s  ", g->same_shape ? "" : " and others");
        print_size(g->bytes);
        putchar('\n');
    }
    print_formats(groups, count);
    free(groups);
}

static void print_tensors(const checkpoint *c) {
    for (int i = 0; i < checkpoint_count(c); i++) {
        const tensor *t = checkpoint_at(c, i);
        printf("  %-72s %-8s ", t->name, dtype_name(t->type));
        print_shape(t, 1);
        printf("  %s +%" PRIu64 "\n", t->file, t->offset);
    }
}

static void print_config(const model_config *c) {
    printf("model %s\n", c->model_type);
    printf("  %d layers: %d Gated DeltaNet, %d attention; %s; hidden %d, FFN %d\n", c->layers, c->gdn_layers,
           c->attention_layers, c->mtp_layers ? "MTP layer" : "no MTP layer", c->hidden, c->ffn);
    printf("  attention: %d heads, %d KV heads, head_dim %d, %d rotary\n", c->heads, c->kv_heads, c->head_dim,
           c->rotary_dim);
    printf("  DeltaNet: %d key heads x %d, %d value heads x %d\n", c->key_heads, c->key_dim, c->value_heads,
           c->value_dim);
    printf("  vocabulary: %d rows, %s head; context at most %" PRId64 "\n", c->vocab_rows,
           c->tied_head ? "tied" : "own", c->context_max);
    printf("  stop ids:");
    for (int i = 0; i < c->stop_count; i++) printf(" %d", c->stop_ids[i]);
    printf("; sampling: temperature %g, top_p %g, top_k %d\n", (double)c->temperature, (double)c->top_p, c->top_k);
    if (!c->stop_count) warn("no stop id: answers end only at their token limit", "");
    if (!c->mtp_layers) warn("no MTP layer: nothing to draft with but context lookup", "");
}

static void print_budget(const checkpoint *c, const model_config *config, dtype kv_type, int context, int parallel) {
    uint64_t weights = 0;
    for (int i = 0; i < checkpoint_count(c); i++) {
        const tensor *t = checkpoint_at(c, i);
        if (strncmp(t->name, "model.visual.", 13)) weights += t->bytes;
    }
    uint64_t page = model_kv_page_bytes(config, kv_type);
    uint64_t pages = ((uint64_t)context + KV_PAGE - 1) / KV_PAGE;
    uint64_t state = 4 * (uint64_t)(model_recurrent_count(config) + model_conv_count(config));
    uint64_t kv = pages * page * (uint64_t)parallel, states = state * (uint64_t)parallel, sum = weights + kv + states;
    printf("memory for %d request%s of %d tokens\n  weights          ", parallel, parallel > 1 ? "s" : "", context);
    print_size(weights);
    printf("\n  KV cache, %-7s", kv_type == DTYPE_F8_E4M3 ? "fp8" : "bf16");
    print_size(kv);
    printf(" (%.1f kB a token)\n  recurrent state  ", (double)page / KV_PAGE / 1e3);
    print_size(states);
    printf(" (a snapshot has the same size)\n  together         ");
    print_size(sum);
    unsigned long long available = memory_available();
    printf(" of ");
    print_size(available);
    printf(" available\n");
    if (sum > available) warn("this does not fit into the memory of this machine", "");
}

static void check_text(const char *dir, const model_config *config) {
    error err;
    chat_format *format;
    if (chat_format_open(dir, false, &format, &err) != ERR_OK) {
        warn("no usable tokenizer or template: ", err.message);
        return;
    }
    const tokenizer *t = chat_format_tokenizer(format);
    printf("tokenizer: %d ids\n", tokenizer_count(t));
    if (config && tokenizer_count(t) > config->vocab_rows)
        warn("the tokenizer has more ids than the embedding has rows", "");
    for (int i = 0; config && i < config->stop_count; i++)
        if (config->stop_ids[i] >= tokenizer_count(t)) warn("a stop id is not in the tokenizer", "");
    chat_format_close(format);
    char *file = file_join(dir, "chat_template.jinja");
    if (!file_exists(file)) warn("no chat_template.jinja; tokenizer_config.json must have the template", "");
    free(file);
}

/* Reads every floating-point weight once: what is not finite, and what is all zero. */
static void scan_tensor(const tensor *t) {
    uint64_t bad = 0, non_zero = 0;
    for (uint64_t i = 0; i < t->count; i++) {
        float v = 1;
        uint16_t half;
        if (t->type == DTYPE_F32) {
            memcpy(&v, (const char *)t->data + 4 * i, 4);
        } else if (t->type == DTYPE_BF16 || t->type == DTYPE_F16) {
            memcpy(&half, (const char *)t->data + 2 * i, 2);
            v = t->type == DTYPE_BF16 ? bf16_to_f32(half) : f16_to_f32(half);
        } else {
            return; /* packed formats are checked when they are loaded */
        }
        bad += !isfinite(v);
        non_zero += v != 0;
    }
    if (bad) warn("NaN or infinite numbers in ", t->name);
    if (t->count && !non_zero) warn("all zero: ", t->name);
}

int cmd_inspect(int argc, char **argv) {
    bool all = false, scan = false;
    int context = 32768, parallel = 1;
    const flag flags[] = {
        {"tensors", FLAG_SWITCH, &all, NULL, "list every tensor with file and offset", 0, 0},
        {"scan", FLAG_SWITCH, &scan, NULL, "read all weights: look for NaN, infinities and all-zero tensors", 0, 0},
        {"context", FLAG_INT, &context, "N", "tokens of a request, for the memory budget (32768)", 1, 1 << 24},
        {"parallel", FLAG_INT, &parallel, "N", "requests at once, for the memory budget (1)", 1, 1024},
        {0},
    };
    const cli_spec spec = {
        .command = "inspect",
        .operands = "MODEL [options]",
        .about =
            "Shows a checkpoint's tensors, formats, memory budget and what looks wrong.\n"
            "Exit status 1 when it cannot be loaded.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    const char *dir = arguments.items[0];
    error err;
    checkpoint *c;
    if (checkpoint_open(dir, &c, &err) != ERR_OK) return cli_fail(&err);
    model_config config;
    err_code known = model_config_read(dir, &config, &err);
    bool readable = known == ERR_OK;
    model *m = NULL;
    if (readable) { /* binding the weights finds what is missing, unknown, mis-shaped or cannot be right */
        print_config(&config);
        known = model_open(dir, &(model_options){.rows_max = 1, .segments_max = 1}, &m, &err);
    }
    if (m) printf("quantisation: %s\n", model_quantization(m));
    if (all)
        print_tensors(c);
    else
        print_groups(c);
    if (scan)
        for (int i = 0; i < checkpoint_count(c); i++) scan_tensor(checkpoint_at(c, i));
    if (readable) print_budget(c, &config, m ? model_kv_default(m) : DTYPE_BF16, context, parallel);
    for (int i = 0; m && i < model_warning_count(m); i++) warn("", model_warning(m, i));
    check_text(dir, readable ? &config : NULL);
    model_close(m);
    checkpoint_close(c);
    printf("%d warning%s\n", warnings, warnings == 1 ? "" : "s");
    return known == ERR_OK ? 0 : cli_fail(&err);
}
