// Tables with a robot arm while data is collected: things lie anywhere, and one of them at a time is
// wanted elsewhere. As OGBench's mode "data_collection", in the same order of draws.
//
// What the reference keeps from one episode to the next, which button, drawer and window were wanted
// last, begins anew here: an episode must be the same whatever was played before it.
#include "env/arm/motion.h"
#include "env/arm/oracle.h"

#include <math.h>
#include <string.h>

static const double pi = 3.141592653589793;

static int pick(dc_env *env, int n) {
    return env->draws.below(env->draws.ctx, n);
}

// ---- targets ----

// Cubes that no other cube lies upon.
static int list_tops(const dc_env *env, int tops[DC_CUBES_MAX]) {
    int n = dc_arm_of(env)->cubes, count = 0;
    for (int i = 0; i < n; i++) {
        const double *a = dc_arm_cube(env, i);
        bool free = true;
        for (int j = 0; j < n; j++) {
            const double *b = dc_arm_cube(env, j);
            double x = a[0] - b[0], y = a[1] - b[1];
            if (b[2] > a[2] && sqrt(x * x + y * y) < 0.02) free = false;
        }
        if (free) tops[count++] = i;
    }
    return count;
}

static bool goes_into_drawer(dc_env *env) {
    return dc_arm_of(env)->slides && dc_arm_slides(env)[0] < -0.12 &&
           dc_env_uniform(env, 0, 1) < 0.3;
}

// One of the other cubes that nothing lies upon.
static const double *pick_base(dc_env *env, const int tops[DC_CUBES_MAX], int count) {
    int others[DC_CUBES_MAX] = {0}, left = 0;
    for (int k = 0; k < count; k++)
        if (tops[k] != dc_arm_state_of(env)->aim.cube) others[left++] = tops[k];
    return dc_arm_cube(env, others[pick(env, left)]);
}

static void draw_place(dc_env *env, const int *tops, int count, double stack, double to[3]) {
    const dc_reach *r = dc_arm_reach(dc_arm_of(env));
    bool drawer = goes_into_drawer(env), up = count >= 2 && dc_env_uniform(env, 0, 1) < stack;
    if (drawer) {
        to[0] = 0.33 + dc_env_uniform(env, -0.005, 0.005);
        to[1] = -0.24 + dc_env_uniform(env, -0.005, 0.005);
        to[2] = 0.066;
    } else if (up) {
        memcpy(to, pick_base(env, tops, count), 3 * sizeof *to);
        to[2] += 0.04;
    } else {
        for (int c = 0; c < 2; c++)
            to[c] = dc_env_uniform(env, r->things[0][c], r->things[1][c]);
        to[2] = 0.02;
    }
}

static void aim_at_cube(dc_env *env, double stack) {
    static const double away[3] = {0, 0, -0.3};
    int tops[DC_CUBES_MAX], count = list_tops(env, tops);
    double to[3];
    dc_arm_state_of(env)->aim.cube = tops[pick(env, count)];
    draw_place(env, tops, count, stack, to);
    dc_quat_yaw(dc_env_uniform(env, 0, 2 * pi), dc_arm_state_of(env)->aim.turn);
    for (int k = 0; k < dc_arm_of(env)->cubes; k++)
        memcpy(env->goal + (ptrdiff_t)3 * k, k == dc_arm_state_of(env)->aim.cube ? to : away,
               sizeof to);
}

static void aim_at_button(dc_env *env) {
    int k = dc_arm_state_of(env)->aim.button = pick(env, dc_arm_of(env)->buttons);
    env->goal[3 * dc_arm_of(env)->cubes + k] = !dc_arm_state_of(env)->buttons[k];
}

static void aim_at_slide(dc_env *env, int k) {
    const dc_arm_table *t = dc_arm_of(env);
    double at = dc_arm_slides(env)[k], *to = env->goal + (ptrdiff_t)3 * t->cubes + t->buttons + k;
    if (k == 0)
        *to = at >= -0.08 ? -0.16 : 0;
    else
        *to = at <= 0.1 ? 0.2 : 0;
}

// As the drawer's handle was when kinematics were computed last.
static bool is_in_drawer(const dc_env *env, const double cube[3]) {
    double y = env->data->site_xpos[3 * dc_arm_world_of(env)->handles[0] + 1];
    return 0.21 <= cube[0] && cube[0] <= 0.45 && y - 0.27 <= cube[1] && cube[1] <= y - 0.07 &&
           0 <= cube[2] && cube[2] <= 0.15;
}

// Which kind of thing; what is locked is wanted less often, a cube in the drawer not at all.
static dc_aim_kind draw_kind(dc_env *env) {
    const dc_arm_table *t = dc_arm_of(env);
    if (!t->slides) return t->cubes ? DC_AIM_CUBE : DC_AIM_BUTTON;
    double weight[DC_AIMS] = {[DC_AIM_CUBE] = is_in_drawer(env, dc_arm_cube(env, 0)) ? 0 : 1,
                              [DC_AIM_BUTTON] = 1,
                              [DC_AIM_DRAWER] = dc_arm_state_of(env)->buttons[0] ? 1 : 0.25,
                              [DC_AIM_WINDOW] = dc_arm_state_of(env)->buttons[1] ? 1 : 0.25};
    double sum = 0, at = dc_env_uniform(env, 0, 1);
    for (int k = 0; k < DC_AIMS; k++)
        sum += weight[k];
    for (int k = DC_AIM_CUBE; k < DC_AIM_WINDOW; k++) {
        if (at < weight[k] / sum) return (dc_aim_kind)k;
        at -= weight[k] / sum;
    }
    return DC_AIM_WINDOW;
}

static void aim(dc_env *env, double stack) {
    dc_arm_state_of(env)->aim.at = draw_kind(env);
    if (dc_arm_state_of(env)->aim.at == DC_AIM_CUBE)
        aim_at_cube(env, stack);
    else if (dc_arm_state_of(env)->aim.at == DC_AIM_BUTTON)
        aim_at_button(env);
    else
        aim_at_slide(env, dc_arm_state_of(env)->aim.at == DC_AIM_WINDOW);
    if (dc_arm_of(env)->buttons) mj_kinematics(dc_arm_now(env), env->data);
}

// ---- starts ----

static void collect(void *ctx) {
    dc_env *env = ctx;
    const dc_arm_table *t = dc_arm_of(env);
    dc_arm_rest(env);
    memset(env->goal, 0, sizeof env->goal);
    if (t->cubes) { // until the first cube is wanted, the mark's own place
        memcpy(env->goal, env->data->mocap_pos, 3 * sizeof *env->goal);
        memcpy(dc_arm_state_of(env)->aim.turn, env->data->mocap_quat,
               sizeof dc_arm_state_of(env)->aim.turn);
    }
    dc_arm_place(env);
    for (int k = 0; k < t->cubes; k++)
        dc_arm_throw(env, k);
    for (int k = 0; k < t->buttons; k++)
        dc_arm_state_of(env)->buttons[k] = (uint8_t)pick(env, 2);
    if (t->buttons) mj_forward(dc_arm_now(env), env->data);
    if (t->slides) {
        dc_arm_slides(env)[0] = dc_env_uniform(env, -0.16, 0);
        dc_arm_slides(env)[1] = dc_env_uniform(env, 0, 0.2);
    }
    aim(env, 0.5);
    dc_arm_ready(env);
}

dc_status dc_arm_collect(dc_env *env) {
    return dc_env_guard(env, collect, env);
}

typedef struct aiming {
    dc_env *env;
    double stack;
} aiming;

static void aim_anew(void *ctx) {
    aiming *a = ctx;
    aim(a->env, a->stack);
}

dc_status dc_arm_aim(dc_env *env, double stack) {
    return dc_env_guard(env, aim_anew, &(aiming){env, stack});
}

// ---- what an oracle is told ----

static void see_cube(const dc_env *env, dc_thing *out) {
    const double *cube = dc_arm_cube(env, dc_arm_state_of(env)->aim.cube);
    memcpy(out->at, cube, sizeof out->at);
    memcpy(out->to, env->goal + (ptrdiff_t)3 * dc_arm_state_of(env)->aim.cube, sizeof out->to);
    out->yaw = dc_yaw_of(cube + 3);
    out->to_yaw = dc_yaw_of(dc_arm_state_of(env)->aim.turn);
}

static void see_button(const dc_env *env, dc_thing *out) {
    int k = dc_arm_state_of(env)->aim.button;
    memcpy(out->at, env->data->site_xpos + (ptrdiff_t)3 * dc_arm_world_of(env)->tops[k],
           sizeof out->at);
    out->yaw = out->at[0]; // the reference takes the place's x for an angle
    out->right = dc_arm_state_of(env)->buttons[k] == env->goal[3 * dc_arm_of(env)->cubes + k];
}

// The reference moves a site along the slide for its target; here that place is computed.
static void see_slide(const dc_env *env, int k, dc_thing *out) {
    const dc_arm_table *t = dc_arm_of(env);
    const mjModel *m = dc_arm_now(env);
    const mjData *d = env->data;
    int mark = dc_arm_world_of(env)->marks[k], body = m->site_bodyid[mark];
    dc_pose handle = dc_arm_site(d, dc_arm_world_of(env)->handles[k]);
    memcpy(out->at, handle.p, sizeof out->at);
    out->yaw = dc_yaw_of(handle.q);
    double along[3];
    memcpy(along, m->site_pos + (ptrdiff_t)3 * mark, sizeof along);
    along[k == 0 ? 1 : 0] = env->goal[3 * t->cubes + t->buttons + k];
    mju_mulMatVec3(out->to, d->xmat + (ptrdiff_t)9 * body, along);
    mju_addTo3(out->to, d->xpos + (ptrdiff_t)3 * body);
}

void dc_arm_see(const dc_env *env, dc_sight *sight) {
    const dc_arm_table *t = dc_arm_of(env);
    dc_pose hand = dc_arm_site(env->data, dc_arm_world_of(env)->pinch);
    *sight = (dc_sight){.aim = dc_arm_state_of(env)->aim.at, .time = env->data->time};
    memcpy(sight->hand, hand.p, sizeof sight->hand);
    sight->yaw = dc_yaw_of(hand.q);
    sight->opening = dc_arm_opening(env);
    sight->contact = dc_arm_contact(env);
    if (t->cubes) see_cube(env, &sight->things[DC_AIM_CUBE]);
    if (t->buttons) see_button(env, &sight->things[DC_AIM_BUTTON]);
    for (int k = 0; k < t->slides; k++)
        see_slide(env, k, &sight->things[DC_AIM_DRAWER + k]);
}
