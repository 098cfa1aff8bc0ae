/* Methods of texts, dicts, lists and the loop variable, and the global functions.
 *
 * The sandbox lets a template change nothing but a namespace: methods that would change their object are undefined. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "text/template_internal.h"

/* ---- arguments */

static err_code need_text(rendering *r, value v, span *out) {
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    if (v.type != V_STR) return template_fail(r, ERR_UNSUPPORTED, "a str is needed, not '%s'", value_type_name(v));
    *out = value_span(v);
    return ERR_OK;
}

static span self(const arguments *a) { return value_span(a->values[0]); }

/* ---- text */

static err_code strip(rendering *r, const arguments *a, bool left, bool right, value *out) {
    span set;
    bool given = value_given(a->values[1]) && a->values[1].type != V_NONE;
    if (given) ERR_TRY(need_text(r, a->values[1], &set));
    if (given) ERR_TRY(charge(r, (uint64_t)set.size * (self(a).size / 64 + 1)));
    *out = value_str(text_strip(self(a), left, right, given ? &set : NULL));
    return charge(r, (self(a).size - out->size) / 2);
}

static err_code str_strip(rendering *r, const arguments *a, value *out) { return strip(r, a, true, true, out); }
static err_code str_lstrip(rendering *r, const arguments *a, value *out) { return strip(r, a, true, false, out); }
static err_code str_rstrip(rendering *r, const arguments *a, value *out) { return strip(r, a, false, true, out); }

static err_code split(rendering *r, const arguments *a, bool from_right, value *out) {
    span separator;
    int64_t count_max;
    bool given = value_given(a->values[1]) && a->values[1].type != V_NONE;
    if (given) ERR_TRY(need_text(r, a->values[1], &separator));
    ERR_TRY(value_integer_or(r, a->values[2], -1, &count_max));
    return text_split(r, self(a), given ? &separator : NULL, count_max, from_right, out);
}

static err_code str_split(rendering *r, const arguments *a, value *out) { return split(r, a, false, out); }
static err_code str_rsplit(rendering *r, const arguments *a, value *out) { return split(r, a, true, out); }

static err_code str_splitlines(rendering *r, const arguments *a, value *out) {
    return text_split_lines(r, self(a), value_given(a->values[1]) && value_truth(a->values[1]), out);
}

static bool has_affix(span s, span affix, bool at_end) {
    if (at_end && s.size >= affix.size) s = span_make(s.data + s.size - affix.size, affix.size);
    return span_starts(s, affix);
}

/* The part of s between the optional character positions start and stop. */
static err_code narrow(rendering *r, const arguments *a, span *s) {
    if (!value_given(a->values[2]) && !value_given(a->values[3])) return ERR_OK;
    ERR_TRY(charge(r, s->size / 16));
    int64_t count = (int64_t)text_length(*s), start, stop;
    ERR_TRY(value_integer_or(r, a->values[2], 0, &start));
    ERR_TRY(value_integer_or(r, a->values[3], count, &stop));
    if (start < 0) start = start < -count ? 0 : start + count;
    if (stop < 0) stop = stop < -count ? 0 : stop + count;
    if (start > count || stop < start)
        return template_fail(r, ERR_UNSUPPORTED, "positions outside the text are not supported");
    size_t from = text_offset(*s, (size_t)start);
    *s = span_make(s->data + from, text_offset(span_make(s->data + from, s->size - from), (size_t)(stop - start)));
    return ERR_OK;
}

static err_code affix(rendering *r, const arguments *a, bool at_end, value *out) {
    span s = self(a), one;
    ERR_TRY(narrow(r, a, &s));
    *out = value_bool(false);
    if (!value_is_kind(a->values[1], SEQ_TUPLE)) {
        ERR_TRY(need_text(r, a->values[1], &one));
        *out = value_bool(has_affix(s, one, at_end));
        return charge(r, one.size / 64);
    }
    const sequence *q = a->values[1].seq;
    for (uint32_t i = 0; i < q->count && !out->truth; i++) {
        ERR_TRY(need_text(r, q->items[i], &one));
        out->truth = has_affix(s, one, at_end);
        ERR_TRY(charge(r, 1 + one.size / 64));
    }
    return ERR_OK;
}

static err_code str_startswith(rendering *r, const arguments *a, value *out) { return affix(r, a, false, out); }
static err_code str_endswith(rendering *r, const arguments *a, value *out) { return affix(r, a, true, out); }

static err_code str_removeprefix(rendering *r, const arguments *a, value *out) {
    span s = self(a), one;
    ERR_TRY(need_text(r, a->values[1], &one));
    ERR_TRY(charge(r, one.size / 64));
    *out = value_str(has_affix(s, one, false) ? span_make(s.data + one.size, s.size - one.size) : s);
    return ERR_OK;
}

static err_code str_removesuffix(rendering *r, const arguments *a, value *out) {
    span s = self(a), one;
    ERR_TRY(need_text(r, a->values[1], &one));
    ERR_TRY(charge(r, one.size / 64));
    *out = value_str(has_affix(s, one, true) ? span_make(s.data, s.size - one.size) : s);
    return ERR_OK;
}

static err_code str_replace(rendering *r, const arguments *a, value *out) {
    span old, with;
    int64_t count_max;
    ERR_TRY(need_text(r, a->values[1], &old));
    ERR_TRY(need_text(r, a->values[2], &with));
    ERR_TRY(value_integer_or(r, a->values[3], -1, &count_max));
    return text_replace(r, self(a), old, with, count_max, out);
}

#define CASE_METHOD(name, how)                                                 \
    static err_code str_##name(rendering *r, const arguments *a, value *out) { \
        return text_change_case(r, self(a), how, out);                         \
    }
CASE_METHOD(upper, CASE_UPPER)
CASE_METHOD(lower, CASE_LOWER)
CASE_METHOD(title, CASE_WORDS)
CASE_METHOD(capitalize, CASE_CAPITALIZE)

/* Character position of the argument, or -1. */
static err_code find(rendering *r, const arguments *a, bool from_right, int64_t *out) {
    span s = self(a), what;
    ERR_TRY(need_text(r, a->values[1], &what));
    if (value_given(a->values[2]) || value_given(a->values[3]))
        return template_fail(r, ERR_UNSUPPORTED, "find with positions is not supported");
    ERR_TRY(charge(r, text_search_steps(s, what)));
    ptrdiff_t at = from_right ? text_find_last(s, what) : span_find(s, what);
    *out = at < 0 ? -1 : (int64_t)text_length(span_make(s.data, (size_t)at));
    return ERR_OK;
}

static err_code find_method(rendering *r, const arguments *a, bool from_right, bool strict, value *out) {
    int64_t at = -1;
    ERR_TRY(find(r, a, from_right, &at));
    if (at < 0 && strict) return template_fail(r, ERR_UNSUPPORTED, "substring not found");
    *out = value_int(at);
    return ERR_OK;
}

static err_code str_find(rendering *r, const arguments *a, value *out) { return find_method(r, a, false, false, out); }
static err_code str_rfind(rendering *r, const arguments *a, value *out) { return find_method(r, a, true, false, out); }
static err_code str_index(rendering *r, const arguments *a, value *out) { return find_method(r, a, false, true, out); }
static err_code str_rindex(rendering *r, const arguments *a, value *out) { return find_method(r, a, true, true, out); }

static err_code str_count(rendering *r, const arguments *a, value *out) {
    span s = self(a), what;
    ERR_TRY(need_text(r, a->values[1], &what));
    ERR_TRY(charge(r, s.size / 16));
    int64_t count = what.size ? 0 : (int64_t)text_length(s) + 1;
    for (ptrdiff_t at; what.size && (at = span_find(s, what)) >= 0; count++) {
        ERR_TRY(charge(r, 1));
        s = span_make(s.data + at + what.size, s.size - (size_t)at - what.size);
    }
    *out = value_int(count);
    return ERR_OK;
}

static err_code str_join(rendering *r, const arguments *a, value *out) {
    sequence *items;
    ERR_TRY(value_items(r, a->values[1], &items));
    return text_join(r, self(a), items, true, out);
}

static err_code partition(rendering *r, const arguments *a, bool from_right, value *out) {
    span s = self(a), separator;
    ERR_TRY(need_text(r, a->values[1], &separator));
    if (!separator.size) return template_fail(r, ERR_UNSUPPORTED, "empty separator");
    ERR_TRY(charge(r, text_search_steps(s, separator)));
    ptrdiff_t at = from_right ? text_find_last(s, separator) : span_find(s, separator);
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_TUPLE, 3, &q));
    value empty = value_text("");
    for (int i = 0; i < 3; i++) q->items[i] = empty;
    if (at < 0) {
        q->items[from_right ? 2 : 0] = value_str(s);
    } else {
        size_t after = (size_t)at + separator.size;
        q->items[0] = value_str(span_make(s.data, (size_t)at));
        q->items[1] = value_str(separator);
        q->items[2] = value_str(span_make(s.data + after, s.size - after));
    }
    *out = value_seq(q);
    return ERR_OK;
}

static err_code str_partition(rendering *r, const arguments *a, value *out) { return partition(r, a, false, out); }
static err_code str_rpartition(rendering *r, const arguments *a, value *out) { return partition(r, a, true, out); }

/* Whether s has a character and all of them satisfy is. */
static err_code all_characters(rendering *r, span s, bool (*is)(uint32_t), value *out) {
    ERR_TRY(charge(r, s.size / 8));
    bool all = s.size > 0;
    for (size_t i = 0; i < s.size && all;) {
        uint32_t c;
        int n = utf8_decode(s.data + i, s.size - i, &c);
        all = n > 0 && is(c);
        i += n > 0 ? (size_t)n : 1;
    }
    *out = value_bool(all);
    return ERR_OK;
}

static bool is_letter_or_number(uint32_t c) { return char_is_letter(c) || char_is_numeric(c); }
static bool is_ascii(uint32_t c) { return c < 0x80; }
static bool is_digit(uint32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : char_is_numeric(c); }

#define CHARACTER_METHOD(name, is)                                             \
    static err_code str_##name(rendering *r, const arguments *a, value *out) { \
        return all_characters(r, self(a), is, out);                            \
    }
CHARACTER_METHOD(isdigit, is_digit)
CHARACTER_METHOD(isalpha, char_is_letter)
CHARACTER_METHOD(isalnum, is_letter_or_number)
CHARACTER_METHOD(isspace, char_is_space)

static err_code str_isascii(rendering *r, const arguments *a, value *out) {
    ERR_TRY(all_characters(r, self(a), is_ascii, out));
    out->truth = out->truth || self(a).size == 0;
    return ERR_OK;
}

static err_code str_isupper(rendering *r, const arguments *a, value *out) {
    return test_find(span_text("upper"))->call(r, a, out);
}
static err_code str_islower(rendering *r, const arguments *a, value *out) {
    return test_find(span_text("lower"))->call(r, a, out);
}

/* Fills up to width characters, left and right of the text. */
static err_code pad(rendering *r, const arguments *a, int where, value *out) {
    int64_t width;
    span fill = span_make(" ", 1), s = self(a);
    ERR_TRY(charge(r, s.size / 16));
    ERR_TRY(value_integer_or(r, a->values[1], 0, &width));
    if (value_given(a->values[2])) ERR_TRY(need_text(r, a->values[2], &fill));
    if (text_length(fill) != 1) return template_fail(r, ERR_UNSUPPORTED, "the fill must be one character");
    int64_t missing = width < 0 ? 0 : width - (int64_t)text_length(s);
    *out = value_str(s);
    if (missing <= 0) return ERR_OK;
    int64_t left = where < 0 ? missing : where > 0 ? 0 : missing / 2 + (missing & width & 1);
    value parts[3];
    ERR_TRY(text_repeat(r, fill, left, &parts[0]));
    parts[1] = value_str(s);
    ERR_TRY(text_repeat(r, fill, missing - left, &parts[2]));
    return text_concat(r, parts, 3, out);
}

static err_code str_rjust(rendering *r, const arguments *a, value *out) { return pad(r, a, -1, out); }
static err_code str_center(rendering *r, const arguments *a, value *out) { return pad(r, a, 0, out); }
static err_code str_ljust(rendering *r, const arguments *a, value *out) { return pad(r, a, 1, out); }

static err_code str_zfill(rendering *r, const arguments *a, value *out) {
    int64_t width;
    span s = self(a);
    ERR_TRY(charge(r, s.size / 16));
    ERR_TRY(value_integer_or(r, a->values[1], 0, &width));
    size_t sign = s.size && (s.data[0] == '-' || s.data[0] == '+');
    value parts[3] = {value_str(span_make(s.data, sign)), value_text(""),
                      value_str(span_make(s.data + sign, s.size - sign))};
    ERR_TRY(text_repeat(r, span_make("0", 1), width < 0 ? 0 : width - (int64_t)text_length(s), &parts[1]));
    return text_concat(r, parts, 3, out);
}

static const builtin str_methods[] = {
    {"strip", "self chars", 1, str_strip},
    {"lstrip", "self chars", 1, str_lstrip},
    {"rstrip", "self chars", 1, str_rstrip},
    {"split", "self sep maxsplit", 1, str_split},
    {"rsplit", "self sep maxsplit", 1, str_rsplit},
    {"splitlines", "self keepends", 1, str_splitlines},
    {"startswith", "self prefix start end", 2, str_startswith},
    {"endswith", "self suffix start end", 2, str_endswith},
    {"removeprefix", "self prefix", 2, str_removeprefix},
    {"removesuffix", "self suffix", 2, str_removesuffix},
    {"replace", "self old new count", 3, str_replace},
    {"upper", "self", 1, str_upper},
    {"lower", "self", 1, str_lower},
    {"title", "self", 1, str_title},
    {"capitalize", "self", 1, str_capitalize},
    {"find", "self sub start end", 2, str_find},
    {"rfind", "self sub start end", 2, str_rfind},
    {"index", "self sub start end", 2, str_index},
    {"rindex", "self sub start end", 2, str_rindex},
    {"count", "self sub", 2, str_count},
    {"join", "self iterable", 2, str_join},
    {"partition", "self sep", 2, str_partition},
    {"rpartition", "self sep", 2, str_rpartition},
    {"isdigit", "self", 1, str_isdigit},
    {"isdecimal", "self", 1, str_isdigit},
    {"isnumeric", "self", 1, str_isdigit},
    {"isalpha", "self", 1, str_isalpha},
    {"isalnum", "self", 1, str_isalnum},
    {"isspace", "self", 1, str_isspace},
    {"isascii", "self", 1, str_isascii},
    {"isupper", "self", 1, str_isupper},
    {"islower", "self", 1, str_islower},
    {"ljust", "self width fillchar", 2, str_ljust},
    {"rjust", "self width fillchar", 2, str_rjust},
    {"center", "self width fillchar", 2, str_center},
    {"zfill", "self width", 2, str_zfill},
    {"casefold", NULL, 0, NULL},
    {"encode", NULL, 0, NULL},
    {"expandtabs", NULL, 0, NULL},
    {"format", NULL, 0, NULL},
    {"format_map", NULL, 0, NULL},
    {"isidentifier", NULL, 0, NULL},
    {"isprintable", NULL, 0, NULL},
    {"istitle", NULL, 0, NULL},
    {"maketrans", NULL, 0, NULL},
    {"swapcase", NULL, 0, NULL},
    {"translate", NULL, 0, NULL},
};

/* ---- dict, list, loop */

static err_code dict_view(rendering *r, const arguments *a, sequence_kind kind, value *out) {
    dict *d = a->values[0].dict;
    sequence *q;
    dict_load(r, d);
    ERR_TRY(seq_create(r, kind, d->count, &q));
    for (uint32_t i = 0; i < d->count; i++) {
        if (kind == SEQ_ITEMS)
            ERR_TRY(seq_pair(r, d->entries[i].key, d->entries[i].value, &q->items[i]));
        else
            q->items[i] = kind == SEQ_KEYS ? d->entries[i].key : d->entries[i].value;
    }
    *out = value_seq(q);
    return ERR_OK;
}

static err_code dict_keys(rendering *r, const arguments *a, value *out) { return dict_view(r, a, SEQ_KEYS, out); }
static err_code dict_values(rendering *r, const arguments *a, value *out) { return dict_view(r, a, SEQ_VALUES, out); }
static err_code dict_items(rendering *r, const arguments *a, value *out) { return dict_view(r, a, SEQ_ITEMS, out); }

static err_code dict_get(rendering *r, const arguments *a, value *out) {
    value *found;
    ERR_TRY(dict_find(r, a->values[0].dict, a->values[1], &found));
    *out = found ? *found : value_given(a->values[2]) ? a->values[2] : value_none();
    return ERR_OK;
}

static err_code copy_self(rendering *r, const arguments *a, value *out) {
    (void)r;
    *out = a->values[0]; /* nothing can change it */
    return ERR_OK;
}

static err_code seq_count(rendering *r, const arguments *a, value *out) {
    sequence *q;
    int64_t count = 0;
    ERR_TRY(value_items(r, a->values[0], &q));
    for (uint32_t i = 0; i < q->count; i++) {
        bool equal;
        ERR_TRY(value_equal(r, q->items[i], a->values[1], &equal));
        count += equal;
    }
    *out = value_int(count);
    return ERR_OK;
}

static err_code seq_index(rendering *r, const arguments *a, value *out) {
    sequence *q;
    ERR_TRY(value_items(r, a->values[0], &q));
    for (uint32_t i = 0; i < q->count; i++) {
        bool equal;
        ERR_TRY(value_equal(r, q->items[i], a->values[1], &equal));
        *out = value_int(i);
        if (equal) return ERR_OK;
    }
    return template_fail(r, ERR_UNSUPPORTED, "the value is not in the list");
}

static const builtin dict_methods[] = {
    {"items", "self", 1, dict_items},         {"keys", "self", 1, dict_keys}, {"values", "self", 1, dict_values},
    {"get", "self key default", 2, dict_get}, {"copy", "self", 1, copy_self}, {"fromkeys", NULL, 0, NULL},
};

static const builtin seq_methods[] = {
    {"count", "self value", 2, seq_count},
    {"index", "self value", 2, seq_index},
    {"copy", "self", 1, copy_self},
};

static err_code loop_cycle(rendering *r, const arguments *a, value *out) {
    if (a->count < 2) return template_fail(r, ERR_UNSUPPORTED, "no items for cycling given");
    *out = a->values[1 + a->values[0].loop->index % (uint32_t)(a->count - 1)];
    return ERR_OK;
}

static err_code loop_changed(rendering *r, const arguments *a, value *out) {
    loop *l = a->values[0].loop;
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_TUPLE, (uint64_t)a->count - 1, &q));
    memcpy(q->items, a->values + 1, q->count * sizeof *q->items);
    bool equal = false;
    if (value_given(l->changed)) ERR_TRY(value_equal(r, l->changed, value_seq(q), &equal));
    l->changed = value_seq(q);
    *out = value_bool(!equal);
    return ERR_OK;
}

static const builtin loop_methods[] = {
    {"cycle", NULL, 0, loop_cycle},
    {"changed", NULL, 0, loop_changed},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))
const builtin *str_method_find(span name) { return builtin_find(str_methods, COUNT(str_methods), name); }
const builtin *dict_method_find(span name) { return builtin_find(dict_methods, COUNT(dict_methods), name); }
const builtin *seq_method_find(span name) { return builtin_find(seq_methods, COUNT(seq_methods), name); }
const builtin *loop_method_find(span name) { return builtin_find(loop_methods, COUNT(loop_methods), name); }

static bool is_one_of(span name, const char *const *names) {
    for (; *names; names++)
        if (span_is(name, *names)) return true;
    return false;
}

bool dict_method_is_unsafe(span name) {
    static const char *const names[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    return is_one_of(name, names);
}

bool method_is_unsafe(value object, span name) {
    static const char *const names[] = {"append", "clear",  "pop",    "reverse", "insert",
                                        "sort",   "extend", "remove", NULL};
    if (object.type == V_DICT) return dict_method_is_unsafe(name);
    return value_is_kind(object, SEQ_LIST) && is_one_of(name, names);
}

/* ---- global functions */

enum { RANGE_MAX = 100000 }; /* the sandbox's */

static err_code global_range(rendering *r, const arguments *a, value *out) {
    int64_t n[3];
    ERR_TRY(value_integer_or(r, a->values[0], 0, &n[0]));
    ERR_TRY(value_integer_or(r, a->values[1], 0, &n[1]));
    ERR_TRY(value_integer_or(r, a->values[2], 1, &n[2]));
    if (!value_given(a->values[1])) n[1] = n[0], n[0] = 0;
    if (n[2] == 0) return template_fail(r, ERR_UNSUPPORTED, "range() arg 3 must not be zero");
    __int128 length =
        n[2] > 0 ? ((__int128)n[1] - n[0] + n[2] - 1) / n[2] : ((__int128)n[0] - n[1] - n[2] - 1) / -(__int128)n[2];
    if (length > RANGE_MAX) return template_fail(r, ERR_LIMIT, "range too big: more than %d numbers", RANGE_MAX);
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_RANGE, length > 0 ? (uint64_t)length : 0, &q));
    for (uint32_t i = 0; i < q->count; i++) q->items[i] = value_int((int64_t)(n[0] + (__int128)i * n[2]));
    memcpy(q->range, n, sizeof n);
    *out = value_seq(q);
    return ERR_OK;
}

/* dict(mapping or pairs, name=value ...), also for namespace(). */
static err_code make_dict(rendering *r, const arguments *a, value_type type, value *out) {
    dict *d;
    if (a->count > 1) return template_fail(r, ERR_UNSUPPORTED, "dict takes at most one positional argument");
    ERR_TRY(dict_create(r, (uint32_t)a->keyword_count, &d));
    if (a->count && a->values[0].type == V_DICT) {
        dict *from = a->values[0].dict;
        dict_load(r, from);
        for (uint32_t i = 0; i < from->count; i++)
            ERR_TRY(dict_set(r, d, from->entries[i].key, from->entries[i].value));
    } else if (a->count) {
        sequence *pairs, *pair;
        ERR_TRY(value_items(r, a->values[0], &pairs));
        for (uint32_t i = 0; i < pairs->count; i++) {
            ERR_TRY(value_items(r, pairs->items[i], &pair));
            if (pair->count != 2) return template_fail(r, ERR_UNSUPPORTED, "dict needs pairs");
            ERR_TRY(dict_set(r, d, pair->items[0], pair->items[1]));
        }
    }
    for (int i = 0; i < a->keyword_count; i++)
        ERR_TRY(dict_set(r, d, value_str(a->keywords[i].name), a->keywords[i].value));
    *out = (value){.type = (uint8_t)type, .dict = d};
    return ERR_OK;
}

static err_code global_dict(rendering *r, const arguments *a, value *out) { return make_dict(r, a, V_DICT, out); }
static err_code global_namespace(rendering *r, const arguments *a, value *out) {
    return make_dict(r, a, V_NAMESPACE, out);
}

/* The one error whose text is the template's own. */
static err_code global_raise(rendering *r, const arguments *a, value *out) {
    value message;
    ERR_TRY(value_to_str(r, a->values[0], &message));
    (void)out;
    ERR_FAIL(r->err, ERR_INVALID, "%.*s", (int)message.size, message.text);
}

static err_code global_strftime_now(rendering *r, const arguments *a, value *out) {
    span format = {0};
    ERR_TRY(need_text(r, a->values[0], &format));
    char pattern[128], text[256];
    if (format.size + 2 > sizeof pattern)
        return template_fail(r, ERR_LIMIT, "a date format of more than %zu bytes", sizeof pattern - 2);
    /* a trailing blank, so that an empty result is told from a failure */
    memcpy(pattern, format.data, format.size);
    memcpy(pattern + format.size, " ", 2);
    time_t now = (time_t)clock_unix_s();
    struct tm local;
    size_t n = localtime_r(&now, &local) ? strftime(text, sizeof text, pattern, &local) : 0;
    if (!n) return template_fail(r, ERR_UNSUPPORTED, "the date format gives too long a text");
    void *copy = arena_copy(r->memory, text, n - 1);
    *out = value_str(span_make(copy, n - 1));
    return ERR_OK;
}

static const builtin globals[] = {
    {"range", "start stop step", 1, global_range},
    {"dict", NULL, 0, global_dict},
    {"namespace", NULL, 0, global_namespace},
    {"raise_exception", "message", 1, global_raise},
    {"strftime_now", "format", 1, global_strftime_now},
    {"cycler", NULL, 0, NULL},
    {"joiner", NULL, 0, NULL},
    {"lipsum", NULL, 0, NULL},
};

const builtin *global_find(span name) { return builtin_find(globals, COUNT(globals), name); }
