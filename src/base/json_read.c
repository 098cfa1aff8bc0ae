/* The JSON reader: text to tree, strict RFC 8259; see json.h.
 *
 * One loop reads a value, then climbs out of the containers that end after it. A string is read twice: the first pass
 * checks everything (escapes, surrogate pairs, UTF-8, control characters) and finds the end; the second, which only
 * strings with escapes need, decodes into the arena and can trust its input. Most strings need no second pass and stay
 * where they are in the source. Escapes never make text longer, so the source length is room enough. */
#include "base/json.h"
#include "base/json_inner.h"
#include "base/utf8.h"

typedef struct reader {
    arena *memory;
    const char *start, *at, *end;
    size_t depth_max;
    json_stack open; /* containers around `at`, innermost last */
} reader;

#define FAIL_AT(r, place, err, format, ...) \
    ERR_FAIL(err, ERR_FORMAT, "byte %zu: " format, (size_t)((place) - (r)->start), ##__VA_ARGS__)

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static bool accept(reader *r, char c) {
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* Strings. */

/* The number in four hexadecimal digits, or -1. */
static int hex4(const char *p, const char *end) {
    if (end - p < 4) return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);
        if (is_digit(c))
            value = value << 4 | (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static bool is_high_surrogate(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
static bool is_low_surrogate(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/* *at is a backslash; moves it past the escape. */
static err_code check_escape(const reader *r, const char **at, error *err) {
    const char *p = *at;
    if (r->end - p < 2) FAIL_AT(r, r->at, err, "string is not closed");
    if (p[1] != 'u') {
        if (!p[1] || !strchr("\"\\/bfnrt", p[1])) FAIL_AT(r, p, err, "unknown escape in a string");
        *at = p + 2;
        return ERR_OK;
    }
    int unit = hex4(p + 2, r->end);
    if (unit < 0) FAIL_AT(r, p, err, "\\u needs four hexadecimal digits");
    *at = p + 6;
    if (is_high_surrogate(unit) && r->end - p >= 12 && p[6] == '\\' && p[7] == 'u' &&
        is_low_surrogate(hex4(p + 8, r->end)))
        *at = p + 12;
    else if (is_high_surrogate(unit) || is_low_surrogate(unit))
        FAIL_AT(r, p, err, "lone surrogate \\u%04x", (unsigned)unit);
    return ERR_OK;
}

/* Checks the string whose opening quote is at r->at. */
static err_code check_string(const reader *r, const char **close, bool *escaped, error *err) {
    *escaped = false;
    for (const char *p = r->at + 1;;) {
        p = json_scan_plain(p, r->end, JSON_HIGH_STOP);
        if (p == r->end) FAIL_AT(r, r->at, err, "string is not closed");
        unsigned char c = (unsigned char)*p;
        if (c == '"') {
            *close = p;
            return ERR_OK;
        }
        if (c == '\\') {
            *escaped = true;
            ERR_TRY(check_escape(r, &p, err));
        } else if (c >= 0x80) {
            uint32_t code_point;
            int length = utf8_decode(p, (size_t)(r->end - p), &code_point);
            if (!length) FAIL_AT(r, p, err, "invalid UTF-8 in a string");
            p += length;
        } else {
            FAIL_AT(r, p, err, "control character 0x%02x in a string", c);
        }
    }
}

/* Decodes the checked escape at p into *out, moving *out; returns the byte after it. */
static const char *decode_escape(const char *p, const char *close, char **out) {
    static const char decoded[] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    if (p[1] != 'u') {
        *(*out)++ = decoded[(unsigned char)p[1]];
        return p + 2;
    }
    int unit = hex4(p + 2, close);
    uint32_t code_point = (uint32_t)unit;
    p += 6;
    if (is_high_surrogate(unit)) {
        code_point = 0x10000 + ((uint32_t)(unit - 0xD800) << 10) + (uint32_t)(hex4(p + 2, close) - 0xDC00);
        p += 6;
    }
    char bytes[4];
    int length = utf8_encode(code_point, bytes);
    memcpy(*out, bytes, (size_t)length);
    *out += length;
    return p;
}

static span decode_string(arena *memory, const char *p, const char *close) {
    char *text = arena_alloc(memory, (size_t)(close - p)), *out = text;
    while (p < close) {
        const char *backslash = memchr(p, '\\', (size_t)(close - p));
        size_t plain = (size_t)((backslash ? backslash : close) - p);
        memcpy(out, p, plain);
        out += plain;
        p += plain;
        if (backslash) p = decode_escape(p, close, &out);
    }
    return span_make(text, (size_t)(out - text));
}

static err_code read_string(reader *r, span *out, error *err) {
    const char *close;
    bool escaped;
    ERR_TRY(check_string(r, &close, &escaped, err));
    const char *first = r->at + 1;
    *out = escaped ? decode_string(r->memory, first, close) : span_make(first, (size_t)(close - first));
    r->at = close + 1;
    return ERR_OK;
}

/* Numbers and literals. */

static err_code read_digits(reader *r, error *err) {
    const char *first = r->at;
    while (r->at < r->end && is_digit(*r->at)) r->at++;
    if (r->at == first) FAIL_AT(r, first, err, "expected a digit");
    return ERR_OK;
}

static err_code read_number(reader *r, span *out, error *err) {
    const char *first = r->at;
    accept(r, '-');
    const char *integer = r->at;
    ERR_TRY(read_digits(r, err));
    if (*integer == '0' && r->at - integer > 1) FAIL_AT(r, integer, err, "number starts with a zero");
    if (accept(r, '.')) ERR_TRY(read_digits(r, err));
    if (accept(r, 'e') || accept(r, 'E')) {
        if (!accept(r, '+')) accept(r, '-');
        ERR_TRY(read_digits(r, err));
    }
    *out = span_make(first, (size_t)(r->at - first));
    return ERR_OK;
}

static err_code read_literal(reader *r, const char *word, error *err) {
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0) FAIL_AT(r, r->at, err, "expected a value");
    r->at += size;
    return ERR_OK;
}

/* Structure. */

static err_code fail_here(const reader *r, const char *expected, error *err) {
    if (r->at == r->end) FAIL_AT(r, r->at, err, "text ends, expected %s", expected);
    FAIL_AT(r, r->at, err, "expected %s", expected);
}

static err_code read_key(reader *r, span *key, error *err) {
    skip_space(r);
    if (r->at == r->end || *r->at != '"') return fail_here(r, "'\"' to begin a key", err);
    ERR_TRY(read_string(r, key, err));
    skip_space(r);
    if (!accept(r, ':')) return fail_here(r, "':'", err);
    return ERR_OK;
}

static err_code open_container(reader *r, json *value, error *err) {
    if (r->open.count >= r->depth_max)
        ERR_FAIL(err, ERR_LIMIT, "byte %zu: nesting depth %zu exceeds the limit %zu", (size_t)(r->at - r->start),
                 r->open.count + 1, r->depth_max);
    json_push(&r->open, NULL, value);
    r->at++;
    return ERR_OK;
}

/* Reads a scalar whole, of a container only the opening bracket. */
static err_code read_value(reader *r, json *value, error *err) {
    if (r->at == r->end) return fail_here(r, "a value", err);
    value->source.data = r->at;
    switch (*r->at) {
        case '{':
            value->type = JSON_OBJECT;
            return open_container(r, value, err);
        case '[':
            value->type = JSON_ARRAY;
            return open_container(r, value, err);
        case '"':
            value->type = JSON_STRING;
            ERR_TRY(read_string(r, &value->text, err));
            break;
        case 'n':
            value->type = JSON_NULL;
            ERR_TRY(read_literal(r, "null", err));
            break;
        case 't':
            value->type = JSON_TRUE;
            ERR_TRY(read_literal(r, "true", err));
            break;
        case 'f':
            value->type = JSON_FALSE;
            ERR_TRY(read_literal(r, "false", err));
            break;
        default:
            if (*r->at != '-' && !is_digit(*r->at)) return fail_here(r, "a value", err);
            value->type = JSON_NUMBER;
            ERR_TRY(read_number(r, &value->text, err));
    }
    value->source.size = (size_t)(r->at - value->source.data);
    return ERR_OK;
}

/* Climbs out of the containers that end at r->at. *more: the innermost one left goes on with another value. */
static err_code close_containers(reader *r, bool after_value, bool *more, error *err) {
    for (; r->open.count; after_value = true) {
        json *container = json_top(&r->open).to;
        bool object = container->type == JSON_OBJECT;
        skip_space(r);
        if (!accept(r, object ? '}' : ']')) {
            *more = true;
            if (!after_value || accept(r, ',')) return ERR_OK;
            return fail_here(r, object ? "',' or '}'" : "',' or ']'", err);
        }
        container->source.size = (size_t)(r->at - container->source.data);
        r->open.count--;
    }
    *more = false;
    return ERR_OK;
}

static err_code read_document(reader *r, const json **out, error *err) {
    json *root = NULL;
    for (bool more = true; more;) {
        json *parent = r->open.count ? json_top(&r->open).to : NULL;
        json *value = json_new(r->memory, JSON_NULL);
        if (json_is(parent, JSON_OBJECT)) {
            span key;
            ERR_TRY(read_key(r, &key, err));
            json_set(parent, key, value);
        } else if (parent) {
            json_append(parent, value);
        } else {
            root = value;
        }
        skip_space(r);
        ERR_TRY(read_value(r, value, err));
        ERR_TRY(close_containers(r, !json_is_container(value), &more, err));
    }
    skip_space(r);
    if (r->at != r->end) FAIL_AT(r, r->at, err, "text after the value");
    *out = root;
    return ERR_OK;
}

err_code json_parse(arena *a, span text, int depth_max, const json **out, error *err) {
    HEARTH_ASSERT(depth_max >= 0);
    if (text.size > UINT32_MAX)
        ERR_FAIL(err, ERR_LIMIT, "JSON text of %zu bytes exceeds the limit %zu", text.size, (size_t)UINT32_MAX);
    if (!text.data) text.data = "";
    reader r = {a, text.data, text.data, text.data + text.size, (size_t)depth_max, {0}};
    err_code code = read_document(&r, out, err);
    free(r.open.frames);
    return code;
}
