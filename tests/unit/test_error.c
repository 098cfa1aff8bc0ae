/* Errors: what is recorded, passed on and cut; assertions end the process. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "support.h"

static int place;

static err_code fails(int number, error *err) {
    place = __LINE__ + 1;
    ERR_FAIL(err, ERR_LIMIT, "thing %d exceeds the limit %d", number, 3);
}

static err_code passes_on(int *reached, error *err) {
    ERR_TRY(ERR_OK);
    *reached = 1;
    ERR_TRY(fails(7, err));
    *reached = 2;
    return ERR_OK;
}

static void test_fail_and_try(void **state) {
    (void)state;
    error err = {0};
    int reached = 0;
    assert_int_equal(passes_on(&reached, &err), ERR_LIMIT);
    assert_int_equal(reached, 1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_string_equal(err.message, "thing 7 exceeds the limit 3");
    assert_string_equal(err.file, "test_error.c");
    assert_int_equal(err.line, place);
}

static void test_null_error(void **state) {
    (void)state;
    assert_int_equal(fails(1, NULL), ERR_LIMIT);
}

static void test_message_is_cut_at_a_character(void **state) {
    (void)state;
    for (int before = 500; before < 520; before++) {
        char text[1024];
        memset(text, 'x', (size_t)before);
        memset(text + before, 0, sizeof text - (size_t)before);
        for (int i = 0; i < 20; i++) memcpy(text + before + 4 * i, "\xF0\x9F\x98\x80", 4);
        error err = {0};
        error_set(&err, ERR_FORMAT, __FILE__, __LINE__, "%s", text);
        size_t size = strlen(err.message);
        assert_true(size < sizeof err.message && size > sizeof err.message - 5);
        assert_true(utf8_valid(span_make(err.message, size)));
        assert_memory_equal(err.message, text, size);
    }
}

/* A file name or a client may bring any bytes; the message stays valid. */
static void test_message_is_valid(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"a\xFF"
         "b: x",
         "a?b: x"},
        {"\xC3\xA9\x80", "\xC3\xA9?"},
        {"\xE2\x82z", "??z"},
        {"end \xE2\x82", "end "},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error err = {0};
        error_set(&err, ERR_IO, __FILE__, __LINE__, "%s", cases[i][0]);
        assert_string_equal(err.message, cases[i][1]);
    }
}

static void test_names(void **state) {
    (void)state;
    for (int code = ERR_OK; code <= ERR_INTERNAL; code++) {
        assert_true(strlen(error_name((err_code)code)) > 1);
        for (int other = ERR_OK; other < code; other++)
            assert_string_not_equal(error_name((err_code)code), error_name((err_code)other));
    }
    assert_string_equal(error_name(ERR_OK), "ok");
    assert_string_equal(error_name(ERR_NOT_FOUND), "not_found");
    assert_string_equal(error_name(ERR_CANCELLED), "cancelled");
    assert_string_equal(error_name(ERR_INTERNAL), "internal");
}

static void test_assert_aborts(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        HEARTH_ASSERT(1 + 1 == 3);
        _exit(0);
    }
    close(ends[1]);
    char text[256] = {0};
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "hearth: assertion failed: 1 + 1 == 3 (test_error.c:"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_and_try),
        cmocka_unit_test(test_null_error),
        cmocka_unit_test(test_message_is_cut_at_a_character),
        cmocka_unit_test(test_message_is_valid),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_assert_aborts),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
