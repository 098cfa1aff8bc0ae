/* Re-tokenising a text of which only the end changed; see tokenizer.h.
 *
 * What a text's ids are between two added tokens depends on nothing outside them, so an added token is a place to
 * start from, provided that it is still cut out in the new text. That is not settled by its bytes being the same: with
 * the longest token counting, bytes behind it may make a longer one of it, or of one that starts before it. Whether a
 * token starts at a byte depends on the longest token's size from that byte on; so every cut that starts that far
 * before the first difference is safe, and the few after it are looked for again. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"
#include "text/tokenizer_parts.h"

struct token_memo {
    uint64_t serial; /* of the tokenizer that made the ids; 0: empty */
    buffer text;
    token_list ids;
    token_trace trace;
};

token_memo *token_memo_create(void) { return mem_zero(1, sizeof(token_memo)); }

void token_memo_destroy(token_memo *m) {
    if (!m) return;
    buffer_deinit(&m->text);
    token_list_deinit(&m->ids);
    free(m->trace.ends);
    free(m->trace.cuts);
    free(m);
}

/* Leading bytes that are equal: memcmp over blocks, which is as fast as memory, then the block that differs. */
static size_t common_prefix(span a, span b) {
    enum { BLOCK = 256 };
    size_t size = a.size < b.size ? a.size : b.size, i = 0;
    while (i + BLOCK <= size && memcmp(a.data + i, b.data + i, BLOCK) == 0) i += BLOCK;
    while (i < size && a.data[i] == b.data[i]) i++;
    return i;
}

static span memo_text(const token_memo *m) { return span_make(m->text.data, m->text.size); }

size_t token_memo_common(const token_memo *m, span text) { return common_prefix(memo_text(m), text); }

static size_t longest_added(const tokenizer *t) {
    size_t longest = 0;
    for (size_t i = 0; i < t->added.count; i++)
        if (t->added.items[i].content.size > longest) longest = t->added.items[i].content.size;
    return longest;
}

/* How many of the memo's cuts are made in text too, of which `common` bytes are the same. */
static size_t kept_cuts(const token_memo *m, const tokenizer *t, span text, size_t common) {
    const token_cut *cuts = m->trace.cuts;
    size_t low = 0, high = m->trace.cut_count, reach = longest_added(t);
    while (low < high) { /* the first cut that starts too near to the difference */
        size_t middle = low + (high - low) / 2;
        if (cuts[middle].start + reach <= common)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->trace.cut_count && cuts[low].end <= common; low++) {
        size_t start = 0;
        const added_token *found = added_tokens_find(&t->added, text, low ? cuts[low - 1].end : 0, &start);
        if (!found || start != cuts[low].start || found->content.size != cuts[low].end - cuts[low].start) break;
    }
    return low;
}

static void forget(token_memo *m) {
    m->serial = 0;
    m->text.size = m->ids.count = m->trace.cut_count = 0;
}

err_code token_memo_encode(token_memo *m, const tokenizer *t, span text, const int32_t **ids, size_t *count,
                           size_t *kept, error *err) {
    if (m->serial != t->serial) forget(m);
    size_t common = token_memo_common(m, text);
    bool same = m->serial && common == text.size && common == m->text.size;
    if (!same) {
        size_t cuts = kept_cuts(m, t, text, common);
        size_t from = cuts ? m->trace.cuts[cuts - 1].end : 0;
        m->trace.cut_count = cuts;
        m->ids.count = cuts ? m->trace.cuts[cuts - 1].index + 1 : 0;
        m->text.size = common;
        if (text.size > common) buffer_append(&m->text, text.data + common, text.size - common);
        if (kept) *kept = m->ids.count;
        err_code code = tokenizer_encode_traced(t, text, from, true, &m->ids, &m->trace, err);
        if (code != ERR_OK) {
            forget(m);
            return code;
        }
        m->serial = t->serial;
    } else if (kept) {
        *kept = m->ids.count;
    }
    *ids = m->ids.ids;
    *count = m->ids.count;
    return ERR_OK;
}

size_t token_memo_index(const token_memo *m, size_t at) {
    size_t low = 0, high = m->ids.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->trace.ends[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
