// MuJoCo's scenes for our own renderer: what of a model never changes (shapes, textures), and what mjv_updateScene
// makes of a state, as a dc_render_scene. Borders: no flexes, skins, height fields, arrows, labels, endless planes
// and mirrors; a model with one of them is drawn by OpenGL.
#ifndef DC_MUJOCO_STAGE_H
#define DC_MUJOCO_STAGE_H

#include "render/render.h"

#include <mujoco/mujoco.h>

typedef struct dc_stage {
    dc_shapes solid[DC_SOLIDS], *mesh;
    dc_texture *texture;
    int meshes, textures, sky; // sky: a texture, or -1
} dc_stage;

// Errors: DC_UNSUPPORTED for a model with what is not drawn.
dc_status dc_stage_init(dc_stage *stage, const mjModel *model);
void dc_stage_fini(dc_stage *stage); // safe on a zeroed struct

typedef struct dc_set { // a scene and its arrays, for `most` geoms
    dc_render_scene scene;
    dc_render_part *part;
    int *clear;
    float *distance;
    dc_render_light light[DC_RENDER_LIGHTS];
    int most;
} dc_set;

dc_status dc_set_init(dc_set *set, int geoms);
void dc_set_fini(dc_set *set); // safe on a zeroed struct
// Borrows: all of stage, model and seen, until the scene is drawn.
void dc_set_fill(dc_set *set, const dc_stage *stage, const mjModel *model, const mjvScene *seen,
                 int width, int height);

#endif
