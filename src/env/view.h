// View: draws states of an environment as OGBench's render() shows them, without a screen. The picture comes from our
// own renderer (render/), or from MuJoCo's on an OpenGL context of EGL (a GPU, or Mesa in software) or OSMesa
// (software), which is the reference. Neither is linked: a library is loaded when the first such view is made.
//
//     dc_states -> dc_view_draw -> pixels -> report/film
#ifndef DC_ENV_VIEW_H
#define DC_ENV_VIEW_H

#include "base/pool.h"
#include "env/states.h"

typedef struct dc_view dc_view;

typedef enum dc_gl_kind { DC_GL_OFF, DC_GL_AUTO, DC_GL_EGL, DC_GL_OSMESA } dc_gl_kind;

typedef struct dc_view_options {
    int width, height;  // of a picture
    const char *camera; // Nullable: OGBench's own view; else a camera of the model
    dc_gl_kind gl;      // off: our own renderer; auto: EGL, else OSMesa
    dc_pool *pool;      // Nullable: of our own renderer's threads; borrowed
} dc_view_options;

enum { DC_VIEW_SIZE = 200, DC_VIEW_MOST = 4096 }; // OGBench's size of a picture; the largest

// To be used by one thread at a time. Errors: DC_UNSUPPORTED without MuJoCo or OpenGL, DC_USAGE
// for a camera that does not exist.
dc_status dc_view_new(dc_view **view, const dc_env_spec *spec, const dc_view_options *options);
void dc_view_free(dc_view *view); // Nullable: view
// Draw rows (count) of states: rgb (count, height, width, 3), from the top. Errors: DC_BAD_INPUT for
// numbers that are not finite.
dc_status dc_view_draw(dc_view *view, const dc_states *states, const int64_t *rows, int count,
                       uint8_t *rgb);
// Pictures per second at which time runs as it does in the environment.
double dc_view_rate(const dc_view *view);

#endif
