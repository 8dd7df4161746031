// What the two kinds of oracles share, see oracle.h.
#include "env/arm/oracle.h"

#include <math.h>
#include <string.h>

static const double pi = 3.141592653589793;

double dc_nearest_yaw(double hand, double thing, int folds) {
    double best = 0, least = INFINITY;
    for (int k = -folds; k <= folds; k++) {
        double yaw = k * 2 * pi / folds + thing, off = fabs(hand - yaw);
        if (off >= least) continue;
        least = off;
        best = yaw;
    }
    return best;
}

dc_oracle dc_oracle_of(const dc_arm_table *table, dc_data_kind kind) {
    return (dc_oracle){
        .plans = kind == DC_DATA_PLAY, .closed = !table->cubes, .reach = dc_arm_reach(table)};
}

void dc_oracle_begin(dc_oracle *o, const dc_sight *sight, const dc_draws *draws) {
    o->aim = sight->aim;
    o->done = false;
    o->steps = 0;
    for (int k = 0; k < 3; k++) {
        double low = o->reach->arm[0][k];
        // A hand that sees what it does leaves the window upwards.
        if (!o->plans && o->aim == DC_AIM_WINDOW && k == 2) low = fmax(low, 0.3);
        o->leave[k] = draws->uniform(draws->ctx, low, o->reach->arm[1][k]);
    }
    o->leave_yaw = draws->uniform(draws->ctx, -pi, pi);
    if (o->plans) dc_plan_begin(o, sight, draws);
}

void dc_oracle_act(dc_oracle *o, const dc_sight *sight, double action[DC_HAND]) {
    if (o->plans)
        dc_plan_act(o, sight, action);
    else
        dc_markov_act(o, sight, action);
    for (int k = 0; k < DC_HAND; k++)
        action[k] = fmin(fmax(action[k], -1), 1);
}
