/* Option parsing; see cli.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"

int cli_fail(const error *err) {
    fprintf(stderr, "hearth: %s\n", err->message);
    return 1;
}

int cli_misuse(const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "hearth %s: ", command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\ntry: hearth %s --help\n", command);
    va_end(args);
    return 2;
}

static void print_help(const cli_spec *spec) {
    printf("usage: hearth %s %s\n\n%s\n", spec->command, spec->operands, spec->about);
    if (spec->flags->name) printf("\noptions:\n");
    for (const flag *f = spec->flags; f->name; f++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", f->name, f->value ? " " : "", f->value ? f->value : "");
        printf("  %-28s %s\n", left, f->help);
    }
}

static bool parse_int(const char *text, long min, long max, long *out) {
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < min || v > max) return false;
    *out = v;
    return true;
}

static bool parse_number(const char *text, int min, int max, double *out) {
    arena *a = arena_create();
    const json *value;
    bool good = json_parse(a, span_text(text), 1, &value, NULL) == ERR_OK && json_double(value, out) && *out >= min &&
                *out <= max;
    arena_destroy(a);
    return good;
}

static bool parse_u64(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '9') return false;
    *out = strtoull(text, &end, 10);
    return !errno && !*end;
}

/* "8G", "1.5G", "512M", "4096": at most three decimals, so that no floating point is needed. */
static bool parse_bytes(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    if (text[0] < '0' || text[0] > '9') return false;
    uint64_t whole = strtoull(text, &end, 10), thousandths = 0;
    if (errno) return false;
    if (*end == '.') {
        uint64_t place = 100;
        for (end++; *end >= '0' && *end <= '9'; end++, place /= 10) thousandths += (uint64_t)(*end - '0') * place;
    }
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    uint64_t scale = unit ? (uint64_t)1 << (10 * (unit - units + 1)) : 1;
    if (*end && (!unit || (end[1] && strcmp(end + 1, "iB") && strcmp(end + 1, "B")))) return false;
    if (__builtin_mul_overflow(whole, scale, &whole)) return false;
    return !__builtin_add_overflow(whole, scale / 1000 * thousandths, out);
}

/* The place of text among words separated by '|', from 1; 0 when it is none of them. */
static int choose(const char *words, const char *text) {
    int place = 1;
    for (const char *word = words; *word; place++) {
        size_t size = strcspn(word, "|");
        if (size == strlen(text) && !strncmp(word, text, size)) return place;
        word += size + (word[size] == '|');
    }
    return 0;
}

/* Stores one value; NULL, or what was expected. */
static const char *store(const flag *f, const char *text) {
    static _Thread_local char expected[96];
    switch (f->type) {
        case FLAG_SWITCH:
            *(bool *)f->out = true;
            return NULL;
        case FLAG_ON_OFF:
            if (strcmp(text, "on") && strcmp(text, "off")) return "on or off";
            *(bool *)f->out = strcmp(text, "on") == 0;
            return NULL;
        case FLAG_INT: {
            bool limited = f->min || f->max;
            long min = limited ? f->min : -2147483647, max = limited ? f->max : 2147483647, v;
            snprintf(expected, sizeof expected, "a whole number from %ld to %ld", min, max);
            if (!parse_int(text, min, max, &v)) return expected;
            *(int *)f->out = (int)v;
            return NULL;
        }
        case FLAG_NUMBER:
            snprintf(expected, sizeof expected, "a number from %d to %d", f->min, f->max);
            return parse_number(text, f->min, f->max, f->out) ? NULL : expected;
        case FLAG_U64:
            return parse_u64(text, f->out) ? NULL : "a whole number";
        case FLAG_BYTES:
            return parse_bytes(text, f->out) ? NULL : "a size such as 512M or 8G";
        case FLAG_TEXT:
            *(const char **)f->out = text;
            return NULL;
        case FLAG_CHOICE:
            *(int *)f->out = choose(f->value, text);
            return *(int *)f->out ? NULL : f->value;
        case FLAG_REPEAT: {
            flag_list *list = f->out;
            if (list->count == (int)(sizeof list->items / sizeof *list->items)) return "at most 32 of them";
            list->items[list->count++] = text;
            return NULL;
        }
    }
    return "a known type";
}

static const flag *find_flag(const flag *flags, span name) {
    for (; flags->name; flags++)
        if (span_is(name, flags->name)) return flags;
    return NULL;
}

/* One option with its value, which may be the next word; *i moves past what was taken. Exit status, or -1 to go on. */
static int parse_option(const cli_spec *spec, int argc, char **argv, int *i) {
    const char *word = argv[*i], *equals = strchr(word, '=');
    span name = {0};
    if (word[1] == '-') name = span_make(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2));
    const flag *f = find_flag(spec->flags, name);
    if (!f || (f->type == FLAG_SWITCH && equals)) return cli_misuse(spec->command, "unknown option '%s'", word);
    const char *value = equals ? equals + 1 : NULL;
    if (f->type != FLAG_SWITCH && !value) {
        if (*i + 1 == argc) return cli_misuse(spec->command, "--%s needs a value (%s)", f->name, f->value);
        value = argv[++*i];
    }
    const char *expected = store(f, value);
    if (expected) return cli_misuse(spec->command, "--%s %s: expected %s", f->name, value, expected);
    return -1;
}

static int parse(const cli_spec *spec, int argc, char **argv, cli_arguments *arguments) {
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (only_arguments || word[0] != '-' || !word[1]) {
            if (arguments->count == spec->arguments_max)
                return cli_misuse(spec->command, "unexpected argument '%s'", word);
            arguments->items[arguments->count++] = word;
        } else if (!strcmp(word, "--")) {
            only_arguments = true;
        } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
            print_help(spec);
            return 0;
        } else {
            int status = parse_option(spec, argc, argv, &i);
            if (status >= 0) return status;
        }
    }
    if (arguments->count >= spec->arguments_min) return -1;
    return cli_misuse(spec->command, "an argument is missing (usage: hearth %s %s)", spec->command, spec->operands);
}

bool cli_parse(const cli_spec *spec, int argc, char **argv, cli_arguments *arguments, int *status) {
    HEARTH_ASSERT(spec->arguments_max <= 8);
    *arguments = (cli_arguments){0};
    *status = parse(spec, argc, argv, arguments);
    return *status < 0;
}

static void print_commands(FILE *out, const char *prefix, const cli_command *commands) {
    fprintf(out, "usage: %s COMMAND [options]\n\n", prefix);
    for (const cli_command *c = commands; c->name; c++) fprintf(out, "  %-8s %s\n", c->name, c->about);
    fprintf(out, "\n%s COMMAND --help shows a command's options.\n", prefix);
}

int cli_dispatch(const char *prefix, const cli_command *commands, int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word && (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"))) {
        print_commands(stdout, prefix, commands);
        return 0;
    }
    for (const cli_command *c = commands; word && c->name; c++)
        if (!strcmp(word, c->name)) return c->run(argc - 1, argv + 1);
    if (word) fprintf(stderr, "%s: unknown command '%s'\n", prefix, word);
    print_commands(stderr, prefix, commands);
    return 2;
}
