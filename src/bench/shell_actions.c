/* See shell_actions.h. The five steps stand below in the order of docs/bench.md: quoted parts out, split into commands,
 * leading words off, first word reduced, looked up. It is no shell parser and must not become one: a score is only
 * comparable when here-documents, comments and loops are misread in the same way. */
#include "bench/shell_actions.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void action_list_deinit(action_list *l) {
    free(l->names);
    *l = (action_list){0};
}

static void push(action_list *l, const char *name) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 8;
        l->names = mem_grow(l->names, l->capacity, sizeof *l->names);
    }
    l->names[l->count++] = name;
}

/* Programs that count, and the names that mean the same. */
static const struct alias {
    const char *word, *action;
} aliases[] = {
    {".", "source"},
    {"ag", "grep"},
    {"alias", "alias"},
    {"apt", "apt"},
    {"apt-get", "apt"},
    {"awk", "awk"},
    {"cat", "cat"},
    {"conda", "conda"},
    {"cp", "cp"},
    {"curl", "curl"},
    {"cut", "cut"},
    {"cython", "cython"},
    {"date", "date"},
    {"diff", "diff"},
    {"egrep", "grep"},
    {"export", "export"},
    {"false", "false"},
    {"fgrep", "grep"},
    {"find", "find"},
    {"gawk", "awk"},
    {"git", "git"},
    {"grep", "grep"},
    {"head", "head"},
    {"less", "cat"},
    {"locate", "find"},
    {"ls", "ls"},
    {"make", "make"},
    {"mkdir", "mkdir"},
    {"more", "cat"},
    {"mv", "mv"},
    {"pip", "pip"},
    {"pip3", "pip"},
    {"py", "python"},
    {"pylint", "pylint"},
    {"pytest", "pytest"},
    {"python", "python"},
    {"python2", "python"},
    {"python3", "python"},
    {"rg", "grep"},
    {"rm", "rm"},
    {"sed", "sed"},
    {"sort", "sort"},
    {"source", "source"},
    {"sphinx-build", "sphinx"},
    {"sphinx-quickstart", "sphinx"},
    {"tail", "tail"},
    {"tee", "tee"},
    {"timeout", "timeout"},
    {"touch", "touch"},
    {"tr", "tr"},
    {"true", "true"},
    {"unset", "unset"},
    {"uniq", "uniq"},
    {"wc", "wc"},
    {"wget", "curl"},
    {"which", "which"},
    {"xargs", "xargs"},
    {"yum", "yum"},
};

static const char *find_action(span word) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (span_is(word, aliases[i].word)) return aliases[i].action;
    return NULL;
}

/* Step 1. The offset after the quoted part that begins at text[at], or 0 when it never ends: then the quote is a
 * character like any other. */
static size_t quoted_end(span text, size_t at) {
    char quote = text.data[at];
    for (size_t i = at + 1; i < text.size; i++) {
        if (text.data[i] == quote) return i + 1;
        if (quote == '"' && text.data[i] == '\\') i++;
    }
    return 0;
}

static void blank_quotes(span text, buffer *out) {
    for (size_t i = 0; i < text.size;) {
        char c = text.data[i];
        size_t end = c == '\'' || c == '"' || c == '`' ? quoted_end(text, i) : 0;
        buffer_char(out, end ? ' ' : c);
        i = end ? end : i + 1;
    }
}

/* Step 2. The offset of the next separator at or after `at`, and its length (0 at the end). */
static size_t find_separator(span text, size_t at, size_t *length) {
    for (size_t i = at; i < text.size; i++) {
        char c = text.data[i], next = i + 1 < text.size ? text.data[i + 1] : 0;
        *length = c == '|' ? (next == '|' ? 2 : 1) : c == '&' && next == '&' ? 2 : c == ';' || c == '\n' ? 1 : 0;
        if (*length) return i;
    }
    *length = 0;
    return text.size;
}

/* Step 3. White space as Python's str.split sees it. */
static int space_length(const char *data, size_t size) {
    uint32_t c;
    int length = utf8_decode(data, size, &c);
    bool space = length && ((c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
                            (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
                            c == 0x3000);
    return space ? length : 0;
}

/* Cuts the first word off *rest; empty when there is none. */
static span next_word(span *rest) {
    const char *p = rest->data, *end = p + rest->size;
    for (int n; p < end && (n = space_length(p, (size_t)(end - p))) > 0;) p += n;
    const char *start = p;
    while (p < end && !space_length(p, (size_t)(end - p))) p++;
    *rest = span_make(p, (size_t)(end - p));
    return span_make(start, (size_t)(p - start));
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_leading(span word) {
    static const char *const prefixes[] = {"env", "time", "nice", "sudo", "exec", "command"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (span_is(word, prefixes[i])) return true;
    if (!word.size || !is_letter(word.data[0])) return false;
    size_t i = 1;
    while (i < word.size && (is_letter(word.data[i]) || is_digit(word.data[i]))) i++;
    return i < word.size && word.data[i] == '=';
}

/* Step 4. */
static span without_version(span word) {
    for (int parts = 0; parts < 2; parts++) {
        size_t i = word.size;
        while (i && is_digit(word.data[i - 1])) i--;
        if (i == word.size || !i || word.data[i - 1] != '.') break;
        word.size = i - 1;
    }
    return word;
}

static void push_word(span word, action_list *out) {
    for (size_t i = word.size; i--;)
        if (word.data[i] == '/') {
            word = span_make(word.data + i + 1, word.size - i - 1);
            break;
        }
    word = without_version(word);
    char lower[32];
    if (word.size >= sizeof lower) return; /* longer than every known word */
    for (size_t i = 0; i < word.size; i++) {
        char c = word.data[i];
        lower[i] = c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
    }
    const char *action = find_action(span_make(lower, word.size)); /* step 5 */
    if (action) push(out, action);
}

void shell_actions(span command, action_list *out) {
    buffer plain = {0};
    blank_quotes(command, &plain);
    span text = span_make(plain.data, plain.size);
    for (size_t at = 0, length = 0; at < text.size; at += length) {
        size_t end = find_separator(text, at, &length);
        span piece = span_make(text.data + at, end - at), word = next_word(&piece);
        while (word.size && is_leading(word)) word = next_word(&piece);
        push_word(word, out);
        at = end;
    }
    buffer_deinit(&plain);
}

static bool is_truthy(const json *v) {
    if (!v) return false;
    double number;
    switch (v->type) {
        case JSON_NULL:
        case JSON_FALSE:
            return false;
        case JSON_TRUE:
            return true;
        case JSON_NUMBER:
            return !json_double(v, &number) || number != 0;
        case JSON_STRING:
            return v->text.size > 0;
        default:
            return v->count > 0;
    }
}

static void call_actions(arena *scratch, const json *call, action_list *out) {
    const json *function = json_get(call, "function"), *arguments = json_get(function, "arguments");
    if (!json_string_is(json_get(function, "name"), "bash")) return;
    if (json_is(arguments, JSON_STRING) &&
        json_parse(scratch, arguments->text, JSON_DEPTH_DEFAULT, &arguments, NULL) != ERR_OK)
        return;
    const json *command = json_get(arguments, "command");
    if (!is_truthy(command)) command = json_get(arguments, "cmd");
    if (json_is(command, JSON_STRING)) shell_actions(command->text, out);
}

void tool_call_actions(const json *tool_calls, action_list *out) {
    if (!json_is(tool_calls, JSON_ARRAY)) return;
    arena *scratch = arena_create();
    for (const json *call = tool_calls->first; call; call = call->next) call_actions(scratch, call, out);
    arena_destroy(scratch);
}

static size_t occurrences(const action_list *l, const char *name, size_t before) {
    size_t n = 0;
    for (size_t i = 0; i < before; i++) n += strcmp(l->names[i], name) == 0;
    return n;
}

/* The sizes add up: |a or b| = |a| + |b| - |a and b|. The k-th `cat` of a is in both when b has at least k of them. */
double action_iou(const action_list *a, const action_list *b) {
    size_t both = 0;
    for (size_t i = 0; i < a->count; i++)
        both += occurrences(a, a->names[i], i + 1) <= occurrences(b, a->names[i], b->count);
    size_t either = a->count + b->count - both;
    return either ? (double)both / (double)either : 0;
}
