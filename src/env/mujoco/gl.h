// An OpenGL context without a screen, for MuJoCo's renderer.
#ifndef DC_MUJOCO_GL_H
#define DC_MUJOCO_GL_H

#include "env/view.h"

typedef struct dc_gl {
    dc_gl_kind kind;  // what was taken
    const char *name; // of the library
    void *library;
    void *display, *context;
    void *pixels; // OSMesa's own picture, which nothing is drawn to
} dc_gl;

// Load a library, make a context and make it current for this thread.
// Errors: DC_UNSUPPORTED, with what to install.
dc_status dc_gl_open(dc_gl *gl, dc_gl_kind kind);
void dc_gl_close(dc_gl *gl); // safe on a zeroed struct, and twice

#endif
