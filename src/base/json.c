/* The JSON tree: lookups, building, copying; see json.h. Reading is in json_read.c, writing in json_write.c.
 *
 * Siblings form a list and lookups walk it. Objects in messages and configurations have a few dozen members, where a
 * walk beats hashing; a reader of something large (a checkpoint index) goes through the members once instead. */
#include "base/json.h"

#include "base/json_inner.h"

const json *json_get_span(const json *object, span key) {
    if (!json_is(object, JSON_OBJECT)) return NULL;
    const json *found = NULL;
    for (const json *member = object->first; member; member = member->next)
        if (span_equal(member->key, key)) found = member;
    return found;
}

const json *json_get(const json *object, const char *key) { return json_get_span(object, span_text(key)); }

const json *json_at(const json *array, uint32_t index) {
    if (!json_is(array, JSON_ARRAY) || index >= array->count) return NULL;
    const json *item = array->first;
    while (index--) item = item->next;
    return item;
}

bool json_is(const json *value, json_type type) { return value && value->type == type; }

bool json_string_is(const json *value, const char *text) {
    return json_is(value, JSON_STRING) && span_is(value->text, text);
}

json *json_new(arena *a, json_type type) {
    json *value = arena_alloc(a, sizeof *value);
    *value = (json){.type = type};
    return value;
}

static json *new_with_text(arena *a, json_type type, span text) {
    json *value = json_new(a, type);
    value->text = text;
    return value;
}

json *json_new_string(arena *a, span text) { return new_with_text(a, JSON_STRING, text); }

json *json_new_number(arena *a, span text) { return new_with_text(a, JSON_NUMBER, text); }

static void append(json *container, json *value) {
    HEARTH_ASSERT(value->next == NULL && container->count < UINT32_MAX);
    if (container->last)
        ((json *)container->last)->next = value; /* const only to readers: every node was made writable */
    else
        container->first = value;
    container->last = value;
    container->count++;
}

void json_append(json *array, json *item) {
    HEARTH_ASSERT(array->type == JSON_ARRAY);
    append(array, item);
}

void json_set(json *object, span key, json *value) {
    HEARTH_ASSERT(object->type == JSON_OBJECT);
    value->key = key;
    append(object, value);
}

/* A copy of one node without its place: no children, no siblings. The key stays: the caller decides. */
static json *copy_node(arena *a, const json *value) {
    json *copy = arena_alloc(a, sizeof *copy);
    *copy = *value;
    copy->first = copy->last = copy->next = NULL;
    copy->count = 0;
    return copy;
}

json *json_clone(arena *a, const json *value) {
    json *root = copy_node(a, value);
    root->key = (span){0};
    json_stack stack = {0};
    json_push(&stack, value->first, root); /* here `from` is the next child to copy */
    while (stack.count) {
        json_frame *frame = &stack.frames[stack.count - 1];
        const json *child = frame->from;
        if (!child) {
            stack.count--;
            continue;
        }
        frame->from = child->next;
        json *copy = copy_node(a, child);
        append(frame->to, copy);
        if (child->first) json_push(&stack, child->first, copy);
    }
    free(stack.frames);
    return root;
}
