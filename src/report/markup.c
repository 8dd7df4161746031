// Text and numbers for pages and pictures, see markup.h.
#include "report/markup.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Bytes of the UTF-8 character at s that XML may hold; 0 if there is none.
static size_t character(const char *s) {
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
    return code < least[n] || surrogate || c1 || outside ? 0 : n;
}

int dc_markup_text(dc_text *out, const char *s, int most) {
    int length = 0;
    for (; s && *s; length++) {
        if (length == most) {
            dc_text_add(out, "…");
            return length + 1;
        }
        size_t n = character(s);
        if (n == 0) {
            dc_text_add(out, "�");
        } else if (strchr("&<>\"'", *s)) {
            dc_text_add(out, "&#%d;", *s);
        } else {
            dc_text_bytes(out, s, n);
        }
        s += n ? n : 1;
    }
    return length;
}

int dc_markup_length(const char *s, int most) {
    int length = 0;
    for (; s && *s && length <= most; length++) {
        size_t n = character(s);
        s += n ? n : 1;
    }
    return length;
}

void dc_markup_fixed(dc_text *out, double x, int decimals) {
    char text[400]; // the widest double with its decimals
    if (!isfinite(x)) {
        dc_text_add(out, "–");
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, x);
    char *comma = strchr(text, ',');
    if (comma) *comma = '.';
    bool zero = text[0] == '-' && !text[1 + strspn(text + 1, "0.")]; // "-0.0"
    dc_text_add(out, "%s", text + zero);
}

void dc_markup_base64(dc_text *out, const char *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t word = 0;
        for (size_t k = 0; k < 3; k++)
            word = word << 8 | (i + k < n ? (unsigned char)bytes[i + k] : 0);
        char four[4];
        for (int k = 0; k < 4; k++)
            four[k] = digits[word >> (18 - 6 * k) & 63];
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        dc_text_bytes(out, four, 4);
    }
}
