/* Names to slots, and the small steps of parsing.
 *
 * Names are resolved here. Jinja's scopes (the template, a macro, a loop body, a block set, `with` ...) differ from
 * Python's: a name that is set inside one is visible only there, and reading it before it is set there gives the outer
 * one. So every scope that sets a name has a slot of its own for it, and an empty slot refers to the same name one scope
 * further out (slot_info); a name that nothing sets is a slot of the template's frame, filled from the input. A slot
 * belongs to a function (the template or a macro); macros reach outer functions' slots by counting frames outwards. */
#include <stdio.h>
#include <string.h>

#include "text/template_parser.h"

const char *parse_describe(const token *t, char out[64]) {
    static const char *const names[] = {
        [T_DATA] = "text",           [T_BLOCK_BEGIN] = "'{%'",  [T_BLOCK_END] = "'%}'",
        [T_VARIABLE_BEGIN] = "'{{'", [T_VARIABLE_END] = "'}}'", [T_STRING] = "a string",
        [T_INTEGER] = "a number",    [T_FLOAT] = "a number",    [T_EOF] = "the end of the template"};
    if (t->type != T_NAME && t->type != T_OPERATOR) return names[t->type];
    snprintf(out, 64, "'%.*s'", (int)(t->text.size < 40 ? t->text.size : 40), t->text.data);
    return out;
}

err_code parse_unexpected(parser *p, const char *expected) {
    char text[64];
    PARSE_FAIL(p, current(p), ERR_FORMAT, "expected %s, found %s", expected, parse_describe(current(p), text));
}

err_code parse_expect_op(parser *p, const char *op) {
    char text[8];
    snprintf(text, sizeof text, "'%s'", op);
    if (!is_op(current(p), op)) return parse_unexpected(p, text);
    skip_token(p);
    return ERR_OK;
}

err_code parse_expect_type(parser *p, token_type type, const char *what) {
    if (current(p)->type != type) return parse_unexpected(p, what);
    skip_token(p);
    return ERR_OK;
}

err_code parse_nest(parser *p) {
    if (++p->nested > NESTED_MAX) PARSE_FAIL(p, current(p), ERR_LIMIT, "nested more than %d deep", NESTED_MAX);
    return ERR_OK;
}

node *parse_node(parser *p, node_kind kind, const token *at) {
    node *n = arena_alloc(p->memory, sizeof *n);
    *n = (node){.kind = (uint8_t)kind, .line = at->line, .column = at->column};
    return n;
}

err_code parse_list_add(parser *p, node_list *l, node *n) {
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

void scope_open(parser *p, scope *s, function *f, bool is_macro) {
    *s = (scope){.outer = p->scope, .function = f, .is_macro = is_macro};
    p->scope = s;
}

void scope_close(parser *p) { p->scope = p->scope->outer; }

void scope_close_into(parser *p, node *n) {
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

uint32_t scope_add(parser *p, scope *s, span name, slot_info info) {
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

void scope_resolve(parser *p, scope *s, span name, uint16_t *up, uint32_t *slot) {
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

uint32_t scope_declare(parser *p, span name) {
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
