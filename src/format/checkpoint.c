/* The shards of a checkpoint directory as one sorted table of tensors; see checkpoint.h.
 *
 * Found by binary search: a model binds each name once, so a hash would gain nothing. */
#include "format/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "format/safetensors.h"

enum { SHARDS_MAX = 4096, INDEX_BYTES_MAX = 256 << 20 };

typedef struct shard {
    const char *name; /* in the arena */
    file_map map;
} shard;

struct checkpoint {
    arena *names;
    shard *shards;
    int shard_count;
    tensor_list list; /* sorted by name */
};

void checkpoint_close(checkpoint *c) {
    if (!c) return;
    for (int i = 0; i < c->shard_count; i++) file_map_close(&c->shards[i].map);
    free(c->shards);
    free(c->list.items);
    arena_destroy(c->names);
    free(c);
}

int checkpoint_count(const checkpoint *c) { return (int)c->list.count; }

const tensor *checkpoint_at(const checkpoint *c, int index) {
    HEARTH_ASSERT(index >= 0 && (size_t)index < c->list.count);
    return &c->list.items[index];
}

static int compare_key(const void *name, const void *item) { return strcmp(name, ((const tensor *)item)->name); }

const tensor *checkpoint_find(const checkpoint *c, const char *name) {
    if (!c->list.count) return NULL;
    return bsearch(name, c->list.items, c->list.count, sizeof(tensor), compare_key);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}

static err_code add_shard(checkpoint *c, const char *dir, const char *name, error *err) {
    shard *s = &c->shards[c->shard_count];
    *s = (shard){.name = name};
    char *path = file_join(dir, name);
    err_code code = file_map_open(path, &s->map, err);
    free(path);
    ERR_TRY(code);
    c->shard_count++;
    return safetensors_parse(c->names, name, span_make((const char *)s->map.data, s->map.size), &c->list, err);
}

static err_code sort_tensors(checkpoint *c, error *err) {
    if (c->list.count) qsort(c->list.items, c->list.count, sizeof(tensor), compare_names);
    for (size_t i = 1; i < c->list.count; i++) {
        const tensor *a = &c->list.items[i - 1], *b = &c->list.items[i];
        if (!strcmp(a->name, b->name))
            ERR_FAIL(err, ERR_FORMAT,
                     "tensor '%.200s' is in two shards: %s (byte %" PRIu64 ") and %s (byte %" PRIu64 ")", a->name,
                     a->file, a->offset, b->file, b->offset);
    }
    return ERR_OK;
}

/* A shard is a file beside the index: a name that leads elsewhere is not followed. */
static bool plain_name(span name) {
    return name.size && name.size < 256 && !memchr(name.data, '/', name.size) && !memchr(name.data, 0, name.size) &&
           !span_is(name, ".") && !span_is(name, "..");
}

static int find_shard(const checkpoint *c, span name) {
    for (int i = 0; i < c->shard_count; i++)
        if (span_is(name, c->shards[i].name)) return i;
    return -1;
}

static err_code open_mapped_shards(checkpoint *c, const char *dir, const json *map, error *err) {
    c->shards = mem_zero(SHARDS_MAX, sizeof *c->shards);
    for (const json *m = map->first; m; m = m->next) {
        if (!json_is(m, JSON_STRING) || !plain_name(m->text))
            ERR_FAIL(err, ERR_FORMAT, "model.safetensors.index.json: tensor '%.*s': not the name of a file beside it",
                     (int)(m->key.size < 200 ? m->key.size : 200), m->key.data);
        if (find_shard(c, m->text) >= 0) continue;
        if (c->shard_count == SHARDS_MAX)
            ERR_FAIL(err, ERR_LIMIT, "model.safetensors.index.json: more than %d shards", SHARDS_MAX);
        ERR_TRY(add_shard(c, dir, arena_copy(c->names, m->text.data, m->text.size), err));
    }
    return sort_tensors(c, err);
}

/* Every tensor that the index promises must be in the shard it names: a stale index is a mixed-up download. */
static err_code check_index(const checkpoint *c, const json *map, error *err) {
    for (const json *m = map->first; m; m = m->next) {
        char name[512];
        size_t size = m->key.size;
        const tensor *t = NULL;
        if (size < sizeof name && !memchr(m->key.data, 0, size)) {
            memcpy(name, m->key.data, size);
            name[size] = 0;
            t = checkpoint_find(c, name);
        }
        if (!t || !span_is(m->text, t->file))
            ERR_FAIL(err, ERR_FORMAT, "model.safetensors.index.json: tensor '%.*s' is not in %.*s%s%s",
                     (int)(size < 200 ? size : 200), m->key.data, (int)(m->text.size < 100 ? m->text.size : 100),
                     m->text.data, t ? " but in " : "", t ? t->file : "");
    }
    return ERR_OK;
}

static err_code read_index(checkpoint *c, const char *dir, span text, arena *tree, error *err) {
    const json *root;
    error inner = {0};
    if (json_parse(tree, text, JSON_DEPTH_DEFAULT, &root, &inner))
        ERR_FAIL(err, ERR_FORMAT, "model.safetensors.index.json: %s", inner.message);
    const json *map = json_get(root, "weight_map");
    if (!json_is(map, JSON_OBJECT)) ERR_FAIL(err, ERR_FORMAT, "model.safetensors.index.json: no weight_map object");
    ERR_TRY(open_mapped_shards(c, dir, map, err));
    return check_index(c, map, err);
}

static err_code open_index(checkpoint *c, const char *dir, const char *path, error *err) {
    buffer text = {0};
    arena *tree = arena_create();
    err_code code = file_read(path, INDEX_BYTES_MAX, &text, err);
    if (!code) code = read_index(c, dir, span_make(text.data, text.size), tree, err);
    arena_destroy(tree);
    buffer_deinit(&text);
    return code;
}

static err_code open_single(checkpoint *c, const char *dir, error *err) {
    c->shards = mem_zero(1, sizeof *c->shards);
    ERR_TRY(add_shard(c, dir, "model.safetensors", err));
    return sort_tensors(c, err);
}

static err_code open_any(checkpoint *c, const char *dir, error *err) {
    char *single = file_join(dir, "model.safetensors"), *index = file_join(dir, "model.safetensors.index.json");
    err_code code;
    if (file_exists(single))
        code = open_single(c, dir, err);
    else if (file_exists(index))
        code = open_index(c, dir, index, err);
    else
        code = error_set(err, ERR_NOT_FOUND, __FILE__, __LINE__,
                         "%s: neither model.safetensors nor model.safetensors.index.json", dir);
    free(single);
    free(index);
    return code;
}

err_code checkpoint_open(const char *dir, checkpoint **out, error *err) {
    checkpoint *c = mem_zero(1, sizeof *c);
    c->names = arena_create();
    err_code code = open_any(c, dir, err);
    if (code) {
        checkpoint_close(c);
        return code;
    }
    *out = c;
    return ERR_OK;
}
