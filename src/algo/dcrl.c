// dcrl: divide-and-conquer RL. A segment is bisected down to single steps, and the tree is trained
// leaves first, root last, each parent toward the composition of its two children,
//
//   d(i, j) -> sg d(i, k) + dbar(k, j),   k the midpoint,
//
// so a distance of H hangs on log2(H / n) earlier estimates that were just trained. n-step
// propagation on pairs of the whole data set is added (kappa_prop). The options are the paper's
// ablations: where a segment is split, in which order its tree is visited, i.i.d. pairs instead of
// trees, no propagation, and which weights value the children.
//
// curriculum: the same backup without trees. Pairs are i.i.d., but short ones come first: training
// is divided into H / delta stages, and stage s has pairs of (s - 1) delta + 1 to s delta steps.
#include "algo/backup.h"

#include <math.h>

typedef struct config {
    int64_t n, slots, candidates, rebuild_every, delta;
    int split, order, targets, grounding, distil;
    bool recursion, propagation, clip;
    double kappa_dc, kappa_prop, segment_weight;
    dc_goal_mix goals;
    dc_policy policy;
} config;

enum { AUTO, ON, OFF }; // of grounding

// What trees and stages share.
#define SEGMENT_OPTIONS                                                                            \
    DC_OPTION_BOOL(config, propagation, "on", "off: the segment loss alone"),                      \
        DC_OPTION_CHOICE(config, targets, "online*ema",                                            \
                         "online*ema|ema*ema|online*online|ema*online",                            \
                         "weights that value the first and the second child"),                     \
        DC_OPTION_REAL(config, kappa_dc, "0", 0, 0.99,                                             \
                       "expectile of the segment loss; 0: 0.5, or 0.7 without propagation"),       \
        DC_KAPPA_PROP_OPTION(config),                                                              \
        DC_OPTION_REAL(config, segment_weight, "1", 1e-6, 1e6,                                     \
                       "weight of the segment loss beside the propagation loss"),                  \
        DC_DISTIL_OPTION(config),                                                                  \
        DC_OPTION_CHOICE(config, grounding, "auto", "auto|on|off",                                 \
                         "loss on single steps; auto: on when neither trees nor stages nor "       \
                         "n-step rows supply them"),                                               \
        DC_CLIP_OPTION(config)

static const dc_option options[] = {
    DC_N_OPTION(config),
    DC_OPTION_INT(config, slots, "128", 1, 1e6, "trees in flight"),
    DC_OPTION_CHOICE(config, split, "midpoint", "midpoint|random|max",
                     "where a segment is split; max takes the best of `candidates` by the critic"),
    DC_OPTION_CHOICE(config, order, "up", "up|down", "leaves first (up) or root first (down)"),
    DC_OPTION_BOOL(config, recursion, "on", "off: i.i.d. pairs, split once"),
    SEGMENT_OPTIONS,
    DC_OPTION_INT(config, candidates, "10", 1, 64, "split=max: candidates per segment"),
    DC_OPTION_INT(config, rebuild_every, "5000", 1, 1e9,
                  "split=max: steps after which all trees are built anew"),
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const dc_option options_curriculum[] = {
    DC_N_OPTION(config),
    DC_OPTION_INT(config, delta, "50", 1, 1e9,
                  "steps by which the pairs of a stage are longer than those of the one before"),
    SEGMENT_OPTIONS,
    DC_GOAL_OPTIONS(config),
    DC_POLICY_OPTIONS(config),
    {0},
};

static const struct {
    dc_use first, second;
} sources[] = {
    {DC_STOPPED, DC_EMA}, {DC_EMA, DC_EMA}, {DC_STOPPED, DC_STOPPED}, {DC_EMA, DC_STOPPED}};

static dc_backup backup(const dc_method *m) {
    const config *c = m->config;
    dc_backup b = {.first = sources[c->targets].first, .second = sources[c->targets].second};
    b.segments = c->recursion ? DC_SEG_TREE : DC_SEG_PAIRS;
    b.split = (dc_split)c->split;
    b.stage_length = c->delta;
    b.order = (dc_order)c->order;
    b.slots = (int)c->slots;
    b.rebuild_every = (int)c->rebuild_every;
    b.propagation = c->propagation;
    b.n = dc_backup_n(m, c->n);
    // n-step rows of the distance form contain exact single steps; goals of the value form rarely do.
    bool lone = !c->recursion && !c->delta && (!m->form->goal_pairs || !c->propagation);
    b.grounding = c->grounding == AUTO ? lone : c->grounding == ON;
    b.kappa_dc = c->kappa_dc > 0 ? c->kappa_dc : c->propagation ? 0.5 : 0.7;
    b.kappa_prop = c->kappa_prop;
    b.segment_weight = fabs(c->segment_weight - 1) > 0 ? c->segment_weight : 0;
    b.distil = c->distil;
    b.goals = c->goals;
    b.known = c->propagation && m->form->goal_pairs ? b.n : 1;
    b.clip = c->clip;
    b.candidates = (int)c->candidates;
    b.policy = &c->policy;
    return b;
}

const dc_algo dc_algo_dcrl = {.name = "dcrl",
                              .about = "divide-and-conquer RL: binary trees, leaves first",
                              .options = options,
                              .config_size = sizeof(config),
                              DC_BACKUP_METHOD(backup)};
// Its config has no trees: recursion stays off.
const dc_algo dc_algo_curriculum = {.name = "curriculum",
                                    .about = "short segments first, by stages of training",
                                    .options = options_curriculum,
                                    .config_size = sizeof(config),
                                    DC_BACKUP_METHOD(backup)};
