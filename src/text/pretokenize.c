/* See pretokenize.h.
 *
 * What is translated: \s and \S. Oniguruma means the Unicode property White_Space; PCRE2's \s adds U+180E to it.
 *
 * What is refused, because the engines differ or may differ: \w \b \h \v and other letter escapes, ^ and $ (Ruby's
 * match at lines), class intersections and nested classes, properties other than general categories, possessive {n,m}+,
 * {,n}, comments, options other than (?i:, back references, verbs. */
#include "text/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Unlike the file formats' limits these bound work: a pattern is code from an untrusted file. The steps of one match
 * grow with the text, since a megabyte of blanks is a legal text that a good pattern needs two megasteps for. */
enum { PATTERN_SIZE_MAX = 8192, GROUP_DEPTH_MAX = 32, MATCH_HEAP_KIB_MAX = 65536 };
enum { MATCH_STEPS_BASE = 100000, MATCH_STEPS_PER_BYTE = 8 };

const char *const PRETOKENIZE_GPT2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct pretokenizer {
    pcre2_code *code; /* NULL: no pattern */
};

/* ---- translation ---- */

typedef struct translation {
    span pattern;
    size_t at;
    bool in_class;
    buffer *out;
} translation;

static err_code refuse(const translation *t, size_t size, error *err) {
    size_t left = t->pattern.size - t->at;
    ERR_FAIL(err, ERR_UNSUPPORTED, "pre-tokeniser pattern: '%.*s' at offset %zu is not supported",
             (int)(size < left ? size : left), t->pattern.data + t->at, t->at);
}

static bool next_is(const translation *t, size_t ahead, const char *text) {
    return t->at + ahead <= t->pattern.size &&
           span_starts(span_make(t->pattern.data + t->at + ahead, t->pattern.size - t->at - ahead), span_text(text));
}

static void copy(translation *t, size_t size) {
    buffer_append(t->out, t->pattern.data + t->at, size);
    t->at += size;
}

static bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* \p{L}, \P{Lu}: general categories only; scripts mean extensions in one engine and not in the other. */
static err_code translate_property(translation *t, error *err) {
    const char *p = t->pattern.data + t->at;
    size_t left = t->pattern.size - t->at;
    for (size_t size = 5; size <= 6 && size <= left; size++) {
        if (p[2] != '{' || p[size - 1] != '}') continue;
        if (!strchr("CLMNPSZ", p[3]) || (size == 6 && !strchr("cdefiklmnopstu", p[4]))) break;
        copy(t, size);
        return ERR_OK;
    }
    return refuse(t, 8, err);
}

static err_code translate_escape(translation *t, error *err) {
    if (t->at + 1 >= t->pattern.size) return refuse(t, 1, err);
    char c = t->pattern.data[t->at + 1];
    if (c == 's' || c == 'S') {
        buffer_text(t->out, c == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
        t->at += 2;
        return ERR_OK;
    }
    if (c == 'p' || c == 'P') return translate_property(t, err);
    bool same = c == 'r' || c == 'n' || c == 't' || c == 'f' || c == 'd' || c == 'D';
    if (!same && (is_alphanumeric(c) || (unsigned char)c >= 0x80)) return refuse(t, 2, err);
    copy(t, 2);
    return ERR_OK;
}

static err_code translate_in_class(translation *t, error *err) {
    char c = t->pattern.data[t->at];
    if (c == '[' || next_is(t, 0, "&&")) return refuse(t, 2, err);
    if (c == ']') t->in_class = false;
    copy(t, 1);
    return ERR_OK;
}

static err_code translate_group(translation *t, error *err) {
    static const char *const openings[] = {"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (next_is(t, 0, openings[i])) {
            copy(t, strlen(openings[i]));
            return ERR_OK;
        }
    if (next_is(t, 1, "?") || next_is(t, 1, "*")) return refuse(t, 4, err);
    copy(t, 1);
    return ERR_OK;
}

static err_code translate_outside(translation *t, error *err) {
    char c = t->pattern.data[t->at];
    if (c == '(') return translate_group(t, err);
    if (c == '^' || c == '$' || next_is(t, 0, "}+") || next_is(t, 0, "{,")) return refuse(t, 2, err);
    if (c == '[') {
        t->in_class = true;
        copy(t, next_is(t, 1, "^") ? 2 : 1);
        if (next_is(t, 0, "]")) return refuse(t, 1, err); /* an empty class in one engine, a literal in the other */
        return ERR_OK;
    }
    copy(t, 1);
    return ERR_OK;
}

static err_code translate(span pattern, buffer *out, error *err) {
    translation t = {.pattern = pattern, .out = out};
    if (pattern.size > PATTERN_SIZE_MAX)
        ERR_FAIL(err, ERR_LIMIT, "pre-tokeniser pattern: %zu bytes, limit %d", pattern.size, PATTERN_SIZE_MAX);
    while (t.at < pattern.size) {
        if (pattern.data[t.at] == '\\')
            ERR_TRY(translate_escape(&t, err));
        else if (t.in_class)
            ERR_TRY(translate_in_class(&t, err));
        else
            ERR_TRY(translate_outside(&t, err));
    }
    return ERR_OK;
}

/* ---- compiling ---- */

static err_code compile(pretokenizer *p, span pattern, error *err) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    HEARTH_ASSERT(context);
    pcre2_set_parens_nest_limit(context, GROUP_DEPTH_MAX);
    int code = 0;
    size_t offset = 0;
    p->code = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                            &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!p->code) {
        char message[128];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        ERR_FAIL(err, ERR_FORMAT, "pre-tokeniser pattern: %s near offset %zu", message, offset);
    }
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* where there is no JIT, matching is interpreted: slow, the same */
    return ERR_OK;
}

err_code pretokenizer_create(span pattern, pretokenizer **out, error *err) {
    pretokenizer *p = mem_zero(1, sizeof *p);
    buffer translated = {0};
    err_code code = translate(pattern, &translated, err);
    if (code == ERR_OK && pattern.size) code = compile(p, span_make(translated.data, translated.size), err);
    buffer_deinit(&translated);
    if (code != ERR_OK) {
        pretokenizer_destroy(p);
        return code;
    }
    *out = p;
    return ERR_OK;
}

void pretokenizer_destroy(pretokenizer *p) {
    if (!p) return;
    pcre2_code_free(p->code);
    free(p);
}

/* ---- matching ---- */

void pretoken_cursor_init(pretoken_cursor *c, const pretokenizer *rules) {
    *c = (pretoken_cursor){.rules = rules};
    if (!rules->code) return;
    c->match = pcre2_match_data_create(1, NULL);
    c->limits = pcre2_match_context_create(NULL);
    HEARTH_ASSERT(c->match && c->limits);
    pcre2_set_heap_limit(c->limits, MATCH_HEAP_KIB_MAX);
}

void pretoken_cursor_deinit(pretoken_cursor *c) {
    pcre2_match_data_free(c->match);
    pcre2_match_context_free(c->limits);
    *c = (pretoken_cursor){0};
}

void pretoken_begin(pretoken_cursor *c, span text) {
    c->text = text;
    c->at = c->match_start = c->match_end = 0;
    if (!c->limits) return;
    uint64_t steps = MATCH_STEPS_BASE + (uint64_t)text.size * MATCH_STEPS_PER_BYTE;
    pcre2_set_match_limit(c->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
}

static size_t character_size(span text, size_t at) {
    uint32_t unused;
    int size = utf8_decode(text.data + at, text.size - at, &unused);
    HEARTH_ASSERT(size > 0);
    return (size_t)size;
}

/* The next match from `from` on into match_start, match_end; both the end of the text when there is none. An empty
 * match cuts the text where it is, but not at the end of the match before it. */
static err_code find_match(pretoken_cursor *c, size_t from, error *err) {
    size_t last_end = c->match_end;
    for (;;) {
        int found = pcre2_match(c->rules->code, (PCRE2_SPTR)c->text.data, c->text.size, from, PCRE2_NO_UTF_CHECK,
                                c->match, c->limits);
        if (found == PCRE2_ERROR_NOMATCH) {
            c->match_start = c->match_end = c->text.size;
            return ERR_OK;
        }
        if (found < 0) {
            char message[128];
            pcre2_get_error_message(found, (PCRE2_UCHAR *)message, sizeof message);
            ERR_FAIL(err, ERR_LIMIT, "pre-tokeniser pattern at byte %zu: %s", from, message);
        }
        const size_t *ends = pcre2_get_ovector_pointer(c->match);
        c->match_start = ends[0];
        c->match_end = ends[1];
        if (ends[1] > last_end || ends[1] == c->text.size) return ERR_OK;
        from = ends[1] + character_size(c->text, ends[1]);
        if (from >= c->text.size) {
            c->match_start = c->match_end = c->text.size;
            return ERR_OK;
        }
    }
}

err_code pretoken_next(pretoken_cursor *c, span *piece, error *err) {
    if (!c->rules->code) c->match_start = c->match_end = c->text.size;
    if (c->at == c->match_end && c->at < c->text.size) ERR_TRY(find_match(c, c->at, err));
    size_t end = c->at < c->match_start ? c->match_start : c->match_end;
    *piece = span_make(c->text.data + c->at, end - c->at);
    c->at = end;
    return ERR_OK;
}
