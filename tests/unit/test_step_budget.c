/* The step budget on simulated machines: it must find the size of a step that stays short, and follow changes. */
#include "engine/step_budget.h"
#include "support.h"

typedef struct machine {
    const char *name;
    double fixed_ms, row_ms;
    int rows_low, rows_high; /* where the budget must settle: target 200 ms, or twice fixed_ms */
} machine;

static const machine MACHINES[] = {
    {"fast", 0.5, 0.05, 256, 256},     {"balanced", 20, 2, 70, 95},        {"slow rows", 5, 50, 3, 4},
    {"very slow rows", 10, 900, 1, 1}, {"slow weights", 2000, 30, 55, 72},
};

static void settles_for_each_machine(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof MACHINES / sizeof *MACHINES; i++) {
        const machine *m = &MACHINES[i];
        step_budget b;
        step_budget_init(&b, 200, 256);
        for (int n = 0; n < 100; n++) {
            int rows = n % 4 == 3 ? 1 : step_budget_rows(&b); /* a decode step now and then */
            assert_in_range(rows, 1, 256);
            step_budget_record(&b, rows, m->fixed_ms + m->row_ms * rows);
        }
        int rows = step_budget_rows(&b);
        if (rows < m->rows_low || rows > m->rows_high) fail_msg("%s: %d rows", m->name, rows);
    }
}

static void steps_of_one_size_do_not_confuse_it(void **state) {
    (void)state;
    step_budget b;
    step_budget_init(&b, 200, 256);
    for (int n = 0; n < 50; n++) step_budget_record(&b, 1, 30);
    assert_in_range(step_budget_rows(&b), 1, 16);
    for (int n = 0; n < 50; n++) step_budget_record(&b, 100, 100 + n % 3);
    assert_in_range(step_budget_rows(&b), 150, 256);
}

static void shrinks_when_rows_get_dearer(void **state) {
    (void)state;
    step_budget b;
    step_budget_init(&b, 200, 256);
    for (int n = 0; n < 60; n++) {
        int rows = step_budget_rows(&b);
        step_budget_record(&b, rows, 5 + (0.5 + 0.1 * n) * rows); /* a growing context */
    }
    double row_ms = 0.5 + 0.1 * 60;
    assert_true(5 + row_ms * step_budget_rows(&b) < 260);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settles_for_each_machine),
        cmocka_unit_test(steps_of_one_size_do_not_confuse_it),
        cmocka_unit_test(shrinks_when_rows_get_dearer),
    };
    return cmocka_run_group_tests_name("step_budget", tests, NULL, NULL);
}
