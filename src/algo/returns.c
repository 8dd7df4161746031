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
