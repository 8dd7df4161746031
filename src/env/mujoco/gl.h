// An OpenGL context without a screen, for MuJoCo's renderer.
#ifndef DC_MUJOCO_GL_H
#define DC_MUJOCO_GL_H

#include "env/view.h"

enum { DC_GL_SIDE = 16 };

typedef struct dc_gl {
    dc_gl_kind kind;  // what was taken
    const char *name; // of the library
    void *library;
    void *display, *context;
    uint8_t pixels[DC_GL_SIDE * DC_GL_SIDE * 4]; // OSMesa's own picture, which nothing is drawn to
} dc_gl;

// Load a library, make a context and make it current for this thread; it must not be
// moved. Between the next two functions it is current, too, whatever other contexts there are; in
// between it belongs to no thread.
// Errors: DC_UNSUPPORTED, with what to install.
dc_status dc_gl_open(dc_gl *gl, dc_gl_kind kind);
dc_status dc_gl_enter(dc_gl *gl);
void dc_gl_leave(dc_gl *gl);
void dc_gl_close(dc_gl *gl); // safe on a zeroed struct, and twice

#endif
