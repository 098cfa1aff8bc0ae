/* What the files of the template parser share: template_scope.c (tokens, nodes, names), template_expression.c and
 * template_parse.c (statements). */
#ifndef HEARTH_TEXT_TEMPLATE_PARSER_H
#define HEARTH_TEXT_TEMPLATE_PARSER_H

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

static inline token *current(parser *p) { return &p->tokens[p->at]; }
static inline token *look(parser *p) { return current(p)->type == T_EOF ? current(p) : &p->tokens[p->at + 1]; }
static inline void skip_token(parser *p) {
    if (current(p)->type != T_EOF) p->at++;
}
static inline bool is_op(const token *t, const char *text) { return t->type == T_OPERATOR && span_is(t->text, text); }
static inline bool is_name(const token *t, const char *text) { return t->type == T_NAME && span_is(t->text, text); }

#define PARSE_FAIL(p, token_, code, format, ...) \
    ERR_FAIL((p)->err, (code), "%s:%u:%u: " format, (p)->t->name, (token_)->line, (token_)->column, ##__VA_ARGS__)

static inline bool skip_op(parser *p, const char *op) {
    bool found = is_op(current(p), op);
    if (found) skip_token(p);
    return found;
}

static inline bool skip_name(parser *p, const char *name) {
    bool found = is_name(current(p), name);
    if (found) skip_token(p);
    return found;
}

/* ---- template_scope.c */

const char *parse_describe(const token *t, char out[64]);
err_code parse_unexpected(parser *p, const char *expected); /* "expected ..., found ..." at the current token */
err_code parse_expect_op(parser *p, const char *op);
err_code parse_expect_type(parser *p, token_type type, const char *what);
err_code parse_nest(parser *p); /* one level deeper; p->nested-- when done */
node *parse_node(parser *p, node_kind kind, const token *at);
err_code parse_list_add(parser *p, node_list *l, node *n);

void scope_open(parser *p, scope *s, function *f, bool is_macro);
void scope_close(parser *p);
/* Closes the scope of statement n, which empties the scope's slots whenever it enters it. */
void scope_close_into(parser *p, node *n);
uint32_t scope_add(parser *p, scope *s, span name, slot_info info);
/* Where the name is found from scope s outwards. */
void scope_resolve(parser *p, scope *s, span name, uint16_t *up, uint32_t *slot);
/* The current scope's own slot for a name that is set in it. */
uint32_t scope_declare(parser *p, span name);

/* ---- template_expression.c */

err_code parse_expression(parser *p, node **out);
err_code parse_name(parser *p, node **out);
err_code parse_filter(parser *p, node *object, node **out); /* at the filter's name */
/* "a, b, c" or one expression. In brackets it may be empty; outside it ends at the tag's end. */
err_code parse_tuple(parser *p, bool conditional, bool brackets, node **out);

#endif
