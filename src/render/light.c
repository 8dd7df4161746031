// Light of many points at a time, as OpenGL's fixed pipeline computes it. Each number of a point is a function of that
// point alone, in one order of operations; the loops go over points, so that the compiler does many at once.
#include "render/canvas.h"

#include <math.h>
#include <string.h>

typedef struct lamp { // what reaches points of a light, and where from
    float share[DC_MANY], to[3][DC_MANY];
} lamp;

static inline float dot(float ax, float ay, float az, float bx, float by, float bz) {
    return ax * bx + ay * by + az * bz;
}

static inline float clamp(float x) {
    return x > 0 ? x < 1 ? x : 1 : 0; // NaN: 0
}

static void unit(float v[3][DC_MANY], int count) {
    for (int i = 0; i < count; i++) {
        float over = 1 / sqrtf(dot(v[0][i], v[1][i], v[2][i], v[0][i], v[1][i], v[2][i]) + 1e-30f);
        for (int k = 0; k < 3; k++)
            v[k][i] *= over;
    }
}

// x to the power e, 0 for negative x; e is mostly a whole number.
static void power(float x[DC_MANY], float e, int count) {
    float out[DC_MANY], none = e == 0 ? 1 : 0;
    bool positive[DC_MANY];
    if (e < 0 || e > 1024 || e != floorf(e)) {
        for (int i = 0; i < count; i++)
            x[i] = x[i] <= 0 ? none : powf(x[i], e);
        return;
    }
    for (int i = 0; i < count; i++) {
        positive[i] = !(x[i] <= 0);
        out[i] = 1;
    }
    for (unsigned n = (unsigned)e; n; n >>= 1) {
        for (int i = 0; (n & 1) && i < count; i++)
            out[i] *= x[i];
        for (int i = 0; i < count; i++)
            x[i] *= x[i];
    }
    for (int i = 0; i < count; i++)
        x[i] = positive[i] ? out[i] : none;
}

static void arrive_spot(const dc_canvas *c, int light, float at[3][DC_MANY], int count, lamp *out) {
    const dc_render_light *l = &c->scene->light[light];
    float cosine[DC_MANY], least = c->cosine[light];
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++)
            out->to[k][i] = l->pos[k] - c->scene->eye[k] - at[k][i];
        float far = sqrtf(dot(out->to[0][i], out->to[1][i], out->to[2][i], out->to[0][i],
                              out->to[1][i], out->to[2][i]));
        out->share[i] = 1 / (l->fade[0] + far * (l->fade[1] + far * l->fade[2]));
    }
    unit(out->to, count);
    if (l->cutoff > 90) return;
    for (int i = 0; i < count; i++) {
        cosine[i] =
            -dot(out->to[0][i], out->to[1][i], out->to[2][i], l->dir[0], l->dir[1], l->dir[2]);
        out->share[i] = cosine[i] < least ? 0 : out->share[i];
    }
    power(cosine, l->exponent, count);
    for (int i = 0; i < count; i++)
        out->share[i] *= cosine[i];
}

static void arrive(const dc_canvas *c, int light, float at[3][DC_MANY], int count, lamp *out) {
    const dc_render_light *l = &c->scene->light[light];
    if (l->spot) {
        arrive_spot(c, light, at, count, out);
        return;
    }
    for (int i = 0; i < count; i++) {
        out->share[i] = 1;
        for (int k = 0; k < 3; k++)
            out->to[k][i] = -l->dir[k];
    }
}

// shine: m->specular where the light is mirrored to the eye, less beside it.
static void shine_on(const dc_render_surface *m, const lamp *from, float eye[3][DC_MANY],
                     float normal[3][DC_MANY], int count, float shine[DC_MANY]) {
    float half[3][DC_MANY];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++)
            half[k][i] = from->to[k][i] + eye[k][i];
    unit(half, count);
    for (int i = 0; i < count; i++)
        shine[i] =
            dot(normal[0][i], normal[1][i], normal[2][i], half[0][i], half[1][i], half[2][i]);
    power(shine, m->shininess, count);
    for (int i = 0; i < count; i++)
        shine[i] *= m->specular;
}

static void add_light(const dc_canvas *c, const dc_render_surface *m, int light,
                      float eye[3][DC_MANY], float at[3][DC_MANY], float normal[3][DC_MANY],
                      int count, float sum[3][DC_MANY]) {
    const dc_render_light *l = &c->scene->light[light];
    lamp from;
    float lit[DC_MANY], shine[DC_MANY];
    bool shines = l->specular[0] > 0 || l->specular[1] > 0 || l->specular[2] > 0;
    arrive(c, light, at, count, &from);
    memset(shine, 0, sizeof shine);
    if (shines && m->specular > 0) shine_on(m, &from, eye, normal, count, shine);
    for (int i = 0; i < count; i++) {
        float cosine = dot(normal[0][i], normal[1][i], normal[2][i], from.to[0][i], from.to[1][i],
                           from.to[2][i]);
        lit[i] = cosine > 0 ? cosine : 0;
        shine[i] = cosine > 0 ? shine[i] : 0;
    }
    for (int k = 0; k < 3; k++) {
        float ambient = l->ambient[k], diffuse = l->diffuse[k], colour = m->rgba[k];
        float specular = l->specular[k];
        for (int i = 0; i < count; i++) {
            float more =
                from.share[i] * ((ambient + diffuse * lit[i]) * colour + specular * shine[i]);
            sum[k][i] = from.share[i] == 0 ? sum[k][i] : sum[k][i] + more;
        }
    }
}

void dc_light_points(const dc_canvas *c, const dc_render_surface *m, float at[3][DC_MANY],
                     float normal[3][DC_MANY], int count, bool shadows, float out[][3][DC_MANY]) {
    float eye[3][DC_MANY];
    int sums = 1 + (shadows ? c->casting : 0);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count; i++)
            eye[k][i] = -at[k][i];
    unit(eye, count);
    for (int n = 0; n < sums; n++)
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count; i++)
                out[n][k][i] = n ? 0 : (m->emission + (c->scene->lights ? 0 : 0.3f)) * m->rgba[k];
    for (int light = 0, apart = 0; light < c->scene->lights; light++) {
        bool own = shadows && apart < c->casting && c->cast[apart] == light;
        add_light(c, m, light, eye, at, normal, count, out[own ? ++apart : 0]);
    }
    for (int n = 0; n < sums; n++)
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < count; i++)
                out[n][k][i] = clamp(out[n][k][i]);
}
