// td-n: n-step temporal difference. d(s, g) is exact up to n steps and otherwise n + dbar(s + n,
// g), so a distance of H hangs on ceil(H / n) - 1 earlier estimates, one after the other. The
// measure of everything else (Sutton & Barto; the paper's TD-n).
#include "algo/backup.h"

typedef struct config {
    int64_t n;
    double kappa_prop;
} config;

static const dc_option options[] = {
    {"n", DC_INT, offsetof(config, n), "64", 1, 1e6, NULL,
     "steps of a propagation target; distances up to n are exact"},
    {"kappa_prop", DC_REAL, offsetof(config, kappa_prop), "0.5", 0.01, 0.99, NULL,
     "expectile of the propagation loss; above 0.5 prefers shorter routes"},
    {0},
};

static dc_status build(dc_agent *agent, const void *ctx) {
    const config *c = ctx;
    dc_backup b = {.rows = {.segments = DC_SEG_NONE, .propagation = true, .n = (int)c->n},
                   .kappa_prop = c->kappa_prop,
                   .known = (int)c->n};
    return dc_distance_build(agent, &b);
}

const dc_algo dc_algo_td_n = {"td-n", "n-step temporal difference", options, sizeof(config), build};
