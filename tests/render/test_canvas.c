// The renderer on scenes whose pictures are known: colours, gaps, what hides what, near planes, shadows, textures, and
// places that are no numbers. tests/env/test_render.py compares whole pictures with OpenGL's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "render/render.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, PARTS = 4 };

typedef struct studio {
    dc_shapes solid[DC_SOLIDS];
    dc_canvas *canvas;
    dc_render_scene scene;
    dc_render_part part[PARTS];
    dc_render_light light;
    int clear[PARTS];
    uint8_t rgb[SIDE][SIDE][3];
} studio;

// Looks down from height 10 at the square -1 ... 1.
static int open_studio(void **state) {
    studio *s = calloc(1, sizeof *s);
    for (int k = 0; k < DC_SOLIDS; k++)
        assert_int_equal(dc_shapes_solid(&s->solid[k], (dc_solid)k, 28, 16), DC_OK);
    assert_int_equal(dc_canvas_new(&s->canvas, SIDE, SIDE), DC_OK);
    s->scene = (dc_render_scene){.eye = {0, 0, 10},
                                 .right = {1, 0, 0},
                                 .up = {0, 1, 0},
                                 .forward = {0, 0, -1},
                                 .nearest = 1,
                                 .farthest = 100,
                                 .left = -0.1f,
                                 .bottom = -0.1f,
                                 .wide = 0.2f,
                                 .high = 0.2f,
                                 .part = s->part,
                                 .clear = s->clear,
                                 .light = &s->light};
    *state = s;
    return 0;
}

static int close_studio(void **state) {
    studio *s = *state;
    for (int k = 0; k < DC_SOLIDS; k++)
        dc_shapes_fini(&s->solid[k]);
    dc_canvas_free(s->canvas);
    free(s);
    return 0;
}

// A part that shines in one colour.
static dc_render_part *add(studio *s, dc_solid solid, float size, float z, const float rgb[3]) {
    dc_render_part *p = &s->part[s->scene.parts++];
    *p = (dc_render_part){.shapes = &s->solid[solid],
                          .turn = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                          .place = {0, 0, z},
                          .scale = {size, size, size},
                          .shadows = true,
                          .surface = {.rgba = {rgb[0], rgb[1], rgb[2], 1}, .emission = 1}};
    return p;
}

static void turn(dc_render_part *p, double angle) {
    float c = (float)cos(angle), s = (float)sin(angle);
    memcpy(p->turn, (float[9]){c, -s, 0, s, c, 0, 0, 0, 1}, sizeof p->turn);
}

static void draw(studio *s) {
    s->light.dir[2] = -1;
    assert_int_equal(dc_canvas_draw(s->canvas, &s->scene, &s->rgb[0][0][0]), DC_OK);
}

static void assert_pixel(const studio *s, int x, int y, int r, int g, int b) {
    assert_int_equal(s->rgb[y][x][0], r);
    assert_int_equal(s->rgb[y][x][1], g);
    assert_int_equal(s->rgb[y][x][2], b);
}

static const float red[3] = {1, 0, 0}, green[3] = {0, 1, 0}, grey[3] = {0.5f, 0.5f, 0.5f};

static void test_colours(void **state) {
    studio *s = *state;
    s->scene.lights = 1;
    add(s, DC_SOLID_PLANE, 0.5f, 0, red);
    draw(s);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            bool inside =
                x >= SIDE / 4 && x < SIDE - SIDE / 4 && y >= SIDE / 4 && y < SIDE - SIDE / 4;
            assert_pixel(s, x, y, inside ? 255 : 0, 0, 0);
        }
    s->part[0].turn[0] = s->part[0].turn[8] = -1; // shows its back
    draw(s);
    for (int y = 0; y < SIDE; y++)
        assert_pixel(s, y, y, 0, 0, 0);
}

// See-through triangles side by side: each sample is blended once, whatever the angle.
static void test_no_gaps(void **state) {
    studio *s = *state;
    s->scene.lights = 1;
    dc_render_part *p = add(s, DC_SOLID_PLANE, 4, 0, grey);
    p->clear = true;
    p->surface.rgba[3] = 0.5f;
    s->scene.clears = 1;
    for (int k = 0; k < 50; k++) {
        turn(p, 0.13 * k);
        draw(s);
        // 128 of 255 over 0, twice: from the nearest on and back.
        for (int n = 0; n < SIDE * SIDE; n++)
            assert_pixel(s, n % SIDE, n / SIDE, 96, 96, 96);
    }
}

// Every solid of one colour has the picture of its outline, in any position.
static void test_closed(void **state) {
    studio *s = *state;
    s->scene.lights = 1;
    for (int solid = DC_SOLID_BOX; solid < DC_SOLIDS; solid++) {
        if (solid == DC_SOLID_PIPE || solid == DC_SOLID_TOP || solid == DC_SOLID_BOTTOM) continue;
        s->scene.parts = 0;
        dc_render_part *p = add(s, (dc_solid)solid, 0.4f, 0, red);
        for (int k = 0; k < 20; k++) {
            turn(p, 0.31 * k);
            draw(s);
            for (int y = SIDE / 2 - 5; y < SIDE / 2 + 5; y++)
                for (int x = SIDE / 2 - 4; x < SIDE / 2 + 4; x++)
                    if (abs(x - SIDE / 2) + abs(y - SIDE / 2) < 5) assert_pixel(s, x, y, 255, 0, 0);
            assert_pixel(s, 1, 1, 0, 0, 0);
        }
    }
}

static void test_nearest(void **state) {
    studio *s = *state;
    s->scene.lights = 1;
    for (int first = 0; first < 2; first++) {
        s->scene.parts = 0;
        add(s, DC_SOLID_PLANE, 2, first ? 0 : 1, first ? red : green);
        add(s, DC_SOLID_PLANE, 2, first ? 1 : 0, first ? green : red);
        draw(s);
        for (int n = 0; n < SIDE * SIDE; n++)
            assert_pixel(s, n % SIDE, n / SIDE, 0, 255, 0);
    }
}

// A floor that goes on behind the eye.
static void test_near_plane(void **state) {
    studio *s = *state;
    s->scene.lights = 1;
    memcpy(s->scene.eye, (float[3]){0, 0, 2}, sizeof s->scene.eye);
    memcpy(s->scene.right, (float[3]){0, -1, 0}, sizeof s->scene.right);
    memcpy(s->scene.forward, (float[3]){1, 0, 0}, sizeof s->scene.forward);
    memcpy(s->scene.up, (float[3]){0, 0, 1}, sizeof s->scene.up);
    s->scene.nearest = 0.01f;
    s->scene.left = s->scene.bottom = -0.01f;
    s->scene.wide = s->scene.high = 0.02f;
    add(s, DC_SOLID_PLANE, 90, 0, red);
    draw(s);
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++)
            if (y != SIDE / 2) assert_pixel(s, x, y, y > SIDE / 2 ? 255 : 0, 0, 0);
}

static int count_dark(const studio *s) {
    int dark = 0;
    for (int n = 0; n < SIDE * SIDE; n++)
        dark += s->rgb[n / SIDE][n % SIDE][1] < 100;
    return dark;
}

// A box over a floor, outside of the picture, whose shadow falls into it.
static void test_shadow(void **state) {
    studio *s = *state;
    const float away[3] = {0.70710678f, 0, -0.70710678f};
    s->scene.lights = 1;
    s->scene.shadow_size = 4096;
    s->scene.shadow_clip = 20;
    s->scene.shadow_scale = 0.6f;
    s->light = (dc_render_light){.shadows = true, .diffuse = {1, 1, 1}};
    for (int k = 0; k < 3; k++)
        s->light.pos[k] = -8 * away[k];
    add(s, DC_SOLID_PLANE, 8, 0, grey)->surface.emission = 0.2f;
    dc_render_part *box = add(s, DC_SOLID_BOX, 0.25f, 4, green);
    box->place[0] = -4;
    memcpy(s->light.dir, away, sizeof away);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(dc_canvas_draw(s->canvas, &s->scene, &s->rgb[0][0][0]), DC_OK);
        // Straight below the box's edges, seen along the light: a square with a roof.
        int dark = count_dark(s);
        assert_true(k ? dark == 0 : dark > 90 && dark < 140);
        assert_int_equal(s->rgb[SIDE / 2][SIDE / 2][1], k ? 26 + 90 : 26);
        box->shadows = false;
    }
    box->shapes = &s->solid[DC_SOLID_PLANE]; // what is open casts it from its back, too
    box->shadows = true;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(dc_canvas_draw(s->canvas, &s->scene, &s->rgb[0][0][0]), DC_OK);
        int dark = count_dark(s);
        assert_true(dark > 40 && dark < 100);
        box->turn[0] = box->turn[8] = -1;
    }
}

static void test_texture(void **state) {
    studio *s = *state;
    uint8_t texels[4][4][3];
    dc_texture texture;
    s->scene.lights = 1;
    for (int k = 0; k < 16; k++)
        memset(texels[k / 4][k % 4], k % 4 < 2 ? 200 : 40, 3);
    assert_int_equal(dc_texture_init(&texture, &texels[0][0][0], 4, 4, 3, false, false), DC_OK);
    assert_int_equal(texture.levels, 3);
    dc_render_part *p = add(s, DC_SOLID_PLANE, 1, 0, (float[3]){1, 1, 1});
    p->surface.texture = &texture;
    for (int k = 0; k < 2; k++) {
        p->surface.gain[k] = 0.5f;
        p->surface.shift[k] = 0.5f;
    }
    draw(s);
    for (int y = 0; y < SIDE; y++) {
        assert_pixel(s, SIDE / 4, y, 200, 200, 200);
        assert_pixel(s, 3 * SIDE / 4, y, 40, 40, 40);
    }
    p->surface.gain[0] = p->surface.gain[1] = 400; // a pixel sees many of them: the last level
    draw(s);
    for (int n = 0; n < SIDE * SIDE; n++)
        assert_pixel(s, n % SIDE, n / SIDE, 120, 120, 120);
    dc_texture_fini(&texture);
}

// A mesh keeps its outline at every level of detail that is taken.
static void test_levels(void **state) {
    studio *s = *state;
    const dc_shape *ball = &s->solid[DC_SOLID_SPHERE].level[0];
    dc_shapes mesh;
    float *at = malloc((size_t)ball->triangles * 9 * sizeof *at);
    for (int k = 0; k < 3 * ball->triangles; k++)
        for (int a = 0; a < 3; a++)
            at[3 * k + a] = ball->at[a][ball->corner[k]];
    assert_int_equal(dc_shapes_mesh(&mesh, at, ball->normal, ball->triangles), DC_OK);
    assert_true(mesh.levels > 2);
    assert_int_equal(mesh.level[0].triangles, ball->triangles);
    assert_int_equal(mesh.level[0].vertices, ball->vertices);
    for (int k = 1; k < mesh.levels; k++) {
        assert_true(mesh.level[k].triangles <= mesh.level[k - 1].triangles);
        for (int v = 0; v < mesh.level[k].vertices; v++) {
            double r = 0;
            for (int a = 0; a < 3; a++)
                r += (double)mesh.level[k].at[a][v] * (double)mesh.level[k].at[a][v];
            assert_true(fabs(sqrt(r) - 1) < 4 * (double)mesh.level[k].error);
        }
    }
    s->scene.lights = 1;
    add(s, DC_SOLID_SPHERE, 0.7f, 0, red)->shapes = &mesh;
    draw(s);
    for (int k = 0; k < SIDE / 2 - 2; k++)
        assert_pixel(s, SIDE / 2 + k / 2, SIDE / 2 + k / 2, 255, 0, 0);
    dc_shapes_fini(&mesh);
    free(at);
}

// Places that no state should have draw something, and nothing else happens.
static void test_odd_numbers(void **state) {
    studio *s = *state;
    const float odd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e10f, 0, 1e-30f};
    s->scene.lights = 1;
    s->scene.shadow_size = 4096;
    s->scene.shadow_clip = 20;
    s->scene.shadow_scale = 0.6f;
    s->light = (dc_render_light){
        .shadows = true, .diffuse = {1, 1, 1}, .pos = {0, 0, 20}, .cutoff = 45, .fade = {1}};
    for (int k = 0; k < (int)(sizeof odd / sizeof odd[0]); k++)
        for (int spot = 0; spot < 2; spot++) {
            s->scene.parts = 0;
            s->light.spot = spot;
            add(s, DC_SOLID_PLANE, 8, 0, grey);
            add(s, DC_SOLID_SPHERE, 1, 1, red)->place[0] = odd[k];
            add(s, DC_SOLID_BOX, 1, 1, red)->scale[1] = odd[k];
            add(s, DC_SOLID_BOX, 1, 1, red)->turn[0] = odd[k];
            draw(s);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_colours, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_no_gaps, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_closed, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_nearest, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_near_plane, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_shadow, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_texture, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_levels, open_studio, close_studio),
        cmocka_unit_test_setup_teardown(test_odd_numbers, open_studio, close_studio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
