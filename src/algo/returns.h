// Returns of -1 per step until the goal, learned from single transitions: what iql and hiql share.
//
//   rows      state, next (the state after it), goal (by a mixture), goal_steps (steps to it, or -1)
//   target    0 where the goal is the state itself, else -1 + gamma V(next, goal)
#ifndef DC_RETURNS_H
#define DC_RETURNS_H

#include "algo/batch.h"

// Goals of a value: shares, and the law of those that lie ahead.
#define DC_GOAL_OPTIONS(config)                                                                    \
    DC_OPTION_REAL_AS("goal_current", config, goals.current, "0.2", 0, 1,                          \
                      "value: share of goals that are the state itself"),                          \
        DC_OPTION_REAL_AS("goal_future", config, goals.future, "0.5", 0, 1,                        \
                          "value: share of goals later in the trajectory"),                        \
        DC_OPTION_REAL_AS("goal_random", config, goals.random, "0.3", 0, 1,                        \
                          "value: share of goals from anywhere; the three add up to 1"),           \
        DC_OPTION_CHOICE_AS("goal_law", config, goals.law, "geometric", "uniform|geometric",       \
                            "value: law of the later state")

void dc_return_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals);
// (e, batch, 1) of V(next, goal) (e, batch, 1); passes no gradient.
dc_ref dc_return_target(dc_agent *a, dc_ref later);

#endif
