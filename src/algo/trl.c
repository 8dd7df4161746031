// trl: transitive RL. An i.i.d. pair (i, j) of a trajectory, a random state k between, and the
// backup
//
//   d(i, j) -> dbar(i, k) + dbar(k, j)      with an upper expectile (kappa) of value
//
// in no particular order: in the worst case a distance of H hangs on a chain of length H. `trl`
// knows only single steps; `trl-n` adds the n-step propagation loss and knows all distances up to
// n. lambda weighs a pair by (1 + d)^-lambda.
#include "algo/backup.h"

typedef struct config {
    int64_t n;
    double kappa, kappa_prop, lambda;
    bool clip;
    int distil;
    dc_goal_mix goals;
    dc_policy policy;
} config;

#define KAPPA                                                                                      \
    DC_OPTION_REAL(config, kappa, "0.7", 0.01, 0.99,                                               \
                   "expectile of the transitive loss; above 0.5 prefers shorter routes")
#define LAMBDA                                                                                     \
    DC_OPTION_REAL(config, lambda, "0", 0, 100,                                                    \
                   "weigh a pair by (1 + distance)^-lambda; 0 weighs all alike")

static const dc_option options[] = {
    KAPPA,
    LAMBDA,
    DC_CLIP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_DISTIL_OPTION(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const dc_option options_n[] = {
    DC_N_OPTION(config),
    KAPPA,
    LAMBDA,
    DC_CLIP_OPTION(config),
    DC_KAPPA_PROP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static dc_backup backup(const dc_method *m) {
    const config *c = m->config;
    return (dc_backup){.segments = DC_SEG_PAIRS,
                       .split = DC_SPLIT_RANDOM,
                       .first = DC_EMA,
                       .second = DC_EMA,
                       .kappa_dc = c->kappa,
                       .lambda = c->lambda,
                       .clip = c->clip,
                       .known = 1,
                       .goals = c->goals,
                       .distil = c->distil,
                       .policy = &c->policy};
}

static dc_backup backup_n(const dc_method *m) {
    const config *c = m->config;
    dc_backup b = backup(m);
    b.propagation = true;
    b.n = dc_backup_n(m, c->n);
    b.known = m->form->goal_pairs ? b.n : 1;
    b.kappa_prop = c->kappa_prop;
    return b;
}

const dc_algo dc_algo_trl = {.name = "trl",
                             .about = "transitive RL: random subgoals, upper expectile",
                             .options = options,
                             .config_size = sizeof(config),
                             DC_BACKUP_METHOD(backup)};
const dc_algo dc_algo_trl_n = {.name = "trl-n",
                               .about = "transitive RL with n-step propagation",
                               .options = options_n,
                               .config_size = sizeof(config),
                               DC_BACKUP_METHOD(backup_n)};
