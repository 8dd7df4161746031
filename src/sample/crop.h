// Random crops of a batch's pictures: each is moved by up to `pad` places each way, and what comes in repeats its edge.
// One draw decides whether a batch is cropped at all. A row of the batch has one offset for all of its pictures, so that they
// stay as far from each other as they are. (Laskin et al. 2020; OGBench's agents crop so.) The CPU and a CUDA kernel compile
// this header.
//
//   stream  step  index    words
//   CROP    step  0        is the batch cropped?
//   CROP    step  row + 1  down, right
#ifndef DC_CROP_H
#define DC_CROP_H

#include "base/philox.h"

typedef struct dc_crop {
    float rate;                  // share of batches
    int pad;                     // 0: pictures stay as they are
    int height, width, channels; // of a picture
} dc_crop;

typedef struct dc_offset {
    int down, right; // where in the picture its first place comes from, -pad to pad
} dc_offset;

DC_HD dc_offset dc_crop_draw(const dc_crop *c, uint64_t seed, uint64_t step, uint32_t row) {
    dc_offset none = {0, 0}, at;
    uint32_t places = 2 * (uint32_t)c->pad + 1;
    if (!(dc_unit(dc_philox(seed, DC_STREAM_CROP, step, 0).v[0]) < c->rate)) return none;
    dc_u32x4 words = dc_philox(seed, DC_STREAM_CROP, step, row + 1);
    at.down = (int)dc_below(words.v[0], places) - c->pad;
    at.right = (int)dc_below(words.v[1], places) - c->pad;
    return at;
}

DC_HD int dc_crop_within(int at, int count) {
    return at < 0 ? 0 : at >= count ? count - 1 : at;
}

// Number of the picture that number `to` of the cropped one shows.
DC_HD int dc_crop_from(const dc_crop *c, dc_offset at, int to) {
    int channel = to % c->channels, x = to / c->channels % c->width,
        y = to / c->channels / c->width;
    y = dc_crop_within(y + at.down, c->height);
    x = dc_crop_within(x + at.right, c->width);
    return (y * c->width + x) * c->channels + channel;
}

#endif
