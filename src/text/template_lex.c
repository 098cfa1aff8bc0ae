/* Template source to tokens, with the whitespace rules of trim_blocks and lstrip_blocks.
 *
 * Text between tags is T_DATA. The rules, in the order in which they are applied to the text before a tag:
 * - `{%-`, `{{-`, `{#-` strip all whitespace before the tag;
 * - else, unless `{%+`, a block or comment tag that stands alone at the start of its line (only blanks before it) takes
 *   those blanks away (lstrip_blocks);
 * and to the text after it: `-%}` strips all whitespace, else, unless `+%}`, a block or comment end takes one newline
 * (trim_blocks). Whitespace is Python's. A tag's end is not looked for inside brackets, so `{{ {'a': {}} }}` works. */
#include <string.h>

#include "base/utf8.h"
#include "text/template_internal.h"

typedef struct lexer {
    arena *memory;
    const char *name;
    span source;
    size_t at;
    size_t line_start;
    uint32_t line;
    bool line_starting; /* the last tag ended with a newline */
    token *tokens;
    size_t count, capacity;
    error *err;
} lexer;

#define ERR_FAIL_AT(l, code, format, ...)                                                                            \
    ERR_FAIL((l)->err, (code), "%s:%u:%u: " format, (l)->name, (l)->line, (unsigned)((l)->at - (l)->line_start) + 1, \
             ##__VA_ARGS__)

static token *push(lexer *l, token_type type) {
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 256;
        token *bigger = arena_alloc(l->memory, capacity * sizeof *bigger);
        if (l->count) memcpy(bigger, l->tokens, l->count * sizeof *bigger);
        l->tokens = bigger;
        l->capacity = capacity;
    }
    token *t = &l->tokens[l->count++];
    *t = (token){.type = (uint8_t)type, .line = l->line, .column = (uint32_t)(l->at - l->line_start) + 1};
    return t;
}

static bool at_text(const lexer *l, size_t at, const char *text) {
    size_t n = strlen(text);
    return l->source.size - at >= n && memcmp(l->source.data + at, text, n) == 0;
}

static void advance_to(lexer *l, size_t end) {
    for (; l->at < end; l->at++)
        if (l->source.data[l->at] == '\n') {
            l->line++;
            l->line_start = l->at + 1;
        }
}

static size_t skip_space(const lexer *l, size_t at) {
    uint32_t c;
    while (at < l->source.size) {
        int n = utf8_decode(l->source.data + at, l->source.size - at, &c);
        if (n == 0 || !char_is_space(c)) break;
        at += (size_t)n;
    }
    return at;
}

/* Ends a tag whose closing text ends at `at`. */
static void finish_tag(lexer *l, size_t at, char sign, bool trims_newline) {
    if (sign == '-')
        at = skip_space(l, at);
    else if (sign != '+' && trims_newline && at < l->source.size && l->source.data[at] == '\n')
        at++;
    advance_to(l, at);
    l->line_starting = l->source.data[at - 1] == '\n';
}

/* The text [l->at, end) before a tag; sign is the character after the tag's opening. */
static void push_data(lexer *l, size_t end, char sign, bool is_variable) {
    span text = span_make(l->source.data + l->at, end - l->at);
    if (sign == '-') {
        text = text_strip(text, false, true, NULL);
    } else if (sign != '+' && !is_variable) {
        const char *newline = text.size ? memrchr(text.data, '\n', text.size) : NULL;
        size_t from = newline ? (size_t)(newline - text.data) + 1 : 0;
        if ((from > 0 || l->line_starting) &&
            text_strip(span_make(text.data + from, text.size - from), true, false, NULL).size == 0)
            text.size = from;
    }
    if (text.size) push(l, T_DATA)->text = text;
    advance_to(l, end);
}

/* ---- inside tags */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* \xHH, \uHHHH, \UHHHHHHHH at s[*i] (the letter); false when malformed or not a character. */
static bool unescape_hex(span s, size_t *i, int digits, char out[4], int *size) {
    uint32_t c = 0;
    for (int k = 0; k < digits; k++) {
        int d = *i + 1 < s.size ? hex_digit(s.data[*i + 1]) : -1;
        if (d < 0 || c > 0x10ffff) return false;
        c = c * 16 + (uint32_t)d;
        ++*i;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return false;
    *size = utf8_encode(c, out);
    return true;
}

static int unescape_octal(span s, size_t *i, char out[4]) {
    uint32_t c = 0;
    for (int k = 0; k < 3 && *i < s.size && s.data[*i] >= '0' && s.data[*i] <= '7'; k++)
        c = c * 8 + (uint32_t)(s.data[(*i)++] - '0');
    --*i;
    return utf8_encode(c, out);
}

/* Python's string escapes; an unknown one keeps its backslash. */
static err_code unescape(lexer *l, span s, span *out) {
    if (!s.size || !memchr(s.data, '\\', s.size)) {
        *out = s;
        return ERR_OK;
    }
    static const char from[] = "nrtabfv\\'\"", to[] = "\n\r\t\a\b\f\v\\'\"";
    char *text = arena_alloc(l->memory, s.size), one[4];
    size_t n = 0;
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i] != '\\') {
            text[n++] = s.data[i];
            continue;
        }
        char c = s.data[++i];
        const char *known = c ? strchr(from, c) : NULL;
        int size = 0;
        if (known) {
            one[0] = to[known - from];
            size = 1;
        } else if (c >= '0' && c <= '7') {
            size = unescape_octal(s, &i, one);
        } else if (c == 'x' || c == 'u' || c == 'U') {
            if (!unescape_hex(s, &i, c == 'x' ? 2 : c == 'u' ? 4 : 8, one, &size))
                ERR_FAIL_AT(l, ERR_FORMAT, "broken \\%c escape in a string", c);
        } else if (c == 'N') {
            ERR_FAIL_AT(l, ERR_UNSUPPORTED, "\\N{...} in a string is not supported");
        } else if (c != '\n') {
            text[n++] = '\\';
            one[0] = c;
            size = 1;
        }
        memcpy(text + n, one, (size_t)size);
        n += (size_t)size;
    }
    *out = span_make(text, n);
    return ERR_OK;
}

static err_code lex_string(lexer *l) {
    char quote = l->source.data[l->at];
    size_t end = l->at + 1;
    while (end < l->source.size && l->source.data[end] != quote) end += l->source.data[end] == '\\' ? 2 : 1;
    if (end >= l->source.size) ERR_FAIL_AT(l, ERR_FORMAT, "a string is not closed");
    span text;
    ERR_TRY(unescape(l, span_make(l->source.data + l->at + 1, end - l->at - 1), &text));
    push(l, T_STRING)->text = text;
    advance_to(l, end + 1);
    return ERR_OK;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static char peek(const lexer *l, size_t at) { return at < l->source.size ? l->source.data[at] : 0; }

static size_t skip_digits(const lexer *l, size_t at) {
    while (is_digit(peek(l, at)) || (peek(l, at) == '_' && is_digit(peek(l, at + 1)))) at++;
    return at;
}

static err_code lex_float(lexer *l, size_t end) {
    char text[64];
    size_t n = 0;
    for (size_t i = l->at; i < end; i++) {
        if (n == sizeof text) ERR_FAIL_AT(l, ERR_LIMIT, "a number of more than 64 characters");
        if (l->source.data[i] != '_') text[n++] = l->source.data[i];
    }
    double d;
    if (!text_to_double(span_make(text, n), &d)) ERR_FAIL_AT(l, ERR_FORMAT, "a malformed number");
    push(l, T_FLOAT)->number = value_float(d);
    advance_to(l, end);
    return ERR_OK;
}

static err_code lex_number(lexer *l) {
    static const struct {
        char letter;
        int base;
    } bases[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    size_t at = l->at, end = skip_digits(l, at);
    int base = 10;
    for (size_t i = 0; peek(l, at) == '0' && i < 3; i++)
        if ((peek(l, at + 1) | 32) == bases[i].letter) base = bases[i].base;
    if (base == 10) {
        size_t fraction = peek(l, end) == '.' && is_digit(peek(l, end + 1)) ? skip_digits(l, end + 1) : end,
               last = fraction;
        if ((peek(l, last) | 32) == 'e') {
            size_t digits = last + 1 + (peek(l, last + 1) == '+' || peek(l, last + 1) == '-');
            if (is_digit(peek(l, digits))) last = skip_digits(l, digits);
        }
        bool after_dot =
            l->count && l->tokens[l->count - 1].type == T_OPERATOR && at > 0 && l->source.data[at - 1] == '.';
        if (last != end && !after_dot) return lex_float(l, last);
    } else {
        at = end = at + 2;
        while (peek(l, end) == '_' || (hex_digit(peek(l, end)) >= 0 && hex_digit(peek(l, end)) < base)) end++;
    }
    int64_t n = 0;
    for (size_t i = at; i < end; i++)
        if (l->source.data[i] != '_' &&
            (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, hex_digit(l->source.data[i]), &n)))
            ERR_FAIL_AT(l, ERR_UNSUPPORTED, "an integer literal of more than 64 bits");
    push(l, T_INTEGER)->number = value_int(n);
    advance_to(l, end);
    return ERR_OK;
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || (c & 0x80);
}

/* Operators by longest match; brackets are balanced so that a tag's end inside them is not one. */
static err_code lex_operator(lexer *l, char *open, int *depth) {
    static const char *const operators[] = {"==", "!=", "<=", ">=", "//", "**", "+", "-", "/", "*", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ","};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!at_text(l, l->at, operators[i])) continue;
        char c = operators[i][0];
        const char *closes = strchr(")]}", c);
        if (c == '(' || c == '[' || c == '{') {
            if (*depth == 255) ERR_FAIL_AT(l, ERR_LIMIT, "brackets nested more than 255 deep");
            open[(*depth)++] = c;
        } else if (closes) {
            if (*depth == 0 || open[*depth - 1] != "([{"[closes - ")]}"])
                ERR_FAIL_AT(l, ERR_FORMAT, "unexpected '%c'", c);
            --*depth;
        }
        size_t n = strlen(operators[i]);
        push(l, T_OPERATOR)->text = span_make(operators[i], n);
        advance_to(l, l->at + n);
        return ERR_OK;
    }
    ERR_FAIL_AT(l, ERR_FORMAT, "unexpected character in a tag");
}

/* From after the opening to after the end. */
static err_code lex_tag(lexer *l, bool is_variable) {
    const char *close = is_variable ? "}}" : "%}";
    char open[256];
    int depth = 0;
    uint32_t line = l->line;
    for (;;) {
        advance_to(l, skip_space(l, l->at));
        if (l->at >= l->source.size) ERR_FAIL(l->err, ERR_FORMAT, "%s:%u: a tag that is not closed", l->name, line);
        char c = l->source.data[l->at];
        bool sign = (c == '-' || (c == '+' && !is_variable)) && at_text(l, l->at + 1, close);
        if (depth == 0 && (sign || at_text(l, l->at, close))) {
            push(l, is_variable ? T_VARIABLE_END : T_BLOCK_END);
            finish_tag(l, l->at + 2 + sign, sign ? c : 0, !is_variable);
            return ERR_OK;
        }
        if (c == '"' || c == '\'') {
            ERR_TRY(lex_string(l));
        } else if (is_digit(c)) {
            ERR_TRY(lex_number(l));
        } else if (is_name_char(c)) {
            size_t end = l->at;
            while (is_name_char(peek(l, end))) end++;
            push(l, T_NAME)->text = span_make(l->source.data + l->at, end - l->at);
            advance_to(l, end);
        } else {
            ERR_TRY(lex_operator(l, open, &depth));
        }
    }
}

/* ---- comments and raw blocks */

static err_code lex_comment(lexer *l) {
    ptrdiff_t found = span_find(span_make(l->source.data + l->at, l->source.size - l->at), span_text("#}"));
    if (found < 0) ERR_FAIL_AT(l, ERR_FORMAT, "a comment that is not closed");
    size_t end = l->at + (size_t)found;
    char sign = found > 0 ? l->source.data[end - 1] : 0;
    finish_tag(l, end + 2, sign, true);
    return ERR_OK;
}

/* Where a `{% word %}` tag that starts at `at` ends (past its %}), and its two signs; 0 if it is something else. */
static size_t match_word_tag(const lexer *l, size_t at, const char *word, char signs[2]) {
    signs[0] = peek(l, at + 2);
    size_t i = at + 2 + (signs[0] == '-' || signs[0] == '+');
    i = skip_space(l, i);
    if (!at_text(l, i, word)) return 0;
    i = skip_space(l, i + strlen(word));
    signs[1] = peek(l, i);
    i += signs[1] == '-' || signs[1] == '+';
    return at_text(l, i, "%}") ? i + 2 : 0;
}

/* At the end of a raw tag: everything up to {% endraw %} is data. */
static err_code lex_raw(lexer *l) {
    for (size_t i = l->at; i + 1 < l->source.size; i++) {
        char signs[2];
        size_t end = at_text(l, i, "{%") ? match_word_tag(l, i, "endraw", signs) : 0;
        if (!end) continue;
        push_data(l, i, signs[0], false);
        finish_tag(l, end, signs[1], true);
        return ERR_OK;
    }
    ERR_FAIL_AT(l, ERR_FORMAT, "a raw block that is not closed");
}

/* Offset of the next {{, {% or {# at or after at; the source's size when there is none. */
static size_t find_tag(const lexer *l, size_t at) {
    while (at < l->source.size) {
        const char *hit = memchr(l->source.data + at, '{', l->source.size - at);
        if (!hit) break;
        at = (size_t)(hit - l->source.data);
        char c = peek(l, at + 1);
        if (c == '{' || c == '%' || c == '#') return at;
        at++;
    }
    return l->source.size;
}

static err_code lex_all(lexer *l) {
    for (;;) {
        size_t tag = find_tag(l, l->at);
        if (tag == l->source.size) {
            if (tag > l->at) push(l, T_DATA)->text = span_make(l->source.data + l->at, tag - l->at);
            advance_to(l, tag);
            push(l, T_EOF);
            return ERR_OK;
        }
        char what = l->source.data[tag + 1], sign = peek(l, tag + 2), signs[2];
        size_t raw_end = what == '%' ? match_word_tag(l, tag, "raw", signs) : 0;
        if (raw_end && signs[1] == '+') raw_end = 0;
        push_data(l, tag, sign, what == '{');
        if (raw_end) {
            finish_tag(l, raw_end, signs[1], false);
            ERR_TRY(lex_raw(l));
            continue;
        }
        if (what != '#') push(l, what == '{' ? T_VARIABLE_BEGIN : T_BLOCK_BEGIN);
        bool signed_begin = sign == '-' || sign == '+';
        /* {{+ and {#+ take the sign too; it changes nothing for a variable */
        advance_to(l, tag + 2 + signed_begin);
        ERR_TRY(what == '#' ? lex_comment(l) : lex_tag(l, what == '{'));
    }
}

err_code template_lex(arena *a, const char *name, span source, token **out, size_t *count, error *err) {
    lexer l = {.memory = a, .name = name, .source = source, .line = 1, .line_starting = true, .err = err};
    ERR_TRY(lex_all(&l));
    *out = l.tokens;
    *count = l.count;
    return ERR_OK;
}
