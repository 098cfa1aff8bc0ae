/* Walks the syntax tree: statements write to the output, expressions give values.
 *
 * Output goes straight to the caller's buffer. A macro's or block's output is a value, so it is collected at the end of
 * the same buffer and then taken off again; when it turns out to be a single piece (a macro that prints its argument)
 * that piece is the value and nothing is copied. Additions and `~` put a text together once, and when the whole result
 * is only printed the parts are printed one after the other.
 *
 * Limits: every node and every 8 to 64 bytes of text looked at cost a step; depth is counted where the C stack grows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template_internal.h"

static err_code eval(rendering *r, frame *f, const node *n, value *out);
static err_code exec(rendering *r, frame *f, const node *n);

/* ---- errors and limits */

err_code template_fail(rendering *r, err_code code, const char *format, ...) {
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const node *at = r->at;
    if (!at) ERR_FAIL(r->err, code, "%s: %s", r->t->name, message);
    ERR_FAIL(r->err, code, "%s:%u:%u: %s", r->t->name, at->line, at->column, message);
}

err_code template_out_of_steps(rendering *r) {
    return template_fail(r, ERR_LIMIT, "the template takes more than %llu steps", (unsigned long long)r->steps_max);
}

static err_code out_of_memory(rendering *r, size_t size) {
    return template_fail(r, ERR_LIMIT, "the template needs %zu bytes more than the limit of %llu", size,
                         (unsigned long long)r->output_max);
}

err_code template_alloc(rendering *r, size_t size, void **out) {
    if (size > r->output_max || size > UINT32_MAX || arena_used(r->memory) > r->output_max - size)
        return out_of_memory(r, size);
    *out = arena_alloc(r->memory, size);
    return ERR_OK;
}

err_code template_enter(rendering *r) {
    if (++r->nesting <= NESTING_MAX) return ERR_OK;
    r->nesting--;
    return template_fail(r, ERR_LIMIT, "values or calls nested more than %d deep", NESTING_MAX);
}

/* ---- output */

static err_code write_out(rendering *r, span s) {
    if (s.size > r->output_max || r->out->size - r->out_start > r->output_max - s.size)
        return template_fail(r, ERR_LIMIT, "the output is longer than %llu bytes", (unsigned long long)r->output_max);
    buffer_append(r->out, s.data, s.size);
    return ERR_OK;
}

/* s must stay valid for the rest of the rendering. */
static err_code emit(rendering *r, span s) {
    capture *c = r->capture;
    if (!c || c->many) return write_out(r, s);
    if (!s.size) return ERR_OK;
    if (!c->pending) {
        c->single = s;
        c->pending = true;
        return ERR_OK;
    }
    c->many = true;
    ERR_TRY(write_out(r, c->single));
    return write_out(r, s);
}

static err_code emit_value(rendering *r, value v) {
    if (v.type == V_STR) return emit(r, value_span(v));
    if (v.type == V_UNDEFINED) return ERR_OK;
    value text;
    ERR_TRY(value_to_str(r, v, &text));
    return emit(r, value_span(text));
}

static void capture_begin(rendering *r, capture *c) {
    *c = (capture){.outer = r->capture, .mark = r->out->size};
    r->capture = c;
}

static err_code capture_end(rendering *r, capture *c, value *out) {
    r->capture = c->outer;
    if (!c->many) {
        *out = value_str(c->pending ? c->single : span_make("", 0));
        return ERR_OK;
    }
    size_t size = r->out->size - c->mark;
    void *memory;
    ERR_TRY(template_alloc(r, size, &memory));
    memcpy(memory, r->out->data + c->mark, size);
    r->out->size = c->mark;
    r->out->data[c->mark] = 0;
    *out = value_str(span_make(memory, size));
    return ERR_OK;
}

/* ---- frames and names */

static err_code frame_open(rendering *r, const function *fn, frame *parent, frame **out) {
    for (frame **f = &r->free_frames; *f; f = &(*f)->next_free) {
        ERR_TRY(charge(r, 1));
        if ((*f)->function != fn) continue;
        *out = *f;
        *f = (*f)->next_free;
        break;
    }
    if (!*out) {
        void *memory;
        ERR_TRY(template_alloc(r, sizeof **out + fn->slot_count * sizeof(value), &memory));
        *out = memory;
        (*out)->slots = (value *)((char *)memory + sizeof **out);
    }
    (*out)->parent = parent;
    (*out)->function = fn;
    memset((*out)->slots, 0, fn->slot_count * sizeof(value));
    return ERR_OK;
}

static void frame_close(rendering *r, frame *f) {
    if (f->function->captured) return;
    f->next_free = r->free_frames;
    r->free_frames = f;
}

static err_code empty_slots(rendering *r, frame *f, const node *scope) {
    for (uint32_t i = 0; i < scope->own_count; i++) f->slots[scope->own[i]] = (value){0};
    return charge(r, scope->own_count / 8);
}

/* A slot of the template's own frame gets its value from the input when it is first read. */
static void load_root(rendering *r, uint32_t slot) {
    span name = r->t->root->slots[slot].name;
    const json *j = json_get_span(r->variables, name);
    const builtin *global = j ? NULL : global_find(name);
    r->root->slots[slot] = j        ? value_from_json(r, j)
                           : global ? (value){.type = V_BUILTIN, .builtin = global}
                                    : value_undefined(UNDEFINED_NAME, name);
}

static value lookup(rendering *r, frame *f, uint32_t up, uint32_t slot) {
    for (;;) {
        for (; up > 0; up--) f = f->parent;
        if (f->slots[slot].type != V_MISSING) return f->slots[slot];
        const slot_info *info = &f->function->slots[slot];
        if (!info->has_outer) {
            if (f == r->root) {
                load_root(r, slot);
                return f->slots[slot];
            }
            return value_undefined(UNDEFINED_NAME, info->name);
        }
        up = info->outer_up;
        slot = info->outer_slot;
    }
}

/* ---- calls */

static err_code check_stack(rendering *r, int more) {
    if (r->stack_top + more > VALUE_STACK)
        return template_fail(r, ERR_LIMIT, "more than %d values under evaluation", VALUE_STACK);
    return ERR_OK;
}

static err_code push_keyword(rendering *r, span name, value v) {
    if (r->keyword_top == KEYWORD_STACK)
        return template_fail(r, ERR_LIMIT, "more than %d keyword arguments under evaluation", KEYWORD_STACK);
    r->keywords[r->keyword_top++] = (keyword){name, v};
    return ERR_OK;
}

static err_code push_spread(rendering *r, value v) {
    sequence *q;
    ERR_TRY(value_items(r, v, &q));
    ERR_TRY(check_stack(r, (int)(q->count < VALUE_STACK ? q->count : VALUE_STACK + 1)));
    for (uint32_t i = 0; i < q->count; i++) r->stack[r->stack_top++] = q->items[i];
    return ERR_OK;
}

static err_code push_spread_keywords(rendering *r, value v) {
    if (v.type != V_DICT) return template_fail(r, ERR_UNSUPPORTED, "argument after ** must be a mapping");
    dict_load(r, v.dict);
    for (uint32_t i = 0; i < v.dict->count; i++) {
        if (v.dict->entries[i].key.type != V_STR) return template_fail(r, ERR_UNSUPPORTED, "keywords must be strings");
        ERR_TRY(push_keyword(r, value_span(v.dict->entries[i].key), v.dict->entries[i].value));
    }
    return ERR_OK;
}

/* Evaluates the arguments of call onto the stacks, object first when it is given. The caller restores the stacks. */
static err_code eval_arguments(rendering *r, frame *f, const node *call, const value *object, arguments *args) {
    int base = r->stack_top, keyword_base = r->keyword_top;
    ERR_TRY(check_stack(r, 1));
    if (object) r->stack[r->stack_top++] = *object;
    for (const node *n = call->first; n; n = n->next) {
        value v;
        bool wrapped = n->kind == N_KEYWORD || n->kind == N_SPREAD || n->kind == N_SPREAD_KEYWORDS;
        ERR_TRY(eval(r, f, wrapped ? n->a : n, &v));
        ERR_TRY(check_stack(r, 1));
        if (n->kind == N_KEYWORD)
            ERR_TRY(push_keyword(r, n->text, v));
        else if (n->kind == N_SPREAD)
            ERR_TRY(push_spread(r, v));
        else if (n->kind == N_SPREAD_KEYWORDS)
            ERR_TRY(push_spread_keywords(r, v));
        else
            r->stack[r->stack_top++] = v;
    }
    *args =
        (arguments){r->stack + base, r->stack_top - base, r->keywords + keyword_base, r->keyword_top - keyword_base};
    return ERR_OK;
}

enum { PARAMETERS_MAX = 8 };

/* Index of name among "a b c", or -1; *count = how many there are. */
static int parameter_index(const char *parameters, span name, int *count) {
    int found = -1;
    *count = 0;
    for (const char *p = parameters; *p; ++*count) {
        const char *end = strchr(p, ' ');
        size_t n = end ? (size_t)(end - p) : strlen(p);
        if (span_equal(span_make(p, n), name)) found = *count;
        p += n + (end != NULL);
    }
    return found;
}

err_code template_call_builtin(rendering *r, const builtin *b, const char *what, const arguments *args, value *out) {
    if (!b->call) return template_fail(r, ERR_UNSUPPORTED, "%s '%s' is not supported", what, b->name);
    if (!b->parameters) return b->call(r, args, out);
    value bound[PARAMETERS_MAX] = {0};
    int count;
    parameter_index(b->parameters, (span){0}, &count);
    if (args->count > count)
        return template_fail(r, ERR_UNSUPPORTED, "%s '%s' takes at most %d arguments (%d given)", what, b->name, count,
                             args->count);
    for (int i = 0; i < args->count; i++) bound[i] = args->values[i];
    for (int i = 0; i < args->keyword_count; i++) {
        span name = args->keywords[i].name;
        int at = parameter_index(b->parameters, name, &count);
        if (at < 0 || value_given(bound[at]))
            return template_fail(r, ERR_UNSUPPORTED, "%s '%s' got an unexpected argument '%.*s'", what, b->name,
                                 (int)(name.size < 64 ? name.size : 64), name.data);
        bound[at] = args->keywords[i].value;
    }
    for (int i = 0; i < b->required; i++)
        if (!value_given(bound[i]))
            return template_fail(r, ERR_UNSUPPORTED, "%s '%s' misses an argument", what, b->name);
    return b->call(r, &(arguments){.values = bound, .count = count}, out);
}

static const keyword *find_keyword(const arguments *args, span name) {
    for (int i = 0; i < args->keyword_count; i++)
        if (span_equal(args->keywords[i].name, name)) return &args->keywords[i];
    return NULL;
}

/* varargs, kwargs and caller of a macro that uses them; refuses what nothing takes. */
static err_code bind_rest(rendering *r, const macro *m, frame *f, const arguments *args) {
    const function *fn = m->function;
    int extra = args->count > (int)fn->parameter_count ? args->count - (int)fn->parameter_count : 0;
    if (extra && fn->slot_varargs < 0)
        return template_fail(r, ERR_UNSUPPORTED, "macro '%.*s' takes not more than %u argument(s)", (int)fn->name.size,
                             fn->name.data, fn->parameter_count);
    if (fn->slot_varargs >= 0) {
        sequence *q;
        ERR_TRY(seq_create(r, SEQ_TUPLE, (uint64_t)extra, &q));
        for (int i = 0; i < extra; i++) q->items[i] = args->values[(int)fn->parameter_count + i];
        f->slots[fn->slot_varargs] = value_seq(q);
    }
    dict *kwargs = NULL;
    if (fn->slot_kwargs >= 0) {
        ERR_TRY(dict_create(r, (uint32_t)args->keyword_count, &kwargs));
        f->slots[fn->slot_kwargs] = (value){.type = V_DICT, .dict = kwargs};
    }
    for (int i = 0; i < args->keyword_count; i++) {
        const keyword *k = &args->keywords[i];
        const node *parameter = fn->parameters;
        while (parameter && !span_equal(parameter->text, k->name)) parameter = parameter->next;
        if (parameter) continue;
        if (fn->slot_caller >= 0 && span_is(k->name, "caller"))
            f->slots[fn->slot_caller] = k->value;
        else if (kwargs)
            ERR_TRY(dict_set(r, kwargs, value_str(k->name), k->value));
        else
            return template_fail(r, ERR_UNSUPPORTED, "macro '%.*s' takes no keyword argument '%.*s'",
                                 (int)fn->name.size, fn->name.data, (int)(k->name.size < 64 ? k->name.size : 64),
                                 k->name.data);
    }
    return ERR_OK;
}

static err_code bind_parameters(rendering *r, const macro *m, frame *f, const arguments *args) {
    int i = 0;
    for (const node *p = m->function->parameters; p; p = p->next, i++) {
        const keyword *k = find_keyword(args, p->text);
        if (i < args->count) {
            if (k)
                return template_fail(r, ERR_UNSUPPORTED, "macro '%.*s' got two values for '%.*s'",
                                     (int)m->function->name.size, m->function->name.data, (int)p->text.size,
                                     p->text.data);
            f->slots[p->slot] = args->values[i];
        } else if (k) {
            f->slots[p->slot] = k->value;
        } else if (p->a) {
            ERR_TRY(eval(r, f, p->a, &f->slots[p->slot]));
        } else {
            f->slots[p->slot] = value_undefined(UNDEFINED_NAME, p->text);
        }
    }
    return ERR_OK;
}

static err_code call_macro(rendering *r, const macro *m, const arguments *args, value *out) {
    frame *f = NULL;
    capture c;
    if (++r->calls > r->calls_max)
        return template_fail(r, ERR_LIMIT, "macro calls nested more than %d deep", r->calls_max);
    uint64_t names = m->function->slot_count + (uint64_t)m->function->parameter_count * (uint64_t)args->keyword_count;
    ERR_TRY(charge(r, names / 8));
    ERR_TRY(frame_open(r, m->function, m->home, &f));
    ERR_TRY(bind_rest(r, m, f, args));
    ERR_TRY(bind_parameters(r, m, f, args));
    capture_begin(r, &c);
    ERR_TRY(exec(r, f, m->function->body));
    ERR_TRY(capture_end(r, &c, out));
    frame_close(r, f);
    r->calls--;
    return ERR_OK;
}

static err_code call_method(rendering *r, value self, const builtin *method, const arguments *args, value *out) {
    ERR_TRY(check_stack(r, args->count + 1));
    value *values = r->stack + r->stack_top;
    values[0] = self;
    if (args->count) memcpy(values + 1, args->values, (size_t)args->count * sizeof *values);
    r->stack_top += args->count + 1;
    err_code code = template_call_builtin(
        r, method, "method", &(arguments){values, args->count + 1, args->keywords, args->keyword_count}, out);
    r->stack_top -= args->count + 1;
    return code;
}

static err_code call_value(rendering *r, value callee, const arguments *args, value *out) {
    switch (callee.type) {
        case V_MACRO:
            return call_macro(r, callee.macro, args, out);
        case V_BUILTIN:
            return template_call_builtin(r, callee.builtin, "function", args, out);
        case V_METHOD:
            return call_method(r, callee.method->self, callee.method->method, args, out);
        case V_LOOP:
            return template_fail(r, ERR_UNSUPPORTED, "recursive loops are not supported");
        case V_UNDEFINED:
            return value_undefined_error(r, callee);
        default:
            return template_fail(r, ERR_UNSUPPORTED, "'%s' object is not callable", value_type_name(callee));
    }
}

/* A method of an object is called without making a value of it first. */
static err_code eval_call(rendering *r, frame *f, const node *n, const keyword *extra, value *out) {
    int stack = r->stack_top, keywords = r->keyword_top;
    const node *callee = n->a;
    const builtin *method = NULL;
    value object;
    arguments args;
    ERR_TRY(eval(r, f, callee->kind == N_ATTR ? callee->a : callee, &object));
    if (callee->kind == N_ATTR) {
        method = object.type == V_STR ? callee->str_method : object.type == V_DICT ? callee->dict_method : NULL;
        r->at = callee;
        if (!method) ERR_TRY(template_getattr(r, object, callee->text, &object));
    }
    ERR_TRY(eval_arguments(r, f, n, method ? &object : NULL, &args));
    if (extra) {
        ERR_TRY(push_keyword(r, extra->name, extra->value));
        args.keyword_count++;
    }
    r->at = n;
    ERR_TRY(method ? template_call_builtin(r, method, "method", &args, out) : call_value(r, object, &args, out));
    r->stack_top = stack;
    r->keyword_top = keywords;
    return ERR_OK;
}

static err_code eval_filter_or_test(rendering *r, frame *f, const node *n, value *out) {
    int stack = r->stack_top, keywords = r->keyword_top;
    const char *what = n->kind == N_FILTER ? "filter" : "test";
    value object;
    arguments args;
    ERR_TRY(eval(r, f, n->a, &object));
    ERR_TRY(eval_arguments(r, f, n, &object, &args));
    r->at = n;
    if (!n->builtin)
        return template_fail(r, ERR_UNSUPPORTED, "there is no %s named '%.*s'", what,
                             (int)(n->text.size < 64 ? n->text.size : 64), n->text.data);
    ERR_TRY(template_call_builtin(r, n->builtin, what, &args, out));
    r->stack_top = stack;
    r->keyword_top = keywords;
    return ERR_OK;
}

/* ---- operators */

static err_code eval_comparison(rendering *r, frame *f, const node *n, value *out) {
    value left, right;
    bool result = true;
    ERR_TRY(eval(r, f, n->a, &left));
    for (const node *o = n->first; o && result; o = o->next) {
        ERR_TRY(eval(r, f, o->a, &right));
        r->at = o;
        ERR_TRY(template_compare(r, (operator_kind)o->op, left, right, &result));
        left = right;
    }
    *out = value_bool(result);
    return ERR_OK;
}

/* Evaluates the parts of a sum or concatenation onto the stack; *texts says that all are plain text. */
static err_code eval_parts(rendering *r, frame *f, const node *n, value **parts, bool *texts) {
    *parts = r->stack + r->stack_top;
    *texts = true;
    for (const node *part = n->first; part; part = part->next) {
        value v;
        ERR_TRY(eval(r, f, part, &v));
        ERR_TRY(check_stack(r, 1));
        r->stack[r->stack_top++] = v;
        if (v.type != V_STR || v.flag) *texts = false;
    }
    r->at = n;
    return ERR_OK;
}

static err_code eval_sum(rendering *r, frame *f, const node *n, value *out) {
    int top = r->stack_top;
    value *parts;
    bool texts;
    ERR_TRY(eval_parts(r, f, n, &parts, &texts));
    if (texts) {
        ERR_TRY(text_concat(r, parts, n->count, out));
    } else {
        *out = parts[0];
        for (int i = 1; i < n->count; i++) ERR_TRY(template_binary(r, OP_ADD, *out, parts[i], out));
    }
    r->stack_top = top;
    return ERR_OK;
}

static err_code eval_concat(rendering *r, frame *f, const node *n, value *out) {
    int top = r->stack_top;
    value *parts;
    bool texts;
    ERR_TRY(eval_parts(r, f, n, &parts, &texts));
    for (int i = 0; i < n->count; i++) ERR_TRY(value_to_str(r, parts[i], &parts[i]));
    ERR_TRY(text_concat(r, parts, n->count, out));
    r->stack_top = top;
    return ERR_OK;
}

static err_code negate_big(rendering *r, value v, value *out) {
    value parts[] = {value_text("-"), value_str(value_span(v))};
    bool negative = v.text[0] == '-';
    if (negative)
        *out = value_str(span_make(v.text + 1, v.size - 1));
    else
        ERR_TRY(text_concat(r, parts, 2, out));
    out->type = V_BIG;
    return ERR_OK;
}

static err_code eval_sign(rendering *r, frame *f, const node *n, value *out) {
    value v;
    ERR_TRY(eval(r, f, n->a, &v));
    r->at = n;
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    *out = v;
    if (v.type == V_FLOAT && n->kind == N_NEGATE) out->real = -v.real;
    if (v.type == V_BIG && n->kind == N_NEGATE) return negate_big(r, v, out);
    if (v.type == V_FLOAT || v.type == V_BIG) return ERR_OK;
    return template_binary(r, n->kind == N_NEGATE ? OP_SUB : OP_ADD, value_int(0), v, out);
}

static err_code eval_list(rendering *r, frame *f, const node *n, value *out) {
    sequence *q;
    ERR_TRY(seq_create(r, n->kind == N_LIST ? SEQ_LIST : SEQ_TUPLE, n->count, &q));
    value *item = q->items;
    for (const node *c = n->first; c; c = c->next) ERR_TRY(eval(r, f, c, item++));
    *out = value_seq(q);
    return ERR_OK;
}

static err_code eval_dict(rendering *r, frame *f, const node *n, value *out) {
    dict *d;
    ERR_TRY(dict_create(r, n->count / 2, &d));
    for (const node *c = n->first; c; c = c->next->next) {
        value key, item;
        ERR_TRY(eval(r, f, c, &key));
        ERR_TRY(eval(r, f, c->next, &item));
        r->at = c;
        ERR_TRY(dict_set(r, d, key, item));
    }
    *out = (value){.type = V_DICT, .dict = d};
    return ERR_OK;
}

static err_code eval_condition(rendering *r, frame *f, const node *n, value *out) {
    ERR_TRY(eval(r, f, n->a, out));
    if (value_truth(*out)) return eval(r, f, n->b, out);
    if (n->c) return eval(r, f, n->c, out);
    *out = value_undefined(UNDEFINED_OTHER, span_text("the inline if-expression is false and has no else"));
    return ERR_OK;
}

static err_code eval_item(rendering *r, frame *f, const node *n, value *out) {
    value object, key;
    ERR_TRY(eval(r, f, n->a, &object));
    if (n->b->kind == N_SLICE) {
        const node *parts[] = {n->b->a, n->b->b, n->b->c};
        value bounds[3] = {{.type = V_NONE}, {.type = V_NONE}, {.type = V_NONE}};
        for (int i = 0; i < 3; i++)
            if (parts[i]) ERR_TRY(eval(r, f, parts[i], &bounds[i]));
        r->at = n;
        return template_slice(r, object, bounds, out);
    }
    ERR_TRY(eval(r, f, n->b, &key));
    r->at = n;
    return template_getitem(r, object, key, out);
}

static err_code eval_binary(rendering *r, frame *f, const node *n, value *out) {
    value a, b;
    ERR_TRY(eval(r, f, n->a, &a));
    ERR_TRY(eval(r, f, n->b, &b));
    r->at = n;
    return template_binary(r, (operator_kind)n->op, a, b, out);
}

static err_code eval_attribute(rendering *r, frame *f, const node *n, value *out) {
    value object;
    ERR_TRY(eval(r, f, n->a, &object));
    r->at = n;
    if (object.type == V_DICT && !n->dict_method && !n->unsafe) { /* by far the most frequent */
        value *found = dict_find_text(r, object.dict, n->text);
        if (found) {
            *out = *found;
            return ERR_OK;
        }
    }
    return template_getattr(r, object, n->text, out);
}

static err_code eval_node(rendering *r, frame *f, const node *n, value *out) {
    switch ((node_kind)n->kind) {
        case N_LIST:
        case N_TUPLE:
            return eval_list(r, f, n, out);
        case N_DICT:
            return eval_dict(r, f, n, out);
        case N_ATTR:
            return eval_attribute(r, f, n, out);
        case N_ITEM:
            return eval_item(r, f, n, out);
        case N_CALL:
            return eval_call(r, f, n, NULL, out);
        case N_FILTER:
        case N_TEST:
            return eval_filter_or_test(r, f, n, out);
        case N_NOT:
            ERR_TRY(eval(r, f, n->a, out));
            *out = value_bool(!value_truth(*out));
            return ERR_OK;
        case N_NEGATE:
        case N_PLUS:
            return eval_sign(r, f, n, out);
        case N_AND:
        case N_OR:
            ERR_TRY(eval(r, f, n->a, out));
            return value_truth(*out) == (n->kind == N_AND) ? eval(r, f, n->b, out) : ERR_OK;
        case N_BINARY:
            return eval_binary(r, f, n, out);
        case N_SUM:
            return eval_sum(r, f, n, out);
        case N_CONCAT:
            return eval_concat(r, f, n, out);
        case N_COMPARE:
            return eval_comparison(r, f, n, out);
        case N_COND:
            return eval_condition(r, f, n, out);
        case N_FILTERED:
            *out = r->filtered;
            return ERR_OK;
        default:
            return template_fail(r, ERR_INTERNAL, "a statement where an expression belongs");
    }
}

static err_code eval(rendering *r, frame *f, const node *n, value *out) {
    ERR_TRY(charge(r, 1));
    if (n->kind == N_CONST) {
        *out = n->constant;
        return ERR_OK;
    }
    if (n->kind == N_NAME) {
        *out = lookup(r, f, n->up, n->slot);
        return ERR_OK;
    }
    ERR_TRY(template_enter(r));
    err_code code = eval_node(r, f, n, out);
    template_leave(r);
    return code;
}

/* ---- statements */

static err_code assign(rendering *r, frame *f, const node *target, value v);

static err_code assign_tuple(rendering *r, frame *f, const node *target, value v) {
    sequence *q;
    ERR_TRY(value_items(r, v, &q));
    if (q->count != target->count)
        return template_fail(r, ERR_UNSUPPORTED, "cannot unpack %u values into %u names", q->count, target->count);
    value *item = q->items;
    for (const node *n = target->first; n; n = n->next) ERR_TRY(assign(r, f, n, *item++));
    return ERR_OK;
}

static err_code assign(rendering *r, frame *f, const node *target, value v) {
    r->at = target;
    if (target->kind == N_NAME) {
        f->slots[target->slot] = v;
        return ERR_OK;
    }
    if (target->kind == N_TUPLE) return assign_tuple(r, f, target, v);
    value object;
    ERR_TRY(eval(r, f, target->a, &object));
    r->at = target;
    if (object.type != V_NAMESPACE)
        return template_fail(r, ERR_UNSUPPORTED, "cannot assign attribute on non-namespace object");
    return dict_set(r, object.dict, value_str(target->text), v);
}

static err_code exec_output(rendering *r, frame *f, const node *n) {
    value v;
    for (const node *e = n->first; e; e = e->next) {
        if (e->kind == N_SUM || e->kind == N_CONCAT) {
            int top = r->stack_top;
            value *parts;
            bool texts;
            ERR_TRY(charge(r, 1));
            ERR_TRY(eval_parts(r, f, e, &parts, &texts));
            if (texts || e->kind == N_CONCAT) {
                for (int i = 0; i < e->count; i++) ERR_TRY(emit_value(r, parts[i]));
            } else {
                v = parts[0];
                for (int i = 1; i < e->count; i++) ERR_TRY(template_binary(r, OP_ADD, v, parts[i], &v));
                ERR_TRY(emit_value(r, v));
            }
            r->stack_top = top;
            continue;
        }
        ERR_TRY(eval(r, f, e, &v));
        r->at = e;
        ERR_TRY(emit_value(r, v));
    }
    return ERR_OK;
}

static err_code exec_if(rendering *r, frame *f, const node *n) {
    while (n && n->kind == N_IF) {
        value v;
        ERR_TRY(eval(r, f, n->a, &v));
        if (value_truth(v)) return exec(r, f, n->first);
        if (!n->b || n->b->kind != N_IF || n->b->next) return exec(r, f, n->b);
        n = n->b;
    }
    return ERR_OK;
}

/* Slots that a target names, kept aside while a loop's filter uses them. */
enum { TARGETS_MAX = 8 };
typedef struct saved_targets {
    uint32_t slots[TARGETS_MAX];
    value values[TARGETS_MAX];
    int count;
} saved_targets;

static err_code save_targets(rendering *r, frame *f, const node *target, saved_targets *saved) {
    if (target->kind == N_TUPLE) {
        for (const node *n = target->first; n; n = n->next) ERR_TRY(save_targets(r, f, n, saved));
        return ERR_OK;
    }
    if (saved->count == TARGETS_MAX)
        return template_fail(r, ERR_UNSUPPORTED, "a filtered loop over more than %d names is not supported",
                             TARGETS_MAX);
    saved->slots[saved->count] = target->slot;
    saved->values[saved->count++] = f->slots[target->slot];
    return ERR_OK;
}

err_code loop_fill(rendering *r, loop *l, uint64_t count) {
    if (!l->candidates || l->items->count >= count) return ERR_OK;
    saved_targets saved = {.count = 0};
    const node *at = r->at;
    frame *f = l->frame;
    ERR_TRY(save_targets(r, f, l->site->a, &saved));
    while (l->items->count < count && l->next_candidate < l->candidates->count) {
        value item = l->candidates->items[l->next_candidate++], passed;
        ERR_TRY(assign(r, f, l->site->a, item));
        ERR_TRY(eval(r, f, l->site->c, &passed));
        if (value_truth(passed)) l->items->items[l->items->count++] = item;
    }
    for (int i = 0; i < saved.count; i++) f->slots[saved.slots[i]] = saved.values[i];
    r->at = at;
    return ERR_OK;
}

static err_code loop_open(rendering *r, frame *f, const node *n, loop **out) {
    value v;
    void *memory;
    ERR_TRY(eval(r, f, n->b, &v));
    ERR_TRY(template_alloc(r, sizeof **out, &memory));
    loop *l = *out = memory;
    *l = (loop){0};
    r->at = n;
    ERR_TRY(value_items(r, v, &l->items));
    if (!n->c) return ERR_OK;
    l->site = n;
    l->frame = f;
    l->candidates = l->items;
    ERR_TRY(seq_create(r, SEQ_LIST, l->candidates->count, &l->items));
    l->items->count = 0;
    ERR_TRY(empty_slots(r, f, n));
    return ERR_OK;
}

static err_code exec_for(rendering *r, frame *f, const node *n) {
    loop *l;
    ERR_TRY(loop_open(r, f, n, &l));
    ERR_TRY(loop_fill(r, l, 1));
    if (!l->items->count) {
        ERR_TRY(empty_slots(r, f, n));
        return n->other ? exec(r, f, n->other) : ERR_OK;
    }
    for (; l->index < l->items->count; l->index++) {
        ERR_TRY(charge(r, 1));
        ERR_TRY(empty_slots(r, f, n));
        f->slots[n->slot] = (value){.type = V_LOOP, .loop = l};
        ERR_TRY(assign(r, f, n->a, l->items->items[l->index]));
        ERR_TRY(exec(r, f, n->first));
        flow how = r->flow;
        r->flow = FLOW_NEXT;
        if (how == FLOW_BREAK) break;
        ERR_TRY(loop_fill(r, l, (uint64_t)l->index + 2));
    }
    ERR_TRY(empty_slots(r, f, n));
    return ERR_OK;
}

static err_code exec_captured(rendering *r, frame *f, const node *n, value *out) {
    capture c;
    ERR_TRY(empty_slots(r, f, n));
    capture_begin(r, &c);
    ERR_TRY(exec(r, f, n->first));
    ERR_TRY(capture_end(r, &c, out));
    if (r->flow != FLOW_NEXT || !n->c) return ERR_OK;
    value outer = r->filtered;
    r->filtered = *out;
    ERR_TRY(eval(r, f, n->c, out));
    r->filtered = outer;
    return ERR_OK;
}

static err_code exec_with(rendering *r, frame *f, const node *n) {
    int top = r->stack_top;
    for (const node *p = n->a; p; p = p->next->next) {
        value v;
        ERR_TRY(eval(r, f, p->next, &v));
        ERR_TRY(check_stack(r, 1));
        r->stack[r->stack_top++] = v;
    }
    ERR_TRY(empty_slots(r, f, n));
    int i = top;
    for (const node *p = n->a; p; p = p->next->next) ERR_TRY(assign(r, f, p, r->stack[i++]));
    r->stack_top = top;
    return exec(r, f, n->first);
}

static err_code make_macro(rendering *r, frame *f, const function *fn, value *out) {
    void *memory;
    ERR_TRY(template_alloc(r, sizeof(macro), &memory));
    *out = (value){.type = V_MACRO, .macro = memory};
    *out->macro = (macro){fn, f};
    return ERR_OK;
}

static err_code exec_call_block(rendering *r, frame *f, const node *n) {
    keyword caller = {.name = span_text("caller")};
    value v;
    ERR_TRY(make_macro(r, f, n->function, &caller.value));
    ERR_TRY(eval_call(r, f, n->a, &caller, &v));
    return emit_value(r, v);
}

static err_code exec_node(rendering *r, frame *f, const node *n) {
    value v;
    switch ((node_kind)n->kind) {
        case N_TEXT:
            return emit(r, n->text);
        case N_OUTPUT:
            return exec_output(r, f, n);
        case N_IF:
            return exec_if(r, f, n);
        case N_FOR:
            return exec_for(r, f, n);
        case N_SET:
            ERR_TRY(eval(r, f, n->b, &v));
            return assign(r, f, n->a, v);
        case N_SET_BLOCK:
            ERR_TRY(exec_captured(r, f, n, &v));
            return r->flow == FLOW_NEXT ? assign(r, f, n->a, v) : ERR_OK;
        case N_FILTER_BLOCK:
            ERR_TRY(exec_captured(r, f, n, &v));
            return r->flow == FLOW_NEXT ? emit_value(r, v) : ERR_OK;
        case N_MACRO:
            ERR_TRY(make_macro(r, f, n->function, &v));
            return assign(r, f, n->a, v);
        case N_CALL_BLOCK:
            return exec_call_block(r, f, n);
        case N_WITH:
            return exec_with(r, f, n);
        case N_SCOPE:
            ERR_TRY(empty_slots(r, f, n));
            return exec(r, f, n->first);
        case N_BREAK:
            r->flow = FLOW_BREAK;
            return ERR_OK;
        case N_CONTINUE:
            r->flow = FLOW_CONTINUE;
            return ERR_OK;
        default:
            return template_fail(r, ERR_INTERNAL, "an expression where a statement belongs");
    }
}

/* A statement list, until its end or a break or continue. */
static err_code exec(rendering *r, frame *f, const node *n) {
    ERR_TRY(template_enter(r));
    for (; n && r->flow == FLOW_NEXT; n = n->next) {
        r->at = n;
        ERR_TRY(charge(r, 1));
        ERR_TRY(exec_node(r, f, n));
    }
    template_leave(r);
    return ERR_OK;
}

/* ---- the public functions */

/* One kind of newline, and the last one is not part of the template. */
static span normalize_source(arena *a, span source) {
    char *text = arena_alloc(a, source.size + 1);
    size_t n = 0;
    for (size_t i = 0; i < source.size; i++) {
        if (source.data[i] == '\r') {
            text[n++] = '\n';
            if (i + 1 < source.size && source.data[i + 1] == '\n') i++;
        } else {
            text[n++] = source.data[i];
        }
    }
    if (n && text[n - 1] == '\n') n--;
    return span_make(text, n);
}

err_code template_compile(span source, const char *name, chat_template **out, error *err) {
    *out = NULL;
    if (!utf8_valid(source)) ERR_FAIL(err, ERR_FORMAT, "%s: the template is not valid UTF-8", name);
    arena *memory = arena_create();
    chat_template *t = arena_alloc(memory, sizeof *t);
    *t = (chat_template){.memory = memory, .name = arena_copy(memory, name, strlen(name))};
    t->source = normalize_source(memory, source);
    err_code code = template_parse(t, err);
    if (code != ERR_OK) {
        arena_destroy(memory);
        return code;
    }
    *out = t;
    return ERR_OK;
}

void template_destroy(chat_template *t) {
    if (t) arena_destroy(t->memory);
}

static err_code render(rendering *r) {
    ERR_TRY(frame_open(r, r->t->root, NULL, &r->root));
    return exec(r, r->root, r->t->root->body);
}

err_code template_render(const chat_template *t, const json *variables, const template_limits *limits, buffer *out,
                         error *err) {
    template_limits given = limits ? *limits : (template_limits){0};
    rendering r = {
        .t = t,
        .variables = variables,
        .memory = arena_create(),
        .out = out,
        .out_start = out->size,
        .err = err,
        .steps_max = given.steps_max ? given.steps_max : 50000000,
        .output_max = given.output_max ? given.output_max : 256 << 20,
        .calls_max = given.depth_max ? given.depth_max : 100,
        .stack = mem_alloc(VALUE_STACK * sizeof(value)),
        .keywords = mem_alloc(KEYWORD_STACK * sizeof(keyword)),
    };
    err_code code = render(&r);
    if (code != ERR_OK && out->data) {
        out->size = r.out_start;
        out->data[out->size] = 0;
    }
    free(r.keywords);
    free(r.stack);
    arena_destroy(r.memory);
    return code;
}
