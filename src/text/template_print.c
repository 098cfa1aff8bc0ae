/* Values as text: Python's str and repr, and json.dumps. */
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/template_internal.h"

/* ---- str and repr */

static void write_real(buffer *b, double d) {
    if (isnan(d))
        buffer_text(b, "nan");
    else if (isinf(d))
        buffer_text(b, d < 0 ? "-inf" : "inf");
    else
        json_write_double(b, d);
}

static bool printable(uint32_t c) {
    if (c < 0x7f) return c >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return false;
        default:
            return true;
    }
}

static void write_quoted(buffer *b, span s) {
    char quote = s.size && memchr(s.data, '\'', s.size) && !memchr(s.data, '"', s.size) ? '"' : '\'';
    buffer_char(b, quote);
    for (size_t i = 0; i < s.size;) {
        uint32_t c;
        int n = utf8_decode(s.data + i, s.size - i, &c);
        if (n == 0) n = 1, c = (uint8_t)s.data[i];
        if (c == (uint32_t)quote || c == '\\')
            buffer_printf(b, "\\%c", (int)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            buffer_text(b, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        else if (printable(c))
            buffer_append(b, s.data + i, (size_t)n);
        else
            buffer_printf(b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        i += (size_t)n;
    }
    buffer_char(b, quote);
}

static err_code write_items(rendering *r, buffer *b, sequence *q) {
    seq_load(r, q);
    for (uint32_t i = 0; i < q->count; i++) {
        if (i) buffer_text(b, ", ");
        ERR_TRY(value_write(r, b, q->items[i], true));
    }
    return ERR_OK;
}

static err_code write_sequence(rendering *r, buffer *b, sequence *q) {
    static const char *const open[] = {"[", "(", NULL, "dict_keys([", "dict_values([", "dict_items([", NULL};
    static const char *const close[] = {"]", ")", NULL, "])", "])", "])", NULL};
    if (q->kind == SEQ_ITERATOR) return template_fail(r, ERR_UNSUPPORTED, "printing a generator (use |list before)");
    if (q->kind == SEQ_RANGE) {
        buffer_printf(b, q->range[2] == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)", (long long)q->range[0],
                      (long long)q->range[1], (long long)q->range[2]);
        return ERR_OK;
    }
    buffer_text(b, open[q->kind]);
    ERR_TRY(write_items(r, b, q));
    if (q->kind == SEQ_TUPLE && q->count == 1) buffer_char(b, ',');
    buffer_text(b, close[q->kind]);
    return ERR_OK;
}

static err_code write_dict(rendering *r, buffer *b, dict *d) {
    dict_load(r, d);
    buffer_char(b, '{');
    for (uint32_t i = 0; i < d->count; i++) {
        if (i) buffer_text(b, ", ");
        ERR_TRY(value_write(r, b, d->entries[i].key, true));
        buffer_text(b, ": ");
        ERR_TRY(value_write(r, b, d->entries[i].value, true));
    }
    buffer_char(b, '}');
    return ERR_OK;
}

static err_code check_size(rendering *r, const buffer *b) {
    if (b->size > r->output_max)
        return template_fail(r, ERR_LIMIT, "a text of more than %llu bytes", (unsigned long long)r->output_max);
    return ERR_OK;
}

static err_code write_nested(rendering *r, buffer *b, value v) {
    if (v.type == V_SEQ) return write_sequence(r, b, v.seq);
    if (v.type == V_NAMESPACE) buffer_text(b, "<Namespace ");
    ERR_TRY(write_dict(r, b, v.dict));
    if (v.type == V_NAMESPACE) buffer_char(b, '>');
    return ERR_OK;
}

err_code value_write(rendering *r, buffer *b, value v, bool repr) {
    ERR_TRY(charge(r, 1 + (v.type == V_STR ? v.size / 16 : 0)));
    ERR_TRY(check_size(r, b));
    switch ((value_type)v.type) {
        case V_MISSING:
        case V_UNDEFINED:
            if (repr) buffer_text(b, "Undefined");
            return ERR_OK;
        case V_NONE:
            buffer_text(b, "None");
            return ERR_OK;
        case V_BOOL:
            buffer_text(b, v.truth ? "True" : "False");
            return ERR_OK;
        case V_INT:
            buffer_printf(b, "%lld", (long long)v.integer);
            return ERR_OK;
        case V_FLOAT:
            write_real(b, v.real);
            return ERR_OK;
        case V_BIG:
            buffer_append(b, v.text, v.size);
            return ERR_OK;
        case V_STR:
            if (repr && v.flag == STR_SAFE) buffer_text(b, "Markup(");
            if (repr)
                write_quoted(b, value_span(v));
            else
                buffer_append(b, v.text, v.size);
            if (repr && v.flag == STR_SAFE) buffer_char(b, ')');
            return ERR_OK;
        case V_SEQ:
        case V_DICT:
        case V_NAMESPACE: {
            ERR_TRY(template_enter(r));
            err_code code = write_nested(r, b, v);
            template_leave(r);
            return code;
        }
        default:
            return template_fail(r, ERR_UNSUPPORTED, "printing a %s is not supported", value_type_name(v));
    }
}

err_code value_to_str(rendering *r, value v, value *out) {
    if (v.type == V_STR) {
        *out = v;
        return ERR_OK;
    }
    if (v.type == V_BIG) {
        *out = value_str(value_span(v));
        return ERR_OK;
    }
    buffer b = {0};
    err_code code = value_write(r, &b, v, false);
    if (code == ERR_OK) return text_from_buffer(r, &b, out);
    buffer_deinit(&b);
    return code;
}

/* ---- json.dumps */

static void write_json_text(buffer *b, span s, const json_layout *layout) {
    json_write_string(b, s, layout->ascii ? JSON_ASCII : JSON_COMPACT);
}

static void write_json_real(buffer *b, double d) {
    if (isnan(d))
        buffer_text(b, "NaN");
    else if (isinf(d))
        buffer_text(b, d < 0 ? "-Infinity" : "Infinity");
    else
        json_write_double(b, d);
}

static void write_indent(buffer *b, const json_layout *layout, int depth) {
    if (!layout->indented) return;
    buffer_char(b, '\n');
    for (int i = 0; i < depth; i++) buffer_append(b, layout->indent.data, layout->indent.size);
}

static err_code write_json(rendering *r, buffer *b, value v, const json_layout *layout, int depth);

static err_code write_json_sequence(rendering *r, buffer *b, sequence *q, const json_layout *layout, int depth) {
    seq_load(r, q);
    buffer_char(b, '[');
    for (uint32_t i = 0; i < q->count; i++) {
        if (i) buffer_append(b, layout->item_separator.data, layout->item_separator.size);
        write_indent(b, layout, depth + 1);
        ERR_TRY(write_json(r, b, q->items[i], layout, depth + 1));
    }
    if (q->count) write_indent(b, layout, depth);
    buffer_char(b, ']');
    return ERR_OK;
}

static err_code write_json_key(rendering *r, buffer *b, value key, const json_layout *layout) {
    if (key.type == V_STR) {
        write_json_text(b, value_span(key), layout);
        return ERR_OK;
    }
    if (!value_is_number(key) && key.type != V_NONE && key.type != V_BIG)
        return template_fail(r, ERR_UNSUPPORTED, "keys must be str, int, float, bool or None, not %s",
                             value_type_name(key));
    buffer_char(b, '"');
    ERR_TRY(write_json(r, b, key, layout, 0));
    buffer_char(b, '"');
    return ERR_OK;
}

/* Insertion sort by key; tool schemas have few members and steps bound the rest. */
static err_code sort_entries(rendering *r, dict *d, dict_entry **out) {
    void *memory;
    ERR_TRY(template_alloc(r, d->count * sizeof(dict_entry), &memory));
    dict_entry *e = memory;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t at = i;
        int order = 0;
        for (; at > 0; at--) {
            ERR_TRY(value_order(r, e[at - 1].key, d->entries[i].key, "<", &order));
            if (order <= 0) break;
            e[at] = e[at - 1];
        }
        e[at] = d->entries[i];
    }
    *out = e;
    return ERR_OK;
}

static err_code write_json_dict(rendering *r, buffer *b, dict *d, const json_layout *layout, int depth) {
    dict_load(r, d);
    dict_entry *entries = d->entries;
    if (layout->sort_keys) ERR_TRY(sort_entries(r, d, &entries));
    buffer_char(b, '{');
    for (uint32_t i = 0; i < d->count; i++) {
        if (i) buffer_append(b, layout->item_separator.data, layout->item_separator.size);
        write_indent(b, layout, depth + 1);
        ERR_TRY(write_json_key(r, b, entries[i].key, layout));
        buffer_append(b, layout->key_separator.data, layout->key_separator.size);
        ERR_TRY(write_json(r, b, entries[i].value, layout, depth + 1));
    }
    if (d->count) write_indent(b, layout, depth);
    buffer_char(b, '}');
    return ERR_OK;
}

static err_code write_json(rendering *r, buffer *b, value v, const json_layout *layout, int depth) {
    ERR_TRY(charge(r, 1 + (v.type == V_STR ? v.size / 16 : 0) + (layout->indented ? (uint64_t)depth : 0)));
    ERR_TRY(check_size(r, b));
    err_code code;
    switch ((value_type)v.type) {
        case V_NONE:
            buffer_text(b, "null");
            return ERR_OK;
        case V_BOOL:
            buffer_text(b, v.truth ? "true" : "false");
            return ERR_OK;
        case V_FLOAT:
            write_json_real(b, v.real);
            return ERR_OK;
        case V_INT:
        case V_BIG:
            return value_write(r, b, v, false);
        case V_STR:
            write_json_text(b, value_span(v), layout);
            return ERR_OK;
        case V_SEQ:
            if (v.seq->kind > SEQ_TUPLE) break;
            ERR_TRY(template_enter(r));
            code = write_json_sequence(r, b, v.seq, layout, depth);
            template_leave(r);
            return code;
        case V_DICT:
            ERR_TRY(template_enter(r));
            code = write_json_dict(r, b, v.dict, layout, depth);
            template_leave(r);
            return code;
        default:
            break;
    }
    return template_fail(r, ERR_UNSUPPORTED, "Object of type %s is not JSON serializable", value_type_name(v));
}

err_code value_write_json(rendering *r, buffer *b, value v, const json_layout *layout) {
    return write_json(r, b, v, layout, 0);
}
