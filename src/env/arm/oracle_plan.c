// Play: keyframes (time, pose, opening) of a whole subtask are laid down when it begins, filled in
// between, and shaken by noise that is smooth in time. An action is what lies between the hand and
// the plan's row of this moment; whether a thing was really grasped is never asked.
//
// Sums are taken in the order of the reference (scipy's interpolation and filter), so that plans are
// equal to the last places.
#include "env/arm/oracle.h"

#include "env/arm/pose.h"

#include <math.h>
#include <string.h>

enum { KEYS_MAX = 11 };
static const double pi = 3.141592653589793;
static const double segment = 0.4, control = 0.05; // seconds: a segment, a control step
static const double noise = 0.1, range[DC_HAND] = {0.05, 0.05, 0.05, 0.3, 1.0};

typedef struct key {
    double time;
    dc_pose pose;
    double grasp; // 0 open, 1 closed
} key;

typedef struct frames {
    int count;
    key keys[KEYS_MAX];
} frames;

// ---- poses ----

static dc_pose pose_at(const double at[3], double yaw) {
    dc_pose r;
    dc_quat_yaw(yaw, r.q);
    memcpy(r.p, at, sizeof r.p);
    return r;
}

static dc_pose above(const dc_pose *pose, double z) {
    dc_pose up = {{1, 0, 0, 0}, {0, 0, z}};
    return dc_pose_mul(&up, pose);
}

static double yaw_of(const dc_pose *pose) { // in [0, 2 pi)
    double yaw = dc_yaw_of(pose->q);
    return yaw < 0 ? yaw + 2 * pi : yaw;
}

// A thing as the hand at `from` would take it.
static dc_pose grip(const dc_pose *from, const dc_pose *thing, const double at[3], int folds) {
    return pose_at(at, dc_nearest_yaw(yaw_of(from), yaw_of(thing), folds));
}

// ---- keyframes ----

// The next keyframe, `segments` after the last one.
static void add(frames *f, double segments, dc_pose pose, double grasp) {
    double last = f->count ? f->keys[f->count - 1].time + segment * segments : 0;
    f->keys[f->count++] = (key){last, pose, grasp};
}

static dc_pose draw_clearance(const dc_pose *pick, const dc_pose *place, double z,
                              const dc_draws *d) {
    dc_pose r = dc_pose_midway(pick, place);
    r.p[0] += d->uniform(d->ctx, -0.1, 0.1);
    r.p[1] += d->uniform(d->ctx, -0.1, 0.1);
    r.p[2] = z + d->uniform(d->ctx, 0, 0.2);
    return r;
}

static void lay_cube(frames *f, const dc_thing *thing, const dc_pose *hand, const dc_pose *leave,
                     const dc_draws *d) {
    dc_pose from = pose_at(thing->at, thing->yaw), to = pose_at(thing->to, thing->to_yaw);
    from = grip(hand, &from, thing->at, 4);
    dc_pose pick = above(&from, 0.1 + d->uniform(d->ctx, 0, 0.1));
    to = grip(&pick, &to, thing->to, 4);
    dc_pose place = above(&to, 0.1 + d->uniform(d->ctx, 0, 0.1));
    dc_pose clearance = draw_clearance(&pick, &place, hand->p[2], d);
    add(f, 0, *hand, 0);
    add(f, 1, pick, 0);
    add(f, 1.5, from, 0);
    add(f, 1, from, 1);
    add(f, 1, pick, 1);
    add(f, 1, clearance, 1);
    add(f, 1, place, 1);
    add(f, 1.5, to, 1);
    add(f, 1, to, 0);
    add(f, 1, place, 0);
    add(f, 1, *leave, 0);
}

static void lay_button(frames *f, const dc_thing *thing, const dc_pose *hand, const dc_pose *leave,
                       bool closed) {
    dc_pose button = pose_at(thing->at, thing->yaw);
    dc_pose up = above(&button, 0.06), down = above(&button, -0.025);
    double x = hand->p[0] - up.p[0], y = hand->p[1] - up.p[1], z = hand->p[2] - up.p[2];
    double open = closed ? 1 : 0;
    add(f, 0, *hand, open);
    add(f, 0.5 + sqrt(x * x + y * y + z * z) * 4, up, 1);
    add(f, 0.8, down, 1);
    add(f, 0.8, up, 1);
    add(f, 1.25, *leave, open);
}

static void lay_slide(frames *f, const dc_thing *thing, const dc_pose *hand, const dc_pose *leave,
                      double height) {
    dc_pose handle = pose_at(thing->at, thing->yaw);
    dc_pose from = grip(hand, &handle, thing->at, 2), to = grip(hand, &handle, thing->to, 2);
    add(f, 0, *hand, 0);
    add(f, 1, above(&from, height), 0);
    add(f, 0.5, from, 0);
    add(f, 0.5, from, 1);
    add(f, 0.5, to, 1);
    add(f, 0.5, to, 0);
    add(f, 0.5, above(&to, height), 0);
    add(f, 1, *leave, 0);
}

static void lay(frames *f, const dc_oracle *o, const dc_sight *s, const dc_draws *d) {
    const dc_thing *thing = &s->things[o->aim];
    dc_pose hand = pose_at(s->hand, s->yaw), leave = pose_at(o->leave, o->leave_yaw);
    if (o->aim == DC_AIM_CUBE)
        lay_cube(f, thing, &hand, &leave, d);
    else if (o->aim == DC_AIM_BUTTON)
        lay_button(f, thing, &hand, &leave, o->closed);
    else
        lay_slide(f, thing, &hand, &leave, o->aim == DC_AIM_DRAWER ? 0.12 : 0.06);
    double jitter = o->aim == DC_AIM_CUBE ? 0.2 : 0.1;
    for (int k = 1; k < f->count; k++)
        f->keys[k].time += d->uniform(d->ctx, -1, 1) * segment * jitter;
}

// ---- the plan ----

// Between keyframes. At one of them exactly, a place is reached from the left and a turn begins to
// the right, as in the reference.
static void fill_row(const frames *f, double t, double row[DC_HAND]) {
    int left = 0, right = 0; // first key of the segment by either rule
    while (left < f->count - 2 && f->keys[left + 1].time < t)
        left++;
    while (right < f->count - 2 && f->keys[right + 1].time <= t)
        right++;
    const key *a = &f->keys[left], *b = a + 1;
    for (int k = 0; k < 3; k++) {
        double slope = (b->pose.p[k] - a->pose.p[k]) / (b->time - a->time);
        row[k] = slope * (t - a->time) + a->pose.p[k];
    }
    a = &f->keys[right], b = a + 1;
    double part = fmin(fmax((t - a->time) / (b->time - a->time), 0), 1), q[4];
    dc_quat_between(a->pose.q, b->pose.q, part, q);
    row[3] = dc_yaw_of(q);
    row[4] = (b->grasp - a->grasp) / (b->time - a->time) * (t - a->time) + a->grasp;
}

// Gaussian filter over time with sigma 0.5 (a step): rows -2 ... 2, mirrored at the ends.
static void add_smooth(double plan[][DC_HAND], double z[][DC_HAND], int rows) {
    const double near = exp(-2), far = exp(-8), sum = far + near + 1 + near + far;
    for (int t = 0; t < rows; t++) {
        int at[5];
        for (int k = 0; k < 5; k++) {
            at[k] = t + k - 2;
            if (at[k] < 0) at[k] = -1 - at[k];
            if (at[k] >= rows) at[k] = 2 * rows - 1 - at[k];
        }
        for (int c = 0; c < DC_HAND; c++) {
            double v = z[at[2]][c] * (1 / sum);
            v += (z[at[0]][c] + z[at[4]][c]) * (far / sum);
            v += (z[at[1]][c] + z[at[3]][c]) * (near / sum);
            plan[t][c] += v;
        }
    }
}

void dc_plan_begin(dc_oracle *o, const dc_sight *sight, const dc_draws *draws) {
    frames f = {0};
    double z[DC_PLAN_MAX][DC_HAND];
    lay(&f, o, sight, draws);
    o->start = sight->time;
    o->rows = 0;
    for (double t = 0; t < f.keys[f.count - 1].time && o->rows < DC_PLAN_MAX; t += control)
        fill_row(&f, t, o->plan[o->rows++]);
    for (int t = 0; t < o->rows; t++)
        for (int c = 0; c < DC_HAND; c++)
            z[t][c] = draws->normal(draws->ctx) * range[c] * noise;
    if (o->rows > 1) add_smooth(o->plan, z, o->rows);
}

// Whole steps in a time, rounded as Python's //.
static int steps_in(double time) {
    double rest = fmod(time, control), whole = (time - rest) / control, down = floor(whole);
    if (whole - down > 0.5) down += 1;
    return down > 0 && down < DC_PLAN_MAX ? (int)down : down > 0 ? DC_PLAN_MAX : 0;
}

void dc_plan_act(dc_oracle *o, const dc_sight *s, double action[DC_HAND]) {
    int row = steps_in(s->time - o->start + 1e-7);
    if (row >= o->rows - 1) {
        row = o->rows > 0 ? o->rows - 1 : 0;
        o->done = true;
    }
    const double *to = o->plan[row],
                 is[DC_HAND] = {s->hand[0], s->hand[1], s->hand[2], s->yaw, s->opening};
    for (int k = 0; k < DC_HAND; k++)
        action[k] = 2 * (to[k] - is[k] - -range[k]) / (range[k] - -range[k]) - 1;
}
