// Render: pictures of simple scenes without OpenGL. It draws what MuJoCo's own renderer draws of them with
// OpenGL's fixed pipeline: triangles with light computed at their corners, textures with levels, shadows by a
// depth map of each light, four samples a pixel, see-through things on top. Reflections, fog and haze are not
// there. env/mujoco/ fills in the scene.
//
//     dc_render_scene -> dc_canvas_draw -> pixels
//
// A picture is a function of its scene alone: plain arithmetic of IEEE 754 in a fixed order, so it is the same
// on every machine and for any number of threads, which draw different pictures.
#ifndef DC_RENDER_RENDER_H
#define DC_RENDER_RENDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DC_RENDER_LIGHTS = 16,
    DC_RENDER_SAMPLES = 4,
    DC_SHAPE_LEVELS = 6,
    DC_TEXTURE_LEVELS = 16,
    DC_SHAPE_MOST = 1 << 24, // corners of a shape
    DC_MANY = 96,            // points that are worked on at a time: arrays by number, then by point
};

// ---- shapes ----

// Where light is computed: at the corners of triangles, at the corners of a box's 4 x 4 fields a
// side, or at each pixel (planes, whose fields are small).
typedef enum dc_shape_light { DC_LIT_CORNERS, DC_LIT_BOX, DC_LIT_PIXELS } dc_shape_light;

// Triangles, counter-clockwise as seen from outside.
typedef struct dc_shape {
    int vertices, triangles;
    float *at[3];    // (vertices) each: x, y, z
    int32_t *corner; // (triangles, 3)
    float *normal;   // (triangles, 3, 3)
    float error;     // distance to the true shape, in its own units
} dc_shape;

typedef struct dc_shapes {
    int levels; // of detail, from the true shape on
    dc_shape level[DC_SHAPE_LEVELS];
    float middle[3], radius; // of a sphere around it
    dc_shape_light light;
} dc_shapes;

// Unit shapes, divided as MuJoCo divides them.
typedef enum dc_solid {
    DC_SOLID_PLANE,
    DC_SOLID_BOX,
    DC_SOLID_SPHERE,
    DC_SOLID_TOP,    // half a sphere, its middle at z = 1
    DC_SOLID_BOTTOM, // and at z = -1
    DC_SOLID_PIPE,   // a cylinder without lids
    DC_SOLID_CYLINDER,
    DC_SOLIDS
} dc_solid;

dc_status dc_shapes_solid(dc_shapes *shapes, dc_solid solid, int slices, int stacks);
// Any triangles: at (triangles, 3, 3) corners and their normals. Levels are added by joining
// vertices that lie in one cell of a grid, with twice the cell a level.
dc_status dc_shapes_mesh(dc_shapes *shapes, const float *at, const float *normal, int triangles);
void dc_shapes_fini(dc_shapes *shapes); // safe on a zeroed struct

// ---- textures ----

typedef struct dc_texture {
    bool cube; // six faces, of directions; else repeated in a plane
    int levels, width[DC_TEXTURE_LEVELS], height[DC_TEXTURE_LEVELS];
    uint8_t *texels[DC_TEXTURE_LEVELS]; // (faces, height, width, 3)
} dc_texture;

// `texels` (faces, height, width, channels), or one face for all six (`same`).
dc_status dc_texture_init(dc_texture *texture, const uint8_t *texels, int width, int height,
                          int channels, bool cube, bool same);
void dc_texture_fini(dc_texture *texture); // safe on a zeroed struct
// Points or directions; `at[1]` and `at[2]` are those of the next pixels, across and up.
typedef struct dc_texture_points {
    double at[3][3][DC_MANY];
} dc_texture_points;
// Colours, 0 ... 1, of as many.
void dc_texture_look(const dc_texture *texture, const dc_texture_points *at, int count,
                     float rgb[3][DC_MANY]);

// ---- scenes ----

typedef struct dc_render_surface {
    float rgba[4], emission, specular, shininess; // shininess: the exponent
    const dc_texture *texture;                    // Nullable; borrowed
    float gain[3], shift[3];                      // from a shape's own coordinates to the texture's
} dc_render_surface;

typedef struct dc_render_part {
    const dc_shapes *shapes; // borrowed
    float turn[9], place[3]; // rotation, rows; the world's = turn (scale x) + place
    float scale[3];
    dc_render_surface surface;
    bool flip;    // seen from its back
    bool clear;   // see-through: blended over the rest, and takes no shadows
    bool shadows; // casts them
} dc_render_part;

typedef struct dc_render_light {
    bool spot, shadows; // else it shines from everywhere along dir
    float pos[3], dir[3], ambient[3], diffuse[3], specular[3];
    float fade[3], cutoff, exponent; // of a spot: attenuation, degrees (above 90: none)
} dc_render_light;

typedef struct dc_render_scene {
    float eye[3], right[3], up[3], forward[3];         // unit vectors
    float nearest, farthest, left, bottom, wide, high; // frustum at `nearest`
    int parts, clears, lights;
    const dc_render_part *part;
    const int *clear; // (clears) see-through parts, the nearest first
    const dc_render_light *light;
    const dc_texture *sky;           // Nullable
    int shadow_size;                 // of a light's map, in texels; 0: no shadows
    float shadow_clip, shadow_scale; // half a map's width for dir; share of a spot's cutoff
} dc_render_scene;

// ---- drawing ----

typedef struct dc_canvas dc_canvas;

dc_status dc_canvas_new(dc_canvas **canvas, int width, int height);
void dc_canvas_free(dc_canvas *canvas); // Nullable: canvas
// rgb: (height, width, 3), from the top. Errors: DC_NO_MEMORY.
dc_status dc_canvas_draw(dc_canvas *canvas, const dc_render_scene *scene, uint8_t *rgb);

#endif
