// Returns from single transitions, see returns.h.
#include "algo/returns.h"

#include "base/philox.h"

void dc_return_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals) {
    dc_rows_add(r, DC_START("state", DC_STREAM_STATE, "a state with its action"));
    dc_rows_add(r, DC_AFTER("next", "state", 1, "the state after it"));
    dc_rows_add(r, DC_GOAL("goal", "state", DC_STREAM_GOAL, *goals, m->gamma, "goal of the value"));
    dc_rows_add(r, DC_STEPS("goal_steps", "state", "goal",
                            "steps to it if it lies ahead in the trajectory, else -1"));
}

dc_ref dc_return_target(dc_agent *a, dc_ref later) {
    dc_graph *g = &a->graph;
    dc_ref steps = DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    dc_ref far = dc_affine(g, dc_stop(g, later), a->method.gamma, -1);
    return dc_within(g, steps, dc_affine(g, steps, 0, 0), far, 0);
}

dc_ref dc_return_loss(dc_agent *a, double kappa, dc_ref v, dc_ref now, dc_ref later) {
    dc_graph *g = &a->graph;
    dc_ref best = dc_return_target(a, dc_ensemble_min(g, later));
    dc_ref adv = dc_add(g, best, dc_affine(g, dc_ensemble_mean(g, now), -1, 0));
    // dc_expectile at 0.5 is the mean over rows and members of weight * square; weight is c of L_V.
    dc_ref weight = dc_side(g, adv, kappa);
    dc_ref loss = dc_expectile(g, "loss_value", v, dc_return_target(a, later), weight, 0.5);
    dc_agent_metric(a, "value_mean", dc_mean(g, "value_mean", v));
    return dc_batch_loss(a, "loss_value", -1, dc_affine(g, loss, 2, 0)); // mean to sum, two members
}
