// The value form as parts, for methods whose losses are their own: Q(s, a, g), two members of one logit each,
// sigmoid(logit) = gamma^steps, with target weights, on whole observations as goals; a second ensemble that sees goals as
// the task gives them; and a policy extracted from it on rows of its own. The family of backup.h uses the same parts.
#ifndef DC_VALUE_H
#define DC_VALUE_H

#include "algo/policy.h"
#include "algo/returns.h"

// Rows "state", "goal" and "goal_steps": steps from one to the other if it lies ahead in the trajectory, else -1.
void dc_value_goal_rows(dc_row_table *r, const dc_method *m, const dc_goal_mix *goals);
// Rows "actor_state" and "actor_goal", unless there is no policy.
void dc_value_policy_rows(dc_row_table *r, const dc_method *m, const dc_policy *p);
// Networks "critic" and, where goals are representations, "oracle_critic".
void dc_value_networks(dc_nets *nets, const dc_method *m);
// (1, batch, 1) or (2, batch, 1): where the goal is the state itself or the next one, what is known of it, else `far`. Passes
// no gradient.
dc_ref dc_value_target(dc_agent *a, dc_ref far);
// With goal representations: oracle_critic(s, a, rep(g)) -> sg sigmoid(taught), added to the total. taught (2, batch, 1)
// are logits of the rows `state` and `goal`.
dc_ref dc_value_distil(dc_agent *a, const char *state, const char *goal, dc_ref taught,
                       dc_ref total);
// The policy's loss, added to the total.
dc_ref dc_value_policy(dc_agent *a, const dc_policy *p, dc_ref total);
// Log the mean value of logits.
void dc_value_log(dc_agent *a, dc_ref logits);

dc_ref dc_value_act(dc_infer *q, const dc_method *m, const dc_policy *p);
dc_ref dc_value_query(dc_infer *q, const dc_method *m);

#endif
