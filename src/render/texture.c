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

static void blend_texels(const dc_texture *t, int level, int face, const double st[2],
                         float rgb[3]) {
    int w = t->width[level], h = t->height[level];
    double u = st[0] * w - 0.5, v = st[1] * h - 0.5, left = floor(u), low = floor(v);
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

// Two levels are mixed only around the middle between them: `span` is in texels of the first.
static void mix_levels(const dc_texture *t, int face, const double st[2], double span,
                       float rgb[3]) {
    int exponent;
    double mantissa = 2 * frexp(span * 1.2374368670764582, &exponent); // 3.5 / (2 sqrt 2)
    int level = span > 0 ? exponent - 1 : 0;
    float part = (float)(2 * mantissa - 3);
    if (level < 0) level = 0, part = 0;
    if (level >= t->levels - 1) level = t->levels - 1, part = 0;
    blend_texels(t, level, face, st, rgb);
    if (!(part > 0)) return;
    float more[3];
    blend_texels(t, level + 1, face, st, more);
    for (int k = 0; k < 3; k++)
        rgb[k] += part * (more[k] - rgb[k]);
}

// OpenGL's six faces: which axis is the main one, and where the others go.
static int face_of(const double at[3]) {
    double x = fabs(at[0]), y = fabs(at[1]), z = fabs(at[2]);
    int axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    return 2 * axis + (at[axis] < 0);
}

static void on_face(int face, const double r[3], double st[2]) {
    static const int axis[6][2] = {{2, 1}, {2, 1}, {0, 2}, {0, 2}, {0, 1}, {0, 1}};
    static const int sign[6][2] = {{-1, -1}, {1, -1}, {1, 1}, {1, -1}, {1, -1}, {-1, -1}};
    double main = fabs(r[face / 2]);
    if (!(main > 1e-30)) main = 1e-30;
    for (int k = 0; k < 2; k++)
        st[k] = (sign[face][k] * r[axis[face][k]] / main + 1) / 2;
}

static double farther(double a, double b) {
    a = fabs(a), b = fabs(b);
    return a > b ? a : b;
}

void dc_texture_look(const dc_texture *t, const double at[3], const double across[3],
                     const double up[3], float rgb[3]) {
    double st[3][2] = {{at[0], at[1]}, {across[0], across[1]}, {up[0], up[1]}};
    int face = t->cube ? face_of(at) : 0;
    if (t->cube) {
        on_face(face, at, st[0]);
        on_face(face, across, st[1]);
        on_face(face, up, st[2]);
    }
    double wide = farther(st[1][0] - st[0][0], st[2][0] - st[0][0]) * t->width[0];
    double high = farther(st[1][1] - st[0][1], st[2][1] - st[0][1]) * t->height[0];
    double span = wide > high ? wide : high;
    if (!(span < 1e6)) span = 1e6;
    for (int k = 0; k < 2; k++)
        if (!(fabs(st[0][k]) < 1e6)) st[0][k] = 0;
    mix_levels(t, face, st[0], span, rgb);
}
