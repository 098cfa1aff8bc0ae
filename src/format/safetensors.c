/* Parsing a safetensors header; see safetensors.h.
 *
 * The file is untrusted: every number is checked before it is used, and sizes are computed with overflow checks. The data
 * itself is never looked at here. Overlap is checked by sorting the ranges once, names by sorting them once, so a header
 * with a hundred thousand tensors costs no more than its sort. */
#include "format/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"

typedef struct header {
    const char *file;
    span bytes;          /* the whole file */
    uint64_t data_start; /* file offset of the data */
} header;

static uint64_t read_u64_le(const char *p) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | (uint8_t)p[i];
    return v;
}

static bool find_dtype(span name, dtype *out) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (span_is(name, dtype_name((dtype)i))) return *out = (dtype)i, true;
    return false;
}

/* File offset of a header value, for error messages. */
static uint64_t offset_of(const header *h, const json *value) { return (uint64_t)(value->source.data - h->bytes.data); }

static err_code read_name(arena *names, const header *h, const json *entry, tensor *t, error *err) {
    uint64_t at = offset_of(h, entry);
    if (!entry->key.size) ERR_FAIL(err, ERR_FORMAT, "%s: empty tensor name at byte %" PRIu64, h->file, at);
    if (memchr(entry->key.data, 0, entry->key.size))
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor name with a NUL at byte %" PRIu64, h->file, at);
    t->name = arena_copy(names, entry->key.data, entry->key.size);
    return ERR_OK;
}

static err_code read_dtype(const header *h, const json *entry, tensor *t, error *err) {
    const json *value = json_get(entry, "dtype");
    if (!json_is(value, JSON_STRING))
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': no dtype (byte %" PRIu64 ")", h->file, t->name,
                 offset_of(h, entry));
    if (!find_dtype(value->text, &t->type))
        ERR_FAIL(err, ERR_UNSUPPORTED, "%s: tensor '%.200s': dtype '%.*s' is not known (byte %" PRIu64 ")", h->file,
                 t->name, (int)(value->text.size < 32 ? value->text.size : 32), value->text.data, offset_of(h, value));
    return ERR_OK;
}

static err_code read_shape(const header *h, const json *entry, tensor *t, error *err) {
    const json *shape = json_get(entry, "shape");
    if (!json_is(shape, JSON_ARRAY))
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': no shape (byte %" PRIu64 ")", h->file, t->name,
                 offset_of(h, entry));
    if (shape->count > TENSOR_RANK_MAX)
        ERR_FAIL(err, ERR_LIMIT, "%s: tensor '%.200s': %" PRIu32 " dimensions, at most %d are known (byte %" PRIu64 ")",
                 h->file, t->name, shape->count, TENSOR_RANK_MAX, offset_of(h, shape));
    t->count = 1;
    for (const json *d = shape->first; d; d = d->next) {
        int64_t size;
        if (!json_integer(d, &size) || size < 0)
            ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': dimension %d is not a size (byte %" PRIu64 ")", h->file,
                     t->name, t->rank, offset_of(h, d));
        if (__builtin_mul_overflow(t->count, (uint64_t)size, &t->count))
            ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': shape overflows (byte %" PRIu64 ")", h->file, t->name,
                     offset_of(h, shape));
        t->shape[t->rank++] = size;
    }
    if (__builtin_mul_overflow(t->count, dtype_size(t->type), &t->bytes))
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': size overflows (byte %" PRIu64 ")", h->file, t->name,
                 offset_of(h, shape));
    return ERR_OK;
}

static err_code read_range(const header *h, const json *entry, tensor *t, error *err) {
    const json *range = json_get(entry, "data_offsets");
    int64_t begin, end;
    if (!json_is(range, JSON_ARRAY) || range->count != 2 || !json_integer(json_at(range, 0), &begin) ||
        !json_integer(json_at(range, 1), &end) || begin < 0 || end < begin)
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': data_offsets are not [begin, end] (byte %" PRIu64 ")", h->file,
                 t->name, offset_of(h, range ? range : entry));
    uint64_t data_size = h->bytes.size - h->data_start;
    if ((uint64_t)end > data_size)
        ERR_FAIL(err, ERR_FORMAT,
                 "%s: tensor '%.200s': ends at byte %" PRIu64 " past the end of the file at byte %zu (truncated?)",
                 h->file, t->name, h->data_start + (uint64_t)end, h->bytes.size);
    if ((uint64_t)(end - begin) != t->bytes)
        ERR_FAIL(err, ERR_FORMAT,
                 "%s: tensor '%.200s': %" PRIu64 " elements of %s need %" PRIu64 " bytes, data_offsets give %" PRId64
                 " (byte %" PRIu64 ")",
                 h->file, t->name, t->count, dtype_name(t->type), t->bytes, end - begin, offset_of(h, range));
    t->offset = h->data_start + (uint64_t)begin;
    t->data = h->bytes.data + t->offset;
    return ERR_OK;
}

static err_code read_entry(arena *names, const header *h, const json *entry, tensor *t, error *err) {
    *t = (tensor){.file = h->file};
    ERR_TRY(read_name(names, h, entry, t, err));
    if (!json_is(entry, JSON_OBJECT))
        ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s': not an object (byte %" PRIu64 ")", h->file, t->name,
                 offset_of(h, entry));
    ERR_TRY(read_dtype(h, entry, t, err));
    ERR_TRY(read_shape(h, entry, t, err));
    return read_range(h, entry, t, err);
}

static int by_offset(const void *a, const void *b) {
    const tensor *x = *(const tensor *const *)a, *y = *(const tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const tensor *const *)a)->name, (*(const tensor *const *)b)->name);
}

static err_code check_pairs(const header *h, const tensor **order, size_t count, error *err) {
    qsort(order, count, sizeof *order, by_offset);
    const tensor *before = NULL; /* the last one that has bytes: empty tensors overlap nothing */
    for (size_t i = 0; i < count; i++) {
        if (!order[i]->bytes) continue;
        if (before && order[i]->offset < before->offset + before->bytes)
            ERR_FAIL(err, ERR_FORMAT, "%s: tensors '%.150s' and '%.150s' overlap at byte %" PRIu64, h->file,
                     before->name, order[i]->name, order[i]->offset);
        before = order[i];
    }
    qsort(order, count, sizeof *order, by_name);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(order[i]->name, order[i - 1]->name))
            ERR_FAIL(err, ERR_FORMAT, "%s: tensor '%.200s' appears twice (bytes %" PRIu64 " and %" PRIu64 ")", h->file,
                     order[i]->name, order[i - 1]->offset, order[i]->offset);
    return ERR_OK;
}

static err_code check_list(const header *h, const tensor *items, size_t count, error *err) {
    const tensor **order = mem_alloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++) order[i] = &items[i];
    err_code code = check_pairs(h, order, count, err);
    free(order);
    return code;
}

static tensor *push(tensor_list *list) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->items = mem_grow(list->items, list->capacity, sizeof *list->items);
    }
    return &list->items[list->count];
}

static err_code read_entries(arena *names, const header *h, const json *root, tensor_list *out, error *err) {
    size_t first = out->count;
    if (!json_is(root, JSON_OBJECT)) ERR_FAIL(err, ERR_FORMAT, "%s: the header is not an object (byte 8)", h->file);
    for (const json *entry = root->first; entry; entry = entry->next) {
        if (span_is(entry->key, "__metadata__")) continue;
        ERR_TRY(read_entry(names, h, entry, push(out), err));
        out->count++;
    }
    return check_list(h, out->items + first, out->count - first, err);
}

static err_code check_sizes(const char *file, span bytes, uint64_t *header_size, error *err) {
    if (bytes.size < 8)
        ERR_FAIL(err, ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file (byte 0)", file, bytes.size);
    *header_size = read_u64_le(bytes.data);
    if (*header_size > SAFETENSORS_HEADER_MAX)
        ERR_FAIL(err, ERR_LIMIT, "%s: header of %" PRIu64 " bytes, the limit is %d (byte 0; not a safetensors file?)",
                 file, *header_size, SAFETENSORS_HEADER_MAX);
    if (*header_size > bytes.size - 8)
        ERR_FAIL(err, ERR_FORMAT, "%s: header of %" PRIu64 " bytes in a file of %zu (byte 0; truncated?)", file,
                 *header_size, bytes.size);
    return ERR_OK;
}

err_code safetensors_parse(arena *names, const char *file, span bytes, tensor_list *out, error *err) {
    uint64_t header_size = 0;
    ERR_TRY(check_sizes(file, bytes, &header_size, err));
    header h = {file, bytes, 8 + header_size};
    arena *tree = arena_create();
    const json *root;
    error inner = {0};
    err_code code = json_parse(tree, span_make(bytes.data + 8, header_size), JSON_DEPTH_DEFAULT, &root, &inner);
    if (code)
        code = error_set(err, ERR_FORMAT, __FILE__, __LINE__, "%s: header (from byte 8): %s", file, inner.message);
    else
        code = read_entries(names, &h, root, out, err);
    arena_destroy(tree);
    return code;
}
