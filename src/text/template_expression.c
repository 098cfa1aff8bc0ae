/* Expressions by recursive descent, in Jinja's order of precedence:
 * if-else, or, and, not, comparisons, + -, ~, * / // %, **, unary signs, then attributes, calls, filters and tests. */
#include <string.h>

#include "text/template_parser.h"

static err_code parse_concat(parser *p, node **out);
static err_code parse_unary(parser *p, bool with_filter, node **out);

static node *make_const(parser *p, const token *at, value v) {
    node *n = parse_node(p, N_CONST, at);
    n->constant = v;
    return n;
}

err_code parse_name(parser *p, node **out) {
    token *t = current(p);
    static const struct {
        const char *name;
        int8_t value; /* -1 = none */
    } constants[] = {{"true", 1}, {"True", 1}, {"false", 0}, {"False", 0}, {"none", -1}, {"None", -1}};
    skip_token(p);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (span_is(t->text, constants[i].name)) {
            *out = make_const(p, t, constants[i].value < 0 ? value_none() : value_bool(constants[i].value));
            return ERR_OK;
        }
    node *n = parse_node(p, N_NAME, t);
    n->text = t->text;
    scope_resolve(p, p->scope, t->text, &n->up, &n->slot);
    *out = n;
    return ERR_OK;
}

/* Adjacent strings are one. */
static err_code parse_string(parser *p, node **out) {
    token *t = current(p);
    size_t size = 0, n = 0, from = p->at;
    for (; current(p)->type == T_STRING; skip_token(p)) size += current(p)->text.size;
    span text = t->text;
    if (p->at > from + 1) {
        char *joined = arena_alloc(p->memory, size);
        for (size_t i = from; i < p->at; i++) {
            if (p->tokens[i].text.size) memcpy(joined + n, p->tokens[i].text.data, p->tokens[i].text.size);
            n += p->tokens[i].text.size;
        }
        text = span_make(joined, size);
    }
    *out = make_const(p, t, value_str(text));
    return ERR_OK;
}

static err_code parse_list(parser *p, node **out) {
    node *n = parse_node(p, N_LIST, current(p));
    node_list items = {0};
    skip_token(p);
    while (!is_op(current(p), "]")) {
        if (items.count) {
            ERR_TRY(parse_expect_op(p, ","));
            if (is_op(current(p), "]")) break;
        }
        node *item;
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(parse_list_add(p, &items, item));
    }
    skip_token(p);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_dict(parser *p, node **out) {
    node *n = parse_node(p, N_DICT, current(p));
    node_list items = {0};
    skip_token(p);
    while (!is_op(current(p), "}")) {
        if (items.count) {
            ERR_TRY(parse_expect_op(p, ","));
            if (is_op(current(p), "}")) break;
        }
        node *key, *item;
        ERR_TRY(parse_expression(p, &key));
        ERR_TRY(parse_list_add(p, &items, key));
        ERR_TRY(parse_expect_op(p, ":"));
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(parse_list_add(p, &items, item));
    }
    skip_token(p);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_primary(parser *p, node **out) {
    token *t = current(p);
    switch (t->type) {
        case T_NAME:
            return parse_name(p, out);
        case T_STRING:
            return parse_string(p, out);
        case T_INTEGER:
        case T_FLOAT:
            skip_token(p);
            *out = make_const(p, t, t->number);
            return ERR_OK;
    }
    ERR_TRY(parse_nest(p));
    if (skip_op(p, "(")) {
        ERR_TRY(parse_tuple(p, true, true, out));
        ERR_TRY(parse_expect_op(p, ")"));
    } else if (is_op(t, "[")) {
        ERR_TRY(parse_list(p, out));
    } else if (is_op(t, "{")) {
        ERR_TRY(parse_dict(p, out));
    } else {
        return parse_unexpected(p, "an expression");
    }
    p->nested--;
    return ERR_OK;
}

static err_code parse_argument(parser *p, node **out) {
    token *t = current(p);
    node *n;
    if (skip_op(p, "*")) {
        n = parse_node(p, N_SPREAD, t);
    } else if (skip_op(p, "**")) {
        n = parse_node(p, N_SPREAD_KEYWORDS, t);
    } else if (t->type == T_NAME && is_op(look(p), "=")) {
        n = parse_node(p, N_KEYWORD, t);
        n->text = t->text;
        skip_token(p);
        skip_token(p);
    } else {
        return parse_expression(p, out);
    }
    node *a;
    ERR_TRY(parse_expression(p, &a));
    n->a = a;
    *out = n;
    return ERR_OK;
}

/* "(a, b=c, *d, **e)": positional arguments first. */
static err_code parse_arguments(parser *p, node *call) {
    node_list items = {0};
    bool only_keywords = false;
    ERR_TRY(parse_expect_op(p, "("));
    while (!is_op(current(p), ")")) {
        if (items.count) {
            ERR_TRY(parse_expect_op(p, ","));
            if (is_op(current(p), ")")) break;
        }
        node *item;
        token *t = current(p);
        ERR_TRY(parse_argument(p, &item));
        bool named = item->kind == N_KEYWORD || item->kind == N_SPREAD_KEYWORDS;
        if (only_keywords && !named) PARSE_FAIL(p, t, ERR_FORMAT, "a positional argument after keyword arguments");
        only_keywords = only_keywords || named;
        ERR_TRY(parse_list_add(p, &items, item));
    }
    skip_token(p);
    call->first = items.first;
    call->count = (uint16_t)items.count;
    return ERR_OK;
}

static err_code parse_slice_part(parser *p, const node **out) {
    token *t = current(p);
    if (is_op(t, ":") || is_op(t, "]") || is_op(t, ",")) return ERR_OK;
    node *n;
    ERR_TRY(parse_expression(p, &n));
    *out = n;
    return ERR_OK;
}

static err_code parse_subscript(parser *p, node *object, node **out) {
    token *t = current(p);
    node *n = parse_node(p, N_ITEM, t), *slice = parse_node(p, N_SLICE, t);
    skip_token(p);
    n->a = object;
    ERR_TRY(parse_slice_part(p, &slice->a));
    if (skip_op(p, ":")) {
        ERR_TRY(parse_slice_part(p, &slice->b));
        if (skip_op(p, ":")) ERR_TRY(parse_slice_part(p, &slice->c));
        n->b = slice;
    } else if (slice->a) {
        n->b = slice->a;
    } else {
        return parse_unexpected(p, "an index");
    }
    if (is_op(current(p), ",")) PARSE_FAIL(p, t, ERR_UNSUPPORTED, "an index of several parts is not supported");
    ERR_TRY(parse_expect_op(p, "]"));
    *out = n;
    return ERR_OK;
}

static err_code parse_attribute(parser *p, node *object, node **out) {
    skip_token(p);
    token *t = current(p);
    node *n = parse_node(p, t->type == T_INTEGER ? N_ITEM : N_ATTR, t);
    n->a = object;
    if (t->type == T_INTEGER) {
        n->b = make_const(p, t, t->number);
    } else if (t->type == T_NAME) {
        n->text = t->text;
        n->str_method = str_method_find(t->text);
        n->dict_method = dict_method_find(t->text);
        n->unsafe = dict_method_is_unsafe(t->text);
    } else {
        return parse_unexpected(p, "a name after '.'");
    }
    skip_token(p);
    *out = n;
    return ERR_OK;
}

static err_code parse_call(parser *p, node *callee, node **out) {
    node *n = parse_node(p, N_CALL, current(p));
    n->a = callee;
    ERR_TRY(parse_nest(p));
    ERR_TRY(parse_arguments(p, n));
    p->nested--;
    *out = n;
    return ERR_OK;
}

static err_code parse_postfix(parser *p, node **out) {
    for (;;) {
        if (is_op(current(p), ".")) {
            ERR_TRY(parse_attribute(p, *out, out));
        } else if (is_op(current(p), "[")) {
            ERR_TRY(parse_nest(p));
            ERR_TRY(parse_subscript(p, *out, out));
            p->nested--;
        } else if (is_op(current(p), "(")) {
            ERR_TRY(parse_call(p, *out, out));
        } else {
            return ERR_OK;
        }
    }
}

/* Names of filters and tests may be dotted. */
static err_code parse_builtin_name(parser *p, span *out) {
    if (current(p)->type != T_NAME) return parse_unexpected(p, "a name");
    *out = current(p)->text;
    skip_token(p);
    if (is_op(current(p), "."))
        PARSE_FAIL(p, current(p), ERR_UNSUPPORTED, "dotted filter and test names are not known");
    return ERR_OK;
}

err_code parse_filter(parser *p, node *object, node **out) {
    node *n = parse_node(p, N_FILTER, current(p));
    n->a = object;
    ERR_TRY(parse_builtin_name(p, &n->text));
    n->builtin = filter_find(n->text);
    if (is_op(current(p), "(")) {
        ERR_TRY(parse_nest(p));
        ERR_TRY(parse_arguments(p, n));
        p->nested--;
    }
    *out = n;
    return ERR_OK;
}

/* A test may take one argument without brackets: `x is divisibleby 3`. */
static bool starts_test_argument(const token *t) {
    if (t->type == T_NAME) return !is_name(t, "else") && !is_name(t, "or") && !is_name(t, "and");
    return t->type == T_STRING || t->type == T_INTEGER || t->type == T_FLOAT || is_op(t, "[") || is_op(t, "{");
}

static err_code parse_test(parser *p, node *object, node **out) {
    token *is = current(p);
    skip_token(p);
    bool negated = skip_name(p, "not");
    node *n = parse_node(p, N_TEST, current(p));
    n->a = object;
    ERR_TRY(parse_builtin_name(p, &n->text));
    n->builtin = test_find(n->text);
    if (is_op(current(p), "(")) {
        ERR_TRY(parse_nest(p));
        ERR_TRY(parse_arguments(p, n));
        p->nested--;
    } else if (starts_test_argument(current(p))) {
        if (is_name(current(p), "is")) PARSE_FAIL(p, current(p), ERR_FORMAT, "tests cannot be chained with 'is'");
        node *argument;
        ERR_TRY(parse_primary(p, &argument));
        ERR_TRY(parse_postfix(p, &argument));
        n->first = argument;
        n->count = 1;
    }
    *out = n;
    if (!negated) return ERR_OK;
    node *not = parse_node(p, N_NOT, is);
    not ->a = n;
    *out = not ;
    return ERR_OK;
}

static err_code parse_filters_and_tests(parser *p, node **out) {
    for (;;) {
        if (skip_op(p, "|")) {
            ERR_TRY(parse_filter(p, *out, out));
        } else if (is_name(current(p), "is")) {
            ERR_TRY(parse_test(p, *out, out));
        } else if (is_op(current(p), "(")) {
            ERR_TRY(parse_call(p, *out, out));
        } else {
            return ERR_OK;
        }
    }
}

static err_code parse_unary(parser *p, bool with_filter, node **out) {
    token *t = current(p);
    if (is_op(t, "-") || is_op(t, "+")) {
        node *n = parse_node(p, is_op(t, "-") ? N_NEGATE : N_PLUS, t), *a;
        skip_token(p);
        ERR_TRY(parse_nest(p));
        ERR_TRY(parse_unary(p, false, &a));
        p->nested--;
        n->a = a;
        *out = n;
    } else {
        ERR_TRY(parse_primary(p, out));
    }
    ERR_TRY(parse_postfix(p, out));
    return with_filter ? parse_filters_and_tests(p, out) : ERR_OK;
}

static err_code make_binary(parser *p, const token *at, operator_kind op, node *left, node *right, node **out) {
    node *n = parse_node(p, N_BINARY, at);
    n->op = (uint8_t)op;
    n->a = left;
    n->b = right;
    *out = n;
    return ERR_OK;
}

static err_code parse_pow(parser *p, node **out) {
    ERR_TRY(parse_unary(p, true, out));
    while (is_op(current(p), "**")) {
        token *t = current(p);
        skip_token(p);
        node *right;
        ERR_TRY(parse_unary(p, true, &right));
        ERR_TRY(make_binary(p, t, OP_POW, *out, right, out));
    }
    return ERR_OK;
}

static err_code parse_product(parser *p, node **out) {
    static const struct {
        const char *text;
        operator_kind op;
    } operators[] = {{"*", OP_MUL}, {"/", OP_DIV}, {"//", OP_FLOORDIV}, {"%", OP_MOD}};
    ERR_TRY(parse_pow(p, out));
    for (size_t i = 0; i < 4;) {
        token *t = current(p);
        if (!is_op(t, operators[i].text)) {
            i++;
            continue;
        }
        skip_token(p);
        node *right;
        ERR_TRY(parse_pow(p, &right));
        ERR_TRY(make_binary(p, t, operators[i].op, *out, right, out));
        i = 0;
    }
    return ERR_OK;
}

/* first + b + c ... (or ~), the operator being the current token. At most PARTS_MAX operands are on the evaluation stack
 * at once, so a longer chain is the first operand of a further node. */
static err_code parse_chain(parser *p, node_kind kind, const char *op, node *first, node **out) {
    token *t = current(p);
    node_list parts = {0};
    ERR_TRY(parse_list_add(p, &parts, first));
    while (parts.count < PARTS_MAX && skip_op(p, op)) {
        node *part;
        ERR_TRY(kind == N_SUM ? parse_concat(p, &part) : parse_product(p, &part));
        ERR_TRY(parse_list_add(p, &parts, part));
    }
    node *n = parse_node(p, kind, t);
    n->first = parts.first;
    n->count = (uint16_t)parts.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_concat(parser *p, node **out) {
    ERR_TRY(parse_product(p, out));
    while (is_op(current(p), "~")) ERR_TRY(parse_chain(p, N_CONCAT, "~", *out, out));
    return ERR_OK;
}

/* A run of additions is one node; a subtraction ends it. */
static err_code parse_sum(parser *p, node **out) {
    ERR_TRY(parse_concat(p, out));
    for (token *t = current(p); is_op(t, "+") || is_op(t, "-"); t = current(p)) {
        node *right;
        if (is_op(t, "+")) {
            ERR_TRY(parse_chain(p, N_SUM, "+", *out, out));
            continue;
        }
        skip_token(p);
        ERR_TRY(parse_concat(p, &right));
        ERR_TRY(make_binary(p, t, OP_SUB, *out, right, out));
    }
    return ERR_OK;
}

static bool skip_comparison(parser *p, operator_kind *op) {
    static const struct {
        const char *text;
        operator_kind op;
    } operators[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<", OP_LT}, {"<=", OP_LE}, {">", OP_GT}, {">=", OP_GE}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (skip_op(p, operators[i].text)) {
            *op = operators[i].op;
            return true;
        }
    *op = OP_IN;
    if (skip_name(p, "in")) return true;
    *op = OP_NOT_IN;
    if (!is_name(current(p), "not") || !is_name(look(p), "in")) return false;
    skip_token(p);
    skip_token(p);
    return true;
}

static err_code parse_comparison(parser *p, node **out) {
    ERR_TRY(parse_sum(p, out));
    node *n = NULL;
    node_list operands = {0};
    operator_kind op;
    for (token *t = current(p); skip_comparison(p, &op); t = current(p)) {
        if (!n) n = parse_node(p, N_COMPARE, t);
        node *operand = parse_node(p, N_BINARY, t), *right;
        ERR_TRY(parse_sum(p, &right));
        operand->op = (uint8_t)op;
        operand->a = right;
        ERR_TRY(parse_list_add(p, &operands, operand));
    }
    if (!n) return ERR_OK;
    n->a = *out;
    n->first = operands.first;
    *out = n;
    return ERR_OK;
}

static err_code parse_not(parser *p, node **out) {
    if (!is_name(current(p), "not")) return parse_comparison(p, out);
    node *n = parse_node(p, N_NOT, current(p)), *a;
    skip_token(p);
    ERR_TRY(parse_nest(p));
    ERR_TRY(parse_not(p, &a));
    p->nested--;
    n->a = a;
    *out = n;
    return ERR_OK;
}

static err_code parse_logic(parser *p, bool is_or, node **out) {
    ERR_TRY(is_or ? parse_logic(p, false, out) : parse_not(p, out));
    for (token *t = current(p); skip_name(p, is_or ? "or" : "and"); t = current(p)) {
        node *n = parse_node(p, is_or ? N_OR : N_AND, t), *right;
        ERR_TRY(is_or ? parse_logic(p, false, &right) : parse_not(p, &right));
        n->a = *out;
        n->b = right;
        *out = n;
    }
    return ERR_OK;
}

/* Without `a if b else c`. */
static err_code parse_or(parser *p, node **out) { return parse_logic(p, true, out); }

err_code parse_expression(parser *p, node **out) {
    ERR_TRY(parse_nest(p));
    ERR_TRY(parse_or(p, out));
    for (token *t = current(p); skip_name(p, "if"); t = current(p)) {
        node *n = parse_node(p, N_COND, t), *test, *other = NULL;
        ERR_TRY(parse_or(p, &test));
        if (skip_name(p, "else")) ERR_TRY(parse_expression(p, &other));
        n->a = test;
        n->b = *out;
        n->c = other;
        *out = n;
    }
    p->nested--;
    return ERR_OK;
}

err_code parse_tuple(parser *p, bool conditional, bool brackets, node **out) {
    token *t = current(p);
    node_list items = {0};
    bool tuple = false;
    for (;;) {
        token *c = current(p);
        if (c->type == T_VARIABLE_END || c->type == T_BLOCK_END || is_op(c, ")") || is_name(c, "recursive")) break;
        node *item;
        ERR_TRY(conditional ? parse_expression(p, &item) : parse_or(p, &item));
        ERR_TRY(parse_list_add(p, &items, item));
        if (!skip_op(p, ",")) break;
        tuple = true;
    }
    if (!tuple && items.count) {
        *out = items.first;
        return ERR_OK;
    }
    if (!tuple && !brackets) return parse_unexpected(p, "an expression");
    node *n = parse_node(p, N_TUPLE, t);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}
