/* Reading tokenizer.json and tokenizer_config.json; see tokenizer.h.
 *
 * The files are not trusted and not assumed to be of a kind this code implements: whatever could change the ids of a
 * text is either honoured or refused by name. What can be refused is checked first, then the added tokens, the
 * vocabulary and the merges are read, in this order, since each is checked against the one before it.
 *
 * Vocabulary and merges spell bytes as printable characters (GPT-2's byte alphabet: 33..126, 161..172 and 174..255 for
 * themselves, U+0100 onwards for the others in order). They are turned into bytes here, once. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/tokenizer_parts.h"

/* An id sizes tables, so a single large one must not cost gigabytes. */
enum { TOKENIZER_COUNT_MAX = 1 << 22, TOKENIZER_FILE_SIZE_MAX = 1 << 29, ALPHABET_SIZE = 256 + 68 };

typedef struct loader {
    tokenizer *t;
    arena *memory;                  /* the trees of both files and what is decoded from them */
    int16_t byte_of[ALPHABET_SIZE]; /* alphabet: code point -> byte, or -1 */
    added_tokens added;             /* contents borrow from memory */
    const char *file;               /* being read, for messages */
    error *err;
} loader;

#define LOAD_FAIL(l, code, format, ...) ERR_FAIL((l)->err, (code), "%s: " format, (l)->file, __VA_ARGS__)

/* Text of the file as it may stand in a message: cut, and without control characters. */
typedef struct shown {
    char text[72];
} shown;

static shown show(span s) {
    shown out;
    size_t size = s.size < sizeof out.text - 1 ? s.size : sizeof out.text - 1;
    size = utf8_complete(span_make(s.data, size));
    for (size_t i = 0; i < size; i++)
        out.text[i] = (unsigned char)s.data[i] < 0x20 || s.data[i] == 0x7F ? '?' : s.data[i];
    out.text[size] = 0;
    return out;
}

/* ---- settings ---- */

static bool is_absent(const json *value) { return !value || json_is(value, JSON_NULL); }

static span type_of(const json *object) {
    const json *type = json_get(object, "type");
    return json_is(type, JSON_STRING) ? type->text : span_text(json_is(object, JSON_OBJECT) ? "(untyped)" : "(none)");
}

/* A setting must be absent, null, false or empty: anything else would change ids in a way that is not implemented. */
static err_code check_neutral(loader *l, const json *object, const char *where, const char *name) {
    const json *value = json_get(object, name);
    if (is_absent(value) || json_is(value, JSON_FALSE) || json_string_is(value, "")) return ERR_OK;
    LOAD_FAIL(l, ERR_UNSUPPORTED, "%s: '%s' = %s is not supported", where, name, show(value->source).text);
}

static err_code check_neutral_all(loader *l, const json *object, const char *where, const char *const *names) {
    for (; *names; names++) ERR_TRY(check_neutral(l, object, where, *names));
    return ERR_OK;
}

static err_code refuse_type(loader *l, const char *where, const json *object) {
    LOAD_FAIL(l, ERR_UNSUPPORTED, "%s '%s' is not supported", where, show(type_of(object)).text);
}

static err_code load_normalizer(loader *l, const json *normalizer) {
    if (is_absent(normalizer)) return ERR_OK;
    if (!span_is(type_of(normalizer), "NFC")) return refuse_type(l, "normalizer", normalizer);
    l->t->normalizes = true;
    return ERR_OK;
}

/* The regular expression of a Split, which must keep matches and gaps as they are. */
static err_code split_pattern(loader *l, const json *split, span *pattern) {
    if (!span_is(type_of(split), "Split")) return refuse_type(l, "pre_tokenizer", split);
    ERR_TRY(check_neutral(l, split, "pre_tokenizer Split", "invert"));
    if (!json_string_is(json_get(split, "behavior"), "Isolated"))
        LOAD_FAIL(l, ERR_UNSUPPORTED, "%s", "pre_tokenizer Split: a behavior other than Isolated is not supported");
    const json *regex = json_get(json_get(split, "pattern"), "Regex");
    if (!json_is(regex, JSON_STRING))
        LOAD_FAIL(l, ERR_UNSUPPORTED, "%s", "pre_tokenizer Split: a pattern other than Regex is not supported");
    *pattern = regex->text;
    return ERR_OK;
}

/* ByteLevel itself maps bytes to the alphabet and, with use_regex (the default), splits by GPT-2's pattern. */
static err_code byte_level(loader *l, const json *level, bool *uses_regex) {
    if (!span_is(type_of(level), "ByteLevel")) return refuse_type(l, "pre_tokenizer", level);
    ERR_TRY(check_neutral(l, level, "pre_tokenizer ByteLevel", "add_prefix_space"));
    *uses_regex = !json_is(json_get(level, "use_regex"), JSON_FALSE);
    return ERR_OK;
}

static err_code load_pre_tokenizer(loader *l, const json *pre) {
    const json *list = span_is(type_of(pre), "Sequence") ? json_get(pre, "pretokenizers") : NULL;
    if (list && (!json_is(list, JSON_ARRAY) || list->count < 1 || list->count > 2))
        LOAD_FAIL(l, ERR_UNSUPPORTED, "%s", "pre_tokenizer Sequence: only [Split, ByteLevel] is supported");
    const json *level = list ? json_at(list, list->count - 1) : pre;
    span pattern = {0};
    bool uses_regex = false;
    if (list && list->count == 2) ERR_TRY(split_pattern(l, json_at(list, 0), &pattern));
    ERR_TRY(byte_level(l, level, &uses_regex));
    if (uses_regex && pattern.size)
        LOAD_FAIL(l, ERR_UNSUPPORTED, "%s", "pre_tokenizer ByteLevel: use_regex after a Split is not supported");
    if (uses_regex) pattern = span_text(PRETOKENIZE_GPT2);
    error reason;
    err_code code = pretokenizer_create(pattern, &l->t->rules, &reason);
    if (code != ERR_OK) LOAD_FAIL(l, code, "%s", reason.message);
    return ERR_OK;
}

static err_code load_settings(loader *l, const json *root) {
    static const char *const root_neutral[] = {"truncation", "padding", NULL};
    static const char *const model_neutral[] = {
        "dropout",       "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
        "ignore_merges", NULL};
    const json *model = json_get(root, "model"), *type = json_get(model, "type");
    if (!json_is(model, JSON_OBJECT)) LOAD_FAIL(l, ERR_FORMAT, "%s", "no object 'model'");
    if (type && !json_string_is(type, "BPE")) return refuse_type(l, "model type", model);
    ERR_TRY(check_neutral_all(l, root, "tokenizer", root_neutral));
    ERR_TRY(check_neutral_all(l, model, "model", model_neutral));
    const json *decoder = json_get(root, "decoder"), *post = json_get(root, "post_processor");
    if (!span_is(type_of(decoder), "ByteLevel")) return refuse_type(l, "decoder", decoder);
    if (!is_absent(post) && !span_is(type_of(post), "ByteLevel")) return refuse_type(l, "post_processor", post);
    ERR_TRY(load_normalizer(l, json_get(root, "normalizer")));
    return load_pre_tokenizer(l, json_get(root, "pre_tokenizer"));
}

/* ---- ids and the byte alphabet ---- */

static err_code check_id(loader *l, const json *value, span name, int32_t *id) {
    int64_t number = -1;
    if (!json_integer(value, &number))
        LOAD_FAIL(l, ERR_FORMAT, "token '%s': its id is not an integer", show(name).text);
    if (number < 0 || number >= TOKENIZER_COUNT_MAX)
        LOAD_FAIL(l, ERR_LIMIT, "token '%s': id %lld is not in 0..%d", show(name).text, (long long)number,
                  TOKENIZER_COUNT_MAX - 1);
    *id = (int32_t)number;
    return ERR_OK;
}

static bool stands_for_itself(int byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static void init_alphabet(loader *l) {
    memset(l->byte_of, 0xFF, sizeof l->byte_of);
    int next = 256;
    for (int byte = 0; byte < 256; byte++) l->byte_of[stands_for_itself(byte) ? byte : next++] = (int16_t)byte;
    HEARTH_ASSERT(next == ALPHABET_SIZE);
}

/* Turns a spelling into bytes, in place of `bytes` (room for its size). False when a character is not of the
 * alphabet, whose characters have one or two bytes. */
static bool spell(const loader *l, span spelling, char *bytes, size_t *size) {
    *size = 0;
    for (size_t i = 0; i < spelling.size;) {
        unsigned c = (unsigned char)spelling.data[i++];
        if (c >= 0x80) {
            if ((c & 0xE0) != 0xC0 || i == spelling.size) return false;
            c = (c & 0x1F) << 6 | ((unsigned char)spelling.data[i++] & 0x3F);
        }
        if (c >= ALPHABET_SIZE || l->byte_of[c] < 0) return false;
        bytes[(*size)++] = (char)l->byte_of[c];
    }
    return true;
}

/* ---- added tokens ---- */

static err_code check_added_flags(loader *l, const json *item, span content) {
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is(json_get(item, names[i]), JSON_TRUE))
            LOAD_FAIL(l, ERR_UNSUPPORTED, "added token '%s': '%s' is not supported", show(content).text, names[i]);
    return ERR_OK;
}

static err_code add_added(loader *l, const json *item, int32_t id) {
    const json *content = json_get(item, "content");
    if (!json_is(content, JSON_STRING) || content->text.size == 0)
        LOAD_FAIL(l, ERR_FORMAT, "added token with id %d: no 'content'", (int)id);
    ERR_TRY(check_added_flags(l, item, content->text));
    bool special = json_is(json_get(item, "special"), JSON_TRUE);
    added_tokens_push(&l->added, (added_token){content->text, id, special});
    return ERR_OK;
}

static err_code read_added(loader *l, const json *root) {
    const json *list = json_get(root, "added_tokens");
    if (is_absent(list)) return ERR_OK;
    if (!json_is(list, JSON_ARRAY)) LOAD_FAIL(l, ERR_FORMAT, "%s", "'added_tokens' is not an array");
    for (const json *item = list->first; item; item = item->next) {
        int32_t id = -1;
        ERR_TRY(check_id(l, json_get(item, "id"), span_text("(added)"), &id));
        ERR_TRY(add_added(l, item, id));
    }
    return ERR_OK;
}

/* "248070", an object's key. */
static err_code check_id_key(loader *l, span key, int32_t *id) {
    const json number = {.type = JSON_NUMBER, .text = key, .source = key};
    bool digits = key.size > 0 && key.size < 16 && (key.size == 1 || key.data[0] != '0');
    for (size_t i = 0; digits && i < key.size; i++) digits = key.data[i] >= '0' && key.data[i] <= '9';
    if (!digits) LOAD_FAIL(l, ERR_FORMAT, "'added_tokens_decoder': key '%s' is not an id", show(key).text);
    return check_id(l, &number, key, id);
}

static err_code read_added_config(loader *l, const json *root) {
    const json *members = json_get(root, "added_tokens_decoder");
    if (is_absent(members)) return ERR_OK;
    if (!json_is(members, JSON_OBJECT)) LOAD_FAIL(l, ERR_FORMAT, "%s", "'added_tokens_decoder' is not an object");
    for (const json *item = members->first; item; item = item->next) {
        int32_t id = -1;
        ERR_TRY(check_id_key(l, item->key, &id));
        ERR_TRY(add_added(l, item, id));
    }
    return ERR_OK;
}

/* Both files list most tokens: one of each stays, special if either says so. */
static err_code unite_added(loader *l) {
    added_tokens_seal(&l->added);
    added_token *items = l->added.items;
    size_t kept = 0;
    for (size_t i = 0; i < l->added.count; i++) {
        if (kept == 0 || !span_equal(items[kept - 1].content, items[i].content)) {
            items[kept++] = items[i];
            continue;
        }
        if (items[kept - 1].id != items[i].id)
            LOAD_FAIL(l, ERR_FORMAT, "added token '%s' has two ids, %d and %d", show(items[i].content).text,
                      (int)items[kept - 1].id, (int)items[i].id);
        items[kept - 1].special |= items[i].special;
    }
    l->added.count = kept;
    return ERR_OK;
}

/* ---- vocabulary ---- */

static err_code vocabulary_size(loader *l, const json *members, int32_t *count) {
    *count = 0;
    for (const json *m = members->first; m; m = m->next) {
        int32_t id = -1;
        ERR_TRY(check_id(l, m, m->key, &id));
        if (id >= *count) *count = id + 1;
    }
    for (size_t i = 0; i < l->added.count; i++)
        if (l->added.items[i].id >= *count) *count = l->added.items[i].id + 1;
    return ERR_OK;
}

/* Gives the added tokens their ids and moves the list into the tokenizer, where it borrows from the vocabulary. */
static err_code place_added(loader *l) {
    tokenizer *t = l->t;
    for (size_t i = 0; i < l->added.count; i++) {
        added_token *a = &l->added.items[i];
        if (vocabulary_has(&t->words, a->id))
            LOAD_FAIL(l, ERR_FORMAT, "id %d belongs to two added tokens, '%s' and '%s'", (int)a->id,
                      show(vocabulary_bytes(&t->words, a->id)).text, show(a->content).text);
        vocabulary_set_bytes(&t->words, a->id, a->content);
        t->special[a->id] = a->special;
    }
    return ERR_OK;
}

static void seal_added(loader *l) {
    tokenizer *t = l->t;
    for (size_t i = 0; i < l->added.count; i++) {
        added_token a = l->added.items[i];
        a.content = vocabulary_bytes(&t->words, a.id);
        added_tokens_push(&t->added, a);
    }
    added_tokens_seal(&t->added);
}

static err_code add_entry(loader *l, const json *member, char *bytes) {
    tokenizer *t = l->t;
    span key = member->key;
    int64_t number = 0;
    json_integer(member, &number); /* checked by vocabulary_size */
    int32_t id = (int32_t)number;
    size_t size = 0;
    bool spelt = spell(l, key, bytes, &size);
    if (key.size == 0) LOAD_FAIL(l, ERR_FORMAT, "vocabulary entry with id %d is empty", (int)id);
    if (vocabulary_has(&t->words, id)) {
        const added_token *added = added_tokens_get(&l->added, key);
        if (!added || added->id != id)
            LOAD_FAIL(l, ERR_FORMAT, "id %d belongs to two tokens, one of them '%s'", (int)id, show(key).text);
        /* An added token that the vocabulary lists too: findable when it is plain text that merges might make. */
        if (!spelt || !span_equal(span_make(bytes, size), vocabulary_bytes(&t->words, id))) return ERR_OK;
    } else if (!spelt) {
        LOAD_FAIL(l, ERR_UNSUPPORTED, "vocabulary entry '%s' (id %d) is not in the byte-level alphabet", show(key).text,
                  (int)id);
    } else {
        vocabulary_set_bytes(&t->words, id, span_make(bytes, size));
    }
    if (!vocabulary_set_findable(&t->words, id, span_make(bytes, size)))
        LOAD_FAIL(l, ERR_FORMAT, "vocabulary entry '%s' has two ids", show(key).text);
    return ERR_OK;
}

/* An added token whose text the vocabulary gives another id would be one or the other depending on the reader. */
static err_code check_added_spellings(loader *l, char *bytes) {
    for (size_t i = 0; i < l->added.count; i++) {
        const added_token *a = &l->added.items[i];
        size_t size = 0;
        if (!spell(l, a->content, bytes, &size)) continue;
        int32_t id = vocabulary_find(&l->t->words, span_make(bytes, size));
        if (id >= 0 && id != a->id)
            LOAD_FAIL(l, ERR_FORMAT, "added token '%s' has id %d, but %d in the vocabulary", show(a->content).text,
                      (int)a->id, (int)id);
    }
    return ERR_OK;
}

static err_code find_bytes(loader *l) {
    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;
        int32_t id = vocabulary_find(&l->t->words, span_make(&c, 1));
        if (id < 0) LOAD_FAIL(l, ERR_FORMAT, "the vocabulary has no token for byte 0x%02X", (unsigned)byte);
        l->t->merges.byte_ids[byte] = id;
    }
    return ERR_OK;
}

static size_t longest_spelling(const loader *l, const json *members) {
    size_t longest = 0;
    for (const json *m = members->first; m; m = m->next)
        if (m->key.size > longest) longest = m->key.size;
    for (size_t i = 0; i < l->added.count; i++)
        if (l->added.items[i].content.size > longest) longest = l->added.items[i].content.size;
    return longest;
}

static err_code load_vocabulary(loader *l, const json *members) {
    if (!json_is(members, JSON_OBJECT)) LOAD_FAIL(l, ERR_FORMAT, "%s", "model: no object 'vocab'");
    int32_t count = 0;
    ERR_TRY(vocabulary_size(l, members, &count));
    ERR_TRY(vocabulary_init(&l->t->words, count, members->count, l->err));
    l->t->special = mem_zero((size_t)count, sizeof *l->t->special);
    ERR_TRY(place_added(l));
    char *bytes = arena_alloc(l->memory, longest_spelling(l, members));
    for (const json *m = members->first; m; m = m->next) ERR_TRY(add_entry(l, m, bytes));
    ERR_TRY(check_added_spellings(l, bytes));
    seal_added(l);
    return ERR_OK;
}

/* ---- merges ---- */

static bool merge_parts(const json *item, span *left, span *right) {
    if (json_is(item, JSON_ARRAY)) {
        const json *a = json_at(item, 0), *b = json_at(item, 1);
        if (item->count != 2 || !json_is(a, JSON_STRING) || !json_is(b, JSON_STRING)) return false;
        *left = a->text;
        *right = b->text;
        return true;
    }
    if (!json_is(item, JSON_STRING)) return false;
    const char *space = item->text.size ? memchr(item->text.data, ' ', item->text.size) : NULL;
    if (!space) return false;
    *left = span_make(item->text.data, (size_t)(space - item->text.data));
    *right = span_make(space + 1, item->text.size - left->size - 1);
    return true;
}

/* Bytes and id of one side, spelt at `bytes`. */
static err_code merge_side(loader *l, uint32_t rank, span spelling, char *bytes, size_t *size, int32_t *id) {
    *id = spell(l, spelling, bytes, size) ? vocabulary_find(&l->t->words, span_make(bytes, *size)) : -1;
    if (*id < 0)
        LOAD_FAIL(l, ERR_FORMAT, "merge %u: '%s' is not in the vocabulary", (unsigned)rank, show(spelling).text);
    return ERR_OK;
}

static err_code add_merge(loader *l, const json *item, uint32_t rank, buffer *bytes) {
    span left, right;
    if (!merge_parts(item, &left, &right))
        LOAD_FAIL(l, ERR_FORMAT, "merge %u is neither [\"a\", \"b\"] nor \"a b\"", (unsigned)rank);
    buffer_clear(bytes);
    char *joined = buffer_reserve(bytes, left.size + right.size);
    size_t left_size = 0, right_size = 0;
    int32_t left_id = -1, right_id = -1;
    ERR_TRY(merge_side(l, rank, left, joined, &left_size, &left_id));
    ERR_TRY(merge_side(l, rank, right, joined + left_size, &right_size, &right_id));
    int32_t id = vocabulary_find(&l->t->words, span_make(joined, left_size + right_size));
    if (id < 0)
        LOAD_FAIL(l, ERR_FORMAT, "merge %u: '%s' + '%s' is not in the vocabulary", (unsigned)rank, show(left).text,
                  show(right).text);
    bpe_set_merge(&l->t->merges, left_id, right_id, rank, id);
    return ERR_OK;
}

static err_code load_merges(loader *l, const json *list) {
    if (!json_is(list, JSON_ARRAY)) LOAD_FAIL(l, ERR_FORMAT, "%s", "model: no array 'merges'");
    ERR_TRY(bpe_init(&l->t->merges, &l->t->words, list->count, l->err));
    ERR_TRY(find_bytes(l));
    buffer bytes = {0};
    err_code code = ERR_OK;
    uint32_t rank = 0;
    for (const json *item = list->first; item && code == ERR_OK; item = item->next)
        code = add_merge(l, item, rank++, &bytes);
    buffer_deinit(&bytes);
    return code;
}

/* ---- files ---- */

static err_code parse(loader *l, const char *name, span text, const json **root) {
    l->file = name;
    if (text.size > TOKENIZER_FILE_SIZE_MAX)
        LOAD_FAIL(l, ERR_LIMIT, "%zu bytes, limit %d", text.size, TOKENIZER_FILE_SIZE_MAX);
    error reason;
    err_code code = json_parse(l->memory, text, JSON_DEPTH_DEFAULT, root, &reason);
    if (code != ERR_OK) LOAD_FAIL(l, code, "%s", reason.message);
    if (!json_is(*root, JSON_OBJECT)) LOAD_FAIL(l, ERR_FORMAT, "%s", "not a JSON object");
    return ERR_OK;
}

static err_code load(loader *l, const tokenizer_files *files) {
    const json *root = NULL, *config = NULL;
    ERR_TRY(parse(l, files->name, files->text, &root));
    ERR_TRY(load_settings(l, root));
    ERR_TRY(read_added(l, root));
    if (files->config_name) {
        ERR_TRY(parse(l, files->config_name, files->config, &config));
        ERR_TRY(read_added_config(l, config));
    }
    ERR_TRY(unite_added(l));
    l->file = files->name;
    const json *model = json_get(root, "model");
    ERR_TRY(load_vocabulary(l, json_get(model, "vocab")));
    return load_merges(l, json_get(model, "merges"));
}

err_code tokenizer_load(const tokenizer_files *files, tokenizer **out, error *err) {
    static atomic_uint_fast64_t serials;
    tokenizer *t = mem_zero(1, sizeof *t);
    t->serial = atomic_fetch_add(&serials, 1) + 1;
    loader l = {.t = t, .memory = arena_create(), .err = err};
    init_alphabet(&l);
    err_code code = load(&l, files);
    added_tokens_deinit(&l.added);
    arena_destroy(l.memory);
    if (code == ERR_OK)
        *out = t;
    else
        tokenizer_close(t);
    return code;
}

static span map_span(const file_map *map) { return span_make((const char *)map->data, (size_t)map->size); }

static err_code open_paths(const char *path, const char *config_path, tokenizer **out, error *err) {
    file_map map = {0}, config_map = {0};
    ERR_TRY(file_map_open(path, &map, err));
    bool has_config = file_exists(config_path);
    err_code code = has_config ? file_map_open(config_path, &config_map, err) : ERR_OK;
    if (code == ERR_OK) {
        tokenizer_files files = {path, map_span(&map), has_config ? config_path : NULL, map_span(&config_map)};
        code = tokenizer_load(&files, out, err);
    }
    file_map_close(&config_map);
    file_map_close(&map);
    return code;
}

err_code tokenizer_open(const char *dir, tokenizer **out, error *err) {
    char *path = file_join(dir, "tokenizer.json"), *config_path = file_join(dir, "tokenizer_config.json");
    err_code code = open_paths(path, config_path, out, err);
    free(path);
    free(config_path);
    return code;
}

void tokenizer_close(tokenizer *t) {
    if (!t) return;
    bpe_deinit(&t->merges);
    added_tokens_deinit(&t->added);
    vocabulary_deinit(&t->words);
    pretokenizer_destroy(t->rules);
    free(t->special);
    free(t);
}
