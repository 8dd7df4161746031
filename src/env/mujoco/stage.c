// MuJoCo's scenes for our own renderer, see stage.h. What a part of MuJoCo's scene looks like is decided by its
// renderer (render_gl3.c and render_context.c of its sources), which is followed here.
#include "env/mujoco/stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what never changes ----

static dc_status no(const char *what) {
    return dc_fail(DC_UNSUPPORTED, "--gl auto draws it by OpenGL", "the renderer draws no %s",
                   what);
}

static dc_status check(const mjModel *m) {
    if (m->nflex) return no("flexes");
    if (m->nskin) return no("skins");
    if (m->nhfield) return no("height fields");
    if (m->nlight + 1 > DC_RENDER_LIGHTS) return no("more than 15 lights");
    for (int k = 0; k < m->ngeom; k++) {
        bool plane = m->geom_type[k] == mjGEOM_PLANE, box = m->geom_type[k] == mjGEOM_BOX;
        int mat = m->geom_matid[k];
        if (plane && (m->geom_size[3 * k] <= 0 || m->geom_size[3 * k + 1] <= 0))
            return no("endless planes");
        if ((plane || box) && mat >= 0 && m->mat_reflectance[mat] > 0) return no("mirrors");
    }
    for (int k = 0; k < m->ntex; k++)
        if (m->tex_nchannel[k] < 3) return no("textures without colours");
    return DC_OK;
}

static void find_normal(const float *a, const float *b, const float *c, float out[3]) {
    float u[3], v[3], length = 0;
    for (int k = 0; k < 3; k++) {
        u[k] = b[k] - a[k];
        v[k] = c[k] - a[k];
    }
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        out[k] = u[i] * v[j] - u[j] * v[i];
        length += out[k] * out[k];
    }
    length = sqrtf(length);
    for (int k = 0; k < 3; k++)
        out[k] = length < 1e-10f ? k == 2 : out[k] / length;
}

// A corner's normal counts where it is near the triangle's own.
static dc_status add_mesh(dc_shapes *shapes, const mjModel *m, int mesh) {
    int count = m->mesh_facenum[mesh], first = m->mesh_faceadr[mesh];
    bool textured = m->mesh_texcoordadr[mesh] >= 0;
    float *at = malloc(((size_t)count * 9 + 1) * sizeof *at),
          *normal = malloc(((size_t)count * 9 + 1) * sizeof *at);
    for (int t = 0; at && normal && t < count; t++) {
        float flat[3], *corner = at + 9 * t, *out = normal + 9 * t;
        for (int k = 0; k < 3; k++)
            memcpy(corner + 3 * k,
                   m->mesh_vert + 3 * (m->mesh_face[3 * (first + t) + k] + m->mesh_vertadr[mesh]),
                   3 * sizeof(float));
        find_normal(corner, corner + 3, corner + 6, flat);
        for (int k = 0; k < 3; k++) {
            const float *own = m->mesh_normal + 3 * (m->mesh_facenormal[3 * (first + t) + k] +
                                                     m->mesh_normaladr[mesh]);
            bool near =
                textured || !(own[0] * flat[0] + own[1] * flat[1] + own[2] * flat[2] < 0.8f);
            memcpy(out + 3 * k, near ? own : flat, sizeof flat);
        }
    }
    dc_status status = at && normal ? dc_shapes_mesh(shapes, at, normal, count)
                                    : dc_fail(DC_NO_MEMORY, NULL, "no memory for a mesh");
    free(at);
    free(normal);
    return status;
}

static dc_status add_meshes(dc_stage *s, const mjModel *m) {
    s->mesh = calloc((size_t)m->nmesh + 1, sizeof *s->mesh);
    if (!s->mesh) return dc_fail(DC_NO_MEMORY, NULL, "no memory for meshes");
    s->meshes = m->nmesh;
    for (int k = 0; k < m->ngeom; k++) {
        int mesh = m->geom_dataid[k];
        bool shown = m->geom_type[k] == mjGEOM_MESH && m->geom_group[k] < 3; // mjvOption's groups
        if (shown && mesh >= 0 && !s->mesh[mesh].levels) DC_TRY(add_mesh(&s->mesh[mesh], m, mesh));
    }
    return DC_OK;
}

static dc_status add_textures(dc_stage *s, const mjModel *m) {
    s->texture = calloc((size_t)m->ntex + 1, sizeof *s->texture);
    if (!s->texture) return dc_fail(DC_NO_MEMORY, NULL, "no memory for textures");
    for (int k = 0; k < m->ntex; k++) {
        int w = m->tex_width[k], h = m->tex_height[k];
        bool flat = m->tex_type[k] == mjTEXTURE_2D;
        DC_TRY(dc_texture_init(&s->texture[k], m->tex_data + m->tex_adr[k], w, flat ? h : w,
                               m->tex_nchannel[k], !flat, w == h));
        s->textures++;
        if (m->tex_type[k] == mjTEXTURE_SKYBOX && s->sky < 0) s->sky = k;
    }
    return DC_OK;
}

dc_status dc_stage_init(dc_stage *s, const mjModel *m) {
    *s = (dc_stage){.sky = -1};
    dc_status status;
    DC_TRY(check(m));
    for (int k = 0; k < DC_SOLIDS; k++)
        DC_GOTO(dc_shapes_solid(&s->solid[k], (dc_solid)k, m->vis.quality.numslices,
                                m->vis.quality.numstacks),
                fail);
    DC_GOTO(add_meshes(s, m), fail);
    DC_GOTO(add_textures(s, m), fail);
    return DC_OK;
fail:
    dc_stage_fini(s);
    return status;
}

void dc_stage_fini(dc_stage *s) {
    for (int k = 0; k < DC_SOLIDS; k++)
        dc_shapes_fini(&s->solid[k]);
    for (int k = 0; k < s->meshes; k++)
        dc_shapes_fini(&s->mesh[k]);
    for (int k = 0; k < s->textures; k++)
        dc_texture_fini(&s->texture[k]);
    free(s->mesh);
    free(s->texture);
    *s = (dc_stage){.sky = -1};
}

// ---- what a state looks like ----

enum { PARTS = 3 }; // of a geom, at most

dc_status dc_set_init(dc_set *set, int geoms) {
    size_t n = (size_t)geoms * PARTS + 1;
    *set = (dc_set){.most = geoms};
    set->part = calloc(n, sizeof *set->part);
    set->clear = calloc(n, sizeof *set->clear);
    set->distance = calloc(n, sizeof *set->distance);
    if (set->part && set->clear && set->distance) return DC_OK;
    dc_set_fini(set);
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for a scene");
}

void dc_set_fini(dc_set *set) {
    free(set->part);
    free(set->clear);
    free(set->distance);
    *set = (dc_set){0};
}

static void set_texture(dc_render_surface *s, const dc_stage *stage, const mjModel *m,
                        const mjvGeom *g) {
    int id = g->matid >= 0 ? m->mat_texid[mjNTEXROLE * g->matid + mjTEXROLE_RGB] : -1;
    if (id < 0 || id >= stage->textures) return;
    bool uniform = m->mat_texuniform[g->matid], mesh = g->type == mjGEOM_MESH;
    s->texture = &stage->texture[id];
    for (int k = 0; k < 3; k++)
        s->gain[k] = uniform && g->size[k] > 0 ? g->size[k] : 1;
    if (m->tex_type[id] != mjTEXTURE_2D) return;
    for (int k = 0; k < 2; k++) {
        float repeat = m->mat_texrepeat[2 * g->matid + k];
        if (mesh && g->size[k] > 0) repeat /= g->size[k];
        s->gain[k] *= k ? -0.5f * repeat : 0.5f * repeat;
        s->shift[k] = -0.5f;
    }
}

static bool is_behind(const mjvGeom *g, const float eye[3]) {
    float sum = 0;
    for (int k = 0; k < 3; k++)
        sum += (eye[k] - g->pos[k]) * g->mat[3 * k + 2];
    return sum < 0;
}

static dc_render_part *add_part(dc_set *set, const dc_render_part *base, const dc_shapes *shapes,
                                float x, float y, float z, float lift) {
    dc_render_part *p = &set->part[set->scene.parts++];
    *p = *base;
    p->shapes = shapes;
    p->scale[0] = x;
    p->scale[1] = y;
    p->scale[2] = z;
    for (int k = 0; k < 3; k++)
        p->place[k] += p->turn[3 * k + 2] * lift;
    return p;
}

// The shapes of a geom: a capsule is a pipe between two halves of a sphere.
static void add_shapes(dc_set *set, const dc_stage *stage, const mjvGeom *g,
                       const dc_render_part *base) {
    const float *s = g->size;
    float cap = (s[0] + s[1]) / 2;
    switch (g->type) {
    case mjGEOM_PLANE:
        add_part(set, base, &stage->solid[DC_SOLID_PLANE], s[0], s[1], 1, 0);
        break;
    case mjGEOM_SPHERE:
    case mjGEOM_ELLIPSOID:
        add_part(set, base, &stage->solid[DC_SOLID_SPHERE], s[0], s[1], s[2], 0);
        break;
    case mjGEOM_CYLINDER:
        add_part(set, base, &stage->solid[DC_SOLID_CYLINDER], s[0], s[1], s[2], 0);
        break;
    case mjGEOM_BOX:
        add_part(set, base, &stage->solid[DC_SOLID_BOX], s[0], s[1], s[2], 0);
        break;
    case mjGEOM_CAPSULE:
        add_part(set, base, &stage->solid[DC_SOLID_PIPE], s[0], s[1], s[2], 0);
        add_part(set, base, &stage->solid[DC_SOLID_TOP], s[0], s[1], cap, s[2] - cap);
        add_part(set, base, &stage->solid[DC_SOLID_BOTTOM], s[0], s[1], cap, cap - s[2]);
        break;
    case mjGEOM_MESH:
        if (g->dataid >= 0 && g->dataid / 2 < stage->meshes && stage->mesh[g->dataid / 2].levels)
            add_part(set, base, &stage->mesh[g->dataid / 2], 1, 1, 1, 0);
        break;
    default:
        break;
    }
}

static void add_geom(dc_set *set, const dc_stage *stage, const mjModel *m, const mjvGeom *g) {
    const float *eye = set->scene.eye;
    bool behind = g->type == mjGEOM_PLANE && is_behind(g, eye);
    dc_render_part base = {.flip = behind,
                           .clear = g->rgba[3] < 0.995f || behind,
                           .shadows = g->category != mjCAT_DECOR};
    memcpy(base.turn, g->mat, sizeof base.turn);
    memcpy(base.place, g->pos, sizeof base.place);
    memcpy(base.surface.rgba, g->rgba, sizeof base.surface.rgba);
    if (behind) base.surface.rgba[3] *= 0.3f;
    base.surface.emission = g->emission;
    base.surface.specular = g->specular;
    base.surface.shininess = g->shininess * 128;
    set_texture(&base.surface, stage, m, g);
    int first = set->scene.parts;
    add_shapes(set, stage, g, &base);
    if (!base.clear) return;
    float far = 0, bound = g->modelrbound > 0 ? g->modelrbound
                                              : fmaxf(g->size[0], fmaxf(g->size[1], g->size[2]));
    for (int k = 0; k < 3; k++)
        far += (g->pos[k] - eye[k]) * (g->pos[k] - eye[k]);
    far = g->type == mjGEOM_PLANE ? 1e10f : sqrtf(far) - bound;
    for (int p = first; p < set->scene.parts;
         p++) { // behind what is as near: the order of the scene
        int at = set->scene.clears++;
        for (; at > 0 && set->distance[at - 1] > far; at--) {
            set->distance[at] = set->distance[at - 1];
            set->clear[at] = set->clear[at - 1];
        }
        set->distance[at] = far;
        set->clear[at] = p;
    }
}

static void add_light(dc_set *set, const mjvLight *l) {
    dc_render_light *to = &set->light[set->scene.lights++];
    *to = (dc_render_light){.spot = l->type != mjLIGHT_DIRECTIONAL,
                            .shadows = l->castshadow,
                            .cutoff = l->cutoff,
                            .exponent = l->exponent};
    memcpy(to->pos, l->pos, sizeof to->pos);
    memcpy(to->dir, l->dir, sizeof to->dir);
    memcpy(to->ambient, l->ambient, sizeof to->ambient);
    memcpy(to->diffuse, l->diffuse, sizeof to->diffuse);
    memcpy(to->specular, l->specular, sizeof to->specular);
    memcpy(to->fade, l->attenuation, sizeof to->fade);
}

static void set_camera(dc_render_scene *s, const mjvScene *seen, int width, int height) {
    mjvGLCamera cam = mjv_averageCamera(&seen->camera[0], &seen->camera[1]);
    float half = cam.frustum_width > 0
                     ? cam.frustum_width
                     : 0.5f * (float)width / (float)height * (cam.frustum_top - cam.frustum_bottom);
    memcpy(s->eye, cam.pos, sizeof s->eye);
    memcpy(s->forward, cam.forward, sizeof s->forward);
    const float *f = cam.forward, *u = cam.up;
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        s->right[k] = f[i] * u[j] - f[j] * u[i];
    }
    float length =
        sqrtf(s->right[0] * s->right[0] + s->right[1] * s->right[1] + s->right[2] * s->right[2]);
    for (int k = 0; k < 3; k++)
        s->right[k] /= length;
    for (int k = 0; k < 3; k++) {
        int i = (k + 1) % 3, j = (k + 2) % 3;
        s->up[k] = s->right[i] * f[j] - s->right[j] * f[i];
    }
    s->nearest = cam.frustum_near;
    s->farthest = cam.frustum_far;
    s->left = cam.frustum_center - half;
    s->wide = 2 * half;
    s->bottom = cam.frustum_bottom;
    s->high = cam.frustum_top - cam.frustum_bottom;
}

void dc_set_fill(dc_set *set, const dc_stage *stage, const mjModel *m, const mjvScene *seen,
                 int width, int height) {
    set->scene = (dc_render_scene){.part = set->part,
                                   .clear = set->clear,
                                   .light = set->light,
                                   .sky = stage->sky >= 0 ? &stage->texture[stage->sky] : NULL,
                                   .shadow_size = m->vis.quality.shadowsize,
                                   .shadow_clip = (float)m->stat.extent * m->vis.map.shadowclip,
                                   .shadow_scale = m->vis.map.shadowscale};
    set_camera(&set->scene, seen, width, height);
    for (int k = 0; k < seen->nlight && k < DC_RENDER_LIGHTS; k++)
        add_light(set, &seen->lights[k]);
    for (int k = 0; k < seen->ngeom && k < set->most; k++)
        add_geom(set, stage, m, &seen->geoms[k]);
}
