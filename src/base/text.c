// Growing text buffer, see text.h.
#include "base/text.h"

#include "base/number.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
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
    locale_t before = dc_locale_enter();
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
    dc_locale_leave(before);
}

dc_status dc_text_status(const dc_text *text) {
    return text->status;
}

void dc_text_follow(dc_text *text, const dc_text *part) {
    if (text->status == DC_OK) text->status = part->status;
}

// ---- what may be shown

size_t dc_text_shown(const char *s) {
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) return u[0] >= 0x20 && u[0] != 0x7f ? 1 : 0;
    size_t n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4) return 0;
    uint32_t code = u[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (u[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    bool c1 = code < 0xa0, outside = code == 0xfffe || code == 0xffff || code > 0x10ffff;
    // Marks that turn the order of what follows around: a name could read as another one.
    bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return code < least[n] || surrogate || c1 || outside || turns ? 0 : n;
}

void dc_text_name(dc_text *text, const char *s) {
    while (*s) {
        size_t n = dc_text_shown(s);
        dc_text_bytes(text, n ? s : "?", n ? n : 1);
        s += n ? n : 1;
    }
}

void dc_text_clean(char *s) {
    while (*s) {
        size_t n = dc_text_shown(s);
        if (!n) *s = '?';
        s += n ? n : 1;
    }
}
