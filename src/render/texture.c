// Textures: levels of half the size each, and what is seen of them, as Mesa's software renderer computes both.
#include "render/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- levels ----

static int clamp(int k, int n) {
    return k < 0 ? 0 : k >= n ? n - 1 : k;
}

// A level is the one before, looked at with linear weights in the middle of the new texels.
static void halve(const uint8_t *from, int w, int h, uint8_t *to, int w2, int h2) {
    for (int y = 0; y < h2; y++) {
        double v = (y + 0.5) * h / h2 - 0.5, fy = v - floor(v);
        const uint8_t *row[2] = {from + 3 * (size_t)w * (size_t)clamp((int)floor(v), h),
                                 from + 3 * (size_t)w * (size_t)clamp((int)floor(v) + 1, h)};
        for (int x = 0; x < w2; x++) {
            double u = (x + 0.5) * w / w2 - 0.5, fx = u - floor(u);
            int a = 3 * clamp((int)floor(u), w), b = 3 * clamp((int)floor(u) + 1, w);
            for (int c = 0; c < 3; c++) {
                double top = row[0][a + c] * (1 - fx) + row[0][b + c] * fx;
                double low = row[1][a + c] * (1 - fx) + row[1][b + c] * fx;
                to[3 * ((size_t)y * (size_t)w2 + (size_t)x) + (size_t)c] =
                    (uint8_t)(top * (1 - fy) + low * fy + 0.5);
            }
        }
    }
}

static bool add_level(dc_texture *t) {
    int k = t->levels, faces = t->cube ? 6 : 1;
    size_t bytes = (size_t)t->width[k] * (size_t)t->height[k] * 3;
    t->texels[k] = malloc(bytes * (size_t)faces);
    if (!t->texels[k]) return false;
    size_t before = k ? (size_t)t->width[k - 1] * (size_t)t->height[k - 1] * 3 : 0;
    for (int f = 0; k && f < faces; f++)
        halve(t->texels[k - 1] + before * (size_t)f, t->width[k - 1], t->height[k - 1],
              t->texels[k] + bytes * (size_t)f, t->width[k], t->height[k]);
    t->levels++;
    return true;
}

dc_status dc_texture_init(dc_texture *t, const uint8_t *texels, int width, int height, int channels,
                          bool cube, bool same) {
    *t = (dc_texture){.cube = cube, .width = {width}, .height = {height}};
    DC_CHECK(width > 0 && height > 0 && channels >= 3);
    size_t pixels = (size_t)width * (size_t)height, faces = cube ? 6 : 1;
    if (!add_level(t)) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a texture");
    for (size_t f = 0; f < faces; f++)
        for (size_t k = 0; k < pixels; k++)
            memcpy(t->texels[0] + 3 * (f * pixels + k),
                   texels + (size_t)channels * ((same ? 0 : f * pixels) + k), 3);
    while ((width > 1 || height > 1) && t->levels < DC_TEXTURE_LEVELS) {
        t->width[t->levels] = width = width > 1 ? width / 2 : 1;
        t->height[t->levels] = height = height > 1 ? height / 2 : 1;
        if (add_level(t)) continue;
        dc_texture_fini(t);
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for a texture");
    }
    return DC_OK;
}

void dc_texture_fini(dc_texture *t) {
    for (int k = 0; k < t->levels; k++)
        free(t->texels[k]);
    t->levels = 0;
}

// ---- looking ----

static int wrap(int k, int n) {
    int m = k % n;
    return m < 0 ? m + n : m;
}

static void blend_texels(const dc_texture *t, int level, int face, double s0, double t0,
                         float rgb[3]) {
    int w = t->width[level], h = t->height[level];
    double u = s0 * w - 0.5, v = t0 * h - 0.5, left = floor(u), low = floor(v);
    float fx = (float)(u - left), fy = (float)(v - low);
    int x0 = (int)left, y0 = (int)low, x[2], y[2];
    for (int k = 0; k < 2; k++) {
        x[k] = t->cube ? clamp(x0 + k, w) : wrap(x0 + k, w);
        y[k] = t->cube ? clamp(y0 + k, h) : wrap(y0 + k, h);
    }
    const uint8_t *base = t->texels[level] + 3 * (size_t)face * (size_t)w * (size_t)h;
    const uint8_t *a = base + 3 * ((size_t)y[0] * (size_t)w + (size_t)x[0]);
    const uint8_t *b = base + 3 * ((size_t)y[0] * (size_t)w + (size_t)x[1]);
    const uint8_t *c = base + 3 * ((size_t)y[1] * (size_t)w + (size_t)x[0]);
    const uint8_t *d = base + 3 * ((size_t)y[1] * (size_t)w + (size_t)x[1]);
    for (int k = 0; k < 3; k++) {
        float low_row = (float)a[k] + fx * (float)(b[k] - a[k]);
        float high_row = (float)c[k] + fx * (float)(d[k] - c[k]);
        rgb[k] = (low_row + fy * (high_row - low_row)) * (1.0f / 255);
    }
}

// Where points are on a face, and how many texels of the first level lie between them and the next ones.
typedef struct spots {
    int face[DC_MANY];
    double s[DC_MANY], t[DC_MANY], span[DC_MANY];
} spots;

static inline double farther(double a, double b) {
    a = fabs(a), b = fabs(b);
    return a > b ? a : b;
}

static void set_spans(const dc_texture *x, double st[3][2][DC_MANY], int count, spots *out) {
    double wide = x->width[0], high = x->height[0];
    for (int i = 0; i < count; i++) {
        double across = farther(st[1][0][i] - st[0][0][i], st[2][0][i] - st[0][0][i]) * wide;
        double up = farther(st[1][1][i] - st[0][1][i], st[2][1][i] - st[0][1][i]) * high;
        double span = across > up ? across : up;
        out->span[i] = span < 1e6 ? span : 1e6;
        out->s[i] = fabs(st[0][0][i]) < 1e6 ? st[0][0][i] : 0;
        out->t[i] = fabs(st[0][1][i]) < 1e6 ? st[0][1][i] : 0;
    }
}

// OpenGL's six faces: which axis is the main one, and where the others go.
static inline int face_of(double x, double y, double z) {
    double ax = fabs(x), ay = fabs(y), az = fabs(z);
    bool first = ax >= ay && ax >= az, second = ay >= az;
    return first ? x < 0 : second ? 2 + (y < 0) : 4 + (z < 0);
}

static void on_face(const int *face, const double r[3][DC_MANY], int count, double s[DC_MANY],
                    double t[DC_MANY]) {
    static const int axis[6][2] = {{2, 1}, {2, 1}, {0, 2}, {0, 2}, {0, 1}, {0, 1}};
    static const int sign[6][2] = {{-1, -1}, {1, -1}, {1, 1}, {1, -1}, {1, -1}, {-1, -1}};
    for (int i = 0; i < count; i++) {
        int f = face[i];
        double main = fabs(r[f / 2][i]);
        main = main > 1e-30 ? main : 1e-30;
        s[i] = (sign[f][0] * r[axis[f][0]][i] / main + 1) / 2;
        t[i] = (sign[f][1] * r[axis[f][1]][i] / main + 1) / 2;
    }
}

// Two levels are mixed only around the middle between them.
static void mix_levels(const dc_texture *t, const spots *p, int i, float rgb[3]) {
    int exponent;
    double mantissa = 2 * frexp(p->span[i] * 1.2374368670764582, &exponent); // 3.5 / (2 sqrt 2)
    int level = p->span[i] > 0 ? exponent - 1 : 0;
    float part = (float)(2 * mantissa - 3);
    if (level < 0) level = 0, part = 0;
    if (level >= t->levels - 1) level = t->levels - 1, part = 0;
    blend_texels(t, level, p->face[i], p->s[i], p->t[i], rgb);
    if (!(part > 0)) return;
    float more[3];
    blend_texels(t, level + 1, p->face[i], p->s[i], p->t[i], more);
    for (int k = 0; k < 3; k++)
        rgb[k] += part * (more[k] - rgb[k]);
}

void dc_texture_look(const dc_texture *t, const dc_texture_points *at, int count,
                     float rgb[3][DC_MANY]) {
    double st[3][2][DC_MANY];
    spots p;
    for (int i = 0; i < count; i++)
        p.face[i] = t->cube ? face_of(at->at[0][0][i], at->at[0][1][i], at->at[0][2][i]) : 0;
    for (int n = 0; n < 3; n++) {
        if (t->cube) {
            on_face(p.face, at->at[n], count, st[n][0], st[n][1]);
            continue;
        }
        memcpy(st[n][0], at->at[n][0], (size_t)count * sizeof **at->at[n]);
        memcpy(st[n][1], at->at[n][1], (size_t)count * sizeof **at->at[n]);
    }
    set_spans(t, st, count, &p);
    for (int i = 0; i < count; i++) {
        float one[3];
        mix_levels(t, &p, i, one);
        for (int k = 0; k < 3; k++)
            rgb[k][i] = one[k];
    }
}
