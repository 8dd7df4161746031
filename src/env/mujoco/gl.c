// OpenGL without a screen, see gl.h. The few functions of EGL and OSMesa that are needed are declared
// here, so that the build needs no headers of theirs.
//
// MuJoCo looks for its functions through whatever of eglGetProcAddress and OSMesaGetProcAddress is in
// the global namespace, once a process. So a library stays out of it until it has given a context,
// and is never unloaded.
#include "env/mujoco/gl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { WHY = 160 };

static bool find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(dc_gl *gl, const char *const *names, char why[WHY]) {
    for (; *names; names++) {
        gl->name = *names;
        gl->library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (gl->library) return true;
        snprintf(why, WHY, "%s", dlerror());
    }
    return false;
}

// ---- EGL ----

enum {
    DEVICES = 16,
    EGL_NONE = 0x3038,
    EGL_ALPHA_SIZE = 0x3021,
    EGL_BLUE_SIZE,
    EGL_GREEN_SIZE,
    EGL_RED_SIZE,
    EGL_DEPTH_SIZE,
    EGL_STENCIL_SIZE,
    EGL_SURFACE_TYPE = 0x3033,
    EGL_PBUFFER_BIT = 1,
    EGL_RENDERABLE_TYPE = 0x3040,
    EGL_OPENGL_BIT = 8,
    EGL_OPENGL_API = 0x30A2,
    EGL_PLATFORM_DEVICE = 0x313F,
    EGL_PLATFORM_SURFACELESS = 0x31DD,
};

typedef struct egl {
    void *(*address)(const char *name);
    unsigned (*initialize)(void *display, int *major, int *minor);
    unsigned (*choose)(void *display, const int *want, void **configs, int size, int *count);
    unsigned (*bind)(unsigned api);
    void *(*create)(void *display, void *config, void *share, const int *attributes);
    unsigned (*current)(void *display, void *draw, void *read, void *context);
    unsigned (*destroy)(void *display, void *context);
    unsigned (*devices)(int most, void **devices, int *count);                 // Nullable
    void *(*platform)(unsigned platform, void *native, const int *attributes); // Nullable
} egl;

static bool find_egl(void *library, egl *e) {
    *e = (egl){0};
    if (!find(library, "eglGetProcAddress", &e->address) ||
        !find(library, "eglInitialize", &e->initialize) ||
        !find(library, "eglChooseConfig", &e->choose) || !find(library, "eglBindAPI", &e->bind) ||
        !find(library, "eglCreateContext", &e->create) ||
        !find(library, "eglMakeCurrent", &e->current) ||
        !find(library, "eglDestroyContext", &e->destroy))
        return false;
    void *devices = e->address("eglQueryDevicesEXT"),
         *platform = e->address("eglGetPlatformDisplayEXT");
    memcpy(&e->devices, &devices, sizeof devices);
    memcpy(&e->platform, &platform, sizeof platform);
    return true;
}

// A context that is current, on one display.
static bool start_egl(const egl *e, dc_gl *gl, void *display) {
    static const int want[] = {EGL_RED_SIZE,
                               8,
                               EGL_GREEN_SIZE,
                               8,
                               EGL_BLUE_SIZE,
                               8,
                               EGL_ALPHA_SIZE,
                               8,
                               EGL_DEPTH_SIZE,
                               24,
                               EGL_STENCIL_SIZE,
                               8,
                               EGL_SURFACE_TYPE,
                               EGL_PBUFFER_BIT,
                               EGL_RENDERABLE_TYPE,
                               EGL_OPENGL_BIT,
                               EGL_NONE};
    void *config;
    int count = 0;
    if (!display || !e->initialize(display, NULL, NULL)) return false;
    if (!e->choose(display, want, &config, 1, &count) || count < 1) return false;
    if (!e->bind(EGL_OPENGL_API)) return false;
    void *context = e->create(display, config, NULL, NULL);
    if (!context) return false;
    if (!e->current(display, NULL, NULL, context)) {
        e->destroy(display, context);
        return false;
    }
    gl->display = display;
    gl->context = context;
    return true;
}

// Devices in the driver's order, which is GPUs first; without devices, Mesa's own kind of display.
static bool try_egl(dc_gl *gl, char why[WHY]) {
    static const char *const names[] = {"libEGL.so.1", "libEGL.so", NULL};
    egl e;
    void *devices[DEVICES];
    int count = 0;
    if (!load(gl, names, why)) return false;
    snprintf(why, WHY, "%s has no device to draw with", gl->name);
    if (!find_egl(gl->library, &e) || !e.platform) return false;
    if (e.devices && !e.devices(DEVICES, devices, &count)) count = 0;
    for (int k = 0; k < count; k++)
        if (start_egl(&e, gl, e.platform(EGL_PLATFORM_DEVICE, devices[k], NULL))) return true;
    return start_egl(&e, gl, e.platform(EGL_PLATFORM_SURFACELESS, NULL, NULL));
}

static bool use_egl(const dc_gl *gl, void *context) {
    egl e;
    return find_egl(gl->library, &e) && e.bind(EGL_OPENGL_API) &&
           e.current(gl->display, NULL, NULL, context);
}

static void stop_egl(dc_gl *gl) {
    egl e;
    use_egl(gl, NULL);
    if (find_egl(gl->library, &e)) e.destroy(gl->display, gl->context);
}

// ---- OSMesa ----

enum { OSMESA_RGBA = 0x1908, GL_UNSIGNED_BYTE = 0x1401 };

typedef struct osmesa {
    void *(*create)(unsigned format, int depth, int stencil, int accum, void *share);
    unsigned char (*current)(void *context, void *pixels, unsigned type, int width, int height);
    void (*destroy)(void *context);
} osmesa;

static bool find_osmesa(void *library, osmesa *m) {
    return find(library, "OSMesaCreateContextExt", &m->create) &&
           find(library, "OSMesaMakeCurrent", &m->current) &&
           find(library, "OSMesaDestroyContext", &m->destroy);
}

// MuJoCo draws into a buffer of its own, so the context's may be small.
static bool try_osmesa(dc_gl *gl, char why[WHY]) {
    static const char *const names[] = {"libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so", NULL};
    osmesa m;
    if (!load(gl, names, why)) return false;
    snprintf(why, WHY, "%s gives no context", gl->name);
    if (!find_osmesa(gl->library, &m)) return false;
    gl->context = m.create(OSMESA_RGBA, 24, 8, 0, NULL);
    if (!gl->context) return false;
    if (m.current(gl->context, gl->pixels, GL_UNSIGNED_BYTE, DC_GL_SIDE, DC_GL_SIDE)) return true;
    m.destroy(gl->context);
    gl->context = NULL;
    return false;
}

static bool use_osmesa(dc_gl *gl, void *context) {
    osmesa m;
    if (!find_osmesa(gl->library, &m)) return false;
    if (!context) return m.current(NULL, NULL, 0, 0, 0);
    return m.current(context, gl->pixels, GL_UNSIGNED_BYTE, DC_GL_SIDE, DC_GL_SIDE);
}

static void stop_osmesa(dc_gl *gl) {
    osmesa m;
    use_osmesa(gl, NULL);
    if (find_osmesa(gl->library, &m)) m.destroy(gl->context);
}

// ---- either ----

static bool try_kind(dc_gl *gl, dc_gl_kind kind, char why[WHY]) {
    *gl = (dc_gl){.kind = kind};
    bool made = kind == DC_GL_EGL ? try_egl(gl, why) : try_osmesa(gl, why);
    if (made && dlopen(gl->name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD)) return true;
    dc_gl_close(gl);
    return false;
}

dc_status dc_gl_open(dc_gl *gl, dc_gl_kind kind) {
    char egl_why[WHY] = "not tried", mesa_why[WHY] = "not tried";
    if (kind != DC_GL_OSMESA && try_kind(gl, DC_GL_EGL, egl_why)) return DC_OK;
    if (kind != DC_GL_EGL && try_kind(gl, DC_GL_OSMESA, mesa_why)) return DC_OK;
    return dc_fail(DC_UNSUPPORTED,
                   "install the package libosmesa6 (draws in software), or libegl1 and a driver "
                   "(a GPU's, or libgl1-mesa-dri)",
                   "there is no OpenGL to draw with (EGL: %s; OSMesa: %s)", egl_why, mesa_why);
}

dc_status dc_gl_enter(dc_gl *gl) {
    bool current = gl->kind == DC_GL_EGL ? use_egl(gl, gl->context) : use_osmesa(gl, gl->context);
    if (current) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "draw in one thread at a time",
                   "%s does not make its context current", gl->name);
}

void dc_gl_leave(dc_gl *gl) {
    (void)(gl->kind == DC_GL_EGL ? use_egl(gl, NULL) : use_osmesa(gl, NULL));
}

void dc_gl_close(dc_gl *gl) {
    if (gl->context && gl->kind == DC_GL_EGL) stop_egl(gl);
    if (gl->context && gl->kind == DC_GL_OSMESA) stop_osmesa(gl);
    *gl = (dc_gl){0};
}
