// Fuzz target: any bytes as JSON. What is taken is walked, and its strings and numbers must survive
// a round trip through the writers.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(const dc_json *v, dc_text *out) {
    switch (v->kind) {
    case DC_JSON_NULL:
        dc_text_add(out, "null");
        break;
    case DC_JSON_BOOL:
        dc_text_add(out, v->truth ? "true" : "false");
        break;
    case DC_JSON_NUMBER:
        dc_json_number(out, v->number);
        break;
    case DC_JSON_STRING:
        dc_json_quote(out, v->text);
        break;
    case DC_JSON_ARRAY:
    case DC_JSON_OBJECT:
        dc_text_add(out, v->kind == DC_JSON_ARRAY ? "[" : "{");
        for (const dc_json *c = v->child; c; c = c->next) {
            if (c != v->child) dc_text_add(out, ",");
            if (c->key) {
                dc_json_quote(out, c->key);
                dc_text_add(out, ":");
            }
            write_value(c, out);
        }
        dc_text_add(out, v->kind == DC_JSON_ARRAY ? "]" : "}");
    }
}

// The same tree, but for strings that hold NUL, which the writer cannot know of.
static void compare(const dc_json *a, const dc_json *b) {
    DC_CHECK(a->kind == b->kind && a->count == b->count && a->truth == b->truth);
    DC_CHECK(!a->key == !b->key && (!a->key || !strcmp(a->key, b->key)));
    if (a->kind == DC_JSON_NUMBER) {
        int64_t n;
        DC_CHECK(!memcmp(&a->number, &b->number, sizeof a->number));
        if (dc_json_int(a, &n) && n > -(1LL << 53) && n < 1LL << 53)
            DC_CHECK(a->number == (double)n);
    }
    if (a->kind == DC_JSON_STRING) DC_CHECK(!strcmp(a->text, b->text));
    const dc_json *x = a->child, *y = b->child;
    size_t count = 0;
    for (; x && y; x = x->next, y = y->next, count++)
        compare(x, y);
    DC_CHECK(!x && !y && count == a->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dc_arena arena;
    const dc_json *first, *second;
    dc_arena_init(&arena, (size_t)64 << 20);
    if (dc_json_parse(&arena, "fuzz", (const char *)data, size, &first) == DC_OK) {
        dc_text text;
        dc_text_init(&text);
        write_value(first, &text);
        DC_CHECK(dc_text_status(&text) == DC_OK);
        DC_CHECK(dc_json_parse(&arena, "again", text.bytes, text.used, &second) == DC_OK);
        compare(first, second);
        dc_text_fini(&text);
    }
    dc_arena_fini(&arena);
    return 0;
}
