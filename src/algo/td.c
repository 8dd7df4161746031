// td-n: n-step temporal difference. d(s, g) is exact up to n steps and otherwise n + dbar(s + n,
// g), so a distance of H hangs on ceil(H / n) - 1 earlier estimates, one after the other. The
// measure of everything else (Sutton & Barto; the paper's TD-n).
#include "algo/backup.h"

typedef struct config {
    int64_t n;
    double kappa_prop;
    dc_goals goals;
    dc_policy policy;
} config;

static const dc_option options[] = {
    DC_N_OPTION(config),
    DC_KAPPA_PROP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static dc_status build(dc_agent *agent, const void *ctx) {
    const config *c = ctx;
    dc_backup b = {
        .rows = {.segments = DC_SEG_NONE, .propagation = true, .n = dc_backup_n(agent, c->n)},
        .kappa_prop = c->kappa_prop,
        .goals = c->goals,
        .known = dc_backup_n(agent, c->n)};
    return dc_backup_build(agent, &b, &c->policy);
}

const dc_algo dc_algo_td_n = {"td-n", "n-step temporal difference", options, sizeof(config), build};
