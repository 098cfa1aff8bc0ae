/* Tests: `value is name(argument)`. values[0] is the value. */
#include <math.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/template_internal.h"

static err_code answer(value *out, bool b) {
    *out = value_bool(b);
    return ERR_OK;
}

#define TYPE_TEST(name, condition)                                              \
    static err_code test_##name(rendering *r, const arguments *a, value *out) { \
        value v = a->values[0];                                                 \
        (void)r;                                                                \
        return answer(out, (condition));                                        \
    }

TYPE_TEST(defined, v.type != V_UNDEFINED)
TYPE_TEST(undefined, v.type == V_UNDEFINED)
TYPE_TEST(none, v.type == V_NONE)
TYPE_TEST(boolean, v.type == V_BOOL)
TYPE_TEST(true, v.type == V_BOOL && v.truth)
TYPE_TEST(false, v.type == V_BOOL && !v.truth)
TYPE_TEST(integer, v.type == V_INT || v.type == V_BIG)
TYPE_TEST(float, v.type == V_FLOAT)
TYPE_TEST(number, value_is_number(v) || v.type == V_BIG)
TYPE_TEST(string, v.type == V_STR)
TYPE_TEST(mapping, v.type == V_DICT)
TYPE_TEST(callable,
          v.type == V_MACRO || v.type == V_BUILTIN || v.type == V_METHOD || v.type == V_LOOP || v.type == V_UNDEFINED)
TYPE_TEST(escaped, v.type == V_STR && v.flag == STR_SAFE)
TYPE_TEST(iterable, v.type == V_STR || v.type == V_SEQ || v.type == V_DICT || v.type == V_LOOP ||
                        (v.type == V_UNDEFINED && v.flag != UNDEFINED_UNSAFE))
/* Python asks for len() and indexing by name, which Undefined has too */
TYPE_TEST(sequence, v.type == V_STR || v.type == V_DICT || v.type == V_UNDEFINED ||
                        (v.type == V_SEQ && (v.seq->kind <= SEQ_TUPLE || v.seq->kind == SEQ_RANGE)))

static err_code need_integer(rendering *r, value v, int64_t *out) {
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    if (value_integer(v, out)) return ERR_OK;
    return template_fail(r, ERR_UNSUPPORTED, "an integer is needed, not '%s'", value_type_name(v));
}

static err_code test_divisible(rendering *r, const arguments *a, value *out) {
    int64_t n, by;
    ERR_TRY(need_integer(r, a->values[0], &n));
    ERR_TRY(need_integer(r, a->values[1], &by));
    if (by == 0) return template_fail(r, ERR_UNSUPPORTED, "integer modulo by zero");
    return answer(out, by == -1 || n % by == 0);
}

/* The remainder by 2, as Python's %. */
static err_code parity(rendering *r, value v, double *out) {
    int64_t n;
    if (v.type == V_FLOAT) {
        *out = fabs(fmod(v.real, 2)); /* Python's remainder is not negative */
        if (v.real < 0 && *out > 0) *out = 2 - *out;
        return ERR_OK;
    }
    if (v.type == V_BIG) {
        *out = (v.text[v.size - 1] - '0') & 1;
        return ERR_OK;
    }
    ERR_TRY(need_integer(r, v, &n));
    *out = (double)(n & 1);
    return ERR_OK;
}

static err_code test_odd(rendering *r, const arguments *a, value *out) {
    double rest;
    ERR_TRY(parity(r, a->values[0], &rest));
    return answer(out, rest == 1);
}

static err_code test_even(rendering *r, const arguments *a, value *out) {
    double rest;
    ERR_TRY(parity(r, a->values[0], &rest));
    return answer(out, rest == 0);
}

static err_code case_test(rendering *r, value v, bool upper, value *out) {
    value text;
    ERR_TRY(value_to_str(r, v, &text));
    ERR_TRY(charge(r, text.size / 8));
    bool any = false, other = false;
    for (size_t i = 0; i < text.size;) {
        uint32_t c;
        int n = utf8_decode(text.text + i, text.size - i, &c);
        i += n > 0 ? (size_t)n : 1;
        utf8proc_category_t k = n > 0 ? utf8proc_category((utf8proc_int32_t)c) : UTF8PROC_CATEGORY_CN;
        if (k == (upper ? UTF8PROC_CATEGORY_LU : UTF8PROC_CATEGORY_LL)) any = true;
        if (k == (upper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU) || k == UTF8PROC_CATEGORY_LT) other = true;
    }
    return answer(out, any && !other);
}

static err_code test_upper(rendering *r, const arguments *a, value *out) {
    return case_test(r, a->values[0], true, out);
}
static err_code test_lower(rendering *r, const arguments *a, value *out) {
    return case_test(r, a->values[0], false, out);
}

#define COMPARISON_TEST(name, op)                                                \
    static err_code test_##name(rendering *r, const arguments *a, value *out) {  \
        bool result = false;                                                     \
        ERR_TRY(template_compare(r, (op), a->values[0], a->values[1], &result)); \
        return answer(out, result);                                              \
    }

COMPARISON_TEST(eq, OP_EQ)
COMPARISON_TEST(ne, OP_NE)
COMPARISON_TEST(lt, OP_LT)
COMPARISON_TEST(le, OP_LE)
COMPARISON_TEST(gt, OP_GT)
COMPARISON_TEST(ge, OP_GE)
COMPARISON_TEST(in, OP_IN)

/* Identity: exact for none, booleans and containers; equal numbers and texts count as the same. */
static err_code test_sameas(rendering *r, const arguments *a, value *out) {
    value x = a->values[0], y = a->values[1];
    bool same = x.type == y.type;
    if (same && (x.type == V_SEQ || x.type == V_DICT || x.type == V_NAMESPACE)) return answer(out, x.seq == y.seq);
    if (same) ERR_TRY(value_equal(r, x, y, &same));
    return answer(out, same);
}

static err_code test_filter(rendering *r, const arguments *a, value *out) {
    (void)r;
    return answer(out, a->values[0].type == V_STR && filter_find(value_span(a->values[0])));
}

static err_code test_test(rendering *r, const arguments *a, value *out) {
    (void)r;
    return answer(out, a->values[0].type == V_STR && test_find(value_span(a->values[0])));
}

static const builtin tests[] = {
    {"defined", "value", 1, test_defined},     {"undefined", "value", 1, test_undefined},
    {"none", "value", 1, test_none},           {"boolean", "value", 1, test_boolean},
    {"true", "value", 1, test_true},           {"false", "value", 1, test_false},
    {"integer", "value", 1, test_integer},     {"float", "value", 1, test_float},
    {"number", "value", 1, test_number},       {"string", "value", 1, test_string},
    {"mapping", "value", 1, test_mapping},     {"sequence", "value", 1, test_sequence},
    {"iterable", "value", 1, test_iterable},   {"callable", "value", 1, test_callable},
    {"escaped", "value", 1, test_escaped},     {"lower", "value", 1, test_lower},
    {"upper", "value", 1, test_upper},         {"odd", "value", 1, test_odd},
    {"even", "value", 1, test_even},           {"divisibleby", "value num", 2, test_divisible},
    {"sameas", "value other", 2, test_sameas}, {"filter", "value", 1, test_filter},
    {"test", "value", 1, test_test},           {"in", "value seq", 2, test_in},
    {"eq", "value other", 2, test_eq},         {"equalto", "value other", 2, test_eq},
    {"==", "value other", 2, test_eq},         {"ne", "value other", 2, test_ne},
    {"!=", "value other", 2, test_ne},         {"lt", "value other", 2, test_lt},
    {"lessthan", "value other", 2, test_lt},   {"<", "value other", 2, test_lt},
    {"le", "value other", 2, test_le},         {"<=", "value other", 2, test_le},
    {"gt", "value other", 2, test_gt},         {"greaterthan", "value other", 2, test_gt},
    {">", "value other", 2, test_gt},          {"ge", "value other", 2, test_ge},
    {">=", "value other", 2, test_ge},
};

const builtin *test_find(span name) { return builtin_find(tests, sizeof tests / sizeof *tests, name); }

const builtin *builtin_find(const builtin *table, size_t count, span name) {
    for (size_t i = 0; i < count; i++)
        if (span_is(name, table[i].name)) return &table[i];
    return NULL;
}
