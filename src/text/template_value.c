/* Python's value semantics: truth, equality, order, iteration, and the JSON input as values.
 *
 * Input arrays and objects become values one level at a time, when they are first looked into: most of a long history is
 * only passed on. Dicts keep insertion order; past 16 members string keys are found through a hash table. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "text/template_internal.h"

/* ---- sequences and dicts */

err_code seq_create(rendering *r, sequence_kind kind, uint64_t count, sequence **out) {
    if (count > UINT32_MAX / sizeof(value)) return template_fail(r, ERR_LIMIT, "a list of too many items");
    ERR_TRY(charge(r, count));
    void *memory;
    ERR_TRY(template_alloc(r, sizeof **out + count * sizeof(value), &memory));
    *out = memory;
    **out =
        (sequence){.items = (value *)((char *)memory + sizeof **out), .count = (uint32_t)count, .kind = (uint8_t)kind};
    return ERR_OK;
}

err_code seq_pair(rendering *r, value a, value b, value *out) {
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_TUPLE, 2, &q));
    q->items[0] = a;
    q->items[1] = b;
    *out = value_seq(q);
    return ERR_OK;
}

void seq_load(rendering *r, sequence *q) {
    if (!q->source) return;
    q->items = arena_alloc(r->memory, q->count * sizeof *q->items);
    value *v = q->items;
    for (const json *j = q->source->first; j; j = j->next) *v++ = value_from_json(r, j);
    q->source = NULL;
}

/* Eight bytes at a time by xor and multiplication. The dict's address is the seed, so that a request cannot be written
 * whose keys all collide. */
static uint32_t hash_text(const dict *d, span s) {
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t h = (uint64_t)(uintptr_t)d * factor + s.size;
    for (size_t i = 0; i < s.size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, s.data + i, s.size - i < 8 ? s.size - i : 8);
        h = (h ^ word) * factor;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

enum { DICT_LINEAR_MAX = 16 };

static void index_add(dict *d, uint32_t at) {
    uint32_t i = hash_text(d, value_span(d->entries[at].key)) & d->index_mask;
    while (d->index[i]) i = (i + 1) & d->index_mask;
    d->index[i] = at + 1;
}

/* Rebuilt whenever the entries grow, so that it is never more than half full. */
static void index_build(rendering *r, dict *d) {
    uint32_t size = 64;
    while (size < d->capacity * 2) size *= 2;
    d->index = arena_alloc(r->memory, size * sizeof *d->index);
    memset(d->index, 0, size * sizeof *d->index);
    d->index_mask = size - 1;
    for (uint32_t i = 0; i < d->count; i++)
        if (d->entries[i].key.type == V_STR) index_add(d, i);
}

err_code dict_create(rendering *r, uint32_t capacity, dict **out) {
    void *memory;
    ERR_TRY(template_alloc(r, sizeof **out, &memory));
    *out = memory;
    **out = (dict){.capacity = capacity};
    ERR_TRY(template_alloc(r, (size_t)capacity * sizeof(dict_entry), &memory));
    (*out)->entries = memory;
    return ERR_OK;
}

static value *find_text(dict *d, span key) {
    if (d->index) {
        for (uint32_t i = hash_text(d, key) & d->index_mask; d->index[i]; i = (i + 1) & d->index_mask) {
            dict_entry *e = &d->entries[d->index[i] - 1];
            if (span_equal(value_span(e->key), key)) return &e->value;
        }
        return NULL;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        dict_entry *e = &d->entries[i];
        if (e->key.type == V_STR && e->key.size == key.size && memcmp(e->key.text, key.data, key.size) == 0)
            return &e->value;
    }
    return NULL;
}

value *dict_find_text(rendering *r, dict *d, span key) {
    dict_load(r, d);
    return find_text(d, key);
}

static void add_entry(rendering *r, dict *d, value key, value item) {
    d->entries[d->count++] = (dict_entry){key, item};
    if (d->index && key.type == V_STR) index_add(d, d->count - 1);
    if (!d->index && d->count > DICT_LINEAR_MAX) index_build(r, d);
}

void dict_load(rendering *r, dict *d) {
    if (!d->source) return;
    const json *source = d->source;
    d->source = NULL;
    d->capacity = source->count;
    d->entries = arena_alloc(r->memory, (size_t)d->capacity * sizeof *d->entries);
    for (const json *j = source->first; j; j = j->next) {
        value *known = find_text(d, j->key);
        if (known)
            *known = value_from_json(r, j);
        else
            add_entry(r, d, value_str(j->key), value_from_json(r, j));
    }
}

static bool hashable(value v) {
    if (v.type == V_DICT) return false;
    if (v.type != V_SEQ) return true;
    if (v.seq->kind != SEQ_TUPLE) return v.seq->kind == SEQ_RANGE || v.seq->kind == SEQ_ITERATOR;
    for (uint32_t i = 0; i < v.seq->count; i++) /* tuples of tuples are bounded by the parser and NESTING_MAX */
        if (v.seq->items[i].type == V_SEQ || v.seq->items[i].type == V_DICT) return false;
    return true;
}

err_code dict_find(rendering *r, dict *d, value key, value **out) {
    dict_load(r, d);
    *out = NULL;
    if (key.type == V_STR) {
        ERR_TRY(charge(r, key.size / 16));
        *out = find_text(d, value_span(key));
        return ERR_OK;
    }
    if (!hashable(key)) return template_fail(r, ERR_UNSUPPORTED, "unhashable type: '%s'", value_type_name(key));
    ERR_TRY(charge(r, d->count));
    for (uint32_t i = 0; i < d->count && !*out; i++) {
        bool equal = false;
        if (d->entries[i].key.type != V_STR) ERR_TRY(value_equal(r, d->entries[i].key, key, &equal));
        if (equal) *out = &d->entries[i].value;
    }
    return ERR_OK;
}

err_code dict_set(rendering *r, dict *d, value key, value item) {
    value *known;
    ERR_TRY(dict_find(r, d, key, &known));
    if (known) {
        *known = item;
        return ERR_OK;
    }
    if (d->count == d->capacity) {
        uint32_t capacity = d->capacity ? d->capacity * 2 : 4;
        void *memory;
        ERR_TRY(template_alloc(r, (size_t)capacity * sizeof *d->entries, &memory));
        if (d->count) memcpy(memory, d->entries, d->count * sizeof *d->entries);
        d->entries = memory;
        d->capacity = capacity;
        if (d->index) index_build(r, d);
    }
    add_entry(r, d, key, item);
    return ERR_OK;
}

/* ---- JSON input */

static value value_from_number(const json *j) {
    int64_t i;
    double d;
    if (json_integer(j, &i)) return value_int(i);
    for (size_t k = 0; k < j->text.size; k++)
        if (j->text.data[k] == '.' || (j->text.data[k] | 32) == 'e')
            return value_float(json_double(j, &d) ? d : j->text.data[0] == '-' ? -INFINITY : INFINITY);
    value v = value_str(j->text);
    v.type = V_BIG;
    return v;
}

value value_from_json(rendering *r, const json *j) {
    switch (j->type) {
        case JSON_NULL:
            return value_none();
        case JSON_FALSE:
        case JSON_TRUE:
            return value_bool(j->type == JSON_TRUE);
        case JSON_NUMBER:
            return value_from_number(j);
        case JSON_STRING:
            return value_str(j->text);
        case JSON_ARRAY: {
            sequence *q = arena_alloc(r->memory, sizeof *q);
            *q = (sequence){.source = j, .count = j->count};
            return value_seq(q);
        }
        case JSON_OBJECT: {
            dict *d = arena_alloc(r->memory, sizeof *d);
            *d = (dict){.source = j};
            return (value){.type = V_DICT, .dict = d};
        }
    }
    return value_none();
}

/* ---- numbers */

bool value_is_number(value v) { return v.type == V_BOOL || v.type == V_INT || v.type == V_FLOAT; }

bool value_integer(value v, int64_t *out) {
    if (v.type == V_INT) *out = v.integer;
    if (v.type == V_BOOL) *out = v.truth;
    return v.type == V_INT || v.type == V_BOOL;
}

double value_real(value v) {
    return v.type == V_FLOAT ? v.real : v.type == V_BOOL ? (double)v.truth : (double)v.integer;
}

err_code value_integer_or(rendering *r, value v, int64_t otherwise, int64_t *out) {
    *out = otherwise;
    if (!value_given(v) || v.type == V_NONE || value_integer(v, out)) return ERR_OK;
    if (v.type == V_UNDEFINED) return value_undefined_error(r, v);
    return template_fail(r, ERR_UNSUPPORTED, "an integer is needed, not '%s'", value_type_name(v));
}

/* Copies the digits of s from *i on, without Python's single underscores; at least one. */
static bool copy_digits(span s, size_t *i, char *out, size_t *n, size_t n_max) {
    size_t from = *i;
    for (; *i < s.size && *n < n_max; ++*i) {
        char c = s.data[*i];
        if (c == '_' && *i > from && *i + 1 < s.size && s.data[*i - 1] != '_') continue;
        if (c < '0' || c > '9') break;
        out[(*n)++] = c;
    }
    return *i > from && s.data[*i - 1] != '_';
}

static bool special_double(span s, double *out) {
    static const struct {
        const char *name;
        double value;
    } names[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < 3; i++)
        if (strlen(names[i].name) == s.size && strncasecmp(names[i].name, s.data, s.size) == 0) {
            *out = names[i].value;
            return true;
        }
    return false;
}

/* Rewrites the text to JSON's form, which json_double reads: a digit on both sides of the point. */
bool text_to_double(span text, double *out) {
    enum { DIGITS_MAX = 900 };
    char plain[DIGITS_MAX + 8];
    span s = text_strip(text, true, true, NULL);
    bool negative = s.size && s.data[0] == '-';
    if (s.size && (s.data[0] == '-' || s.data[0] == '+')) s = span_make(s.data + 1, s.size - 1);
    size_t i = 0, n = 0, zero = 0;
    bool whole = copy_digits(s, &i, plain, &n, DIGITS_MAX), fraction = false;
    if (!whole && n) return false;
    if (!whole) plain[n++] = '0';
    while (zero + 1 < n && plain[zero] == '0') zero++; /* JSON knows no leading zeros */
    if (i < s.size && s.data[i] == '.') {
        i++;
        plain[n++] = '.';
        size_t before = n;
        fraction = copy_digits(s, &i, plain, &n, DIGITS_MAX);
        if (n == before) plain[n++] = '0';
    }
    if ((whole || fraction) && i < s.size && (s.data[i] | 32) == 'e') {
        i++;
        plain[n++] = 'e';
        if (i < s.size && (s.data[i] == '+' || s.data[i] == '-')) plain[n++] = s.data[i++];
        if (!copy_digits(s, &i, plain, &n, DIGITS_MAX)) return false;
    }
    if ((!whole && !fraction) || i < s.size) {
        if (i != 0 || !special_double(s, out)) return false;
    } else {
        json number = {.type = JSON_NUMBER, .text = span_make(plain + zero, n - zero)};
        if (!json_double(&number, out)) *out = INFINITY;
    }
    if (negative) *out = -*out;
    return true;
}

/* -1, 0, 1; 2 when one is not a number. Integers of 64 bits and doubles both fit a long double's 64-bit significand. */
static int compare_numbers(value a, value b) {
    if (a.type != V_FLOAT && b.type != V_FLOAT) {
        int64_t x = 0, y = 0;
        value_integer(a, &x);
        value_integer(b, &y);
        return (x > y) - (x < y);
    }
    long double x = a.type == V_FLOAT ? (long double)a.real : (long double)value_int(0).integer, y = x;
    int64_t i;
    if (value_integer(a, &i)) x = (long double)i;
    y = value_integer(b, &i) ? (long double)i : (long double)b.real;
    if (isnan((double)x) || isnan((double)y)) return 2;
    return (x > y) - (x < y);
}

static int compare_big(value a, value b) {
    bool a_negative = a.text[0] == '-', b_negative = b.text[0] == '-';
    if (a_negative != b_negative) return a_negative ? -1 : 1;
    int magnitude = a.size != b.size ? (a.size > b.size ? 1 : -1) : memcmp(a.text, b.text, a.size);
    magnitude = (magnitude > 0) - (magnitude < 0);
    return a_negative ? -magnitude : magnitude;
}

/* ---- truth, equality, order */

const char *value_type_name(value v) {
    static const char *const sequences[] = {"list",        "tuple",      "generator", "dict_keys",
                                            "dict_values", "dict_items", "range"};
    switch ((value_type)v.type) {
        case V_MISSING:
        case V_UNDEFINED:
            return "Undefined";
        case V_NONE:
            return "NoneType";
        case V_BOOL:
            return "bool";
        case V_INT:
        case V_BIG:
            return "int";
        case V_FLOAT:
            return "float";
        case V_STR:
            return "str";
        case V_SEQ:
            return sequences[v.seq->kind];
        case V_DICT:
            return "dict";
        case V_NAMESPACE:
            return "Namespace";
        case V_LOOP:
            return "LoopContext";
        case V_MACRO:
            return "Macro";
        case V_BUILTIN:
        case V_METHOD:
            return "function";
    }
    return "object";
}

static uint32_t dict_count(const dict *d) { return d->source ? d->source->count : d->count; }

bool value_truth(value v) {
    switch ((value_type)v.type) {
        case V_MISSING:
        case V_UNDEFINED:
        case V_NONE:
            return false;
        case V_BOOL:
            return v.truth;
        case V_INT:
            return v.integer != 0;
        case V_FLOAT:
            return v.real != 0;
        case V_STR:
            return v.size != 0;
        case V_SEQ:
            return v.seq->kind == SEQ_ITERATOR || v.seq->count != 0;
        case V_DICT:
            return dict_count(v.dict) != 0;
        default:
            return true;
    }
}

static err_code equal_sequences(rendering *r, sequence *a, sequence *b, bool *out) {
    *out = false;
    if (a == b) {
        *out = true;
        return ERR_OK;
    }
    if (a->kind != b->kind || a->kind == SEQ_ITERATOR || a->kind == SEQ_VALUES || a->count != b->count) return ERR_OK;
    seq_load(r, a);
    seq_load(r, b);
    *out = true;
    for (uint32_t i = 0; i < a->count && *out; i++) ERR_TRY(value_equal(r, a->items[i], b->items[i], out));
    return ERR_OK;
}

static err_code equal_dicts(rendering *r, dict *a, dict *b, bool *out) {
    dict_load(r, a);
    dict_load(r, b);
    *out = a->count == b->count;
    for (uint32_t i = 0; i < a->count && *out; i++) {
        value *other;
        ERR_TRY(dict_find(r, b, a->entries[i].key, &other));
        *out = other != NULL;
        if (other) ERR_TRY(value_equal(r, a->entries[i].value, *other, out));
    }
    return ERR_OK;
}

err_code value_equal(rendering *r, value a, value b, bool *out) {
    ERR_TRY(charge(r, 1));
    *out = false;
    if (value_is_number(a) && value_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return ERR_OK;
    }
    if (a.type != b.type) return ERR_OK;
    err_code code = ERR_OK;
    switch ((value_type)a.type) {
        case V_STR:
            ERR_TRY(charge(r, a.size / 64));
            *out = span_equal(value_span(a), value_span(b));
            break;
        case V_BIG:
            *out = span_equal(value_span(a), value_span(b));
            break;
        case V_SEQ:
        case V_DICT:
            ERR_TRY(template_enter(r));
            code = a.type == V_SEQ ? equal_sequences(r, a.seq, b.seq, out) : equal_dicts(r, a.dict, b.dict, out);
            template_leave(r);
            break;
        case V_METHOD:
            *out = a.method == b.method;
            break;
        case V_NAMESPACE:
        case V_LOOP:
        case V_MACRO:
        case V_BUILTIN:
            *out = a.dict == b.dict;
            break;
        default: /* none, undefined */
            *out = true;
    }
    return code;
}

static err_code order_sequences(rendering *r, sequence *a, sequence *b, const char *op, int *out) {
    seq_load(r, a);
    seq_load(r, b);
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        ERR_TRY(value_equal(r, a->items[i], b->items[i], &equal));
        if (!equal) return value_order(r, a->items[i], b->items[i], op, out);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return ERR_OK;
}

err_code value_order(rendering *r, value a, value b, const char *op, int *out) {
    ERR_TRY(charge(r, 1));
    bool numbers = (value_is_number(a) || a.type == V_BIG) && (value_is_number(b) || b.type == V_BIG);
    if (value_is_number(a) && value_is_number(b)) {
        *out = compare_numbers(a, b);
    } else if (numbers && a.type != V_FLOAT && b.type != V_FLOAT) {
        if (a.type == V_BIG && b.type == V_BIG)
            *out = compare_big(a, b);
        else /* a big one is beyond every other */
            *out = a.type == V_BIG ? (a.text[0] == '-' ? -1 : 1) : (b.text[0] == '-' ? 1 : -1);
    } else if (numbers) {
        double x = value_real(a), y = value_real(b);
        if (a.type == V_BIG) text_to_double(value_span(a), &x);
        if (b.type == V_BIG) text_to_double(value_span(b), &y);
        if (x == y)
            return template_fail(r, ERR_UNSUPPORTED,
                                 "comparing so close numbers of more than 64 bits is not supported");
        *out = isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    } else if (a.type == V_STR && b.type == V_STR) { /* the order of UTF-8 bytes is that of characters */
        ERR_TRY(charge(r, a.size / 64));
        int c = memcmp(a.text, b.text, a.size < b.size ? a.size : b.size);
        *out = c ? (c > 0) - (c < 0) : (a.size > b.size) - (a.size < b.size);
    } else if (a.type == V_SEQ && b.type == V_SEQ && a.seq->kind == b.seq->kind && a.seq->kind <= SEQ_TUPLE) {
        ERR_TRY(template_enter(r));
        err_code code = order_sequences(r, a.seq, b.seq, op, out);
        template_leave(r);
        return code;
    } else if (a.type == V_UNDEFINED || b.type == V_UNDEFINED) {
        return value_undefined_error(r, a.type == V_UNDEFINED ? a : b);
    } else {
        return template_fail(r, ERR_UNSUPPORTED, "'%s' not supported between instances of '%s' and '%s'", op,
                             value_type_name(a), value_type_name(b));
    }
    return ERR_OK;
}

err_code value_contains(rendering *r, value container, value item, bool *out) {
    *out = false;
    if (container.type == V_STR) {
        if (item.type != V_STR)
            return template_fail(r, ERR_UNSUPPORTED, "'in <string>' requires string as left operand, not %s",
                                 value_type_name(item));
        ERR_TRY(charge(r, container.size / 16));
        *out = span_find(value_span(container), value_span(item)) >= 0;
        return ERR_OK;
    }
    if (container.type == V_DICT) {
        value *found;
        ERR_TRY(dict_find(r, container.dict, item, &found));
        *out = found != NULL;
        return ERR_OK;
    }
    if (container.type != V_SEQ && container.type != V_UNDEFINED)
        return template_fail(r, ERR_UNSUPPORTED, "argument of type '%s' is not iterable", value_type_name(container));
    sequence *q;
    ERR_TRY(value_items(r, container, &q));
    for (uint32_t i = 0; i < q->count && !*out; i++) ERR_TRY(value_equal(r, q->items[i], item, out));
    return ERR_OK;
}

/* ---- iteration */

err_code value_undefined_error(rendering *r, value v) {
    int n = (int)(v.size < 200 ? v.size : 200);
    if (v.flag == UNDEFINED_NAME) return template_fail(r, ERR_UNSUPPORTED, "'%.*s' is undefined", n, v.text);
    if (v.flag == UNDEFINED_ATTRIBUTE)
        return template_fail(r, ERR_UNSUPPORTED, "the object has no attribute '%.*s'", n, v.text);
    if (v.flag == UNDEFINED_UNSAFE)
        return template_fail(r, ERR_UNSUPPORTED, "access to attribute '%.*s' is unsafe", n, v.text);
    return template_fail(r, ERR_UNSUPPORTED, "%.*s", n, v.text);
}

static err_code characters(rendering *r, span s, sequence **out) {
    ERR_TRY(seq_create(r, SEQ_LIST, text_length(s), out));
    size_t at = 0;
    for (uint32_t i = 0; i < (*out)->count; i++) {
        size_t n = text_offset(span_make(s.data + at, s.size - at), 1);
        (*out)->items[i] = value_str(span_make(s.data + at, n));
        at += n;
    }
    return ERR_OK;
}

err_code value_items(rendering *r, value v, sequence **out) {
    static sequence nothing = {.kind = SEQ_LIST};
    switch ((value_type)v.type) {
        case V_SEQ:
            *out = v.seq;
            seq_load(r, v.seq);
            if (v.seq->kind == SEQ_ITERATOR) { /* read once */
                if (v.seq->spent) *out = &nothing;
                v.seq->spent = true;
            }
            return ERR_OK;
        case V_DICT:
            dict_load(r, v.dict);
            ERR_TRY(seq_create(r, SEQ_KEYS, v.dict->count, out));
            for (uint32_t i = 0; i < v.dict->count; i++) (*out)->items[i] = v.dict->entries[i].key;
            return ERR_OK;
        case V_STR:
            return characters(r, value_span(v), out);
        case V_UNDEFINED:
            if (v.flag == UNDEFINED_UNSAFE) return value_undefined_error(r, v);
            *out = &nothing;
            return ERR_OK;
        default:
            return template_fail(r, ERR_UNSUPPORTED, "'%s' object is not iterable", value_type_name(v));
    }
}

err_code value_length(rendering *r, value v, uint64_t *out) {
    switch ((value_type)v.type) {
        case V_STR:
            ERR_TRY(charge(r, v.size / 64));
            *out = text_length(value_span(v));
            return ERR_OK;
        case V_SEQ:
            if (v.seq->kind == SEQ_ITERATOR) break;
            *out = v.seq->count;
            return ERR_OK;
        case V_DICT:
            dict_load(r, v.dict); /* a repeated key counts once */
            *out = v.dict->count;
            return ERR_OK;
        case V_UNDEFINED:
            *out = 0;
            return ERR_OK;
        case V_LOOP:
            ERR_TRY(loop_fill(r, v.loop, UINT64_MAX));
            *out = v.loop->items->count;
            return ERR_OK;
        default:
            break;
    }
    return template_fail(r, ERR_UNSUPPORTED, "object of type '%s' has no len()", value_type_name(v));
}
