/* The template interpreter from the inside: syntax tree, values, and the state of one rendering.
 *
 * template_lex.c cuts the source into tokens; template_parse.c, template_expression.c and template_scope.c build the tree
 * and resolve every variable name to a slot; template_eval.c walks it. template_value.c knows Python's value semantics
 * (truth, equality, order, str, repr, json.dumps), template_operators.c arithmetic and comparison, template_access.c
 * attributes and items, template_text.c the text operations, template_format.c the % of texts; template_filters.c,
 * template_tests.c and template_methods.c hold the built-in names.
 *
 * Nothing here is owned one by one: a compiled template lives in one arena, a rendering in another, and strings are
 * spans into the template, the input or the rendering's arena, so content is copied only when it really changes. */
#ifndef HEARTH_TEXT_TEMPLATE_INTERNAL_H
#define HEARTH_TEXT_TEMPLATE_INTERNAL_H

#include "text/template.h"

/* ---- values */

typedef enum {
    V_MISSING, /* an empty slot or an argument that was not given; never seen by a template */
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_BIG, /* an integer outside 64 bits, kept as its digits */
    V_FLOAT,
    V_STR,
    V_SEQ,
    V_DICT,
    V_NAMESPACE, /* a dict whose members may be set */
    V_LOOP,
    V_MACRO,
    V_BUILTIN, /* a global function */
    V_METHOD,  /* a method with its object */
} value_type;

/* What an undefined value can say about itself (value.flag). */
enum { UNDEFINED_NAME, UNDEFINED_ATTRIBUTE, UNDEFINED_UNSAFE, UNDEFINED_OTHER };
enum { STR_SAFE = 1 }; /* value.flag of a string: marked by `safe` or made by `escape` */

typedef struct sequence sequence;
typedef struct dict dict;
typedef struct loop loop;
typedef struct macro macro;
typedef struct builtin builtin;
typedef struct bound_method bound_method;

typedef struct value {
    uint8_t type, flag;
    uint32_t size; /* bytes of text */
    union {
        const char *text; /* V_STR, V_BIG; V_UNDEFINED: the name or sentence */
        bool truth;
        int64_t integer;
        double real;
        sequence *seq;
        dict *dict; /* V_DICT, V_NAMESPACE */
        loop *loop;
        macro *macro;
        const builtin *builtin;
        bound_method *method;
    };
} value;

typedef enum { SEQ_LIST, SEQ_TUPLE, SEQ_ITERATOR, SEQ_KEYS, SEQ_VALUES, SEQ_ITEMS, SEQ_RANGE } sequence_kind;
struct sequence {
    const json *source; /* not NULL: items are still to be made from this array */
    value *items;
    uint32_t count;
    uint8_t kind;
    bool spent;       /* an iterator that has been read */
    int64_t range[3]; /* SEQ_RANGE: start, stop, step, for printing */
};

typedef struct dict_entry {
    value key, value;
} dict_entry;
struct dict {
    const json *source; /* not NULL: entries are still to be made from this object */
    dict_entry *entries;
    uint32_t count, capacity;
    uint32_t *index; /* hash table of string keys once there are many: entry + 1, 0 = free */
    uint32_t index_mask;
};

struct bound_method {
    value self;
    const builtin *method;
};

static inline span value_span(value v) { return (span){v.text, v.size}; }
static inline value value_none(void) { return (value){.type = V_NONE}; }
static inline value value_bool(bool b) { return (value){.type = V_BOOL, .truth = b}; }
static inline value value_int(int64_t i) { return (value){.type = V_INT, .integer = i}; }
static inline value value_float(double d) { return (value){.type = V_FLOAT, .real = d}; }
static inline value value_str(span s) { return (value){.type = V_STR, .size = (uint32_t)s.size, .text = s.data}; }
static inline value value_text(const char *s) { return value_str(span_text(s)); }
static inline value value_seq(sequence *q) { return (value){.type = V_SEQ, .seq = q}; }
static inline value value_undefined(int kind, span name) {
    return (value){.type = V_UNDEFINED, .flag = (uint8_t)kind, .size = (uint32_t)name.size, .text = name.data};
}
static inline bool value_is_kind(value v, sequence_kind kind) { return v.type == V_SEQ && v.seq->kind == kind; }
static inline bool value_given(value v) { return v.type != V_MISSING; }

/* ---- syntax tree */

typedef enum {
    /* expressions */
    N_CONST,
    N_NAME,
    N_LIST,    /* first = items */
    N_TUPLE,   /* first = items */
    N_DICT,    /* first = key, value, key, value ... */
    N_ATTR,    /* a.text */
    N_ITEM,    /* a[b] */
    N_SLICE,   /* as N_ITEM's b: a : b : c, each may be NULL */
    N_CALL,    /* a(first ...) */
    N_KEYWORD, /* among arguments: text = a */
    N_SPREAD,  /* among arguments: *a */
    N_SPREAD_KEYWORDS,
    N_FILTER, /* a | text(first ...) */
    N_TEST,   /* a is text(first ...) */
    N_NOT,
    N_NEGATE,
    N_PLUS,
    N_AND,
    N_OR,
    N_BINARY,  /* a op b */
    N_SUM,     /* first + next + ...: a chain of additions, so that a text is put together once */
    N_CONCAT,  /* first ~ next ~ ... */
    N_COMPARE, /* a, then first = operands with their op */
    N_COND,    /* b if a else c; c may be NULL */
    /* statements */
    N_TEXT,
    N_OUTPUT,       /* first ... */
    N_IF,           /* a: first, else b (a statement list) */
    N_FOR,          /* target a in b if c: first, else other */
    N_SET,          /* a = b */
    N_SET_BLOCK,    /* a = captured first, through the filters c */
    N_SET_MEMBER,   /* as target: namespace a, member text */
    N_MACRO,        /* stored in a; function */
    N_CALL_BLOCK,   /* a = call node; function = the body as a macro */
    N_FILTER_BLOCK, /* first through the filters c */
    N_WITH,         /* a = targets and values in turn; first = body */
    N_SCOPE,        /* first, in a scope of its own */
    N_BREAK,
    N_CONTINUE,
    N_FILTERED, /* placeholder for the captured text at the root of a filter chain */
} node_kind;

typedef enum {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
} operator_kind;

typedef struct node node;
typedef struct function function;
struct node {
    uint8_t kind, op;
    bool unsafe;    /* N_ATTR: a method that would change a dict */
    uint16_t up;    /* N_NAME: how many functions outwards */
    uint16_t count; /* items under first (N_DICT: pairs x 2) */
    uint32_t line, column;
    uint32_t slot;      /* N_NAME; N_FOR: the slot of `loop` */
    uint32_t own_count; /* scopes: the slots of their names, emptied on entry */
    const uint32_t *own;
    const node *a, *b, *c, *first, *other, *next;
    span text;
    value constant;
    const builtin *builtin;     /* N_FILTER, N_TEST: what text names, NULL if unknown */
    const builtin *str_method;  /* N_ATTR: what text names on a string */
    const builtin *dict_method; /* N_ATTR: and on a dict */
    function *function;
};

/* A slot that is empty stands for the same name further out; at the root, for the input variable or global function. */
typedef struct slot_info {
    span name;
    bool has_outer;
    uint16_t outer_up;
    uint32_t outer_slot;
} slot_info;

/* The template itself or a macro: what gets a frame of slots. */
struct function {
    slot_info *slots;
    uint32_t slot_count;
    const node *body;
    bool captured; /* holds macros, which may outlive a call: its frames are not used again */
    /* macros */
    span name;
    const node *parameters; /* N_NAME list; a = default value or NULL */
    uint32_t parameter_count;
    int64_t slot_caller, slot_varargs, slot_kwargs; /* -1: not used in the body */
};

struct chat_template {
    arena *memory;
    char *name;
    span source; /* newlines normalised */
    function *root;
};

/* ---- tokens */

typedef enum {
    T_DATA,
    T_BLOCK_BEGIN,
    T_BLOCK_END,
    T_VARIABLE_BEGIN,
    T_VARIABLE_END,
    T_NAME,
    T_STRING,  /* text is unescaped */
    T_INTEGER, /* number is set */
    T_FLOAT,
    T_OPERATOR, /* text */
    T_EOF,
} token_type;

typedef struct token {
    uint8_t type;
    uint32_t line, column;
    span text;
    value number;
} token;

/* All tokens of source, ending with T_EOF, in the arena. */
err_code template_lex(arena *a, const char *name, span source, token **out, size_t *count, error *err);
/* Fills t->root from t->source. */
err_code template_parse(chat_template *t, error *err);

/* ---- rendering */

typedef struct frame frame;
struct frame {
    value *slots;
    frame *parent; /* of the function in which this one was defined */
    const function *function;
    frame *next_free;
};

struct macro {
    const function *function;
    frame *home; /* where it was defined */
};

struct loop {
    sequence *items; /* what is iterated over; with a filter, what has passed it so far */
    uint32_t index;
    value changed;
    /* only with a filter */
    const node *site; /* the N_FOR */
    frame *frame;
    sequence *candidates;
    uint32_t next_candidate;
};

/* Text that is being collected (macro, block set). A single piece is handed on without a copy. */
typedef struct capture {
    struct capture *outer;
    size_t mark; /* of out where the pieces begin */
    span single;
    bool pending, many; /* single is held back; pieces are in out */
} capture;

typedef enum { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE } flow;
typedef struct keyword {
    span name;
    value value;
} keyword;

enum { VALUE_STACK = 4096, KEYWORD_STACK = 256, NESTING_MAX = 2000 };

typedef struct rendering {
    const chat_template *t;
    const json *variables;
    arena *memory;
    buffer *out;
    size_t out_start;
    error *err;
    uint64_t steps, steps_max, output_max;
    int nesting, calls, calls_max;
    flow flow;
    const node *at; /* for messages */
    frame *root;
    frame *free_frames;
    capture *capture;
    value filtered; /* what N_FILTERED stands for */
    value *stack;   /* arguments and operands under evaluation: [VALUE_STACK] */
    int stack_top;
    keyword *keywords; /* [KEYWORD_STACK] */
    int keyword_top;
} rendering;

/* Arguments of a call. With builtin.parameters they are bound: values[i] is the i-th parameter or V_MISSING. Without,
 * they are as written. values[0] is the object of a filter, test or method. */
typedef struct arguments {
    value *values;
    int count;
    const keyword *keywords;
    int keyword_count;
} arguments;

typedef err_code builtin_function(rendering *r, const arguments *args, value *out);
struct builtin {
    const char *name;
    const char *parameters; /* "value width first"; NULL = takes what it gets */
    int required;
    builtin_function *call; /* NULL: known, but refused by name */
};

/* "name:line:column: message" of the node at hand. */
err_code template_fail(rendering *r, err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
err_code template_out_of_steps(rendering *r);
static inline err_code charge(rendering *r, uint64_t steps) {
    r->steps += steps;
    return r->steps > r->steps_max ? template_out_of_steps(r) : ERR_OK;
}
/* Memory of the rendering; ERR_LIMIT past output_max in one piece or in all. */
err_code template_alloc(rendering *r, size_t size, void **out);
err_code template_enter(rendering *r); /* one level deeper; pair with template_leave */
static inline void template_leave(rendering *r) { r->nesting--; }

/* template_eval.c */
err_code template_call_builtin(rendering *r, const builtin *b, const char *what, const arguments *args, value *out);
/* What has passed the loop's filter: makes items[0, count) there if they exist. */
err_code loop_fill(rendering *r, loop *l, uint64_t count);

/* template_access.c, template_operators.c */
/* obj.name with Python's order (attribute, then member) or obj[key] (member, then attribute). */
err_code template_getattr(rendering *r, value object, span name, value *out);
err_code template_getitem(rendering *r, value object, value key, value *out);
/* object[start:stop:step]; V_NONE = not given. */
err_code template_slice(rendering *r, value object, const value bounds[3], value *out);
err_code template_binary(rendering *r, operator_kind op, value a, value b, value *out);
err_code template_compare(rendering *r, operator_kind op, value a, value b, bool *out);

/* template_value.c */
value value_from_json(rendering *r, const json *j);
const char *value_type_name(value v); /* Python's: "str", "NoneType", "dict" ... */
bool value_truth(value v);
bool value_is_number(value v);             /* bool, int, float */
bool value_integer(value v, int64_t *out); /* int or bool */
/* An optional argument: otherwise when it is absent or None, an error when it is no integer. */
err_code value_integer_or(rendering *r, value v, int64_t otherwise, int64_t *out);
double value_real(value v); /* of a number */
err_code value_equal(rendering *r, value a, value b, bool *out);
err_code value_order(rendering *r, value a, value b, const char *op, int *out);
err_code value_contains(rendering *r, value container, value item, bool *out);
err_code value_undefined_error(rendering *r, value v);
/* Items of anything that can be iterated over: lists as they are, strings by character, dicts by key. */
err_code value_items(rendering *r, value v, sequence **out);
err_code value_length(rendering *r, value v, uint64_t *out);
void seq_load(rendering *r, sequence *q); /* makes items from source */
err_code seq_create(rendering *r, sequence_kind kind, uint64_t count, sequence **out);
err_code seq_pair(rendering *r, value a, value b, value *out); /* tuple (a, b) */
void dict_load(rendering *r, dict *d);
err_code dict_create(rendering *r, uint32_t capacity, dict **out);
err_code dict_find(rendering *r, dict *d, value key, value **out); /* NULL: not there */
value *dict_find_text(rendering *r, dict *d, span key);
err_code dict_set(rendering *r, dict *d, value key, value item);
/* As Python's float(): blanks around, 1., .5, inf, nan; false = malformed. */
bool text_to_double(span text, double *out);

/* template_print.c */
err_code value_to_str(rendering *r, value v, value *out); /* Python's str(); strings unchanged */
err_code value_write(rendering *r, buffer *b, value v, bool repr);
typedef struct json_layout {
    bool ascii, sort_keys, indented;
    span indent, item_separator, key_separator;
} json_layout;
err_code value_write_json(rendering *r, buffer *b, value v, const json_layout *layout);

/* template_text.c */
bool char_is_space(uint32_t c); /* str.isspace of one character */
span text_strip(span s, bool left, bool right, const span *characters);
size_t text_length(span s);                    /* characters */
ptrdiff_t text_find_last(span s, span what);   /* byte offset or -1; slow for long texts that nearly match */
uint64_t text_search_steps(span s, span what); /* what such a search costs at worst */
bool char_is_letter(uint32_t c);
bool char_is_numeric(uint32_t c);             /* any of Unicode's numbers */
size_t text_offset(span s, size_t character); /* byte offset; the end when past it */
/* CASE_TITLE is the filter's (words begin after blanks, - and brackets), CASE_WORDS that of str.title() (after any
 * non-letter). */
typedef enum { CASE_LOWER, CASE_UPPER, CASE_TITLE, CASE_WORDS, CASE_CAPITALIZE } text_case;
err_code text_change_case(rendering *r, span s, text_case how, value *out);
err_code text_split(rendering *r, span s, const span *separator, int64_t count_max, bool from_right, value *out);
err_code text_split_lines(rendering *r, span s, bool keep_ends, value *out);
err_code text_replace(rendering *r, span s, span old, span with, int64_t count_max, value *out);
err_code text_escape(rendering *r, span s, value *out);
err_code text_from_buffer(rendering *r, buffer *b, value *out); /* copies into the rendering and frees b */
err_code text_concat(rendering *r, const value *parts, int count, value *out); /* of strings */
err_code text_repeat(rendering *r, span s, int64_t times, value *out);
err_code text_join(rendering *r, span separator, sequence *items, bool strict, value *out);

/* template_format.c: Python's text % operand. */
err_code text_format(rendering *r, span format, value operand, value *out);

/* The tables of names; NULL when there is no such name. */
const builtin *filter_find(span name);
const builtin *test_find(span name);
const builtin *global_find(span name);
const builtin *str_method_find(span name);
const builtin *dict_method_find(span name);
const builtin *seq_method_find(span name);
const builtin *loop_method_find(span name);
bool method_is_unsafe(value object, span name); /* changes its object: refused, as the sandbox does */
bool dict_method_is_unsafe(span name);
const builtin *builtin_find(const builtin *table, size_t count, span name);

#endif
