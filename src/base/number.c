// Numbers as text, see number.h. The grammar is checked here, byte by byte; only then the C library
// converts, under the "C" locale of this thread, so a host program that calls setlocale changes
// nothing. Whole numbers never pass through a double: 2^53 + 1 must survive a round trip through a
// config file.
#include "base/number.h"

#include "base/status.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;

static void make_plain(void) {
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    DC_CHECK(plain); // the C library itself is broken otherwise
}

locale_t dc_locale_enter(void) {
    pthread_once(&plain_once, make_plain);
    return uselocale(plain);
}

void dc_locale_leave(locale_t before) {
    uselocale(before);
}

static size_t digits(const char *s, size_t n, size_t at) {
    size_t from = at;
    while (at < n && s[at] >= '0' && s[at] <= '9')
        at++;
    return at - from;
}

size_t dc_number_scan(const char *s, size_t n, dc_grammar grammar) {
    bool strict = grammar == DC_GRAMMAR_JSON;
    size_t at = 0;
    if (n && (s[0] == '-' || (s[0] == '+' && !strict))) at++;
    // Before the point.
    size_t whole = digits(s, n, at);
    if (strict && (whole == 0 || (s[at] == '0' && whole > 1))) return 0;
    at += whole;
    // After it.
    size_t fraction = 0;
    if (at < n && s[at] == '.') {
        fraction = digits(s, n, ++at);
        if (strict && fraction == 0) return 0;
        at += fraction;
    }
    if (whole + fraction == 0) return 0;
    // The exponent.
    if (at < n && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        if (at < n && (s[at] == '+' || s[at] == '-')) at++;
        size_t power = digits(s, n, at);
        if (power == 0) return 0;
        at += power;
    }
    return at;
}

bool dc_number_real(const char *s, double *out) {
    locale_t before = dc_locale_enter();
    *out = strtod(s, NULL);
    dc_locale_leave(before);
    return isfinite(*out);
}

// The exponent of a scanned number, clamped to a range that no int64 needs; 0 when it has none.
static long exponent(const char *s) {
    const char *e = strpbrk(s, "eE");
    long power = e ? strtol(e + 1, NULL, 10) : 0;
    return power > 1000000000 ? 1000000000 : power < -1000000000 ? -1000000000 : power;
}

bool dc_number_int(const char *s, int64_t *out) {
    // Gather the digits as a negative number (the range of int64 is larger there), hold back zeros
    // until a digit follows them, and count where the point falls: value = gathered * 10^power.
    int64_t value = 0, power = exponent(s), zeros = 0;
    bool negative = *s == '-', fraction = false;
    for (s += *s == '-' || *s == '+'; *s && *s != 'e' && *s != 'E'; s++) {
        if (*s == '.') {
            fraction = true;
            continue;
        }
        power -= fraction;
        zeros++;
        if (*s == '0') continue;
        for (; zeros && value; zeros--)
            if (__builtin_mul_overflow(value, 10, &value)) return false;
        zeros = 0;
        if (__builtin_sub_overflow(value, *s - '0', &value)) return false;
    }
    if (value == 0) return *out = 0, true;
    power += zeros;
    if (power < 0) return false;
    for (; power > 0; power--)
        if (__builtin_mul_overflow(value, 10, &value)) return false;
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value)) return false;
    return *out = value, true;
}

size_t dc_number_write(double x, char out[DC_NUMBER_MAX]) {
    DC_CHECK(isfinite(x));
    int n = 0;
    locale_t before = dc_locale_enter();
    for (int precision = 15; precision <= 17; precision++) {
        n = snprintf(out, DC_NUMBER_MAX, "%.*g", precision, x);
        if (strtod(out, NULL) == x) break;
    }
    dc_locale_leave(before);
    return (size_t)n;
}
