// Shapes: unit solids, divided as MuJoCo divides them, and meshes with levels of detail.
#include "render/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

// ---- a list of corners that becomes a shape ----

typedef struct vertex {
    float at[3], normal[3];
} vertex;

typedef struct corners {
    vertex *list; // three a triangle
    int count, most;
    bool failed;
} corners;

static void add_triangle(corners *c, vertex a, vertex b, vertex d) {
    if (c->failed) return;
    if (c->count + 3 > c->most) {
        int most = 2 * c->most + 96;
        vertex *list = most <= DC_SHAPE_MOST ? realloc(c->list, (size_t)most * sizeof *list) : NULL;
        if (!list) {
            c->failed = true;
            return;
        }
        c->list = list;
        c->most = most;
    }
    c->list[c->count++] = a;
    c->list[c->count++] = b;
    c->list[c->count++] = d;
}

// OpenGL's way of halving a quad.
static void add_quad(corners *c, vertex a, vertex b, vertex d, vertex e) {
    add_triangle(c, a, b, e);
    add_triangle(c, b, d, e);
}

typedef struct welding {
    const float *at; // (count, 3)
    int32_t *slot;   // (mask + 1) vertex + 1, or 0
    uint32_t mask;
} welding;

static uint32_t hash3(const uint32_t x[3]) {
    uint32_t h = x[0] * 0x9e3779b1u ^ x[1] * 0x85ebca6bu ^ x[2] * 0xc2b2ae35u;
    return (h ^ h >> 15) * 0x2c1b3c6du ^ h >> 13;
}

// The vertex at a place, a new one if there is none; equal is equal to the bit.
static int weld(dc_shape *s, welding *w, const float at[3]) {
    uint32_t bits[3];
    float clean[3] = {at[0] + 0.0f, at[1] + 0.0f, at[2] + 0.0f}; // no -0
    memcpy(bits, clean, sizeof bits);
    for (uint32_t k = hash3(bits) & w->mask;; k = (k + 1) & w->mask) {
        int v = w->slot[k] - 1;
        if (v < 0) {
            w->slot[k] = s->vertices + 1;
            for (int a = 0; a < 3; a++)
                s->at[a][s->vertices] = clean[a];
            return s->vertices++;
        }
        if (s->at[0][v] == clean[0] && s->at[1][v] == clean[1] && s->at[2][v] == clean[2]) return v;
    }
}

void dc_shape_fini(dc_shape *s) {
    for (int a = 0; a < 3; a++)
        free(s->at[a]);
    free(s->corner);
    free(s->normal);
    *s = (dc_shape){0};
}

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for a shape");
}

bool dc_shape_reserve(dc_shape *s, int vertices, int triangles) {
    size_t v = vertices ? (size_t)vertices : 1, t = triangles ? (size_t)triangles : 1;
    for (int a = 0; a < 3; a++)
        s->at[a] = malloc(v * sizeof(float));
    s->corner = malloc(3 * t * sizeof *s->corner);
    s->normal = malloc(9 * t * sizeof *s->normal);
    return s->at[0] && s->at[1] && s->at[2] && s->corner && s->normal;
}

// Join equal vertices.
static dc_status join(dc_shape *s, const vertex *list, int count) {
    welding w = {.mask = 64};
    while (w.mask < 2 * (uint32_t)count)
        w.mask *= 2;
    w.slot = calloc(w.mask--, sizeof *w.slot);
    *s = (dc_shape){0};
    if (!w.slot || !dc_shape_reserve(s, count, count / 3)) {
        free(w.slot);
        dc_shape_fini(s);
        return no_memory();
    }
    s->triangles = count / 3;
    for (int k = 0; k < count; k++) {
        s->corner[k] = weld(s, &w, list[k].at);
        memcpy(s->normal + 3 * k, list[k].normal, 3 * sizeof(float));
    }
    free(w.slot);
    return DC_OK;
}

static void surround(dc_shapes *s) {
    const dc_shape *f = &s->level[0];
    double far = 0;
    for (int a = 0; a < 3; a++) {
        float low = INFINITY, high = -INFINITY;
        for (int v = 0; v < f->vertices; v++) {
            low = f->at[a][v] < low ? f->at[a][v] : low;
            high = f->at[a][v] > high ? f->at[a][v] : high;
        }
        s->middle[a] = f->vertices ? (low + high) / 2 : 0;
    }
    for (int v = 0; v < f->vertices; v++) {
        double r = 0;
        for (int a = 0; a < 3; a++)
            r += (f->at[a][v] - s->middle[a]) * (f->at[a][v] - s->middle[a]);
        far = r > far ? r : far;
    }
    s->radius = (float)sqrt(far);
}

void dc_shapes_fini(dc_shapes *s) {
    for (int k = 0; k < s->levels; k++)
        dc_shape_fini(&s->level[k]);
    s->levels = 0;
}

// ---- solids ----

// A point of a sphere whose middle is at height `lift`.
static vertex ball_point(double azimuth, double elevation, float lift) {
    vertex v;
    v.normal[0] = (float)(cos(azimuth) * cos(elevation));
    v.normal[1] = (float)(sin(azimuth) * cos(elevation));
    v.normal[2] = (float)sin(elevation);
    memcpy(v.at, v.normal, sizeof v.at);
    v.at[2] += lift;
    return v;
}

static void add_half(corners *c, int sign, float lift, int slices, int stacks) {
    for (int i = 0; i < stacks; i++)
        for (int j = 0; j < slices; j++) {
            double low = PI / 2 * sign * i / stacks, high = PI / 2 * sign * (i + 1) / stacks;
            double a = 2 * PI * j / slices, b = 2 * PI * (j + 1 == slices ? 0 : j + 1) / slices;
            vertex v1 = ball_point(a, low, lift), v2 = ball_point(b, low, lift);
            vertex v3 = ball_point(b, high, lift), v4 = ball_point(a, high, lift);
            vertex pole = {{0, 0, (float)sign + lift}, {0, 0, (float)sign}};
            if (i == stacks - 1 && sign > 0)
                add_triangle(c, v1, v2, pole);
            else if (i == stacks - 1)
                add_triangle(c, pole, v2, v1);
            else if (sign > 0)
                add_quad(c, v1, v2, v3, v4);
            else
                add_quad(c, v4, v3, v2, v1);
        }
}

static vertex rim(double azimuth, float z) {
    float x = (float)cos(azimuth), y = (float)sin(azimuth);
    return (vertex){{x, y, z}, {x, y, 0}};
}

static void add_pipe(corners *c, int slices, int stacks) {
    for (int i = 0; i < stacks; i++)
        for (int j = 0; j < slices; j++) {
            float low = 2.0f * (float)i / (float)stacks - 1;
            float high = 2.0f * (float)(i + 1) / (float)stacks - 1;
            double a = 2 * PI * j / slices, b = 2 * PI * (j + 1 == slices ? 0 : j + 1) / slices;
            add_quad(c, rim(a, low), rim(b, low), rim(b, high), rim(a, high));
        }
}

static void add_lid(corners *c, int sign, int slices) {
    for (int j = 0; j < slices; j++) {
        double a = 2 * PI * j / slices, b = 2 * PI * (j + 1 == slices ? 0 : j + 1) / slices;
        float z = (float)sign;
        vertex v1 = rim(a, z), v2 = rim(b, z), middle = {{0, 0, z}, {0, 0, z}};
        memcpy(v1.normal, middle.normal, sizeof v1.normal);
        memcpy(v2.normal, middle.normal, sizeof v2.normal);
        if (sign > 0)
            add_triangle(c, v1, v2, middle);
        else
            add_triangle(c, middle, v2, v1);
    }
}

// A side of a box: the axis it looks along, and the two in it. Two triangles; shade.c divides it further.
static void add_side(corners *c, int axis, int sign) {
    int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;
    vertex corner[4];
    for (int k = 0; k < 4; k++) {
        memset(&corner[k], 0, sizeof corner[k]);
        corner[k].at[axis] = corner[k].normal[axis] = (float)sign;
        corner[k].at[u] = k == 1 || k == 2 ? 1 : -1;
        corner[k].at[v] = k >= 2 ? 1 : -1;
    }
    bool ahead = (axis == 1) != (sign > 0); // whether u to v turns outwards
    if (ahead)
        add_quad(c, corner[0], corner[1], corner[2], corner[3]);
    else
        add_quad(c, corner[3], corner[2], corner[1], corner[0]);
}

static void add_solid(corners *c, dc_solid solid, int slices, int stacks) {
    switch (solid) {
    case DC_SOLID_PLANE:
        add_quad(c, (vertex){{-1, -1, 0}, {0, 0, 1}}, (vertex){{1, -1, 0}, {0, 0, 1}},
                 (vertex){{1, 1, 0}, {0, 0, 1}}, (vertex){{-1, 1, 0}, {0, 0, 1}});
        break;
    case DC_SOLID_BOX:
        for (int axis = 0; axis < 3; axis++) {
            add_side(c, axis, 1);
            add_side(c, axis, -1);
        }
        break;
    case DC_SOLID_SPHERE:
        add_half(c, 1, 0, slices, stacks / 2);
        add_half(c, -1, 0, slices, stacks / 2);
        break;
    case DC_SOLID_TOP:
        add_half(c, 1, 1, slices, stacks / 2);
        break;
    case DC_SOLID_BOTTOM:
        add_half(c, -1, -1, slices, stacks / 2);
        break;
    case DC_SOLID_CYLINDER:
        add_lid(c, 1, slices);
        add_lid(c, -1, slices);
        add_pipe(c, slices, stacks);
        break;
    default:
        add_pipe(c, slices, stacks);
        break;
    }
}

typedef struct detail {
    int slices, stacks;
} detail;

// The true shape, that with no more stacks than it needs, and half the slices, and a quarter.
static int choose_details(dc_solid solid, int slices, int stacks, detail out[4]) {
    bool straight = solid == DC_SOLID_PIPE || solid == DC_SOLID_CYLINDER;
    int count = 1;
    out[0] = (detail){slices, stacks};
    if (solid == DC_SOLID_PLANE || solid == DC_SOLID_BOX) return count;
    if (straight && stacks > 1) out[count++] = (detail){slices, 1};
    for (int part = 2; part <= 4; part *= 2)
        if (slices / part >= 6 && stacks / part >= 4)
            out[count++] = (detail){slices / part, straight ? 1 : stacks / part};
    return count;
}

dc_status dc_shapes_solid(dc_shapes *s, dc_solid solid, int slices, int stacks) {
    detail details[4];
    *s = (dc_shapes){.light = solid == DC_SOLID_PLANE ? DC_LIT_PIXELS
                              : solid == DC_SOLID_BOX ? DC_LIT_BOX
                                                      : DC_LIT_CORNERS};
    int count = choose_details(solid, slices, stacks, details);
    for (int k = 0; k < count; k++) {
        corners c = {0};
        add_solid(&c, solid, details[k].slices, details[k].stacks);
        dc_status status = c.failed ? no_memory() : join(&s->level[k], c.list, c.count);
        free(c.list);
        if (status != DC_OK) {
            dc_shapes_fini(s);
            return status;
        }
        s->levels++;
        // A little above 0 where only light would differ.
        s->level[k].error = k ? 1e-6f : 0;
        if (details[k].slices < slices)
            s->level[k].error = (float)(1 - cos(PI / details[k].slices));
    }
    surround(s);
    return DC_OK;
}

// ---- meshes ----

dc_status dc_shapes_mesh(dc_shapes *s, const float *at, const float *normal, int triangles) {
    *s = (dc_shapes){.light = DC_LIT_CORNERS};
    corners c = {0};
    for (int t = 0; t < triangles; t++) {
        vertex v[3];
        for (int k = 0; k < 3; k++) {
            memcpy(v[k].at, at + 9 * t + 3 * k, sizeof v[k].at);
            memcpy(v[k].normal, normal + 9 * t + 3 * k, sizeof v[k].normal);
        }
        add_triangle(&c, v[0], v[1], v[2]);
    }
    dc_status status = c.failed ? no_memory() : join(&s->level[0], c.list, c.count);
    free(c.list);
    if (status != DC_OK) return status;
    s->levels = 1;
    surround(s);
    return dc_shapes_simplify(s);
}
