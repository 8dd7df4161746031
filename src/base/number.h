// Numbers as text, the same in every locale: strtod and printf follow the host program's decimal
// point, files and flags must not. Used by JSON and by option tables; what prints numbers by a format (texts,
// logs, messages) or has them read by another library (MuJoCo's models) does so between enter and leave.
#ifndef DC_NUMBER_H
#define DC_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dc_grammar {
    DC_GRAMMAR_JSON,  // RFC 8259: -1.5e3; no '+', no leading zeros, digits around the point
    DC_GRAMMAR_LOOSE, // what people type: +1, .5, 1., 007 too
} dc_grammar;

enum { DC_NUMBER_MAX = 32 }; // room for any number that dc_number_write writes

// Bytes of the decimal number at the start of s (n bytes); 0 if there is none. No hex, inf or nan.
size_t dc_number_scan(const char *s, size_t n, dc_grammar grammar);
// The nearest double of a scanned number (NUL-terminated); false when it overflows.
bool dc_number_real(const char *s, double *out);
// A scanned number (NUL-terminated) as int64, exactly: 3, 3.0 and 3e0 are whole, 3.5 and 1e19 are
// not.
bool dc_number_int(const char *s, int64_t *out);
// The shortest text that reads back to the same finite double; returns its length.
size_t dc_number_write(double x, char out[DC_NUMBER_MAX]);

// The "C" locale for this thread, until its result is given back.
locale_t dc_locale_enter(void);
void dc_locale_leave(locale_t before);

#endif
