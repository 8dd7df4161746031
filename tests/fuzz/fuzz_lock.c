// Fuzz target: results of `dcrl lock`, a JSON object a line, to table, sentence and plot. What is taken survives
// being written and read again.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "report/lock_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESULTS = 100 };

static dc_status read_one(dc_arena *arena, const char *text, size_t n, dc_lock_result *r) {
    const dc_json *root;
    DC_TRY(dc_json_parse(arena, "fuzz", text, n, &root));
    return dc_lock_result_read(root, "fuzz", r);
}

static void round_trip(dc_arena *arena, const dc_lock_result *r) {
    dc_lock_result back;
    dc_text text;
    dc_text_init(&text);
    dc_lock_result_json(r, &text);
    DC_CHECK(dc_text_status(&text) == DC_OK);
    DC_CHECK(read_one(arena, text.bytes, text.used, &back) == DC_OK);
    DC_CHECK(!strcmp(back.agent, r->agent) && back.horizon == r->horizon && back.seed == r->seed);
    DC_CHECK(back.score.accumulated_error == r->score.accumulated_error &&
             back.score.bins == r->score.bins);
    dc_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static dc_lock_result results[RESULTS];
    const char *at = (const char *)data, *end = at + size;
    int count = 0;
    dc_arena arena;
    dc_arena_init(&arena, (size_t)64 << 20);
    while (at < end && count < RESULTS) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((line ? line : end) - at);
        if (read_one(&arena, at, n, &results[count]) == DC_OK)
            round_trip(&arena, &results[count++]);
        at += n + 1;
    }
    if (count) {
        dc_text out;
        dc_text_init(&out);
        dc_lock_table(results, count, &out);
        dc_lock_sentence(results, count, &out);
        (void)dc_lock_plot(results, count, &out);
        dc_text_fini(&out);
    }
    dc_arena_fini(&arena);
    return 0;
}
