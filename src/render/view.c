// A part's corners as the eye sees them, and how much of its detail is worth while.
#include "render/canvas.h"

#include <math.h>
#include <stdlib.h>

static float dot(const float a[3], const float b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

bool dc_seen_room(dc_canvas *c, dc_seen *s, int corners) {
    if (corners <= s->most) return true;
    size_t n = (size_t)corners + 64;
    void *kept[5] = {realloc(s->x, n * 4), realloc(s->y, n * 4), realloc(s->z, n * 4),
                     realloc(s->ix, n * 4), realloc(s->iy, n * 4)};
    if (kept[0]) s->x = kept[0];
    if (kept[1]) s->y = kept[1];
    if (kept[2]) s->z = kept[2];
    if (kept[3]) s->ix = kept[3];
    if (kept[4]) s->iy = kept[4];
    for (int k = 0; k < 5; k++)
        if (!kept[k]) c->failed = true;
    if (!c->failed) s->most = (int)n;
    return !c->failed;
}

static float widest(const float scale[3]) {
    float w = scale[0] > scale[1] ? scale[0] : scale[1];
    return w > scale[2] ? w : scale[2];
}

// The middle of a part, from the eye.
static void find_middle(const dc_canvas *c, const dc_render_part *p, float from[3]) {
    float middle[3];
    for (int k = 0; k < 3; k++)
        middle[k] = p->shapes->middle[k] * p->scale[k];
    for (int k = 0; k < 3; k++)
        from[k] = dot(p->turn + 3 * k, middle) + p->place[k] - c->scene->eye[k];
}

bool dc_view_sees(const dc_canvas *c, const dc_render_part *p) {
    const dc_render_scene *s = c->scene;
    float from[3], radius = p->shapes->radius * widest(p->scale);
    find_middle(c, p, from);
    float ahead = dot(from, s->forward);
    if (ahead + radius < s->nearest || ahead - radius > s->farthest) return false;
    float side[2] = {dot(from, s->right), dot(from, s->up)};
    float low[2] = {-c->centre[0], (float)c->row - c->centre[1]};
    float high[2] = {(float)c->width - c->centre[0], (float)(c->row + c->rows) - c->centre[1]};
    for (int k = 0; k < 2; k++) { // the four sides of what is seen, as planes through the eye
        float a = low[k] / c->focal[k], b = high[k] / c->focal[k];
        if (side[k] - a * ahead < -radius * sqrtf(1 + a * a)) return false;
        if (b * ahead - side[k] < -radius * sqrtf(1 + b * b)) return false;
    }
    return true;
}

const dc_shape *dc_view_level(const dc_canvas *c, const dc_render_part *p, float worth) {
    float from[3], wide = widest(p->scale);
    find_middle(c, p, from);
    float closest = sqrtf(dot(from, from)) - p->shapes->radius * wide;
    closest = closest > c->scene->nearest ? closest : c->scene->nearest;
    int level = 0;
    for (int k = 1; k < p->shapes->levels; k++)
        if (p->shapes->level[k].error * wide * c->focal[1] <= worth * closest) level = k;
    return &p->shapes->level[level];
}

// Rows of: shape's coordinates -> right, up, ahead, from the eye.
static void place_part(const dc_render_scene *s, const dc_render_part *p, float m[3][4]) {
    const float *axis[3] = {s->right, s->up, s->forward};
    for (int r = 0; r < 3; r++) {
        double moved = 0;
        for (int k = 0; k < 3; k++) {
            double sum = 0;
            for (int j = 0; j < 3; j++)
                sum += (double)axis[r][j] * (double)p->turn[3 * j + k];
            m[r][k] = (float)(sum * (double)p->scale[k]);
            moved += (double)axis[r][k] * ((double)p->place[k] - (double)s->eye[k]);
        }
        m[r][3] = (float)moved;
    }
}

// Rounds to the nearest whole number, of magnitude below 2^22.
static inline float whole(float x) {
    const float shift = 12582912.0f;
    return (x + shift) - shift;
}

void dc_view_corners(dc_canvas *c, const dc_render_part *part, const dc_shape *shape) {
    const dc_render_scene *s = c->scene;
    float m[3][4];
    if (!dc_seen_room(c, &c->seen, shape->vertices)) return;
    place_part(s, part, m);
    const float *restrict px = shape->at[0], *restrict py = shape->at[1],
                          *restrict pz = shape->at[2];
    float *restrict z = c->seen.z;
    int32_t *restrict ix = c->seen.ix, *restrict iy = c->seen.iy;
    float fx = c->focal[0], fy = c->focal[1], cx = c->centre[0], cy = c->centre[1];
    float nearest = s->nearest, guard = 8192;
#pragma omp simd
    for (int v = 0; v < shape->vertices; v++) {
        float right = m[0][0] * px[v] + m[0][1] * py[v] + m[0][2] * pz[v] + m[0][3];
        float up = m[1][0] * px[v] + m[1][1] * py[v] + m[1][2] * pz[v] + m[1][3];
        float ahead = m[2][0] * px[v] + m[2][1] * py[v] + m[2][2] * pz[v] + m[2][3];
        float over = 1 / ahead, u = fx * right * over + cx, w = fy * up * over + cy;
        bool usable = (ahead >= nearest) & (fabsf(u) < guard) & (fabsf(w) < guard);
        u = usable ? u : 0;
        w = usable ? w : 0;
        z[v] = usable ? over : -1;
        ix[v] = (int32_t)whole(u * DC_FINE);
        iy[v] = (int32_t)whole(w * DC_FINE);
    }
}

void dc_view_rays(const dc_canvas *c, const int *x, const int *y, int count,
                  double ray[3][DC_MANY]) {
    const dc_render_scene *s = c->scene;
    for (int i = 0; i < count; i++) {
        double u = c->ray_u[x[i]], v = c->ray_v[y[i]];
        for (int k = 0; k < 3; k++)
            ray[k][i] = (double)s->right[k] * u + (double)s->up[k] * v + (double)s->forward[k];
    }
}
