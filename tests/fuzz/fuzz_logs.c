// Fuzz target: what of a run's train.csv, timing.csv or eval.csv is kept when the run goes on. The part that is told
// to be good must be a header and whole rows of rising steps, and be found good again.
#include <stdlib.h>
#include <string.h>

#include "train/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char header[] = "step,loss,grad_norm\n";
enum { HEADER = sizeof header - 1, UNTIL = 1000 };

// Rows as plain code reads them.
static void check_rows(const char *at, const char *end) {
    long long before = -1;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        DC_CHECK(line); // whole
        char text[32] = "";
        memcpy(text, at, (size_t)(line - at) < sizeof text ? (size_t)(line - at) : sizeof text - 1);
        long long step = strtoll(text, NULL, 10);
        DC_CHECK(step > before && step <= UNTIL);
        before = step;
        at = line + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    dc_log_part part = dc_folder_log_part(bytes, size, header, UNTIL);
    DC_CHECK(part.good <= size && part.bad_line >= 0);
    if (part.good == 0) return 0;
    DC_CHECK(part.good >= HEADER && !memcmp(bytes, header, HEADER));
    check_rows(bytes + HEADER, bytes + part.good);
    dc_log_part again = dc_folder_log_part(bytes, part.good, header, UNTIL);
    DC_CHECK(again.good == part.good && again.bad_line == 0);
    return 0;
}
