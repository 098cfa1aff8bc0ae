/* Filters: `value | name(arguments)`. values[0] is the value.
 *
 * Where Jinja gives a generator (map, select, unique, batch ...) the items are made at once, but the result still behaves
 * like a generator: it has no length, is true, and can be read once. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_internal.h"

/* ---- arguments */

static err_code to_text(rendering *r, value v, span *out) {
    value text;
    ERR_TRY(value_to_str(r, v, &text));
    *out = value_span(text);
    return ERR_OK;
}

static bool truth_or(value v, bool otherwise) { return value_given(v) ? value_truth(v) : otherwise; }

static err_code iterator(rendering *r, uint64_t count, sequence **out) {
    return seq_create(r, SEQ_ITERATOR, count, out);
}

/* ---- attribute paths: "name", "user.name", 0 */

static err_code path_part(rendering *r, value item, span part, value *out) {
    int64_t index = 0;
    bool digits = part.size > 0 && part.size < 10;
    for (size_t i = 0; i < part.size && digits; i++) {
        digits = part.data[i] >= '0' && part.data[i] <= '9';
        index = index * 10 + (part.data[i] - '0');
    }
    return template_getitem(r, item, digits ? value_int(index) : value_str(part), out);
}

/* item's attribute; otherwise stands for a missing part unless it is V_MISSING or none. */
static err_code path_get(rendering *r, value item, value path, value otherwise, value *out) {
    *out = item;
    if (path.type == V_NONE || path.type == V_MISSING) return ERR_OK;
    if (path.type != V_STR) return template_getitem(r, item, path, out);
    span rest = value_span(path);
    for (bool more = true; more;) {
        ptrdiff_t dot = span_find(rest, span_make(".", 1));
        more = dot >= 0;
        span part = span_make(rest.data, more ? (size_t)dot : rest.size);
        if (more) rest = span_make(rest.data + dot + 1, rest.size - (size_t)dot - 1);
        ERR_TRY(path_part(r, *out, part, out));
        if (out->type == V_UNDEFINED && value_given(otherwise) && otherwise.type != V_NONE) *out = otherwise;
    }
    return ERR_OK;
}

static err_code fold_case(rendering *r, value v, value *out) {
    *out = v;
    return v.type == V_STR ? text_change_case(r, value_span(v), CASE_LOWER, out) : ERR_OK;
}

static err_code sort_key(rendering *r, value item, value path, bool case_sensitive, value *out) {
    ERR_TRY(path_get(r, item, path, (value){0}, out));
    return case_sensitive ? ERR_OK : fold_case(r, *out, out);
}

/* ---- text */

static err_code filter_trim(rendering *r, const arguments *a, value *out) {
    span s, set;
    bool given = value_given(a->values[1]) && a->values[1].type != V_NONE;
    ERR_TRY(to_text(r, a->values[0], &s));
    if (given) ERR_TRY(to_text(r, a->values[1], &set));
    if (given) ERR_TRY(charge(r, (uint64_t)set.size * (s.size / 64 + 1)));
    *out = value_str(text_strip(s, true, true, given ? &set : NULL));
    return charge(r, (s.size - out->size) / 2);
}

static err_code change_case(rendering *r, const arguments *a, text_case how, value *out) {
    span s;
    ERR_TRY(to_text(r, a->values[0], &s));
    return text_change_case(r, s, how, out);
}

static err_code filter_upper(rendering *r, const arguments *a, value *out) {
    return change_case(r, a, CASE_UPPER, out);
}
static err_code filter_lower(rendering *r, const arguments *a, value *out) {
    return change_case(r, a, CASE_LOWER, out);
}
static err_code filter_title(rendering *r, const arguments *a, value *out) {
    return change_case(r, a, CASE_TITLE, out);
}
static err_code filter_capitalize(rendering *r, const arguments *a, value *out) {
    return change_case(r, a, CASE_CAPITALIZE, out);
}

static err_code filter_replace(rendering *r, const arguments *a, value *out) {
    span s, old, with;
    int64_t count_max;
    ERR_TRY(to_text(r, a->values[0], &s));
    ERR_TRY(to_text(r, a->values[1], &old));
    ERR_TRY(to_text(r, a->values[2], &with));
    ERR_TRY(value_integer_or(r, a->values[3], -1, &count_max));
    return text_replace(r, s, old, with, count_max, out);
}

static err_code filter_string(rendering *r, const arguments *a, value *out) {
    return value_to_str(r, a->values[0], out);
}

static err_code filter_safe(rendering *r, const arguments *a, value *out) {
    ERR_TRY(value_to_str(r, a->values[0], out));
    out->flag = STR_SAFE;
    return ERR_OK;
}

static err_code filter_forceescape(rendering *r, const arguments *a, value *out) {
    span s;
    ERR_TRY(to_text(r, a->values[0], &s));
    return text_escape(r, s, out);
}

static err_code filter_escape(rendering *r, const arguments *a, value *out) {
    if (a->values[0].type != V_STR || a->values[0].flag != STR_SAFE) return filter_forceescape(r, a, out);
    *out = a->values[0];
    return ERR_OK;
}

static err_code indent_lines(rendering *r, span s, span prefix, bool first, bool blank, buffer *b) {
    value lines;
    ERR_TRY(text_split_lines(r, s, false, &lines));
    for (uint32_t i = 0; i < lines.seq->count; i++) {
        span line = value_span(lines.seq->items[i]);
        if (i) buffer_char(b, '\n');
        if (i ? blank || line.size : first) buffer_append(b, prefix.data, prefix.size);
        buffer_append(b, line.data, line.size);
        ERR_TRY(charge(r, prefix.size / 16));
        if (b->size > r->output_max) return template_alloc(r, b->size, &(void *){NULL});
    }
    return ERR_OK;
}

static err_code filter_indent(rendering *r, const arguments *a, value *out) {
    int64_t width = 4;
    value s, prefix = a->values[1];
    if (a->values[0].type != V_STR)
        return a->values[0].type == V_UNDEFINED
                   ? value_undefined_error(r, a->values[0])
                   : template_fail(r, ERR_UNSUPPORTED, "indent of a '%s'", value_type_name(a->values[0]));
    if (prefix.type != V_STR) {
        ERR_TRY(value_integer_or(r, prefix, 4, &width));
        ERR_TRY(text_repeat(r, span_make(" ", 1), width, &prefix));
    }
    /* the newline makes a last empty line one of the lines */
    value parts[] = {a->values[0], value_text("\n")};
    ERR_TRY(text_concat(r, parts, 2, &s));
    buffer b = {0};
    err_code code = indent_lines(r, value_span(s), value_span(prefix), truth_or(a->values[2], false),
                                 truth_or(a->values[3], false), &b);
    if (code == ERR_OK) return text_from_buffer(r, &b, out);
    buffer_deinit(&b);
    return code;
}

static err_code filter_truncate(rendering *r, const arguments *a, value *out) {
    span s, end = span_text("...");
    int64_t length, leeway;
    ERR_TRY(value_integer_or(r, a->values[1], 255, &length));
    if (value_given(a->values[3])) ERR_TRY(to_text(r, a->values[3], &end));
    ERR_TRY(value_integer_or(r, a->values[4], 5, &leeway));
    int64_t kept = length - (int64_t)text_length(end);
    if (length < 0 || kept < 0 || leeway < 0)
        return template_fail(r, ERR_UNSUPPORTED, "truncate: length below that of the end");
    uint64_t size;
    ERR_TRY(value_length(r, a->values[0], &size));
    *out = a->values[0];
    if ((int64_t)size - leeway <= length) return ERR_OK;
    if (out->type != V_STR) return template_fail(r, ERR_UNSUPPORTED, "truncate of a '%s'", value_type_name(*out));
    s = value_span(*out);
    span head = span_make(s.data, text_offset(s, (size_t)kept));
    const char *blank = truth_or(a->values[2], false) || !head.size ? NULL : memrchr(head.data, ' ', head.size);
    if (blank) head.size = (size_t)(blank - head.data);
    value parts[] = {value_str(head), value_str(end)};
    return text_concat(r, parts, 2, out);
}

static err_code filter_wordcount(rendering *r, const arguments *a, value *out) {
    span s;
    int64_t count = 0;
    bool inside = false;
    ERR_TRY(to_text(r, a->values[0], &s));
    ERR_TRY(charge(r, s.size / 8));
    for (size_t i = 0; i < s.size;) {
        uint32_t c;
        int n = utf8_decode(s.data + i, s.size - i, &c);
        bool word = n > 0 && (c == '_' || char_is_letter(c) || char_is_numeric(c));
        count += word && !inside;
        inside = word;
        i += n > 0 ? (size_t)n : 1;
    }
    *out = value_int(count);
    return ERR_OK;
}

static err_code filter_center(rendering *r, const arguments *a, value *out) {
    value s;
    ERR_TRY(value_to_str(r, a->values[0], &s));
    value bound[4] = {s, value_given(a->values[1]) ? a->values[1] : value_int(80)};
    return str_method_find(span_text("center"))->call(r, &(arguments){.values = bound, .count = 3}, out);
}

static err_code filter_format(rendering *r, const arguments *a, value *out) {
    span s;
    value operand;
    ERR_TRY(to_text(r, a->values[0], &s));
    if (a->keyword_count) {
        if (a->count > 1) return template_fail(r, ERR_UNSUPPORTED, "format takes positions or names, not both");
        dict *d;
        ERR_TRY(dict_create(r, (uint32_t)a->keyword_count, &d));
        for (int i = 0; i < a->keyword_count; i++)
            ERR_TRY(dict_set(r, d, value_str(a->keywords[i].name), a->keywords[i].value));
        operand = (value){.type = V_DICT, .dict = d};
    } else {
        sequence *q;
        ERR_TRY(seq_create(r, SEQ_TUPLE, (uint64_t)a->count - 1, &q));
        memcpy(q->items, a->values + 1, q->count * sizeof *q->items);
        operand = value_seq(q);
    }
    return text_format(r, s, operand, out);
}

static err_code filter_join(rendering *r, const arguments *a, value *out) {
    span separator = {0};
    sequence *items, *mapped;
    if (value_given(a->values[1])) ERR_TRY(to_text(r, a->values[1], &separator));
    ERR_TRY(value_items(r, a->values[0], &items));
    if (value_given(a->values[2]) && a->values[2].type != V_NONE) {
        ERR_TRY(seq_create(r, SEQ_LIST, items->count, &mapped));
        for (uint32_t i = 0; i < items->count; i++)
            ERR_TRY(path_get(r, items->items[i], a->values[2], (value){0}, &mapped->items[i]));
        items = mapped;
    }
    return text_join(r, separator, items, false, out);
}

static err_code json_separators(rendering *r, value v, json_layout *layout) {
    if (!value_given(v) || v.type == V_NONE) return ERR_OK;
    if (v.type != V_SEQ || v.seq->kind > SEQ_TUPLE || v.seq->count != 2)
        return template_fail(r, ERR_UNSUPPORTED, "separators must be two texts");
    seq_load(r, v.seq);
    if (v.seq->items[0].type != V_STR || v.seq->items[1].type != V_STR)
        return template_fail(r, ERR_UNSUPPORTED, "separators must be two texts");
    layout->item_separator = value_span(v.seq->items[0]);
    layout->key_separator = value_span(v.seq->items[1]);
    return ERR_OK;
}

/* As transformers defines it: json.dumps, non-ASCII kept unless asked, no HTML escapes. */
static err_code filter_tojson(rendering *r, const arguments *a, value *out) {
    json_layout layout = {.ascii = truth_or(a->values[1], false),
                          .sort_keys = truth_or(a->values[4], false),
                          .item_separator = span_text(", "),
                          .key_separator = span_text(": ")};
    value indent = a->values[2];
    if (value_given(indent) && indent.type != V_NONE) {
        int64_t width = 0;
        layout.indented = true;
        layout.item_separator = span_text(",");
        if (indent.type != V_STR) {
            ERR_TRY(value_integer_or(r, indent, 0, &width));
            ERR_TRY(text_repeat(r, span_make(" ", 1), width, &indent));
        }
        layout.indent = value_span(indent);
    }
    ERR_TRY(json_separators(r, a->values[3], &layout));
    buffer b = {0};
    err_code code = value_write_json(r, &b, a->values[0], &layout);
    if (code == ERR_OK) return text_from_buffer(r, &b, out);
    buffer_deinit(&b);
    return code;
}

/* ---- numbers */

static err_code float_to_int(rendering *r, double d, value *out) {
    if (isnan(d) || d >= 9223372036854775808.0 || d < -9223372036854775808.0)
        return template_fail(r, ERR_UNSUPPORTED, "the number does not fit an integer of 64 bits");
    *out = value_int((int64_t)d);
    return ERR_OK;
}

/* Python's int(text, base); false when malformed. */
static bool text_to_int(span s, int64_t base, int64_t *out, bool *overflow) {
    s = text_strip(s, true, true, NULL);
    bool negative = s.size && s.data[0] == '-', any = false, underscore = true;
    size_t i = s.size && (s.data[0] == '-' || s.data[0] == '+');
    if (base != 10 && i + 1 < s.size && s.data[i] == '0') {
        char c = (char)(s.data[i + 1] | 32);
        if ((base == 16 && c == 'x') || (base == 8 && c == 'o') || (base == 2 && c == 'b')) i += 2, underscore = false;
    }
    *out = 0;
    for (; i < s.size; i++) {
        char c = s.data[i], lower = (char)(c | 32);
        if (c == '_' && !underscore) {
            underscore = true;
            continue;
        }
        int d = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
        if (d >= base) return false;
        if (__builtin_mul_overflow(*out, base, out) || __builtin_sub_overflow(*out, d, out)) *overflow = true;
        any = true;
        underscore = false;
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, *out, out)) *overflow = true;
    return any && !underscore;
}

static err_code filter_int(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    int64_t base, i;
    double d;
    bool overflow = false;
    ERR_TRY(value_integer_or(r, a->values[2], 10, &base));
    if (base < 2 || base > 36) return template_fail(r, ERR_UNSUPPORTED, "int: base must be 2 to 36");
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    if (v.type == V_STR) ERR_TRY(charge(r, v.size / 2));
    *out = v;
    if (v.type == V_BIG) return ERR_OK;
    if (value_integer(v, &i)) {
        *out = value_int(i);
        return ERR_OK;
    }
    if (v.type == V_FLOAT) return float_to_int(r, v.real, out);
    if (v.type == V_STR && text_to_int(value_span(v), base, &i, &overflow)) {
        if (overflow) return template_fail(r, ERR_UNSUPPORTED, "integers of more than 64 bits are not supported");
        *out = value_int(i);
        return ERR_OK;
    }
    if (v.type == V_STR && text_to_double(value_span(v), &d) && !isnan(d)) return float_to_int(r, d, out);
    *out = value_given(a->values[1]) ? a->values[1] : value_int(0);
    return ERR_OK;
}

static err_code filter_float(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    double d;
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    if (v.type == V_STR) ERR_TRY(charge(r, v.size / 2));
    if (value_is_number(v))
        *out = value_float(value_real(v));
    else if ((v.type == V_STR || v.type == V_BIG) && text_to_double(value_span(v), &d))
        *out = value_float(d);
    else
        *out = value_given(a->values[1]) ? a->values[1] : value_float(0);
    return ERR_OK;
}

static err_code filter_abs(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    int64_t i;
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    if (v.type == V_FLOAT) {
        *out = value_float(fabs(v.real));
        return ERR_OK;
    }
    if (!value_integer(v, &i))
        return template_fail(r, ERR_UNSUPPORTED, "bad operand type for abs(): '%s'", value_type_name(v));
    if (i < 0 && __builtin_sub_overflow((int64_t)0, i, &i))
        return template_fail(r, ERR_UNSUPPORTED, "integers of more than 64 bits are not supported");
    *out = value_int(i);
    return ERR_OK;
}

/* Decimal rounding by printf, which rounds the exact value half to even, as Python's round does. */
static double round_decimal(double d, int digits) {
    char text[400];
    double result = d;
    snprintf(text, sizeof text, "%.*f", digits, d);
    for (char *p = text; *p; p++)
        if ((*p < '0' || *p > '9') && *p != '-') *p = '.'; /* whatever the locale's point is */
    text_to_double(span_text(text), &result);
    return result;
}

static err_code filter_round(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    int64_t digits;
    ERR_TRY(value_integer_or(r, a->values[1], 0, &digits));
    span method = a->values[2].type == V_STR ? value_span(a->values[2]) : span_text("common");
    bool common = span_is(method, "common"), ceiling = span_is(method, "ceil");
    if (!common && !ceiling && !span_is(method, "floor"))
        return template_fail(r, ERR_UNSUPPORTED, "round: the method must be common, ceil or floor");
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    *out = v;
    if (v.type == V_BIG && common) return ERR_OK;
    if (!value_is_number(v)) return template_fail(r, ERR_UNSUPPORTED, "round of a '%s'", value_type_name(v));
    if (digits < 0 || digits > 15) return template_fail(r, ERR_UNSUPPORTED, "round: precision must be 0 to 15");
    double d = value_real(v), scale = pow(10, (double)digits);
    *out = v;
    if (common && v.type != V_FLOAT)
        return filter_int(r, a->values ? &(arguments){.values = (value[3]){v}, .count = 3} : a, out);
    if (common)
        *out = value_float(isfinite(d) && fabs(d) < 1e15 ? round_decimal(d, (int)digits) : d);
    else
        *out = value_float((ceiling ? ceil(d * scale) : floor(d * scale)) / scale);
    return ERR_OK;
}

/* ---- sequences */

static err_code filter_length(rendering *r, const arguments *a, value *out) {
    uint64_t n;
    ERR_TRY(value_length(r, a->values[0], &n));
    *out = value_int((int64_t)n);
    return ERR_OK;
}

static err_code filter_first(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    if (v.type == V_STR) {
        span s = value_span(v);
        *out = s.size ? value_str(span_make(s.data, text_offset(s, 1)))
                      : value_undefined(UNDEFINED_OTHER, span_text("No first item, sequence was empty."));
        return ERR_OK;
    }
    sequence *q;
    ERR_TRY(value_items(r, v, &q));
    *out = q->count ? q->items[0] : value_undefined(UNDEFINED_OTHER, span_text("No first item, sequence was empty."));
    return ERR_OK;
}

static err_code filter_last(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    sequence *q;
    if (value_is_kind(v, SEQ_ITERATOR))
        return template_fail(r, ERR_UNSUPPORTED, "'generator' object is not reversible");
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    ERR_TRY(value_items(r, v, &q));
    *out = q->count ? q->items[q->count - 1]
                    : value_undefined(UNDEFINED_OTHER, span_text("No last item, sequence was empty."));
    return ERR_OK;
}

/* A new list of the value's items, which the caller may reorder. */
static err_code copy_items(rendering *r, value v, sequence_kind kind, sequence **out) {
    sequence *q;
    ERR_TRY(value_items(r, v, &q));
    ERR_TRY(seq_create(r, kind, q->count, out));
    if (q->count) memcpy((*out)->items, q->items, q->count * sizeof *q->items);
    return ERR_OK;
}

static err_code filter_list(rendering *r, const arguments *a, value *out) {
    sequence *q;
    ERR_TRY(copy_items(r, a->values[0], SEQ_LIST, &q));
    *out = value_seq(q);
    return ERR_OK;
}

static err_code filter_reverse(rendering *r, const arguments *a, value *out) {
    sequence *q;
    value v = a->values[0];
    bool listed = value_is_kind(v, SEQ_ITERATOR) || v.type == V_UNDEFINED;
    ERR_TRY(copy_items(r, v, listed ? SEQ_LIST : SEQ_ITERATOR, &q));
    for (uint32_t i = 0; i < q->count / 2; i++) {
        value swap = q->items[i];
        q->items[i] = q->items[q->count - 1 - i];
        q->items[q->count - 1 - i] = swap;
    }
    if (v.type == V_STR) return text_join(r, (span){0}, q, true, out);
    *out = value_seq(q);
    return ERR_OK;
}

static err_code filter_items(rendering *r, const arguments *a, value *out) {
    sequence *q;
    if (a->values[0].type == V_UNDEFINED) {
        ERR_TRY(iterator(r, 0, &q));
    } else {
        if (a->values[0].type != V_DICT)
            return template_fail(r, ERR_UNSUPPORTED, "Can only get item pairs from a mapping.");
        dict *d = a->values[0].dict;
        dict_load(r, d);
        ERR_TRY(iterator(r, d->count, &q));
        for (uint32_t i = 0; i < d->count; i++)
            ERR_TRY(seq_pair(r, d->entries[i].key, d->entries[i].value, &q->items[i]));
    }
    *out = value_seq(q);
    return ERR_OK;
}

/* Stable merge sort of items by keys; reverse keeps the order of equal ones, as Python does. */
static err_code merge_sort(rendering *r, value *keys, value *items, value *spare, uint32_t n, bool reverse) {
    if (n < 2) return ERR_OK;
    uint32_t half = n / 2, i = 0, j = half, k = 0;
    ERR_TRY(merge_sort(r, keys, items, spare, half, reverse));
    ERR_TRY(merge_sort(r, keys + half, items + half, spare, n - half, reverse));
    while (i < half || j < n) {
        int order = i == half ? 1 : j == n ? -1 : 0;
        bool equal = true;
        if (i < half && j < n) ERR_TRY(value_equal(r, keys[i], keys[j], &equal)); /* so that undefined ones may tie */
        if (!equal) ERR_TRY(value_order(r, keys[i], keys[j], "<", &order));
        if (i < half && j < n && reverse) order = -order;
        uint32_t from = order <= 0 || order == 2 ? i++ : j++;
        spare[2 * k] = keys[from];
        spare[2 * k++ + 1] = items[from];
    }
    for (k = 0; k < n; k++) {
        keys[k] = spare[2 * k];
        items[k] = spare[2 * k + 1];
    }
    return ERR_OK;
}

static err_code sort_items(rendering *r, value *keys, sequence *q, bool reverse) {
    void *spare;
    ERR_TRY(template_alloc(r, (size_t)q->count * 2 * sizeof(value), &spare));
    return merge_sort(r, keys, q->items, spare, q->count, reverse);
}

static err_code keys_of(rendering *r, sequence *q, value path, bool case_sensitive, value **out) {
    void *memory;
    ERR_TRY(template_alloc(r, q->count * sizeof(value), &memory));
    *out = memory;
    for (uint32_t i = 0; i < q->count; i++) ERR_TRY(sort_key(r, q->items[i], path, case_sensitive, &(*out)[i]));
    return ERR_OK;
}

static err_code filter_sort(rendering *r, const arguments *a, value *out) {
    sequence *q;
    value *keys, path = a->values[3];
    if (path.type == V_STR && memchr(path.text, ',', path.size))
        return template_fail(r, ERR_UNSUPPORTED, "sorting by several attributes is not supported");
    ERR_TRY(copy_items(r, a->values[0], SEQ_LIST, &q));
    ERR_TRY(keys_of(r, q, path, truth_or(a->values[2], false), &keys));
    ERR_TRY(sort_items(r, keys, q, truth_or(a->values[1], false)));
    *out = value_seq(q);
    return ERR_OK;
}

static err_code filter_dictsort(rendering *r, const arguments *a, value *out) {
    if (a->values[0].type != V_DICT)
        return template_fail(r, ERR_UNSUPPORTED, "dictsort of a '%s'", value_type_name(a->values[0]));
    span by = a->values[2].type == V_STR ? value_span(a->values[2]) : span_text("key");
    if (!span_is(by, "key") && !span_is(by, "value"))
        return template_fail(r, ERR_UNSUPPORTED, "You can only sort by either \"key\" or \"value\"");
    value pairs, *keys;
    ERR_TRY(filter_items(r, a, &pairs));
    pairs.seq->kind = SEQ_LIST;
    ERR_TRY(keys_of(r, pairs.seq, value_int(span_is(by, "value")), truth_or(a->values[1], false), &keys));
    ERR_TRY(sort_items(r, keys, pairs.seq, truth_or(a->values[3], false)));
    *out = pairs;
    return ERR_OK;
}

static err_code filter_unique(rendering *r, const arguments *a, value *out) {
    sequence *q;
    dict *seen;
    ERR_TRY(copy_items(r, a->values[0], SEQ_ITERATOR, &q));
    ERR_TRY(dict_create(r, q->count, &seen));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        value key, *known;
        ERR_TRY(sort_key(r, q->items[i], a->values[2], truth_or(a->values[1], false), &key));
        ERR_TRY(dict_find(r, seen, key, &known));
        if (known) continue;
        ERR_TRY(dict_set(r, seen, key, value_none()));
        q->items[kept++] = q->items[i];
    }
    q->count = kept;
    *out = value_seq(q);
    return ERR_OK;
}

static err_code extreme(rendering *r, const arguments *a, bool largest, value *out) {
    sequence *q;
    value best = {0}, key;
    ERR_TRY(value_items(r, a->values[0], &q));
    *out = value_undefined(UNDEFINED_OTHER, span_text("No aggregated item, sequence was empty."));
    for (uint32_t i = 0; i < q->count; i++) {
        int order = -1;
        ERR_TRY(sort_key(r, q->items[i], a->values[2], truth_or(a->values[1], false), &key));
        if (i) ERR_TRY(value_order(r, key, best, largest ? ">" : "<", &order));
        if (i && order != (largest ? 1 : -1)) continue;
        best = key;
        *out = q->items[i];
    }
    return ERR_OK;
}

static err_code filter_min(rendering *r, const arguments *a, value *out) { return extreme(r, a, false, out); }
static err_code filter_max(rendering *r, const arguments *a, value *out) { return extreme(r, a, true, out); }

static err_code filter_sum(rendering *r, const arguments *a, value *out) {
    sequence *q;
    value total = value_given(a->values[2]) ? a->values[2] : value_int(0), item;
    if (total.type == V_STR) return template_fail(r, ERR_UNSUPPORTED, "sum() can't sum strings [use join instead]");
    ERR_TRY(value_items(r, a->values[0], &q));
    for (uint32_t i = 0; i < q->count; i++) {
        ERR_TRY(path_get(r, q->items[i], a->values[1], (value){0}, &item));
        ERR_TRY(template_binary(r, OP_ADD, total, item, &total));
    }
    *out = total;
    return ERR_OK;
}

static err_code filter_batch(rendering *r, const arguments *a, value *out) {
    sequence *q, *batches;
    int64_t size;
    ERR_TRY(value_integer_or(r, a->values[1], 0, &size));
    ERR_TRY(value_items(r, a->values[0], &q));
    if (size < 1) return template_fail(r, ERR_UNSUPPORTED, "batch: the size must be at least 1");
    if (size > q->count && !value_given(a->values[2])) size = q->count ? q->count : 1;
    bool fill = value_given(a->values[2]) && a->values[2].type != V_NONE;
    ERR_TRY(iterator(r, ((uint64_t)q->count + (uint64_t)size - 1) / (uint64_t)size, &batches));
    for (uint32_t i = 0; i < batches->count; i++) {
        uint64_t from = i * (uint64_t)size, left = q->count - from;
        sequence *batch;
        uint64_t have = left < (uint64_t)size ? left : (uint64_t)size;
        ERR_TRY(seq_create(r, SEQ_LIST, fill ? (uint64_t)size : have, &batch));
        for (uint64_t k = 0; k < batch->count; k++) batch->items[k] = k < have ? q->items[from + k] : a->values[2];
        batches->items[i] = value_seq(batch);
    }
    *out = value_seq(batches);
    return ERR_OK;
}

static err_code filter_slice(rendering *r, const arguments *a, value *out) {
    sequence *q, *slices, *part;
    int64_t count;
    ERR_TRY(value_integer_or(r, a->values[1], 0, &count));
    if (count < 1) return template_fail(r, ERR_UNSUPPORTED, "slice: the number must be at least 1");
    ERR_TRY(value_items(r, a->values[0], &q));
    ERR_TRY(iterator(r, (uint64_t)count, &slices));
    bool fill = value_given(a->values[2]) && a->values[2].type != V_NONE;
    uint64_t each = q->count / (uint64_t)count, extra = q->count % (uint64_t)count, at = 0;
    for (uint64_t i = 0; i < (uint64_t)count; i++) {
        uint64_t have = each + (i < extra);
        ERR_TRY(seq_create(r, SEQ_LIST, have + (fill && i >= extra), &part));
        for (uint64_t k = 0; k < part->count; k++) part->items[k] = k < have ? q->items[at + k] : a->values[2];
        at += have;
        slices->items[i] = value_seq(part);
    }
    *out = value_seq(slices);
    return ERR_OK;
}

/* ---- map, select and their like */

/* The items to go through; whatever is false has none, be it a list or not. */
static err_code truthy_items(rendering *r, value v, sequence **out) {
    return value_truth(v) ? copy_items(r, v, SEQ_ITERATOR, out) : iterator(r, 0, out);
}

static err_code map_attribute(rendering *r, const arguments *a, sequence *q) {
    value path = {0}, otherwise = {0};
    for (int i = 0; i < a->keyword_count; i++) {
        if (span_is(a->keywords[i].name, "attribute"))
            path = a->keywords[i].value;
        else if (span_is(a->keywords[i].name, "default"))
            otherwise = a->keywords[i].value;
        else
            return template_fail(r, ERR_UNSUPPORTED, "map got an unexpected keyword argument");
    }
    if (!value_given(path)) return template_fail(r, ERR_UNSUPPORTED, "map requires a filter argument");
    for (uint32_t i = 0; i < q->count; i++) ERR_TRY(path_get(r, q->items[i], path, otherwise, &q->items[i]));
    return ERR_OK;
}

/* The builtin named by values[at], called with item in its place and the arguments after it. */
static err_code call_named(rendering *r, const builtin *b, const char *what, const arguments *a, int at, value item,
                           value *out) {
    value saved = a->values[at];
    a->values[at] = item;
    err_code code = template_call_builtin(
        r, b, what, &(arguments){a->values + at, a->count - at, a->keywords, a->keyword_count}, out);
    a->values[at] = saved;
    return code;
}

static err_code find_named(rendering *r, value name, bool filter, const builtin **out) {
    *out = name.type != V_STR ? NULL : filter ? filter_find(value_span(name)) : test_find(value_span(name));
    if (*out) return ERR_OK;
    return template_fail(r, ERR_UNSUPPORTED, "there is no %s of the name given", filter ? "filter" : "test");
}

static err_code filter_map(rendering *r, const arguments *a, value *out) {
    sequence *q;
    ERR_TRY(truthy_items(r, a->values[0], &q));
    *out = value_seq(q);
    if (a->count < 2) return map_attribute(r, a, q);
    const builtin *b;
    ERR_TRY(find_named(r, a->values[1], true, &b));
    for (uint32_t i = 0; i < q->count; i++) ERR_TRY(call_named(r, b, "filter", a, 1, q->items[i], &q->items[i]));
    return ERR_OK;
}

static err_code pick(rendering *r, const arguments *a, bool by_attribute, bool wanted, value *out) {
    int at = by_attribute ? 2 : 1;
    sequence *q;
    const builtin *b = NULL;
    if (by_attribute && a->count < 2) return template_fail(r, ERR_UNSUPPORTED, "Missing parameter for attribute name");
    ERR_TRY(truthy_items(r, a->values[0], &q));
    if (a->count > at) ERR_TRY(find_named(r, a->values[at], false, &b));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        value subject = q->items[i], result;
        if (by_attribute) ERR_TRY(path_get(r, subject, a->values[1], (value){0}, &subject));
        result = subject;
        if (b) ERR_TRY(call_named(r, b, "test", a, at, subject, &result));
        if (value_truth(result) == wanted) q->items[kept++] = q->items[i];
    }
    q->count = kept;
    *out = value_seq(q);
    return ERR_OK;
}

static err_code filter_select(rendering *r, const arguments *a, value *out) { return pick(r, a, false, true, out); }
static err_code filter_reject(rendering *r, const arguments *a, value *out) { return pick(r, a, false, false, out); }
static err_code filter_selectattr(rendering *r, const arguments *a, value *out) { return pick(r, a, true, true, out); }
static err_code filter_rejectattr(rendering *r, const arguments *a, value *out) { return pick(r, a, true, false, out); }

/* ---- others */

static err_code filter_default(rendering *r, const arguments *a, value *out) {
    value v = a->values[0];
    (void)r;
    bool replace = v.type == V_UNDEFINED || (truth_or(a->values[2], false) && !value_truth(v));
    *out = !replace ? v : value_given(a->values[1]) ? a->values[1] : value_text("");
    return ERR_OK;
}

/* Only attributes, never members. */
static err_code filter_attr(rendering *r, const arguments *a, value *out) {
    if (a->values[1].type != V_STR) return template_fail(r, ERR_UNSUPPORTED, "attr: the name must be a str");
    span name = value_span(a->values[1]);
    if (a->values[0].type == V_DICT && !dict_method_find(name)) {
        *out = value_undefined(UNDEFINED_ATTRIBUTE, name);
        return ERR_OK;
    }
    return template_getattr(r, a->values[0], name, out);
}

static const builtin filters[] = {
    {"abs", "value", 1, filter_abs},
    {"attr", "value name", 2, filter_attr},
    {"batch", "value linecount fill_with", 2, filter_batch},
    {"capitalize", "value", 1, filter_capitalize},
    {"center", "value width", 1, filter_center},
    {"count", "value", 1, filter_length},
    {"d", "value default_value boolean", 1, filter_default},
    {"default", "value default_value boolean", 1, filter_default},
    {"dictsort", "value case_sensitive by reverse", 1, filter_dictsort},
    {"e", "value", 1, filter_escape},
    {"escape", "value", 1, filter_escape},
    {"first", "value", 1, filter_first},
    {"float", "value default", 1, filter_float},
    {"forceescape", "value", 1, filter_forceescape},
    {"format", NULL, 0, filter_format},
    {"indent", "value width first blank", 1, filter_indent},
    {"int", "value default base", 1, filter_int},
    {"items", "value", 1, filter_items},
    {"join", "value d attribute", 1, filter_join},
    {"last", "value", 1, filter_last},
    {"length", "value", 1, filter_length},
    {"list", "value", 1, filter_list},
    {"lower", "value", 1, filter_lower},
    {"map", NULL, 0, filter_map},
    {"max", "value case_sensitive attribute", 1, filter_max},
    {"min", "value case_sensitive attribute", 1, filter_min},
    {"reject", NULL, 0, filter_reject},
    {"rejectattr", NULL, 0, filter_rejectattr},
    {"replace", "value old new count", 3, filter_replace},
    {"reverse", "value", 1, filter_reverse},
    {"round", "value precision method", 1, filter_round},
    {"safe", "value", 1, filter_safe},
    {"select", NULL, 0, filter_select},
    {"selectattr", NULL, 0, filter_selectattr},
    {"slice", "value slices fill_with", 2, filter_slice},
    {"sort", "value reverse case_sensitive attribute", 1, filter_sort},
    {"string", "value", 1, filter_string},
    {"sum", "value attribute start", 1, filter_sum},
    {"title", "value", 1, filter_title},
    {"tojson", "value ensure_ascii indent separators sort_keys", 1, filter_tojson},
    {"trim", "value chars", 1, filter_trim},
    {"truncate", "value length killwords end leeway", 1, filter_truncate},
    {"unique", "value case_sensitive attribute", 1, filter_unique},
    {"upper", "value", 1, filter_upper},
    {"wordcount", "value", 1, filter_wordcount},
    {"filesizeformat", NULL, 0, NULL},
    {"groupby", NULL, 0, NULL},
    {"pprint", NULL, 0, NULL},
    {"random", NULL, 0, NULL},
    {"striptags", NULL, 0, NULL},
    {"urlencode", NULL, 0, NULL},
    {"urlize", NULL, 0, NULL},
    {"wordwrap", NULL, 0, NULL},
    {"xmlattr", NULL, 0, NULL},
};

const builtin *filter_find(span name) { return builtin_find(filters, sizeof filters / sizeof *filters, name); }
