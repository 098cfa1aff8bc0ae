/* The tokenizer on the small one kept in tests/golden/tokenizer, on variations of its file that must be refused, on
 * bytes that are no text, and on Qwen's where the reference data is there. */
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "qwen.h"
#include "text/tokenizer_parts.h"

#define GOLDEN "tests/golden/tokenizer"

static tokenizer *open_or_fail(const char *dir) {
    tokenizer *t = NULL;
    error err;
    if (tokenizer_open(dir, &t, &err) != ERR_OK) fail_msg("%s", err.message);
    return t;
}

static buffer read_or_fail(const char *path) {
    buffer b = {0};
    error err;
    if (file_read(path, 1 << 28, &b, &err) != ERR_OK) fail_msg("%s", err.message);
    return b;
}

static token_list encode_or_fail(const tokenizer *t, span text) {
    token_list l = {0};
    error err;
    if (tokenizer_encode(t, text, true, &l, &err) != ERR_OK) fail_msg("%s", err.message);
    return l;
}

/* ---- vectors ---- */

static void check_case(const tokenizer *t, const json *item, const char *ids_name) {
    span text = json_get(item, "text")->text;
    const json *ids = json_get(item, ids_name), *decoded = json_get(item, "decoded");
    token_list got = encode_or_fail(t, text);
    size_t i = 0;
    for (const json *id = ids->first; id; id = id->next, i++) {
        int64_t want = -1;
        assert_true(json_integer(id, &want));
        if (i >= got.count || got.ids[i] != want) fail_msg("'%.*s': id %zu differs", (int)text.size, text.data, i);
    }
    assert_int_equal(got.count, i);
    buffer bytes = {0};
    tokenizer_decode(t, got.ids, got.count, false, &bytes);
    assert_true(span_equal(span_make(bytes.data, bytes.size), decoded->text));
    buffer_deinit(&bytes);
    token_list_deinit(&got);
}

/* Each line of a file; where a case has ids of its own for a tokenizer without the configuration, those when asked. */
static int check_cases(const tokenizer *t, const char *path, bool without_config) {
    buffer file = read_or_fail(path);
    int count = 0;
    for (char *line = file.data, *end; (end = memchr(line, '\n', (size_t)(file.data + file.size - line)));
         line = end + 1) {
        arena *a = arena_create();
        const json *item = NULL;
        error err;
        assert_int_equal(json_parse(a, span_make(line, (size_t)(end - line)), JSON_DEPTH_DEFAULT, &item, &err), ERR_OK);
        bool own = without_config && json_get(item, "without_config");
        check_case(t, item, own ? "without_config" : "ids");
        arena_destroy(a);
        count++;
    }
    buffer_deinit(&file);
    return count;
}

static void test_golden_cases(void **state) {
    (void)state;
    tokenizer *t = open_or_fail(GOLDEN);
    assert_true(check_cases(t, GOLDEN "/cases.jsonl", false) > 30);
    tokenizer_close(t);
}

static void test_qwen_cases(void **state) {
    (void)state;
    const char *cases = test_need_shared("oracle/tokenizer_cases.jsonl"), *dir = qwen_tokenizer_dir();
    assert_non_null(dir);
    tokenizer *t = open_or_fail(dir);
    assert_int_equal(tokenizer_count(t), 248077);
    assert_true(check_cases(t, cases, false) > 150);
    tokenizer_close(t);

    buffer file = read_or_fail("build/qwen-tokenizer/tokenizer.json");
    tokenizer_files files = {.name = "tokenizer.json", .text = span_make(file.data, file.size)};
    error err;
    assert_int_equal(tokenizer_load(&files, &t, &err), ERR_OK);
    assert_int_equal(tokenizer_count(t), 248070);
    check_cases(t, cases, true);
    tokenizer_close(t);
    buffer_deinit(&file);
}

static void test_merges_as_strings(void **state) {
    (void)state;
    tokenizer *pairs = open_or_fail(GOLDEN), *strings = open_or_fail(GOLDEN "/strings");
    buffer text = read_or_fail(GOLDEN "/tokenizer.json"); /* any text without the configuration's tokens */
    token_list a = encode_or_fail(pairs, span_make(text.data, text.size));
    token_list b = encode_or_fail(strings, span_make(text.data, text.size));
    assert_true(a.count == b.count && a.count < text.size);
    assert_memory_equal(a.ids, b.ids, a.count * sizeof *a.ids);
    token_list_deinit(&a);
    token_list_deinit(&b);
    buffer_deinit(&text);
    tokenizer_close(pairs);
    tokenizer_close(strings);
}

/* ---- queries ---- */

static void test_queries(void **state) {
    (void)state;
    tokenizer *t = open_or_fail(GOLDEN);
    int32_t end = tokenizer_find(t, span_text("<|im_end|>")), think = tokenizer_find(t, span_text("<think>"));
    int32_t audio = tokenizer_find(t, span_text("<|audio|>")), the = tokenizer_find(t, span_text(" the"));
    assert_true(end >= 0 && think >= 0 && audio >= 0 && the >= 0);
    assert_true(tokenizer_is_special(t, end) && tokenizer_is_special(t, audio));
    assert_false(tokenizer_is_special(t, think) || tokenizer_is_special(t, the));
    assert_false(tokenizer_is_special(t, -1) || tokenizer_is_special(t, tokenizer_count(t)));
    assert_true(span_is(tokenizer_bytes(t, the), " the"));
    assert_true(span_is(tokenizer_bytes(t, think), "<think>"));
    assert_int_equal(tokenizer_bytes(t, -1).size, 0);
    assert_int_equal(tokenizer_bytes(t, tokenizer_count(t)).size, 0);
    assert_int_equal(tokenizer_find(t, span_text("<nothing>")), -1);
    assert_int_equal(tokenizer_find(t, span_text("")), -1);
    assert_int_equal(tokenizer_find(t, span_make("\xFF", 1)), t->merges.byte_ids[0xFF]);

    buffer all = {0}, plain = {0};
    const int32_t ids[] = {think, the, end, -5, 1 << 30};
    tokenizer_decode(t, ids, 5, false, &all);
    tokenizer_decode(t, ids, 5, true, &plain);
    assert_string_equal(all.data, "<think> the<|im_end|>");
    assert_string_equal(plain.data, "<think> the");
    buffer_deinit(&all);
    buffer_deinit(&plain);
    tokenizer_close(t);
}

static void test_added_tokens_as_text(void **state) {
    (void)state;
    tokenizer *t = open_or_fail(GOLDEN);
    token_list ids = {0};
    token_list_push(&ids, 7); /* encode appends */
    error err;
    assert_int_equal(tokenizer_encode(t, span_text("a<|im_end|>\n<think>"), false, &ids, &err), ERR_OK);
    assert_int_equal(ids.ids[0], 7);
    for (size_t i = 1; i < ids.count; i++) assert_null(added_tokens_get(&t->added, tokenizer_bytes(t, ids.ids[i])));
    buffer text = {0};
    tokenizer_decode(t, ids.ids + 1, ids.count - 1, false, &text);
    assert_string_equal(text.data, "a<|im_end|>\n<think>");
    buffer_deinit(&text);
    token_list_deinit(&ids);
    tokenizer_close(t);
}

/* ---- bytes that are no text ---- */

static void test_invalid_bytes_are_kept(void **state) {
    (void)state;
    static const struct {
        const char *text, *decoded;
    } cases[] = {
        {"\xFF", NULL},
        {"a\x80"
         "b",
         NULL},
        {"\xE4\xBD", NULL}, /* cut in the middle of a character */
        {"\xE4\xBD\xA0\xE5\xA5", NULL},
        {"\xED\xA0\x80", NULL}, /* a surrogate */
        {"\xC0\xAF\xF5\x80\x80\x80", NULL},
        {"\xFF<|im_end|>\xFE<|im_en\xC3", NULL},
        {"e\xFF\xCC\x81", NULL}, /* the accent does not reach over the bad byte */
        {"e\xCC\x81\xFF", "\xC3\xA9\xFF"},
    };
    tokenizer *t = open_or_fail(GOLDEN);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        token_list ids = encode_or_fail(t, span_text(cases[i].text));
        buffer text = {0};
        tokenizer_decode(t, ids.ids, ids.count, false, &text);
        assert_string_equal(text.data, cases[i].decoded ? cases[i].decoded : cases[i].text);
        buffer_deinit(&text);
        token_list_deinit(&ids);
    }
    token_list nul = encode_or_fail(t, span_make("\0a\0", 3));
    assert_int_equal(nul.count, 3);
    token_list_deinit(&nul);
    tokenizer_close(t);
}

/* ---- merging ---- */

/* The definition, with the merges as the file has them: find the merge of lowest rank anywhere, apply it leftmost. */
typedef struct plain_merges {
    arena *memory;
    buffer file;
    const json *list;
} plain_merges;

static plain_merges plain_open(void) {
    plain_merges p = {.memory = arena_create(), .file = read_or_fail(GOLDEN "/tokenizer.json")};
    const json *root = NULL;
    error err;
    assert_int_equal(json_parse(p.memory, span_make(p.file.data, p.file.size), JSON_DEPTH_DEFAULT, &root, &err),
                     ERR_OK);
    p.list = json_get(json_get(root, "model"), "merges");
    return p;
}

static size_t plain_merge(const plain_merges *p, span *parts, size_t count) {
    for (const json *m = p->list->first; m;) {
        size_t i = 0;
        span left = json_at(m, 0)->text, right = json_at(m, 1)->text;
        while (i + 1 < count && !(span_equal(parts[i], left) && span_equal(parts[i + 1], right))) i++;
        if (i + 1 >= count) {
            m = m->next;
            continue;
        }
        parts[i].size += parts[i + 1].size; /* neighbours in one text */
        memmove(&parts[i + 1], &parts[i + 2], (count - i - 2) * sizeof *parts);
        count--;
        m = p->list->first;
    }
    return count;
}

static void test_merging_against_definition(void **state) {
    (void)state;
    static const char letters[] = "abtheo=-";
    plain_merges plain = plain_open();
    tokenizer *t = open_or_fail(GOLDEN);
    bpe_scratch scratch = {0};
    token_list ids = {0};
    srand(3);
    for (int round = 0; round < 400; round++) {
        char text[130];
        span parts[130];
        size_t size = 1 + (size_t)rand() % (sizeof text - 1);
        size_t kinds = 1 + (size_t)rand() % (sizeof letters - 1);
        for (size_t i = 0; i < size; i++) {
            text[i] = letters[(size_t)rand() % kinds];
            parts[i] = span_make(text + i, 1);
        }
        size_t count = plain_merge(&plain, parts, size);
        ids.count = 0;
        bpe_encode_word(&t->merges, span_make(text, size), &scratch, &ids);
        assert_int_equal(ids.count, count);
        for (size_t i = 0; i < count; i++) assert_true(span_equal(tokenizer_bytes(t, ids.ids[i]), parts[i]));
    }
    token_list_deinit(&ids);
    bpe_scratch_deinit(&scratch);
    tokenizer_close(t);
    arena_destroy(plain.memory);
    buffer_deinit(&plain.file);
}

static void test_long_words_are_not_quadratic(void **state) {
    (void)state;
    tokenizer *t = open_or_fail(GOLDEN);
    static const char *const pieces[] = {"a", "ab", "=", "\xE4\xBD\xA0", "the", "<|im_end|", "\n", " "};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        buffer text = {0};
        while (text.size < 1 << 20) buffer_text(&text, pieces[i]);
        uint64_t start = clock_ns();
        token_list ids = encode_or_fail(t, span_make(text.data, text.size));
        assert_true(clock_ms_since(start) < 20000); /* a quarter of a second without sanitizers; hours if quadratic */
        buffer back = {0};
        tokenizer_decode(t, ids.ids, ids.count, false, &back);
        assert_true(back.size == text.size && memcmp(back.data, text.data, text.size) == 0);
        buffer_deinit(&back);
        buffer_deinit(&text);
        token_list_deinit(&ids);
    }
    tokenizer_close(t);
}

/* A listed token that no sequence of merges makes must not appear, though its bytes are a word of the text. */
static void test_unreachable_entry_is_not_used(void **state) {
    (void)state;
    buffer file = read_or_fail(GOLDEN "/tokenizer.json");
    ptrdiff_t at = span_find(span_make(file.data, file.size), span_text("\"vocab\":{"));
    assert_true(at > 0);
    size_t head = (size_t)at + strlen("\"vocab\":{");
    buffer changed = {0};
    buffer_append(&changed, file.data, head);
    buffer_text(&changed, "\"xyzzy\":400,");
    buffer_append(&changed, file.data + head, file.size - head);
    tokenizer_files files = {.name = "t", .text = span_make(changed.data, changed.size)};
    tokenizer *t = NULL;
    error err;
    assert_int_equal(tokenizer_load(&files, &t, &err), ERR_OK);
    assert_int_equal(tokenizer_find(t, span_text("xyzzy")), 400);
    assert_int_equal(tokenizer_bytes(t, 390).size, 0); /* a hole */
    token_list ids = encode_or_fail(t, span_text("xyzzy"));
    assert_int_equal(ids.count, 5);
    token_list_deinit(&ids);
    tokenizer_close(t);
    buffer_deinit(&changed);
    buffer_deinit(&file);
}

/* ---- threads ---- */

typedef struct shared_work {
    const tokenizer *t;
    span text;
    token_list ids;
} shared_work;

static void *encode_shared(void *argument) {
    shared_work *w = argument;
    tokenizer_encode(w->t, w->text, true, &w->ids, NULL);
    return NULL;
}

static void test_threads_share_a_tokenizer(void **state) {
    (void)state;
    enum { THREADS = 4 };
    tokenizer *t = open_or_fail(GOLDEN); /* fresh, so that they find the whole words out at once */
    buffer text = read_or_fail(GOLDEN "/make.py");
    shared_work work[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (shared_work){t, span_make(text.data, text.size), {0}};
        assert_int_equal(pthread_create(&threads[i], NULL, encode_shared, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(work[i].ids.count, work[0].ids.count);
        assert_memory_equal(work[i].ids.ids, work[0].ids.ids, work[0].ids.count * sizeof(int32_t));
    }
    for (int i = 0; i < THREADS; i++) token_list_deinit(&work[i].ids);
    buffer_deinit(&text);
    tokenizer_close(t);
}

/* ---- files that must be refused ---- */

/* The golden file with the first `from` replaced by `to`. */
static buffer altered(const char *from, const char *to) {
    buffer file = read_or_fail(GOLDEN "/tokenizer.json"), out = {0};
    ptrdiff_t at = span_find(span_make(file.data, file.size), span_text(from));
    if (at < 0) fail_msg("the golden tokenizer has no '%s'", from);
    size_t tail = (size_t)at + strlen(from);
    buffer_append(&out, file.data, (size_t)at);
    buffer_text(&out, to);
    buffer_append(&out, file.data + tail, file.size - tail);
    buffer_deinit(&file);
    return out;
}

static void check_refused(span text, const char *config, err_code code, const char *message) {
    tokenizer_files files = {"DIR/tokenizer.json", text, config ? "DIR/tokenizer_config.json" : NULL, {0}};
    if (config) files.config = span_text(config);
    tokenizer *t = NULL;
    error err = {0};
    err_code got = tokenizer_load(&files, &t, &err);
    if (got != code || !strstr(err.message, message))
        fail_msg("wanted %s '%s', got %s '%s'", error_name(code), message, error_name(got), err.message);
    assert_null(t);
    assert_non_null(strstr(err.message, "DIR/tokenizer"));
}

static void test_refused_files(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
        err_code code;
        const char *message;
    } cases[] = {
        {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", ERR_UNSUPPORTED, "model type 'Unigram'"},
        {"\"type\":\"BPE\"", "\"type\":7", ERR_UNSUPPORTED, "model type '(untyped)'"},
        {"\"dropout\":null", "\"dropout\":0.1", ERR_UNSUPPORTED, "'dropout' = 0.1"},
        {"\"unk_token\":null", "\"unk_token\":\"<unk>\"", ERR_UNSUPPORTED, "'unk_token' = \"<unk>\""},
        {"\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"", ERR_UNSUPPORTED,
         "subword_prefix"},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"", ERR_UNSUPPORTED, "end_of_word_suffix"},
        {"\"fuse_unk\":false", "\"fuse_unk\":true", ERR_UNSUPPORTED, "fuse_unk"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", ERR_UNSUPPORTED, "byte_fallback"},
        {"\"ignore_merges\":false", "\"ignore_merges\":true", ERR_UNSUPPORTED, "ignore_merges"},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":5}", ERR_UNSUPPORTED, "truncation"},
        {"\"padding\":null", "\"padding\":{}", ERR_UNSUPPORTED, "padding"},
        {"{\"type\":\"NFC\"}", "{\"type\":\"NFKC\"}", ERR_UNSUPPORTED, "normalizer 'NFKC'"},
        {"{\"type\":\"NFC\"}", "[]", ERR_UNSUPPORTED, "normalizer '(none)'"},
        {"\"type\":\"Sequence\"", "\"type\":\"Metaspace\"", ERR_UNSUPPORTED, "pre_tokenizer 'Metaspace'"},
        {"\"type\":\"Split\"", "\"type\":\"Digits\"", ERR_UNSUPPORTED, "pre_tokenizer 'Digits'"},
        {"\"Isolated\"", "\"Removed\"", ERR_UNSUPPORTED, "behavior"},
        {"\"invert\":false", "\"invert\":true", ERR_UNSUPPORTED, "invert"},
        {"\"Regex\":", "\"String\":", ERR_UNSUPPORTED, "pattern other than Regex"},
        {"|\\\\p{N}|", "|\\\\w|", ERR_UNSUPPORTED, "'\\w' at offset"},
        {"\"add_prefix_space\":false", "\"add_prefix_space\":true", ERR_UNSUPPORTED, "add_prefix_space"},
        {"\"use_regex\":false", "\"use_regex\":true", ERR_UNSUPPORTED, "use_regex after a Split"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}", ERR_UNSUPPORTED,
         "post_processor 'TemplateProcessing'"},
        {"\"decoder\":{", "\"decoder\":null,\"x\":{", ERR_UNSUPPORTED, "decoder '(none)'"},
        {"\"single_word\":false", "\"single_word\":true", ERR_UNSUPPORTED, "'<|endoftext|>': 'single_word'"},
        {"\"lstrip\":false", "\"lstrip\":true", ERR_UNSUPPORTED, "lstrip"},
        {"\"rstrip\":false", "\"rstrip\":true", ERR_UNSUPPORTED, "rstrip"},
        {"\"normalized\":false", "\"normalized\":true", ERR_UNSUPPORTED, "normalized"},
        {"\"content\":\"<think>\"", "\"content\":\"\"", ERR_FORMAT, "no 'content'"},
        {"\"content\":\"<think>\"", "\"content\":\"</think>\"", ERR_FORMAT, "'</think>' has two ids"},
        {"\"id\":345", "\"id\":344", ERR_FORMAT, "id 344 belongs to two added tokens"},
        {"\"id\":345", "\"id\":12", ERR_FORMAT, "id 12 belongs to two tokens"},
        {"\"id\":345", "\"id\":\"345\"", ERR_FORMAT, "not an integer"},
        {"\"id\":345", "\"id\":-1", ERR_LIMIT, "id -1 is not in 0..4194303"},
        {"\"id\":345", "\"id\":4294967296", ERR_LIMIT, "id 4294967296"},
        {"\"id\":345", "\"id\":345.0", ERR_FORMAT, "not an integer"},
        {"\"content\":\"<think>\"", "\"content\":\"ab\"", ERR_FORMAT, "added token 'ab' has id 349, but"},
        {"\"a\":64", "\"a\":65", ERR_FORMAT, "id 65 belongs to two tokens"},
        {"\"a\":64", "\"a\":2147483648", ERR_LIMIT, "'a': id 2147483648"},
        {"\"a\":64", "\"a\":6.4", ERR_FORMAT, "'a': its id is not an integer"},
        {"\"a\":64", "\"a\":null", ERR_FORMAT, "'a': its id is not an integer"},
        {"\"a\":64", "\"b\":900", ERR_FORMAT, "'b' has two ids"},
        {"\"a\":64", "\"\":64", ERR_FORMAT, "empty"},
        {"\"a\":64", "\"a b\":64", ERR_UNSUPPORTED, "'a b' (id 64) is not in the byte-level alphabet"},
        {"\"a\":64", "\"\xE4\xBD\xA0\":64", ERR_UNSUPPORTED, "is not in the byte-level alphabet"},
        {"\"!\":0", "\"!!!!\":0", ERR_FORMAT, "no token for byte 0x21"},
        {"\"vocab\":{", "\"vocab\":[],\"x\":{", ERR_FORMAT, "no object 'vocab'"},
        {"\"merges\":[", "\"merges\":{},\"x\":[", ERR_FORMAT, "no array 'merges'"},
        {"\"model\":{", "\"model\":[],\"x\":{", ERR_FORMAT, "no object 'model'"},
        {"\"added_tokens\":[", "\"added_tokens\":7,\"x\":[", ERR_FORMAT, "'added_tokens' is not an array"},
        {"\"merges\":[", "\"merges\":[[\"a\",\"zzz\"],", ERR_FORMAT, "merge 0: 'zzz' is not in the vocabulary"},
        {"\"merges\":[", "\"merges\":[[\"a\",\"z\"],", ERR_FORMAT, "merge 0: 'a' + 'z' is not in the vocabulary"},
        {"\"merges\":[", "\"merges\":[[\"a\"],", ERR_FORMAT, "merge 0 is neither"},
        {"\"merges\":[", "\"merges\":[\"ab\",", ERR_FORMAT, "merge 0 is neither"},
        {"\"merges\":[", "\"merges\":[\"a b c\",", ERR_FORMAT, "merge 0: 'b c' is not"},
        {"\"merges\":[", "\"merges\":[\" b\",", ERR_FORMAT, "merge 0: '' is not"},
        {"\"merges\":[", "\"merges\":[3,", ERR_FORMAT, "merge 0 is neither"},
        {"\"version\"", "version", ERR_FORMAT, "DIR/tokenizer.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer text = altered(cases[i].from, cases[i].to);
        check_refused(span_make(text.data, text.size), NULL, cases[i].code, cases[i].message);
        buffer_deinit(&text);
    }
    check_refused(span_text("[]"), NULL, ERR_FORMAT, "not a JSON object");
    check_refused(span_text("{}"), NULL, ERR_FORMAT, "no object 'model'");
    check_refused(span_text(""), NULL, ERR_FORMAT, "DIR/tokenizer.json");
}

static void test_refused_configs(void **state) {
    (void)state;
    static const struct {
        const char *config;
        err_code code;
        const char *message;
    } cases[] = {
        {"{\"added_tokens_decoder\":[]}", ERR_FORMAT, "'added_tokens_decoder' is not an object"},
        {"{\"added_tokens_decoder\":{\"x\":{\"content\":\"y\"}}}", ERR_FORMAT, "key 'x' is not an id"},
        {"{\"added_tokens_decoder\":{\"99999999999\":{\"content\":\"y\"}}}", ERR_LIMIT, "id 99999999999"},
        {"{\"added_tokens_decoder\":{\"500\":{\"content\":\"<think>\"}}}", ERR_FORMAT, "'<think>' has two ids"},
        {"{\"added_tokens_decoder\":{\"500\":7}}", ERR_FORMAT, "added token with id 500: no 'content'"},
        {"{\"added_tokens_decoder\":{\"0500\":{\"content\":\"y\"}}}", ERR_FORMAT, "key '0500' is not an id"},
        {"{", ERR_FORMAT, "tokenizer_config.json"},
    };
    buffer text = read_or_fail(GOLDEN "/tokenizer.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(span_make(text.data, text.size), cases[i].config, cases[i].code, cases[i].message);
    buffer_deinit(&text);
}

static void test_missing_file(void **state) {
    (void)state;
    tokenizer *t = NULL;
    error err;
    assert_int_not_equal(tokenizer_open("tests/golden", &t, &err), ERR_OK);
    assert_non_null(strstr(err.message, "tests/golden/tokenizer.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_cases),
        cmocka_unit_test(test_qwen_cases),
        cmocka_unit_test(test_merges_as_strings),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_added_tokens_as_text),
        cmocka_unit_test(test_invalid_bytes_are_kept),
        cmocka_unit_test(test_merging_against_definition),
        cmocka_unit_test(test_long_words_are_not_quadratic),
        cmocka_unit_test(test_unreachable_entry_is_not_used),
        cmocka_unit_test(test_threads_share_a_tokenizer),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_refused_configs),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
