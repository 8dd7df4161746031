// What the parts of the renderer share.
//
//     view.c    parts of a scene -> corners on the canvas, in front of the eye
//     raster.c  triangles -> the nearest one at each sample
//     shade.c   what is seen -> fragments: a pixel of a triangle, and its light
//     light.c   light of points
//     shadow.c  fragments and a light -> which of them it reaches
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
    float *x, *y; // of a light: in texels of its map
    float *z;     // of a light its depth; of a camera 1 / depth, and <= 0: not to be used as it is
    int32_t *ix, *iy; // of a camera: in DC_FINE parts of a pixel
} dc_seen;

// A triangle of which at least one sample was seen when it was drawn, and its fragments, which are in a row.
typedef struct dc_record {
    const dc_shape *shape;
    int part, triangle, first, fragments;
} dc_record;

// What shading needs of a triangle, seen from the eye: weights of its corners at a ray d are d . over[k].
typedef struct dc_shade {
    double over[3][3];
    float at[3][3];  // corners, from the eye
    float own[3][3]; // corners in the shape's coordinates
    float normal[3]; // of the first corner
    float light[DC_RENDER_LIGHTS + 1][3]
               [3]; // of corners: [0] without shadows, [1 + k] of the kth that has them
    int lattice;    // of a box's side: in dc_canvas.lattices, else -1
    int side;
} dc_shade;

enum { DC_LATTICE = 5 };
typedef struct dc_lattice { // light at the corners of a box side's fields
    float light[DC_RENDER_LIGHTS + 1][3][DC_LATTICE * DC_LATTICE];
} dc_lattice;

// A fragment is what a pixel sees of one triangle. Arrays of `count`, in the order of records.
typedef struct dc_fragments {
    int count;
    int *x, *y, *samples; // samples: bits
    float *number;        // (DC_LIT + 4 * casting, count), see below
} dc_fragments;

// Rows of dc_fragments.number: place from the eye; colour without shadowed lights; for each light
// that casts shadows its colour, and 1, or 0 where it does not reach.
enum { DC_AT, DC_OWN = 3, DC_LIT = 6, DC_REACHED = DC_LIT + 3 };

typedef struct dc_list { // an array that grows
    void *data;
    int count, most;
} dc_list;

typedef struct dc_shadow_scratch {
    dc_list texel, start, order; // as found, by cell: shadow.c
} dc_shadow_scratch;

struct dc_canvas {
    int width, height;
    int row, rows; // the band
    const dc_render_scene *scene;
    int casting; // lights that cast shadows, and which they are
    int cast[DC_RENDER_LIGHTS];
    float cosine[DC_RENDER_LIGHTS]; // of a spot's cutoff
    float focal[2], centre[2];      // pixels a unit of x / depth; where the axis meets the canvas
    float *depth;                   // (rows, width, 4) 1 / depth
    float *far;                     // (rows, width) the farthest sample's depth
    int32_t *top;                   // (rows, width, 4) records, -1: none
    uint8_t *sample;                // (rows, width, 4, 3)
    double *ray_u, *ray_v;          // (width + 2), (height + 2): of pixels' middles, 1 ahead
    dc_list records, found, whole, real, lattices, hits, picked; // whole, real: of fragments
    dc_list lattice_of;                                          // (parts, 6) int
    dc_fragments fragments;
    dc_seen seen;
    dc_shadow_scratch shadow;
    bool failed; // without memory
};

// One more element; NULL (and `failed`) without memory.
void *dc_list_more(dc_canvas *c, dc_list *list, size_t size);
// Room for `most` elements, of which none is in use; false (and `failed`) without memory.
bool dc_list_room(dc_canvas *c, dc_list *list, int most, size_t size);
bool dc_seen_room(dc_canvas *c, dc_seen *seen, int corners);

// view.c: whether a part is in sight; its level of detail that is off by `worth` pixels at most; its corners -> c->seen; rays
// through pixels' middles.
bool dc_view_sees(const dc_canvas *c, const dc_render_part *part);
const dc_shape *dc_view_level(const dc_canvas *c, const dc_render_part *part, float worth);
void dc_view_corners(dc_canvas *c, const dc_render_part *part, const dc_shape *shape);
void dc_view_rays(const dc_canvas *c, const int *x, const int *y, int count,
                  double ray[3][DC_MANY]);

// raster.c: the part's triangles, of c->seen, onto the canvas. Of opaque parts the nearest record
// stays; what is hit of a see-through triangle goes to c->hits, as pixel << 4 | samples, and then to `blend`.
void dc_raster_part(dc_canvas *c, int part, const dc_shape *shape);
void dc_raster_clear(dc_canvas *c, int part, const dc_shape *shape,
                     void (*blend)(dc_canvas *, int part, const dc_shape *, int triangle));

// light.c: light at points, `at` from the eye: out[0], and out[1 + k] of the kth light that casts shadows where
// `shadows`, else that is in out[0], too.
void dc_light_points(const dc_canvas *c, const dc_render_surface *surface, float at[3][DC_MANY],
                     float normal[3][DC_MANY], int count, bool shadows, float out[][3][DC_MANY]);

// shade.c
void dc_shade_opaque(dc_canvas *c); // c->top -> c->fragments
void dc_shade_sum(dc_canvas *c);    // and their shadows -> c->sample
void dc_shade_sky(dc_canvas *c);
void dc_shade_clear(dc_canvas *c, int part); // blends a see-through part

// shadow.c: DC_REACHED of the fragments, for light c->cast[k].
void dc_shadow_cast(dc_canvas *c, int k);

#endif
