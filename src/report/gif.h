// Moving pictures as GIF: 255 colours for all of them, chosen from a sample, and of each picture only
// what differs from the one before. Pictures are written as they come, so memory does not depend on
// how many there are.
//
//     dc_gif_new -> dc_gif_sample (some) -> dc_gif_add (all, in order) -> dc_gif_save
#ifndef DC_GIF_H
#define DC_GIF_H

#include "base/status.h"

#include <stdint.h>

enum { DC_GIF_RATE_MOST = 50 }; // pictures per second; players slow down what is faster
typedef struct dc_gif dc_gif;

// Start a file of pictures (height, width, 3) that follow each other `rate` times per second. Nothing
// is at `path` before _save.
dc_status dc_gif_new(dc_gif **gif, const char *path, int width, int height, double rate);
// Look at colours of a picture that will come. At least one must be shown before the first _add.
void dc_gif_sample(dc_gif *gif, const uint8_t *rgb);
dc_status dc_gif_add(dc_gif *gif, const uint8_t *rgb);
dc_status dc_gif_save(dc_gif *gif); // once; _free must follow
void dc_gif_free(dc_gif *gif);      // without _save nothing is left behind. Nullable: gif

#endif
