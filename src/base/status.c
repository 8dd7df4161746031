// Status records: one message a thread, see status.h.
#include "base/status.h"

#include "base/number.h"
#include "base/text.h"
#undef dc_fail
#undef dc_fail_prefix

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 1024 };

static _Thread_local char last_error[MESSAGE_MAX];

dc_status dc_fail(dc_status code, const char *hint, const char *format, ...) {
    char text[MESSAGE_MAX] = ""; // formatted apart: an argument may be dc_error() itself
    va_list args;
    locale_t before = dc_locale_enter();
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dc_locale_leave(before);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    if (hint && used + 2 < sizeof text) snprintf(text + used, sizeof text - used, ": %s", hint);
    dc_text_clean(
        text); // one error is one line, whatever bytes a hostile file put into the message
    memcpy(last_error, text, sizeof text);
    return code;
}

dc_status dc_fail_prefix(dc_status code, const char *prefix) {
    return dc_fail(code, NULL, "%s: %s", prefix, last_error);
}

const char *dc_error(void) {
    return last_error;
}

void dc_error_clear(void) {
    last_error[0] = 0;
}

void dc_bug(const char *file, int line, const char *what) {
    fprintf(stderr, "dcrl: bug at %s:%d: expected %s\n", file, line, what);
    abort();
}
