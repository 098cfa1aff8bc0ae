/* Python's `text % operand`: %s %r %d %i %u %x %X %o %c %e %E %f %F %g %G %%, with flags, width and precision, and
 * %(name)s from a dict. A * for width or precision is refused. Numbers are printed by printf, whose forms are the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_internal.h"

enum { WIDTH_MAX = 100000, NUMBER_PRECISION_MAX = 100 };

typedef struct conversion {
    bool left, zero, plus, space, alternate;
    int width, precision; /* precision -1: not given */
    char type;
} conversion;

typedef struct formatter {
    rendering *r;
    span rest;
    value operand;
    uint32_t next; /* position in a tuple */
    bool used;     /* a single operand, or a dict by name */
    buffer out;
} formatter;

static err_code read_number(formatter *f, int *out) {
    if (f->rest.size && f->rest.data[0] == '*')
        return template_fail(f->r, ERR_UNSUPPORTED, "%%* in a format is not supported");
    *out = 0;
    while (f->rest.size && f->rest.data[0] >= '0' && f->rest.data[0] <= '9') {
        *out = *out * 10 + (f->rest.data[0] - '0');
        f->rest = span_make(f->rest.data + 1, f->rest.size - 1);
        if (*out > WIDTH_MAX) return template_fail(f->r, ERR_LIMIT, "a format width of more than %d", WIDTH_MAX);
    }
    return ERR_OK;
}

static err_code read_conversion(formatter *f, conversion *c) {
    *c = (conversion){.precision = -1};
    for (; f->rest.size; f->rest = span_make(f->rest.data + 1, f->rest.size - 1)) {
        char flag = f->rest.data[0];
        if (flag == '-')
            c->left = true;
        else if (flag == '0')
            c->zero = true;
        else if (flag == '+')
            c->plus = true;
        else if (flag == ' ')
            c->space = true;
        else if (flag == '#')
            c->alternate = true;
        else
            break;
    }
    ERR_TRY(read_number(f, &c->width));
    if (f->rest.size && f->rest.data[0] == '.') {
        f->rest = span_make(f->rest.data + 1, f->rest.size - 1);
        ERR_TRY(read_number(f, &c->precision));
    }
    while (f->rest.size && strchr("hlL", f->rest.data[0])) f->rest = span_make(f->rest.data + 1, f->rest.size - 1);
    if (!f->rest.size) return template_fail(f->r, ERR_UNSUPPORTED, "incomplete format");
    c->type = f->rest.data[0];
    f->rest = span_make(f->rest.data + 1, f->rest.size - 1);
    return ERR_OK;
}

/* "(name)" after the %, or the next positional operand. */
static err_code read_operand(formatter *f, value *out) {
    if (f->rest.size && f->rest.data[0] == '(') {
        const char *end = memchr(f->rest.data, ')', f->rest.size);
        if (!end) return template_fail(f->r, ERR_UNSUPPORTED, "incomplete format key");
        if (f->operand.type != V_DICT) return template_fail(f->r, ERR_UNSUPPORTED, "format requires a mapping");
        span name = span_make(f->rest.data + 1, (size_t)(end - f->rest.data) - 1);
        value *found = dict_find_text(f->r, f->operand.dict, name);
        if (!found) return template_fail(f->r, ERR_UNSUPPORTED, "the format's mapping has no such key");
        f->rest = span_make(end + 1, f->rest.size - name.size - 2);
        f->used = true;
        *out = *found;
    }
    return ERR_OK;
}

static err_code next_operand(formatter *f, value *out) {
    bool tuple = value_is_kind(f->operand, SEQ_TUPLE);
    if (tuple ? f->next >= f->operand.seq->count : f->used)
        return template_fail(f->r, ERR_UNSUPPORTED, "not enough arguments for format string");
    *out = tuple ? f->operand.seq->items[f->next++] : f->operand;
    f->used = true;
    return ERR_OK;
}

static void append_padded(formatter *f, const conversion *c, span text) {
    int64_t missing = c->width - (int64_t)text_length(text);
    for (int64_t i = 0; !c->left && i < missing; i++) buffer_char(&f->out, ' ');
    buffer_append(&f->out, text.data, text.size);
    for (int64_t i = 0; c->left && i < missing; i++) buffer_char(&f->out, ' ');
}

static err_code format_text(formatter *f, const conversion *c, value v) {
    buffer b = {0};
    err_code code = value_write(f->r, &b, v, c->type == 'r');
    span text = span_make(b.data, b.size);
    if (c->precision >= 0) text.size = text_offset(text, (size_t)c->precision);
    if (code == ERR_OK) append_padded(f, c, text);
    buffer_deinit(&b);
    return code;
}

static err_code format_char(formatter *f, const conversion *c, value v) {
    char text[4];
    int64_t i;
    if (v.type == V_STR && text_length(value_span(v)) == 1) {
        append_padded(f, c, value_span(v));
        return ERR_OK;
    }
    if (!value_integer(v, &i) || i < 0 || i > 0x10ffff || (i >= 0xd800 && i <= 0xdfff))
        return template_fail(f->r, ERR_UNSUPPORTED, "%%c requires int or char");
    append_padded(f, c, span_make(text, (size_t)utf8_encode((uint32_t)i, text)));
    return ERR_OK;
}

/* Sign and prefix, then zeros up to the width if asked, then digits. */
static void append_number(formatter *f, const conversion *c, bool negative, const char *prefix, span digits,
                          int zeros) {
    char sign = negative ? '-' : c->plus ? '+' : c->space ? ' ' : 0;
    int64_t size = (int64_t)digits.size + zeros + (sign != 0) + (int64_t)strlen(prefix);
    int64_t missing = c->width > size ? c->width - size : 0;
    if (c->zero && !c->left) zeros += (int)missing, missing = 0;
    for (int64_t i = 0; !c->left && i < missing; i++) buffer_char(&f->out, ' ');
    if (sign) buffer_char(&f->out, sign);
    buffer_text(&f->out, prefix);
    for (int i = 0; i < zeros; i++) buffer_char(&f->out, '0');
    buffer_append(&f->out, digits.data, digits.size);
    for (int64_t i = 0; c->left && i < missing; i++) buffer_char(&f->out, ' ');
}

static err_code need_number(formatter *f, const conversion *c, value v) {
    if (v.type == V_UNDEFINED) return value_undefined_error(f->r, v);
    return template_fail(f->r, ERR_UNSUPPORTED, "%%%c format: a number is required, not %s", c->type,
                         value_type_name(v));
}

static err_code format_integer(formatter *f, const conversion *c, value v) {
    int64_t i;
    bool decimal = strchr("diu", c->type) != NULL;
    if (v.type == V_FLOAT && decimal && v.real > -9e18 && v.real < 9e18) v = value_int((int64_t)v.real);
    if (v.type == V_BIG && decimal) {
        bool negative = v.text[0] == '-';
        append_number(f, c, negative, "", span_make(v.text + negative, v.size - negative), 0);
        return ERR_OK;
    }
    if (!value_integer(v, &i)) return need_number(f, c, v);
    unsigned long long magnitude = i < 0 ? 0ull - (unsigned long long)i : (unsigned long long)i;
    char digits[32];
    int n = snprintf(digits, sizeof digits,
                     c->type == 'x'   ? "%llx"
                     : c->type == 'X' ? "%llX"
                     : c->type == 'o' ? "%llo"
                                      : "%llu",
                     magnitude);
    const char *prefix = !c->alternate || decimal ? "" : c->type == 'x' ? "0x" : c->type == 'X' ? "0X" : "0o";
    append_number(f, c, i<0, prefix, span_make(digits, (size_t)n), c->precision> n ? c->precision - n : 0);
    return ERR_OK;
}

static err_code format_real(formatter *f, const conversion *c, value v) {
    if (!value_is_number(v)) return need_number(f, c, v);
    double d = value_real(v);
    int precision = c->precision < 0 ? 6 : c->precision;
    if (precision > NUMBER_PRECISION_MAX)
        return template_fail(f->r, ERR_LIMIT, "a format precision of more than %d", NUMBER_PRECISION_MAX);
    char text[512], form[] = {'%', c->alternate ? '#' : '.', '.', '*', c->type, 0};
    if (!c->alternate) memcpy(form, (char[]){'%', '.', '*', c->type, 0}, 5);
    int n = snprintf(text, sizeof text, form, precision, fabs(d));
    for (int i = 0; i < n && isfinite(d); i++)
        if ((text[i] < '0' || text[i] > '9') && !strchr("eE+-", text[i])) text[i] = '.';
    append_number(f, c, signbit(d) && !isnan(d), "", span_make(text, (size_t)n), 0);
    return ERR_OK;
}

static err_code format_one(formatter *f) {
    value v = {0};
    conversion c;
    ERR_TRY(charge(f->r, 1));
    ERR_TRY(read_operand(f, &v));
    ERR_TRY(read_conversion(f, &c));
    if (c.type == '%') {
        buffer_char(&f->out, '%');
        return ERR_OK;
    }
    if (!value_given(v)) ERR_TRY(next_operand(f, &v));
    if (c.type == 's' || c.type == 'r') return format_text(f, &c, v);
    if (c.type == 'c') return format_char(f, &c, v);
    if (strchr("diuxXo", c.type)) return format_integer(f, &c, v);
    if (strchr("eEfFgG", c.type)) return format_real(f, &c, v);
    return template_fail(f->r, ERR_UNSUPPORTED, "unsupported format character '%c'", c.type);
}

static err_code format_all(formatter *f) {
    while (f->rest.size) {
        const char *percent = memchr(f->rest.data, '%', f->rest.size);
        size_t plain = percent ? (size_t)(percent - f->rest.data) : f->rest.size;
        buffer_append(&f->out, f->rest.data, plain);
        f->rest = span_make(f->rest.data + plain, f->rest.size - plain);
        if (!percent) break;
        f->rest = span_make(f->rest.data + 1, f->rest.size - 1);
        ERR_TRY(format_one(f));
        if (f->out.size > f->r->output_max) return template_alloc(f->r, f->out.size, &(void *){NULL});
    }
    bool tuple = value_is_kind(f->operand, SEQ_TUPLE);
    bool unused =
        tuple ? f->next < f->operand.seq->count : !f->used && f->operand.type != V_DICT && f->operand.type != V_SEQ;
    if (unused) return template_fail(f->r, ERR_UNSUPPORTED, "not all arguments converted during string formatting");
    return ERR_OK;
}

err_code text_format(rendering *r, span format, value operand, value *out) {
    formatter f = {.r = r, .rest = format, .operand = operand};
    err_code code = format_all(&f);
    if (code == ERR_OK) return text_from_buffer(r, &f.out, out);
    buffer_deinit(&f.out);
    return code;
}
