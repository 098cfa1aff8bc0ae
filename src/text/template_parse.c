/* Tokens to a syntax tree, by recursive descent in Jinja's order of precedence.
 *
 * Names are resolved here. Jinja's scopes (the template, a macro, a loop body, a block set, `with` ...) differ from
 * Python's: a name that is set inside one is visible only there, and reading it before it is set there gives the outer
 * one. So every scope that sets a name has a slot of its own for it, and an empty slot refers to the same name one scope
 * further out (slot_info); a name that nothing sets is a slot of the template's frame, filled from the input. A slot
 * belongs to a function (the template or a macro); macros reach outer functions' slots by counting frames outwards.
 *
 * Nesting is bounded here (NESTED_MAX), since hostile templates are 10,000 brackets deep. A long chain of operators is a
 * deep tree too, but costs the parser no stack; rendering bounds its own depth. */
#include <stdio.h>
#include <string.h>

#include "text/template_internal.h"

enum { NESTED_MAX = 100, SOURCE_MAX = 4 << 20, LIST_MAX = 60000, PARTS_MAX = 1000, SLOTS_MAX = 60000 };

typedef struct name_slot {
    span name;
    uint32_t slot;
    struct name_slot *next;
} name_slot;

typedef struct scope {
    struct scope *outer;
    function *function;
    bool is_macro; /* the outermost scope of a macro */
    name_slot *names;
} scope;

typedef struct parser {
    chat_template *t;
    arena *memory;
    token *tokens;
    size_t at;
    scope *scope;
    int nested, loops;
    error *err;
} parser;

/* A list of nodes under construction. */
typedef struct node_list {
    node *first, *last;
    uint32_t count;
} node_list;

static token *current(parser *p) { return &p->tokens[p->at]; }
static token *look(parser *p) { return current(p)->type == T_EOF ? current(p) : &p->tokens[p->at + 1]; }
static void skip_token(parser *p) {
    if (current(p)->type != T_EOF) p->at++;
}
static bool is_op(const token *t, const char *text) { return t->type == T_OPERATOR && span_is(t->text, text); }
static bool is_name(const token *t, const char *text) { return t->type == T_NAME && span_is(t->text, text); }

#define PARSE_FAIL(p, token_, code, format, ...) \
    ERR_FAIL((p)->err, (code), "%s:%u:%u: " format, (p)->t->name, (token_)->line, (token_)->column, ##__VA_ARGS__)

static const char *describe(const token *t, char out[64]) {
    static const char *const names[] = {
        [T_DATA] = "text",           [T_BLOCK_BEGIN] = "'{%'",  [T_BLOCK_END] = "'%}'",
        [T_VARIABLE_BEGIN] = "'{{'", [T_VARIABLE_END] = "'}}'", [T_STRING] = "a string",
        [T_INTEGER] = "a number",    [T_FLOAT] = "a number",    [T_EOF] = "the end of the template"};
    if (t->type != T_NAME && t->type != T_OPERATOR) return names[t->type];
    snprintf(out, 64, "'%.*s'", (int)(t->text.size < 40 ? t->text.size : 40), t->text.data);
    return out;
}

static err_code unexpected(parser *p, const char *expected) {
    char text[64];
    PARSE_FAIL(p, current(p), ERR_FORMAT, "expected %s, found %s", expected, describe(current(p), text));
}

static err_code expect_op(parser *p, const char *op) {
    char text[8];
    snprintf(text, sizeof text, "'%s'", op);
    if (!is_op(current(p), op)) return unexpected(p, text);
    skip_token(p);
    return ERR_OK;
}

static err_code expect_type(parser *p, token_type type, const char *what) {
    if (current(p)->type != type) return unexpected(p, what);
    skip_token(p);
    return ERR_OK;
}

static bool skip_op(parser *p, const char *op) {
    bool found = is_op(current(p), op);
    if (found) skip_token(p);
    return found;
}

static bool skip_name(parser *p, const char *name) {
    bool found = is_name(current(p), name);
    if (found) skip_token(p);
    return found;
}

static err_code nest(parser *p) {
    if (++p->nested > NESTED_MAX) PARSE_FAIL(p, current(p), ERR_LIMIT, "nested more than %d deep", NESTED_MAX);
    return ERR_OK;
}

static node *make(parser *p, node_kind kind, const token *at) {
    node *n = arena_alloc(p->memory, sizeof *n);
    *n = (node){.kind = (uint8_t)kind, .line = at->line, .column = at->column};
    return n;
}

static err_code list_add(parser *p, node_list *l, node *n) {
    if (l->count == LIST_MAX)
        ERR_FAIL(p->err, ERR_LIMIT, "%s:%u:%u: a list of more than %d items", p->t->name, n->line, n->column, LIST_MAX);
    if (l->last)
        l->last->next = n;
    else
        l->first = n;
    l->last = n;
    l->count++;
    return ERR_OK;
}

/* ---- names and scopes */

static void scope_open(parser *p, scope *s, function *f, bool is_macro) {
    *s = (scope){.outer = p->scope, .function = f, .is_macro = is_macro};
    p->scope = s;
}

static void scope_close(parser *p) { p->scope = p->scope->outer; }

/* Closes the scope of statement n, which empties the scope's slots whenever it enters it. */
static void scope_close_into(parser *p, node *n) {
    for (name_slot *name = p->scope->names; name; name = name->next) n->own_count++;
    uint32_t *own = arena_alloc(p->memory, n->own_count * sizeof *own), i = 0;
    for (name_slot *name = p->scope->names; name; name = name->next) own[i++] = name->slot;
    n->own = own;
    scope_close(p);
}

static name_slot *scope_find(const scope *s, span name) {
    for (name_slot *n = s->names; n; n = n->next)
        if (span_equal(n->name, name)) return n;
    return NULL;
}

static uint32_t scope_add(parser *p, scope *s, span name, slot_info info) {
    function *f = s->function;
    if ((f->slot_count & (f->slot_count - 1)) == 0) { /* the capacity is the next power of two */
        slot_info *bigger = arena_alloc(p->memory, (f->slot_count ? f->slot_count * 2 : 1) * sizeof *bigger);
        if (f->slot_count) memcpy(bigger, f->slots, f->slot_count * sizeof *bigger);
        f->slots = bigger;
    }
    info.name = name;
    f->slots[f->slot_count] = info;
    name_slot *entry = arena_alloc(p->memory, sizeof *entry);
    *entry = (name_slot){.name = name, .slot = f->slot_count, .next = s->names};
    s->names = entry;
    return f->slot_count++;
}

static bool is_macro_variable(span name) {
    return span_is(name, "caller") || span_is(name, "varargs") || span_is(name, "kwargs");
}

static uint32_t macro_variable(parser *p, scope *s, span name) {
    uint32_t slot = scope_add(p, s, name, (slot_info){0});
    function *f = s->function;
    *(span_is(name, "caller") ? &f->slot_caller : span_is(name, "varargs") ? &f->slot_varargs : &f->slot_kwargs) = slot;
    return slot;
}

/* Where the name is found from scope s outwards. */
static void scope_resolve(parser *p, scope *s, span name, uint16_t *up, uint32_t *slot) {
    *up = 0;
    for (;; s = s->outer) {
        name_slot *found = scope_find(s, name);
        if (found) {
            *slot = found->slot;
            return;
        }
        if (s->is_macro && is_macro_variable(name)) {
            *slot = macro_variable(p, s, name);
            return;
        }
        if (!s->outer) {
            *slot = scope_add(p, s, name, (slot_info){0});
            return;
        }
        if (s->outer->function != s->function) ++*up;
    }
}

/* The current scope's own slot for a name that is set in it. */
static uint32_t scope_declare(parser *p, span name) {
    name_slot *own = scope_find(p->scope, name);
    if (own) return own->slot;
    slot_info info = {0};
    if (p->scope->outer) {
        info.has_outer = true;
        scope_resolve(p, p->scope->outer, name, &info.outer_up, &info.outer_slot);
        if (p->scope->outer->function != p->scope->function) info.outer_up++;
    }
    return scope_add(p, p->scope, name, info);
}

/* ---- expressions */

static err_code parse_expression(parser *p, node **out);
static err_code parse_or(parser *p, node **out);
static err_code parse_concat(parser *p, node **out);
static err_code parse_unary(parser *p, bool with_filter, node **out);
static err_code parse_tuple(parser *p, bool conditional, bool brackets, node **out);

static node *make_const(parser *p, const token *at, value v) {
    node *n = make(p, N_CONST, at);
    n->constant = v;
    return n;
}

static err_code parse_name(parser *p, node **out) {
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
    node *n = make(p, N_NAME, t);
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
    node *n = make(p, N_LIST, current(p));
    node_list items = {0};
    skip_token(p);
    while (!is_op(current(p), "]")) {
        if (items.count) {
            ERR_TRY(expect_op(p, ","));
            if (is_op(current(p), "]")) break;
        }
        node *item;
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(list_add(p, &items, item));
    }
    skip_token(p);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_dict(parser *p, node **out) {
    node *n = make(p, N_DICT, current(p));
    node_list items = {0};
    skip_token(p);
    while (!is_op(current(p), "}")) {
        if (items.count) {
            ERR_TRY(expect_op(p, ","));
            if (is_op(current(p), "}")) break;
        }
        node *key, *item;
        ERR_TRY(parse_expression(p, &key));
        ERR_TRY(list_add(p, &items, key));
        ERR_TRY(expect_op(p, ":"));
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(list_add(p, &items, item));
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
    ERR_TRY(nest(p));
    if (skip_op(p, "(")) {
        ERR_TRY(parse_tuple(p, true, true, out));
        ERR_TRY(expect_op(p, ")"));
    } else if (is_op(t, "[")) {
        ERR_TRY(parse_list(p, out));
    } else if (is_op(t, "{")) {
        ERR_TRY(parse_dict(p, out));
    } else {
        return unexpected(p, "an expression");
    }
    p->nested--;
    return ERR_OK;
}

static err_code parse_argument(parser *p, node **out) {
    token *t = current(p);
    node *n;
    if (skip_op(p, "*")) {
        n = make(p, N_SPREAD, t);
    } else if (skip_op(p, "**")) {
        n = make(p, N_SPREAD_KEYWORDS, t);
    } else if (t->type == T_NAME && is_op(look(p), "=")) {
        n = make(p, N_KEYWORD, t);
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
    ERR_TRY(expect_op(p, "("));
    while (!is_op(current(p), ")")) {
        if (items.count) {
            ERR_TRY(expect_op(p, ","));
            if (is_op(current(p), ")")) break;
        }
        node *item;
        token *t = current(p);
        ERR_TRY(parse_argument(p, &item));
        bool named = item->kind == N_KEYWORD || item->kind == N_SPREAD_KEYWORDS;
        if (only_keywords && !named) PARSE_FAIL(p, t, ERR_FORMAT, "a positional argument after keyword arguments");
        only_keywords = only_keywords || named;
        ERR_TRY(list_add(p, &items, item));
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
    node *n = make(p, N_ITEM, t), *slice = make(p, N_SLICE, t);
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
        return unexpected(p, "an index");
    }
    if (is_op(current(p), ",")) PARSE_FAIL(p, t, ERR_UNSUPPORTED, "an index of several parts is not supported");
    ERR_TRY(expect_op(p, "]"));
    *out = n;
    return ERR_OK;
}

static err_code parse_attribute(parser *p, node *object, node **out) {
    skip_token(p);
    token *t = current(p);
    node *n = make(p, t->type == T_INTEGER ? N_ITEM : N_ATTR, t);
    n->a = object;
    if (t->type == T_INTEGER) {
        n->b = make_const(p, t, t->number);
    } else if (t->type == T_NAME) {
        n->text = t->text;
        n->str_method = str_method_find(t->text);
        n->dict_method = dict_method_find(t->text);
        n->unsafe = dict_method_is_unsafe(t->text);
    } else {
        return unexpected(p, "a name after '.'");
    }
    skip_token(p);
    *out = n;
    return ERR_OK;
}

static err_code parse_call(parser *p, node *callee, node **out) {
    node *n = make(p, N_CALL, current(p));
    n->a = callee;
    ERR_TRY(nest(p));
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
            ERR_TRY(nest(p));
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
    if (current(p)->type != T_NAME) return unexpected(p, "a name");
    *out = current(p)->text;
    skip_token(p);
    if (is_op(current(p), "."))
        PARSE_FAIL(p, current(p), ERR_UNSUPPORTED, "dotted filter and test names are not known");
    return ERR_OK;
}

/* At the filter's name. */
static err_code parse_filter(parser *p, node *object, node **out) {
    node *n = make(p, N_FILTER, current(p));
    n->a = object;
    ERR_TRY(parse_builtin_name(p, &n->text));
    n->builtin = filter_find(n->text);
    if (is_op(current(p), "(")) {
        ERR_TRY(nest(p));
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
    node *n = make(p, N_TEST, current(p));
    n->a = object;
    ERR_TRY(parse_builtin_name(p, &n->text));
    n->builtin = test_find(n->text);
    if (is_op(current(p), "(")) {
        ERR_TRY(nest(p));
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
    node *not = make(p, N_NOT, is);
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
        node *n = make(p, is_op(t, "-") ? N_NEGATE : N_PLUS, t), *a;
        skip_token(p);
        ERR_TRY(nest(p));
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
    node *n = make(p, N_BINARY, at);
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
    ERR_TRY(list_add(p, &parts, first));
    while (parts.count < PARTS_MAX && skip_op(p, op)) {
        node *part;
        ERR_TRY(kind == N_SUM ? parse_concat(p, &part) : parse_product(p, &part));
        ERR_TRY(list_add(p, &parts, part));
    }
    node *n = make(p, kind, t);
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
        if (!n) n = make(p, N_COMPARE, t);
        node *operand = make(p, N_BINARY, t), *right;
        ERR_TRY(parse_sum(p, &right));
        operand->op = (uint8_t)op;
        operand->a = right;
        ERR_TRY(list_add(p, &operands, operand));
    }
    if (!n) return ERR_OK;
    n->a = *out;
    n->first = operands.first;
    *out = n;
    return ERR_OK;
}

static err_code parse_not(parser *p, node **out) {
    if (!is_name(current(p), "not")) return parse_comparison(p, out);
    node *n = make(p, N_NOT, current(p)), *a;
    skip_token(p);
    ERR_TRY(nest(p));
    ERR_TRY(parse_not(p, &a));
    p->nested--;
    n->a = a;
    *out = n;
    return ERR_OK;
}

static err_code parse_logic(parser *p, bool is_or, node **out) {
    ERR_TRY(is_or ? parse_logic(p, false, out) : parse_not(p, out));
    for (token *t = current(p); skip_name(p, is_or ? "or" : "and"); t = current(p)) {
        node *n = make(p, is_or ? N_OR : N_AND, t), *right;
        ERR_TRY(is_or ? parse_logic(p, false, &right) : parse_not(p, &right));
        n->a = *out;
        n->b = right;
        *out = n;
    }
    return ERR_OK;
}

static err_code parse_or(parser *p, node **out) { return parse_logic(p, true, out); }

static err_code parse_expression(parser *p, node **out) {
    ERR_TRY(nest(p));
    ERR_TRY(parse_or(p, out));
    for (token *t = current(p); skip_name(p, "if"); t = current(p)) {
        node *n = make(p, N_COND, t), *test, *other = NULL;
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

/* "a, b, c" or one expression. In brackets it may be empty; outside it ends at the tag's end. */
static err_code parse_tuple(parser *p, bool conditional, bool brackets, node **out) {
    token *t = current(p);
    node_list items = {0};
    bool tuple = false;
    for (;;) {
        token *c = current(p);
        if (c->type == T_VARIABLE_END || c->type == T_BLOCK_END || is_op(c, ")") || is_name(c, "recursive")) break;
        node *item;
        ERR_TRY(conditional ? parse_expression(p, &item) : parse_or(p, &item));
        ERR_TRY(list_add(p, &items, item));
        if (!skip_op(p, ",")) break;
        tuple = true;
    }
    if (!tuple && items.count) {
        *out = items.first;
        return ERR_OK;
    }
    if (!tuple && !brackets) return unexpected(p, "an expression");
    node *n = make(p, N_TUPLE, t);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

/* ---- statements */

static err_code parse_body(parser *p, const char *const *ends, node_list *out);

static err_code end_tag(parser *p) { return expect_type(p, T_BLOCK_END, "'%}'"); }

static const char *const ends_if[] = {"elif", "else", "endif", NULL};

/* Names of a target are declared later (bind_target), once what stands right of it has been read. */
static err_code parse_target_item(parser *p, node **out);
static err_code parse_target(parser *p, node **out) {
    token *t = current(p);
    node_list items = {0};
    bool tuple = false;
    while (current(p)->type == T_NAME || is_op(current(p), "(")) {
        if (is_name(current(p), "in") && items.count) break;
        node *item;
        ERR_TRY(parse_target_item(p, &item));
        ERR_TRY(list_add(p, &items, item));
        if (!skip_op(p, ",")) break;
        tuple = true;
    }
    if (!items.count) return unexpected(p, "a name to assign to");
    if (!tuple) {
        *out = items.first;
        return ERR_OK;
    }
    node *n = make(p, N_TUPLE, t);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_target_item(parser *p, node **out) {
    token *t = current(p);
    skip_token(p);
    if (is_op(t, "(")) {
        ERR_TRY(nest(p));
        ERR_TRY(parse_target(p, out));
        p->nested--;
        return expect_op(p, ")");
    }
    static const char *const reserved[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < 6; i++)
        if (span_is(t->text, reserved[i])) PARSE_FAIL(p, t, ERR_FORMAT, "cannot assign to '%s'", reserved[i]);
    *out = make(p, N_NAME, t);
    (*out)->text = t->text;
    return ERR_OK;
}

static void bind_target(parser *p, const node *target) {
    if (target->kind == N_TUPLE)
        for (const node *n = target->first; n; n = n->next) bind_target(p, n);
    else if (target->kind == N_NAME)
        ((node *)target)->slot = scope_declare(p, target->text);
}

/* The filters of `{% filter x|y %}` and `{% set v | x %}`, applied to N_FILTERED. */
static err_code parse_filter_chain(parser *p, const node **out) {
    node *n = make(p, N_FILTERED, current(p));
    do ERR_TRY(parse_filter(p, n, &n));
    while (skip_op(p, "|"));
    *out = n;
    return ERR_OK;
}

/* A body in a scope of its own, up to {% end %}, the end consumed; its slots are emptied on entry. */
static err_code parse_scoped_body(parser *p, node *n, const char *end) {
    const char *const ends[] = {end, NULL};
    scope s;
    node_list body = {0};
    scope_open(p, &s, p->scope->function, false);
    ERR_TRY(parse_body(p, ends, &body));
    skip_token(p);
    n->first = body.first;
    scope_close_into(p, n);
    return ERR_OK;
}

static err_code parse_set(parser *p, node **out) {
    token *t = current(p);
    node *target, *right;
    if (t->type == T_NAME && is_op(look(p), ".")) {
        node *object;
        ERR_TRY(parse_name(p, &object));
        skip_token(p);
        if (current(p)->type != T_NAME) return unexpected(p, "a name after '.'");
        target = make(p, N_SET_MEMBER, t);
        target->a = object;
        target->text = current(p)->text;
        skip_token(p);
    } else {
        ERR_TRY(parse_target(p, &target));
    }
    node *n = make(p, N_SET, t);
    *out = n;
    n->a = target;
    if (skip_op(p, "=")) {
        ERR_TRY(parse_tuple(p, true, false, &right));
        n->b = right;
        bind_target(p, target);
        return ERR_OK;
    }
    n->kind = N_SET_BLOCK;
    if (skip_op(p, "|")) ERR_TRY(parse_filter_chain(p, &n->c));
    ERR_TRY(end_tag(p));
    ERR_TRY(parse_scoped_body(p, n, "endset"));
    bind_target(p, target);
    return ERR_OK;
}

static err_code parse_if(parser *p, node **out) {
    node *n = NULL;
    for (bool more = true; more;) {
        node *branch = make(p, N_IF, current(p)), *test;
        ERR_TRY(parse_tuple(p, false, false, &test));
        ERR_TRY(end_tag(p));
        node_list body = {0}, other = {0};
        ERR_TRY(parse_body(p, ends_if, &body));
        branch->a = test;
        branch->first = body.first;
        if (n)
            n->b = branch;
        else
            *out = branch;
        n = branch;
        more = skip_name(p, "elif");
        if (!more && skip_name(p, "else")) {
            static const char *const ends[] = {"endif", NULL};
            ERR_TRY(end_tag(p));
            ERR_TRY(parse_body(p, ends, &other));
            n->b = other.first;
        }
    }
    if (!skip_name(p, "endif")) return unexpected(p, "'endif'");
    return ERR_OK;
}

static err_code parse_for(parser *p, node **out) {
    node *n = make(p, N_FOR, current(p)), *target, *iterable, *test = NULL;
    ERR_TRY(parse_target(p, &target));
    if (!skip_name(p, "in")) return unexpected(p, "'in'");
    ERR_TRY(parse_tuple(p, false, false, &iterable));
    n->a = target;
    n->b = iterable;
    function *f = p->scope->function;
    scope s;
    node_list body = {0};
    static const char *const ends[] = {"else", "endfor", NULL};
    scope_open(p, &s, f, false);
    bind_target(p, target);
    n->slot = scope_declare(p, span_text("loop"));
    if (skip_name(p, "if")) ERR_TRY(parse_expression(p, &test));
    n->c = test;
    if (is_name(current(p), "recursive"))
        PARSE_FAIL(p, current(p), ERR_UNSUPPORTED, "recursive loops are not supported");
    ERR_TRY(end_tag(p));
    p->loops++;
    ERR_TRY(parse_body(p, ends, &body));
    p->loops--;
    n->first = body.first;
    scope_close_into(p, n);
    if (skip_name(p, "else")) {
        ERR_TRY(end_tag(p));
        node *other = make(p, N_SCOPE, current(p));
        ERR_TRY(parse_scoped_body(p, other, "endfor"));
        n->other = other;
    } else {
        skip_token(p);
    }
    *out = n;
    return ERR_OK;
}

static err_code parse_parameters(parser *p, function *f) {
    node_list parameters = {0};
    bool defaults = false;
    ERR_TRY(expect_op(p, "("));
    while (!is_op(current(p), ")")) {
        if (parameters.count) ERR_TRY(expect_op(p, ","));
        token *t = current(p);
        node *n, *value_node = NULL;
        if (t->type != T_NAME) return unexpected(p, "a parameter");
        ERR_TRY(parse_target_item(p, &n));
        n->slot = scope_add(p, p->scope, n->text, (slot_info){0});
        if (span_is(n->text, "caller")) f->slot_caller = n->slot;
        if (skip_op(p, "=")) {
            ERR_TRY(parse_expression(p, &value_node));
            defaults = true;
        } else if (defaults) {
            PARSE_FAIL(p, t, ERR_FORMAT, "a parameter without a default after one with a default");
        }
        n->a = value_node;
        ERR_TRY(list_add(p, &parameters, n));
    }
    skip_token(p);
    f->parameters = parameters.first;
    f->parameter_count = parameters.count;
    return ERR_OK;
}

/* Parameters (unless there are none to read) and body of a macro or call block. */
static err_code parse_function(parser *p, span name, bool with_parameters, scope *s, function **out) {
    function *f = arena_alloc(p->memory, sizeof *f);
    *f = (function){.name = name, .slot_caller = -1, .slot_varargs = -1, .slot_kwargs = -1};
    for (scope *outer = p->scope; outer; outer = outer->outer) outer->function->captured = true;
    *out = f;
    scope_open(p, s, f, true);
    if (with_parameters) ERR_TRY(parse_parameters(p, f));
    return ERR_OK;
}

static err_code finish_function(parser *p, function *f, const char *end) {
    const char *const ends[] = {end, NULL};
    node_list body = {0};
    int loops = p->loops;
    p->loops = 0;
    ERR_TRY(end_tag(p));
    ERR_TRY(parse_body(p, ends, &body));
    skip_token(p);
    f->body = body.first;
    p->loops = loops;
    scope_close(p);
    return ERR_OK;
}

static err_code parse_macro(parser *p, node **out) {
    node *n = make(p, N_MACRO, current(p)), *target;
    if (current(p)->type != T_NAME) return unexpected(p, "a macro's name");
    ERR_TRY(parse_target_item(p, &target));
    bind_target(p, target);
    n->a = target;
    scope s;
    ERR_TRY(parse_function(p, target->text, true, &s, &n->function));
    ERR_TRY(finish_function(p, n->function, "endmacro"));
    *out = n;
    return ERR_OK;
}

/* {% call(parameters) macro(arguments) %} body {% endcall %}: the body becomes the argument `caller`. */
static err_code parse_call_block(parser *p, node **out) {
    node *n = make(p, N_CALL_BLOCK, current(p)), *call;
    scope s;
    ERR_TRY(parse_function(p, span_text("caller"), is_op(current(p), "("), &s, &n->function));
    scope_close(p); /* the call itself belongs outside */
    token *t = current(p);
    ERR_TRY(parse_expression(p, &call));
    if (call->kind != N_CALL) PARSE_FAIL(p, t, ERR_FORMAT, "expected a call");
    n->a = call;
    p->scope = &s;
    ERR_TRY(finish_function(p, n->function, "endcall"));
    *out = n;
    return ERR_OK;
}

static err_code parse_filter_block(parser *p, node **out) {
    node *n = make(p, N_FILTER_BLOCK, current(p));
    ERR_TRY(parse_filter_chain(p, &n->c));
    ERR_TRY(end_tag(p));
    ERR_TRY(parse_scoped_body(p, n, "endfilter"));
    *out = n;
    return ERR_OK;
}

static err_code parse_with(parser *p, node **out) {
    static const char *const ends[] = {"endwith", NULL};
    node *n = make(p, N_WITH, current(p));
    node_list pairs = {0}, body = {0};
    while (current(p)->type != T_BLOCK_END) {
        if (pairs.count) ERR_TRY(expect_op(p, ","));
        node *target, *right;
        ERR_TRY(parse_target_item(p, &target));
        ERR_TRY(expect_op(p, "="));
        ERR_TRY(parse_expression(p, &right));
        ERR_TRY(list_add(p, &pairs, target));
        ERR_TRY(list_add(p, &pairs, right));
    }
    ERR_TRY(end_tag(p));
    scope s;
    scope_open(p, &s, p->scope->function, false);
    for (node *target = pairs.first; target; target = (node *)target->next->next) bind_target(p, target);
    ERR_TRY(parse_body(p, ends, &body));
    skip_token(p);
    n->a = pairs.first;
    n->first = body.first;
    scope_close_into(p, n);
    *out = n;
    return ERR_OK;
}

static err_code parse_loop_control(parser *p, node_kind kind, node **out) {
    if (!p->loops) PARSE_FAIL(p, current(p), ERR_FORMAT, "break or continue outside a loop");
    *out = make(p, kind, current(p));
    return ERR_OK;
}

static err_code parse_print(parser *p, node **out) {
    node *n = make(p, N_OUTPUT, current(p)), *item;
    node_list items = {0};
    do {
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(list_add(p, &items, item));
    } while (skip_op(p, ","));
    n->first = items.first;
    *out = n;
    return ERR_OK;
}

/* At the tag's name. */
static err_code parse_statement(parser *p, node **out) {
    token *t = current(p);
    if (t->type != T_NAME) return unexpected(p, "a tag's name");
    skip_token(p);
    if (span_is(t->text, "set")) return parse_set(p, out);
    if (span_is(t->text, "if")) return parse_if(p, out);
    if (span_is(t->text, "for")) return parse_for(p, out);
    if (span_is(t->text, "macro")) return parse_macro(p, out);
    if (span_is(t->text, "call")) return parse_call_block(p, out);
    if (span_is(t->text, "filter")) return parse_filter_block(p, out);
    if (span_is(t->text, "with")) return parse_with(p, out);
    if (span_is(t->text, "print")) return parse_print(p, out);
    if (span_is(t->text, "break")) return parse_loop_control(p, N_BREAK, out);
    if (span_is(t->text, "continue")) return parse_loop_control(p, N_CONTINUE, out);
    if (span_is(t->text, "generation")) { /* marks what a model writes; the text stays as it is */
        ERR_TRY(end_tag(p));
        *out = make(p, N_SCOPE, t);
        ERR_TRY(parse_scoped_body(p, *out, "endgeneration"));
        return ERR_OK;
    }
    static const char *const refused[] = {"import", "from", "include", "extends", "block", "autoescape", "do", "trans"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (span_is(t->text, refused[i])) PARSE_FAIL(p, t, ERR_UNSUPPORTED, "'%s' is not supported", refused[i]);
    char text[64];
    PARSE_FAIL(p, t, ERR_FORMAT, "unknown tag %s", describe(t, text));
}

static bool at_end_tag(parser *p, const char *const *ends) {
    for (; ends && *ends; ends++)
        if (is_name(current(p), *ends)) return true;
    return false;
}

/* Statements up to a tag whose name is one of ends (left as the current token), or to the end when ends is NULL. */
static err_code parse_body(parser *p, const char *const *ends, node_list *out) {
    ERR_TRY(nest(p));
    token *opened = current(p);
    for (;;) {
        token *t = current(p);
        node *n;
        if (t->type == T_EOF) {
            while (ends && ends[1]) ends++;
            if (ends) PARSE_FAIL(p, opened, ERR_FORMAT, "'%s' is missing for the block that begins here", ends[0]);
            break;
        }
        skip_token(p);
        if (t->type == T_DATA) {
            n = make(p, N_TEXT, t);
            n->text = t->text;
        } else if (t->type == T_VARIABLE_BEGIN) {
            node *expression;
            ERR_TRY(parse_tuple(p, true, false, &expression));
            ERR_TRY(expect_type(p, T_VARIABLE_END, "'}}'"));
            n = make(p, N_OUTPUT, t);
            n->first = expression;
        } else {
            if (at_end_tag(p, ends)) break;
            ERR_TRY(parse_statement(p, &n));
            ERR_TRY(end_tag(p));
        }
        ERR_TRY(list_add(p, out, n));
    }
    p->nested--;
    return ERR_OK;
}

err_code template_parse(chat_template *t, error *err) {
    if (t->source.size > SOURCE_MAX)
        ERR_FAIL(err, ERR_LIMIT, "%s: a template of %zu bytes, more than %d", t->name, t->source.size, SOURCE_MAX);
    parser p = {.t = t, .memory = t->memory, .err = err};
    size_t count;
    ERR_TRY(template_lex(t->memory, t->name, t->source, &p.tokens, &count, err));
    t->root = arena_alloc(t->memory, sizeof *t->root);
    *t->root = (function){.slot_caller = -1, .slot_varargs = -1, .slot_kwargs = -1};
    scope root;
    scope_open(&p, &root, t->root, false);
    node_list body = {0};
    ERR_TRY(parse_body(&p, NULL, &body));
    t->root->body = body.first;
    if (t->root->slot_count > SLOTS_MAX) ERR_FAIL(err, ERR_LIMIT, "%s: more than %d variables", t->name, SLOTS_MAX);
    return ERR_OK;
}
