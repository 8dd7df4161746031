// What the parts of the renderer share.
//
//     view.c    parts of a scene -> corners on the canvas, in front of the eye
//     raster.c  triangles -> the nearest one at each sample
//     shade.c   what is seen -> fragments: a pixel of a triangle, and its light
//     shadow.c  fragments and a light -> which of them it reaches
//     memo.c    the floor, kept from picture to picture
//     canvas.c  the order of it all
#ifndef DC_RENDER_CANVAS_H
#define DC_RENDER_CANVAS_H

#include "render/render.h"

#include <stddef.h>

// Pixels by which a coarser level of detail may be off, where it is seen and where its shadow is.
#define DC_WORTH_SEEN  0.006f
#define DC_WORTH_SHADE 0.06f

enum {
    DC_FINE = 256,
    DC_BAND = 64
}; // places of a corner within a pixel; rows that are drawn at a time

// A shape's corners as a camera (or a light) sees them.
typedef struct dc_seen {
    int most;
    float *x, *y,
        *z; // in pixels; of a camera z is 1 / depth, and <= 0 marks what is not to be used as it is
    int32_t *ix, *iy; // x and y in DC_FINE parts of a pixel
} dc_seen;

// A triangle of which at least one sample is seen.
typedef struct dc_record {
    const dc_shape *shape;
    int part, triangle, shade; // shade: in dc_canvas.shades, -1 until it is needed
} dc_record;

// What shading needs of a triangle, seen from the eye: weights of its corners at a ray d are d . over[k].
typedef struct dc_shade {
    double over[3][3];
    float at[3][3];  // corners, from the eye
    float own[3][3]; // corners in the shape's coordinates
    float normal[3][3];
    float light[DC_RENDER_LIGHTS + 1][3]
               [3]; // of corners: [0] without shadows, [1 + k] of the kth that has them
    int lattice;    // of a box's side: in dc_canvas.lattices, else -1
    int side;
} dc_shade;

enum { DC_LATTICE = 5 };
typedef struct dc_lattice { // light at the corners of a box side's fields
    float light[DC_RENDER_LIGHTS + 1][DC_LATTICE * DC_LATTICE][3];
} dc_lattice;

typedef struct dc_fragment {
    int pixel, samples; // in the band; bits
    float at[3];        // from the eye
    float own[3];       // its colour without shadowed lights
    uint32_t lights;    // first of its dc_canvas.lit: one colour for each light that casts shadows
} dc_fragment;

typedef struct dc_lit {
    float rgb[3];
    float reached; // 0 or 1
} dc_lit;

typedef struct dc_list { // an array that grows
    void *data;
    int count, most;
} dc_list;

typedef struct dc_shadow_scratch {
    dc_list texel, start, order; // as found, by cell: shadow.c
} dc_shadow_scratch;

enum {
    DC_MEMO_LIGHTS = 2,
    DC_MEMO_PIXELS = 1 << 14
}; // lights that cast shadows, and pixels, at most

// The floor's fragments of the picture before, by pixel: where camera, lights and floor stand still they are the same.
typedef struct dc_memo {
    dc_fragment fragment;
    dc_lit lit[DC_MEMO_LIGHTS];
    int triangle; // -1: none
} dc_memo;

typedef struct dc_floor { // what they depend on, numbers by their bits
    int index, words;
    const void *shapes, *texture;
    uint32_t word[64 + 24 * DC_RENDER_LIGHTS];
} dc_floor;

struct dc_canvas {
    int width, height;
    int row, rows; // the band
    const dc_render_scene *scene;
    int casting; // lights that cast shadows, and which they are
    int cast[DC_RENDER_LIGHTS];
    float cosine[DC_RENDER_LIGHTS]; // of a spot's cutoff
    float focal[2], centre[2];      // pixels a unit of x / depth; where the axis meets the canvas
    float *depth;                   // (rows, width, 4) 1 / depth
    int32_t *top;                   // (rows, width, 4) records, -1: none
    uint8_t *sample;                // (rows, width, 4, 3)
    dc_list records, shades, lattices, fragments, lit, hits, picked;
    dc_list lattice_of; // (parts, 6) int
    dc_seen seen;
    dc_shadow_scratch shadow;
    dc_floor *floor, *floor_before; // floor->index: the part that is kept, -1: none
    dc_memo *memo;                  // (height, width) of a canvas of one band, else NULL
    bool failed;                    // without memory
};

// One more element; NULL (and `failed`) without memory.
void *dc_list_more(dc_canvas *c, dc_list *list, size_t size);
// Room for `most` elements, of which none is in use; false (and `failed`) without memory.
bool dc_list_room(dc_canvas *c, dc_list *list, int most, size_t size);
bool dc_seen_room(dc_canvas *c, dc_seen *seen, int corners);

// view.c: whether a part is in sight; its level of detail that is off by `worth` pixels at most; its corners -> c->seen; the ray through a point of the
// canvas, 1 ahead.
bool dc_view_sees(const dc_canvas *c, const dc_render_part *part);
const dc_shape *dc_view_level(const dc_canvas *c, const dc_render_part *part, float worth);
void dc_view_corners(dc_canvas *c, const dc_render_part *part, const dc_shape *shape);
void dc_view_ray(const dc_canvas *c, double x, double y, double ray[3]);

// raster.c: the part's triangles, of c->seen, onto the canvas. Of opaque parts the nearest record
// stays; what is hit of a see-through triangle goes to c->hits, as pixel << 4 | samples, and then to `blend`.
void dc_raster_part(dc_canvas *c, int part, const dc_shape *shape);
void dc_raster_clear(dc_canvas *c, int part, const dc_shape *shape,
                     void (*blend)(dc_canvas *, int part, const dc_shape *, int triangle));

// memo.c: whether the last picture's floor counts; its fragment at a pixel, NULL if none is kept.
void dc_memo_begin(dc_canvas *c);
static inline dc_memo *dc_memo_at(dc_canvas *c, int part, int pixel) {
    return c->memo && c->floor->index == part ? &c->memo[pixel] : NULL;
}

// shade.c
void dc_shade_opaque(dc_canvas *c); // c->top -> c->fragments
void dc_shade_sum(dc_canvas *c);    // and their shadows -> c->sample
void dc_shade_sky(dc_canvas *c);
void dc_shade_clear(dc_canvas *c, int part); // blends a see-through part

// shadow.c: dc_lit.reached of the fragments, for light c->cast[k].
void dc_shadow_cast(dc_canvas *c, int k);

#endif
