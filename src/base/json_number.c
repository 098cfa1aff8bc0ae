/* JSON numbers: text to integer and double and back, the same in every locale; see json.h.
 *
 * Reading a double uses strtod in the C locale, which glibc rounds correctly. Writing looks for the fewest digits that
 * read back equal, as Python's repr does: every decimal of up to 15 digits survives a normal double, so the search
 * starts there (subnormals keep fewer, it starts at 1) and 17 digits are always enough. The nearest decimal of a given
 * length is nearly always the right one to try. The exception are powers of two: their neighbour below is half as far
 * as the one above, so a decimal slightly above may read back equal when a closer one below does not. */
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "base/json.h"
#include "base/json_inner.h"

static locale_t c_locale;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    HEARTH_ASSERT(c_locale);
}

/* A NUL-terminated number in C syntax. */
static double read_double(const char *text) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return strtod_l(text, NULL, c_locale);
}

bool json_integer(const json *value, int64_t *out) {
    if (!json_is(value, JSON_NUMBER)) return false;
    const char *p = value->text.data, *end = p + value->text.size;
    bool negative = p < end && *p == '-';
    int64_t result = 0;
    for (p += negative; p < end; p++) {
        int digit = *p - '0';
        if (digit < 0 || digit > 9) return false;
        if (__builtin_mul_overflow(result, 10, &result)) return false;
        if (__builtin_add_overflow(result, negative ? -digit : digit, &result)) return false;
    }
    *out = result;
    return true;
}

bool json_double(const json *value, double *out) {
    if (!json_is(value, JSON_NUMBER)) return false;
    char small[64], *text = small;
    if (value->text.size < sizeof small) {
        memcpy(small, value->text.data, value->text.size);
        small[value->text.size] = 0;
    } else {
        text = mem_copy(value->text.data, value->text.size);
    }
    double result = read_double(text);
    if (text != small) free(text);
    if (isinf(result)) return false;
    *out = result;
    return true;
}

json *json_new_integer(arena *a, int64_t value) {
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRId64, value);
    return json_new_number(a, span_make(arena_copy(a, text, (size_t)size), (size_t)size));
}

/* A decimal: 0.d1d2d3... * 10^point. */
typedef struct decimal {
    char digits[24];
    int count, point;
} decimal;

/* value > 0 correctly rounded to count digits. */
static decimal to_decimal(double value, int count) {
    char text[40];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    decimal d = {.count = count};
    d.digits[0] = text[0];
    memcpy(d.digits + 1, text + 2, (size_t)(count - 1)); /* text[1] is the locale's decimal point, or 'e' */
    d.point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
    return d;
}

static bool reads_back(const decimal *d, double value) {
    char text[48];
    snprintf(text, sizeof text, "%.*se%d", d->count, d->digits, d->point - d->count);
    return read_double(text) == value;
}

/* The next larger decimal of the same length. */
static decimal next_up(decimal d) {
    int i = d.count - 1;
    while (i >= 0 && d.digits[i] == '9') d.digits[i--] = '0';
    if (i >= 0) {
        d.digits[i]++;
    } else {
        d.digits[0] = '1';
        d.point++;
    }
    return d;
}

static decimal shortest(double value) {
    int exponent;
    bool power_of_two = frexp(value, &exponent) == 0.5;
    for (int count = value < DBL_MIN ? 1 : DBL_DIG; count < DBL_DECIMAL_DIG; count++) {
        decimal d = to_decimal(value, count);
        if (reads_back(&d, value)) return d;
        if (!power_of_two) continue;
        d = next_up(d);
        if (reads_back(&d, value)) return d;
    }
    return to_decimal(value, DBL_DECIMAL_DIG);
}

/* Fixed notation, at least one digit on each side of the point. */
static void write_fixed(buffer *out, const decimal *d) {
    if (d->point <= 0) {
        buffer_printf(out, "0.%.*s%.*s", -d->point, "0000000000000000", d->count, d->digits);
    } else if (d->point >= d->count) {
        buffer_printf(out, "%.*s%.*s.0", d->count, d->digits, d->point - d->count, "0000000000000000");
    } else {
        buffer_printf(out, "%.*s.%.*s", d->point, d->digits, d->count - d->point, d->digits + d->point);
    }
}

static void write_exponent(buffer *out, const decimal *d) {
    buffer_char(out, d->digits[0]);
    if (d->count > 1) buffer_printf(out, ".%.*s", d->count - 1, d->digits + 1);
    int exponent = d->point - 1;
    buffer_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', exponent < 0 ? -exponent : exponent);
}

void json_write_double(buffer *out, double value) {
    if (!isfinite(value)) {
        buffer_text(out, "null");
        return;
    }
    if (signbit(value)) buffer_char(out, '-');
    if (value == 0) {
        buffer_text(out, "0.0");
        return;
    }
    decimal d = shortest(fabs(value));
    while (d.count > 1 && d.digits[d.count - 1] == '0') d.count--;
    if (d.point > -4 && d.point <= 16)
        write_fixed(out, &d);
    else
        write_exponent(out, &d);
}
