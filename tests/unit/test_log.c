/* Log lines and clocks: the form of a line, levels, hostile text, whole lines from several threads. */
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "support.h"

/* Standard error goes to a file between begin and end; the test harness reports on it too. */
static int saved_stderr;

static void capture_begin(void) {
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    assert_non_null(freopen(test_temp("log"), "w", stderr));
    setvbuf(stderr, NULL, _IONBF, 0);
}

static buffer capture_end(void) {
    buffer text;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    assert_int_equal(file_read(test_temp("log"), 1 << 24, &text, NULL), ERR_OK);
    return text;
}

static bool matches(const char *text, const char *pattern) {
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return match;
}

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "

static void test_line(void **state) {
    (void)state;
    capture_begin();
    log_line(LOG_INFO, "loaded %d tensors", 3);
    log_line(LOG_ERROR, "e");
    log_line(LOG_WARN, "w");
    log_line(LOG_DEBUG, "not by default");
    buffer text = capture_end();
    assert_true(matches(text.data, "^" STAMP "INFO  loaded 3 tensors\n" STAMP "ERROR e\n" STAMP "WARN  w\n$"));
    time_t now = time(NULL);
    char year[8];
    strftime(year, sizeof year, "%Y", gmtime(&now));
    assert_memory_equal(text.data, year, 4);
    buffer_deinit(&text);
}

static void test_levels(void **state) {
    (void)state;
    capture_begin();
    for (int most = LOG_ERROR; most <= LOG_DEBUG; most++) {
        log_set_level((log_level)most);
        for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) log_line((log_level)level, "x");
    }
    log_set_level(LOG_INFO);
    buffer text = capture_end();
    int lines = 0;
    for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
    assert_int_equal(lines, 1 + 2 + 3 + 4);
    buffer_deinit(&text);
}

static void test_hostile_text(void **state) {
    (void)state;
    capture_begin();
    log_line(LOG_INFO, "%s", "a\nb\x1B[2Jc\x7F\xC2\x9B\xFF\xC3\xA9\r");
    buffer text = capture_end();
    assert_true(matches(text.data, "^" STAMP "INFO  a\\?b\\?\\[2Jc\\?\\?\\?\\?\xC3\xA9\\?\n$"));
    buffer_deinit(&text);
}

static void test_long_line(void **state) {
    (void)state;
    char *message = malloc(10001);
    for (int shift = 0; shift < 3; shift++) {
        for (int i = 0; i < 10000; i++) message[i] = i < shift ? 'x' : "\xE2\x82\xAC"[(i - shift) % 3];
        message[10000] = 0;
        capture_begin();
        log_line(LOG_INFO, "%s", message);
        buffer text = capture_end();
        assert_true(text.size > 1500 && text.size <= 2048);
        assert_int_equal(text.data[text.size - 1], '\n');
        assert_ptr_equal(strchr(text.data, '\n'), text.data + text.size - 1);
        assert_true(utf8_valid(span_make(text.data, text.size)));
        assert_memory_equal(text.data + text.size - 4, "\xE2\x82\xAC\n", 4); /* the cut character is gone */
        buffer_deinit(&text);
    }
    free(message);
}

static void *write_lines(void *letter) {
    for (int i = 0; i < 500; i++) log_line(LOG_INFO, "%.60s", (const char *)letter);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    static char letters[4][61];
    pthread_t threads[4];
    capture_begin();
    for (int i = 0; i < 4; i++) {
        memset(letters[i], 'a' + i, 60);
        pthread_create(&threads[i], NULL, write_lines, letters[i]);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    buffer text = capture_end();
    assert_true(matches(text.data, "^(" STAMP "INFO  (a{60}|b{60}|c{60}|d{60})\n)*$"));
    int lines = 0;
    for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
    assert_int_equal(lines, 2000);
    buffer_deinit(&text);
}

static void test_clock(void **state) {
    (void)state;
    uint64_t start = clock_ns();
    usleep(2000);
    double ms = clock_ms_since(start);
    assert_true(ms >= 2.0 && ms < 10000.0);
    assert_true(clock_ns() > start);
    assert_true(llabs(clock_unix_s() - (int64_t)time(NULL)) <= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),      cmocka_unit_test(test_levels),  cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_long_line), cmocka_unit_test(test_threads), cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
