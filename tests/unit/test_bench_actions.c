/* IoU: actions of hand-made commands, rule by rule, and scores of pairs of turns. */
#include "bench/shell_actions.h"
#include "support.h"

#include <string.h>

static const struct {
    const char *command, *actions; /* joined by a space */
} cases[] = {
    /* Words as they are, and the ones that mean the same. */
    {"", ""},
    {"   \t ", ""},
    {"ls", "ls"},
    {"ls -la /testbed", "ls"},
    {"cd /testbed", ""},
    {"echo hello", ""},
    {"frobnicate --now", ""},
    {"python2 a.py; python3 b.py; py c.py; python d.py", "python python python python"},
    {"pip3 install x", "pip"},
    {"sphinx-build . out; sphinx-quickstart", "sphinx sphinx"},
    {"less a; more b; cat c", "cat cat cat"},
    {"egrep a; fgrep b; rg c; ag d; grep e", "grep grep grep grep grep"},
    {"gawk x; awk y; locate z; find .", "awk awk find find"},
    {". ./env.sh", "source"},
    {"source env.sh", "source"},
    {"wget u; curl u; apt-get update; apt list; yum x", "curl curl apt apt yum"},
    {"LS; Grep x; PYTHON3 y", "ls grep python"},
    /* Separators. */
    {"cat a | grep b | wc -l", "cat grep wc"},
    {"cd x && ls && pwd", "ls"},
    {"true || false", "true false"},
    {"ls;ls;ls", "ls ls ls"},
    {"ls\ncat a\n\nhead b", "ls cat head"},
    {"ls & cat x", "ls"},
    {"ls &", "ls"},
    {"cat a |& grep b", "cat"},
    {"|| && ; |", ""},
    {"ls|cat", "ls cat"},
    {"a&&ls", "ls"},
    /* Leading words. */
    {"sudo apt-get install x", "apt"},
    {"env FOO=1 BAR=two python -m x", "python"},
    {"FOO=1 python x", "python"},
    {"_A1= ls", "ls"},
    {"1A=2 ls", ""},
    {"A-B=1 ls", ""},
    {"time nice exec command ls", "ls"},
    {"sudo -u me ls", ""},
    {"PYTHONPATH=. pytest -x", "pytest"},
    {"env", ""},
    {"A=1", ""},
    {"SUDO ls", ""},
    /* First word: path, version. */
    {"/usr/bin/python3.11 x", "python"},
    {"./bin/ls", "ls"},
    {"bin/", ""},
    {"python3.11.2 x", "python"},
    {"python3.1.2.3 x", ""},
    {"python3. x", ""},
    {"pip3.9 list", "pip"},
    {"python.10", "python"},
    {"/usr/bin/env python", ""},
    {"../run.sh", ""},
    /* Quoted parts go, also over lines; a quote that never ends stays. */
    {"grep 'a|b;c' f", "grep"},
    {"grep \"a && ls\" f", "grep"},
    {"grep \"a\\\"; ls; \\\"b\" f", "grep"},
    {"echo `ls; cat x`", ""},
    {"python -c \"\nimport os\nls\n\"", "python"},
    {"sed -i 's/a/b/\nls\n' f", "sed"},
    {"echo it's; ls", "ls"},
    {"echo \"open; ls", "ls"},
    {"echo \"a\\", ""},
    {"'ls' -l", ""},
    {"l''s", ""},
    {"cat 'a\"b' \"c'd\" e; ls", "cat ls"},
    {"echo '`' ls `; cat x`", ""},
    {"A='x y' ls", "ls"},
    {"\"ls\"; ls", "ls"},
    /* Here-documents and shell words are read as commands too. */
    {"cat <<'EOF' > f.py\nimport os\nfind me\nls\nEOF", "cat find ls"},
    {"cat > f << EOF\ndate = 1\nEOF\npython f", "cat date python"},
    {"(cat x)", ""},
    {"if grep x f; then ls; fi", ""},
    {"! grep x", ""},
    {"for f in *; do cat $f; done", ""},
    {"find . -name x -exec grep y {} \\;", "find"},
    {"cat x # ls; cat y", "cat cat"},
    /* White space as Python splits it. */
    {"\xc2\xa0ls\xe3\x80\x80-l", "ls"},
    {"ls\x1c-l", "ls"},
    {"ls\r\ncat x\r\n", "ls cat"},
    {"\xff ls", ""},
};

static void join(const action_list *l, buffer *out) {
    for (size_t i = 0; i < l->count; i++) buffer_printf(out, "%s%s", i ? " " : "", l->names[i]);
    buffer_reserve(out, 0);
    out->data[out->size] = 0;
}

static void test_commands(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        action_list actions = {0};
        buffer text = {0};
        shell_actions(span_text(cases[i].command), &actions);
        join(&actions, &text);
        if (strcmp(text.data, cases[i].actions) != 0) print_message("command: %s\n", cases[i].command);
        assert_string_equal(text.data, cases[i].actions);
        buffer_deinit(&text);
        action_list_deinit(&actions);
    }
}

static const struct {
    const char *calls, *actions;
} messages[] = {
    {"[]", ""},
    {"{}", ""},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"ls\\\"}\"}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}}]", ""},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"cmd\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": \"\", \"cmd\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": null, \"cmd\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": [], \"cmd\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": 0, \"cmd\": \"ls\"}}}]", "ls"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": [\"ls\"], \"cmd\": \"ls\"}}}]", ""},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": {\"command\": \"cat\", \"cmd\": \"ls\"}}}]", "cat"},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": \"{\\\"command\\\": \\\"ls\"}}]", ""},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": \"null\"}}]", ""},
    {"[{\"function\": {\"name\": \"bash\", \"arguments\": \"\"}}, {\"function\": {\"name\": \"bash\", \"arguments\": "
     "{\"command\": \"ls\\ncat x\"}}}]",
     "ls cat"},
    {"[{\"function\": {\"name\": \"bash\"}}, 1, null, {\"function\": 2}]", ""},
};

static void test_messages(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        arena *a = arena_create();
        const json *calls;
        assert_int_equal(json_parse(a, span_text(messages[i].calls), 16, &calls, NULL), ERR_OK);
        action_list actions = {0};
        buffer text = {0};
        tool_call_actions(calls, &actions);
        join(&actions, &text);
        assert_string_equal(text.data, messages[i].actions);
        buffer_deinit(&text);
        action_list_deinit(&actions);
        arena_destroy(a);
    }
    action_list none = {0};
    tool_call_actions(NULL, &none);
    assert_int_equal(none.count, 0);
}

static const struct {
    const char *a, *b;
    double iou;
} pairs[] = {
    {"", "", 0},
    {"ls", "", 0},
    {"", "ls", 0},
    {"ls", "ls", 1},
    {"ls", "cat", 0},
    {"ls; cat", "cat; ls", 1},
    {"ls; ls", "ls", 0.5},
    {"ls; ls; ls", "ls; ls", 2.0 / 3},
    {"ls; cat; grep", "ls; sed", 0.25},
    {"cat; cat; grep", "cat; grep; grep", 0.5},
    {"rg", "grep", 1},
};

static void test_iou(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        action_list a = {0}, b = {0};
        shell_actions(span_text(pairs[i].a), &a);
        shell_actions(span_text(pairs[i].b), &b);
        assert_true(action_iou(&a, &b) == pairs[i].iou);
        assert_true(action_iou(&b, &a) == pairs[i].iou);
        action_list_deinit(&a);
        action_list_deinit(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_iou),
    };
    return cmocka_run_group_tests_name("bench actions", tests, NULL, NULL);
}
