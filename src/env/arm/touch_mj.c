// Physics steps that look for contacts only where there may be some, see touch.h.
//
// MuJoCo is told by way of its model: bodies without contact bits take no part in the search, nor do excluded pairs.
// Models are shared, so each environment has a shallow copy with arrays of its own for these three.
#include "env/arm/touch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Metres: kept between any two things, far above what computing distances gets wrong; spheres that are farther apart
// need no distance. Buttons between these positions touch neither housing nor neighbours (their end is at -0.024,
// and they touch at -0.0272).
static const double margin = 1e-4, near_by = 0.01;
enum {
    LOOK = 5,
    PATIENCE = 25
}; // steps between looks at distances; and after one that was of no use
const double dc_touch_low = -0.026, dc_touch_high = 0.01;

// ---- boxes ----

static dc_box box_of(const mjModel *m, const mjData *d, int geom) {
    const double *r = d->geom_xmat + (ptrdiff_t)9 * geom, *x = d->geom_xpos + (ptrdiff_t)3 * geom,
                 *own = m->geom_aabb + (ptrdiff_t)6 * geom;
    dc_box box;
    for (int k = 0; k < 3; k++) {
        double middle = x[k], half = margin;
        for (int c = 0; c < 3; c++) {
            middle += r[3 * k + c] * own[c];
            half += fabs(r[3 * k + c]) * own[3 + c];
        }
        box.low[k] = middle - half;
        box.high[k] = middle + half;
    }
    return box;
}

static void widen(dc_box *box, const dc_box *by) {
    for (int k = 0; k < 3; k++) {
        box->low[k] = fmin(box->low[k], by->low[k]);
        box->high[k] = fmax(box->high[k], by->high[k]);
    }
}

// NaN counts as an overlap.
static bool overlap(const dc_box *a, const dc_box *b) {
    for (int k = 0; k < 3; k++)
        if (a->low[k] > b->high[k] || b->low[k] > a->high[k]) return false;
    return true;
}

// ---- what follows from the model ----

static bool touches(const mjModel *m, int body) {
    return m->body_contype[body] || m->body_conaffinity[body];
}

static double length(const double v[3]) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// How far a body's points may be from its origin, and it from its parent's, whatever its joint's angle.
static double size_of(const mjModel *m, int body) {
    double most = 0;
    for (int g = m->body_geomadr[body]; g < m->body_geomadr[body] + m->body_geomnum[body]; g++)
        most = fmax(most, length(m->geom_pos + (ptrdiff_t)3 * g) + m->geom_rbound[g]);
    return most;
}

static double anchor_of(const mjModel *m, int body) {
    return m->body_jntnum[body] ? length(m->jnt_pos + (ptrdiff_t)3 * m->body_jntadr[body]) : 0;
}

static double step_of(const mjModel *m, int body) {
    return length(m->body_pos + (ptrdiff_t)3 * body) + 2 * anchor_of(m, body);
}

// The farthest that a point of the robot behind a body's joint may be from that joint.
static double lever_of(const mjModel *m, int bodies, int of) {
    double most = 0;
    for (int b = of; b < bodies; b++) {
        double far = size_of(m, b);
        int at = b;
        for (; at > of; at = m->body_parentid[at])
            far += step_of(m, at);
        if (at == of) most = fmax(most, far + anchor_of(m, of));
    }
    return most;
}

static int common_root(const mjModel *m, int a, int b) {
    while (a != b)
        if (a > b)
            a = m->body_parentid[a];
        else
            b = m->body_parentid[b];
    return a;
}

static bool is_excluded(const mjModel *m, int a, int b) {
    for (int k = 0; k < m->nexclude; k++)
        if (m->exclude_signature[k] == (a << 16) + b) return true;
    return false;
}

// MuJoCo compares bodies that move against each other, and no body with what it hangs on.
static bool are_compared(const mjModel *m, int a, int b) {
    int wa = m->body_weldid[a], wb = m->body_weldid[b];
    int pa = m->body_weldid[m->body_parentid[wa]], pb = m->body_weldid[m->body_parentid[wb]];
    return touches(m, a) && touches(m, b) && wa != wb && !(wa && wb && (wa == pb || wb == pa));
}

static void add_pair(dc_touch_plan *p, int a, int b, int root, bool held) {
    if (p->pair_count == DC_TOUCH_PAIRS) return; // the rest is compared as ever
    p->held[p->pair_count] = held;
    memcpy(p->pairs[p->pair_count++], (int[]){a, b, root}, sizeof p->pairs[0]);
}

static void find_robot(dc_touch_plan *p, const mjModel *m) {
    for (p->bodies = 1; p->bodies < m->nbody && m->body_rootid[p->bodies] == 1;)
        p->bodies++;
    for (int g = 0; g < m->ngeom; g++) {
        int body = m->geom_bodyid[g];
        if (body == 0 || body >= p->bodies || !(m->geom_contype[g] || m->geom_conaffinity[g]))
            continue;
        if (p->part_count < DC_TOUCH_PARTS) p->parts[p->part_count] = g;
        p->part_count++;
    }
}

// Whether all that the robot may touch of the world's own body is a floor at height 0.
static bool is_floor(const dc_touch_plan *p, const mjModel *m) {
    for (int g = m->body_geomadr[0]; g < m->body_geomadr[0] + m->body_geomnum[0]; g++)
        for (int i = 0; i < p->part_count; i++) {
            int h = p->parts[i];
            bool meets = m->geom_contype[g] & m->geom_conaffinity[h] ||
                         m->geom_contype[h] & m->geom_conaffinity[g];
            bool floor = m->geom_type[g] == mjGEOM_PLANE && m->geom_pos[3 * g + 2] == 0 &&
                         m->geom_quat[4 * g] == 1;
            if (meets && !floor) return false;
        }
    return true;
}

static void find_pairs(dc_touch_plan *p, const mjModel *m) {
    for (int b = 1; b < p->bodies && is_floor(p, m); b++)
        if (are_compared(m, 0, b)) add_pair(p, 0, b, 0, false);
    for (int a = 1; a < p->bodies; a++)
        for (int b = a + 1; b < p->bodies; b++)
            if (is_excluded(m, a, b) || are_compared(m, a, b))
                add_pair(p, a, b, common_root(m, a, b), is_excluded(m, a, b));
}

// A button and its housing, at both ends of what it may do unseen.
static void find_room(dc_touch_plan *p, const mjModel *m, mjData *d, int k) {
    int slide = DC_ARM_THINGS + k, body = m->jnt_bodyid[slide];
    p->button[k][0] = m->body_parentid[body];
    p->button[k][1] = body;
    p->room[k] = (dc_box){{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int end = 0; end < 2; end++) {
        d->qpos[slide] = end ? dc_touch_high : dc_touch_low;
        mj_kinematics(m, d);
        for (int b = 0; b < 2; b++)
            for (int g = 0; g < m->body_geomnum[p->button[k][b]]; g++) {
                dc_box box = box_of(m, d, m->body_geomadr[p->button[k][b]] + g);
                widen(&p->room[k], &box);
            }
    }
    if (k == 0) p->rooms = p->room[0];
    widen(&p->rooms, &p->room[k]);
}

// Contacts are looked for once a step, at its beginning, and exist where things touch.
static bool touches_once(const mjModel *m) {
    bool ok = m->opt.integrator != mjINT_RK4;
    for (int g = 0; g < m->ngeom; g++)
        ok = ok && m->geom_margin[g] <= 0;
    return ok;
}

static bool fits(const dc_touch_plan *p, const mjModel *m) {
    int held = 0;
    bool ok = touches_once(m) && m->nbody <= DC_TOUCH_BODIES && p->part_count <= DC_TOUCH_PARTS &&
              m->njnt >= DC_TOUCH_JOINTS && m->nexclude <= DC_TOUCH_PAIRS;
    for (int j = 0; ok && j < DC_TOUCH_JOINTS; j++)
        ok = m->jnt_type[j] == mjJNT_HINGE && m->body_jntnum[m->jnt_bodyid[j]] == 1 &&
             m->jnt_bodyid[j] < p->bodies;
    for (int k = 0; k < p->pair_count; k++)
        held += p->held[k];
    return ok && held == m->nexclude;
}

bool dc_touch_plan_init(dc_touch_plan *p, const mjModel *m, const dc_arm_table *table) {
    *p = (dc_touch_plan){0};
    find_robot(p, m);
    if (p->part_count > DC_TOUCH_PARTS) return false;
    find_pairs(p, m);
    if (!fits(p, m)) return false;
    for (int j = 0; j < DC_TOUCH_JOINTS; j++)
        p->lever[j] = lever_of(m, p->bodies, p->joint_body[j] = m->jnt_bodyid[j]);
    mjData *d = table->cols ? mj_makeData(m) : NULL;
    p->buttons = d ? table->buttons : 0;
    for (int k = 0; k < p->buttons; k++)
        find_room(p, m, d, k);
    mj_deleteData(d);
    return true;
}

// ---- what is known of an environment ----

// A lower bound of the distance of two geoms. Of two boxes MuJoCo knows none.
static double distance(const mjModel *m, const mjData *d, int g, int h, bool *close) {
    const double *x = d->geom_xpos + (ptrdiff_t)3 * g, *y = d->geom_xpos + (ptrdiff_t)3 * h;
    double between[3] = {x[0] - y[0], x[1] - y[1], x[2] - y[2]};
    double apart = length(between) - m->geom_rbound[g] - m->geom_rbound[h];
    if (apart > near_by) return apart;
    *close = true;
    if (m->geom_type[g] == mjGEOM_BOX && m->geom_type[h] == mjGEOM_BOX) return 0;
    return mj_geomDistance(m, d, g, h, 1, NULL);
}

// How much closer two bodies of the robot may have come since geoms were placed.
static double motion(const dc_touch *t, const int pair[3]) {
    return t->moved[pair[0]] + t->moved[pair[1]] - 2 * t->moved[pair[2]];
}

static void measure(dc_touch *t, const dc_touch_plan *p, const mjModel *m, const mjData *d, int k) {
    int a = p->pairs[k][0], b = p->pairs[k][1];
    bool close = false;
    double least = INFINITY;
    for (int g = m->body_geomadr[a]; g < m->body_geomadr[a] + m->body_geomnum[a]; g++)
        for (int h = m->body_geomadr[b]; h < m->body_geomadr[b] + m->body_geomnum[b]; h++)
            least = fmin(least, distance(m, d, g, h, &close));
    t->spare[k] = least - margin - motion(t, p->pairs[k]);
    t->apart[k] = close;
    t->wait[k] = t->spare[k] > 0 ? 0 : PATIENCE;
}

// Distances anew where they are used up.
static void look(dc_touch *t, const dc_touch_plan *p, const mjModel *m, const mjData *d) {
    for (int k = 0; k < p->pair_count; k++) {
        if (t->wait[k] > 0) t->wait[k] -= LOOK;
        if (p->pairs[k][0] && !p->held[k] && !(t->spare[k] > 0) && t->wait[k] <= 0)
            measure(t, p, m, d, k);
    }
}

// What the step just done has moved.
static void follow(dc_touch *t, const dc_touch_plan *p, const mjModel *m, const mjData *d) {
    double turned[DC_TOUCH_BODIES] = {0};
    for (int j = 0; j < DC_TOUCH_JOINTS; j++)
        turned[p->joint_body[j]] = fabs(d->qvel[j]) * m->opt.timestep * p->lever[j] * 1.001;
    for (int b = 1; b < p->bodies; b++)
        t->moved[b] = t->moved[m->body_parentid[b]] + turned[b];
    for (int k = 0; k < p->pair_count; k++)
        t->spare[k] -= motion(t, p->pairs[k]);
}

// Where parts of the robot may be now.
static void place(dc_touch *t, const dc_touch_plan *p, const mjModel *m, const mjData *d) {
    for (int b = 0; b < p->bodies; b++)
        t->lowest[b] = INFINITY;
    for (int i = 0; i < p->part_count; i++) {
        int body = m->geom_bodyid[p->parts[i]];
        t->boxes[i] = box_of(m, d, p->parts[i]);
        for (int k = 0; k < 3; k++) {
            t->boxes[i].low[k] -= t->moved[body];
            t->boxes[i].high[k] += t->moved[body];
        }
        double low = t->boxes[i].low[2]; // NaN counts as below the floor
        if (low < t->lowest[body] || low != low) t->lowest[body] = low;
    }
}

static void exclude_pairs(dc_touch *t, const dc_touch_plan *p) {
    int count = 0;
    for (int k = 0; k < p->pair_count; k++) {
        int a = p->pairs[k][0], b = p->pairs[k][1];
        bool apart = a ? t->apart[k] && t->spare[k] > 0 : t->lowest[b] > 0;
        if (p->held[k] || apart) t->exclude[count++] = (a << 16) + b;
    }
    t->model.nexclude = count;
}

static void leave_out_buttons(dc_touch *t, const dc_touch_plan *p, const mjModel *m,
                              const mjData *d) {
    bool near[DC_BUTTONS_MAX] = {0};
    for (int i = 0; i < p->part_count; i++)
        for (int k = 0; k < p->buttons && overlap(&t->boxes[i], &p->rooms); k++)
            near[k] = near[k] || overlap(&t->boxes[i], &p->room[k]);
    for (int k = 0; k < p->buttons; k++) {
        double at = d->qpos[DC_ARM_THINGS + k];
        bool in = near[k] || !(at > dc_touch_low && at < dc_touch_high);
        for (int b = 0; b < 2; b++) {
            int body = p->button[k][b];
            t->contype[body] = in ? m->body_contype[body] : 0;
            t->conaffinity[body] = in ? m->body_conaffinity[body] : 0;
        }
    }
}

static void copy_model(dc_touch *t, const mjModel *m) {
    t->model = *m;
    memcpy(t->contype, m->body_contype, (size_t)m->nbody * sizeof *t->contype);
    memcpy(t->conaffinity, m->body_conaffinity, (size_t)m->nbody * sizeof *t->conaffinity);
    t->model.body_contype = t->contype;
    t->model.body_conaffinity = t->conaffinity;
    t->model.exclude_signature = t->exclude;
}

// Geoms are placed anew, and nothing is known any more if somebody else moved the robot.
static void begin(dc_touch *t, const mjModel *m, mjData *d) {
    copy_model(t, m);
    mj_kinematics(m, d);
    memset(t->moved, 0, sizeof t->moved);
    bool same = true;
    for (int j = 0; j < DC_TOUCH_JOINTS; j++)
        same = same && t->joints[j] == d->qpos[j];
    t->joints[0] = NAN; // until the steps are done
    if (same) return;
    memset(t->spare, 0, sizeof t->spare);
    memset(t->wait, 0, sizeof t->wait);
}

void dc_touch_steps(dc_touch *t, const dc_touch_plan *p, const mjModel *m, mjData *d, int steps) {
    begin(t, m, d);
    for (int s = 0; s < steps; s++) {
        if (s % LOOK == 0) look(t, p, m, d);
        place(t, p, m, d);
        exclude_pairs(t, p);
        if (p->buttons) leave_out_buttons(t, p, m, d);
        mj_step(&t->model, d);
        follow(t, p, m, d);
    }
    bool reset = d->warning[mjWARN_BADQPOS].number || d->warning[mjWARN_BADQVEL].number ||
                 d->warning[mjWARN_BADQACC].number;
    if (!reset) memcpy(t->joints, d->qpos, sizeof t->joints);
}
