// Returns of -1 per step until the goal, learned from single transitions: what iql, gcivl and hiql share.
//
//   rows      state, next (the state after it), goal (by a mixture), goal_steps (steps to it, or -1)
//   target    0 where the goal is the state itself, else -1 + gamma V(next, goal)
//   value     of states alone, two members, by the upper expectile of an advantage (gcivl, hiql):
//
//     L_V = sum over members of mean c (y - V(s, g))^2,   y = the target of that member's Vbar(s', g)
//     c = kappa if A >= 0, else 1 - kappa;   A = the target of min Vbar(s', g) - mean Vbar(s, g)
#ifndef DC_RETURNS_H
#define DC_RETURNS_H

#include "algo/batch.h"

// Goals of a value: shares, and the law of those that lie ahead.
#define DC_GOAL_OPTIONS(config) DC_GOAL_OPTIONS_BY(config, "geometric")
#define DC_GOAL_OPTIONS_BY(config, law_default)                                                    \
    DC_GOAL_SHARE_OPTIONS(config, "0.2", "0.5", "0.3", law_default)
#define DC_GOAL_SHARE_OPTIONS(config, current_, future_, random_, law_default)                     \
    DC_OPTION_REAL_AS("goal_current", config, goals.current, current_, 0, 1,                       \
                      "value: share of goals that are the state itself"),                          \
        DC_OPTION_REAL_AS("goal_future", config, goals.future, future_, 0, 1,                      \
                          "value: share of goals later in the trajectory"),                        \
        DC_OPTION_REAL_AS("goal_random", config, goals.random, random_, 0, 1,                      \
                          "value: share of goals from anywhere; the shares add up to 1"),          \
        DC_OPTION_CHOICE_AS("goal_law", config, goals.law, law_default, "uniform|geometric",       \
                            "value: law of the later state")

#define DC_GOAL_NEXT_OPTION(config, share)                                                         \
    DC_OPTION_REAL_AS("goal_next", config, goals.next, share, 0, 1,                                \
                      "value: share of goals that are the next state")

void dc_return_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals);
// (e, batch, 1) of V(next, goal) (e, batch, 1); passes no gradient.
dc_ref dc_return_target(dc_agent *a, dc_ref later);
// L_V from v = V(s, g), now = Vbar(s, g) and later = Vbar(s', g), (2, batch, 1) each: the first loss of a total. Logs it
// and the mean of v.
dc_ref dc_return_loss(dc_agent *a, double kappa, dc_ref v, dc_ref now, dc_ref later);

#endif
