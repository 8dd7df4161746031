// The small parts: status records, arena, text, log, Philox.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/philox.h"
#include "base/status.h"
#include "base/text.h"

// ---- status

static void test_status(void **state) {
    (void)state;
    assert_int_equal(dc_fail(DC_IO, "do this", "broken (%d)", 5), DC_IO);
    assert_string_equal(dc_error(), "broken (5): do this");
    assert_int_equal(dc_fail(DC_USAGE, NULL, "no hint"), DC_USAGE);
    assert_string_equal(dc_error(), "no hint");
    assert_int_equal(dc_fail_prefix(DC_IO, "reading weights"), DC_IO);
    assert_string_equal(dc_error(), "reading weights: no hint");
    // The record itself as an argument.
    (void)dc_fail(DC_IO, "hint", "again: %s", dc_error());
    assert_string_equal(dc_error(), "again: reading weights: no hint: hint");
    // One line, whatever a file says.
    (void)dc_fail(DC_IO, NULL, "a\nb\x1b[31mc\x7f");
    assert_string_equal(dc_error(), "a?b?[31mc?");
}

static void test_status_long(void **state) {
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    for (size_t n = 900; n < 1100; n++) { // around the size of the record
        (void)dc_fail(DC_IO, "a hint that may be cut", "%.*s", (int)n, text);
        assert_true(strlen(dc_error()) < 1024);
    }
    (void)dc_fail(DC_IO, text, "%s", text);
    assert_int_equal(strlen(dc_error()), 1023);
    (void)dc_fail_prefix(DC_IO, text);
    assert_int_equal(strlen(dc_error()), 1023);
}

static void *other_thread(void *arg) {
    (void)arg;
    (void)dc_fail(DC_IO, NULL, "theirs");
    return NULL;
}

static void test_status_thread(void **state) {
    (void)state;
    pthread_t thread;
    (void)dc_fail(DC_IO, NULL, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(dc_error(), "mine");
}

// ---- arena

static void test_arena(void **state) {
    (void)state;
    dc_arena arena;
    dc_arena_init(&arena, 0);
    uint8_t *last = NULL;
    for (size_t size = 0; size < 20000; size = size * 5 / 4 + 1) {
        uint8_t *p = dc_arena_take(&arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xFF, size); // dirty: the next must still be zero, and this one stay
        if (last) assert_int_equal(last[0], 0xFF);
        last = size ? p : NULL;
    }
    assert_string_equal(dc_arena_text(&arena, "hello", 4), "hell");
    assert_string_equal(dc_arena_text(&arena, NULL, 0), "");
    assert_null(dc_arena_take(&arena, SIZE_MAX));
    assert_null(dc_arena_take(&arena, SIZE_MAX / 4 + 1));
    assert_null(dc_arena_text(&arena, NULL, SIZE_MAX));
    dc_arena_fini(&arena);
    dc_arena_fini(&arena);
    assert_non_null(dc_arena_take(&arena, 1)); // empty again, not dead
    dc_arena_fini(&arena);
}

static void test_arena_limit(void **state) {
    (void)state;
    enum { LIMIT = 100000 };
    dc_arena arena;
    dc_arena_init(&arena, LIMIT);
    size_t taken = 0;
    while (dc_arena_take(&arena, 640))
        taken += 640;
    assert_true(arena.total <= LIMIT);
    assert_true(taken > LIMIT * 8 / 10); // the limit is of use, not half of it
    assert_non_null(strstr(dc_error(), "100000 bytes"));
    assert_null(dc_arena_take(&arena, 1 << 20));
    dc_arena_fini(&arena);
    assert_int_equal(arena.limit, LIMIT);
}

// ---- text

static void test_text(void **state) {
    (void)state;
    dc_text text;
    dc_text_init(&text);
    assert_null(text.bytes);
    dc_text_add(&text, "%s", "");
    assert_string_equal(text.bytes, "");
    for (int i = 0; i < 10000; i++)
        dc_text_add(&text, "%d,", i % 10);
    dc_text_bytes(&text, "a\0b", 3);
    dc_text_bytes(&text, NULL, 0);
    assert_int_equal(text.used, 20003);
    assert_memory_equal(text.bytes, "0,1,2,3,", 8);
    assert_memory_equal(text.bytes + 20000, "a\0b", 4);
    assert_int_equal(dc_text_status(&text), DC_OK);
    dc_text_fini(&text);
    dc_text_fini(&text);
    // Errors stick.
    dc_text_add(&text, "ab");
    text.status = DC_NO_MEMORY;
    dc_text_add(&text, "c");
    dc_text_bytes(&text, "d", 1);
    assert_string_equal(text.bytes, "ab");
    assert_int_equal(dc_text_status(&text), DC_NO_MEMORY);
    dc_text_fini(&text);
}

// ---- log

static char logged[2048];

static void sink(void *ctx, dc_level level, const char *line) {
    snprintf(logged, sizeof logged, "%s %d %s", (const char *)ctx, (int)level, line);
}

static void test_log(void **state) {
    (void)state;
    char ctx[] = "ctx";
    dc_log(DC_INFO, "there is no sink");
    dc_log_set(sink, ctx);
    dc_log(DC_WARN, "n = %d", 3);
    assert_string_equal(logged, "ctx 1 n = 3");
    dc_log_set(NULL, NULL);
    dc_log(DC_INFO, "there is no sink");
    assert_string_equal(logged, "ctx 1 n = 3");
}

// ---- Philox

// Known answers of the reference (Random123, kat_vectors). Our counter is (index, step low, step
// high, stream), our key the seed's halves.
static void test_philox(void **state) {
    (void)state;
    static const uint32_t rows[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t *r = rows[i];
        dc_u32x4 got =
            dc_philox((uint64_t)r[5] << 32 | r[4], r[3], (uint64_t)r[2] << 32 | r[1], r[0]);
        assert_memory_equal(got.v, r + 6, sizeof got.v);
    }
}

static void test_below(void **state) {
    (void)state;
    assert_int_equal(dc_below(0, 7), 0);
    assert_int_equal(dc_below(UINT32_MAX, 7), 6);
    assert_int_equal(dc_below(UINT32_MAX, UINT32_MAX), UINT32_MAX - 1);
    assert_true(dc_unit(0) == 0.0f);
    assert_true(dc_unit(UINT32_MAX) < 1.0f);
    static const uint64_t ends[] = {
        1, 2, 3, 1000, UINT32_MAX, (uint64_t)UINT32_MAX + 1, (uint64_t)1 << 62, (uint64_t)1 << 63};
    for (uint32_t i = 0; i < 100000; i++) {
        dc_u32x4 r = dc_philox(3, 1, 0, i);
        uint64_t n = i < 8 ? ends[i] : ((uint64_t)r.v[2] << 32 | r.v[3]) >> 1;
        if (n == 0) n = 1;
        uint64_t word = (uint64_t)r.v[0] << 32 | r.v[1];
        __extension__ unsigned __int128 product = (unsigned __int128)word * n;
        uint64_t got = dc_below64(r.v[0], r.v[1], n);
        assert_true(got == (uint64_t)(product >> 64));
        assert_true(got < n);
    }
    // The mean of 2^20 draws of [0, 10) lies within five standard errors of 4.5.
    double sum = 0;
    for (uint32_t i = 0; i < 1 << 20; i++)
        sum += dc_below(dc_philox(5, 2, 9, i).v[i & 3], 10);
    double mean = sum / (1 << 20);
    assert_true(mean > 4.5 - 0.0141 && mean < 4.5 + 0.0141);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),        cmocka_unit_test(test_status_long),
        cmocka_unit_test(test_status_thread), cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_limit),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_log),           cmocka_unit_test(test_philox),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
