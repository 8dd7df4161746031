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

static void describe(const dc_canvas *c, dc_floor *f) {
    const dc_render_scene *s = c->scene;
    float view[18] = {s->nearest, s->farthest, s->left, s->bottom, s->wide, s->high};
    memcpy(view + 6, s->eye, sizeof s->eye);
    memcpy(view + 9, s->right, sizeof s->right);
    memcpy(view + 12, s->up, sizeof s->up);
    memcpy(view + 15, s->forward, sizeof s->forward);
    memset(f, 0, sizeof *f);
    memcpy(f->view, view, sizeof view);
    f->index = c->casting <= DC_MEMO_LIGHTS ? find_floor(c) : -1;
    f->lights = s->lights + (s->shadow_size > 0 ? DC_RENDER_LIGHTS : 0);
    if (f->index >= 0) memcpy(&f->part, &s->part[f->index], sizeof f->part);
    if (s->lights) memcpy(f->light, s->light, (size_t)s->lights * sizeof *s->light);
}

// Bytes are compared, those between members too: at worst a floor is drawn anew.
void dc_memo_begin(dc_canvas *c) {
    dc_floor *before = c->floor;
    if (!c->memo) return;
    c->floor = c->floor_before;
    c->floor_before = before;
    describe(c, c->floor);
    if (memcmp(c->floor, before, sizeof *before) == 0) return;
    for (int k = 0; k < c->width * c->height; k++)
        c->memo[k].triangle = -1;
}
