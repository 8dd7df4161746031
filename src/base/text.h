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

#endif
