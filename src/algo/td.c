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

static const dc_option options_1[] = {
    DC_KAPPA_PROP_OPTION(config),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const dc_option options_mc[] = {DC_POLICY_OPTIONS(config), {0}};

static dc_status build_steps(dc_agent *agent, const config *c, int n) {
    dc_backup b = {.rows = {.segments = DC_SEG_NONE, .propagation = true, .n = n},
                   .kappa_prop = c->kappa_prop,
                   .goals = c->goals,
                   .known = n};
    return dc_backup_build(agent, &b, &c->policy);
}

static dc_status build(dc_agent *agent, const void *c) {
    return build_steps(agent, c, dc_backup_n(agent, ((const config *)c)->n));
}

static dc_status build_1(dc_agent *agent, const void *c) {
    return build_steps(agent, c, 1);
}

// A segment both of whose parts are known, whatever their span.
static dc_status build_mc(dc_agent *agent, const void *ctx) {
    const config *c = ctx;
    dc_backup b = {.rows = {.segments = DC_SEG_PAIRS},
                   .first = DC_STOPPED,
                   .second = DC_STOPPED,
                   .kappa_dc = 0.5,
                   .known = INT_MAX};
    return dc_backup_build(agent, &b, &c->policy);
}

const dc_algo dc_algo_td_n = {"td-n", "n-step temporal difference", options, sizeof(config), build};
const dc_algo dc_algo_td = {"td", "one-step temporal difference", options_1, sizeof(config),
                            build_1};
const dc_algo dc_algo_mc = {"mc", "Monte Carlo: regression onto the steps that the data took",
                            options_mc, sizeof(config), build_mc};
