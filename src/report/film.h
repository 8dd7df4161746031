// Film: pictures in order become a file, by its name: .gif, .mp4 (through ffmpeg), .png (one
// picture), anything else a folder of PNG files, frame-00000.png and so on. A file appears whole or
// not at all.
//
//     dc_film_new -> dc_film_sample (some, for the colours of a GIF) -> dc_film_add -> dc_film_save
#ifndef DC_FILM_H
#define DC_FILM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dc_film dc_film;

// Pictures are (height, width, 3). Errors: a folder that has something in it, no ffmpeg, a rate that
// a GIF cannot have. Borrows: path
dc_status dc_film_new(dc_film **film, const char *path, int width, int height, double rate);
// Whether a film of that name is a single picture; whether it takes samples.
bool dc_film_is_still(const char *path);
bool dc_film_wants_samples(const dc_film *film);
void dc_film_sample(dc_film *film, const uint8_t *rgb);
dc_status dc_film_add(dc_film *film, const uint8_t *rgb);
dc_status dc_film_save(dc_film *film); // once; _free must follow
void dc_film_free(dc_film *film);      // Nullable: film

#endif
