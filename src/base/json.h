// Strict JSON (RFC 8259): a reader into an arena and helpers for writing. No comments, no trailing
// commas, no duplicate keys, no NUL inside a key, no NaN, valid UTF-8 only, at most DC_JSON_DEPTH
// levels. Used for configs, presets and safetensors headers, all of which may be hostile.
#ifndef DC_JSON_H
#define DC_JSON_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DC_JSON_DEPTH = 64 };

typedef enum dc_json_kind {
    DC_JSON_NULL,
    DC_JSON_BOOL,
    DC_JSON_NUMBER,
    DC_JSON_STRING,
    DC_JSON_ARRAY,
    DC_JSON_OBJECT,
} dc_json_kind;

typedef struct dc_json dc_json;
struct dc_json {
    dc_json_kind kind;
    const char *key;    // name inside an object, else NULL
    const char *text;   // string value, or a number as it was written; NUL-terminated
    size_t text_length; // bytes of text (a string may hold NUL)
    double number;      // finite
    bool truth;
    dc_json *child; // first element of an array or object
    dc_json *next;  // next element of the parent
    size_t count;   // number of elements
};

// Parse n bytes. `what` names the document in errors ("config.json"); errors name line and column.
dc_status dc_json_parse(dc_arena *arena, const char *what, const char *bytes, size_t n,
                        const dc_json **root);
// Member of an object by name; NULL when absent or not an object.
const dc_json *dc_json_get(const dc_json *object, const char *key);
// Number as a whole number exactly representable in int64; false otherwise.
bool dc_json_int(const dc_json *value, int64_t *out);
// Whether n bytes are valid UTF-8.
bool dc_json_utf8(const char *s, size_t n);
// Append a quoted, escaped string; bytes that are not UTF-8 become U+FFFD.
void dc_json_quote(dc_text *text, const char *s);
// Append a number in the shortest form that reads back to the same double ("null" if not finite).
void dc_json_number(dc_text *text, double x);

#endif
