// GIF, see gif.h. Colours fall into 64^3 bins, bins into 255 boxes by median cut: the box whose weight
// times squared side is largest is split at the median of its longest side, until there are enough.
// The 256th entry is transparent and stands for pixels that stay as they are. No dithering: it would
// make still places flicker and files several times as large.
#include "report/gif.h"

#include "base/file.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 64,
    BINS = SIDE * SIDE * SIDE,
    RGB = 3,
    COLOURS = 255,
    CLEAR_PIXEL = 255,
    BITS = 8,
    CLEAR = 1 << BITS,
    STOP,
    FIRST,
    CODES = 4096,
    BUCKETS = 16384,
    BLOCK = 255
};

typedef struct bin {
    uint64_t count, sum[RGB];
} bin;

struct dc_gif {
    dc_save save;
    dc_text bytes; // of the picture in the making
    int width, height;
    double rate;
    int64_t pictures;
    bin *bins;           // (BINS) of the sample
    uint8_t *nearest;    // (BINS) entry of a colour
    uint8_t *last, *now; // (height, width) entries of the last picture and this one
    uint8_t palette[256][RGB];
    bool chosen; // the palette is
};

static size_t bin_of(const uint8_t *rgb) {
    return (size_t)(rgb[0] / 4) * SIDE * SIDE + (size_t)(rgb[1] / 4) * SIDE + rgb[2] / 4;
}

static int side_of(int at, int axis) {
    return axis == 0 ? at / (SIDE * SIDE) : axis == 1 ? at / SIDE % SIDE : at % SIDE;
}

// ---- the palette ----

typedef struct box {
    int *at; // (count) its bins
    int count;
    uint64_t weight; // pixels
    int axis, side;  // the longest
} box;

static void measure(box *b, const bin *bins) {
    b->weight = 0;
    b->side = -1;
    for (int k = 0; k < b->count; k++)
        b->weight += bins[b->at[k]].count;
    for (int axis = 0; axis < RGB; axis++) {
        int low = SIDE, high = 0;
        for (int k = 0; k < b->count; k++) {
            int x = side_of(b->at[k], axis);
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        if (high - low <= b->side) continue;
        b->side = high - low;
        b->axis = axis;
    }
}

// Cut a box in two by a counting sort along its longest side; room: (BINS)
static box cut(box *b, const bin *bins, int *room) {
    int start[SIDE + 1] = {0}, middle;
    uint64_t weight[SIDE] = {0}, seen = 0;
    for (int k = 0; k < b->count; k++) {
        start[side_of(b->at[k], b->axis) + 1]++;
        weight[side_of(b->at[k], b->axis)] += bins[b->at[k]].count;
    }
    for (int x = 0; x < SIDE; x++)
        start[x + 1] += start[x];
    // Both halves get something, because the side is at least 1.
    for (middle = 0; middle < SIDE - 1; middle++) {
        seen += weight[middle];
        if (start[middle + 1] > 0 && (seen * 2 >= b->weight || start[middle + 2] == b->count))
            break;
    }
    int first = start[middle + 1];
    int place[SIDE];
    memcpy(place, start, sizeof place);
    for (int k = 0; k < b->count; k++)
        room[place[side_of(b->at[k], b->axis)]++] = b->at[k];
    memcpy(b->at, room, (size_t)b->count * sizeof *room);
    box rest = {.at = b->at + first, .count = b->count - first};
    b->count = first;
    measure(b, bins);
    measure(&rest, bins);
    return rest;
}

static double score(const box *b) {
    return (double)b->weight * b->side * b->side;
}

static int cut_all(box *boxes, const bin *bins, int *room) {
    int count = 1;
    for (; count < COLOURS; count++) {
        int best = 0;
        for (int k = 1; k < count; k++)
            if (score(&boxes[k]) > score(&boxes[best])) best = k;
        if (boxes[best].side < 1) break;
        boxes[count] = cut(&boxes[best], bins, room);
    }
    return count;
}

static void mean_colour(const box *b, const bin *bins, uint8_t out[RGB]) {
    for (int c = 0; c < RGB; c++) {
        uint64_t sum = 0;
        for (int k = 0; k < b->count; k++)
            sum += bins[b->at[k]].sum[c];
        out[c] = (uint8_t)((sum + b->weight / 2) / b->weight);
    }
}

// What a bin stands for: the mean of its pixels, so that few colours stay exact, or its middle if it has none.
static int colour_of(const bin *b, int at, int c) {
    return b->count ? (int)((b->sum[c] + b->count / 2) / b->count) : 4 * side_of(at, c) + 2;
}

static uint8_t find_nearest(const dc_gif *g, int count, int at) {
    int best = 0, least = 1 << 30, wanted[RGB];
    for (int c = 0; c < RGB; c++)
        wanted[c] = colour_of(&g->bins[at], at, c);
    for (int k = 0; k < count; k++) {
        int far = 0;
        for (int c = 0; c < RGB; c++) {
            int d = g->palette[k][c] - wanted[c];
            far += d * d;
        }
        if (far >= least) continue;
        least = far;
        best = k;
    }
    return (uint8_t)best;
}

static dc_status choose_colours(dc_gif *g) {
    int *at = malloc(2 * (size_t)BINS * sizeof *at), count = 0;
    if (!at) return dc_fail(DC_NO_MEMORY, NULL, "no memory to choose colours");
    box boxes[COLOURS] = {{.at = at}};
    for (int b = 0; b < BINS; b++)
        if (g->bins[b].count) at[boxes[0].count++] = b;
    if (boxes[0].count) {
        measure(&boxes[0], g->bins);
        count = cut_all(boxes, g->bins, at + BINS);
    }
    for (int k = 0; k < count; k++)
        mean_colour(&boxes[k], g->bins, g->palette[k]);
    for (int b = 0; b < BINS; b++)
        g->nearest[b] = find_nearest(g, count, b);
    free(at);
    g->chosen = true;
    return DC_OK;
}

// ---- packing ----

typedef struct packer {
    dc_text *out;
    uint32_t word; // bits that wait
    int bits;
    uint8_t block[BLOCK];
    int used;
    int size, next;        // bits of a code; the code that comes next
    int32_t keys[BUCKETS]; // prefix << 8 | byte, plus 1; 0: free
    uint16_t codes[BUCKETS];
} packer;

static void put_byte(dc_text *out, int byte) {
    dc_text_bytes(out, &(char){(char)byte}, 1);
}

static void put_half(dc_text *out, int word) {
    put_byte(out, word & 255);
    put_byte(out, word >> 8);
}

static void flush_block(packer *p) {
    if (!p->used) return;
    put_byte(p->out, p->used);
    dc_text_bytes(p->out, (const char *)p->block, (size_t)p->used);
    p->used = 0;
}

static void put_code(packer *p, int code) {
    p->word |= (uint32_t)code << p->bits;
    for (p->bits += p->size; p->bits >= 8; p->bits -= 8, p->word >>= 8) {
        p->block[p->used++] = (uint8_t)p->word;
        if (p->used == BLOCK) flush_block(p);
    }
}

static void clear_codes(packer *p) {
    put_code(p, CLEAR);
    memset(p->keys, 0, sizeof p->keys);
    p->size = BITS + 1;
    p->next = FIRST;
}

static int bucket_of(const packer *p, int32_t key) {
    uint32_t bucket = (uint32_t)key * 2654435761U >> 18;
    while (p->keys[bucket] && p->keys[bucket] != key)
        bucket = (bucket + 1) % BUCKETS;
    return (int)bucket;
}

// Codes for a run of pixels: the longest string that is known, then a new one.
static void put_pixel(packer *p, int *prefix, uint8_t pixel) {
    if (*prefix < 0) {
        *prefix = pixel;
        return;
    }
    int bucket = bucket_of(p, (*prefix << 8 | pixel) + 1);
    if (p->keys[bucket]) {
        *prefix = p->codes[bucket];
        return;
    }
    put_code(p, *prefix);
    p->keys[bucket] = (*prefix << 8 | pixel) + 1;
    p->codes[bucket] = (uint16_t)p->next;
    if (p->next == 1 << p->size) p->size++;
    if (++p->next == CODES) clear_codes(p);
    *prefix = pixel;
}

typedef struct patch {
    int left, top, width, height;
} patch;

static dc_status pack(dc_gif *g, const patch *at) {
    packer *p = calloc(1, sizeof *p);
    if (!p) return dc_fail(DC_NO_MEMORY, NULL, "no memory to pack a picture");
    *p = (packer){.out = &g->bytes, .size = BITS + 1};
    put_byte(&g->bytes, BITS);
    clear_codes(p);
    int prefix = -1;
    for (int r = at->top; r < at->top + at->height; r++)
        for (int c = at->left; c < at->left + at->width; c++) {
            size_t k = (size_t)r * (size_t)g->width + (size_t)c;
            bool same = g->pictures && g->now[k] == g->last[k];
            put_pixel(p, &prefix, same ? CLEAR_PIXEL : g->now[k]);
        }
    put_code(p, prefix);
    put_code(p, STOP);
    p->size = 7; // fill the last byte
    if (p->bits) put_code(p, 0);
    flush_block(p);
    put_byte(&g->bytes, 0);
    free(p);
    return dc_text_status(&g->bytes);
}

// ---- the file ----

dc_status dc_gif_new(dc_gif **gif, const char *path, int width, int height, double rate) {
    DC_CHECK(width > 0 && height > 0 && width < 65536 && height < 65536);
    DC_CHECK(rate > 0 && rate <= DC_GIF_RATE_MOST);
    size_t n = (size_t)width * (size_t)height;
    *gif = NULL;
    dc_gif *g = calloc(1, sizeof *g);
    if (!g) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", path);
    g->width = width;
    g->height = height;
    g->rate = rate;
    dc_text_init(&g->bytes);
    g->bins = calloc(BINS, sizeof *g->bins);
    g->nearest = calloc(BINS, 1);
    g->last = calloc(n, 1);
    g->now = calloc(n, 1);
    dc_status status = g->bins && g->nearest && g->last && g->now
                           ? dc_save_open(&g->save, path)
                           : dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", path);
    if (status == DC_OK)
        *gif = g;
    else
        dc_gif_free(g);
    return status;
}

void dc_gif_free(dc_gif *gif) {
    if (!gif) return;
    dc_save_abort(&gif->save);
    dc_text_fini(&gif->bytes);
    free(gif->bins);
    free(gif->nearest);
    free(gif->last);
    free(gif->now);
    free(gif);
}

void dc_gif_sample(dc_gif *gif, const uint8_t *rgb) {
    DC_CHECK(!gif->chosen);
    for (size_t k = 0; k < (size_t)gif->width * (size_t)gif->height; k++, rgb += RGB) {
        bin *b = &gif->bins[bin_of(rgb)];
        b->count++;
        for (int c = 0; c < RGB; c++)
            b->sum[c] += rgb[c];
    }
}

static void put_head(dc_gif *g) {
    dc_text_bytes(&g->bytes, "GIF89a", 6);
    put_half(&g->bytes, g->width);
    put_half(&g->bytes, g->height);
    dc_text_bytes(&g->bytes, "\xf7\0\0", 3); // 256 colours follow
    dc_text_bytes(&g->bytes, (const char *)g->palette, sizeof g->palette);
    dc_text_bytes(&g->bytes, "\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19); // again and again
}

// The part of the picture that changed; one pixel if nothing did.
static patch find_patch(const dc_gif *g) {
    int left = g->width, right = 0, top = g->height, bottom = 0;
    if (!g->pictures) return (patch){0, 0, g->width, g->height};
    for (int r = 0; r < g->height; r++)
        for (int c = 0; c < g->width; c++) {
            size_t k = (size_t)r * (size_t)g->width + (size_t)c;
            if (g->now[k] == g->last[k]) continue;
            left = c < left ? c : left;
            right = c > right ? c : right;
            top = r < top ? r : top;
            bottom = r;
        }
    if (top == g->height) return (patch){0, 0, 1, 1};
    return (patch){left, top, right - left + 1, bottom - top + 1};
}

// Hundredths of a second before a picture, rounded so that errors do not add up.
static int64_t time_of(const dc_gif *g, int64_t picture) {
    return (int64_t)(100 * (double)picture / g->rate + 0.5);
}

static void put_control(dc_gif *g, const patch *p) {
    dc_text_bytes(&g->bytes, "\x21\xf9\x04\x05", 4); // stays; has a transparent entry
    put_half(&g->bytes, (int)(time_of(g, g->pictures + 1) - time_of(g, g->pictures)));
    put_byte(&g->bytes, CLEAR_PIXEL);
    put_byte(&g->bytes, 0);
    put_byte(&g->bytes, 0x2c);
    put_half(&g->bytes, p->left);
    put_half(&g->bytes, p->top);
    put_half(&g->bytes, p->width);
    put_half(&g->bytes, p->height);
    put_byte(&g->bytes, 0);
}

static dc_status write_bytes(dc_gif *g) {
    DC_TRY(dc_text_status(&g->bytes));
    DC_TRY(dc_save_write(&g->save, g->bytes.bytes, g->bytes.used));
    g->bytes.used = 0;
    return DC_OK;
}

dc_status dc_gif_add(dc_gif *gif, const uint8_t *rgb) {
    if (!gif->chosen) {
        DC_TRY(choose_colours(gif));
        put_head(gif);
    }
    for (size_t k = 0; k < (size_t)gif->width * (size_t)gif->height; k++, rgb += RGB)
        gif->now[k] = gif->nearest[bin_of(rgb)];
    patch p = find_patch(gif);
    put_control(gif, &p);
    DC_TRY(pack(gif, &p));
    uint8_t *kept = gif->last;
    gif->last = gif->now;
    gif->now = kept;
    gif->pictures++;
    return write_bytes(gif);
}

dc_status dc_gif_save(dc_gif *gif) {
    DC_CHECK(gif->pictures > 0);
    put_byte(&gif->bytes, 0x3b);
    DC_TRY(write_bytes(gif));
    return dc_save_commit(&gif->save);
}
