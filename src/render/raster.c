// Which samples a triangle covers. Corners lie on a grid of DC_FINE places a pixel and edges are whole numbers, so
// that neighbours leave no gap and no sample counts twice.
#include "render/canvas.h"

#include <math.h>

// Samples of a pixel, in eighths; rows go up.
static const int at_x[DC_RENDER_SAMPLES] = {3, 7, 1, 5}, at_y[DC_RENDER_SAMPLES] = {1, 3, 5, 7};

enum { EIGHTH = DC_FINE / 8, CHUNK = 256 }; // triangles that are looked through at a time

typedef struct corner {
    int64_t x, y;
    double z;
} corner;

// The pixels a triangle can touch, edge functions at the first one's corner and their steps.
typedef struct sweep {
    int x0, y0, x1, y1;
    int64_t edge[3], right[3], up[3], to[3][DC_RENDER_SAMPLES];
    float depth, depth_right, depth_up, depth_to[DC_RENDER_SAMPLES];
} sweep;

static int64_t least(int64_t a, int64_t b, int64_t c) {
    a = a < b ? a : b;
    return a < c ? a : c;
}

static int64_t most(int64_t a, int64_t b, int64_t c) {
    a = a > b ? a : b;
    return a > c ? a : c;
}

static void set_edge(sweep *s, int k, corner a, corner b) {
    int64_t dx = b.x - a.x, dy = b.y - a.y;
    int64_t px = (int64_t)s->x0 * DC_FINE - a.x, py = (int64_t)s->y0 * DC_FINE - a.y;
    bool ours =
        dy < 0 || (dy == 0 && dx > 0); // a sample on the edge belongs to one of its two triangles
    s->edge[k] = dx * py - dy * px - (ours ? 0 : 1);
    s->right[k] = -dy * DC_FINE;
    s->up[k] = dx * DC_FINE;
    for (int i = 0; i < DC_RENDER_SAMPLES; i++)
        s->to[k][i] = (dx * at_y[i] - dy * at_x[i]) * EIGHTH;
}

static void set_depth(sweep *s, corner a, corner b, corner c, int64_t area) {
    double over = 1 / (double)area, bz = b.z - a.z, cz = c.z - a.z;
    double sx = (bz * (double)(c.y - a.y) - cz * (double)(b.y - a.y)) * over;
    double sy = (cz * (double)(b.x - a.x) - bz * (double)(c.x - a.x)) * over;
    s->depth = (float)(a.z + sx * (double)(s->x0 * (int64_t)DC_FINE - a.x) +
                       sy * (double)(s->y0 * (int64_t)DC_FINE - a.y));
    s->depth_right = (float)(sx * DC_FINE);
    s->depth_up = (float)(sy * DC_FINE);
    for (int i = 0; i < DC_RENDER_SAMPLES; i++)
        s->depth_to[i] = (float)((sx * at_x[i] + sy * at_y[i]) * EIGHTH);
}

// False where it faces away or lies outside of the band.
static bool set_sweep(const dc_canvas *c, sweep *s, corner p, corner q, corner r) {
    int64_t area = (q.x - p.x) * (r.y - p.y) - (r.x - p.x) * (q.y - p.y);
    if (area <= 0) return false;
    int64_t x0 = least(p.x, q.x, r.x), x1 = most(p.x, q.x, r.x);
    int64_t y0 = least(p.y, q.y, r.y), y1 = most(p.y, q.y, r.y);
    // From the first sample to the last of a pixel.
    x0 = (x0 - 7 * DC_FINE / 8 + DC_FINE - 1) >> 8, x1 = (x1 - DC_FINE / 8) >> 8;
    y0 = (y0 - 7 * DC_FINE / 8 + DC_FINE - 1) >> 8, y1 = (y1 - DC_FINE / 8) >> 8;
    x0 = x0 > 0 ? x0 : 0, x1 = x1 < c->width ? x1 : c->width - 1;
    y0 = y0 > c->row ? y0 : c->row, y1 = y1 < c->row + c->rows ? y1 : c->row + c->rows - 1;
    if (x0 > x1 || y0 > y1) return false;
    s->x0 = (int)x0, s->x1 = (int)x1, s->y0 = (int)y0, s->y1 = (int)y1;
    set_edge(s, 0, p, q);
    set_edge(s, 1, q, r);
    set_edge(s, 2, r, p);
    set_depth(s, p, q, r, area);
    return true;
}

// Which samples of a pixel are covered and not behind what is there; their depths.
static inline int test_pixel(const sweep *s, const int64_t e[3], float z, const float *depth,
                             float here[DC_RENDER_SAMPLES]) {
    int64_t out[DC_RENDER_SAMPLES];
    int hit = 0;
    for (int i = 0; i < DC_RENDER_SAMPLES; i++) {
        out[i] = (e[0] + s->to[0][i]) | (e[1] + s->to[1][i]) | (e[2] + s->to[2][i]);
        here[i] = z + s->depth_to[i];
    }
    for (int i = 0; i < DC_RENDER_SAMPLES; i++)
        hit |= (out[i] >= 0 && here[i] >= depth[i]) << i;
    return hit;
}

static void keep_pixel(dc_canvas *c, size_t at, int hit, const float here[DC_RENDER_SAMPLES],
                       dc_record new, int *record) {
    if (*record < 0) {
        dc_record *r = dc_list_more(c, &c->records, sizeof *r);
        if (!r) return;
        *r = new;
        *record = c->records.count - 1;
    }
    float *depth = c->depth + at, far = INFINITY;
    for (int i = 0; i < DC_RENDER_SAMPLES; i++) {
        if (hit >> i & 1) {
            depth[i] = here[i];
            c->top[at + (size_t)i] = *record;
        }
        far = depth[i] < far ? depth[i] : far;
    }
    c->far[at / DC_RENDER_SAMPLES] = far;
}

// new.part < 0: hits are listed, not kept.
static void sweep_over(dc_canvas *c, const sweep *s, dc_record new, int *record) {
    for (int y = s->y0; y <= s->y1; y++) {
        int64_t e[3];
        float z = s->depth + s->depth_up * (float)(y - s->y0);
        size_t row = (size_t)(y - c->row) * (size_t)c->width;
        for (int k = 0; k < 3; k++)
            e[k] = s->edge[k] + s->up[k] * (y - s->y0);
        for (int x = s->x0; x <= s->x1; x++) {
            float here[DC_RENDER_SAMPLES];
            size_t at = (row + (size_t)x) * DC_RENDER_SAMPLES;
            int hit =
                test_pixel(s, e, z + s->depth_right * (float)(x - s->x0), c->depth + at, here);
            for (int k = 0; k < 3; k++)
                e[k] += s->right[k];
            if (!hit) continue;
            if (new.part >= 0) {
                keep_pixel(c, at, hit, here, new, record);
            } else {
                int *one = dc_list_more(c, &c->hits, sizeof *one);
                if (one) *one = (int)(row + (size_t)x) << 4 | hit;
            }
        }
    }
}

// ---- triangles that come too near, or lie far outside ----

enum { CLIPPED = 9 };

typedef struct point {
    double x, y, w; // right, up, ahead
} point;

static double inside(const dc_canvas *c, const point *p, int plane) {
    double reach = 8000;
    switch (plane) {
    case 0:
        return p->w - (double)c->scene->nearest;
    case 1:
        return reach * p->w + (double)c->focal[0] * p->x;
    case 2:
        return reach * p->w - (double)c->focal[0] * p->x;
    case 3:
        return reach * p->w + (double)c->focal[1] * p->y;
    default:
        return reach * p->w - (double)c->focal[1] * p->y;
    }
}

static int clip(const dc_canvas *c, point *list, int count) {
    for (int plane = 0; plane < 5; plane++) {
        point kept[CLIPPED];
        int n = 0;
        for (int k = 0; k < count; k++) {
            const point *a = &list[k], *b = &list[(k + 1) % count];
            double da = inside(c, a, plane), db = inside(c, b, plane);
            if (da >= 0) kept[n++] = *a;
            if ((da < 0) == (db < 0)) continue;
            double t = da / (da - db);
            kept[n++] = (point){a->x + t * (b->x - a->x), a->y + t * (b->y - a->y),
                                a->w + t * (b->w - a->w)};
        }
        count = n;
        for (int k = 0; k < n; k++)
            list[k] = kept[k];
        if (count < 3) return 0;
    }
    return count;
}

static point find_point(const dc_canvas *c, const dc_render_part *p, const dc_shape *shape, int v) {
    const dc_render_scene *s = c->scene;
    double from[3], own[3];
    for (int k = 0; k < 3; k++)
        own[k] = (double)shape->at[k][v] * (double)p->scale[k];
    for (int k = 0; k < 3; k++)
        from[k] = (double)p->turn[3 * k] * own[0] + (double)p->turn[3 * k + 1] * own[1] +
                  (double)p->turn[3 * k + 2] * own[2] + (double)p->place[k] - (double)s->eye[k];
    point out = {0, 0, 0};
    for (int k = 0; k < 3; k++) {
        out.x += (double)s->right[k] * from[k];
        out.y += (double)s->up[k] * from[k];
        out.w += (double)s->forward[k] * from[k];
    }
    return out;
}

static corner on_canvas(const dc_canvas *c, point p) {
    double x = (double)c->focal[0] * p.x / p.w + (double)c->centre[0];
    double y = (double)c->focal[1] * p.y / p.w + (double)c->centre[1];
    return (corner){(int64_t)floor(x * DC_FINE + 0.5), (int64_t)floor(y * DC_FINE + 0.5), 1 / p.w};
}

static void draw_clipped(dc_canvas *c, const dc_render_part *p, dc_record new) {
    point list[CLIPPED];
    int record = -1;
    for (int k = 0; k < 3; k++)
        list[p->flip ? 2 - k : k] =
            find_point(c, p, new.shape, new.shape->corner[3 * new.triangle + k]);
    int n = clip(c, list, 3);
    for (int k = 2; k < n; k++) {
        sweep s;
        if (set_sweep(c, &s, on_canvas(c, list[0]), on_canvas(c, list[k - 1]),
                      on_canvas(c, list[k])))
            sweep_over(c, &s, new, &record);
    }
}

// ---- parts ----

static inline int32_t lower(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static inline int32_t upper(int32_t a, int32_t b) {
    return a > b ? a : b;
}

// Whether a triangle within a pixel covers one of its samples. Corners from the pixel's own.
static inline bool covers(int32_t ax, int32_t ay, int32_t bx, int32_t by, int32_t dx, int32_t dy) {
    int32_t x[4] = {ax, bx, dx, ax}, y[4] = {ay, by, dy, ay}, out[DC_RENDER_SAMPLES] = {0};
    for (int k = 0; k < 3; k++) {
        int32_t right = x[k + 1] - x[k], up = y[k + 1] - y[k];
        int32_t ours = ((up < 0) | ((up == 0) & (right > 0))) - 1;
        for (int i = 0; i < DC_RENDER_SAMPLES; i++)
            out[i] |= right * (at_y[i] * EIGHTH - y[k]) - up * (at_x[i] * EIGHTH - x[k]) + ours;
    }
    return (out[0] & out[1] & out[2] & out[3]) >= 0;
}

// Where triangles count: the band, and how far each pixel's farthest sample is.
typedef struct field {
    int32_t right, low, high;
    int width, row, rows;
    const float *far;
} field;

// Whether a triangle may cover a sample of the band that is not nearer: it faces the eye, and there is a sample between
// its least and its greatest corner; within a single pixel, it does cover one, and is not behind all of them.
// Written so that the compiler does many at a time.
static inline bool may_cover(const dc_seen *s, const int32_t *of, const field *f) {
    int32_t a = of[0], b = of[1], d = of[2];
    int32_t ax = s->ix[a], ay = s->iy[a], bx = s->ix[b], by = s->iy[b], dx = s->ix[d],
            dy = s->iy[d];
    float u = (float)(bx - ax) * (float)(dy - ay), v = (float)(dx - ax) * (float)(by - ay);
    int32_t x0 = lower(ax, lower(bx, dx)), x1 = upper(ax, upper(bx, dx));
    int32_t y0 = lower(ay, lower(by, dy)), y1 = upper(ay, upper(by, dy));
    int32_t column = (x0 + 31) >> 8, row = (y0 + 31) >> 8; // of the first samples not before it
    bool one = (column == (x1 - 32) >> 8) & (row == (y1 - 32) >> 8); // a single pixel
    int32_t l = column * DC_FINE, m = row * DC_FINE;                 // of the pixel's corner
    bool ahead = u - v > -1e-6f * (fabsf(u) + fabsf(v));
    bool within = (x1 >= 32) & (x0 < f->right) & (y1 >= f->low) & (y0 < f->high);
    bool some = (column <= (x1 - 32) >> 8) & (row <= (y1 - 32) >> 8);
    float za = s->z[a], zb = s->z[b], zd = s->z[d];
    float top = za > zb ? za : zb;
    bool near = !((za > 0) & (zb > 0) & (zd > 0));
    bool inside = some & one & (column >= 0) & (column < f->width) & (row >= f->row) &
                  (row < f->row + f->rows);
    float far = f->far[inside ? (row - f->row) * f->width + column : 0];
    bool seen = (top > zd ? top : zd) * 1.000001f >= far;
    int32_t all = inside ? -1 : 0; // others would be too far away to multiply
    bool hit = inside & seen &
               covers((ax - l) & all, (ay - m) & all, (bx - l) & all, (by - m) & all,
                      (dx - l) & all, (dy - m) & all);
    return near | (ahead & within & some & (!one | hit));
}

// The triangles of c->seen from `first` on that are worth a closer look -> picked.
static int pick(const dc_canvas *c, const dc_shape *shape, bool flip, int first,
                int picked[CHUNK + 1]) {
    uint8_t keep[CHUNK];
    field f = {.right = c->width * DC_FINE,
               .low = c->row * DC_FINE,
               .high = (c->row + c->rows) * DC_FINE,
               .width = c->width,
               .row = c->row,
               .rows = c->rows,
               .far = c->far};
    int count = 0, n = shape->triangles - first < CHUNK ? shape->triangles - first : CHUNK;
    const int32_t *of = shape->corner + 3 * first;
    for (int t = 0; t < n; t++)
        keep[t] = may_cover(&c->seen, of + 3 * t, &f);
    for (int t = 0; t < n; t++) {
        picked[count] = first + t;
        count += keep[t] | flip;
    }
    return count;
}

static void draw(dc_canvas *c, const dc_render_part *p, const dc_shape *shape, int part, int t) {
    const dc_seen *seen = &c->seen;
    const int32_t *corner_of = shape->corner + 3 * t;
    int a = corner_of[0], b = corner_of[p->flip ? 2 : 1], d = corner_of[p->flip ? 1 : 2];
    if (!(seen->z[a] > 0 && seen->z[b] > 0 && seen->z[d] > 0)) {
        draw_clipped(c, p, (dc_record){shape, part, t, 0, 0});
        return;
    }
    sweep s;
    int record = -1;
    corner q[3] = {{seen->ix[a], seen->iy[a], (double)seen->z[a]},
                   {seen->ix[b], seen->iy[b], (double)seen->z[b]},
                   {seen->ix[d], seen->iy[d], (double)seen->z[d]}};
    if (set_sweep(c, &s, q[0], q[1], q[2]))
        sweep_over(c, &s, (dc_record){shape, part, t, 0, 0}, &record);
}

// What a chunk puts onto the canvas may hide triangles of later ones.
void dc_raster_part(dc_canvas *c, int part, const dc_shape *shape) {
    const dc_render_part *p = &c->scene->part[part];
    for (int first = 0; first < shape->triangles; first += CHUNK) {
        int picked[CHUNK + 1], count = pick(c, shape, p->flip, first, picked);
        for (int k = 0; k < count && !c->failed; k++)
            draw(c, p, shape, part, picked[k]);
    }
}

void dc_raster_clear(dc_canvas *c, int part, const dc_shape *shape,
                     void (*blend)(dc_canvas *, int part, const dc_shape *, int triangle)) {
    const dc_render_part *p = &c->scene->part[part];
    for (int first = 0; first < shape->triangles; first += CHUNK) {
        int picked[CHUNK + 1], count = pick(c, shape, p->flip, first, picked);
        for (int k = 0; k < count && !c->failed; k++) {
            c->hits.count = 0;
            draw(c, p, shape, -1, picked[k]);
            if (c->hits.count) blend(c, part, shape, picked[k]);
        }
    }
}
