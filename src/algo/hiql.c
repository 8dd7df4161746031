// hiql: hierarchical implicit Q-learning (Park et al. 2023). One value without actions serves two
// policies: the high one proposes a subgoal k steps ahead, the low one acts toward it.
//
//   V(s, g) sees the goal through phi([s | g]), a representation of length sqrt(rep_dim)
//   L_V   = sum over members of mean c (y - V(s, g))^2,   y = -1 + gamma Vbar(s', g), or 0 at the goal
//           c = kappa if A >= 0, else 1 - kappa;  A = -1 + gamma min Vbar(s', g) - mean Vbar(s, g)   (algo/returns.h)
//   L_low  = awr on the action,                A = V(s', w) - V(s, w),    w = the state k steps later
//   L_high = awr on phi([s | w']), fixed,      A = V(w', g) - V(s, g),    w' = k steps later, but not past g
//
// phi is trained by L_V alone and has no EMA copy: Vbar is the EMA of V's own layers, fed with the present
// phi. Acting asks both levels at every step: z = high(s, g), rescaled; a = low(s, z).
// Without goal_rep, V and the low policy see goals as they are, and the high policy predicts one (high_target).
//
// por: policy-guided offline RL as the comparisons with HIQL play it, which is hiql without goal_rep and with subgoals one
// step ahead: the high policy says which state should come next. Its defaults are those of HIQL's code on CALVIN.
#include "algo/policy.h"
#include "algo/returns.h"

typedef struct config {
    bool goal_rep;
    int64_t rep_dim, subgoal_steps;
    int high_target;
    double kappa, alpha_low, alpha_high;
    dc_goal_mix goals;
    dc_policy policy; // goals of the high policy; LayerNorm and gain of both
} config;

static const dc_option options[] = {
    DC_OPTION_BOOL(config, goal_rep, "on",
                   "learn a representation of goals, phi([s | g]); off: goals as they are"),
    DC_OPTION_INT(config, rep_dim, "10", 1, 1024, "columns of that representation"),
    DC_OPTION_INT(config, subgoal_steps, "25", 1, 1e6, "steps from a state to its subgoal"),
    DC_OPTION_REAL(config, kappa, "0.7", 0.5, 0.999, "expectile of the value"),
    DC_OPTION_REAL(config, alpha_low, "3", 0, 1e6, "low policy: weight of the advantage"),
    DC_OPTION_REAL(config, alpha_high, "3", 0, 1e6, "high policy: weight of the advantage"),
    DC_GOAL_OPTIONS(config),
    DC_ACTOR_GOAL_OPTIONS(config),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    DC_ACTOR_FORM_OPTIONS(config, "", "gelu", "one"),
    DC_HIGH_TARGET_OPTION(config, "state"),
    {0},
};

static const dc_option options_por[] = {
    DC_OPTION_INT(config, subgoal_steps, "1", 1, 1e6, "steps from a state to its subgoal"),
    DC_OPTION_REAL(config, kappa, "0.7", 0.5, 0.999, "expectile of the value"),
    DC_OPTION_REAL(config, alpha_low, "1", 0, 1e6, "low policy: weight of the advantage"),
    DC_OPTION_REAL(config, alpha_high, "1", 0, 1e6, "high policy: weight of the advantage"),
    DC_GOAL_OPTIONS(config),
    DC_OPTION_REAL_AS("actor_random", config, policy.actor_random, "0.3", 0, 1,
                      "high policy: share of random goals, the others lie ahead"),
    DC_OPTION_CHOICE_AS("actor_law", config, policy.actor_law, "uniform", "uniform|geometric",
                        "high policy: law of goals that lie ahead"),
    DC_ACTOR_NETWORK_OPTIONS(config, "off"),
    DC_ACTOR_FORM_OPTIONS(config, "256,256", "relu", "free"),
    DC_HIGH_TARGET_OPTION(config, "auto"),
    {0},
};

static dc_status check(const dc_method *m) {
    const config *c = m->config;
    DC_TRY(dc_need_real_actions(m));
    DC_TRY(dc_policy_check_form(m, &c->policy));
    if (c->goal_rep && c->high_target == DC_HIGH_DIFFERENCE)
        return dc_fail(DC_USAGE, "set goal_rep=off, or high_target=state",
                       "the high policy predicts a representation, which has no difference to a "
                       "state");
    return dc_policy_check_high(m, c->high_target);
}

static bool difference(const dc_method *m) {
    const config *c = m->config;
    return !c->goal_rep && dc_policy_difference(m, c->high_target);
}

static void rows(dc_row_table *r, const dc_method *m) {
    const config *c = m->config;
    dc_return_rows(r, m, &c->goals);
    dc_rows_add(r, DC_AFTER("low_goal", "state", c->subgoal_steps,
                            "goal of the low policy: k steps later"));
    dc_rows_add(r, dc_policy_goal(&c->policy, m, "high_goal", "state"));
    dc_rows_add(r, DC_TOWARD("waypoint", "state", "high_goal", c->subgoal_steps,
                             "what the high policy predicts: k steps later, not past its goal"));
}

// Columns of a goal as V and the low policy see it.
static int seen_goal(const dc_method *m) {
    const config *c = m->config;
    return c->goal_rep ? (int)c->rep_dim : m->goal;
}

static void networks(dc_nets *nets, const dc_method *m) {
    const config *c = m->config;
    int goal = seen_goal(m), wholes = c->goal_rep ? 1 : dc_observations(m, 1);
    dc_nets_add(nets, (dc_net){.name = "value",
                               .ensemble = 2,
                               .in = m->obs + goal,
                               .out = 1,
                               .observations = wholes,
                               .target = true});
    if (c->goal_rep)
        dc_nets_add(nets, (dc_net){.name = "rep",
                                   .in = m->obs + m->goal,
                                   .out = (int)c->rep_dim,
                                   .observations = dc_observations(m, 1)});
    dc_policy_gauss_network(nets, &c->policy, "high_actor", "high_log_std", m->obs + m->goal, goal,
                            dc_observations(m, 1));
    dc_policy_gauss_network(nets, &c->policy, "low_actor", "low_log_std", m->obs + goal, m->act,
                            wholes);
}

// All pairs (s, g) of which phi or V is needed. They stand in one stack, so that each network is applied once
// to pairs that follow each other; a pair's index is its part of the stack.
enum { TRAINED, TARGET, LOW_NEXT, LOW_NOW, HIGH_NEXT, HIGH_NOW, SUBGOAL, PAIRS };
typedef struct pair {
    const char *state, *goal; // names of rules, see rows()
} pair;
static const pair pairs[PAIRS] = {
    [TRAINED] = {"state", "goal"},           // V(s, g), which is trained
    [TARGET] = {"next", "goal"},             // V(s', g) in its target
    [LOW_NEXT] = {"next", "low_goal"},       // V(s', w)
    [LOW_NOW] = {"state", "low_goal"},       // - V(s, w): advantage of the low policy
    [HIGH_NEXT] = {"waypoint", "high_goal"}, // V(w', g)
    [HIGH_NOW] = {"state", "high_goal"},     // - V(s, g): advantage of the high policy
    [SUBGOAL] = {"state", "waypoint"},       // phi([s | w']), which the high policy predicts
};

// phi of all pairs, (1, PAIRS * batch, rep_dim). Only of TRAINED does a caller let gradient through.
static dc_ref represent(dc_agent *a) {
    dc_field fields[PAIRS][3];
    const dc_field *parts[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        fields[i][0] = OBS(pairs[i].state);
        fields[i][1] = GOAL(pairs[i].goal);
        fields[i][2] = (dc_field){DC_FIELD_NONE, 0, NULL, NULL};
        parts[i] = fields[i];
    }
    dc_ref x = dc_batch_stack(a, "rep", PAIRS, parts);
    return dc_normalise(&a->graph, dc_agent_net(a, "rep", x, DC_LIVE));
}

// V's input [s | phi] (1, count * batch, obs + rep_dim) of pairs first ... first + count - 1; with phi -1 it is
// [s | g], goals as they are.
static dc_ref value_input(dc_agent *a, const char *name, int first, int count, dc_ref phi) {
    dc_field fields[PAIRS][3];
    const dc_field *parts[PAIRS];
    for (int i = 0; i < count; i++) {
        fields[i][0] = OBS(pairs[first + i].state);
        fields[i][1] = phi >= 0 ? BLANK(seen_goal(&a->method)) : GOAL(pairs[first + i].goal);
        fields[i][2] = (dc_field){DC_FIELD_NONE, 0, NULL, NULL};
        parts[i] = fields[i];
    }
    dc_ref x = dc_batch_stack(a, name, count, parts);
    if (phi < 0) return x;
    int batch = a->method.batch;
    return dc_splice(&a->graph, name, x, dc_rows(&a->graph, phi, first * batch, count * batch),
                     a->method.obs);
}

static dc_ref value_loss(dc_agent *a, const config *c, dc_ref phi) {
    dc_ref held = phi >= 0 ? dc_stop(&a->graph, phi) : -1;
    dc_ref v = dc_agent_net(a, "value", value_input(a, "value", TRAINED, 1, phi), DC_LIVE);
    dc_ref x = value_input(a, "target_value", TRAINED, 2, held);
    dc_ref bar = dc_agent_net(a, "value", x, DC_EMA);
    return dc_return_loss(a, c->kappa, v, dc_batch_part(a, bar, 0), dc_batch_part(a, bar, 1));
}

// Part `first` of values (1, n, 1) less the part after it.
static dc_ref advantage(dc_agent *a, dc_ref values, int first) {
    dc_graph *g = &a->graph;
    return dc_add(g, dc_batch_part(a, values, first),
                  dc_affine(g, dc_batch_part(a, values, first + 1), -1, 0));
}

// L_low and L_high. phi passes no gradient here.
static dc_ref policy_losses(dc_agent *a, const config *c, dc_ref phi, dc_ref total) {
    dc_graph *g = &a->graph;
    int goal = seen_goal(&a->method);
    // The mean over members of V at LOW_NEXT ... HIGH_NOW, which are parts 0 to 3 of this stack.
    dc_ref x = value_input(a, "policy_value", LOW_NEXT, HIGH_NOW - LOW_NEXT + 1, phi);
    dc_ref values = dc_ensemble_mean(g, dc_agent_net(a, "value", x, DC_STOPPED));

    dc_ref low = phi >= 0 ? DC_BATCH(a, "low_actor", OBS("state"), BLANK(goal))
                          : DC_BATCH(a, "low_actor", OBS("state"), GOAL("low_goal"));
    if (phi >= 0)
        low = dc_splice(g, "low_actor", low, dc_batch_part(a, phi, LOW_NOW), a->method.obs);
    dc_ref taken = DC_BATCH(a, "action", ACT("state"));
    dc_ref loss = dc_policy_awr(a, c->alpha_low, dc_agent_net(a, "low_actor", low, DC_LIVE),
                                dc_policy_log_std(a, &c->policy, "low_log_std"), taken,
                                advantage(a, values, 0));
    total = dc_batch_loss(a, "loss_low", total, loss);

    dc_ref high = DC_BATCH(a, "high_actor", OBS("state"), GOAL("high_goal"));
    dc_ref target = phi >= 0 ? dc_batch_part(a, phi, SUBGOAL)
                             : dc_policy_subgoal(a, difference(&a->method), "state", "waypoint");
    loss = dc_policy_awr(a, c->alpha_high, dc_agent_net(a, "high_actor", high, DC_LIVE),
                         dc_policy_log_std(a, &c->policy, "high_log_std"), target,
                         advantage(a, values, HIGH_NEXT - LOW_NEXT));
    return dc_batch_loss(a, "loss_high", total, loss);
}

static dc_ref losses(dc_agent *a, const dc_method *m) {
    const config *c = m->config;
    dc_ref phi = c->goal_rep ? represent(a) : -1;
    dc_ref total = value_loss(a, c, phi);
    return policy_losses(a, c, phi >= 0 ? dc_stop(&a->graph, phi) : -1, total);
}

static dc_ref act(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    dc_ref z = dc_policy_act_subgoal(q, difference(m));
    return dc_policy_act_toward(q, c->goal_rep ? dc_normalise(&q->graph, z) : z);
}

static dc_ref query(dc_infer *q, const dc_method *m) {
    const config *c = m->config;
    dc_graph *g = &q->graph;
    q->reading = DC_READ_RETURN;
    if (!c->goal_rep)
        return dc_infer_net(q, "value", DC_INFER_INPUT(q, "rows", OBS(NULL), GOAL(NULL)));
    dc_ref phi =
        dc_normalise(g, dc_infer_net(q, "rep", DC_INFER_INPUT(q, "rep", OBS(NULL), GOAL(NULL))));
    dc_ref rows = DC_INFER_INPUT(q, "rows", OBS(NULL), BLANK((int)c->rep_dim));
    return dc_infer_net(q, "value", dc_splice(g, "value", rows, phi, m->obs));
}

const dc_algo dc_algo_hiql = {.name = "hiql",
                              .about = "hierarchical implicit Q-learning: subgoals, then actions",
                              .options = options,
                              .config_size = sizeof(config),
                              .check = check,
                              .rows = rows,
                              .networks = networks,
                              .losses = losses,
                              .act = act,
                              .query = query};

const dc_algo dc_algo_por = {.name = "por",
                             .about = "hiql without a representation, its subgoals one step ahead",
                             .options = options_por,
                             .config_size = sizeof(config),
                             .check = check,
                             .rows = rows,
                             .networks = networks,
                             .losses = losses,
                             .act = act,
                             .query = query};
