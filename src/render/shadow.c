// Shadows: MuJoCo looks each fragment up in a map of 4096 x 4096 depths, most of which nothing asks for. Here only the
// texels that fragments fall on are computed, at the places where the map has them: they are sorted into a
// coarse grid, and each triangle visits the cells under it.
#include "render/canvas.h"

#include <math.h>
#include <string.h>

// Cells a side, at most; texels a cell, on average; texels that a triangle is tried on at a time; triangles that
// are looked through at a time.
enum { GRID = 64, PER_CELL = 8, LANES = 16, CHUNK = 256 };
static const float SLOPE = 1.5f,
                   UNITS = 4.0f / 16777216; // by which casters are moved away from the light

typedef struct bulb {          // a light as a camera
    float from[3], axis[3][3]; // right, up, ahead; `from` from the eye
    float wide, nearest, farthest, size;
    float narrows, gain; // of a spot 1 and `nearest`, else 0 and 1, so that loops have no branch
    bool spot;
} bulb;

// Texels of the map: depth is 1 nearest to the light, 0 farthest.
typedef struct texels {
    float *x, *y, *depth;
    int *fragment;
} texels;

typedef struct grid {
    float x0, y0, x1, y1, over_x, over_y; // of all texels; cells a texel
    float deepest;                        // of all texels
    int side, count;
    int *start;       // (side * side + 1)
    float *deep;      // (side * side) the farthest texel's depth
    texels at;        // (count + LANES) by cell
    int32_t *reached; // (count + LANES) 1, or 0 in a shadow
} grid;

static inline float dot(const float a[3], const float b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const float a[3], const float b[3], float out[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline float least(float a, float b) {
    return a < b ? a : b;
}

static inline float most(float a, float b) {
    return a > b ? a : b;
}

static void unit(float v[3]) {
    float length = sqrtf(dot(v, v));
    for (int k = 0; k < 3; k++)
        v[k] = length < 1e-10f ? k == 2 : v[k] / length;
}

static void set_bulb(const dc_canvas *c, const dc_render_light *l, bulb *b) {
    const dc_render_scene *s = c->scene;
    const double turn = 3.14159265358979323846 / 180;
    float other[3] = {-1, 0, 0}, up[3];
    cross(l->dir, other, up);
    if (!(dot(up, up) > 0.01f)) cross(l->dir, (float[3]){0, 1, 0}, up);
    unit(up);
    memcpy(b->axis[2], l->dir, sizeof b->axis[2]);
    unit(b->axis[2]);
    cross(b->axis[2], up, b->axis[0]);
    unit(b->axis[0]);
    cross(b->axis[0], b->axis[2], b->axis[1]);
    unit(b->axis[1]);
    for (int k = 0; k < 3; k++)
        b->from[k] = l->pos[k] - s->eye[k];
    double angle = 2 * (double)l->cutoff * (double)s->shadow_scale;
    b->spot = l->spot;
    b->wide = l->spot ? (float)tan((angle < 160 ? angle : 160) / 2 * turn) : s->shadow_clip;
    b->nearest = s->nearest;
    b->narrows = l->spot ? 1 : 0;
    b->gain = l->spot ? s->nearest : 1;
    b->farthest = s->farthest;
    b->size = (float)s->shadow_size;
}

// From the light's own axes (right, up, ahead) to -1 ... 1 twice and depth.
typedef struct mark { // of the map: -1 ... 1 twice, and depth
    float x, y, depth;
} mark;

// What x and y are divided by: the distance ahead, or 1 where light comes from everywhere along the axis.
static inline float shrink(const bulb *b, float ahead) {
    return ahead * b->narrows + (1 - b->narrows);
}

static inline mark project_to(const bulb *b, float right, float up, float ahead) {
    float range = b->farthest - b->nearest, by = shrink(b, ahead);
    float over = 1 / (by * b->wide), depth = (b->farthest - ahead) / range;
    return (mark){right * over, up * over, depth * (b->gain / by)};
}

static void project(const bulb *b, const float own[3], float out[3]) {
    mark s = project_to(b, own[0], own[1], own[2]);
    out[0] = s.x;
    out[1] = s.y;
    out[2] = s.depth;
}

// ---- what is asked for ----

// Of fragments; `asked`: within the map, and light would arrive.
typedef struct asking {
    float x[DC_MANY], y[DC_MANY], depth[DC_MANY];
    int asked[DC_MANY];
} asking;

static void find_texels(const dc_canvas *c, const bulb *light, int cast, int first, int count,
                        asking *restrict t) {
    const bulb b = *light;
    const size_t row = (size_t)c->fragments.count;
    const float *x = c->fragments.number + DC_AT * row + first, *y = x + row, *z = y + row;
    const float *red = c->fragments.number + (size_t)(DC_LIT + 4 * cast) * row + first,
                *green = red + row, *blue = green + row;
    for (int i = 0; i < count; i++) {
        float u = x[i] - b.from[0], v = y[i] - b.from[1], w = z[i] - b.from[2];
        float ahead = b.axis[2][0] * u + b.axis[2][1] * v + b.axis[2][2] * w;
        mark p = project_to(&b, b.axis[0][0] * u + b.axis[0][1] * v + b.axis[0][2] * w,
                            b.axis[1][0] * u + b.axis[1][1] * v + b.axis[1][2] * w, ahead);
        t->x[i] = floorf((p.x * 0.5f + 0.5f) * b.size) + 0.5f;
        t->y[i] = floorf((p.y * 0.5f + 0.5f) * b.size) + 0.5f;
        t->depth[i] = p.depth > 0 ? p.depth : 0;
        bool within = (fabsf(p.x) < 1) & (fabsf(p.y) < 1) & (p.depth < 1);
        bool bright = !(red[i] + green[i] + blue[i] <= 0);
        t->asked[i] = within & bright & (shrink(&b, ahead) > 0);
    }
}

static texels texels_in(void *data, int count) {
    float *x = data;
    return (texels){x, x + count, x + 2 * (size_t)count, (int *)(x + 3 * (size_t)count)};
}

// How many texels are asked for, -> t.
static int ask(dc_canvas *c, const bulb *b, int light, texels *t) {
    int count = c->fragments.count, asked = 0;
    if (!dc_list_room(c, &c->shadow.texel, 4 * count, 4)) return 0;
    *t = texels_in(c->shadow.texel.data, count);
    for (int first = 0; first < count; first += DC_MANY) {
        asking a;
        int n = count - first < DC_MANY ? count - first : DC_MANY;
        find_texels(c, b, light, first, n, &a);
        for (int i = 0; i < n; i++) {
            t->x[asked] = a.x[i];
            t->y[asked] = a.y[i];
            t->depth[asked] = a.depth[i];
            t->fragment[asked] = first + i;
            asked += a.asked[i];
        }
    }
    return asked;
}

// Of a coordinate, which may be anything.
static inline int cell_at(float place, int side) {
    return place > 0 ? place < (float)side ? (int)place : side - 1 : 0;
}

static void bound(grid *g, const texels *t, int count) {
    float x0 = t->x[0], y0 = t->y[0], x1 = x0, y1 = y0, deepest = t->depth[0];
    for (int n = 0; n < count; n++) {
        x0 = least(t->x[n], x0), x1 = most(t->x[n], x1);
        y0 = least(t->y[n], y0), y1 = most(t->y[n], y1);
        deepest = least(t->depth[n], deepest);
    }
    *g = (grid){x0, y0, x1, y1, .deepest = deepest, .side = 1, .count = count};
    while (g->side < GRID && g->side * g->side * PER_CELL < count)
        g->side *= 2;
    g->over_x = (float)g->side / (x1 - x0 + 1);
    g->over_y = (float)g->side / (y1 - y0 + 1);
}

static bool reserve(dc_canvas *c, grid *g) {
    dc_shadow_scratch *s = &c->shadow;
    int cells = g->side * g->side, room = g->count + LANES;
    if (!dc_list_room(c, &s->start, 2 * cells + 1, 4)) return false;
    if (!dc_list_room(c, &s->order, 5 * room + g->count, 4)) return false;
    g->start = s->start.data;
    g->deep = (float *)(g->start + cells + 1);
    g->at = texels_in(s->order.data, room);
    g->reached = g->at.fragment + room;
    return true;
}

// What is tried on after the last texel.
static void end_texels(grid *g) {
    for (int n = g->count; n < g->count + LANES; n++) {
        g->at.x[n] = g->at.y[n] = 0;
        g->at.depth[n] = INFINITY;
        g->reached[n] = 0;
    }
}

// The cell of each texel; how many each has, at start[cell + 1], and how deep they lie.
static void count_texels(grid *g, const texels *t, int *cell) {
    int cells = g->side * g->side;
    memset(g->start, 0, ((size_t)cells + 1) * sizeof *g->start);
    for (int k = 0; k < cells; k++)
        g->deep[k] = INFINITY;
    for (int n = 0; n < g->count; n++)
        cell[n] = cell_at((t->y[n] - g->y0) * g->over_y, g->side) * g->side +
                  cell_at((t->x[n] - g->x0) * g->over_x, g->side);
    for (int n = 0; n < g->count; n++) {
        g->start[cell[n] + 1]++;
        g->deep[cell[n]] = least(t->depth[n], g->deep[cell[n]]);
    }
}

static bool sort(dc_canvas *c, grid *g, const texels *t, int count) {
    bound(g, t, count);
    if (!reserve(c, g)) return false;
    int cells = g->side * g->side, *start = g->start, *cell = g->reached + count + LANES;
    count_texels(g, t, cell);
    for (int k = 0; k < cells; k++)
        start[k + 1] += start[k];
    for (int n = count - 1; n >= 0; n--) { // from the end, each cell's end moves to its start
        int at = --start[cell[n] + 1];
        g->at.x[at] = t->x[n];
        g->at.y[at] = t->y[n];
        g->at.depth[at] = t->depth[n];
        g->at.fragment[at] = t->fragment[n];
        g->reached[at] = 1;
    }
    for (int k = 0; k < cells; k++)
        start[k] = start[k + 1];
    start[cells] = count;
    end_texels(g);
    return true;
}

// ---- what stands in the way ----

typedef struct caster {
    float x[3], y[3], z[3];
} caster;

// A triangle as planes over the map, from its first corner on.
typedef struct cover {
    float x, y, z, ux, uy, vx, vy, zx, zy, away;
} cover;

// Texels that come after the last are tried, too: what is said of each is true wherever it lies.
static void cover_texels(const grid *g, const cover *t, int from, int to) {
    for (int first = from; first < to; first += LANES) {
        const float *restrict x = g->at.x + first, *restrict y = g->at.y + first;
        const float *restrict depth = g->at.depth + first;
        int32_t *restrict reached = g->reached + first;
        for (int n = 0; n < LANES; n++) {
            float px = x[n] - t->x, py = y[n] - t->y;
            float u = px * t->ux + py * t->uy, v = px * t->vx + py * t->vy;
            float z = t->z + px * t->zx + py * t->zy;
            bool hit =
                (u >= 0) & (v >= 0) & (u + v <= 1) & (z <= 1) & (z >= 0) & (z - t->away > depth[n]);
            reached[n] &= hit - 1;
        }
    }
}

// A rectangle of cells.
typedef struct block {
    int x0, y0, x1, y1;
} block;

static block find_block(const grid *g, const caster *t) {
    float x0 = least(t->x[0], least(t->x[1], t->x[2])), x1 = most(t->x[0], most(t->x[1], t->x[2]));
    float y0 = least(t->y[0], least(t->y[1], t->y[2])), y1 = most(t->y[0], most(t->y[1], t->y[2]));
    return (block){
        cell_at((x0 - g->x0) * g->over_x, g->side), cell_at((y0 - g->y0) * g->over_y, g->side),
        cell_at((x1 - g->x0) * g->over_x, g->side), cell_at((y1 - g->y0) * g->over_y, g->side)};
}

// Whether any texel of a block lies deeper than that.
static bool is_above(const grid *g, const block *b, float top) {
    for (int j = b->y0; j <= b->y1; j++)
        for (int k = j * g->side + b->x0; k <= j * g->side + b->x1; k++)
            if (top > g->deep[k]) return true;
    return false;
}

// A cell whose texels all lie in a shadow needs no further visits.
static void close_cell(const grid *g, int k) {
    int lit = 0;
    for (int n = g->start[k]; n < g->start[k + 1]; n++)
        lit |= g->reached[n];
    if (!lit) g->deep[k] = INFINITY;
}

// `off`: depth by which it may be nearer than its true shape.
static void visit(const grid *g, const caster *t, float off) {
    block b = find_block(g, t);
    float top = most(t->z[0], most(t->z[1], t->z[2])) - UNITS - off;
    if (!is_above(g, &b, top)) return;
    float ax = t->x[1] - t->x[0], ay = t->y[1] - t->y[0], bx = t->x[2] - t->x[0];
    float by = t->y[2] - t->y[0], area = ax * by - bx * ay;
    if (area == 0) return;
    float over = 1 / area, az = t->z[1] - t->z[0], bz = t->z[2] - t->z[0];
    cover s = {t->x[0],
               t->y[0],
               t->z[0],
               by * over,
               -bx * over,
               -ay * over,
               ax * over,
               (az * by - bz * ay) * over,
               (bz * ax - az * bx) * over,
               0};
    s.away = SLOPE * most(fabsf(s.zx), fabsf(s.zy)) + UNITS + off;
    top -= s.away - UNITS - off;
    for (int j = b.y0; j <= b.y1; j++)
        for (int k = j * g->side + b.x0; k <= j * g->side + b.x1; k++) {
            if (!(top > g->deep[k])) continue;
            cover_texels(g, &s, g->start[k], g->start[k + 1]);
            close_cell(g, k);
        }
}

// A spot's triangle that reaches behind its near plane, cut off there: own[3] in the light's axes.
static void visit_cut(const grid *g, const bulb *b, float own[3][3], float off) {
    float kept[4][3], p[4][3];
    int n = 0;
    for (int k = 0; k < 3; k++) {
        const float *from = own[k], *to = own[(k + 1) % 3];
        if (from[2] >= b->nearest) memcpy(kept[n++], from, sizeof kept[0]);
        if ((from[2] < b->nearest) == (to[2] < b->nearest)) continue;
        float part = (b->nearest - from[2]) / (to[2] - from[2]);
        for (int a = 0; a < 2; a++)
            kept[n][a] = from[a] + part * (to[a] - from[a]);
        kept[n++][2] = b->nearest;
    }
    for (int k = 0; k < n; k++) {
        project(b, kept[k], p[k]);
        for (int a = 0; a < 2; a++)
            p[k][a] = 1 + (p[k][a] * 0.5f + 0.5f) * (b->size - 2);
    }
    for (int k = 2; k < n; k++)
        visit(g,
              &(caster){{p[0][0], p[k - 1][0], p[k][0]},
                        {p[0][1], p[k - 1][1], p[k][1]},
                        {p[0][2], p[k - 1][2], p[k][2]}},
              off);
}

// Rows of: shape's coordinates -> the light's axes.
static void place_part(const dc_canvas *c, const bulb *b, const dc_render_part *p, float m[3][4]) {
    for (int r = 0; r < 3; r++) {
        float moved = 0;
        for (int k = 0; k < 3; k++) {
            m[r][k] = (b->axis[r][0] * p->turn[k] + b->axis[r][1] * p->turn[3 + k] +
                       b->axis[r][2] * p->turn[6 + k]) *
                      p->scale[k];
            moved += b->axis[r][k] * (p->place[k] - c->scene->eye[k] - b->from[k]);
        }
        m[r][3] = moved;
    }
}

static void find_corners(dc_seen *s, const bulb *b, const dc_shape *shape, float own[3][4]) {
    float m[3][4]; // which no store below can change
    memcpy(m, own, sizeof m);
    const float *restrict px = shape->at[0], *restrict py = shape->at[1],
                          *restrict pz = shape->at[2];
    float *restrict x = s->x, *restrict y = s->y, *restrict z = s->z;
    float range = 1 / (b->farthest - b->nearest), half = (b->size - 2) / 2, over = 1 / b->wide;
    const float farthest = b->farthest, gain = b->gain, narrows = b->narrows;
    const float limit = b->spot ? b->nearest : -INFINITY;
#pragma omp simd
    for (int v = 0; v < shape->vertices; v++) {
        float u = m[0][0] * px[v] + m[0][1] * py[v] + m[0][2] * pz[v] + m[0][3];
        float w = m[1][0] * px[v] + m[1][1] * py[v] + m[1][2] * pz[v] + m[1][3];
        float d = m[2][0] * px[v] + m[2][1] * py[v] + m[2][2] * pz[v] + m[2][3];
        float by = d * narrows + (1 - narrows), near = over / by, depth = (farthest - d) * range;
        float shown = depth * gain / by;
        x[v] = 1 + (u * near + 1) * half;
        y[v] = 1 + (w * near + 1) * half;
        z[v] = d >= limit ? shown : -1; // -1: too near
    }
}

static void cut_triangle(const grid *g, const bulb *b, const dc_shape *shape, float m[3][4],
                         const int32_t *corner, float off) {
    float own[3][3];
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++)
            own[k][r] = m[r][0] * shape->at[0][corner[k]] + m[r][1] * shape->at[1][corner[k]] +
                        m[r][2] * shape->at[2][corner[k]] + m[r][3];
    visit_cut(g, b, own, off);
}

// Whether a texel of the cells under a rectangle, of at most two by two, lies deeper than `top`; true where there are more.
static inline bool may_shade_cells(const grid *g, float x0, float y0, float x1, float y1,
                                   float top) {
    int i0 = cell_at((x0 - g->x0) * g->over_x, g->side);
    int i1 = cell_at((x1 - g->x0) * g->over_x, g->side);
    int j0 = cell_at((y0 - g->y0) * g->over_y, g->side) * g->side;
    int j1 = cell_at((y1 - g->y0) * g->over_y, g->side) * g->side;
    float low =
        least(least(g->deep[j0 + i0], g->deep[j0 + i1]), least(g->deep[j1 + i0], g->deep[j1 + i1]));
    return (i1 - i0 > 1) | (j1 - j0 > g->side) | (top > low);
}

// Whether a triangle may cover a texel's middle that is asked for, or is too near to tell. Those that look away from the light
// count, too: they lie behind others, but steep ones are moved away from the light by more than a thin leg is wide.
static inline bool may_cover(const dc_seen *s, const grid *g, const int32_t *corner, bool spot,
                             float off) {
    int32_t a = corner[0], b = corner[1], d = corner[2];
    float ax = s->x[a], bx = s->x[b], dx = s->x[d], ay = s->y[a], by = s->y[b], dy = s->y[d];
    float x0 = least(ax, least(bx, dx)), x1 = most(ax, most(bx, dx));
    float y0 = least(ay, least(by, dy)), y1 = most(ay, most(by, dy));
    float low = least(s->z[a], least(s->z[b], s->z[d]));
    float high = most(s->z[a], most(s->z[b], s->z[d]));
    float column = floorf(x1 - 0.5f) + 0.5f,
          row = floorf(y1 - 0.5f) + 0.5f; // the last not after it
    bool within = (x1 >= g->x0) & (x0 <= g->x1) & (y1 >= g->y0) & (y0 <= g->y1);
    bool above = may_shade_cells(g, x0, y0, x1, y1, high - UNITS - off);
    return (spot & (low < 0)) | (within & (column >= x0) & (row >= y0) & above);
}

// Whether a part's sphere may stand between the light and a texel.
static bool may_shade(const bulb *b, const grid *g, const dc_render_part *p, float m[3][4]) {
    float own[3], at[3], wide = most(p->scale[0], most(p->scale[1], p->scale[2]));
    float radius = p->shapes->radius * wide;
    for (int k = 0; k < 3; k++) {
        const float *middle = p->shapes->middle;
        own[k] = m[k][0] * middle[0] + m[k][1] * middle[1] + m[k][2] * middle[2] + m[k][3];
    }
    float nearest = own[2] - radius, half = (b->size - 2) / 2;
    if (b->spot && nearest <= b->nearest) return true;
    float around =
        b->spot ? radius / nearest / b->wide * (1 + 2 * most(fabsf(own[0]), fabsf(own[1])) / own[2])
                : radius / b->wide;
    float close[3] = {own[0], own[1], nearest};
    project(b, own, at);
    at[0] = 1 + (at[0] + 1) * half;
    at[1] = 1 + (at[1] + 1) * half;
    around = around * half + 1;
    if (at[0] + around < g->x0 || at[0] - around > g->x1) return false;
    if (at[1] + around < g->y0 || at[1] - around > g->y1) return false;
    project(b, close, at);
    return at[2] > g->deepest;
}

// A length along the light, `ahead` of it, as depth.
static float depth_of(const bulb *b, float length, float ahead) {
    float depth = length / (b->farthest - b->nearest);
    ahead = most(ahead, b->nearest);
    return b->spot ? depth * b->nearest * b->farthest / (ahead * ahead) : depth;
}

static void cast_triangle(const dc_seen *s, const bulb *b, const grid *g, const dc_shape *shape,
                          float m[3][4], const int32_t *k, float off) {
    caster t = {{s->x[k[0]], s->x[k[1]], s->x[k[2]]},
                {s->y[k[0]], s->y[k[1]], s->y[k[2]]},
                {s->z[k[0]], s->z[k[1]], s->z[k[2]]}};
    if (b->spot && least(t.z[0], least(t.z[1], t.z[2])) < 0)
        cut_triangle(g, b, shape, m, k, off);
    else
        visit(g, &t, off);
}

static int pick(const dc_seen *s, const grid *g, const dc_shape *shape, bool spot, int first,
                float off, int picked[CHUNK + 1]) {
    uint8_t keep[CHUNK];
    int n = shape->triangles - first < CHUNK ? shape->triangles - first : CHUNK, count = 0;
    const int32_t *corner = shape->corner + 3 * first;
    for (int t = 0; t < n; t++)
        keep[t] = may_cover(s, g, corner + 3 * t, spot, off);
    for (int t = 0; t < n; t++) {
        picked[count] = first + t;
        count += keep[t];
    }
    return count;
}

static void cast_part(dc_canvas *c, const bulb *b, const grid *g, const dc_render_part *p) {
    float m[3][4];
    place_part(c, b, p, m);
    if (!may_shade(b, g, p, m)) return;
    const dc_shape *shape = dc_view_level(c, p, DC_WORTH_SHADE);
    dc_seen *s = &c->seen;
    if (!dc_seen_room(c, s, shape->vertices)) return;
    find_corners(s, b, shape, m);
    float off =
        depth_of(b, shape->error * most(p->scale[0], most(p->scale[1], p->scale[2])), m[2][3]);
    int picked[CHUNK + 1] = {0};
    for (int first = 0; first < shape->triangles; first += CHUNK) {
        int count = pick(s, g, shape, b->spot, first, off, picked);
        for (int k = 0; k < count; k++) // what it puts into shadows saves later ones visits
            cast_triangle(s, b, g, shape, m, shape->corner + 3 * picked[k], off);
    }
}

void dc_shadow_cast(dc_canvas *c, int k) {
    bulb b;
    grid g;
    set_bulb(c, &c->scene->light[c->cast[k]], &b);
    texels t;
    int count = ask(c, &b, k, &t);
    if (c->failed || !count || !sort(c, &g, &t, count)) return;
    for (int p = 0; p < c->scene->parts && !c->failed; p++)
        if (c->scene->part[p].shadows) cast_part(c, &b, &g, &c->scene->part[p]);
    float *reached =
        c->fragments.number + (size_t)(DC_REACHED + 4 * k) * (size_t)c->fragments.count;
    for (int n = 0; n < g.count; n++)
        if (!g.reached[n]) reached[g.at.fragment[n]] = 0;
}
