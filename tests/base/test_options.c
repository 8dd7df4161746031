// Option tables: every kind, every way in, every error, and the round trip through JSON.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

typedef struct config {
    int64_t horizon, steps, seed;
    double rate, discount;
    bool flow;
    char data[DC_TEXT_MAX];
    int device;
    dc_int_list hidden, extra;
} config;

static const dc_option table[] = {
    DC_OPTION_INT(config, horizon, "10", 1, 1e6, "steps of a segment"),
    DC_OPTION_INT(config, steps, "1e6", 1, 1e12, "updates"),
    DC_OPTION_INT(config, seed, "0", -9.3e18, 9.3e18, "seed"),
    DC_OPTION_REAL_AS("learn_rate", config, rate, "3e-4", 0, 1, "step of Adam"),
    DC_OPTION_REAL_OR_AUTO(config, discount, "0.9", 0, 1, "discount"),
    DC_OPTION_BOOL(config, flow, "off", "flow policy"),
    DC_OPTION_TEXT(config, data, "", "data file"),
    DC_OPTION_CHOICE(config, device, "cpu", "cpu|cuda|cu", "where to run"),
    DC_OPTION_LIST(config, hidden, "512,512", 1, 65536, "widths"),
    DC_OPTION_LIST(config, extra, "", 0, 9, "may be empty"),
    {0},
};

#define NAMES "horizon, steps, seed, learn_rate, discount, flow, data, device, hidden, extra"

static config fresh(void) {
    config c;
    memset(&c, 0xAA, sizeof c);
    dc_options_init(table, &c);
    return c;
}

static void test_defaults(void **state) {
    (void)state;
    config c = fresh();
    assert_int_equal(c.horizon, 10);
    assert_int_equal(c.steps, 1000000);
    assert_true(c.rate == 3e-4);
    assert_false(c.flow);
    assert_string_equal(c.data, "");
    assert_int_equal(c.device, 0);
    assert_int_equal(c.hidden.count, 2);
    assert_int_equal(c.hidden.v[1], 512);
    assert_int_equal(c.extra.count, 0);
}

static void set(config *c, const char *name, const char *value) {
    if (dc_options_set(table, c, name, value) != DC_OK)
        fail_msg("%s=%s: %s", name, value, dc_error());
}

static void test_set(void **state) {
    (void)state;
    config c = fresh();
    set(&c, "horizon", "+2.5e1");
    assert_int_equal(c.horizon, 25);
    set(&c, "seed", "-9223372036854775808");
    assert_true(c.seed == INT64_MIN);
    set(&c, "seed", "9223372036854775807");
    assert_true(c.seed == INT64_MAX);
    set(&c, "learn_rate", ".5");
    assert_true(c.rate == 0.5);
    set(&c, "learn_rate", "1e-400"); // too small for a double: 0
    assert_true(c.rate == 0);
    static const char *const yes[] = {"on", "true", "1"}, *const no[] = {"off", "false", "0"};
    for (int i = 0; i < 3; i++) {
        set(&c, "flow", yes[i]);
        assert_true(c.flow);
        set(&c, "flow", no[i]);
        assert_false(c.flow);
    }
    set(&c, "data", "a b=\xc3\xa9,\"x\"\n");
    assert_string_equal(c.data, "a b=\xc3\xa9,\"x\"\n");
    set(&c, "device", "cu");
    assert_int_equal(c.device, 2);
    set(&c, "hidden", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16");
    assert_int_equal(c.hidden.count, 16);
    assert_int_equal(c.hidden.v[15], 16);
    set(&c, "hidden", "64");
    assert_int_equal(c.hidden.count, 1);
    assert_int_equal(c.hidden.v[1], 0); // nothing of the old list stays
    set(&c, "extra", "1,2");
    set(&c, "extra", "");
    assert_int_equal(c.extra.count, 0);
}

// A bad value gives exactly this message, and changes nothing.
static void test_errors(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"horizn", "5", "unknown option 'horizn': did you mean 'horizon'?"},
        {"learn-rate", "5", "unknown option 'learn-rate': did you mean 'learn_rate'?"},
        {"Device", "5", "unknown option 'Device': did you mean 'device'?"},
        {"stpes", "5", "unknown option 'stpes': did you mean 'steps'?"},
        {"zzz", "5", "unknown option 'zzz': the options are " NAMES},
        {"", "5", "unknown option '': the options are " NAMES},
        {"steps", "-5", "steps must be between 1 and 1e12 (-5)"},
        {"steps", "1e13", "steps must be between 1 and 1e12 (1e13)"},
        {"steps", "1e999", "steps must be between 1 and 1e12 (1e999)"},
        {"steps", "99999999999999999999",
         "steps must be between 1 and 1e12 (99999999999999999999)"},
        {"steps", "2.5", "steps must be a whole number between 1 and 1e12 (2.5)"},
        {"steps", "ten", "steps must be a whole number between 1 and 1e12 (ten)"},
        {"steps", "", "steps must be a whole number between 1 and 1e12 ()"},
        {"steps", "5x", "steps must be a whole number between 1 and 1e12 (5x)"},
        {"steps", " 5", "steps must be a whole number between 1 and 1e12 ( 5)"},
        {"steps", "0x10", "steps must be a whole number between 1 and 1e12 (0x10)"},
        {"steps", "1,5", "steps must be a whole number between 1 and 1e12 (1,5)"},
        {"learn_rate", "nan", "learn_rate must be a number between 0 and 1 (nan)"},
        {"learn_rate", "inf", "learn_rate must be a number between 0 and 1 (inf)"},
        {"learn_rate", "0,5", "learn_rate must be a number between 0 and 1 (0,5)"},
        {"learn_rate", "1.0000001", "learn_rate must be between 0 and 1 (1.0000001)"},
        {"learn_rate", "auto", "learn_rate must be a number between 0 and 1 (auto)"},
        {"discount", "aut", "discount must be auto, or a number between 0 and 1 (aut)"},
        {"discount", "-1", "discount must be between 0 and 1 (-1)"},
        {"learn_rate", "-1e999", "learn_rate must be between 0 and 1 (-1e999)"},
        {"flow", "maybe", "flow must be on or off (maybe)"},
        {"flow", "", "flow must be on or off ()"},
        {"data", "\xff", "data must be valid UTF-8 (?)"},
        {"device", "gpu", "device must be one of cpu, cuda, cu (gpu)"},
        {"device", "c", "device must be one of cpu, cuda, cu (c)"},
        {"device", "cpu|cuda", "device must be one of cpu, cuda, cu (cpu|cuda)"},
        {"device", "", "device must be one of cpu, cuda, cu ()"},
        {"hidden", "", "hidden must be comma-separated whole numbers between 1 and 65536 ()"},
        {"hidden", "1,,2",
         "hidden must be comma-separated whole numbers between 1 and 65536 (1,,2)"},
        {"hidden", "1,", "hidden must be comma-separated whole numbers between 1 and 65536 (1,)"},
        {"hidden", "0", "hidden must be comma-separated whole numbers between 1 and 65536 (0)"},
        {"hidden", "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8",
         "hidden must be a list of at most 16 numbers (1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8)"},
    };
    config c = fresh(), before = c;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(dc_options_set(table, &c, rows[i][0], rows[i][1]), DC_USAGE);
        assert_string_equal(dc_error(), rows[i][2]);
        assert_memory_equal(&c, &before, sizeof c);
    }
    char text[DC_TEXT_MAX + 1];
    memset(text, 'a', DC_TEXT_MAX);
    text[DC_TEXT_MAX] = 0;
    assert_int_equal(dc_options_set(table, &c, "data", text), DC_USAGE);
    text[DC_TEXT_MAX - 1] = 0;
    assert_int_equal(dc_options_set(table, &c, "data", text), DC_OK);
}

static dc_status read_text(config *c, const char *s) {
    dc_arena arena;
    const dc_json *root;
    dc_arena_init(&arena, 0);
    dc_status status = dc_json_parse(&arena, "test.json", s, strlen(s), &root);
    if (status == DC_OK) status = dc_options_read(table, c, root);
    dc_arena_fini(&arena);
    return status;
}

static void test_read(void **state) {
    (void)state;
    config c = fresh();
    assert_int_equal(
        read_text(&c, "{\"horizon\": 7, \"seed\": \"8\", \"learn_rate\": 1e-3, \"flow\": true,"
                      "\"data\": \"x\", \"device\": \"cuda\", \"hidden\": [3, 4]}"),
        DC_OK);
    assert_int_equal(c.horizon, 7);
    assert_int_equal(c.seed, 8);
    assert_true(c.rate == 1e-3);
    assert_true(c.flow);
    assert_string_equal(c.data, "x");
    assert_int_equal(c.device, 1);
    assert_int_equal(c.hidden.count, 2);
    assert_int_equal(c.hidden.v[1], 4);
    static const char *const bad[][2] = {
        {"[]", "options must be a JSON object"},
        {"{\"horizn\":1}", "unknown option 'horizn': did you mean 'horizon'?"},
        {"{\"horizon\":null}", "horizon must be a whole number"},
        {"{\"horizon\":true}", "horizon must be a whole number"},
        {"{\"horizon\":1.5}", "horizon must be a whole number between 1 and 1e6 (1.5)"},
        {"{\"horizon\":[1]}", "horizon must be a whole number"},
        {"{\"data\":5}", "data must be a string"},
        {"{\"data\":\"a\\u0000b\"}", "data must not hold NUL"},
        {"{\"device\":0}", "device must be a string"},
        {"{\"flow\":{}}", "flow must be true or false"},
        {"{\"hidden\":[\"1\"]}", "hidden must be an array of whole numbers"},
        {"{\"hidden\":[]}", "hidden must be comma-separated whole numbers between 1 and 65536 ()"},
        {"{\"hidden\":true}", "hidden must be an array of whole numbers"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_text(&c, bad[i][0]), DC_BAD_INPUT);
        assert_string_equal(dc_error(), bad[i][1]);
    }
}

static void test_json(void **state) {
    (void)state;
    config c = fresh();
    set(&c, "seed", "9007199254740993");
    set(&c, "learn_rate", "0.1");
    set(&c, "discount", "auto");
    set(&c, "data", "a\"b\n");
    set(&c, "device", "cuda");
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "{\n");
    dc_options_json(table, &c, &text);
    dc_text_add(&text, "\n}\n");
    assert_string_equal(text.bytes, "{\n"
                                    "  \"horizon\": 10,\n"
                                    "  \"steps\": 1000000,\n"
                                    "  \"seed\": 9007199254740993,\n"
                                    "  \"learn_rate\": 0.1,\n"
                                    "  \"discount\": \"auto\",\n"
                                    "  \"flow\": false,\n"
                                    "  \"data\": \"a\\\"b\\n\",\n"
                                    "  \"device\": \"cuda\",\n"
                                    "  \"hidden\": [512,512],\n"
                                    "  \"extra\": []\n"
                                    "}\n");
    config back = fresh();
    assert_int_equal(read_text(&back, text.bytes), DC_OK);
    assert_memory_equal(&back, &c, sizeof c);
    dc_text_fini(&text);
}

static void test_help(void **state) {
    (void)state;
    dc_text text;
    dc_text_init(&text);
    dc_options_help(table, true, &text);
    static const char *const lines[] = {
        "  --horizon N                steps of a segment (default 10; between 1 and 1e6)\n",
        "  --learn-rate X             step of Adam (default 3e-4; between 0 and 1)\n",
        "  --discount X               discount (default 0.9; auto, or between 0 and 1)\n",
        "  --flow[=on|off]            flow policy (default off)\n",
        "  --data TEXT                data file (no default)\n",
        "  --device WORD              where to run (default cpu; cpu|cuda|cu)\n",
        "  --hidden N,N,..            widths (default 512,512; between 1 and 65536)\n",
        "  --extra N,N,..             may be empty (between 0 and 9)\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(text.bytes, lines[i])) fail_msg("no '%s' in\n%s", lines[i], text.bytes);
    dc_text_fini(&text);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"train", "eval", "report", "a"};
    assert_string_equal(dc_nearest("trian", names, 4), "train");
    assert_string_equal(dc_nearest("TRAIN", names, 4), "train");
    assert_string_equal(dc_nearest("evla", names, 4), "eval");
    assert_string_equal(dc_nearest("reprt", names, 4), "report");
    assert_null(dc_nearest("b", names, 4)); // one slip, but nothing of the word is left
    assert_null(dc_nearest("bench", names, 4));
    assert_null(dc_nearest("", names, 4));
    assert_null(dc_nearest("train", names, 0));
    char longer[1000];
    memset(longer, 'a', sizeof longer);
    longer[999] = 0;
    assert_null(dc_nearest(longer, names, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_set),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_read),     cmocka_unit_test(test_json), cmocka_unit_test(test_help),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
