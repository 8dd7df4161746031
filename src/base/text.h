// Growing text buffer: JSON, SVG, CSV and help are written here first. Errors stick: after one
// failed append every further call does nothing, and dc_text_status returns that at the end.
#ifndef DC_TEXT_H
#define DC_TEXT_H

#include "base/status.h"

#include <stddef.h>

typedef struct dc_text {
    char *bytes; // NUL-terminated once anything was appended; NULL before
    size_t used, size;
    dc_status status;
} dc_text;

void dc_text_init(dc_text *text);
void dc_text_fini(dc_text *text);
void dc_text_add(dc_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dc_text_bytes(dc_text *text, const char *bytes, size_t n);
dc_status dc_text_status(const dc_text *text);
// Bytes of the character at s if a terminal and a page may show it: UTF-8, and no control character; else 0.
size_t dc_text_shown(const char *s);
// Append a name from outside, with '?' for every byte that may not be shown.
void dc_text_name(dc_text *text, const char *s);
// The same in place.
void dc_text_clean(char *s);
// What was to become part of a text was lost: if `part` failed, the text fails as well.
void dc_text_follow(dc_text *text, const dc_text *part);

#endif
