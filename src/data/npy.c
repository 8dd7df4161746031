// The NPY header and the conversion loops, see npy.h.
//
// A header is six magic bytes, a version, a length, and then the text of a Python dictionary with
// exactly three keys:
//
//     {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 30), }
//
// padded with blanks and closed by a newline. The text is read by a small parser of Python literals
// that knows only what such a dictionary may hold; anything else is an error, so two readers can
// never disagree about what a file means. The bytes come from data/npz; the result goes back there.
#include "data/npy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct {
    char code[3]; // as numpy writes it, without byte order
    uint8_t size;
    const char *name;
} dtypes[DC_DTYPES] = {
    [DC_B1] = {"b1", 1, "bool"},    [DC_I1] = {"i1", 1, "int8"},    [DC_I2] = {"i2", 2, "int16"},
    [DC_I4] = {"i4", 4, "int32"},   [DC_I8] = {"i8", 8, "int64"},   [DC_U1] = {"u1", 1, "uint8"},
    [DC_U2] = {"u2", 2, "uint16"},  [DC_U4] = {"u4", 4, "uint32"},  [DC_U8] = {"u8", 8, "uint64"},
    [DC_F2] = {"f2", 2, "float16"}, [DC_F4] = {"f4", 4, "float32"}, [DC_F8] = {"f8", 8, "float64"},
};

static const char damaged[] = "the file is damaged: copy or make it again";

size_t dc_dtype_size(dc_dtype type) {
    return dtypes[type].size;
}

const char *dc_dtype_name(dc_dtype type) {
    return dtypes[type].name;
}

bool dc_dtype_is_float(dc_dtype type) {
    return type == DC_F2 || type == DC_F4 || type == DC_F8;
}

bool dc_dtype_find(const char *name, dc_dtype *type) {
    for (int t = 0; t < DC_DTYPES; t++)
        if (!strcmp(dtypes[t].name, name)) return *type = (dc_dtype)t, true;
    return false;
}

dc_status dc_npy_make(dc_npy *npy, dc_dtype type, int ndim, const int64_t *shape) {
    *npy = (dc_npy){.type = type, .ndim = ndim};
    if (ndim < 0 || ndim > DC_NPY_DIMS)
        return dc_fail(DC_BAD_INPUT, "at most 32 are possible", "an array of %d dimensions", ndim);
    // Zeros count as ones at first, so that an empty array cannot hide an absurd shape.
    uint64_t bytes = dc_dtype_size(type);
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return dc_fail(DC_BAD_INPUT, damaged, "a negative dimension in the shape");
        npy->shape[d] = shape[d];
        empty |= shape[d] == 0;
        uint64_t n = shape[d] ? (uint64_t)shape[d] : 1;
        if (bytes > INT64_MAX / n)
            return dc_fail(DC_BAD_INPUT, damaged, "a shape of more than 2^63 bytes");
        bytes *= n;
    }
    npy->bytes = empty ? 0 : bytes;
    npy->count = npy->bytes / dc_dtype_size(type);
    return DC_OK;
}

// ---- parsing ----

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

// Take one character if it is next (blanks may stand before it).
static bool take(cursor *c, char want) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    skip_blanks(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

// A quoted string without escapes; its text is start ... start + n.
static bool take_string(cursor *c, const char **start, size_t *n) {
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    *start = c->at;
    while (c->at < c->end && *c->at != quote && *c->at != '\\' && *c->at != '\n')
        c->at++;
    if (c->at == c->end || *c->at != quote) return false;
    *n = (size_t)(c->at++ - *start);
    return true;
}

static bool take_size(cursor *c, int64_t *value) {
    skip_blanks(c);
    const char *start = c->at;
    int64_t v = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        int digit = *c->at - '0';
        if (v > (INT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *value = v;
    return c->at > start && (*start != '0' || c->at == start + 1);
}

// () or (3,) or (3, 4) or (3, 4,)
static bool take_shape(cursor *c, int64_t *shape, int *ndim) {
    *ndim = 0;
    if (!take(c, '(')) return false;
    bool comma = true;
    while (!take(c, ')')) {
        if (!comma || *ndim == DC_NPY_DIMS || !take_size(c, &shape[*ndim])) return false;
        (*ndim)++;
        comma = take(c, ',');
    }
    return *ndim != 1 || comma; // (3) is a number, not a tuple
}

static dc_status unsupported_descr(const char *text, size_t n) {
    return dc_fail(DC_UNSUPPORTED, "save it as numbers, for instance with x.astype('<f4')",
                   "values of type '%.*s' cannot be read", n < 64 ? (int)n : 64, text);
}

// '<f4' and its kind. '|' says that order does not matter; '>' is the wrong one unless it does not.
static dc_status parse_descr(const char *text, size_t n, dc_dtype *type) {
    for (int t = 0; n == 3 && t < DC_DTYPES; t++) {
        if (memcmp(text + 1, dtypes[t].code, 2) != 0) continue;
        *type = (dc_dtype)t;
        bool single = dtypes[t].size == 1;
        if (text[0] == '<' || (single && (text[0] == '|' || text[0] == '>'))) return DC_OK;
        if (text[0] == '>')
            return dc_fail(DC_UNSUPPORTED, "save it with x.astype(x.dtype.newbyteorder('<'))",
                           "big-endian values ('%.3s') cannot be read", text);
    }
    return unsupported_descr(text, n);
}

static dc_status bad_header(const char *what) {
    return dc_fail(DC_BAD_INPUT, damaged, "the npy header is malformed (%s)", what);
}

// The three values of the dictionary, as found.
typedef struct fields {
    unsigned seen; // bit 0 descr, 1 fortran_order, 2 shape
    const char *descr;
    size_t descr_length;
    bool fortran;
    int ndim;
    int64_t shape[DC_NPY_DIMS];
} fields;

static dc_status parse_value(cursor *c, fields *f, unsigned key) {
    if (f->seen & 1u << key) return bad_header("a key comes twice");
    f->seen |= 1u << key;
    if (key == 0) {
        if (take(c, '['))
            return dc_fail(DC_UNSUPPORTED, "save each field as an array of its own",
                           "arrays of records cannot be read");
        return take_string(c, &f->descr, &f->descr_length) ? DC_OK : bad_header("descr");
    }
    if (key == 1) {
        f->fortran = take_word(c, "True");
        return f->fortran || take_word(c, "False") ? DC_OK : bad_header("fortran_order");
    }
    return take_shape(c, f->shape, &f->ndim) ? DC_OK : bad_header("shape");
}

static dc_status parse_key(cursor *c, unsigned *key) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *text;
    size_t n;
    if (!take_string(c, &text, &n)) return bad_header("a key is missing");
    for (*key = 0; *key < 3; (*key)++)
        if (n == strlen(keys[*key]) && memcmp(text, keys[*key], n) == 0) return DC_OK;
    return bad_header("unknown key");
}

static dc_status parse_dict(cursor *c, fields *f) {
    if (!take(c, '{')) return bad_header("not a dictionary");
    bool comma = true;
    while (!take(c, '}')) {
        unsigned key;
        if (!comma) return bad_header("a comma is missing");
        DC_TRY(parse_key(c, &key));
        if (!take(c, ':')) return bad_header("a colon is missing");
        DC_TRY(parse_value(c, f, key));
        comma = take(c, ',');
    }
    skip_blanks(c);
    if (c->at != c->end) return bad_header("text after the dictionary");
    return f->seen == 7 ? DC_OK : bad_header("descr, fortran_order or shape is missing");
}

// Length of what precedes the text: 10 bytes in version 1, 12 later; 0 when it is no header at all.
static size_t prefix_size(const uint8_t *bytes, size_t n) {
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[7] != 0) return 0;
    if (bytes[6] == 1) return 10;
    return (bytes[6] == 2 || bytes[6] == 3) && n >= 12 ? 12 : 0;
}

dc_status dc_npy_header_size(const uint8_t *bytes, size_t n, size_t *size) {
    size_t prefix = prefix_size(bytes, n);
    if (!prefix) return bad_header("it does not start as version 1, 2 or 3 does");
    uint64_t text = bytes[8] | (uint64_t)bytes[9] << 8;
    if (prefix == 12) text |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (text > DC_NPY_HEADER_MAX - prefix) return bad_header("longer than 64 KiB");
    *size = prefix + (size_t)text;
    return DC_OK;
}

dc_status dc_npy_parse(dc_npy *npy, const uint8_t *bytes, size_t n) {
    size_t header;
    DC_TRY(dc_npy_header_size(bytes, n, &header));
    if (header > n) return bad_header("cut short");
    fields f = {0};
    const char *text = (const char *)bytes;
    DC_TRY(parse_dict(&(cursor){text + prefix_size(bytes, n), text + header}, &f));
    dc_dtype type = DC_F4;
    DC_TRY(parse_descr(f.descr, f.descr_length, &type));
    DC_TRY(dc_npy_make(npy, type, f.ndim, f.shape));
    npy->header = header;
    if (f.fortran && f.ndim > 1)
        return dc_fail(DC_UNSUPPORTED, "save it with numpy.ascontiguousarray",
                       "arrays in Fortran order cannot be read");
    return DC_OK;
}

// ---- writing ----

void dc_npy_write(dc_npy *npy, uint8_t *bytes) {
    char text[DC_NPY_WRITE_MAX];
    size_t n = 10, room = sizeof text;
    char order = dc_dtype_size(npy->type) == 1 ? '|' : '<';
    memset(text, ' ', room);
    n +=
        (size_t)snprintf(text + n, room - n, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                         order, dtypes[npy->type].code);
    for (int d = 0; d < npy->ndim; d++)
        n +=
            (size_t)snprintf(text + n, room - n, "%s%lld%s", d ? " " : "", (long long)npy->shape[d],
                             d + 1 < npy->ndim || npy->ndim == 1 ? "," : "");
    n += (size_t)snprintf(text + n, room - n, "), }");
    text[n] = ' '; // the NUL that snprintf left
    size_t size = (n + 1 + 63) / 64 * 64;
    DC_CHECK(size <= room);
    text[size - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01", 8); // its closing NUL is the minor version
    text[8] = (char)((size - 10) & 255);
    text[9] = (char)((size - 10) >> 8);
    memcpy(bytes, text, size);
    npy->header = size;
}

// ---- conversion ----

// Half to float without branches, so that the loop vectorises: the exponent is moved by a product
// (which is exact and takes care of subnormals), infinities and NaN keep a full exponent.
static inline float half_to_float(uint16_t h) {
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    float scaled;
    memcpy(&scaled, &magnitude, sizeof scaled);
    scaled *= 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    bits |= sign | ((h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0);
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

// One loop a type; memcpy is an unaligned load to the compiler.
#define CONVERT(ctype, expression)                                                                 \
    for (size_t i = 0; i < n; i++) {                                                               \
        ctype v;                                                                                   \
        memcpy(&v, bytes + i * sizeof v, sizeof v);                                                \
        out[i] = (expression);                                                                     \
    }                                                                                              \
    return

#define CONVERT_ALL(real)                                                                          \
    switch (type) {                                                                                \
    case DC_B1:                                                                                    \
        CONVERT(uint8_t, v ? 1 : 0);                                                               \
    case DC_I1:                                                                                    \
        CONVERT(int8_t, (real)v);                                                                  \
    case DC_I2:                                                                                    \
        CONVERT(int16_t, (real)v);                                                                 \
    case DC_I4:                                                                                    \
        CONVERT(int32_t, (real)v);                                                                 \
    case DC_I8:                                                                                    \
        CONVERT(int64_t, (real)v);                                                                 \
    case DC_U1:                                                                                    \
        CONVERT(uint8_t, (real)v);                                                                 \
    case DC_U2:                                                                                    \
        CONVERT(uint16_t, (real)v);                                                                \
    case DC_U4:                                                                                    \
        CONVERT(uint32_t, (real)v);                                                                \
    case DC_U8:                                                                                    \
        CONVERT(uint64_t, (real)v);                                                                \
    case DC_F2:                                                                                    \
        CONVERT(uint16_t, (real)half_to_float(v));                                                 \
    case DC_F4:                                                                                    \
        CONVERT(float, (real)v);                                                                   \
    case DC_F8:                                                                                    \
        CONVERT(double, (real)v);                                                                  \
    case DC_DTYPES:                                                                                \
        break;                                                                                     \
    }                                                                                              \
    dc_bug(__FILE__, __LINE__, "a type of the table")

void dc_npy_floats(dc_dtype type, const uint8_t *bytes, size_t n, float *out) {
    CONVERT_ALL(float);
}

void dc_npy_doubles(dc_dtype type, const uint8_t *bytes, size_t n, double *out) {
    CONVERT_ALL(double);
}
