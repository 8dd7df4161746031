// Noisy: the next action follows from where hand and thing are now, by phases. Moves have full
// speed until close by; an oracle that gets nowhere gives up after a while.
#include "env/arm/oracle.h"

#include <math.h>

static const double gain = 5, gain_yaw = 3, shortest = 0.4;
static const double aligned = 0.04, arrived = 0.04;

// What a phase wants: a place to go to, an angle to turn by, the gripper to close (1) or open (-1).
typedef struct move {
    double to[3], turn, grip;
} move;

static double distance(const double *a, const double *b, int n) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sqrt(sum);
}

static move go(const double at[3], double up, double turn, double grip) {
    return (move){{at[0], at[1], at[2] + up}, turn, grip};
}

// Away from the thing, upwards first.
static move go_away(const dc_oracle *o, const dc_sight *s, const double at[3], double height,
                    double grip) {
    double turn = o->leave_yaw - s->yaw;
    if (s->hand[2] > height) return go(o->leave, 0, turn, grip);
    return (move){{at[0], at[1], height * 2}, turn, grip};
}

static move move_cube(const dc_oracle *o, const dc_sight *s, bool *achieved) {
    const dc_thing *c = &s->things[DC_AIM_CUBE];
    const double hover = 0.18, height = 0.16, close = 0.02;
    double yaw = dc_nearest_yaw(s->yaw, c->yaw, 4);
    double turn = yaw - s->yaw, carry = dc_nearest_yaw(s->yaw, c->to_yaw, 4) - yaw;
    *achieved = distance(c->to, c->at, 3) <= close;
    if (*achieved) {
        if (s->contact >= 0.1) return go(c->to, 0, carry, -1);
        return go_away(o, s, c->at, height, -1);
    }
    if (distance(c->at, s->hand, 2) > aligned) return go(c->at, hover, turn, -1);
    if (distance(c->at, s->hand, 3) > close) return go(c->at, 0, turn, -1);
    if (s->contact <= 0.5) return go(c->at, 0, turn, 1);
    if (distance(c->to, c->at, 2) <= aligned) return go(c->to, 0, carry, 1);
    if (s->hand[2] > height) return go(c->to, hover, carry, 1);
    return (move){{c->at[0], c->at[1], hover * 2}, carry, 1};
}

static move move_button(const dc_oracle *o, const dc_sight *s, bool *achieved) {
    const dc_thing *b = &s->things[DC_AIM_BUTTON];
    *achieved = b->right;
    if (b->right) return go_away(o, s, b->at, 0.16, o->closed ? 1 : -1);
    return go(b->at, distance(b->at, s->hand, 2) > aligned ? 0.06 : -0.022, 0, 1);
}

static move move_slide(const dc_oracle *o, const dc_sight *s, bool *achieved) {
    const dc_thing *h = &s->things[o->aim];
    bool window = o->aim == DC_AIM_WINDOW;
    double turn = dc_nearest_yaw(s->yaw, h->yaw, 2) - s->yaw;
    *achieved = distance(h->to, h->at, 3) <= 0.01;
    if (*achieved) return go_away(o, s, h->at, window ? 0.28 : 0.18, -1);
    if (distance(h->at, s->hand, 2) > aligned) return go(h->at, window ? 0.06 : 0.12, turn, -1);
    if (distance(h->at, s->hand, 3) > 0.03) return go(h->at, 0, turn, -1);
    return go(h->to, 0, turn, window ? 1 : -1);
}

void dc_markov_act(dc_oracle *o, const dc_sight *s, double action[DC_HAND]) {
    static const int patience[DC_AIMS] = {
        [DC_AIM_CUBE] = 200, [DC_AIM_BUTTON] = 100, [DC_AIM_DRAWER] = 75, [DC_AIM_WINDOW] = 75};
    bool achieved;
    move m = o->aim == DC_AIM_CUBE     ? move_cube(o, s, &achieved)
             : o->aim == DC_AIM_BUTTON ? move_button(o, s, &achieved)
                                       : move_slide(o, s, &achieved);
    double length = distance(m.to, s->hand, 3);
    for (int k = 0; k < 3; k++) {
        double way = m.to[k] - s->hand[k];
        if (length < shortest) way = way / (length + 1e-6) * shortest;
        action[k] = way * gain;
    }
    action[3] = m.turn * gain_yaw;
    action[4] = m.grip;
    if (achieved && distance(o->leave, s->hand, 3) <= arrived) o->done = true;
    if (++o->steps == patience[o->aim]) o->done = true;
}
