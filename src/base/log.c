// Log sink, see log.h.
#include "base/log.h"

#include "base/number.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static dc_log_sink *sink_fn;
static void *sink_ctx;

void dc_log_set(dc_log_sink *sink, void *ctx) {
    sink_fn = sink;
    sink_ctx = ctx;
}

void dc_log(dc_level level, const char *format, ...) {
    if (!sink_fn) return;
    char line[1024];
    va_list args;
    locale_t before = dc_locale_enter();
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    dc_locale_leave(before);
    dc_text_clean(line); // which may tell what a hostile file says
    sink_fn(sink_ctx, level, line);
}
