// A picture, band by band: what is opaque, its light and shadows, the sky behind it, what is see-through.
#include "render/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *dc_list_more(dc_canvas *c, dc_list *l, size_t size) {
    if (l->count == l->most) {
        size_t most = 2 * (size_t)l->most + 256;
        void *data = most < INT32_MAX ? realloc(l->data, most * size) : NULL;
        if (!data) {
            c->failed = true;
            return NULL;
        }
        l->data = data;
        l->most = (int)most;
    }
    return (char *)l->data + (size_t)l->count++ * size;
}

bool dc_list_room(dc_canvas *c, dc_list *l, int most, size_t size) {
    l->count = 0;
    if (l->most >= most) return true;
    void *data = realloc(l->data, (size_t)most * size);
    if (!data) {
        c->failed = true;
        return false;
    }
    l->data = data;
    l->most = most;
    return true;
}

dc_status dc_canvas_new(dc_canvas **canvas, int width, int height) {
    DC_CHECK(width > 0 && width <= 1 << 14 && height > 0 && height <= 1 << 14);
    dc_canvas *c = *canvas = calloc(1, sizeof *c);
    size_t samples = (size_t)width * DC_BAND * DC_RENDER_SAMPLES;
    if (c) {
        c->width = width;
        c->height = height;
        c->depth = malloc(samples * sizeof *c->depth);
        c->far = malloc(samples / DC_RENDER_SAMPLES * sizeof *c->far);
        c->top = malloc(samples * sizeof *c->top);
        c->sample = malloc(samples * 3);
        c->ray_u = malloc(((size_t)width + 2) * sizeof *c->ray_u);
        c->ray_v = malloc(((size_t)height + 2) * sizeof *c->ray_v);
        if (c->depth && c->far && c->top && c->sample && c->ray_u && c->ray_v) return DC_OK;
    }
    dc_canvas_free(c);
    *canvas = NULL;
    return dc_fail(DC_NO_MEMORY, "draw smaller", "no memory for a picture of %d x %d", width,
                   height);
}

void dc_canvas_free(dc_canvas *c) {
    if (!c) return;
    void *all[] = {c->depth,
                   c->far,
                   c->top,
                   c->sample,
                   c->ray_u,
                   c->ray_v,
                   c->records.data,
                   c->found.data,
                   c->lattices.data,
                   c->hits.data,
                   c->lattice_of.data,
                   c->whole.data,
                   c->real.data,
                   c->seen.x,
                   c->seen.y,
                   c->seen.z,
                   c->seen.ix,
                   c->seen.iy,
                   c->shadow.texel.data,
                   c->picked.data,
                   c->shadow.start.data,
                   c->shadow.order.data};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
    free(c);
}

static void set_lights(dc_canvas *c) {
    const dc_render_scene *s = c->scene;
    c->casting = 0;
    for (int k = 0; k < s->lights; k++) {
        c->cosine[k] = (float)cos((double)s->light[k].cutoff * (3.14159265358979323846 / 180));
        if (s->light[k].shadows && s->shadow_size > 0) c->cast[c->casting++] = k;
    }
}

static void set_view(dc_canvas *c, const dc_render_scene *s) {
    c->scene = s;
    c->failed = false;
    c->focal[0] = (float)((double)c->width * (double)s->nearest / (double)s->wide);
    c->focal[1] = (float)((double)c->height * (double)s->nearest / (double)s->high);
    c->centre[0] = (float)(-(double)s->left / (double)s->wide * c->width);
    c->centre[1] = (float)(-(double)s->bottom / (double)s->high * c->height);
    for (int x = 0; x < c->width + 2; x++)
        c->ray_u[x] = (x + 0.5 - (double)c->centre[0]) / (double)c->focal[0];
    for (int y = 0; y < c->height + 2; y++)
        c->ray_v[y] = (y + 0.5 - (double)c->centre[1]) / (double)c->focal[1];
    set_lights(c);
}

static void clean(dc_canvas *c) {
    size_t samples = (size_t)c->width * (size_t)c->rows * DC_RENDER_SAMPLES;
    float far = 1 / c->scene->farthest;
    for (size_t k = 0; k < samples; k++) {
        c->depth[k] = far;
        c->top[k] = -1;
    }
    for (size_t k = 0; k < samples / DC_RENDER_SAMPLES; k++)
        c->far[k] = far;
    c->records.count = c->found.count = c->lattices.count = c->fragments.count = 0;
    c->lattice_of.count = 0;
    for (int k = 0; k < 6 * c->scene->parts; k++) {
        int *slot = dc_list_more(c, &c->lattice_of, sizeof *slot);
        if (slot) *slot = -1;
    }
}

static void draw_band(dc_canvas *c) {
    const dc_render_scene *s = c->scene;
    clean(c);
    for (int p = 0; p < s->parts && !c->failed; p++) {
        const dc_render_part *part = &s->part[p];
        if (part->clear || !dc_view_sees(c, part)) continue;
        const dc_shape *shape = dc_view_level(c, part, DC_WORTH_SEEN);
        dc_view_corners(c, part, shape);
        if (!c->failed) dc_raster_part(c, p, shape);
    }
    if (!c->failed) dc_shade_opaque(c);
    for (int k = 0; k < c->casting && !c->failed; k++)
        dc_shadow_cast(c, k);
    if (!c->failed) dc_shade_sum(c);
    dc_shade_sky(c);
    for (int k = 0; k < s->clears && !c->failed; k++)
        dc_shade_clear(c, s->clear[k]);
    for (int k = s->clears - 1; k >= 0 && !c->failed; k--)
        dc_shade_clear(c, s->clear[k]);
}

// The mean of a pixel's samples.
static void write_band(const dc_canvas *c, uint8_t *rgb) {
    for (int y = 0; y < c->rows; y++)
        for (int x = 0; x < c->width; x++) {
            const uint8_t *s =
                c->sample + ((size_t)y * (size_t)c->width + (size_t)x) * DC_RENDER_SAMPLES * 3;
            uint8_t *to =
                rgb + ((size_t)(c->height - 1 - y - c->row) * (size_t)c->width + (size_t)x) * 3;
            for (int k = 0; k < 3; k++)
                to[k] = (uint8_t)((s[k] + s[3 + k] + s[6 + k] + s[9 + k] + 2) / 4);
        }
}

dc_status dc_canvas_draw(dc_canvas *c, const dc_render_scene *scene, uint8_t *rgb) {
    DC_CHECK(scene->lights <= DC_RENDER_LIGHTS);
    set_view(c, scene);
    for (c->row = 0; c->row < c->height; c->row += DC_BAND) {
        c->rows = c->height - c->row < DC_BAND ? c->height - c->row : DC_BAND;
        draw_band(c);
        if (c->failed) return dc_fail(DC_NO_MEMORY, "draw smaller", "no memory for a picture");
        write_band(c, rgb);
    }
    return DC_OK;
}
