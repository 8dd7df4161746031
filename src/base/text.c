// Growing text buffer, see text.h.
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dc_text_init(dc_text *text) {
    *text = (dc_text){0};
}

void dc_text_fini(dc_text *text) {
    free(text->bytes);
    *text = (dc_text){0};
}

// Room for n more bytes and a NUL.
static int reserve(dc_text *text, size_t n) {
    if (text->status != DC_OK) return 0;
    if (text->used + n + 1 <= text->size) return 1;
    size_t size = (text->used + n + 1) * 2;
    char *bytes = realloc(text->bytes, size);
    if (!bytes) {
        text->status = dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu bytes of text", size);
        return 0;
    }
    text->bytes = bytes;
    text->size = size;
    return 1;
}

void dc_text_bytes(dc_text *text, const char *bytes, size_t n) {
    if (!reserve(text, n)) return;
    if (n) memcpy(text->bytes + text->used, bytes, n);
    text->used += n;
    text->bytes[text->used] = 0;
}

void dc_text_add(dc_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 && text->status == DC_OK)
        text->status = dc_fail(DC_NO_MEMORY, NULL, "a text is longer than 2 GB");
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->bytes + text->used, (size_t)n + 1, format, again);
        text->used += (size_t)n;
    }
    va_end(again);
}

dc_status dc_text_status(const dc_text *text) {
    return text->status;
}
