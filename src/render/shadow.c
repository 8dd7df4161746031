// Shadows: MuJoCo looks each fragment up in a map of 4096 x 4096 depths, most of which nothing asks for. Here only the
// texels that fragments fall on are computed, at the places where the map has them: they are sorted into a
// coarse grid, and each triangle visits the cells under it.
#include "render/canvas.h"

#include <math.h>
#include <string.h>

// Cells a side, at most; so few are looked through again; so many in a row are not told apart.
enum { GRID = 256, FEW = 4, WIDE = 8 };
static const float SLOPE = 1.5f,
                   UNITS = 4.0f / 16777216; // by which casters are moved away from the light

typedef struct texel { // of the map; depth: 1 nearest to the light, 0 farthest
    float x, y, depth;
    int fragment;
} texel;

typedef struct bulb {          // a light as a camera
    float from[3], axis[3][3]; // right, up, ahead; `from` from the eye
    float wide, nearest, farthest, size;
    bool spot;
} bulb;

typedef struct grid {
    float x0, y0, x1, y1, over_x, over_y; // of all texels; cells a texel
    float deepest;                        // of all texels
    int side, count;
    int *start;  // (side * side + 1)
    float *deep; // (side * side) the farthest texel's depth
    float *low;  // (side) that of a row of cells
    // By cell, (count) each. reached: 1, or 0 in a shadow
    float *x, *y, *depth;
    int32_t *fragment, *reached;
} grid;

static float dot(const float a[3], const float b[3]) {
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
    b->farthest = s->farthest;
    b->size = (float)s->shadow_size;
}

// From the light's own axes (right, up, ahead) to -1 ... 1 twice and depth.
static inline void project(const bulb *b, const float own[3], float out[3]) {
    float range = b->farthest - b->nearest;
    float over = b->spot ? 1 / (own[2] * b->wide) : 1 / b->wide;
    out[0] = own[0] * over;
    out[1] = own[1] * over;
    out[2] = (b->farthest - own[2]) / range;
    if (b->spot) out[2] *= b->nearest / own[2];
}

// ---- what is asked for ----

typedef struct
    texels { // of fragments: x, y and depth; `asked`: within the map, and light would arrive
    float x[DC_MANY], y[DC_MANY], depth[DC_MANY];
    int asked[DC_MANY];
} texels;

static void find_texels(const dc_canvas *c, const bulb *b, int light, int first, int count,
                        texels *t) {
    const dc_fragments *f = &c->fragments;
    const size_t row = (size_t)f->count;
    const float *at = f->number + DC_AT * row + first;
    const float *lit = f->number + (size_t)(DC_LIT + 4 * light) * row + first;
    for (int i = 0; i < count; i++) {
        float from[3], own[3], p[3];
        for (size_t k = 0; k < 3; k++)
            from[k] = at[k * row + (size_t)i] - b->from[k];
        for (int k = 0; k < 3; k++)
            own[k] = dot(b->axis[k], from);
        project(b, own, p);
        t->x[i] = floorf((p[0] * 0.5f + 0.5f) * b->size) + 0.5f;
        t->y[i] = floorf((p[1] * 0.5f + 0.5f) * b->size) + 0.5f;
        t->depth[i] = p[2] > 0 ? p[2] : 0;
        bool within = (fabsf(p[0]) < 1) & (fabsf(p[1]) < 1) & (p[2] < 1);
        bool bright = !(lit[i] + lit[row + (size_t)i] + lit[2 * row + (size_t)i] <= 0);
        t->asked[i] = within & bright & (!b->spot | (own[2] > 0));
    }
}

static void ask(dc_canvas *c, const bulb *b, int light) {
    int count = c->fragments.count, asked = 0;
    if (!dc_list_room(c, &c->shadow.texel, count, sizeof(texel))) return;
    texel *out = c->shadow.texel.data;
    for (int first = 0; first < count; first += DC_MANY) {
        texels t;
        int n = count - first < DC_MANY ? count - first : DC_MANY;
        find_texels(c, b, light, first, n, &t);
        for (int i = 0; i < n; i++) {
            out[asked] = (texel){t.x[i], t.y[i], t.depth[i], first + i};
            asked += t.asked[i];
        }
    }
    c->shadow.texel.count = asked;
}

// Of a coordinate, which may be anything.
static int cell_at(float place, int side) {
    return place > 0 ? place < (float)side ? (int)place : side - 1 : 0;
}

static int cell_of(const grid *g, float x, float y) {
    int i = cell_at((x - g->x0) * g->over_x, g->side),
        j = cell_at((y - g->y0) * g->over_y, g->side);
    return j * g->side + i;
}

static void bound(grid *g, const texel *t, int count) {
    *g = (grid){.x0 = INFINITY,
                .y0 = INFINITY,
                .x1 = -INFINITY,
                .y1 = -INFINITY,
                .deepest = INFINITY,
                .side = 1};
    for (int n = 0; n < count; n++) {
        g->x0 = t[n].x < g->x0 ? t[n].x : g->x0;
        g->x1 = t[n].x > g->x1 ? t[n].x : g->x1;
        g->y0 = t[n].y < g->y0 ? t[n].y : g->y0;
        g->y1 = t[n].y > g->y1 ? t[n].y : g->y1;
    }
    while (g->side < GRID && g->side * g->side < count)
        g->side *= 2;
    g->over_x = (float)g->side / (g->x1 - g->x0 + 1);
    g->over_y = (float)g->side / (g->y1 - g->y0 + 1);
}

static bool reserve(dc_canvas *c, grid *g, int count) {
    dc_shadow_scratch *s = &c->shadow;
    int cells = g->side * g->side;
    if (!dc_list_room(c, &s->start, 2 * cells + g->side + 1, 4)) return false;
    if (!dc_list_room(c, &s->order, 5 * count, 4)) return false;
    g->start = s->start.data;
    g->deep = (float *)(g->start + cells + 1);
    g->low = g->deep + cells;
    g->x = s->order.data;
    g->y = g->x + count;
    g->depth = g->y + count;
    g->fragment = (int32_t *)(g->depth + count);
    g->reached = g->fragment + count;
    g->count = count;
    return true;
}

// Texels by cell, each cell's start, and how deep its texels lie.
static bool sort(dc_canvas *c, grid *g) {
    const texel *t = c->shadow.texel.data;
    int count = c->shadow.texel.count;
    bound(g, t, count);
    if (!reserve(c, g, count)) return false;
    int cells = g->side * g->side, *start = g->start;
    memset(start, 0, ((size_t)cells + 1) * sizeof *start);
    for (int k = 0; k < cells + g->side; k++)
        g->deep[k] = INFINITY; // and low
    for (int n = 0; n < count; n++) {
        int k = cell_of(g, t[n].x, t[n].y);
        start[k + 1]++;
        g->deep[k] = least(t[n].depth, g->deep[k]);
        g->low[k / g->side] = least(t[n].depth, g->low[k / g->side]);
        g->deepest = least(t[n].depth, g->deepest);
    }
    for (int k = 0; k < cells; k++)
        start[k + 1] += start[k];
    for (int n = count - 1; n >= 0; n--) { // from the end, each cell's end moves to its start
        int at = --start[cell_of(g, t[n].x, t[n].y) + 1];
        g->x[at] = t[n].x;
        g->y[at] = t[n].y;
        g->depth[at] = t[n].depth;
        g->fragment[at] = t[n].fragment;
        g->reached[at] = 1;
    }
    for (int k = 0; k < cells; k++)
        start[k] = start[k + 1];
    start[cells] = count;
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

static void cover_texels(const grid *g, const cover *t, int from, int to) {
    const float *restrict x = g->x, *restrict y = g->y, *restrict depth = g->depth;
    int32_t *restrict reached = g->reached;
    for (int n = from; n < to; n++) {
        float px = x[n] - t->x, py = y[n] - t->y;
        float u = px * t->ux + py * t->uy, v = px * t->vx + py * t->vy;
        float z = t->z + px * t->zx + py * t->zy;
        bool hit =
            (u >= 0) & (v >= 0) & (u + v <= 1) & (z <= 1) & (z >= 0) & (z - t->away > depth[n]);
        reached[n] &= hit - 1;
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
    for (int j = b->y0; j <= b->y1; j++) {
        if (top > g->low[j] && b->x1 - b->x0 >= WIDE) return true;
        for (int k = j * g->side + b->x0; top > g->low[j] && k <= j * g->side + b->x1; k++)
            if (top > g->deep[k]) return true;
    }
    return false;
}

// Cells whose texels all lie in a shadow need no further visits.
static void close_cells(const grid *g, int first, int end) {
    for (int k = first; k < end; k++) {
        int lit = 0;
        for (int n = g->start[k]; n < g->start[k + 1]; n++)
            lit |= g->reached[n];
        if (!lit) g->deep[k] = INFINITY;
    }
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
    for (int j = b.y0; j <= b.y1; j++) {
        int last = j * g->side + b.x1;
        if (top <= g->low[j]) continue;
        if (b.x1 - b.x0 >= WIDE) {
            cover_texels(g, &s, g->start[last - b.x1 + b.x0], g->start[last + 1]);
            continue;
        }
        for (int k = j * g->side + b.x0; k <= last; k++) {
            int first = k;
            while (k <= last && top > g->deep[k])
                k++;
            if (g->start[k] == g->start[first]) continue;
            cover_texels(g, &s, g->start[first], g->start[k]);
            if (k - first <= FEW) close_cells(g, first, k);
        }
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

static void find_corners(dc_seen *s, const bulb *b, const dc_shape *shape, float m[3][4]) {
    const float *restrict px = shape->at[0], *restrict py = shape->at[1],
                          *restrict pz = shape->at[2];
    float *restrict x = s->x, *restrict y = s->y, *restrict z = s->z;
    float range = 1 / (b->farthest - b->nearest), half = (b->size - 2) / 2, over = 1 / b->wide;
    for (int v = 0; v < shape->vertices; v++) {
        float u = m[0][0] * px[v] + m[0][1] * py[v] + m[0][2] * pz[v] + m[0][3];
        float w = m[1][0] * px[v] + m[1][1] * py[v] + m[1][2] * pz[v] + m[1][3];
        float d = m[2][0] * px[v] + m[2][1] * py[v] + m[2][2] * pz[v] + m[2][3];
        float near = b->spot ? over / d : over, depth = (b->farthest - d) * range;
        x[v] = 1 + (u * near + 1) * half;
        y[v] = 1 + (w * near + 1) * half;
        z[v] = b->spot ? d >= b->nearest ? depth * b->nearest / d : -1 : depth; // -1: too near
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

// Whether a triangle may cover a texel's middle that is asked for, or is too near to tell. Of a closed shape those that
// look away from the light lie behind others.
static inline bool may_cover(const dc_seen *s, const grid *g, const int32_t *corner, bool spot,
                             bool closed) {
    int32_t a = corner[0], b = corner[1], d = corner[2];
    float x0 = least(s->x[a], least(s->x[b], s->x[d])), x1 = most(s->x[a], most(s->x[b], s->x[d]));
    float y0 = least(s->y[a], least(s->y[b], s->y[d])), y1 = most(s->y[a], most(s->y[b], s->y[d]));
    float low = least(s->z[a], least(s->z[b], s->z[d]));
    float high = most(s->z[a], most(s->z[b], s->z[d]));
    float column = floorf(x1 - 0.5f) + 0.5f,
          row = floorf(y1 - 0.5f) + 0.5f; // the last not after it
    bool within = (x1 >= g->x0) & (x0 <= g->x1) & (y1 >= g->y0) & (y0 <= g->y1);
    float u = (s->x[b] - s->x[a]) * (s->y[d] - s->y[a]);
    float v = (s->x[d] - s->x[a]) * (s->y[b] - s->y[a]);
    return (spot & (low < 0)) |
           (within & (!closed | (u > v)) & (column >= x0) & (row >= y0) & (high > g->deepest));
}

static int pick(dc_canvas *c, const grid *g, const dc_shape *shape, bool spot, bool closed) {
    if (!dc_list_room(c, &c->picked, shape->triangles + 1, sizeof(int))) return 0;
    int *picked = c->picked.data, count = 0;
    uint8_t keep[256];
    for (int t0 = 0; t0 < shape->triangles; t0 += 256) {
        int n = shape->triangles - t0 < 256 ? shape->triangles - t0 : 256;
        for (int t = 0; t < n; t++)
            keep[t] = may_cover(&c->seen, g, shape->corner + 3 * (t0 + t), spot, closed);
        for (int t = 0; t < n; t++) {
            picked[count] = t0 + t;
            count += keep[t];
        }
    }
    return count;
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
    int count = pick(c, g, shape, b->spot, p->shapes->closed);
    const int *picked = c->picked.data;
    for (int n = 0; n < count; n++) {
        const int32_t *k = shape->corner + 3 * picked[n];
        caster t = {{s->x[k[0]], s->x[k[1]], s->x[k[2]]},
                    {s->y[k[0]], s->y[k[1]], s->y[k[2]]},
                    {s->z[k[0]], s->z[k[1]], s->z[k[2]]}};
        if (b->spot && least(t.z[0], least(t.z[1], t.z[2])) < 0)
            cut_triangle(g, b, shape, m, k, off);
        else
            visit(g, &t, off);
    }
}

void dc_shadow_cast(dc_canvas *c, int k) {
    bulb b;
    grid g;
    set_bulb(c, &c->scene->light[c->cast[k]], &b);
    ask(c, &b, k);
    if (c->failed || !c->shadow.texel.count || !sort(c, &g)) return;
    for (int p = 0; p < c->scene->parts && !c->failed; p++)
        if (c->scene->part[p].shadows) cast_part(c, &b, &g, &c->scene->part[p]);
    float *reached =
        c->fragments.number + (size_t)(DC_REACHED + 4 * k) * (size_t)c->fragments.count;
    for (int n = 0; n < g.count; n++)
        if (!g.reached[n]) reached[g.fragment[n]] = 0;
}
