/* Small floats: every code, and rounding at and around every midpoint. */
#include <math.h>
#include <string.h>

#include "format/minifloat.h"
#include "support.h"

static double e4m3_by_definition(int code) {
    int exponent = code >> 3 & 15, mantissa = code & 7;
    double magnitude = exponent ? ldexp(1 + mantissa / 8.0, exponent - 7) : ldexp(mantissa, -9);
    return code & 0x80 ? -magnitude : magnitude;
}

static void test_e4m3_codes(void **state) {
    (void)state;
    for (int code = 0; code < 256; code++) {
        float value = e4m3_to_f32((uint8_t)code);
        if ((code & 0x7f) == 0x7f) {
            assert_true(isnan(value));
            continue;
        }
        assert_true((double)value == e4m3_by_definition(code) && !signbit(value) == !(code & 0x80));
        assert_int_equal(f32_to_e4m3(value), code);
        assert_int_equal(f64_to_e4m3((double)value), code);
    }
}

/* Between neighbours: below the midpoint down, above it up, on it to the even code; both signs. */
static void test_e4m3_rounding(void **state) {
    (void)state;
    for (int code = 0; code < 0x7e; code++) {
        float low = e4m3_to_f32((uint8_t)code), high = e4m3_to_f32((uint8_t)(code + 1)), mid = (low + high) / 2;
        for (int sign = 0; sign < 2; sign++) {
            float s = sign ? -1.0f : 1.0f;
            int bit = sign ? 0x80 : 0;
            assert_int_equal(f32_to_e4m3(s * mid), bit | (code % 2 ? code + 1 : code));
            assert_int_equal(f64_to_e4m3((double)(s * mid)), bit | (code % 2 ? code + 1 : code));
            assert_int_equal(f64_to_e4m3(nextafter((double)(s * mid), 0)), bit | code);
            assert_int_equal(f64_to_e4m3(nextafter((double)(s * mid), (double)s * 1000)), bit | (code + 1));
            assert_int_equal(f32_to_e4m3(s * nextafterf(mid, 0)), bit | code);
            assert_int_equal(f32_to_e4m3(s * nextafterf(mid, 1000)), bit | (code + 1));
        }
    }
    assert_int_equal(f32_to_e4m3(1e-30f), 0);
    assert_int_equal(f32_to_e4m3(-1e-40f), 0x80);
    assert_int_equal(f32_to_e4m3(449), 0x7e);
    assert_int_equal(f64_to_e4m3(-1e300), 0xfe);
    assert_int_equal(f64_to_e4m3((double)NAN) & 0x7f, 0x7f);
    assert_int_equal(f32_to_e4m3(480), 0x7e);
    assert_int_equal(f32_to_e4m3(-1e30f), 0xfe);
    assert_int_equal(f32_to_e4m3(INFINITY), 0x7e);
    assert_int_equal(f32_to_e4m3(NAN) & 0x7f, 0x7f);
}

static void test_e2m1(void **state) {
    (void)state;
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int code = 0; code < 16; code++) {
        float value = e2m1_to_f32((uint8_t)code);
        assert_true(fabsf(value) == values[code & 7] && !signbit(value) == !(code & 8));
        assert_int_equal(f32_to_e2m1(value), code);
        if ((code & 7) == 7) continue;
        float mid = (values[code & 7] + values[(code & 7) + 1]) / 2, s = code & 8 ? -1.0f : 1.0f;
        assert_int_equal(f32_to_e2m1(s * mid), code % 2 ? code + 1 : code);
        assert_int_equal(f32_to_e2m1(s * nextafterf(mid, 0)), code);
        assert_int_equal(f32_to_e2m1(s * nextafterf(mid, 10)), code + 1);
    }
    assert_int_equal(f32_to_e2m1(1e30f), 7);
    assert_int_equal(f32_to_e2m1(-INFINITY), 15);
}

static void test_packing(void **state) {
    (void)state;
    static const uint8_t packed[] = {0x21, 0x43};
    for (int i = 0; i < 4; i++) assert_int_equal(e2m1_code(packed, i), i + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_e4m3_codes),
        cmocka_unit_test(test_e4m3_rounding),
        cmocka_unit_test(test_e2m1),
        cmocka_unit_test(test_packing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
