/* The .npy writer: what it writes is read back, and nothing is left behind when it fails. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/npy.h"
#include "golden_files.h"
#include "support.h"

static void test_round_trip(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 3, 1000, 248320};
    error err;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        npy_writer w;
        const char *path = test_temp("rows.npy");
        float *row = mem_zero((size_t)widths[i], sizeof *row);
        assert_int_equal(npy_create(path, 3, widths[i], &w, &err), ERR_OK);
        for (int r = 0; r < 3; r++) {
            row[0] = (float)r + 0.5f;
            assert_int_equal(npy_write(&w, row, 1, &err), ERR_OK);
        }
        assert_int_equal(npy_close(&w, &err), ERR_OK);
        npy_abandon(&w); /* harmless now */
        npy a = npy_load(test_temp(""), "rows.npy");
        assert_true(a.is_float && a.rank == 2 && a.shape[0] == 3 && a.shape[1] == widths[i]);
        assert_int_equal(((const char *)a.data - a.bytes.data) % 64, 0);
        for (int r = 0; r < 3; r++) assert_true(npy_row(&a, r)[0] == (float)r + 0.5f);
        npy_free(&a);
        free(row);
    }
}

static void test_failures(void **state) {
    (void)state;
    error err;
    npy_writer w;
    assert_int_equal(npy_create("/nonexistent/x.npy", 1, 1, &w, &err), ERR_IO);
    assert_non_null(strstr(err.message, "/nonexistent/x.npy"));
    npy_abandon(&w);
    const char *path = test_temp("left.npy");
    assert_int_equal(npy_create(path, 2, 2, &w, &err), ERR_OK);
    npy_abandon(&w);
    assert_int_not_equal(access(path, F_OK), 0);
    if (access("/dev/full", W_OK) == 0) {
        float row[4096] = {0};
        assert_int_equal(npy_create("/dev/full", 1, 4096, &w, &err), ERR_OK);
        assert_int_equal(npy_write(&w, row, 1, &err), ERR_IO);
        npy_abandon(&w);
        assert_int_equal(access("/dev/full", F_OK), 0); /* the device is not ours to remove */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
