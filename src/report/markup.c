// Text and numbers for pages and pictures, see markup.h.
#include "report/markup.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int dc_markup_text(dc_text *out, const char *s, int most) {
    int length = 0;
    for (; s && *s; length++) {
        if (length == most) {
            dc_text_add(out, "…");
            return length + 1;
        }
        size_t n = dc_text_shown(s);
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
        size_t n = dc_text_shown(s);
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

const char *dc_markup_count(int64_t n, char out[DC_COUNT_MAX]) {
    static const char *const unit[] = {"", "k", "M", "B", "T"};
    if (n <= 0) return "–";
    double x = (double)n;
    int u = 0;
    for (; u < 4 && x >= 999.5; u++)
        x /= 1000;
    snprintf(out, DC_COUNT_MAX, "%.*f", u ? (x < 9.995) + (x < 99.95) : 0, x);
    char *point = out + strcspn(out, ".,"), *end = out + strlen(out);
    if (*point) {
        *point = '.';
        while (end[-1] == '0')
            end--;
        end -= end - 1 == point;
    }
    snprintf(end, (size_t)(out + DC_COUNT_MAX - end), "%s", unit[u]);
    return out;
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
