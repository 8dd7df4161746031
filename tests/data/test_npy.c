// Tests of data/npy: headers that must be read, headers that must be refused and how, what is
// written, and every conversion against plain arithmetic.
#include "data/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A header of the given version around a text.
static size_t wrap(int version, const char *text, uint8_t *out) {
    size_t n = strlen(text), prefix = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < prefix; i++)
        out[i] = (uint8_t)(n >> (8 * (i - 8)));
    memcpy(out + prefix, text, n);
    return prefix + n;
}

static dc_status parse(dc_npy *npy, int version, const char *text) {
    uint8_t bytes[2048];
    return dc_npy_parse(npy, bytes, wrap(version, text, bytes));
}

static void test_good_headers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        dc_dtype type;
        int ndim;
        uint64_t count;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", DC_F4, 2, 12},
        {"{'shape': (3, 4), 'fortran_order': False, 'descr': '<f8'}", DC_F8, 2, 12},
        {"{\"descr\":\"|b1\",\"fortran_order\":True,\"shape\":(7,)}", DC_B1, 1, 7},
        {"{ 'descr' : '>u1' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , }", DC_U1, 2, 6},
        {"{'descr': '|i1', 'fortran_order': False, 'shape': ()}", DC_I1, 0, 1},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5)}", DC_I8, 2, 0},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", DC_F2, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int version = 1; version <= 3; version++) {
            dc_npy npy;
            assert_int_equal(parse(&npy, version, cases[i].text), DC_OK);
            assert_int_equal(npy.type, cases[i].type);
            assert_int_equal(npy.ndim, cases[i].ndim);
            assert_int_equal(npy.count, cases[i].count);
            assert_int_equal(npy.bytes, cases[i].count * dc_dtype_size(npy.type));
            assert_int_equal(npy.header, strlen(cases[i].text) + (version == 1 ? 10 : 12));
        }
}

static void test_unsupported_headers(void **state) {
    (void)state;
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,)}", "newbyteorder"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}", "ascontiguousarray"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", "astype"},
        {"{'descr': '<U5', 'fortran_order': False, 'shape': (3,)}", "astype"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", "astype"},
        {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,)}", "astype"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", "field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dc_npy npy;
        assert_int_equal(parse(&npy, 1, cases[i].text), DC_UNSUPPORTED);
        assert_non_null(strstr(dc_error(), cases[i].hint));
    }
}

static void test_malformed_headers(void **state) {
    (void)state;
    static const char *const cases[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,),,}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (03,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': 4, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693951,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1)}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dc_npy npy;
        assert_int_equal(parse(&npy, 1, cases[i]), DC_BAD_INPUT);
    }
}

static void test_bad_prefix(void **state) {
    (void)state;
    uint8_t bytes[256];
    dc_npy npy;
    size_t size, n = wrap(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", bytes);
    for (size_t cut = 0; cut < n; cut++) // every truncation
        assert_int_equal(dc_npy_parse(&npy, bytes, cut), DC_BAD_INPUT);
    bytes[6] = 4;
    assert_int_equal(dc_npy_parse(&npy, bytes, n), DC_BAD_INPUT);
    bytes[6] = 0;
    assert_int_equal(dc_npy_parse(&npy, bytes, n), DC_BAD_INPUT);
    bytes[6] = 2;
    memset(bytes + 8, 255, 4); // a header of 4 GiB
    assert_int_equal(dc_npy_header_size(bytes, n, &size), DC_BAD_INPUT);
}

static void test_write_then_parse(void **state) {
    (void)state;
    for (int type = 0; type < DC_DTYPES; type++)
        for (int ndim = 0; ndim <= DC_NPY_DIMS; ndim++) {
            int64_t shape[DC_NPY_DIMS];
            for (int d = 0; d < ndim; d++)
                shape[d] = d == 0 ? 1234567890123 : 1;
            dc_npy made, read;
            uint8_t bytes[DC_NPY_WRITE_MAX];
            assert_int_equal(dc_npy_make(&made, (dc_dtype)type, ndim, shape), DC_OK);
            dc_npy_write(&made, bytes);
            assert_int_equal(made.header % 64, 0);
            assert_int_equal(dc_npy_parse(&read, bytes, made.header), DC_OK);
            assert_int_equal(read.type, made.type);
            assert_int_equal(read.ndim, made.ndim);
            assert_int_equal(read.header, made.header);
            assert_int_equal(read.bytes, made.bytes);
            assert_memory_equal(read.shape, made.shape, sizeof made.shape);
        }
}

static double half_value(unsigned h) {
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
    double v = exponent == 0   ? ldexp(fraction, -24)
               : exponent < 31 ? ldexp(1024 + fraction, exponent - 25)
               : fraction == 0 ? INFINITY
                               : NAN;
    return h >> 15 ? -v : v;
}

static void test_half(void **state) {
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        uint8_t bytes[2] = {(uint8_t)h, (uint8_t)(h >> 8)};
        float f;
        double d, want = half_value(h);
        dc_npy_floats(DC_F2, bytes, 1, &f);
        dc_npy_doubles(DC_F2, bytes, 1, &d);
        assert_true(isnan(want) ? isnan(f) && isnan(d) : (double)f == want && d == want);
        assert_true(isnan(want) || !signbit(f) == !signbit(want));
    }
}

// n values from an odd address, against a plain cast.
#define CHECK_TYPE(type, ctype, ...)                                                               \
    do {                                                                                           \
        const ctype values[] = {__VA_ARGS__};                                                      \
        enum { N = sizeof values / sizeof values[0] };                                             \
        uint8_t bytes[sizeof values + 1];                                                          \
        float f[N];                                                                                \
        double d[N];                                                                               \
        memcpy(bytes + 1, values, sizeof values);                                                  \
        dc_npy_floats(type, bytes + 1, N, f);                                                      \
        dc_npy_doubles(type, bytes + 1, N, d);                                                     \
        for (int i = 0; i < N; i++)                                                                \
            assert_true(f[i] == (float)values[i] && d[i] == (double)values[i]);                    \
    } while (0)

static void test_conversions(void **state) {
    (void)state;
    CHECK_TYPE(DC_I1, int8_t, 0, 1, -1, INT8_MIN, INT8_MAX);
    CHECK_TYPE(DC_I2, int16_t, 0, 1, -1, INT16_MIN, INT16_MAX);
    CHECK_TYPE(DC_I4, int32_t, 0, 1, -1, INT32_MIN, INT32_MAX);
    CHECK_TYPE(DC_I8, int64_t, 0, 1, -1, INT64_MIN, INT64_MAX);
    CHECK_TYPE(DC_U1, uint8_t, 0, 1, 2, UINT8_MAX);
    CHECK_TYPE(DC_U2, uint16_t, 0, 1, 2, UINT16_MAX);
    CHECK_TYPE(DC_U4, uint32_t, 0, 1, 2, UINT32_MAX);
    CHECK_TYPE(DC_U8, uint64_t, 0, 1, 2, UINT64_MAX);
    CHECK_TYPE(DC_F4, float, 0, -1.5f, 3e38f, 1e-45f);
    CHECK_TYPE(DC_F8, double, 0, -1.5, 1e300, 5e-324);
    uint8_t truth[] = {0, 1, 2, 255}; // any byte that is not 0 is true
    float f[4];
    dc_npy_floats(DC_B1, truth, 4, f);
    assert_true(f[0] == 0 && f[1] == 1 && f[2] == 1 && f[3] == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_headers),      cmocka_unit_test(test_unsupported_headers),
        cmocka_unit_test(test_malformed_headers), cmocka_unit_test(test_bad_prefix),
        cmocka_unit_test(test_write_then_parse),  cmocka_unit_test(test_half),
        cmocka_unit_test(test_conversions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
