// Light: as OpenGL's fixed pipeline computes it, at corners, between which it is interpolated; textures on top. A
// fragment is what a pixel sees of one triangle, computed in the pixel's middle for all of its samples.
#include "render/canvas.h"

#include <math.h>
#include <string.h>

static float dot(const float a[3], const float b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void unit(float v[3]) {
    float over = 1 / sqrtf(dot(v, v) + 1e-30f);
    for (int k = 0; k < 3; k++)
        v[k] *= over;
}

static float clamp(float x) {
    return x > 0 ? x < 1 ? x : 1 : 0; // NaN: 0
}

static uint8_t byte(float x) {
    return (uint8_t)(clamp(x) * 255 + 0.5f);
}

// e is mostly a whole number.
static float power(float x, float e) {
    if (x <= 0) return e == 0 ? 1 : 0;
    if (e < 0 || e > 1024 || e != floorf(e)) return powf(x, e);
    float out = 1;
    for (unsigned n = (unsigned)e; n; n >>= 1, x *= x)
        if (n & 1) out *= x;
    return out;
}

// ---- light at a point ----

// Share of a lamp's light that arrives, and where from.
static float arriving(const dc_canvas *c, int k, const float at[3], float to[3]) {
    const dc_render_light *l = &c->scene->light[k];
    if (!l->spot) {
        for (int a = 0; a < 3; a++)
            to[a] = -l->dir[a];
        return 1;
    }
    for (int a = 0; a < 3; a++)
        to[a] = l->pos[a] - c->scene->eye[a] - at[a];
    float far = sqrtf(dot(to, to)),
          share = 1 / (l->fade[0] + far * (l->fade[1] + far * l->fade[2]));
    unit(to);
    if (l->cutoff > 90) return share;
    float cosine = -dot(to, l->dir);
    return cosine < c->cosine[k] ? 0 : share * power(cosine, l->exponent);
}

// at: from the eye. `shadows`: lights that cast them are kept apart.
static void light_point(const dc_canvas *c, const dc_render_surface *m, const float at[3],
                        const float normal[3], bool shadows, float out[][3]) {
    float eye[3] = {-at[0], -at[1], -at[2]};
    unit(eye);
    for (int a = 0; a < 3; a++)
        out[0][a] = (m->emission + (c->scene->lights ? 0 : 0.3f)) * m->rgba[a];
    for (int k = 0, apart = 0; k < c->scene->lights; k++) {
        const dc_render_light *l = &c->scene->light[k];
        float to[3], half[3], shine = 0, share = arriving(c, k, at, to), lit = dot(normal, to);
        float *sum = out[0];
        if (shadows && apart < c->casting && c->cast[apart] == k) {
            sum = out[++apart];
            sum[0] = sum[1] = sum[2] = 0;
        }
        if (share == 0) continue;
        bool shines = l->specular[0] > 0 || l->specular[1] > 0 || l->specular[2] > 0;
        if (lit > 0 && shines && m->specular > 0) {
            for (int a = 0; a < 3; a++)
                half[a] = to[a] + eye[a];
            unit(half);
            shine = m->specular * power(dot(normal, half), m->shininess);
        }
        lit = lit > 0 ? lit : 0;
        for (int a = 0; a < 3; a++)
            sum[a] += share *
                      ((l->ambient[a] + l->diffuse[a] * lit) * m->rgba[a] + l->specular[a] * shine);
    }
    for (int k = 0; k <= (shadows ? c->casting : 0); k++)
        for (int a = 0; a < 3; a++)
            out[k][a] = clamp(out[k][a]);
}

// ---- triangles ----

static void to_world(const dc_render_part *p, const float own[3], const float eye[3], float at[3]) {
    float x[3];
    for (int k = 0; k < 3; k++)
        x[k] = own[k] * p->scale[k];
    for (int k = 0; k < 3; k++)
        at[k] = dot(p->turn + 3 * k, x) + (p->place[k] - eye[k]);
}

static void turn_normal(const dc_render_part *p, const float own[3], float normal[3]) {
    float x[3];
    for (int k = 0; k < 3; k++)
        x[k] = own[k] / p->scale[k];
    for (int k = 0; k < 3; k++)
        normal[k] = dot(p->turn + 3 * k, x);
    unit(normal);
}

static void cross(const float a[3], const float b[3], double out[3]) {
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        out[k] = (double)a[i] * (double)b[j] - (double)a[j] * (double)b[i];
    }
}

static void set_triangle(const dc_canvas *c, dc_shade *s, const dc_render_part *p,
                         const dc_shape *shape, int triangle) {
    s->lattice = -1;
    s->side = triangle / 2;
    for (int k = 0; k < 3; k++) {
        int v = shape->corner[3 * triangle + k];
        for (int a = 0; a < 3; a++)
            s->own[k][a] = shape->at[a][v];
        to_world(p, s->own[k], c->scene->eye, s->at[k]);
        turn_normal(p, shape->normal + 9 * triangle + 3 * k, s->normal[k]);
    }
    for (int k = 0; k < 3; k++)
        cross(s->at[(k + 1) % 3], s->at[(k + 2) % 3], s->over[k]);
}

// The two axes of a box's side, u and v; whether its quads go the other way round.
static bool side_axes(int side, int axes[2]) {
    int axis = side / 2, sign = side % 2 ? -1 : 1;
    axes[0] = axis == 0 ? 1 : 0;
    axes[1] = axis == 2 ? 1 : 2;
    return (axis == 1) == (sign > 0);
}

static int find_lattice(dc_canvas *c, int part, const dc_shade *s, bool shadows) {
    int *slot = (int *)c->lattice_of.data + 6 * part + s->side, axes[2];
    if (*slot >= 0) return *slot;
    const dc_render_part *p = &c->scene->part[part];
    dc_lattice *l = dc_list_more(c, &c->lattices, sizeof *l);
    if (!l) return -1;
    side_axes(s->side, axes);
    for (int k = 0; k < DC_LATTICE * DC_LATTICE; k++) {
        float own[3], at[3], light[DC_RENDER_LIGHTS + 1][3];
        memcpy(own, s->own[0], sizeof own);
        int column = k % DC_LATTICE, row = k / DC_LATTICE;
        own[axes[0]] = (float)column * 0.5f - 1;
        own[axes[1]] = (float)row * 0.5f - 1;
        to_world(p, own, c->scene->eye, at);
        light_point(c, &p->surface, at, s->normal[0], shadows, light);
        for (int i = 0; i <= (shadows ? c->casting : 0); i++)
            memcpy(l->light[i][k], light[i], sizeof light[i]);
    }
    return *slot = c->lattices.count - 1;
}

static void light_triangle(dc_canvas *c, dc_shade *s, int part, bool shadows) {
    const dc_render_part *p = &c->scene->part[part];
    if (p->shapes->light == DC_LIT_BOX) s->lattice = find_lattice(c, part, s, shadows);
    if (p->shapes->light != DC_LIT_CORNERS) return;
    for (int k = 0; k < 3; k++) {
        float light[DC_RENDER_LIGHTS + 1][3];
        light_point(c, &p->surface, s->at[k], s->normal[k], shadows, light);
        for (int i = 0; i <= (shadows ? c->casting : 0); i++)
            memcpy(s->light[i][k], light[i], sizeof light[i]);
    }
}

// ---- pixels ----

// Weights of the corners where a ray meets the triangle's plane; outside of it some are negative.
static void weigh(const dc_shade *s, const double ray[3], double weight[3]) {
    double sum = 0, size = 0;
    for (int k = 0; k < 3; k++) {
        weight[k] = s->over[k][0] * ray[0] + s->over[k][1] * ray[1] + s->over[k][2] * ray[2];
        sum += weight[k];
        size += fabs(weight[k]);
    }
    bool flat = !(fabs(sum) > 1e-3 * size); // seen from its edge
    double over = flat ? 0 : 1 / sum;
    for (int k = 0; k < 3; k++)
        weight[k] = flat ? 1.0 / 3 : weight[k] * over;
}

static void mix(const float corner[3][3], const double weight[3], double out[3]) {
    for (int k = 0; k < 3; k++)
        out[k] = (double)corner[0][k] * weight[0] + (double)corner[1][k] * weight[1] +
                 (double)corner[2][k] * weight[2];
}

static void narrow(const double from[3], float to[3]) {
    for (int k = 0; k < 3; k++)
        to[k] = (float)from[k];
}

static void texture_point(const dc_render_surface *m, const dc_shade *s, const double weight[3],
                          double out[3]) {
    mix(s->own, weight, out);
    for (int k = 0; k < 3; k++)
        out[k] = out[k] * (double)m->gain[k] + (double)m->shift[k];
}

// The texture is looked at from a block of 2 x 2 pixels.
static void look(const dc_canvas *c, const dc_render_surface *m, const dc_shade *s, int x, int y,
                 const double weight[3], float rgb[3]) {
    double at[3], near[3][3], next[2][3];
    texture_point(m, s, weight, at);
    for (int k = 0; k < 3; k++) {
        double ray[3], w[3];
        dc_view_ray(c, (x & ~1) + (k == 1) + 0.5, (y & ~1) + (k == 2) + 0.5, ray);
        weigh(s, ray, w);
        texture_point(m, s, w, near[k]);
    }
    for (int k = 0; k < 3; k++) {
        next[0][k] = at[k] + near[1][k] - near[0][k];
        next[1][k] = at[k] + near[2][k] - near[0][k];
    }
    dc_texture_look(m->texture, at, next[0], next[1], rgb);
}

static void mix_lattice(const float l[DC_LATTICE * DC_LATTICE][3], int cell, bool turned, float fu,
                        float fv, float rgb[3]) {
    const float *a = l[cell], *b = l[cell + 1], *c = l[cell + DC_LATTICE],
                *d = l[cell + DC_LATTICE + 1];
    for (int k = 0; k < 3; k++) {
        if (turned && fv >= fu)
            rgb[k] = a[k] + fv * (c[k] - a[k]) + fu * (d[k] - c[k]);
        else if (turned)
            rgb[k] = a[k] + fu * (b[k] - a[k]) + fv * (d[k] - b[k]);
        else if (fu + fv <= 1)
            rgb[k] = a[k] + fu * (b[k] - a[k]) + fv * (c[k] - a[k]);
        else
            rgb[k] = d[k] + (1 - fu) * (c[k] - d[k]) + (1 - fv) * (b[k] - d[k]);
    }
}

static void light_side(const dc_canvas *c, const dc_shade *s, const double own[3], int count,
                       float light[][3]) {
    int axes[2], cell[2];
    float part[2];
    bool turned = side_axes(s->side, axes);
    for (int k = 0; k < 2; k++) {
        double u = (own[axes[k]] + 1) * 2;
        u = u > 0 ? u < 4 ? u : 4 : 0;
        cell[k] = u < 3 ? (int)u : 3;
        part[k] = (float)(u - cell[k]);
    }
    const dc_lattice *l = (const dc_lattice *)c->lattices.data + s->lattice;
    for (int i = 0; i < count; i++)
        mix_lattice(l->light[i], cell[1] * DC_LATTICE + cell[0], turned, part[0], part[1],
                    light[i]);
}

// Light of a pixel without its texture: light[0 .. casting], or light[0] alone.
static void light_pixel(const dc_canvas *c, const dc_render_part *p, const dc_shade *s,
                        const double weight[3], bool shadows, float light[][3]) {
    int count = 1 + (shadows ? c->casting : 0);
    double own[3], at[3];
    if (s->lattice >= 0) {
        mix(s->own, weight, own);
        light_side(c, s, own, count, light);
        return;
    }
    if (p->shapes->light == DC_LIT_PIXELS) {
        float point[3];
        mix(s->at, weight, at);
        narrow(at, point);
        light_point(c, &p->surface, point, s->normal[0], shadows, light);
        return;
    }
    for (int i = 0; i < count; i++) {
        double rgb[3];
        mix(s->light[i], weight, rgb);
        narrow(rgb, light[i]);
        for (int k = 0; k < 3; k++)
            light[i][k] = clamp(light[i][k]);
    }
}

// ---- what is opaque ----

static void recall(dc_canvas *c, dc_fragment *f, const dc_memo *m) {
    uint32_t first = (uint32_t)c->lit.count;
    for (int i = 0; i < c->casting; i++) {
        dc_lit *lit = dc_list_more(c, &c->lit, sizeof *lit);
        if (!lit) return;
        *lit = m->lit[i];
    }
    int samples = f->samples;
    *f = m->fragment;
    f->samples = samples;
    f->lights = first;
}

static bool light_fragment(dc_canvas *c, dc_fragment *f, dc_record *r, int x, int y) {
    const dc_render_part *p = &c->scene->part[r->part];
    if (r->shade < 0) {
        dc_shade *new = dc_list_more(c, &c->shades, sizeof *new);
        if (!new) return false;
        set_triangle(c, new, p, r->shape, r->triangle);
        light_triangle(c, new, r->part, true);
        r->shade = c->shades.count - 1;
    }
    const dc_shade *s = (const dc_shade *)c->shades.data + r->shade;
    if (c->failed) return false;
    double ray[3], weight[3], at[3];
    float light[DC_RENDER_LIGHTS + 1][3] = {{0}}, rgb[3] = {1, 1, 1};
    dc_view_ray(c, x + 0.5, y + 0.5, ray);
    weigh(s, ray, weight);
    light_pixel(c, p, s, weight, true, light);
    if (p->surface.texture) look(c, &p->surface, s, x, y, weight, rgb);
    mix(s->at, weight, at);
    narrow(at, f->at);
    for (int k = 0; k < 3; k++)
        f->own[k] = light[0][k] * rgb[k];
    for (int i = 1; i <= c->casting; i++) {
        dc_lit *lit = dc_list_more(c, &c->lit, sizeof *lit);
        if (!lit) return false;
        lit->reached = 1;
        for (int k = 0; k < 3; k++)
            lit->rgb[k] = light[i][k] * rgb[k];
    }
    return true;
}

static void add_fragment(dc_canvas *c, int x, int y, int samples, dc_record *r) {
    int pixel = (y - c->row) * c->width + x;
    dc_fragment *f = dc_list_more(c, &c->fragments, sizeof *f);
    dc_memo *m = dc_memo_at(c, r->part, pixel);
    if (!f) return;
    *f = (dc_fragment){.pixel = pixel, .samples = samples, .lights = (uint32_t)c->lit.count};
    if (m && m->triangle == r->triangle) {
        recall(c, f, m);
        return;
    }
    if (!light_fragment(c, f, r, x, y) || !m) return;
    m->fragment = *f;
    m->triangle = r->triangle;
    if (c->casting)
        memcpy(m->lit, (dc_lit *)c->lit.data + f->lights, (size_t)c->casting * sizeof *m->lit);
}

void dc_shade_opaque(dc_canvas *c) {
    dc_record *records = c->records.data;
    for (int y = 0; y < c->rows; y++)
        for (int x = 0; x < c->width; x++) {
            const int32_t *top =
                c->top + ((size_t)y * (size_t)c->width + (size_t)x) * DC_RENDER_SAMPLES;
            for (int i = 0, done = 0; i < DC_RENDER_SAMPLES; i++) {
                int same = 0;
                if (top[i] < 0 || done >> i & 1) continue;
                for (int k = i; k < DC_RENDER_SAMPLES; k++)
                    same |= (top[k] == top[i]) << k;
                done |= same;
                add_fragment(c, x, y + c->row, same, &records[top[i]]);
            }
        }
}

// Each light adds a whole number of 255ths.
static void sum_lights(const dc_canvas *c, const dc_fragment *f, uint8_t rgb[3]) {
    const dc_lit *lit = (const dc_lit *)c->lit.data + f->lights;
    for (int k = 0; k < 3; k++) {
        int sum = byte(f->own[k]);
        for (int i = 0; i < c->casting; i++)
            sum += lit[i].reached > 0 ? byte(lit[i].rgb[k]) : 0;
        rgb[k] = (uint8_t)(sum < 255 ? sum : 255);
    }
}

void dc_shade_sum(dc_canvas *c) {
    const dc_fragment *list = c->fragments.data;
    for (int n = 0; n < c->fragments.count; n++) {
        uint8_t rgb[3], *to = c->sample + (size_t)list[n].pixel * DC_RENDER_SAMPLES * 3;
        sum_lights(c, &list[n], rgb);
        for (int i = 0; i < DC_RENDER_SAMPLES; i++)
            if (list[n].samples >> i & 1) memcpy(to + 3 * i, rgb, sizeof rgb);
    }
}

// ---- the sky ----

static void sky_point(const dc_canvas *c, int x, int y, double out[3]) {
    double ray[3];
    dc_view_ray(c, x + 0.5, y + 0.5, ray);
    out[0] = ray[0];
    out[1] = ray[2];
    out[2] = -ray[1];
}

void dc_shade_sky(dc_canvas *c) {
    for (int n = 0; n < c->rows * c->width; n++) {
        const int32_t *top = c->top + (size_t)n * DC_RENDER_SAMPLES;
        float rgb[3] = {0, 0, 0};
        if (top[0] >= 0 && top[1] >= 0 && top[2] >= 0 && top[3] >= 0) continue;
        if (c->scene->sky) {
            int x = n % c->width, y = n / c->width + c->row;
            double at[3], across[3], up[3];
            sky_point(c, x, y, at);
            sky_point(c, x + 1, y, across);
            sky_point(c, x, y + 1, up);
            dc_texture_look(c->scene->sky, at, across, up, rgb);
        }
        for (int i = 0; i < DC_RENDER_SAMPLES; i++)
            for (int k = 0; k < 3 && top[i] < 0; k++)
                c->sample[((size_t)n * DC_RENDER_SAMPLES + (size_t)i) * 3 + (size_t)k] =
                    byte(rgb[k]);
    }
}

// ---- what is see-through ----

static int product(int a, int b) { // of 255ths
    int t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

static void blend_hits(dc_canvas *c, int part, const dc_shape *shape, int triangle) {
    const dc_render_part *p = &c->scene->part[part];
    const int *hit = c->hits.data;
    int alpha = byte(p->surface.rgba[3]);
    dc_shade s;
    set_triangle(c, &s, p, shape, triangle);
    light_triangle(c, &s, part, false);
    for (int n = 0; n < c->hits.count; n++) {
        int pixel = hit[n] >> 4, x = pixel % c->width, y = pixel / c->width + c->row;
        double ray[3], weight[3];
        float light[DC_RENDER_LIGHTS + 1][3], rgb[3] = {1, 1, 1};
        dc_view_ray(c, x + 0.5, y + 0.5, ray);
        weigh(&s, ray, weight);
        light_pixel(c, p, &s, weight, false, light);
        if (p->surface.texture) look(c, &p->surface, &s, x, y, weight, rgb);
        for (int k = 0; k < 3; k++) {
            int own = product(byte(light[0][k] * rgb[k]), alpha);
            for (int i = 0; i < DC_RENDER_SAMPLES; i++) {
                uint8_t *to = &c->sample[(size_t)(pixel * DC_RENDER_SAMPLES + i) * 3 + (size_t)k];
                if (hit[n] >> i & 1) *to = (uint8_t)(own + product(*to, 255 - alpha));
            }
        }
    }
}

void dc_shade_clear(dc_canvas *c, int part) {
    const dc_render_part *p = &c->scene->part[part];
    if (!dc_view_sees(c, p)) return;
    const dc_shape *shape = dc_view_level(c, p, DC_WORTH_SEEN);
    dc_view_corners(c, p, shape);
    if (!c->failed) dc_raster_clear(c, part, shape, blend_hits);
}
