// JSON: what must be taken, what must be refused, and that numbers and strings survive a round
// trip.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/philox.h"

static dc_status parse_n(dc_arena *arena, const char *s, size_t n, const dc_json **root) {
    dc_arena_init(arena, 0);
    // An exact copy on the heap, so that a sanitizer sees a read past the end.
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, s, n);
    dc_status status = dc_json_parse(arena, "test.json", copy, n, root);
    free(copy);
    return status;
}

static void good(const char *s, size_t n) {
    dc_arena arena;
    const dc_json *root;
    if (parse_n(&arena, s, n, &root) != DC_OK) fail_msg("refused %s: %s", s, dc_error());
    assert_non_null(root);
    dc_arena_fini(&arena);
}

static void bad(const char *s, size_t n) {
    dc_arena arena;
    const dc_json *root;
    if (parse_n(&arena, s, n, &root) != DC_BAD_INPUT) fail_msg("took %s", s);
    assert_null(root);
    assert_non_null(strstr(dc_error(), "test.json"));
    dc_arena_fini(&arena);
}

#define ROWS(table) (sizeof table / sizeof table[0])

static void test_takes(void **state) {
    (void)state;
    static const char *const rows[] = {
        "0",
        "-0",
        "1",
        "-1.5e+3",
        "1E5",
        "1e-400",
        "123456789012345678901234567890",
        "\"\"",
        "[]",
        "{}",
        " \t\r\n[ 1 , 2 ] ",
        "null",
        "true",
        "false",
        "{\"a\":{\"a\":[{\"a\":1}]}}",
        "[[],{},[[]]]",
        "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\\/\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "\"\\u0000\"",
        "\"\x7f\"",
        "{\"\":1}",
        "\"\xf4\x8f\xbf\xbf\"",
        "\"\xed\x9f\xbf\"",
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        good(rows[i], strlen(rows[i]));
}

// clang-format off
static const char *const refused[] = {
    // nothing, numbers, names
    "", " ", "01", "-", "+1", ".5", "1.", "1e", "1e+", "0x10", "NaN", "Infinity", "-Infinity",
    "1e999", "-1e999", "nul", "nulll", "True",
    // strings
    "'a'", "\"", "\"a", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"",
    "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\\ud800\\", "\"\n\"", "\"\t\"",
    // arrays and objects
    "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", "{\"a\"}", "{\"a\":}",
    "{\"a\":1,}", "{a:1}", "{\"a\" 1}", "{1:1}", "{\"a\":1 \"b\":2}",
    // what follows a value, comments
    "1 1", "[]x", "// c\n1", "/**/1", "[1]//",
    // names of an object: twice the same, a zero byte
    "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "{\"x\\u0000y\":1}",
    // not UTF-8, or white space that JSON does not have
    "\xef\xbb\xbf{}", "\"\x80\"", "\"\xc0\x80\"", "\"\xc1\xbf\"", "\"\xe0\x80\x80\"",
    "\"\xed\xa0\x80\"", "\"\xf0\x80\x80\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"",
    "\"\xc3\"", "\"\xe2\x82\"", "\"\xff\"", "\xc3\xa9", "\f1", "\v1", "1\xa0",
};
// clang-format on

static void test_refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++)
        bad(refused[i], strlen(refused[i]));
    bad("\0", 1);
    bad("1\0", 2);
    bad("\"a\0b\"", 5);
    bad("\"\\\0\"", 4);
}

// Every prefix of a document with everything in it is malformed, and nothing is read past its end.
static void test_prefixes(void **state) {
    (void)state;
    const char *s =
        "{\"a\":[1,-2.5e-3,true,false,null],\"\\u00e9\":\"\\ud83d\\ude00\xe2\x82\xac\",\"c\":{}}";
    for (size_t n = 0; n < strlen(s); n++)
        bad(s, n);
    good(s, strlen(s));
}

static void test_depth(void **state) {
    (void)state;
    char s[2 * 100 + 1];
    for (int depth = 60; depth < 70; depth++) {
        memset(s, '[', (size_t)depth);
        memset(s + depth, ']', (size_t)depth);
        if (depth <= DC_JSON_DEPTH)
            good(s, 2 * (size_t)depth);
        else
            bad(s, 2 * (size_t)depth);
    }
    // A million open brackets must neither crash nor take long.
    char *deep = malloc(1000000);
    assert_non_null(deep);
    memset(deep, '[', 1000000);
    bad(deep, 1000000);
    free(deep);
}

static void test_tree(void **state) {
    (void)state;
    dc_arena arena;
    const dc_json *root;
    const char *s =
        "{\"n\": 42, \"s\": \"a\\u0000b\", \"l\": [1, 2, 3], \"t\": true, \"e\": \"\\u20ac\"}";
    assert_int_equal(parse_n(&arena, s, strlen(s), &root), DC_OK);
    assert_int_equal(root->kind, DC_JSON_OBJECT);
    assert_int_equal(root->count, 5);
    int64_t n = 0;
    assert_true(dc_json_int(dc_json_get(root, "n"), &n));
    assert_int_equal(n, 42);
    assert_string_equal(dc_json_get(root, "n")->text, "42");
    const dc_json *text = dc_json_get(root, "s");
    assert_int_equal(text->text_length, 3);
    assert_memory_equal(text->text, "a\0b", 4);
    const dc_json *list = dc_json_get(root, "l");
    assert_int_equal(list->count, 3);
    assert_true(list->child->next->next->number == 3.0);
    assert_null(list->child->key);
    assert_null(list->child->next->next->next);
    assert_true(dc_json_get(root, "t")->truth);
    assert_string_equal(dc_json_get(root, "e")->text, "\xe2\x82\xac");
    assert_null(dc_json_get(root, "absent"));
    assert_null(dc_json_get(list, "n"));
    assert_null(dc_json_get(NULL, "n"));
    assert_false(dc_json_int(text, &n));
    assert_false(dc_json_int(NULL, &n));
    dc_arena_fini(&arena);
}

static void test_place_of_error(void **state) {
    (void)state;
    dc_arena arena;
    const dc_json *root;
    const char *s = "{\n  \"a\": 1,\n  \"b\": x\n}";
    assert_int_equal(parse_n(&arena, s, strlen(s), &root), DC_BAD_INPUT);
    assert_non_null(strstr(dc_error(), "line 3, column 8"));
    dc_arena_fini(&arena);
}

static void test_whole_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"0e999999999999999999999", true, 0},
        {"0.000", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"9007199254740993", true, 9007199254740993},
        {"9007199254740993.0", true, 9007199254740993},
        {"1e18", true, 1000000000000000000},
        {"1e19", false, 0},
        {"1.5e1", true, 15},
        {"1.50e1", true, 15},
        {"1.55e1", false, 0},
        {"1500e-2", true, 15},
        {"1500e-3", false, 0},
        {"1.00000000000000000000000000001", false, 0},
        {"1000000000000000000000000e-20", true, 10000},
        {"0.1", false, 0},
        {"1e-5", false, 0},
        {"100", true, 100},
        {"102030", true, 102030},
        {"1e-99999999999999999999", false, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        dc_arena arena;
        const dc_json *root;
        assert_int_equal(parse_n(&arena, rows[i].text, strlen(rows[i].text), &root), DC_OK);
        int64_t n = 0;
        if (dc_json_int(root, &n) != rows[i].whole || n != rows[i].value)
            fail_msg("%s gave %lld", rows[i].text, (long long)n);
        dc_arena_fini(&arena);
    }
}

static void number_text(double x, char *out, size_t room) {
    dc_text text;
    dc_text_init(&text);
    dc_json_number(&text, x);
    snprintf(out, room, "%s", text.bytes);
    dc_text_fini(&text);
}

static void test_number_round_trip(void **state) {
    (void)state;
    char s[64];
    number_text(0.1, s, sizeof s);
    assert_string_equal(s, "0.1");
    number_text(1e12, s, sizeof s);
    assert_string_equal(s, "1000000000000");
    number_text(1.0 / 3.0, s, sizeof s);
    assert_string_equal(s, "0.3333333333333333");
    number_text((double)NAN, s, sizeof s);
    assert_string_equal(s, "null");
    number_text(-(double)INFINITY, s, sizeof s);
    assert_string_equal(s, "null");
    for (uint32_t i = 0; i < 200000; i++) {
        dc_u32x4 r = dc_philox(7, 99, 0, i);
        uint64_t bits = (uint64_t)r.v[0] << 32 | r.v[1], back_bits;
        double x, back;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        number_text(x, s, sizeof s);
        back = strtod(s, NULL);
        memcpy(&back_bits, &back, sizeof back);
        assert_true(bits == back_bits);
    }
}

static void test_quote(void **state) {
    (void)state;
    dc_text text;
    dc_text_init(&text);
    dc_json_quote(&text, "a\"\\\b\f\n\r\t\x01\x1f\x7f/\xc3\xa9\xff");
    assert_string_equal(text.bytes,
                        "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f/\xc3\xa9\\ufffd\"");
    good(text.bytes, text.used);
    dc_text_fini(&text);
    // Every character that C can hold in a string comes back.
    for (int c = 1; c < 128; c++) {
        char s[2] = {(char)c, 0};
        dc_text_init(&text);
        dc_json_quote(&text, s);
        dc_arena arena;
        const dc_json *root;
        assert_int_equal(parse_n(&arena, text.bytes, text.used, &root), DC_OK);
        assert_string_equal(root->text, s);
        dc_arena_fini(&arena);
        dc_text_fini(&text);
    }
}

// Switch to a locale with a decimal comma, made for this test where the system can; false if it
// cannot.
static bool enter_comma_locale(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             folder);
    if (system(command) > 255) print_message("no localedef here\n");
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") && *localeconv()->decimal_point == ',';
}

static void test_locale(void **state) {
    (void)state;
    char folder[] = "/tmp/dcrl_locale_XXXXXX", s[64];
    assert_non_null(mkdtemp(folder));
    bool comma = enter_comma_locale(folder);
    dc_arena arena;
    const dc_json *root;
    dc_status status = parse_n(&arena, "1.5", 3, &root);
    bool right = status == DC_OK && root->number == 1.5;
    dc_arena_fini(&arena);
    number_text(1.5, s, sizeof s);
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    char command[256];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_true(right);
    assert_string_equal(s, "1.5");
    if (!comma) skip();
}

// A hostile object: half a million names, all distinct but one pair; and memory stays a small
// multiple.
static void test_many_names(void **state) {
    (void)state;
    enum { NAMES = 500000 };
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "{");
    for (int i = 0; i < NAMES; i++)
        dc_text_add(&text, "%s\"k%d\":0", i ? "," : "", i);
    clock_t start = clock();
    dc_text_add(&text, "}");
    good(text.bytes, text.used);
    text.bytes[text.used - 1] = ',';
    dc_text_add(&text, "\"k77\":0}");
    bad(text.bytes, text.used);
    assert_non_null(strstr(dc_error(), "'k77' stands twice"));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%d names twice: %.2f s\n", NAMES, seconds);
    assert_true(seconds < 30.0);
    dc_text_fini(&text);
}

static void test_memory_bound(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *s = malloc(N);
    assert_non_null(s);
    for (int i = 0; i < N; i += 2)
        memcpy(s + i, i ? ",1" : "[1", 2);
    s[N - 2] = ' ';
    s[N - 1] = ']';
    dc_arena arena;
    const dc_json *root;
    assert_int_equal(parse_n(&arena, s, N, &root), DC_OK);
    print_message("densest array: %.1f bytes a byte\n", (double)arena.total / N);
    assert_true(arena.total < (size_t)80 * N);
    dc_arena_fini(&arena);
    // With a limit the arena refuses, and the status says so.
    dc_arena_init(&arena, 1 << 20);
    assert_int_equal(dc_json_parse(&arena, "big.json", s, N, &root), DC_NO_MEMORY);
    assert_non_null(strstr(dc_error(), "big.json"));
    dc_arena_fini(&arena);
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes),         cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_prefixes),      cmocka_unit_test(test_depth),
        cmocka_unit_test(test_tree),          cmocka_unit_test(test_place_of_error),
        cmocka_unit_test(test_whole_numbers), cmocka_unit_test(test_number_round_trip),
        cmocka_unit_test(test_quote),         cmocka_unit_test(test_locale),
        cmocka_unit_test(test_many_names),    cmocka_unit_test(test_memory_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
