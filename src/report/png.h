// Pictures as PNG: small ones by one byte a pixel into a palette, the first entry transparent, and
// photographs of red, green and blue.
#ifndef DC_PNG_H
#define DC_PNG_H

#include "base/text.h"

#include <stdint.h>

typedef struct dc_colour {
    uint8_t r, g, b;
} dc_colour;

// Append a PNG file of pixels (height, width), each a palette entry (256).
dc_status dc_png_write(dc_text *out, int width, int height, const uint8_t *pixels,
                       const dc_colour *palette);
// Append a PNG file of rgb (height, width, 3).
dc_status dc_png_rgb(dc_text *out, int width, int height, const uint8_t *rgb);

#endif
