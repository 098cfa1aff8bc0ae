/* Encoding and decoding; see tokenizer.h. Loading is in tokenizer_load.c.
 *
 * The stages of encoding, each in its file: added tokens are cut out of the raw text (added_tokens); what lies between
 * is cut at bytes that are not UTF-8, which become byte tokens; each run is normalised (nfc), cut into words
 * (pretokenize), and each word merged (bpe). Every stage of a call works in memory of that call, so that the tokenizer
 * itself can be shared by threads. */
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/nfc.h"
#include "text/tokenizer_parts.h"

void token_list_deinit(token_list *l) {
    free(l->ids);
    *l = (token_list){0};
}

void token_list_push(token_list *l, int32_t id) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 64;
        l->ids = mem_grow(l->ids, l->capacity, sizeof *l->ids);
    }
    l->ids[l->count++] = id;
}

int32_t tokenizer_count(const tokenizer *t) { return t->words.count; }

int32_t tokenizer_find(const tokenizer *t, span token) {
    const added_token *added = added_tokens_get(&t->added, token);
    return added ? added->id : vocabulary_find(&t->words, token);
}

span tokenizer_bytes(const tokenizer *t, int32_t id) { return vocabulary_bytes(&t->words, id); }

bool tokenizer_is_special(const tokenizer *t, int32_t id) { return id >= 0 && id < t->words.count && t->special[id]; }

void tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t count, bool skip_special, buffer *out) {
    for (size_t i = 0; i < count; i++) {
        if (skip_special && tokenizer_is_special(t, ids[i])) continue;
        span bytes = tokenizer_bytes(t, ids[i]);
        buffer_append(out, bytes.data, bytes.size);
    }
}

/* ---- encoding ---- */

typedef struct encoder {
    const tokenizer *t;
    token_list *out;
    token_trace *trace; /* or NULL */
    pretoken_cursor words;
    bpe_scratch merging;
    nfc normal;
} encoder;

/* Size of the valid UTF-8 that text starts with. */
static size_t valid_prefix(span text) {
    size_t i = 0;
    while (i < text.size) {
        uint64_t eight;
        if (i + 8 <= text.size && (memcpy(&eight, text.data + i, 8), (eight & 0x8080808080808080u) == 0)) {
            i += 8;
            continue;
        }
        uint32_t unused;
        int size = utf8_decode(text.data + i, text.size - i, &unused);
        if (size == 0) break;
        i += (size_t)size;
    }
    return i;
}

static void reserve_ends(token_trace *trace, size_t count) {
    if (count <= trace->ends_capacity) return;
    trace->ends_capacity = count < trace->ends_capacity * 2 ? trace->ends_capacity * 2 : count;
    trace->ends = mem_grow(trace->ends, trace->ends_capacity, sizeof *trace->ends);
}

/* Records where the ids from `first` on end, which are those of a run that starts at byte `start` of the text. The
 * sizes of the tokens add up in the normalised run; n->changes leads back to the source. */
static void trace_run(encoder *e, size_t first, size_t start) {
    if (!e->trace) return;
    reserve_ends(e->trace, e->out->count);
    const nfc *n = &e->normal;
    size_t end = 0, change = 0; /* end: in the normalised run */
    for (size_t i = first; i < e->out->count; i++) {
        end += tokenizer_bytes(e->t, e->out->ids[i]).size;
        while (change < n->change_count && n->changes[change].out_end < end) change++;
        size_t source = end;
        if (change < n->change_count && end > n->changes[change].out_start)
            source = n->changes[change].source_end;
        else if (change > 0)
            source = end - n->changes[change - 1].out_end + n->changes[change - 1].source_end;
        e->trace->ends[i] = (uint32_t)(start + source);
    }
}

/* A run of valid UTF-8 that starts at byte `start` of the text. */
static err_code encode_run(encoder *e, span run, size_t start, error *err) {
    size_t first = e->out->count;
    e->normal.change_count = 0;
    pretoken_begin(&e->words, e->t->normalizes ? nfc_normalize(&e->normal, run) : run);
    for (;;) {
        span word;
        ERR_TRY(pretoken_next(&e->words, &word, err));
        if (word.size == 0) break;
        bpe_encode_word(&e->t->merges, word, &e->merging, e->out);
    }
    trace_run(e, first, start);
    return ERR_OK;
}

static void push_traced(encoder *e, int32_t id, size_t end) {
    token_list_push(e->out, id);
    if (!e->trace) return;
    reserve_ends(e->trace, e->out->count);
    e->trace->ends[e->out->count - 1] = (uint32_t)end;
}

/* Text without added tokens: bytes [from, to). */
static err_code encode_stretch(encoder *e, span text, size_t from, size_t to, error *err) {
    while (from < to) {
        size_t valid = valid_prefix(span_make(text.data + from, to - from));
        if (valid) ERR_TRY(encode_run(e, span_make(text.data + from, valid), from, err));
        from += valid;
        if (from == to) break;
        push_traced(e, e->t->merges.byte_ids[(uint8_t)text.data[from]], from + 1);
        from++;
    }
    return ERR_OK;
}

static void push_added(encoder *e, const added_token *token, size_t start) {
    size_t end = start + token->content.size;
    push_traced(e, token->id, end);
    token_trace *trace = e->trace;
    if (!trace) return;
    if (trace->cut_count == trace->cut_capacity) {
        trace->cut_capacity = trace->cut_capacity ? trace->cut_capacity * 2 : 64;
        trace->cuts = mem_grow(trace->cuts, trace->cut_capacity, sizeof *trace->cuts);
    }
    trace->cuts[trace->cut_count++] = (token_cut){(uint32_t)start, (uint32_t)end, e->out->count - 1};
}

static err_code encode_text(encoder *e, span text, size_t from, bool parse_added, error *err) {
    for (;;) {
        size_t start = text.size;
        const added_token *token = parse_added ? added_tokens_find(&e->t->added, text, from, &start) : NULL;
        ERR_TRY(encode_stretch(e, text, from, start, err));
        if (!token) return ERR_OK;
        push_added(e, token, start);
        from = start + token->content.size;
    }
}

err_code tokenizer_encode_traced(const tokenizer *t, span text, size_t from, bool parse_added, token_list *out,
                                 token_trace *trace, error *err) {
    if (text.size > TOKENIZER_TEXT_SIZE_MAX)
        ERR_FAIL(err, ERR_LIMIT, "text to tokenise: %zu bytes, limit %d", text.size, TOKENIZER_TEXT_SIZE_MAX);
    encoder e = {.t = t, .out = out, .trace = trace};
    pretoken_cursor_init(&e.words, t->rules);
    err_code code = encode_text(&e, text, from, parse_added, err);
    pretoken_cursor_deinit(&e.words);
    bpe_scratch_deinit(&e.merging);
    nfc_deinit(&e.normal);
    return code;
}

err_code tokenizer_encode(const tokenizer *t, span text, bool parse_added, token_list *out, error *err) {
    size_t before = out->count;
    err_code code = tokenizer_encode_traced(t, text, 0, parse_added, out, NULL, err);
    if (code != ERR_OK) out->count = before;
    return code;
}
