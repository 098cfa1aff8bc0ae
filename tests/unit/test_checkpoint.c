/* Safetensors files and checkpoint directories: good ones, and every way a header can lie. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/checkpoint.h"
#include "format/safetensors.h"
#include "support.h"

/* A file image: header length, header, data_size bytes of data. */
static buffer image(const char *header, size_t data_size) {
    buffer b = {0};
    uint64_t size = strlen(header);
    for (int i = 0; i < 8; i++) buffer_char(&b, (char)(size >> (8 * i)));
    buffer_text(&b, header);
    for (size_t i = 0; i < data_size; i++) buffer_char(&b, (char)i);
    return b;
}

typedef struct parsed {
    arena *names;
    tensor_list list;
    error err;
    err_code code;
} parsed;

static parsed parse(buffer b) {
    parsed p = {.names = arena_create()};
    p.code = safetensors_parse(p.names, "x.safetensors", span_make(b.data, b.size), &p.list, &p.err);
    return p;
}

static void parsed_free(parsed *p) {
    free(p->list.items);
    arena_destroy(p->names);
}

static void test_parse(void **state) {
    (void)state;
    buffer b = image(
        "{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"a\\u0041\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
        "\"empty\":{\"shape\":[0,7],\"dtype\":\"I64\",\"data_offsets\":[8,8]}}  ",
        16);
    parsed p = parse(b);
    assert_int_equal(p.code, ERR_OK);
    assert_int_equal(p.list.count, 3);
    const tensor *t = p.list.items;
    assert_string_equal(t[0].name, "b");
    assert_int_equal(t[0].type, DTYPE_BF16);
    assert_int_equal(t[0].rank, 2);
    assert_int_equal(t[0].shape[1], 3);
    assert_int_equal(t[0].count, 6);
    assert_int_equal(t[0].bytes, 12);
    assert_int_equal(t[0].offset, b.size - 12);
    assert_ptr_equal(t[0].data, b.data + b.size - 12);
    assert_string_equal(t[0].file, "x.safetensors");
    assert_string_equal(t[1].name, "aA");
    assert_int_equal(t[1].rank, 0);
    assert_int_equal(t[1].count, 1);
    assert_int_equal(t[2].count, 0);
    parsed_free(&p);
    buffer_deinit(&b);
}

#define ENTRY(fields) "{\"t\":{" fields "}}"
#define F32_2 "\"dtype\":\"F32\",\"shape\":[2]"

static void test_bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *message; /* must be part of the error */
    } cases[] = {
        {"", 0, "header"},
        {"[]", 0, "not an object"},
        {"{", 0, "header (from byte 8)"},
        {"{\"t\":1}", 0, "'t': not an object (byte 13)"},
        {"{\"\":{}}", 0, "empty tensor name"},
        {"{\"a\\u0000b\":{}}", 0, "NUL"},
        {ENTRY("\"shape\":[2],\"data_offsets\":[0,8]"), 8, "'t': no dtype"},
        {ENTRY("\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,8]"), 8, "dtype 'F4' is not known"},
        {ENTRY("\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]"), 8, "no dtype"},
        {ENTRY("\"dtype\":\"F32\",\"data_offsets\":[0,8]"), 8, "no shape"},
        {ENTRY("\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]"), 8, "dimension 0"},
        {ENTRY("\"dtype\":\"F32\",\"shape\":[2,1.5],\"data_offsets\":[0,8]"), 8, "dimension 1"},
        {ENTRY("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]"), 8, "9 dimensions"},
        {ENTRY("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]"), 8, "shape overflows"},
        {ENTRY("\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,8]"), 8, "size overflows"},
        {ENTRY("\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]"), 8, "dimension 0"},
        {ENTRY(F32_2), 8, "data_offsets"},
        {ENTRY(F32_2 ",\"data_offsets\":[0]"), 8, "data_offsets"},
        {ENTRY(F32_2 ",\"data_offsets\":[8,0]"), 8, "data_offsets"},
        {ENTRY(F32_2 ",\"data_offsets\":[-8,0]"), 8, "data_offsets"},
        {ENTRY(F32_2 ",\"data_offsets\":[0,8]"), 7, "past the end of the file"},
        {ENTRY(F32_2 ",\"data_offsets\":[9223372036854775799,9223372036854775807]"), 8, "past the end"},
        {ENTRY(F32_2 ",\"data_offsets\":[0,7]"), 8, "2 elements of F32 need 8 bytes, data_offsets give 7"},
        {"{\"a\":{" F32_2 ",\"data_offsets\":[0,8]},\"b\":{" F32_2 ",\"data_offsets\":[4,12]}}", 12,
         "'a' and 'b' overlap"},
        {"{\"a\":{" F32_2 ",\"data_offsets\":[0,8]},\"a\":{" F32_2 ",\"data_offsets\":[8,16]}}", 16, "appears twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer b = image(cases[i].header, cases[i].data);
        parsed p = parse(b);
        assert_int_not_equal(p.code, ERR_OK);
        if (!strstr(p.err.message, cases[i].message) || !strstr(p.err.message, "x.safetensors"))
            fail_msg("'%s' gives '%s', without '%s'", cases[i].header, p.err.message, cases[i].message);
        parsed_free(&p);
        buffer_deinit(&b);
    }
}

static void test_bad_sizes(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } cases[] = {
        {"", 0, "0 bytes are too few"},
        {"\2\0\0\0\0\0\0", 7, "7 bytes are too few"},
        {"\3\0\0\0\0\0\0\0{}", 10, "header of 3 bytes in a file of 10"},
        {"\0\0\0\0\0\0\0\x80{}", 10, "the limit is"},
        {"\1\0\x40\6\0\0\0\0{}", 10, "the limit is 104857600"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parsed p = parse((buffer){.data = (char *)(uintptr_t)cases[i].bytes, .size = cases[i].size});
        assert_int_not_equal(p.code, ERR_OK);
        if (!strstr(p.err.message, cases[i].message)) fail_msg("case %zu gives '%s'", i, p.err.message);
        parsed_free(&p);
    }
}

/* Any cut and any changed byte of a good file: an error or a list that stays inside the bytes. */
static void test_mutations(void **state) {
    (void)state;
    buffer good = image("{\"a\":{" F32_2 ",\"data_offsets\":[0,8]},\"b\":{" F32_2 ",\"data_offsets\":[8,16]}}", 16);
    for (size_t i = 0; i < good.size; i++) {
        for (int x = 0; x < 6; x++) {
            static const uint8_t masks[] = {0, 1, 2, 16, 0x80, 0xff};
            size_t size = x ? good.size : i;
            char *copy = mem_alloc(size); /* exactly as large, for AddressSanitizer */
            memcpy(copy, good.data, size);
            if (x) copy[i] = (char)((uint8_t)copy[i] ^ masks[x]);
            parsed p = parse((buffer){.data = copy, .size = size});
            if (!x) assert_int_not_equal(p.code, ERR_OK);
            for (size_t k = 0; !p.code && k < p.list.count; k++)
                assert_true(p.list.items[k].offset + p.list.items[k].bytes <= size);
            parsed_free(&p);
            free(copy);
        }
    }
    buffer_deinit(&good);
}

static void test_half_precision(void **state) {
    (void)state;
    static const struct {
        uint16_t h;
        float f;
    } exact[] = {{0, 0.0f},          {0x3c00, 1.0f},     {0xc000, -2.0f},        {0x7bff, 65504.0f},
                 {0x0400, 0x1p-14f}, {0x0001, 0x1p-24f}, {0x03ff, 0x1.ff8p-15f}, {0x3555, 0x1.554p-2f}};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        assert_true(f16_to_f32(exact[i].h) == exact[i].f);
        assert_int_equal(f32_to_f16(exact[i].f), exact[i].h);
    }
    for (uint32_t h = 0; h < 65536; h++) { /* every finite number survives the way there and back */
        if ((h & 0x7c00) == 0x7c00 && (h & 0x3ff)) {
            assert_true((f32_to_f16(f16_to_f32((uint16_t)h)) & 0x7fff) > 0x7c00);
            continue;
        }
        assert_int_equal(f32_to_f16(f16_to_f32((uint16_t)h)), h);
    }
    assert_int_equal(f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(f32_to_f16(0x1p-25f), 0);   /* a tie: to even */
    assert_int_equal(f32_to_f16(0x1.8p-24f), 2); /* a tie: to even */
    assert_int_equal(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(f32_to_f16(1.0f + 0x1.8p-10f), 0x3c02);
    assert_int_equal(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
    assert_int_equal(f32_to_bf16(1.0f + 0x1.8p-7f), 0x3f82);
}

/* ---- directories */

static void put(const char *dir, const char *name, const char *text, size_t size) {
    error err;
    char *path = file_join(dir, name);
    if (file_make_dirs(dir, &err) || file_write_atomic(path, span_make(text, size), &err)) fail_msg("%s", err.message);
    free(path);
}

static void put_shard(const char *dir, const char *name, const char *header, size_t data) {
    buffer b = image(header, data);
    put(dir, name, b.data, b.size);
    buffer_deinit(&b);
}

#define ONE(name) "{\"" name "\":{" F32_2 ",\"data_offsets\":[0,8]}}"
#define INDEX "model.safetensors.index.json"

static void test_single(void **state) {
    (void)state;
    error err;
    checkpoint *c;
    const char *dir = test_temp("single");
    put_shard(dir, "model.safetensors",
              "{\"b\":{" F32_2 ",\"data_offsets\":[0,8]},\"a\":{" F32_2 ",\"data_offsets\":[8,16]}}", 16);
    assert_int_equal(checkpoint_open(dir, &c, &err), ERR_OK);
    assert_int_equal(checkpoint_count(c), 2);
    assert_string_equal(checkpoint_at(c, 0)->name, "a");
    assert_ptr_equal(checkpoint_find(c, "b"), checkpoint_at(c, 1));
    assert_null(checkpoint_find(c, "c"));
    assert_null(checkpoint_find(c, ""));
    assert_int_equal(*(const uint8_t *)checkpoint_find(c, "a")->data, 8);
    checkpoint_close(c);
}

static void test_shards(void **state) {
    (void)state;
    error err;
    checkpoint *c;
    const char *dir = test_temp("shards");
    const char *index = "{\"metadata\":{},\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\",\"c\":\"1.st\"}}";
    put_shard(dir, "1.st", "{\"c\":{" F32_2 ",\"data_offsets\":[0,8]},\"a\":{" F32_2 ",\"data_offsets\":[8,16]}}", 16);
    put_shard(dir, "2.st", ONE("b"), 8);
    put(dir, INDEX, index, strlen(index));
    assert_int_equal(checkpoint_open(dir, &c, &err), ERR_OK);
    assert_int_equal(checkpoint_count(c), 3);
    assert_string_equal(checkpoint_find(c, "b")->file, "2.st");
    assert_string_equal(checkpoint_find(c, "c")->file, "1.st");
    checkpoint_close(c);
}

static void test_bad_directories(void **state) {
    (void)state;
    static const struct {
        const char *name, *index, *shard2, *message;
    } cases[] = {
        {"none", NULL, NULL, "neither model.safetensors nor"},
        {"json", "{\"weight_map\":", NULL, INDEX},
        {"nomap", "{\"metadata\":{}}", NULL, "no weight_map"},
        {"number", "{\"weight_map\":{\"a\":3}}", NULL, "tensor 'a': not the name of a file"},
        {"escape", "{\"weight_map\":{\"a\":\"../1.st\"}}", NULL, "tensor 'a': not the name of a file"},
        {"dots", "{\"weight_map\":{\"a\":\"..\"}}", NULL, "tensor 'a': not the name of a file"},
        {"absent", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\"}}", NULL, "2.st"},
        {"lacks", "{\"weight_map\":{\"a\":\"1.st\",\"z\":\"1.st\"}}", NULL, "tensor 'z' is not in 1.st"},
        {"wrong", "{\"weight_map\":{\"a\":\"2.st\",\"b\":\"1.st\"}}", ONE("b"),
         "tensor 'a' is not in 2.st but in 1.st"},
        {"twice", "{\"weight_map\":{\"a\":\"1.st\",\"b\":\"2.st\"}}", ONE("a"), "tensor 'a' is in two shards"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err;
        checkpoint *c = NULL;
        const char *dir = test_temp(cases[i].name);
        put_shard(dir, "1.st", ONE("a"), 8);
        if (cases[i].shard2) put_shard(dir, "2.st", cases[i].shard2, 8);
        if (cases[i].index) put(dir, INDEX, cases[i].index, strlen(cases[i].index));
        assert_int_not_equal(checkpoint_open(dir, &c, &err), ERR_OK);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s gives '%s', without '%s'", cases[i].name, err.message, cases[i].message);
    }
}

static void test_published(void **state) {
    (void)state;
    error err;
    checkpoint *c;
    if (checkpoint_open(test_need_shared("oracle/ckpt/tiny-b"), &c, &err)) fail_msg("%s", err.message);
    const tensor *t = checkpoint_find(c, "model.language_model.embed_tokens.weight");
    assert_non_null(t);
    assert_int_equal(t->shape[0], 640);
    assert_int_equal(t->shape[1], 128);
    for (int i = 1; i < checkpoint_count(c); i++)
        assert_true(strcmp(checkpoint_at(c, i - 1)->name, checkpoint_at(c, i)->name) < 0);
    checkpoint_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),     cmocka_unit_test(test_bad_headers),     cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_mutations), cmocka_unit_test(test_half_precision),  cmocka_unit_test(test_single),
        cmocka_unit_test(test_shards),    cmocka_unit_test(test_bad_directories), cmocka_unit_test(test_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
