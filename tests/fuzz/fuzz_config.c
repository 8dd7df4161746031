// Fuzz target: any bytes as a config file over a table with every kind of option. A config that is
// taken must be written in a form that reads back to the same bytes. Input that is not JSON is
// tried as "name=value", the way of --set.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct config {
    int64_t steps, seed;
    double rate, any;
    bool flow;
    char data[DC_TEXT_MAX];
    int device;
    dc_int_list hidden, extra;
} config;

static const dc_option table[] = {
    {"steps", DC_INT, DC_FIXED, offsetof(config, steps), "1e6", 1, 1e12, NULL, "updates"},
    {"seed", DC_INT, DC_FIXED, offsetof(config, seed), "0", -9.3e18, 9.3e18, NULL, "seed"},
    {"rate", DC_REAL, DC_FIXED, offsetof(config, rate), "3e-4", 0, 1, NULL, "step of Adam"},
    {"any", DC_REAL, DC_FIXED, offsetof(config, any), "0", -1.7e308, 1.7e308, NULL, "any number"},
    {"flow", DC_BOOL, DC_FIXED, offsetof(config, flow), "off", 0, 0, NULL, "flow policy"},
    {"data", DC_TEXT, DC_FIXED, offsetof(config, data), "", 0, 0, NULL, "data file"},
    {"device", DC_CHOICE, DC_FIXED, offsetof(config, device), "cpu", 0, 0, "cpu|cuda",
     "where to run"},
    {"hidden", DC_LIST, DC_FIXED, offsetof(config, hidden), "512,512", 1, 65536, NULL, "widths"},
    {"extra", DC_LIST, DC_FIXED, offsetof(config, extra), "", -9e18, 9e18, NULL, "may be empty"},
    {0},
};

static void start(config *c) {
    memset(c, 0, sizeof *c);
    dc_options_init(table, c);
}

static void round_trip(dc_arena *arena, const config *c) {
    config back;
    const dc_json *root;
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text, "{\n");
    dc_options_json(table, c, &text);
    dc_text_add(&text, "\n}\n");
    DC_CHECK(dc_text_status(&text) == DC_OK);
    DC_CHECK(dc_json_parse(arena, "again", text.bytes, text.used, &root) == DC_OK);
    start(&back);
    DC_CHECK(dc_options_read(table, &back, root) == DC_OK);
    DC_CHECK(!memcmp(&back, c, sizeof back));
    dc_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config c;
    dc_arena arena;
    const dc_json *root;
    start(&c);
    dc_arena_init(&arena, (size_t)64 << 20);
    if (dc_json_parse(&arena, "fuzz", (const char *)data, size, &root) == DC_OK) {
        (void)dc_options_read(table, &c, root);
    } else {
        char *pair = dc_arena_text(&arena, (const char *)data, size), *equals = strchr(pair, '=');
        if (equals) {
            *equals = 0;
            (void)dc_options_set(table, &c, pair, equals + 1);
        }
    }
    round_trip(&arena, &c);
    dc_arena_fini(&arena);
    return 0;
}
