/* Operations on text. Positions and lengths count characters, as in Python; whitespace and case are Unicode's.
 * Case mapping is character by character (and sharp s, which has no single capital). */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/template_internal.h"

bool char_is_space(uint32_t c) {
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* One character at s.data[at]; invalid bytes count as characters of their own. */
static size_t char_at(span s, size_t at, uint32_t *c) {
    if (!(s.data[at] & 0x80)) {
        *c = (uint8_t)s.data[at];
        return 1;
    }
    int n = utf8_decode(s.data + at, s.size - at, c);
    if (n > 0) return (size_t)n;
    *c = (uint8_t)s.data[at];
    return 1;
}

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static size_t char_before(span s, size_t end, uint32_t *c) {
    size_t n = 1;
    while (n < 4 && n < end && is_continuation(s.data[end - n])) n++;
    if (char_at(s, end - n, c) == n) return n;
    *c = (uint8_t)s.data[end - 1];
    return 1;
}

static bool in_set(uint32_t c, const span *characters) {
    if (!characters) return char_is_space(c);
    for (size_t i = 0; i < characters->size;) {
        uint32_t one;
        i += char_at(*characters, i, &one);
        if (one == c) return true;
    }
    return false;
}

span text_strip(span s, bool left, bool right, const span *characters) {
    uint32_t c;
    size_t from = 0, end = s.size;
    while (left && from < end) {
        size_t n = char_at(s, from, &c);
        if (!in_set(c, characters)) break;
        from += n;
    }
    while (right && end > from) {
        size_t n = char_before(s, end, &c);
        if (!in_set(c, characters)) break;
        end -= n;
    }
    return span_make(s.data + from, end - from);
}

size_t text_length(span s) {
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++) n += !is_continuation(s.data[i]);
    return n;
}

size_t text_offset(span s, size_t character) {
    size_t i = 0;
    while (character > 0 && i < s.size) {
        i++;
        while (i < s.size && is_continuation(s.data[i])) i++;
        character--;
    }
    return i;
}

err_code text_from_buffer(rendering *r, buffer *b, value *out) {
    void *memory;
    err_code code = template_alloc(r, b->size, &memory);
    if (code == ERR_OK) {
        if (b->size) memcpy(memory, b->data, b->size);
        *out = value_str(span_make(memory, b->size));
    }
    buffer_deinit(b);
    return code;
}

/* ---- case */

bool char_is_letter(uint32_t c) {
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool char_is_numeric(uint32_t c) {
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

static void append_char(buffer *b, uint32_t c) {
    char text[4];
    buffer_append(b, text, (size_t)utf8_encode(c, text));
}

static void append_upper(buffer *b, uint32_t c, bool whole) {
    if (c == 0xdf)
        buffer_text(b, whole ? "SS" : "Ss");
    else
        append_char(b, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c));
}

/* Jinja's title: words begin after whitespace, - and opening brackets. */
static bool begins_word(uint32_t before) {
    return char_is_space(before) || before == '-' || before == '(' || before == '{' || before == '[' || before == '<';
}

err_code text_change_case(rendering *r, span s, text_case how, value *out) {
    ERR_TRY(charge(r, s.size / 8));
    buffer b = {0};
    uint32_t c, before = ' ';
    for (size_t i = 0; i < s.size; before = c) {
        bool first = i == 0;
        i += char_at(s, i, &c);
        if (how == CASE_UPPER || (how == CASE_TITLE && begins_word(before)) ||
            (how == CASE_WORDS && !char_is_letter(before)) || (how == CASE_CAPITALIZE && first))
            append_upper(&b, c, how == CASE_UPPER || how == CASE_TITLE);
        else
            append_char(&b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
    }
    return text_from_buffer(r, &b, out);
}

/* ---- splitting: the pieces are spans of the original */

typedef struct pieces {
    span *items;
    size_t count, capacity;
} pieces;

static err_code add_piece(rendering *r, pieces *p, span s) {
    ERR_TRY(charge(r, 1));
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 8;
        void *memory;
        ERR_TRY(template_alloc(r, capacity * sizeof *p->items, &memory));
        if (p->count) memcpy(memory, p->items, p->count * sizeof *p->items);
        p->items = memory;
        p->capacity = capacity;
    }
    p->items[p->count++] = s;
    return ERR_OK;
}

static err_code pieces_to_list(rendering *r, const pieces *p, bool reversed, value *out) {
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_LIST, p->count, &q));
    for (size_t i = 0; i < p->count; i++) q->items[i] = value_str(p->items[reversed ? p->count - 1 - i : i]);
    *out = value_seq(q);
    return ERR_OK;
}

ptrdiff_t text_find_last(span s, span what) {
    for (size_t i = s.size + 1; i-- > 0;)
        if (s.size - i >= what.size && (!what.size || memcmp(s.data + i, what.data, what.size) == 0))
            return (ptrdiff_t)i;
    return -1;
}

uint64_t text_search_steps(span s, span what) { return (s.size / 16 + 1) * (what.size / 64 + 1); }

static err_code split_at(rendering *r, span s, span separator, int64_t count_max, bool from_right, pieces *p) {
    for (int64_t n = 0; count_max < 0 || n < count_max; n++) {
        ptrdiff_t hit = from_right ? text_find_last(s, separator) : span_find(s, separator);
        if (hit < 0) break;
        size_t at = (size_t)hit, after = at + separator.size;
        if (from_right) {
            ERR_TRY(add_piece(r, p, span_make(s.data + after, s.size - after)));
            s.size = at;
        } else {
            ERR_TRY(add_piece(r, p, span_make(s.data, at)));
            s = span_make(s.data + after, s.size - after);
        }
    }
    return add_piece(r, p, s);
}

static err_code split_spaces(rendering *r, span s, int64_t count_max, bool from_right, pieces *p) {
    uint32_t c;
    for (int64_t n = 0;; n++) {
        s = text_strip(s, !from_right, from_right, NULL);
        if (!s.size) return ERR_OK;
        if (n == count_max) return add_piece(r, p, s);
        size_t at = from_right ? s.size : 0;
        while (from_right ? at > 0 : at < s.size) {
            size_t size = from_right ? char_before(s, at, &c) : char_at(s, at, &c);
            if (char_is_space(c)) break;
            at = from_right ? at - size : at + size;
        }
        ERR_TRY(add_piece(r, p, from_right ? span_make(s.data + at, s.size - at) : span_make(s.data, at)));
        s = from_right ? span_make(s.data, at) : span_make(s.data + at, s.size - at);
    }
}

err_code text_split(rendering *r, span s, const span *separator, int64_t count_max, bool from_right, value *out) {
    pieces p = {0};
    ERR_TRY(charge(r, separator ? text_search_steps(s, *separator) : s.size / 16));
    if (separator && !separator->size) return template_fail(r, ERR_UNSUPPORTED, "empty separator");
    ERR_TRY(separator ? split_at(r, s, *separator, count_max, from_right, &p)
                      : split_spaces(r, s, count_max, from_right, &p));
    return pieces_to_list(r, &p, from_right, out);
}

static bool is_line_end(uint32_t c) {
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

err_code text_split_lines(rendering *r, span s, bool keep_ends, value *out) {
    pieces p = {0};
    uint32_t c;
    ERR_TRY(charge(r, s.size / 8));
    size_t from = 0;
    for (size_t i = 0; i < s.size;) {
        size_t at = i;
        i += char_at(s, i, &c);
        if (!is_line_end(c)) continue;
        if (c == '\r' && i < s.size && s.data[i] == '\n') i++;
        ERR_TRY(add_piece(r, &p, span_make(s.data + from, (keep_ends ? i : at) - from)));
        from = i;
    }
    if (from < s.size) ERR_TRY(add_piece(r, &p, span_make(s.data + from, s.size - from)));
    return pieces_to_list(r, &p, false, out);
}

/* ---- putting together */

err_code text_concat(rendering *r, const value *parts, int count, value *out) {
    size_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].size;
    void *memory;
    ERR_TRY(template_alloc(r, size, &memory));
    char *end = memory;
    for (int i = 0; i < count; i++) {
        if (parts[i].size) memcpy(end, parts[i].text, parts[i].size);
        end += parts[i].size;
    }
    *out = value_str(span_make(memory, size));
    return ERR_OK;
}

err_code text_repeat(rendering *r, span s, int64_t times, value *out) {
    uint64_t size;
    if (times <= 0 || !s.size) {
        *out = value_text("");
        return ERR_OK;
    }
    if (__builtin_mul_overflow((uint64_t)times, (uint64_t)s.size, &size)) size = UINT64_MAX / 4;
    ERR_TRY(charge(r, size / 64));
    void *memory;
    ERR_TRY(template_alloc(r, size, &memory));
    for (uint64_t at = 0; at < size; at += s.size) memcpy((char *)memory + at, s.data, s.size);
    *out = value_str(span_make(memory, size));
    return ERR_OK;
}

/* Empty old: new before every character and at the end, as Python does. */
static ptrdiff_t next_match(span s, span old, bool *at_end) {
    if (old.size) return span_find(s, old);
    *at_end = s.size == 0;
    return 0;
}

err_code text_replace(rendering *r, span s, span old, span with, int64_t count_max, value *out) {
    ERR_TRY(charge(r, s.size / 16));
    buffer b = {0};
    err_code code = ERR_OK;
    bool ended = false, replaced = false;
    for (int64_t n = 0; (count_max < 0 || n < count_max) && !ended && code == ERR_OK; n++) {
        ptrdiff_t hit = next_match(s, old, &ended);
        if (hit < 0) break;
        replaced = true;
        buffer_append(&b, s.data, (size_t)hit);
        buffer_append(&b, with.data, with.size);
        size_t used = (size_t)hit + old.size;
        s = span_make(s.data + used, s.size - used);
        if (!old.size && s.size) {
            size_t one = text_offset(s, 1);
            buffer_append(&b, s.data, one);
            s = span_make(s.data + one, s.size - one);
        }
        code = charge(r, 1 + with.size / 16);
        if (code == ERR_OK && b.size > r->output_max) code = template_alloc(r, b.size, &(void *){NULL});
    }
    if (code == ERR_OK && !replaced) {
        *out = value_str(s);
    } else if (code == ERR_OK) {
        buffer_append(&b, s.data, s.size);
        return text_from_buffer(r, &b, out);
    }
    buffer_deinit(&b);
    return code;
}

err_code text_escape(rendering *r, span s, value *out) {
    static const char special[] = "&<>'\"";
    static const char *const replacement[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    ERR_TRY(charge(r, s.size / 8));
    buffer b = {0};
    size_t from = 0;
    for (size_t i = 0; i < s.size; i++) {
        const char *hit = s.data[i] ? strchr(special, s.data[i]) : NULL;
        if (!hit) continue;
        buffer_append(&b, s.data + from, i - from);
        buffer_text(&b, replacement[hit - special]);
        from = i + 1;
    }
    buffer_append(&b, s.data + from, s.size - from);
    ERR_TRY(text_from_buffer(r, &b, out));
    out->flag = STR_SAFE;
    return ERR_OK;
}

err_code text_join(rendering *r, span separator, sequence *items, bool strict, value *out) {
    buffer b = {0};
    err_code code = ERR_OK;
    for (uint32_t i = 0; i < items->count && code == ERR_OK; i++) {
        if (i) buffer_append(&b, separator.data, separator.size);
        code = charge(r, separator.size / 16);
        if (code == ERR_OK && strict && items->items[i].type != V_STR)
            code = template_fail(r, ERR_UNSUPPORTED, "sequence item %u: expected str instance, %s found", i,
                                 value_type_name(items->items[i]));
        if (code == ERR_OK) code = value_write(r, &b, items->items[i], false);
    }
    if (code == ERR_OK) return text_from_buffer(r, &b, out);
    buffer_deinit(&b);
    return code;
}
