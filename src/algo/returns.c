// Returns from single transitions, see returns.h.
#include "algo/returns.h"

#include "base/philox.h"

void dc_return_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals) {
    dc_rows_add(r, (dc_row_rule){.name = "state",
                                 .kind = DC_ROW_START,
                                 .draws = DC_STREAM_PROP,
                                 .about = "a state with its action"});
    dc_rows_add(r, (dc_row_rule){.name = "next",
                                 .kind = DC_ROW_AFTER,
                                 .of = "state",
                                 .steps = 1,
                                 .about = "the state after it"});
    dc_rows_add(r, (dc_row_rule){.name = "goal",
                                 .kind = DC_ROW_GOAL,
                                 .of = "state",
                                 .draws = DC_STREAM_GOAL,
                                 .gamma = m->gamma,
                                 .mix = *goals,
                                 .about = "goal of the value"});
    dc_rows_add(r,
                (dc_row_rule){.name = "goal_steps",
                              .kind = DC_ROW_STEPS,
                              .of = "state",
                              .to = "goal",
                              .about = "steps to it if it lies ahead in the trajectory, else -1"});
}

dc_ref dc_return_target(dc_agent *a, dc_ref later) {
    dc_graph *g = &a->graph;
    dc_ref steps = DC_BATCH(a, "goal_steps", STEPS("goal_steps"));
    dc_ref far = dc_affine(g, dc_stop(g, later), a->method.gamma, -1);
    return dc_within(g, steps, dc_affine(g, steps, 0, 0), far, 0);
}
