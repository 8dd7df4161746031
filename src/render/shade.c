// What is seen of triangles: light at their corners, between which it is interpolated, and textures on top. A fragment is
// what a pixel sees of one triangle, computed in the pixel's middle for all of its samples. Triangles and fragments are
// worked on many at a time; what comes out is a function of each alone.
#include "render/canvas.h"

#include <math.h>
#include <string.h>

enum { TRIANGLES = DC_MANY / 3 };

static inline float clamp(float x) {
    return x > 0 ? x < 1 ? x : 1 : 0; // NaN: 0
}

static inline uint8_t byte(float x) {
    return (uint8_t)(clamp(x) * 255 + 0.5f);
}

// ---- triangles ----

typedef struct corners { // of triangles, three each
    float own[3][DC_MANY], at[3][DC_MANY], normal[3][DC_MANY];
} corners;

static void to_world(const dc_render_part *p, const float eye[3], float own[3][DC_MANY], int count,
                     float at[3][DC_MANY]) {
    for (int k = 0; k < 3; k++) {
        const float *turn = p->turn + 3 * k;
        float place = p->place[k] - eye[k];
        for (int i = 0; i < count; i++)
            at[k][i] = turn[0] * (own[0][i] * p->scale[0]) + turn[1] * (own[1][i] * p->scale[1]) +
                       turn[2] * (own[2][i] * p->scale[2]) + place;
    }
}

static void turn_normals(const dc_render_part *p, int count, float normal[3][DC_MANY]) {
    const float *turn = p->turn;
#pragma omp simd
    for (int i = 0; i < count; i++) {
        float x = normal[0][i] / p->scale[0], y = normal[1][i] / p->scale[1];
        float z = normal[2][i] / p->scale[2], out[3];
        for (int k = 0; k < 3; k++)
            out[k] = turn[3 * k] * x + turn[3 * k + 1] * y + turn[3 * k + 2] * z;
        float over = 1 / sqrtf(out[0] * out[0] + out[1] * out[1] + out[2] * out[2] + 1e-30f);
        for (int k = 0; k < 3; k++)
            normal[k][i] = out[k] * over;
    }
}

static void find_corners(const dc_canvas *c, const dc_render_part *p, const dc_shape *shape,
                         const int *triangle, int count, corners *out) {
    for (int i = 0; i < 3 * count; i++) {
        int at = 3 * triangle[i / 3] + i % 3;
        for (int k = 0; k < 3; k++) {
            out->own[k][i] = shape->at[k][shape->corner[at]];
            out->normal[k][i] = shape->normal[3 * at + k];
        }
    }
    to_world(p, c->scene->eye, out->own, 3 * count, out->at);
    turn_normals(p, 3 * count, out->normal);
}

// The two axes of a box's side, u and v; whether its quads go the other way round.
static bool side_axes(int side, int axes[2]) {
    int axis = side / 2, sign = side % 2 ? -1 : 1;
    axes[0] = axis == 0 ? 1 : 0;
    axes[1] = axis == 2 ? 1 : 2;
    return (axis == 1) == (sign > 0);
}

static int find_lattice(dc_canvas *c, int part, const dc_shade *s, bool shadows) {
    enum { FIELDS = DC_LATTICE * DC_LATTICE };
    int *slot = (int *)c->lattice_of.data + 6 * part + s->side, axes[2];
    if (*slot >= 0) return *slot;
    const dc_render_part *p = &c->scene->part[part];
    dc_lattice *l = dc_list_more(c, &c->lattices, sizeof *l);
    corners point;
    float light[DC_RENDER_LIGHTS + 1][3][DC_MANY];
    if (!l) return -1;
    side_axes(s->side, axes);
    for (int i = 0; i < FIELDS; i++) {
        int column = i % DC_LATTICE, row = i / DC_LATTICE;
        for (int k = 0; k < 3; k++) {
            point.own[k][i] = s->own[0][k];
            point.normal[k][i] = s->normal[k];
        }
        point.own[axes[0]][i] = (float)column * 0.5f - 1;
        point.own[axes[1]][i] = (float)row * 0.5f - 1;
    }
    to_world(p, c->scene->eye, point.own, FIELDS, point.at);
    dc_light_points(c, &p->surface, point.at, point.normal, FIELDS, shadows, light);
    for (int n = 0; n <= (shadows ? c->casting : 0); n++)
        for (int k = 0; k < 3; k++)
            memcpy(l->light[n][k], light[n][k], sizeof l->light[n][k]);
    return *slot = c->lattices.count - 1;
}

// The planes through the eye and two corners.
static void set_planes(dc_shade *s) {
    for (int n = 0; n < 3; n++) {
        const float *a = s->at[(n + 1) % 3], *b = s->at[(n + 2) % 3];
        for (int k = 0; k < 3; k++) {
            int i = (k + 1) % 3, j = (k + 2) % 3;
            s->over[n][k] = (double)a[i] * (double)b[j] - (double)a[j] * (double)b[i];
        }
    }
}

// At most TRIANGLES of a part.
static void set_triangles(dc_canvas *c, int part, const dc_shape *shape, const int *triangle,
                          int count, bool shadows, dc_shade *shade) {
    const dc_render_part *p = &c->scene->part[part];
    corners corner;
    float light[DC_RENDER_LIGHTS + 1][3][DC_MANY];
    int lights = p->shapes->light == DC_LIT_CORNERS ? 1 + (shadows ? c->casting : 0) : 0;
    find_corners(c, p, shape, triangle, count, &corner);
    if (lights)
        dc_light_points(c, &p->surface, corner.at, corner.normal, 3 * count, shadows, light);
    for (int n = 0; n < count; n++) {
        dc_shade *s = &shade[n];
        for (int k = 0; k < 9; k++) {
            s->at[k / 3][k % 3] = corner.at[k % 3][3 * n + k / 3];
            s->own[k / 3][k % 3] = corner.own[k % 3][3 * n + k / 3];
            for (int i = 0; i < lights; i++)
                s->light[i][k / 3][k % 3] = light[i][k % 3][3 * n + k / 3];
        }
        for (int k = 0; k < 3; k++)
            s->normal[k] = corner.normal[k][3 * n];
        s->side = triangle[n] / 2;
        s->lattice = p->shapes->light == DC_LIT_BOX ? find_lattice(c, part, s, shadows) : -1;
        set_planes(s);
    }
}

// ---- pixels ----

typedef struct look { // at pixels of one triangle
    double ray[3][DC_MANY], weight[3][DC_MANY];
    float at[3][DC_MANY], light[DC_RENDER_LIGHTS + 1][3][DC_MANY], rgb[3][DC_MANY];
} look;

// Weights of the corners where a ray meets the triangle's plane; outside of it some are negative.
static void weigh(const dc_shade *s, double ray[3][DC_MANY], int count, double weight[3][DC_MANY]) {
    for (int i = 0; i < count; i++) {
        double w[3], sum = 0, size = 0;
        for (int k = 0; k < 3; k++) {
            w[k] =
                s->over[k][0] * ray[0][i] + s->over[k][1] * ray[1][i] + s->over[k][2] * ray[2][i];
            sum += w[k];
            size += fabs(w[k]);
        }
        bool flat = !(fabs(sum) > 1e-3 * size); // seen from its edge
        double over = 1 / sum;
        for (int k = 0; k < 3; k++)
            weight[k][i] = flat ? 1.0 / 3 : w[k] * over;
    }
}

static inline double mix(const float corner[3][3], int k, double w[3][DC_MANY], int i) {
    return (double)corner[0][k] * w[0][i] + (double)corner[1][k] * w[1][i] +
           (double)corner[2][k] * w[2][i];
}

static void texture_points(const dc_render_surface *m, const dc_shade *s, double weight[3][DC_MANY],
                           int count, double out[3][DC_MANY]) {
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++)
            out[k][i] = mix(s->own, k, weight, i) * (double)m->gain[k] + (double)m->shift[k];
}

// The texture is looked at from a block of 2 x 2 pixels.
static void look_at_texture(const dc_canvas *c, const dc_render_surface *m, const dc_shade *s,
                            const int *x, const int *y, int count, look *l) {
    dc_texture_points p;
    double ray[3][DC_MANY], weight[3][DC_MANY], near[3][3][DC_MANY];
    int bx[DC_MANY], by[DC_MANY];
    texture_points(m, s, l->weight, count, p.at[0]);
    for (int n = 0; n < 3; n++) {
        for (int i = 0; i < count; i++) {
            bx[i] = (x[i] & ~1) + (n == 1);
            by[i] = (y[i] & ~1) + (n == 2);
        }
        dc_view_rays(c, bx, by, count, ray);
        weigh(s, ray, count, weight);
        texture_points(m, s, weight, count, near[n]);
    }
    for (int n = 1; n < 3; n++)
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count; i++)
                p.at[n][k][i] = p.at[0][k][i] + near[n][k][i] - near[0][k][i];
    dc_texture_look(m->texture, &p, count, l->rgb);
}

// Where pixels lie between corners of a side's fields: l = o + s (p - o) + t (q - r).
typedef struct fields {
    int o[DC_MANY], p[DC_MANY], q[DC_MANY], r[DC_MANY];
    float s[DC_MANY], t[DC_MANY];
} fields;

static void find_fields(const dc_shade *s, double weight[3][DC_MANY], int count, fields *f) {
    int axes[2];
    bool turned = side_axes(s->side, axes);
    for (int i = 0; i < count; i++) {
        int cell[2];
        float part[2];
        for (int k = 0; k < 2; k++) {
            double u = (mix(s->own, axes[k], weight, i) + 1) * 2;
            u = u > 0 ? u < 4 ? u : 4 : 0;
            cell[k] = u < 3 ? (int)u : 3;
            part[k] = (float)(u - cell[k]);
        }
        int a = cell[1] * DC_LATTICE + cell[0], b = a + 1, c = a + DC_LATTICE, d = c + 1;
        bool high = turned && part[1] >= part[0], far = !turned && !(part[0] + part[1] <= 1);
        f->o[i] = far ? d : a;
        f->p[i] = high || far ? c : b;
        f->q[i] = turned ? d : far ? b : c;
        f->r[i] = far ? d : !turned ? a : high ? c : b;
        f->s[i] = high ? part[1] : far ? 1 - part[0] : part[0];
        f->t[i] = high ? part[0] : far ? 1 - part[1] : part[1];
    }
}

static void light_side(const dc_canvas *c, const dc_shade *s, int count, int lights, look *l) {
    fields f;
    const dc_lattice *from = (const dc_lattice *)c->lattices.data + s->lattice;
    find_fields(s, l->weight, count, &f);
    for (int n = 0; n < lights; n++)
        for (int k = 0; k < 3; k++) {
            const float *v = from->light[n][k];
#pragma omp simd
            for (int i = 0; i < count; i++)
                l->light[n][k][i] =
                    v[f.o[i]] + f.s[i] * (v[f.p[i]] - v[f.o[i]]) + f.t[i] * (v[f.q[i]] - v[f.r[i]]);
        }
}

// Light of pixels without their texture: l->light[0 .. casting], or light[0] alone.
static void light_pixels(const dc_canvas *c, const dc_render_part *p, const dc_shade *s, int count,
                         bool shadows, look *l) {
    int lights = 1 + (shadows ? c->casting : 0);
    if (s->lattice >= 0) {
        light_side(c, s, count, lights, l);
        return;
    }
    if (p->shapes->light == DC_LIT_PIXELS) {
        float normal[3][DC_MANY];
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count; i++)
                normal[k][i] = s->normal[k];
        dc_light_points(c, &p->surface, l->at, normal, count, shadows, l->light);
        return;
    }
    for (int n = 0; n < lights; n++)
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count; i++)
                l->light[n][k][i] = clamp((float)mix(s->light[n], k, l->weight, i));
}

static void look_at(const dc_canvas *c, const dc_render_part *p, const dc_shade *s, const int *x,
                    const int *y, int count, bool shadows, look *l) {
    dc_view_rays(c, x, y, count, l->ray);
    weigh(s, l->ray, count, l->weight);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++) {
            l->at[k][i] = (float)mix(s->at, k, l->weight, i);
            l->rgb[k][i] = 1;
        }
    light_pixels(c, p, s, count, shadows, l);
    if (p->surface.texture) look_at_texture(c, &p->surface, s, x, y, count, l);
}

// ---- what is opaque ----

typedef struct finding {
    int x, y, samples, record;
} finding;

static void find_pixel(dc_canvas *c, int x, int y) {
    dc_record *records = c->records.data;
    const int32_t *top = c->top + ((size_t)y * (size_t)c->width + (size_t)x) * DC_RENDER_SAMPLES;
    for (int i = 0, done = 0; i < DC_RENDER_SAMPLES; i++) {
        int same = 0;
        if (top[i] < 0 || done >> i & 1) continue;
        for (int k = i; k < DC_RENDER_SAMPLES; k++)
            same |= (top[k] == top[i]) << k;
        done |= same;
        finding *f = dc_list_more(c, &c->found, sizeof *f);
        if (!f) return;
        *f = (finding){x, y + c->row, same, top[i]};
        records[top[i]].fragments++;
    }
}

// c->found -> c->fragments, by record.
static void sort_fragments(dc_canvas *c) {
    const finding *found = c->found.data;
    dc_record *records = c->records.data;
    dc_fragments *f = &c->fragments;
    int count = c->found.count;
    if (!dc_list_room(c, &c->whole, 3 * count, sizeof(int))) return;
    if (!dc_list_room(c, &c->real, (DC_LIT + 4 * c->casting) * count, sizeof(float))) return;
    f->count = count;
    f->x = c->whole.data;
    f->y = f->x + count;
    f->samples = f->y + count;
    f->number = c->real.data;
    for (int k = 0, first = 0; k < c->records.count; k++) {
        records[k].first = first;
        first += records[k].fragments;
        records[k].fragments = 0;
    }
    for (int n = 0; n < count; n++) {
        dc_record *r = &records[found[n].record];
        int at = r->first + r->fragments++;
        f->x[at] = found[n].x;
        f->y[at] = found[n].y;
        f->samples[at] = found[n].samples;
    }
}

static void shade_fragments(dc_canvas *c, int part, const dc_shade *s, int first, int count) {
    const dc_fragments *f = &c->fragments;
    look l;
    look_at(c, &c->scene->part[part], s, f->x + first, f->y + first, count, true, &l);
    for (int k = 0; k < 3; k++) {
        float *at = f->number + (size_t)(DC_AT + k) * (size_t)f->count + first;
        float *own = f->number + (size_t)(DC_OWN + k) * (size_t)f->count + first;
        for (int i = 0; i < count; i++) {
            at[i] = l.at[k][i];
            own[i] = l.light[0][k][i] * l.rgb[k][i];
        }
    }
    for (int n = 0; n < 4 * c->casting; n++) {
        float *lit = f->number + (size_t)(DC_LIT + n) * (size_t)f->count + first;
        for (int i = 0; i < count; i++)
            lit[i] = n % 4 < 3 ? l.light[1 + n / 4][n % 4][i] * l.rgb[n % 4][i] : 1;
    }
}

static void shade_records(dc_canvas *c, dc_record *const *record, int count) {
    int triangle[TRIANGLES];
    dc_shade shade[TRIANGLES];
    for (int n = 0; n < count; n++)
        triangle[n] = record[n]->triangle;
    set_triangles(c, record[0]->part, record[0]->shape, triangle, count, true, shade);
    for (int n = 0; n < count && !c->failed; n++)
        for (int done = 0; done < record[n]->fragments; done += DC_MANY) {
            int left = record[n]->fragments - done;
            shade_fragments(c, record[n]->part, &shade[n], record[n]->first + done,
                            left < DC_MANY ? left : DC_MANY);
        }
}

void dc_shade_opaque(dc_canvas *c) {
    for (int y = 0; y < c->rows; y++)
        for (int x = 0; x < c->width; x++)
            find_pixel(c, x, y);
    if (!c->failed) sort_fragments(c);
    dc_record *records = c->records.data, *chosen[TRIANGLES];
    int count = 0;
    for (int k = 0; k < c->records.count && !c->failed; k++) {
        if (!records[k].fragments) continue;
        if (count == TRIANGLES || (count && chosen[0]->part != records[k].part)) {
            shade_records(c, chosen, count);
            count = 0;
        }
        chosen[count++] = &records[k];
    }
    if (count && !c->failed) shade_records(c, chosen, count);
}

// Each light adds a whole number of 255ths.
static void sum_lights(const dc_canvas *c, int first, int count, uint8_t rgb[3][DC_MANY]) {
    const dc_fragments *f = &c->fragments;
    for (int k = 0; k < 3; k++) {
        int sum[DC_MANY];
        const float *own = f->number + (size_t)(DC_OWN + k) * (size_t)f->count + first;
        for (int i = 0; i < count; i++)
            sum[i] = byte(own[i]);
        for (int n = 0; n < c->casting; n++) {
            const float *lit = f->number + (size_t)(DC_LIT + 4 * n + k) * (size_t)f->count + first;
            const float *reached =
                f->number + (size_t)(DC_REACHED + 4 * n) * (size_t)f->count + first;
            for (int i = 0; i < count; i++)
                sum[i] += reached[i] > 0 ? byte(lit[i]) : 0;
        }
        for (int i = 0; i < count; i++)
            rgb[k][i] = (uint8_t)(sum[i] < 255 ? sum[i] : 255);
    }
}

void dc_shade_sum(dc_canvas *c) {
    const dc_fragments *f = &c->fragments;
    for (int first = 0; first < f->count; first += DC_MANY) {
        uint8_t rgb[3][DC_MANY];
        int count = f->count - first < DC_MANY ? f->count - first : DC_MANY;
        sum_lights(c, first, count, rgb);
        for (int n = 0; n < count; n++) {
            int at = first + n, pixel = (f->y[at] - c->row) * c->width + f->x[at];
            uint8_t *to = c->sample + (size_t)pixel * DC_RENDER_SAMPLES * 3;
            for (int i = 0; i < DC_RENDER_SAMPLES; i++)
                for (int k = 0; k < 3 && f->samples[at] >> i & 1; k++)
                    to[3 * i + k] = rgb[k][n];
        }
    }
}

// ---- the sky ----

static void look_at_sky(const dc_canvas *c, const int *x, const int *y, int count,
                        float rgb[3][DC_MANY]) {
    dc_texture_points p;
    for (int n = 0; n < 3; n++) {
        double ray[3][DC_MANY];
        int nx[DC_MANY], ny[DC_MANY];
        for (int i = 0; i < count; i++) {
            nx[i] = x[i] + (n == 1);
            ny[i] = y[i] + (n == 2);
        }
        dc_view_rays(c, nx, ny, count, ray);
        for (int i = 0; i < count; i++) {
            p.at[n][0][i] = ray[0][i];
            p.at[n][1][i] = ray[2][i];
            p.at[n][2][i] = -ray[1][i];
        }
    }
    dc_texture_look(c->scene->sky, &p, count, rgb);
}

static void shade_sky(dc_canvas *c, const int *x, const int *y, int count) {
    float rgb[3][DC_MANY] = {{0}};
    if (c->scene->sky) look_at_sky(c, x, y, count, rgb);
    for (int n = 0; n < count; n++) {
        size_t first =
            ((size_t)(y[n] - c->row) * (size_t)c->width + (size_t)x[n]) * DC_RENDER_SAMPLES;
        for (size_t i = first; i < first + DC_RENDER_SAMPLES; i++)
            for (size_t k = 0; k < 3 && c->top[i] < 0; k++)
                c->sample[3 * i + k] = byte(rgb[k][n]);
    }
}

void dc_shade_sky(dc_canvas *c) {
    int x[DC_MANY], y[DC_MANY], count = 0;
    for (int n = 0; n < c->rows * c->width; n++) {
        const int32_t *top = c->top + (size_t)n * DC_RENDER_SAMPLES;
        if ((top[0] | top[1] | top[2] | top[3]) >= 0) continue;
        x[count] = n % c->width;
        y[count++] = n / c->width + c->row;
        if (count < DC_MANY) continue;
        shade_sky(c, x, y, count);
        count = 0;
    }
    shade_sky(c, x, y, count);
}

// ---- what is see-through ----

static int product(int a, int b) { // of 255ths
    int t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

static void blend_pixels(dc_canvas *c, int part, const dc_shade *s, const int *hit, int count) {
    const dc_render_part *p = &c->scene->part[part];
    int alpha = byte(p->surface.rgba[3]), x[DC_MANY], y[DC_MANY];
    look l;
    for (int n = 0; n < count; n++) {
        x[n] = (hit[n] >> 4) % c->width;
        y[n] = (hit[n] >> 4) / c->width + c->row;
    }
    look_at(c, p, s, x, y, count, false, &l);
    for (int n = 0; n < count; n++)
        for (int k = 0; k < 3; k++) {
            int own = product(byte(l.light[0][k][n] * l.rgb[k][n]), alpha);
            uint8_t *to = &c->sample[(size_t)(hit[n] >> 4) * DC_RENDER_SAMPLES * 3 + (size_t)k];
            for (int i = 0; i < DC_RENDER_SAMPLES; i++, to += 3)
                if (hit[n] >> i & 1) *to = (uint8_t)(own + product(*to, 255 - alpha));
        }
}

static void blend_hits(dc_canvas *c, int part, const dc_shape *shape, int triangle) {
    dc_shade s;
    set_triangles(c, part, shape, &triangle, 1, false, &s);
    for (int n = 0; n < c->hits.count; n += DC_MANY) {
        int left = c->hits.count - n;
        blend_pixels(c, part, &s, (const int *)c->hits.data + n, left < DC_MANY ? left : DC_MANY);
    }
}

void dc_shade_clear(dc_canvas *c, int part) {
    const dc_render_part *p = &c->scene->part[part];
    if (!dc_view_sees(c, p)) return;
    const dc_shape *shape = dc_view_level(c, p, DC_WORTH_SEEN);
    dc_view_corners(c, p, shape);
    if (!c->failed) dc_raster_clear(c, part, shape, blend_hits);
}
