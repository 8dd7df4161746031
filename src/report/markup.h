// Text and numbers for pages and pictures. Names come from flags and files, so nothing reaches a
// page or a figure but through here; numbers are the same in every locale.
#ifndef DC_MARKUP_H
#define DC_MARKUP_H

#include "base/text.h"

#include <limits.h>
#include <stdint.h>

// Append text for HTML and XML: what they reserve is escaped, what they forbid replaced, and what
// is longer than `most` characters cut. Returns the characters shown. Nullable: s.
int dc_markup_text(dc_text *out, const char *s, int most);
enum { DC_MARKUP_ALL = INT_MAX }; // for `most`: the whole text
// Characters that dc_markup_text would show.
int dc_markup_length(const char *s, int most);
// Append a number with a fixed count of decimals; a dash if it is not finite.
void dc_markup_fixed(dc_text *out, double x, int decimals);
// A count in few digits: 300k, 1.25M, 1B; a dash for 0, which stands for unknown.
enum { DC_COUNT_MAX = 32 };
const char *dc_markup_count(int64_t n, char out[DC_COUNT_MAX]);
// Append bytes as base64, for a picture inside a page.
void dc_markup_base64(dc_text *out, const char *bytes, size_t n);

#endif
