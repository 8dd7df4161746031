// The floor, kept from picture to picture. On a table's pictures most pixels show the floor, from a camera and under
// lights that never move: a fragment is then what it was, to the bit, but for its shadow and its samples.
#include "render/canvas.h"

#include <string.h>

// The first plane that is neither see-through nor seen from its back; -1: none.
static int find_floor(const dc_canvas *c) {
    for (int k = 0; k < c->scene->parts; k++) {
        const dc_render_part *p = &c->scene->part[k];
        if (p->shapes->light == DC_LIT_PIXELS && !p->clear) return k;
    }
    return -1;
}

static void add(dc_floor *f, const float *numbers, int count) {
    DC_CHECK(f->words + count <= (int)(sizeof f->word / sizeof f->word[0]));
    memcpy(f->word + f->words, numbers, (size_t)count * sizeof *numbers);
    f->words += count;
}

static void add_part(dc_floor *f, const dc_render_part *p) {
    const dc_render_surface *m = &p->surface;
    f->shapes = p->shapes;
    f->texture = m->texture;
    add(f, p->turn, 9);
    add(f, p->place, 3);
    add(f, p->scale, 3);
    add(f, m->rgba, 4);
    add(f, m->gain, 3);
    add(f, m->shift, 3);
    add(f, (float[4]){m->emission, m->specular, m->shininess, p->flip}, 4);
}

static void add_light(dc_floor *f, const dc_render_light *l) {
    add(f, l->pos, 3);
    add(f, l->dir, 3);
    add(f, l->ambient, 3);
    add(f, l->diffuse, 3);
    add(f, l->specular, 3);
    add(f, l->fade, 3);
    add(f, (float[4]){l->cutoff, l->exponent, l->spot, l->shadows}, 4);
}

static void describe(const dc_canvas *c, dc_floor *f) {
    const dc_render_scene *s = c->scene;
    *f = (dc_floor){.index = c->casting <= DC_MEMO_LIGHTS ? find_floor(c) : -1};
    add(f, s->eye, 3);
    add(f, s->right, 3);
    add(f, s->up, 3);
    add(f, s->forward, 3);
    add(f, (float[6]){s->nearest, s->farthest, s->left, s->bottom, s->wide, s->high}, 6);
    add(f, (float[1]){s->shadow_size > 0}, 1);
    if (f->index >= 0) add_part(f, &s->part[f->index]);
    for (int k = 0; k < s->lights; k++)
        add_light(f, &s->light[k]);
}

static bool equal(const dc_floor *a, const dc_floor *b) {
    if (a->index != b->index || a->words != b->words) return false;
    if (a->shapes != b->shapes || a->texture != b->texture) return false;
    return memcmp(a->word, b->word, (size_t)a->words * sizeof a->word[0]) == 0;
}

void dc_memo_begin(dc_canvas *c) {
    dc_floor *before = c->floor;
    if (!c->memo) return;
    c->floor = c->floor_before;
    c->floor_before = before;
    describe(c, c->floor);
    if (equal(c->floor, before)) return;
    for (int k = 0; k < c->width * c->height; k++)
        c->memo[k].triangle = -1;
}
