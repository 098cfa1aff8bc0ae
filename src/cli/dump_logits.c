/* hearth dump logits: the model alone on given ids, so that its numbers can be compared with another implementation.
 *
 * Rows go to a .npy file over the whole vocabulary; a line of JSON with the greedy ids goes to stdout. The KV cache is
 * fp32 unless --kv says otherwise. Greedy choices are made among the addressable ids: rows past the tokenizer's count are
 * padding. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/dump.h"
#include "format/npy.h"
#include "model/model.h"
#include "text/tokenizer.h"

enum { PIECE = 64, NODES_MAX = 1024, DRAFTS_MAX = 64, IDS_BYTES_MAX = 64 << 20 };

typedef struct dump_options {
    const char *dir, *ids, *tree, *out;
    bool all;
    int mtp, vocab_limit;
    int kv, activations; /* places in KV_WORDS and ACTIVATIONS_WORDS */
} dump_options;

typedef struct id_list {
    int32_t *ids; /* owned */
    int count;
} id_list;

/* One dump: inputs, the model and its one sequence. */
typedef struct dump {
    dump_options o;
    id_list ids, tokens, parents; /* tokens and parents: the tree */
    model *m;
    const model_config *c;
    pool *pool;
    kv_pool kv;
    sequence seq;
    int32_t *pages;
    float *recurrent, *conv;
    float *hidden; /* [ids, hidden] */
    float *logits; /* [PIECE or nodes, vocab_rows] */
    int limit;     /* addressable ids */
    npy_writer out;
    buffer report;
} dump;

/* ---- inputs */

static err_code read_list(const json *array, const char *what, int64_t min, id_list *out, error *err) {
    if (!json_is(array, JSON_ARRAY) || !array->count) ERR_FAIL(err, ERR_INVALID, "%s is not an array of ids", what);
    out->ids = mem_alloc(array->count * sizeof *out->ids);
    for (const json *item = array->first; item; item = item->next) {
        int64_t id;
        if (!json_integer(item, &id) || id < min || id > INT32_MAX)
            ERR_FAIL(err, ERR_INVALID, "%s[%d] is %.*s, not an id", what, out->count,
                     (int)(item->source.size < 40 ? item->source.size : 40), item->source.data);
        out->ids[out->count++] = (int32_t)id;
    }
    return ERR_OK;
}

static err_code read_tree(dump *d, const json *root, error *err) {
    ERR_TRY(read_list(json_get(root, "tokens"), "tokens", 0, &d->tokens, err));
    ERR_TRY(read_list(json_get(root, "parents"), "parents", -1, &d->parents, err));
    if (d->tokens.count != d->parents.count)
        ERR_FAIL(err, ERR_INVALID, "%s: %d tokens but %d parents", d->o.tree, d->tokens.count, d->parents.count);
    if (d->tokens.count > NODES_MAX)
        ERR_FAIL(err, ERR_LIMIT, "%s: %d nodes, at most %d", d->o.tree, d->tokens.count, NODES_MAX);
    for (int i = 0; i < d->parents.count; i++)
        if (d->parents.ids[i] >= i)
            ERR_FAIL(err, ERR_INVALID, "%s: parents[%d] is %d: a parent comes before its children", d->o.tree, i,
                     (int)d->parents.ids[i]);
    return ERR_OK;
}

static err_code read_ids(dump *d, const json *root, error *err) { return read_list(root, d->o.ids, 0, &d->ids, err); }

static err_code read_json(dump *d, const char *path, err_code (*read)(dump *, const json *, error *), error *err) {
    buffer text = {0};
    arena *tree = arena_create();
    const json *root;
    error inner = {0};
    err_code code = file_read(path, IDS_BYTES_MAX, &text, err);
    if (!code && json_parse(tree, span_make(text.data, text.size), JSON_DEPTH_DEFAULT, &root, &inner))
        code = error_set(err, ERR_FORMAT, __FILE__, __LINE__, "%s: %s", path, inner.message);
    if (!code) code = read(d, root, err);
    arena_destroy(tree);
    buffer_deinit(&text);
    return code;
}

/* The tokenizer's count, where the directory has one; a --vocab-limit that contradicts it is refused, not ignored. */
static err_code find_limit(dump *d, error *err) {
    tokenizer *t;
    char *path = file_join(d->o.dir, "tokenizer.json");
    bool present = file_exists(path);
    free(path);
    d->limit = d->o.vocab_limit ? d->o.vocab_limit : d->c->vocab_rows;
    if (present) {
        ERR_TRY(tokenizer_open(d->o.dir, &t, err));
        d->limit = tokenizer_count(t);
        tokenizer_close(t);
        if (d->o.vocab_limit && d->o.vocab_limit != d->limit)
            ERR_FAIL(err, ERR_INVALID, "--vocab-limit %d, but the tokenizer has %d ids", d->o.vocab_limit, d->limit);
    }
    if (d->limit > d->c->vocab_rows)
        ERR_FAIL(err, ERR_INVALID, "%d addressable ids, but the model's vocabulary has %d rows", d->limit,
                 d->c->vocab_rows);
    return ERR_OK;
}

/* ---- the model */

static const dtype kv_types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F8_E4M3}; /* as KV_WORDS */

static err_code open_state(dump *d, error *err) {
    int tokens = d->ids.count + d->tokens.count + d->o.mtp, pages = (tokens + KV_PAGE - 1) / KV_PAGE;
    if (tokens > d->c->context_max)
        ERR_FAIL(err, ERR_LIMIT, "%d tokens, the model's context is %" PRId64, tokens, d->c->context_max);
    ERR_TRY(model_kv_init(d->c, kv_types[d->o.kv - 1], pages, &d->kv, err));
    d->pages = mem_alloc((size_t)pages * sizeof *d->pages);
    for (int i = 0; i < pages; i++) d->pages[i] = i;
    d->recurrent = mem_zero((size_t)model_recurrent_count(d->c), sizeof *d->recurrent);
    d->conv = mem_zero((size_t)model_conv_count(d->c), sizeof *d->conv);
    d->seq = (sequence){.pages = d->pages, .recurrent = d->recurrent, .conv = d->conv};
    int rows = d->tokens.count > PIECE ? d->tokens.count : PIECE;
    d->logits = mem_zero((size_t)rows * (size_t)d->c->vocab_rows, sizeof *d->logits);
    d->hidden = mem_zero((size_t)d->ids.count * (size_t)d->c->hidden, sizeof *d->hidden);
    return ERR_OK;
}

static err_code open_all(dump *d, error *err) {
    ERR_TRY(read_json(d, d->o.ids, read_ids, err));
    if (d->o.tree) ERR_TRY(read_json(d, d->o.tree, read_tree, err));
    ERR_TRY(pool_create(0, &d->pool, err));
    int rows = d->tokens.count > PIECE ? d->tokens.count : PIECE;
    model_options options = {.pool = d->pool,
                             .rows_max = rows,
                             .tree_rows_max = rows,
                             .activations = d->o.activations == 2 ? ACTIVATIONS_QUANTISED : ACTIVATIONS_EXACT};
    ERR_TRY(model_open(d->o.dir, &options, &d->m, err));
    d->c = model_get_config(d->m);
    for (int i = 0; i < model_warning_count(d->m); i++) log_line(LOG_WARN, "%s", model_warning(d->m, i));
    if (d->o.mtp && !d->c->mtp_layers) ERR_FAIL(err, ERR_UNSUPPORTED, "--mtp: %s has no MTP layer", d->o.dir);
    ERR_TRY(find_limit(d, err));
    return open_state(d, err);
}

static void close_all(dump *d) {
    npy_abandon(&d->out);
    if (d->kv.k) model_kv_deinit(&d->kv);
    model_close(d->m);
    pool_destroy(d->pool);
    free(d->pages), free(d->recurrent), free(d->conv), free(d->hidden), free(d->logits);
    free(d->ids.ids), free(d->tokens.ids), free(d->parents.ids);
    buffer_deinit(&d->report);
}

static int32_t greedy(const dump *d, const float *row) {
    int32_t best = 0;
    for (int32_t i = 1; i < d->limit; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* Appends a row's greedy id to the JSON array being written. */
static int32_t report_row(dump *d, const float *row) {
    int32_t id = greedy(d, row);
    buffer_printf(&d->report, "%s%d", d->report.data[d->report.size - 1] == '[' ? "" : ", ", (int)id);
    return id;
}

static err_code emit_rows(dump *d, int count, error *err) {
    for (int i = 0; i < count; i++) report_row(d, d->logits + (size_t)i * (size_t)d->c->vocab_rows);
    return npy_write(&d->out, d->logits, count, err);
}

/* Runs the ids in pieces; d->logits ends with the last row first. Every row is written when `all`. */
static err_code run_ids(dump *d, error *err) {
    for (int at = 0; at < d->ids.count; at += PIECE) {
        int count = d->ids.count - at < PIECE ? d->ids.count - at : PIECE;
        bool last = at + count == d->ids.count;
        model_segment s = {.seq = &d->seq,
                           .count = count,
                           .tokens = d->ids.ids + at,
                           .logits_from = d->o.all ? 0
                                          : last   ? count - 1
                                                   : count,
                           .logits = d->logits,
                           .hidden = d->hidden + (size_t)at * (size_t)d->c->hidden};
        ERR_TRY(model_forward(d->m, &d->kv, &s, 1, err));
        if (d->o.all) ERR_TRY(emit_rows(d, count, err));
    }
    return ERR_OK;
}

static err_code run_tree(dump *d, error *err) {
    model_segment s = {.seq = &d->seq,
                       .count = d->tokens.count,
                       .tokens = d->tokens.ids,
                       .parents = d->parents.ids,
                       .logits = d->logits};
    ERR_TRY(model_forward(d->m, &d->kv, &s, 1, err));
    return emit_rows(d, d->tokens.count, err);
}

/* The MTP cache over the whole prompt; afterwards d->logits and out are those of its last pair. */
static err_code fill_mtp(dump *d, int32_t first, float *out, error *err) {
    int width = d->c->hidden;
    int32_t next[PIECE];
    for (int at = 0; at < d->ids.count; at += PIECE) {
        int count = d->ids.count - at < PIECE ? d->ids.count - at : PIECE;
        bool last = at + count == d->ids.count;
        for (int i = 0; i < count; i++) next[i] = at + i + 1 < d->ids.count ? d->ids.ids[at + i + 1] : first;
        ERR_TRY(model_mtp_forward(d->m, &d->kv, &d->seq, at, count, next, d->hidden + (size_t)at * (size_t)width, NULL,
                                  out, last ? count - 1 : count, d->logits, err));
        if (last) memmove(out, out + (size_t)(count - 1) * (size_t)width, (size_t)width * sizeof *out);
    }
    return ERR_OK;
}

static err_code draft(dump *d, int32_t first, float *out, error *err) {
    float *last = out + (size_t)PIECE * (size_t)d->c->hidden;
    ERR_TRY(fill_mtp(d, first, out, err));
    for (int i = 0; i < d->o.mtp; i++) {
        int32_t id = report_row(d, d->logits);
        ERR_TRY(npy_write(&d->out, d->logits, 1, err));
        if (i + 1 == d->o.mtp) break;
        memcpy(last, out, (size_t)d->c->hidden * sizeof *out);
        ERR_TRY(model_mtp_forward(d->m, &d->kv, &d->seq, d->ids.count + i, 1, &id, last, NULL, out, 0, d->logits, err));
    }
    return ERR_OK;
}

static err_code run_mtp(dump *d, error *err) {
    int32_t first = report_row(d, d->logits);
    float *out = mem_alloc((size_t)(PIECE + 1) * (size_t)d->c->hidden * sizeof *out);
    buffer_text(&d->report, "], \"drafts\": [");
    err_code code = draft(d, first, out, err);
    free(out);
    return code;
}

static err_code run(dump *d, error *err) {
    ERR_TRY(open_all(d, err));
    int rows = d->o.all ? d->ids.count : d->o.tree ? d->tokens.count : d->o.mtp ? d->o.mtp : 1;
    ERR_TRY(npy_create(d->o.out, rows, d->c->vocab_rows, &d->out, err));
    buffer_printf(&d->report, "{\"limit\": %d, \"greedy\": [", d->limit);
    ERR_TRY(run_ids(d, err));
    if (d->o.tree)
        ERR_TRY(run_tree(d, err));
    else if (d->o.mtp)
        ERR_TRY(run_mtp(d, err));
    else if (!d->o.all)
        ERR_TRY(emit_rows(d, 1, err));
    buffer_text(&d->report, "]}\n");
    return npy_close(&d->out, err);
}

int dump_logits(int argc, char **argv) {
    dump d = {.o.kv = 1, .o.activations = 1};
    const flag flags[] = {
        {"ids", FLAG_TEXT, &d.o.ids, "FILE", "JSON array of token ids; - reads standard input", 0, 0},
        {"all", FLAG_SWITCH, &d.o.all, NULL, "a row for every position, not only the last", 0, 0},
        {"tree", FLAG_TEXT, &d.o.tree, "FILE", "{\"tokens\": [], \"parents\": []}: a row for every node after the ids",
         0, 0},
        {"mtp", FLAG_INT, &d.o.mtp, "N", "rows of N chained MTP drafts after the ids and the greedy token", 1,
         DRAFTS_MAX},
        {"vocab-limit", FLAG_INT, &d.o.vocab_limit, "N", "addressable ids, where there is no tokenizer.json", 1,
         1 << 24},
        {"kv", FLAG_CHOICE, &d.o.kv, KV_WORDS, "KV cache (fp32); fp8 uses the checkpoint's scales", 0, 0},
        {"activations", FLAG_CHOICE, &d.o.activations, ACTIVATIONS_WORDS,
         "nvfp4 quantises inputs as the checkpoint says (exact)", 0, 0},
        {"out", FLAG_TEXT, &d.o.out, "FILE", "fp32 rows [rows, vocabulary] as .npy", 0, 0},
        {NULL, FLAG_SWITCH, NULL, NULL, NULL, 0, 0},
    };
    const cli_spec spec = {
        .command = "dump logits",
        .operands = "DIR --ids FILE.json --out FILE.npy [--all | --tree FILE.json | --mtp N] [--vocab-limit N]",
        .about =
            "Runs the model on ids and writes logits; greedy ids are printed as JSON. Parents of a tree: -1 = after "
            "the "
            "ids.",
        .flags = flags,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    cli_arguments arguments;
    int status;
    error err;
    if (!cli_parse(&spec, argc, argv, &arguments, &status)) return status;
    if (!d.o.ids || !d.o.out || d.o.all + (d.o.tree != NULL) + (d.o.mtp != 0) > 1)
        return cli_misuse("dump logits", "needs --ids and --out, and at most one of --all, --tree, --mtp");
    d.o.dir = arguments.items[0];
    err_code code = run(&d, &err);
    if (!code) fputs(d.report.data, stdout);
    close_all(&d);
    return code ? cli_fail(&err) : 0;
}
