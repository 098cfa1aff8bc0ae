/* Arithmetic and comparison with Python's rules, on 64-bit integers: a result that does not fit is refused. */
#include <math.h>
#include <string.h>

#include "text/template_internal.h"

static const char *const operator_text[] = {"+", "-", "*", "/", "//", "%", "**"};

static err_code bad_operands(rendering *r, operator_kind op, value a, value b) {
    if (a.type == V_UNDEFINED) return value_undefined_error(r, a);
    if (b.type == V_UNDEFINED) return value_undefined_error(r, b);
    if (a.type == V_BIG || b.type == V_BIG)
        return template_fail(r, ERR_UNSUPPORTED, "arithmetic on integers of more than 64 bits is not supported");
    return template_fail(r, ERR_UNSUPPORTED, "unsupported operand type(s) for %s: '%s' and '%s'", operator_text[op],
                         value_type_name(a), value_type_name(b));
}

static err_code too_large(rendering *r) {
    return template_fail(r, ERR_UNSUPPORTED, "integers of more than 64 bits are not supported");
}

static err_code int_power(rendering *r, int64_t base, int64_t exponent, value *out) {
    if (exponent < 0) {
        if (base == 0) return template_fail(r, ERR_UNSUPPORTED, "0.0 cannot be raised to a negative power");
        *out = value_float(pow((double)base, (double)exponent));
        return ERR_OK;
    }
    int64_t result = 1;
    bool trivial = base == 0 || base == 1 || base == -1;
    if (trivial) exponent = exponent ? 2 - (exponent & 1) : 0;
    for (int64_t i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(result, base, &result)) return too_large(r);
    *out = value_int(result);
    return ERR_OK;
}

static err_code int_arithmetic(rendering *r, operator_kind op, int64_t a, int64_t b, value *out) {
    int64_t n = 0;
    bool overflow = false;
    switch (op) {
        case OP_ADD:
            overflow = __builtin_add_overflow(a, b, &n);
            break;
        case OP_SUB:
            overflow = __builtin_sub_overflow(a, b, &n);
            break;
        case OP_MUL:
            overflow = __builtin_mul_overflow(a, b, &n);
            break;
        case OP_POW:
            return int_power(r, a, b, out);
        default: /* division */
            if (b == 0) return template_fail(r, ERR_UNSUPPORTED, "division by zero");
            if (op == OP_DIV) {
                *out = value_float((double)a / (double)b);
                return ERR_OK;
            }
            if (b == -1) { /* the one division that can overflow */
                if (op == OP_MOD) break;
                overflow = __builtin_sub_overflow((int64_t)0, a, &n);
                break;
            }
            bool round_down = a % b != 0 && (a % b < 0) != (b < 0);
            n = op == OP_FLOORDIV ? a / b - round_down : a % b + (round_down ? b : 0);
    }
    if (overflow) return too_large(r);
    *out = value_int(n);
    return ERR_OK;
}

static double float_mod(double a, double b) {
    double m = fmod(a, b);
    return m == 0 ? copysign(0.0, b) : (m < 0) != (b < 0) ? m + b : m;
}

static err_code float_arithmetic(rendering *r, operator_kind op, double a, double b, value *out) {
    double d = 0;
    switch (op) {
        case OP_ADD:
            d = a + b;
            break;
        case OP_SUB:
            d = a - b;
            break;
        case OP_MUL:
            d = a * b;
            break;
        case OP_POW:
            if (a == 0 && b < 0) return template_fail(r, ERR_UNSUPPORTED, "0.0 cannot be raised to a negative power");
            if (a < 0 && floor(b) != b) return template_fail(r, ERR_UNSUPPORTED, "complex numbers are not supported");
            d = pow(a, b);
            if (isinf(d) && !isinf(a) && !isinf(b)) return template_fail(r, ERR_UNSUPPORTED, "result too large");
            break;
        default:
            if (b == 0) return template_fail(r, ERR_UNSUPPORTED, "float division by zero");
            d = op == OP_DIV ? a / b : op == OP_MOD ? float_mod(a, b) : floor((a - float_mod(a, b)) / b + 0.5);
            if (op == OP_FLOORDIV && isinf(b)) d = float_mod(a, b) != a ? -1 : 0;
    }
    *out = value_float(d);
    return ERR_OK;
}

static err_code add_texts(rendering *r, value a, value b, value *out) {
    if (a.flag != b.flag) { /* text next to safe text is escaped, as Markup does */
        ERR_TRY(text_escape(r, value_span(a.flag ? b : a), a.flag ? &b : &a));
    }
    value parts[] = {a, b};
    ERR_TRY(text_concat(r, parts, 2, out));
    out->flag = a.flag;
    return ERR_OK;
}

static err_code add_sequences(rendering *r, sequence *a, sequence *b, value *out) {
    sequence *q;
    seq_load(r, a);
    seq_load(r, b);
    ERR_TRY(seq_create(r, a->kind, (uint64_t)a->count + b->count, &q));
    if (a->count) memcpy(q->items, a->items, a->count * sizeof *q->items);
    if (b->count) memcpy(q->items + a->count, b->items, b->count * sizeof *q->items);
    *out = value_seq(q);
    return ERR_OK;
}

static err_code repeat(rendering *r, value v, int64_t times, value *out) {
    if (v.type == V_STR) return text_repeat(r, value_span(v), times, out);
    sequence *q;
    seq_load(r, v.seq);
    uint64_t count;
    if (times < 0) times = 0;
    if (__builtin_mul_overflow((uint64_t)times, (uint64_t)v.seq->count, &count)) count = UINT64_MAX;
    ERR_TRY(seq_create(r, v.seq->kind, count, &q));
    for (uint64_t i = 0; i < count; i++) q->items[i] = v.seq->items[i % v.seq->count];
    *out = value_seq(q);
    return ERR_OK;
}

static bool is_list(value v) { return v.type == V_SEQ && v.seq->kind <= SEQ_TUPLE; }

err_code template_binary(rendering *r, operator_kind op, value a, value b, value *out) {
    int64_t x, y;
    if (a.type == V_STR && op == OP_MOD) return text_format(r, value_span(a), b, out);
    if (value_integer(a, &x) && value_integer(b, &y)) return int_arithmetic(r, op, x, y, out);
    if (value_is_number(a) && value_is_number(b)) return float_arithmetic(r, op, value_real(a), value_real(b), out);
    if (op == OP_ADD && a.type == V_STR && b.type == V_STR) return add_texts(r, a, b, out);
    if (op == OP_ADD && is_list(a) && is_list(b) && a.seq->kind == b.seq->kind)
        return add_sequences(r, a.seq, b.seq, out);
    if (op == OP_MUL && (a.type == V_STR || is_list(a)) && value_integer(b, &y)) return repeat(r, a, y, out);
    if (op == OP_MUL && (b.type == V_STR || is_list(b)) && value_integer(a, &x)) return repeat(r, b, x, out);
    return bad_operands(r, op, a, b);
}

err_code template_compare(rendering *r, operator_kind op, value a, value b, bool *out) {
    static const char *const names[] = {[OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};
    if (op == OP_EQ || op == OP_NE) {
        ERR_TRY(value_equal(r, a, b, out));
        *out = *out == (op == OP_EQ);
        return ERR_OK;
    }
    if (op == OP_IN || op == OP_NOT_IN) {
        ERR_TRY(value_contains(r, b, a, out));
        *out = *out == (op == OP_IN);
        return ERR_OK;
    }
    int order;
    ERR_TRY(value_order(r, a, b, names[op], &order));
    *out = order != 2 && (op == OP_LT ? order < 0 : op == OP_LE ? order <= 0 : op == OP_GT ? order > 0 : order >= 0);
    return ERR_OK;
}
