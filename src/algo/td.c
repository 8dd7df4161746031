// td-n: n-step temporal difference. d(s, g) is exact up to n steps and otherwise n + dbar(s + n,
// g), so a distance of H hangs on ceil(H / n) - 1 earlier estimates, one after the other. The
// measure of everything else (Sutton & Barto; the paper's TD-n). `td` is n = 1. `mc` has no
// bootstrap at all: a pair (i, j) of a trajectory is regressed onto j - i, which gives the distance
// of the data's behaviour.
#include "algo/backup.h"

#include <limits.h>

typedef struct config {
    int64_t n;
    double kappa_prop;
    int distil;
    dc_goal_mix goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_N_OPTION(config),
    DC_KAPPA_PROP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const dc_option options_1[] = {
    DC_KAPPA_PROP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const dc_option options_mc[] = {
    DC_GOAL_OPTIONS(config), DC_DISTIL_OPTION(config), DC_POLICY_OPTIONS(config), {0}};

static dc_backup steps_backup(const dc_method *m, int n) {
    const config *c = m->config;
    return (dc_backup){.propagation = true,
                       .n = n,
                       .kappa_prop = c->kappa_prop,
                       .goals = c->goals,
                       .known = n,
                       .policy = &c->policy};
}

static dc_backup backup_n(const dc_method *m) {
    return steps_backup(m, dc_backup_n(m, ((const config *)m->config)->n));
}

static dc_backup backup_1(const dc_method *m) {
    return steps_backup(m, 1);
}

// A segment both of whose parts are known, whatever their span.
static dc_backup backup_mc(const dc_method *m) {
    const config *c = m->config;
    return (dc_backup){.segments = DC_SEG_PAIRS,
                       .first = DC_STOPPED,
                       .second = DC_STOPPED,
                       .kappa_dc = 0.5,
                       .known = INT_MAX,
                       .goals = c->goals,
                       .distil = c->distil,
                       .policy = &c->policy};
}

const dc_algo dc_algo_td_n = {.name = "td-n",
                              .about = "n-step temporal difference",
                              .options = options,
                              .config_size = sizeof(config),
                              DC_BACKUP_METHOD(backup_n)};
const dc_algo dc_algo_td = {.name = "td",
                            .about = "one-step temporal difference",
                            .options = options_1,
                            .config_size = sizeof(config),
                            DC_BACKUP_METHOD(backup_1)};
const dc_algo dc_algo_mc = {.name = "mc",
                            .about = "Monte Carlo: regression onto the steps that the data took",
                            .options = options_mc,
                            .config_size = sizeof(config),
                            DC_BACKUP_METHOD(backup_mc)};
