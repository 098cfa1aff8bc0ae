/* Statements, and the whole template, to a syntax tree. Expressions are in template_expression.c, names in
 * template_scope.c.
 *
 * Nesting is bounded (NESTED_MAX), since hostile templates are 10,000 brackets deep. A long chain of operators is a deep
 * tree too, but costs the parser no stack; rendering bounds its own depth. */

#include "text/template_parser.h"

static err_code parse_body(parser *p, const char *const *ends, node_list *out);

static err_code end_tag(parser *p) { return parse_expect_type(p, T_BLOCK_END, "'%}'"); }

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
        ERR_TRY(parse_list_add(p, &items, item));
        if (!skip_op(p, ",")) break;
        tuple = true;
    }
    if (!items.count) return parse_unexpected(p, "a name to assign to");
    if (!tuple) {
        *out = items.first;
        return ERR_OK;
    }
    node *n = parse_node(p, N_TUPLE, t);
    n->first = items.first;
    n->count = (uint16_t)items.count;
    *out = n;
    return ERR_OK;
}

static err_code parse_target_item(parser *p, node **out) {
    token *t = current(p);
    skip_token(p);
    if (is_op(t, "(")) {
        ERR_TRY(parse_nest(p));
        ERR_TRY(parse_target(p, out));
        p->nested--;
        return parse_expect_op(p, ")");
    }
    static const char *const reserved[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < 6; i++)
        if (span_is(t->text, reserved[i])) PARSE_FAIL(p, t, ERR_FORMAT, "cannot assign to '%s'", reserved[i]);
    *out = parse_node(p, N_NAME, t);
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
    node *n = parse_node(p, N_FILTERED, current(p));
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
        if (current(p)->type != T_NAME) return parse_unexpected(p, "a name after '.'");
        target = parse_node(p, N_SET_MEMBER, t);
        target->a = object;
        target->text = current(p)->text;
        skip_token(p);
    } else {
        ERR_TRY(parse_target(p, &target));
    }
    node *n = parse_node(p, N_SET, t);
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
        node *branch = parse_node(p, N_IF, current(p)), *test;
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
    if (!skip_name(p, "endif")) return parse_unexpected(p, "'endif'");
    return ERR_OK;
}

static err_code parse_for(parser *p, node **out) {
    node *n = parse_node(p, N_FOR, current(p)), *target, *iterable, *test = NULL;
    ERR_TRY(parse_target(p, &target));
    if (!skip_name(p, "in")) return parse_unexpected(p, "'in'");
    ERR_TRY(parse_tuple(p, false, false, &iterable));
    n->a = target;
    n->b = iterable;
    function *f = p->scope->function;
    scope s;
    node_list body = {0};
    static const char *const ends[] = {"else", "endfor", NULL};
    scope_open(p, &s, f, false);
    bind_target(p, target);
    if (skip_name(p, "if")) ERR_TRY(parse_expression(p, &test));
    n->slot = scope_declare(p, span_text("loop")); /* in the filter, `loop` is the one around */
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
        node *other = parse_node(p, N_SCOPE, current(p));
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
    ERR_TRY(parse_expect_op(p, "("));
    while (!is_op(current(p), ")")) {
        if (parameters.count) ERR_TRY(parse_expect_op(p, ","));
        token *t = current(p);
        node *n, *value_node = NULL;
        if (t->type != T_NAME) return parse_unexpected(p, "a parameter");
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
        ERR_TRY(parse_list_add(p, &parameters, n));
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
    node *n = parse_node(p, N_MACRO, current(p)), *target;
    if (current(p)->type != T_NAME) return parse_unexpected(p, "a macro's name");
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
    node *n = parse_node(p, N_CALL_BLOCK, current(p)), *call;
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
    node *n = parse_node(p, N_FILTER_BLOCK, current(p));
    ERR_TRY(parse_filter_chain(p, &n->c));
    ERR_TRY(end_tag(p));
    ERR_TRY(parse_scoped_body(p, n, "endfilter"));
    *out = n;
    return ERR_OK;
}

static err_code parse_with(parser *p, node **out) {
    static const char *const ends[] = {"endwith", NULL};
    node *n = parse_node(p, N_WITH, current(p));
    node_list pairs = {0}, body = {0};
    while (current(p)->type != T_BLOCK_END) {
        if (pairs.count) ERR_TRY(parse_expect_op(p, ","));
        node *target, *right;
        ERR_TRY(parse_target_item(p, &target));
        ERR_TRY(parse_expect_op(p, "="));
        ERR_TRY(parse_expression(p, &right));
        ERR_TRY(parse_list_add(p, &pairs, target));
        ERR_TRY(parse_list_add(p, &pairs, right));
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
    *out = parse_node(p, kind, current(p));
    return ERR_OK;
}

static err_code parse_print(parser *p, node **out) {
    node *n = parse_node(p, N_OUTPUT, current(p)), *item;
    node_list items = {0};
    do {
        ERR_TRY(parse_expression(p, &item));
        ERR_TRY(parse_list_add(p, &items, item));
    } while (skip_op(p, ","));
    n->first = items.first;
    *out = n;
    return ERR_OK;
}

/* At the tag's name. */
static err_code parse_statement(parser *p, node **out) {
    token *t = current(p);
    if (t->type != T_NAME) return parse_unexpected(p, "a tag's name");
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
        *out = parse_node(p, N_SCOPE, t);
        ERR_TRY(parse_scoped_body(p, *out, "endgeneration"));
        return ERR_OK;
    }
    static const char *const refused[] = {"import", "from", "include", "extends", "block", "autoescape", "do", "trans"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (span_is(t->text, refused[i])) PARSE_FAIL(p, t, ERR_UNSUPPORTED, "'%s' is not supported", refused[i]);
    char text[64];
    PARSE_FAIL(p, t, ERR_FORMAT, "unknown tag %s", parse_describe(t, text));
}

static bool at_end_tag(parser *p, const char *const *ends) {
    for (; ends && *ends; ends++)
        if (is_name(current(p), *ends)) return true;
    return false;
}

/* Statements up to a tag whose name is one of ends (left as the current token), or to the end when ends is NULL. */
static err_code parse_body(parser *p, const char *const *ends, node_list *out) {
    ERR_TRY(parse_nest(p));
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
            n = parse_node(p, N_TEXT, t);
            n->text = t->text;
        } else if (t->type == T_VARIABLE_BEGIN) {
            node *expression;
            ERR_TRY(parse_tuple(p, true, false, &expression));
            ERR_TRY(parse_expect_type(p, T_VARIABLE_END, "'}}'"));
            n = parse_node(p, N_OUTPUT, t);
            n->first = expression;
        } else {
            if (at_end_tag(p, ends)) break;
            ERR_TRY(parse_statement(p, &n));
            ERR_TRY(end_tag(p));
        }
        ERR_TRY(parse_list_add(p, out, n));
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
