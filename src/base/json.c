// Strict JSON, see json.h. The bytes come from files that anyone may have written: configs,
// presets, headers of safetensors files. What the parser promises:
//
// - memory is at most a small multiple of the input: all text (decoded strings, numbers as written) fits
//   one buffer as long as the input, since a decoded string is never longer than its source and
//   each is followed by a delimiter whose byte pays for the NUL; nodes come in chunks;
// - time is O(n log n): the names of an object are sorted once to find duplicates, so a million
//   equal or colliding keys cost no more than others;
// - depth is bounded, so is the C stack;
// - a name that holds NUL is refused, since names are handed out as C strings and two different
//   ones would look the same.
//
// The tree goes to the arena of the caller; nothing points back into the input.
#include "base/json.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 16, CHUNK_MAX = 4096 };

typedef struct parser {
    dc_arena *arena;
    const char *what;
    const char *bytes; // the document
    size_t n, at;      // its length, and the next byte
    int depth;
    char *text;     // next free byte for decoded text
    dc_json *nodes; // free nodes
    size_t nodes_left, chunk;
} parser;

static dc_status value(parser *p, dc_json **out);

// ---- errors

// Line and column (both from 1, the column in bytes) of the next byte.
static dc_status fail(const parser *p, const char *message) {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < p->at && i < p->n; i++) {
        if (p->bytes[i] != '\n') continue;
        line++;
        start = i + 1;
    }
    return dc_fail(DC_BAD_INPUT, "correct the file",
                   "not valid JSON, %s at line %zu, column %zu (%s)", message, line,
                   p->at - start + 1, p->what);
}

// ---- bytes

static int peek(const parser *p) {
    return p->at < p->n ? (unsigned char)p->bytes[p->at] : -1;
}

static void skip_space(parser *p) {
    for (int c = peek(p); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek(p))
        p->at++;
}

// Length of the UTF-8 character at s, or 0 when it is malformed: too long a form, a surrogate, past
// U+10FFFF, or cut short.
static size_t utf8_length(const unsigned char *s, size_t n) {
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
                    : s[0] >= 0xE0 && s[0] <= 0xEF ? 3
                    : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                                   : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return length;
}

bool dc_json_utf8(const char *s, size_t n) {
    const unsigned char *bytes = (const unsigned char *)s;
    size_t length = 1;
    for (size_t at = 0; at < n && length; at += length)
        length = utf8_length(bytes + at, n - at);
    return length != 0;
}

// ---- strings

static void put_utf8(parser *p, uint32_t c) {
    if (c < 0x80) {
        *p->text++ = (char)c;
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    *p->text++ = (char)(lead[more] | (c >> (6 * more)));
    while (more-- > 0)
        *p->text++ = (char)(0x80 | ((c >> (6 * more)) & 0x3F));
}

// Four hex digits after "\u".
static bool hex4(parser *p, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int c = peek(p);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

// After "\u": one character, or two that make a surrogate pair.
static dc_status unicode_escape(parser *p) {
    uint32_t high, low;
    if (!hex4(p, &high)) return fail(p, "\\u needs four hex digits");
    if (high >= 0xDC00 && high <= 0xDFFF) return fail(p, "a low surrogate comes first");
    if (high >= 0xD800 && high <= 0xDBFF) {
        if (p->n - p->at < 6 || memcmp(p->bytes + p->at, "\\u", 2) != 0)
            return fail(p, "a high surrogate stands alone");
        p->at += 2;
        if (!hex4(p, &low) || low < 0xDC00 || low > 0xDFFF)
            return fail(p, "a high surrogate stands alone");
        high = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
    }
    put_utf8(p, high);
    return DC_OK;
}

static dc_status escape(parser *p) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    p->at++;
    int c = peek(p);
    if (c == 'u') {
        p->at++;
        return unicode_escape(p);
    }
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (!found) return fail(p, "unknown escape");
    *p->text++ = to[found - from];
    p->at++;
    return DC_OK;
}

// A quoted string at the next byte, decoded into the text buffer and closed with NUL.
static dc_status string(parser *p, const char **out, size_t *length) {
    char *start = p->text;
    p->at++;
    for (;;) {
        int c = peek(p);
        if (c < 0) return fail(p, "a string has no end");
        if (c == '"') break;
        if (c < 0x20) return fail(p, "a control character inside a string");
        if (c == '\\') {
            DC_TRY(escape(p));
            continue;
        }
        size_t bytes = utf8_length((const unsigned char *)p->bytes + p->at, p->n - p->at);
        if (bytes == 0) return fail(p, "malformed UTF-8");
        memcpy(p->text, p->bytes + p->at, bytes);
        p->text += bytes;
        p->at += bytes;
    }
    p->at++;
    *out = start;
    *length = (size_t)(p->text - start);
    *p->text++ = 0;
    return DC_OK;
}

// ---- nodes

static dc_json *new_node(parser *p) {
    if (p->nodes_left == 0) {
        p->nodes = dc_arena_take(p->arena, p->chunk * sizeof *p->nodes);
        if (!p->nodes) return NULL;
        p->nodes_left = p->chunk;
        if (p->chunk < CHUNK_MAX) p->chunk *= 2;
    }
    p->nodes_left--;
    return p->nodes++;
}

static dc_status number(parser *p, dc_json *node) {
    size_t n = dc_number_scan(p->bytes + p->at, p->n - p->at, DC_GRAMMAR_JSON);
    if (n == 0) return fail(p, "malformed number");
    node->kind = DC_JSON_NUMBER;
    node->text = memcpy(p->text, p->bytes + p->at, n);
    node->text_length = n;
    p->text[n] = 0;
    if (!dc_number_real(node->text, &node->number)) return fail(p, "number too large");
    p->text += n + 1;
    p->at += n;
    return DC_OK;
}

static dc_status word(parser *p, dc_json *node) {
    static const char *const words[] = {"null", "true", "false"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (p->n - p->at < n || memcmp(p->bytes + p->at, words[i], n) != 0) continue;
        node->kind = i == 0 ? DC_JSON_NULL : DC_JSON_BOOL;
        node->truth = i == 1;
        p->at += n;
        return DC_OK;
    }
    return fail(p, p->at < p->n ? "unexpected character" : "unexpected end");
}

static int by_key(const void *a, const void *b) {
    const dc_json *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

// Find duplicate names by sorting; the parser stands behind the object.
static dc_status check_keys(const parser *p, const dc_json *object) {
    if (object->count < 2) return DC_OK;
    const dc_json **sorted = malloc(object->count * sizeof *sorted);
    if (!sorted) return dc_fail(DC_NO_MEMORY, NULL, "no memory to read JSON (%s)", p->what);
    size_t n = 0;
    for (const dc_json *c = object->child; c; c = c->next)
        sorted[n++] = c;
    qsort(sorted, n, sizeof *sorted, by_key);
    const char *twice = NULL;
    for (size_t i = 1; i < n && !twice; i++)
        if (!strcmp(sorted[i - 1]->key, sorted[i]->key)) twice = sorted[i]->key;
    free(sorted);
    if (!twice) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "keep one of them",
                   "the name '%.200s' stands twice in an object (%s)", twice, p->what);
}

// "name" : before a member's value.
static dc_status key(parser *p, const char **out) {
    size_t length;
    if (peek(p) != '"') return fail(p, "a quoted name is missing");
    DC_TRY(string(p, out, &length));
    if (strlen(*out) != length) return fail(p, "a name holds \\u0000");
    skip_space(p);
    if (peek(p) != ':') return fail(p, "':' is missing");
    p->at++;
    skip_space(p);
    return DC_OK;
}

// The members of an array or object, whose opening bracket is the next byte.
static dc_status members(parser *p, dc_json *node, int close) {
    dc_json **tail = &node->child;
    p->at++;
    skip_space(p);
    if (peek(p) == close) return p->at++, DC_OK;
    for (;;) {
        const char *name = NULL;
        if (close == '}') DC_TRY(key(p, &name));
        DC_TRY(value(p, tail));
        (*tail)->key = name;
        tail = &(*tail)->next;
        node->count++;
        skip_space(p);
        int c = peek(p);
        if (c != ',' && c != close)
            return fail(p, close == '}' ? "',' or '}' is missing" : "',' or ']' is missing");
        p->at++;
        if (c == close) return DC_OK;
        skip_space(p);
    }
}

static dc_status container(parser *p, dc_json *node, dc_json_kind kind) {
    if (p->depth == DC_JSON_DEPTH) return fail(p, "too many levels");
    node->kind = kind;
    p->depth++;
    DC_TRY(members(p, node, kind == DC_JSON_OBJECT ? '}' : ']'));
    p->depth--;
    return kind == DC_JSON_OBJECT ? check_keys(p, node) : DC_OK;
}

static dc_status value(parser *p, dc_json **out) {
    dc_json *node = new_node(p);
    if (!node) return DC_NO_MEMORY;
    *out = node;
    int c = peek(p);
    if (c == '{') return container(p, node, DC_JSON_OBJECT);
    if (c == '[') return container(p, node, DC_JSON_ARRAY);
    if (c == '-' || (c >= '0' && c <= '9')) return number(p, node);
    if (c != '"') return word(p, node);
    node->kind = DC_JSON_STRING;
    return string(p, &node->text, &node->text_length);
}

// ---- the interface

dc_status dc_json_parse(dc_arena *arena, const char *what, const char *bytes, size_t n,
                        const dc_json **root) {
    *root = NULL;
    parser p = {.arena = arena, .what = what, .bytes = bytes, .n = n, .chunk = FIRST_CHUNK};
    p.text = dc_arena_take(arena, n + 1);
    if (!p.text) return dc_fail_prefix(DC_NO_MEMORY, what);
    skip_space(&p);
    dc_json *top = NULL;
    dc_status status = value(&p, &top);
    if (status == DC_NO_MEMORY) return dc_fail_prefix(status, what);
    if (status != DC_OK) return status;
    skip_space(&p);
    if (p.at < n) return fail(&p, "something follows the value");
    *root = top;
    return DC_OK;
}

const dc_json *dc_json_get(const dc_json *object, const char *name) {
    if (!object || object->kind != DC_JSON_OBJECT) return NULL;
    const dc_json *c = object->child;
    while (c && strcmp(c->key, name) != 0)
        c = c->next;
    return c;
}

bool dc_json_int(const dc_json *node, int64_t *out) {
    return node && node->kind == DC_JSON_NUMBER && dc_number_int(node->text, out);
}

void dc_json_quote(dc_text *text, const char *s) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    size_t n = strlen(s);
    dc_text_bytes(text, "\"", 1);
    for (size_t at = 0, length; at < n; at += length) {
        const char *found = strchr(from, s[at]);
        length = utf8_length((const unsigned char *)s + at, n - at);
        if (found) {
            dc_text_add(text, "\\%c", to[found - from]);
        } else if (length == 0) {
            dc_text_add(text, "\\ufffd"); // not UTF-8: what is written must be read again
            length = 1;
        } else if ((unsigned char)s[at] < 0x20 || s[at] == 0x7f) {
            dc_text_add(text, "\\u%04x", (unsigned)(unsigned char)s[at]);
        } else if (length > 1 && !dc_text_shown(s + at)) { // of two or three bytes
            unsigned code = (unsigned char)s[at] & (0x7fu >> length);
            for (size_t i = 1; i < length; i++)
                code = code << 6 | ((unsigned char)s[at + i] & 0x3fu);
            dc_text_add(text, "\\u%04x", code);
        } else {
            dc_text_bytes(text, s + at, length);
        }
    }
    dc_text_bytes(text, "\"", 1);
}

void dc_json_number(dc_text *text, double x) {
    char out[DC_NUMBER_MAX];
    if (isfinite(x))
        dc_text_bytes(text, out, dc_number_write(x, out));
    else
        dc_text_bytes(text, "null", 4);
}
