// Pictures out of a file of raw bytes: tool_film WIDTH HEIGHT RATE IN OUT. All pictures of IN, (height,
// width, 3) each, are sampled and go to OUT, whose name says what it becomes. An error is one line.
#include "base/file.h"
#include "report/film.h"

#include <stdio.h>
#include <stdlib.h>

static dc_status make(dc_film *film, const uint8_t *rgb, size_t picture, size_t n) {
    for (size_t at = 0; at + picture <= n && dc_film_wants_samples(film); at += picture)
        dc_film_sample(film, rgb + at);
    for (size_t at = 0; at + picture <= n; at += picture)
        DC_TRY(dc_film_add(film, rgb + at));
    return dc_film_save(film);
}

int main(int argc, char **argv) {
    char *bytes = NULL;
    size_t n;
    dc_film *film = NULL;
    if (argc != 6) return 2;
    int width = atoi(argv[1]), height = atoi(argv[2]);
    dc_status status = dc_file_read(argv[4], 1 << 28, &bytes, &n);
    if (status == DC_OK) status = dc_film_new(&film, argv[5], width, height, atof(argv[3]));
    if (status == DC_OK)
        status = make(film, (const uint8_t *)bytes, 3 * (size_t)width * (size_t)height, n);
    dc_film_free(film);
    free(bytes);
    if (status != DC_OK) fprintf(stderr, "%s\n", dc_error());
    return status == DC_OK ? 0 : 1;
}
