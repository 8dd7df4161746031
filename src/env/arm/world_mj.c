// What all copies of a table share beside its model: sites that are looked at, the arm alone, and models
// of a scene with drawer and window locked or not.
//
// Locks are a matter of damping, which the reference writes into its model. Models are shared here,
// so there is one for each state of the two locks, and an environment uses the one it is in.
#include "env/arm/motion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOINTS = 6 };
static const double locked = 1e6, unlocked = 2.0;

dc_pose dc_arm_site(const mjData *d, int site) {
    dc_pose r;
    mju_mat2Quat(r.q, d->site_xmat + (ptrdiff_t)9 * site);
    memcpy(r.p, d->site_xpos + (ptrdiff_t)3 * site, sizeof r.p);
    return r;
}

typedef struct preparing {
    const dc_world *world;
    const dc_arm_table *table;
    dc_arm_world *own; // to be filled in; has `alone`
    bool complete;
} preparing;

// Models of a scene by the states of its two buttons: 0 locks.
static bool make_locks(dc_arm_world *own, const mjModel *model) {
    int drawer = model->nv - 2;
    for (int k = 0; k < DC_LOCKS; k++) {
        own->locks[k] = mj_copyModel(NULL, model);
        if (!own->locks[k]) return false;
        for (int s = 0; s < 2; s++)
            own->locks[k]->dof_damping[drawer + s] = k >> s & 1 ? unlocked : locked;
    }
    return true;
}

// What hands reach for: tops of buttons, handles of drawer and window, and their targets' handles.
static bool find_sites(dc_arm_world *own, const mjModel *model, const dc_arm_table *t) {
    static const char *const handles[2] = {"drawer_handle_center", "window_handle_center"};
    static const char *const marks[2] = {"drawer_handle_center_target",
                                         "window_handle_center_target"};
    bool all = true;
    for (int k = 0; k < t->buttons; k++) {
        char name[16];
        snprintf(name, sizeof name, "btntop_%d", k);
        own->tops[k] = mj_name2id(model, mjOBJ_SITE, name);
        all = all && own->tops[k] >= 0;
    }
    for (int k = 0; t->slides && k < 2; k++) {
        own->handles[k] = mj_name2id(model, mjOBJ_SITE, handles[k]);
        own->marks[k] = mj_name2id(model, mjOBJ_SITE, marks[k]);
        all = all && own->handles[k] >= 0 && own->marks[k] >= 0;
    }
    return all;
}

static void find_parts(void *ctx) {
    preparing *p = ctx;
    dc_arm_world *own = p->own;
    const mjModel *m = p->world->model;
    int attach = mj_name2id(m, mjOBJ_SITE, "ur5e/attachment_site");
    own->pinch = mj_name2id(m, mjOBJ_SITE, "ur5e/robotiq/pinch");
    own->pad = mj_name2id(m, mjOBJ_BODY, "ur5e/robotiq/right_pad");
    own->flange = mj_name2id(own->alone, mjOBJ_SITE, "attachment_site");
    mjData *d = mj_makeData(m);
    bool all = d && attach >= 0 && own->pinch >= 0 && own->pad >= 0 && own->flange >= 0;
    all = all && find_sites(own, m, p->table);
    if (all) {
        mj_forward(m, d);
        dc_pose pinch = dc_arm_site(d, own->pinch), flange = dc_arm_site(d, attach);
        dc_pose back = dc_pose_inverse(&pinch);
        own->pinch_to_flange = dc_pose_mul(&back, &flange);
    }
    mj_deleteData(d);
    all = all && dc_touch_plan_init(&own->touch, m, p->table);
    p->complete = all && (!p->table->slides || make_locks(own, m));
}

dc_status dc_arm_prepare(dc_world *world) {
    dc_arm_world *own = world->own = calloc(1, sizeof *own);
    if (!own) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", world->spec.name);
    preparing p = {world, dc_arm_table_of(world->spec.family), own, false};
    DC_TRY(dc_arm_model_alone(&own->alone));
    DC_TRY(dc_mujoco_guard(find_parts, &p, NULL));
    if (p.complete && own->alone->nq == JOINTS && own->alone->nv == JOINTS) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "tools/setup.sh build fetches the files of the version that fits",
                   "the arm of %s lacks a part, or there is no memory", world->spec.name);
}

void dc_arm_release(dc_world *world) {
    dc_arm_world *own = world->own;
    if (!own) return;
    mj_deleteModel(own->alone);
    for (int k = 0; k < DC_LOCKS; k++)
        mj_deleteModel(own->locks[k]);
    free(own);
}
