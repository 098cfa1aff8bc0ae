/* The template interpreter against tables made with Jinja itself: tests/golden/template_snippets.jsonl (small pieces),
 * tests/golden/templates/ (whole templates in the manner of several model families), and, where the reference data is
 * here, the official templates. Then limits and error texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "support.h"
#include "text/chat_input.h"
#include "text/template.h"

static err_code render(const char *source, const char *input, buffer *out, error *err) {
    arena *a = arena_create();
    const json *variables;
    chat_template *t = NULL;
    assert_int_equal(json_parse(a, span_text(input), 128, &variables, err), ERR_OK);
    err_code code = template_compile(span_text(source), "t", &t, err);
    if (code == ERR_OK) code = template_render(t, variables, NULL, out, err);
    template_destroy(t);
    arena_destroy(a);
    return code;
}

typedef void line_visitor(const json *line, void *context);

static void for_each_line(const char *path, line_visitor *visit, void *context) {
    buffer file = {0};
    error err = {0};
    if (file_read(path, 1 << 26, &file, &err) != ERR_OK) fail_msg("%s", err.message);
    arena *a = arena_create();
    for (char *line = file.data, *end; line && *line; line = end + 1) {
        const json *j;
        end = strchr(line, '\n');
        if (!end) break;
        if (json_parse(a, span_make(line, (size_t)(end - line)), 128, &j, &err) != ERR_OK) fail_msg("%s", err.message);
        visit(j, context);
        arena_reset(a);
    }
    arena_destroy(a);
    buffer_deinit(&file);
}

static const char *text_of(const json *j) {
    static char *texts[4];
    static int next;
    char **slot = &texts[next++ % 4];
    free(*slot);
    *slot = j ? mem_copy(j->text.data, j->text.size) : mem_copy("", 0);
    return *slot;
}

/* Compares one rendering with {"expected"} or {"error", "error_kind"}; returns whether it is right. */
static bool check_case(const json *line, const char *name, span source, const json *variables) {
    buffer out = {0};
    error err = {0};
    chat_template *t = NULL;
    const json *expected = json_get(line, "expected"), *message = json_get(line, "error");
    err_code code = template_compile(source, "t", &t, &err);
    if (code == ERR_OK) code = template_render(t, variables, NULL, &out, &err);
    bool good;
    if (expected) {
        good = code == ERR_OK && span_equal(span_make(out.data, out.size), expected->text);
    } else if (json_string_is(json_get(line, "error_kind"), "raise_exception")) {
        good = code == ERR_INVALID && span_is(message->text, err.message);
    } else {
        good = code != ERR_OK && code != ERR_INTERNAL && strncmp(err.message, "t:", 2) == 0;
    }
    if (!good) {
        print_message("%s\n   template: %.300s\n   expected: %.900s\n   got:      %.900s\n", name,
                      text_of(json_get(line, "template")), expected ? text_of(expected) : text_of(message),
                      code == ERR_OK ? (out.data ? out.data : "") : err.message);
    }
    template_destroy(t);
    buffer_deinit(&out);
    return good;
}

typedef struct tally {
    int total, bad;
} tally;

static void visit_snippet(const json *line, void *context) {
    tally *n = context;
    n->total++;
    n->bad += !check_case(line, "snippet", json_get(line, "template")->text, json_get(line, "input"));
}

static void test_snippets(void **state) {
    (void)state;
    tally n = {0};
    for_each_line("tests/golden/template_snippets.jsonl", visit_snippet, &n);
    print_message("%d snippets, %d wrong\n", n.total, n.bad);
    assert_int_equal(n.bad, 0);
    assert_true(n.total >= 200);
}

/* ---- whole templates */

typedef struct suite {
    tally n;
    const char *dir;
    buffer source; /* of the last template read */
    char name[64];
} suite;

static span load_template(suite *s, const char *file) {
    if (strcmp(s->name, file) != 0) {
        char path[1200];
        error err = {0};
        snprintf(path, sizeof path, "%s/%s", s->dir, file);
        snprintf(s->name, sizeof s->name, "%s", file);
        buffer_deinit(&s->source);
        if (file_read(path, 1 << 22, &s->source, &err) != ERR_OK) fail_msg("%s", err.message);
    }
    return span_make(s->source.data, s->source.size);
}

static void visit_case(suite *s, const json *line, const char *file) {
    error err = {0};
    arena *a = arena_create();
    const json *variables;
    if (chat_input_variables(a, json_get(line, "input"), &variables, &err) != ERR_OK) fail_msg("%s", err.message);
    s->n.total++;
    s->n.bad += !check_case(line, text_of(json_get(line, "name")), load_template(s, file), variables);
    arena_destroy(a);
}

static void visit_family(const json *line, void *context) {
    visit_case(context, line, text_of(json_get(line, "template")));
}

static void visit_oracle(const json *line, void *context) {
    char file[64];
    snprintf(file, sizeof file, "%s_chat_template.jinja", text_of(json_get(line, "template")));
    visit_case(context, line, file);
}

static void test_families(void **state) {
    (void)state;
    suite s = {.dir = "tests/golden/templates"};
    for_each_line("tests/golden/template_families.jsonl", visit_family, &s);
    buffer_deinit(&s.source);
    print_message("%d renderings, %d wrong\n", s.n.total, s.n.bad);
    assert_int_equal(s.n.bad, 0);
    assert_true(s.n.total >= 40);
}

static void test_official(void **state) {
    (void)state;
    const char *cases = test_need_shared("oracle/template_cases.jsonl");
    suite s = {.dir = test_need_shared("qwen")};
    for_each_line(cases, visit_oracle, &s);
    buffer_deinit(&s.source);
    print_message("%d cases, %d wrong\n", s.n.total, s.n.bad);
    assert_int_equal(s.n.bad, 0);
    assert_true(s.n.total >= 50);
}

/* ---- refusals: code and place */

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *source;
        err_code code;
        const char *message;
    } cases[] = {
        {"{{ raise_exception('no: ' ~ 3) }}", ERR_INVALID, "no: 3"},
        {"ab\n  {{ x.y.z }}", ERR_UNSUPPORTED, "t:2:10: the object has no attribute 'y'"},
        {"{{ q.z }}", ERR_UNSUPPORTED, "t:1:6: 'q' is undefined"},
        {"{{ 1 + }}", ERR_FORMAT, "t:1:8: expected an expression, found '}}'"},
        {"a\r\nb{% if x %}", ERR_FORMAT, "t:2:12: 'endif' is missing for the block that begins here"},
        {"{% nope %}", ERR_FORMAT, "t:1:4: unknown tag 'nope'"},
        {"{% include 'x' %}", ERR_UNSUPPORTED, "t:1:4: 'include' is not supported"},
        {"{% import 'x' as y %}", ERR_UNSUPPORTED, "t:1:4: 'import' is not supported"},
        {"{% block x %}{% endblock %}", ERR_UNSUPPORTED, "t:1:4: 'block' is not supported"},
        {"{% for a in b recursive %}{% endfor %}", ERR_UNSUPPORTED, "t:1:15: recursive loops are not supported"},
        {"{{ [1]|random }}", ERR_UNSUPPORTED, "t:1:8: filter 'random' is not supported"},
        {"{{ cycler(1) }}", ERR_UNSUPPORTED, "t:1:10: function 'cycler' is not supported"},
        {"{{ lipsum() }}", ERR_UNSUPPORTED, "t:1:10: function 'lipsum' is not supported"},
        {"{{ '{}'.format(1) }}", ERR_UNSUPPORTED, "t:1:15: method 'format' is not supported"},
        {"{{ 9223372036854775807 + 1 }}", ERR_UNSUPPORTED, "t:1:24: integers of more than 64 bits are not supported"},
        {"{{ 2 ** 64 }}", ERR_UNSUPPORTED, "t:1:6: integers of more than 64 bits are not supported"},
        {"{{ big + 1 }}", ERR_UNSUPPORTED, "t:1:8: arithmetic on integers of more than 64 bits is not supported"},
        {"{{ ''.__class__.__mro__ }}", ERR_UNSUPPORTED, "t:1:17: access to attribute '__class__' is unsafe"},
        {"{{ x.__init__ }}", ERR_OK, ""},
        {"\xff", ERR_FORMAT, "t: the template is not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer out = {0};
        error err = {0};
        buffer_text(&out, "kept");
        err_code code = render(cases[i].source, "{\"x\": {}, \"big\": 123456789012345678901234567890}", &out, &err);
        if (code != cases[i].code || strcmp(err.message, cases[i].message) != 0)
            fail_msg("%s: code %d, message '%s'", cases[i].source, code, err.message);
        assert_string_equal(out.data, "kept");
        buffer_deinit(&out);
    }
}

/* ---- hostile templates end quickly with an error */

static char *repeat(const char *before, const char *what, int times, const char *middle, const char *after) {
    buffer b = {0};
    buffer_text(&b, before);
    for (int i = 0; i < times; i++) buffer_text(&b, what);
    buffer_text(&b, middle);
    for (int i = 0; i < times && after; i++) buffer_text(&b, after);
    return buffer_take(&b);
}

static void check_limit(const char *source) {
    buffer out = {0};
    error err = {0};
    uint64_t start = clock_ns();
    err_code code = render(source, "{\"s\": \"abc\"}", &out, &err);
    double ms = clock_ms_since(start);
    if (getenv("TEMPLATE_TIMES")) print_message("%8.1f ms %.90s\n", ms, source);
    if (code != ERR_LIMIT) fail_msg("%.80s: code %d '%s'", source, code, err.message);
    if (ms > 20000) fail_msg("%.80s: %.0f ms", source, ms);
    buffer_deinit(&out);
}

static void test_limits(void **state) {
    (void)state;
    static const char *const cases[] = {
        "{{ range(10**9) }}",
        "{{ 'a' * 10**9 }}",
        "{{ [0] * 10**9 }}",
        "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s='aaaaaaaaab') %}{% for i in range(100) %}{% set ns.s = ns.s.replace('b', ns.s ~ ns.s) "
        "%}"
        "{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% "
        "endfor %}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}"
        "{% endfor %}{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
        "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}",
        "{% set ns = namespace(l=[],m=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}"
        "{% endfor %}{{ ns.l == ns.m }}",
        "{{ '%999999999s' % 'a' }}",
        "{{ ('x' * 1000000)|indent(1000000, true) ~ ('\\n' * 100000)|indent(100000, false, true) }}",
        "{{ [1, [2]]|tojson(indent=10**9) }}",
        "{% set s = ' ' * 50000000 %}{% for i in range(99999) %}{% if s|trim or s.strip() %}{% endif %}{% endfor %}",
        "{% set s = 'a' * 50000000 %}{% for i in range(99999) %}{% if s.startswith(s) or s == s %}{% endif %}{% endfor "
        "%}",
        "{% set s = 'a' * 50000000 %}{% for i in range(99999) %}{% if s.center(9) or s[-1] %}{% endif %}{% endfor %}",
        "{% set s = 'a' * 2000000 %}{% set t = 'a' * 1000000 ~ 'b' %}{{ s.rfind(t) }}{{ s.rsplit(t) }}",
        "{% set s = 'a' * 50000000 %}{% set d = {s: 1} %}{% for i in range(99999) %}{% if d[s] %}{% endif %}{% endfor "
        "%}",
        "{% set s = ' ' * 50000000 ~ '1' %}{% for i in range(99999) %}{% if s|int and s|float %}{% endif %}{% endfor "
        "%}",
        "{{ 'abc'.center(10**10) }}",
        "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
        "{{ ('ab' * 1000)|list|join('x' * 10000000) }}",
        "{% for a in range(99999) %}{{ ('ab' * 1000).split('a')|length }}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_limit(cases[i]);
    struct {
        const char *before, *what, *middle, *after;
    } nested[] = {
        {"{{ ", "(", "1", ")"},
        {"{{ ", "[", "", "]"},
        {"{{ ", "not ", "1 }}", NULL},
        {"{{ ", "- ", "1 }}", NULL},
        {"{{ 1", ".a", " }}", NULL},
        {"{{ s", "|trim", " }}", NULL},
        {"", "{% if s %}", "x", "{% endif %}"},
        {"{{ ", "1 if 1 else ", "2 }}", NULL},
        {"{{ 1", "**1", " }}", NULL},
        {"{{ s", "[0:]", " }}", NULL},
        {"{{ ", "s.upper(", "", ")"},
        {"", "{% for x in s %}", "", "{% endfor %}"},
        {"{{ 1", " and 1", " }}", NULL},
        {"{{ s", " is string is string", " }}", NULL},
        {"", "{% macro m() %}", "", "{% endmacro %}"},
        {"{{ ", "{1:", "1", "}"},
    };
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        char *source = repeat(nested[i].before, nested[i].what, 10000, nested[i].middle, nested[i].after);
        buffer out = {0};
        error err = {0};
        err_code code = render(source, "{\"s\": \"abc\"}", &out, &err);
        if (code == ERR_OK || code == ERR_INTERNAL) fail_msg("%s x 10000: code %d", nested[i].what, code);
        buffer_deinit(&out);
        free(source);
    }
}

/* Long but harmless: an elif chain and a long sum are not deep. */
static void test_long_is_not_deep(void **state) {
    (void)state;
    buffer out = {0};
    error err = {0};
    char *chain = repeat("{% if x %}", "{% elif x %}b", 5000, "{% else %}c{% endif %}", NULL);
    char *sum = repeat("{{ 1", " + 1", 5000, "}}{{ 'a'", NULL), *all;
    buffer b = {0};
    buffer_text(&b, chain);
    buffer_text(&b, sum);
    for (int i = 0; i < 3000; i++) buffer_text(&b, " ~ 'a'");
    buffer_text(&b, " }}");
    all = buffer_take(&b);
    if (render(all, "{}", &out, &err) != ERR_OK) fail_msg("%s", err.message);
    assert_memory_equal(out.data, "c5001a", 6);
    assert_int_equal(out.size, 5 + 3001);
    free(chain);
    free(sum);
    free(all);
    buffer_deinit(&out);
}

static void test_given_limits(void **state) {
    (void)state;
    chat_template *t;
    error err = {0};
    arena *a = arena_create();
    buffer out = {0};
    const char *source = "{% macro f(n) %}{{ f(n - 1) if n else 'x' }}{% endmacro %}{{ f(5) }}{{ 'abc' * 10 }}";
    assert_int_equal(template_compile(span_text(source), "t", &t, &err), ERR_OK);
    static const struct {
        template_limits limits;
        err_code code;
    } cases[] = {
        {{0, 0, 0}, ERR_OK},     {{0, 0, 6}, ERR_OK},     {{0, 0, 5}, ERR_LIMIT},
        {{20, 0, 0}, ERR_LIMIT}, {{0, 20, 0}, ERR_LIMIT}, {{10000, 100000, 6}, ERR_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer_clear(&out);
        assert_int_equal(template_render(t, json_new(a, JSON_OBJECT), &cases[i].limits, &out, &err), cases[i].code);
    }
    template_destroy(t);
    arena_destroy(a);
    buffer_deinit(&out);
}

static void test_strftime(void **state) {
    (void)state;
    buffer out = {0};
    error err = {0};
    assert_int_equal(render("{{ strftime_now('%Y-%m-%d')|length }}{{ strftime_now('') }}", "{}", &out, &err), ERR_OK);
    assert_string_equal(out.data, "10");
    buffer_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snippets),     cmocka_unit_test(test_families), cmocka_unit_test(test_official),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_limits),   cmocka_unit_test(test_long_is_not_deep),
        cmocka_unit_test(test_given_limits), cmocka_unit_test(test_strftime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
