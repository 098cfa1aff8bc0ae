/* obj.name, obj[key] and obj[a:b:c]: attributes, members, methods and the loop variable.
 *
 * As in Jinja's sandbox: a dot looks for an attribute (a method) first and for a member then, brackets the other way
 * round; what is not there is undefined, which only fails when it is used. Names with two leading underscores and methods
 * that would change their object are undefined in a way that says why. */
#include "text/template_internal.h"

static err_code make_method(rendering *r, value self, const builtin *method, value *out) {
    void *memory;
    ERR_TRY(template_alloc(r, sizeof(bound_method), &memory));
    bound_method *m = memory;
    *m = (bound_method){self, method};
    *out = (value){.type = V_METHOD, .method = m};
    return ERR_OK;
}

static err_code loop_attribute(rendering *r, loop *l, span name, value *out) {
    uint32_t i = l->index;
    bool known = true;
    if (span_is(name, "index"))
        *out = value_int((int64_t)i + 1);
    else if (span_is(name, "index0"))
        *out = value_int(i);
    else if (span_is(name, "first"))
        *out = value_bool(i == 0);
    else if (span_is(name, "depth"))
        *out = value_int(1); /* only recursive loops, which are refused, go deeper */
    else if (span_is(name, "depth0"))
        *out = value_int(0);
    else if (span_is(name, "previtem"))
        *out = i ? l->items->items[i - 1] : value_undefined(UNDEFINED_OTHER, span_text("there is no previous item"));
    else
        known = false;
    if (known) return ERR_OK;
    if (span_is(name, "last") || span_is(name, "nextitem")) {
        ERR_TRY(loop_fill(r, l, (uint64_t)i + 2));
        bool last = i + 1 >= l->items->count;
        if (name.size == 4)
            *out = value_bool(last);
        else
            *out =
                !last ? l->items->items[i + 1] : value_undefined(UNDEFINED_OTHER, span_text("there is no next item"));
        return ERR_OK;
    }
    bool length = span_is(name, "length"), revindex = span_is(name, "revindex");
    if (length || revindex || span_is(name, "revindex0")) {
        ERR_TRY(loop_fill(r, l, UINT64_MAX));
        int64_t count = l->items->count;
        *out = value_int(length ? count : count - i - !revindex);
        return ERR_OK;
    }
    *out = value_undefined(UNDEFINED_ATTRIBUTE, name);
    return ERR_OK;
}

static const builtin *method_find(value object, span name) {
    switch (object.type) {
        case V_STR:
            return str_method_find(name);
        case V_DICT:
            return dict_method_find(name);
        case V_SEQ:
            return object.seq->kind <= SEQ_TUPLE ? seq_method_find(name) : NULL;
        case V_LOOP:
            return loop_method_find(name);
        default:
            return NULL;
    }
}

static err_code no_attribute(rendering *r, value object, span name, value *out) {
    if (object.type == V_UNDEFINED) return value_undefined_error(r, object);
    bool unsafe = method_is_unsafe(object, name) || span_starts(name, span_text("__"));
    *out = value_undefined(unsafe ? UNDEFINED_UNSAFE : UNDEFINED_ATTRIBUTE, name);
    return ERR_OK;
}

err_code template_getattr(rendering *r, value object, span name, value *out) {
    const builtin *method = method_find(object, name);
    if (method) return make_method(r, object, method, out);
    if (object.type == V_LOOP) return loop_attribute(r, object.loop, name, out);
    if (object.type == V_DICT && method_is_unsafe(object, name)) return no_attribute(r, object, name, out);
    if (object.type == V_DICT || object.type == V_NAMESPACE) {
        value *found = dict_find_text(r, object.dict, name);
        if (found) {
            *out = *found;
            return ERR_OK;
        }
    }
    if (object.type == V_MACRO && span_is(name, "name")) {
        *out = value_str(object.macro->function->name);
        return ERR_OK;
    }
    return no_attribute(r, object, name, out);
}

static err_code item_by_index(rendering *r, value object, int64_t i, value *out) {
    uint64_t count;
    ERR_TRY(value_length(r, object, &count));
    if (i < 0) i += (int64_t)count;
    if (i < 0 || (uint64_t)i >= count) {
        *out = value_undefined(UNDEFINED_OTHER, span_text("the object has no item of this index"));
        return ERR_OK;
    }
    if (object.type == V_SEQ) {
        seq_load(r, object.seq);
        *out = object.seq->items[i];
        return ERR_OK;
    }
    span s = value_span(object);
    size_t from = text_offset(s, (size_t)i);
    *out = value_str(span_make(s.data + from, text_offset(span_make(s.data + from, s.size - from), 1)));
    return ERR_OK;
}

err_code template_getitem(rendering *r, value object, value key, value *out) {
    if (object.type == V_UNDEFINED) return value_undefined_error(r, object);
    int64_t i;
    bool indexed = object.type == V_STR ||
                   (object.type == V_SEQ && (object.seq->kind <= SEQ_TUPLE || object.seq->kind == SEQ_RANGE));
    if (indexed && value_integer(key, &i)) return item_by_index(r, object, i, out);
    if (object.type == V_DICT) {
        value *found = NULL;
        if (key.type != V_SEQ && key.type != V_DICT) ERR_TRY(dict_find(r, object.dict, key, &found));
        if (key.type == V_SEQ && key.seq->kind == SEQ_TUPLE) ERR_TRY(dict_find(r, object.dict, key, &found));
        if (found) {
            *out = *found;
            return ERR_OK;
        }
    }
    if (key.type == V_STR) return template_getattr(r, object, value_span(key), out);
    *out = value_undefined(UNDEFINED_OTHER, span_text("the object has no such item"));
    return ERR_OK;
}

/* ---- slices */

static err_code slice_bound(rendering *r, value v, int64_t none, int64_t count, bool backwards, int64_t *out) {
    *out = none;
    if (v.type == V_NONE) return ERR_OK;
    if (!value_integer(v, out))
        return template_fail(r, ERR_UNSUPPORTED, "slice indices must be integers or None, not %s", value_type_name(v));
    if (*out < 0)
        *out = *out < -count ? (backwards ? -1 : 0) : *out + count;
    else if (*out >= count)
        *out = backwards ? count - 1 : count;
    return ERR_OK;
}

static err_code slice_text(rendering *r, span s, int64_t start, int64_t step, int64_t count, value *out) {
    if (step == 1 || count == 0) {
        size_t from = text_offset(s, (size_t)start);
        *out = value_str(
            span_make(s.data + from, count ? text_offset(span_make(s.data + from, s.size - from), (size_t)count) : 0));
        return ERR_OK;
    }
    sequence *all;
    ERR_TRY(value_items(r, value_str(s), &all));
    sequence *q;
    ERR_TRY(seq_create(r, SEQ_LIST, (uint64_t)count, &q));
    for (int64_t i = 0; i < count; i++) q->items[i] = all->items[start + i * step];
    return text_join(r, span_make("", 0), q, true, out);
}

err_code template_slice(rendering *r, value object, const value bounds[3], value *out) {
    bool sliceable = object.type == V_STR || (object.type == V_SEQ && object.seq->kind <= SEQ_TUPLE);
    if (object.type == V_UNDEFINED) return value_undefined_error(r, object);
    if (value_is_kind(object, SEQ_RANGE))
        return template_fail(r, ERR_UNSUPPORTED, "slicing a range (use |list before)");
    if (object.type == V_DICT) return template_fail(r, ERR_UNSUPPORTED, "unhashable type: 'slice'");
    if (!sliceable)
        return template_fail(r, ERR_UNSUPPORTED, "'%s' object is not subscriptable", value_type_name(object));
    uint64_t length;
    ERR_TRY(value_length(r, object, &length));
    int64_t size = (int64_t)length, step = 1, start, stop;
    if (bounds[2].type != V_NONE && !value_integer(bounds[2], &step))
        return template_fail(r, ERR_UNSUPPORTED, "slice indices must be integers or None, not %s",
                             value_type_name(bounds[2]));
    if (step == 0) return template_fail(r, ERR_UNSUPPORTED, "slice step cannot be zero");
    if (step > size) step = size + 1; /* no difference, but no overflow either */
    if (step < -size) step = -size - 1;
    bool backwards = step < 0;
    ERR_TRY(slice_bound(r, bounds[0], backwards ? size - 1 : 0, size, backwards, &start));
    ERR_TRY(slice_bound(r, bounds[1], backwards ? -1 : size, size, backwards, &stop));
    int64_t count = backwards ? (start > stop ? (start - stop - 1) / -step + 1 : 0)
                              : (stop > start ? (stop - start - 1) / step + 1 : 0);
    if (object.type == V_STR) return slice_text(r, value_span(object), start, step, count, out);
    sequence *q;
    seq_load(r, object.seq);
    ERR_TRY(seq_create(r, object.seq->kind, (uint64_t)count, &q));
    for (int64_t i = 0; i < count; i++) q->items[i] = object.seq->items[start + i * step];
    *out = value_seq(q);
    return ERR_OK;
}
