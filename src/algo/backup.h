// Backup: the structure that td-n, trl and dcrl share, as data. A segment (i, k, j) trains its
// parent toward the composition of its two children; a propagation row (s, s_n, g) trains d(s, g)
// toward n steps and the rest; a grounding row trains a single step. A method's file fills a
// dc_backup; this file stacks the rows so that each set of weights is applied once, and makes the
// sampler's spec. What "composition" and "steps" mean (a sum of distances, a product of discounted
// values) is the form's.
#ifndef DC_BACKUP_H
#define DC_BACKUP_H

#include "algo/policy.h"

// Goals of the propagation loss in the value form: shares, and the law of those that lie ahead.
typedef struct dc_goals {
    double current, future, random; // sum 1
    int law;                        // dc_law
} dc_goals;

typedef struct dc_backup {
    dc_sampler_spec rows; // which rows; seed, batch and chooser are filled in
    dc_goals goals;       // of propagation
    dc_use first, second; // weights of the children: DC_STOPPED (online) or DC_EMA
    double kappa_dc;      // upper expectile, of value, of the segment loss
    double kappa_prop;    // and of the propagation loss
    double lambda;        // weight of a segment (1 + distance)^-lambda
    int known;            // spans of up to this many steps are exact
    bool clip;            // keep composed distances between 0 and the longest trajectory
    int candidates;       // split=max
} dc_backup;

// Sums of two learned distances run away under i.i.d. sampling: a constant error doubles with every
// composition. That no distance exceeds the longest trajectory is known to every method alike.
#define DC_CLIP_OPTION(config)                                                                     \
    {                                                                                              \
        "clip", DC_BOOL, offsetof(config, clip), "on", 0, 0, NULL,                                 \
            "keep composed targets between 0 and the longest trajectory"                           \
    }

// The rows of a batch after the networks: (1, batch, 1) each, or -1 where the method has none.
typedef struct dc_backup_nodes {
    dc_ref parent, first, second; // segments; children carry no gradient
    dc_ref prop, boot;            // propagation: d(s, g), and d(s_n, g) by the target weights
    dc_ref ground;                // single steps
    dc_ref left, right;           // steps of the children (inputs)
    dc_ref nsteps, off;           // n', and steps from s to g or -1 (inputs)
} dc_backup_nodes;

// Declare inputs and feeds, stack the rows, apply the critic.
void dc_backup_rows(dc_agent *agent, const dc_backup *backup, dc_backup_nodes *nodes);

#define DC_N_OPTION(config)                                                                        \
    {                                                                                              \
        "n", DC_INT, offsetof(config, n), "0", 0, 1e6, NULL,                                       \
            "steps of a propagation target; distances up to n are exact; 0: 64, in the value "     \
            "form 25"                                                                              \
    }
#define DC_KAPPA_PROP_OPTION(config)                                                               \
    {                                                                                              \
        "kappa_prop", DC_REAL, offsetof(config, kappa_prop), "0", 0, 0.99, NULL,                   \
            "expectile of the propagation loss, above 0.5 prefers shorter routes; 0: 0.5, in the " \
            "value form 0.7"                                                                       \
    }

#define DC_GOAL_OPTIONS(config)                                                                    \
    {"goal_current",                                                                               \
     DC_REAL,                                                                                      \
     offsetof(config, goals.current),                                                              \
     "0.2",                                                                                        \
     0,                                                                                            \
     1,                                                                                            \
     NULL,                                                                                         \
     "propagation (value form): share of goals that are the state itself"},                        \
        {"goal_future",                                                                            \
         DC_REAL,                                                                                  \
         offsetof(config, goals.future),                                                           \
         "0.5",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "propagation: share of goals later in the trajectory"},                                   \
        {"goal_random",                                                                            \
         DC_REAL,                                                                                  \
         offsetof(config, goals.random),                                                           \
         "0.3",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "propagation: share of goals from anywhere; the three add up to 1"},                      \
    {                                                                                              \
        "goal_law", DC_CHOICE, offsetof(config, goals.law), "geometric", 0, 0,                     \
            "uniform|geometric", "propagation: law of the later state"                             \
    }

// n as given, or the form's own.
static inline int dc_backup_n(const dc_agent *agent, int64_t n) {
    return n ? (int)n : agent->options.form == DC_FORM_VALUE ? 25 : 64;
}

// Build the whole agent in the form that its options name.
dc_status dc_backup_build(dc_agent *agent, const dc_backup *backup, const dc_policy *policy);
// split=max: the dc_split_fn that asks the critic; ctx is the agent.
dc_status dc_choose_split(void *ctx, int64_t count, const int64_t *i, const int64_t *j, int64_t *k);
// The distance form: losses by squared error on undiscounted steps.
dc_status dc_distance_build(dc_agent *agent, const dc_backup *backup);
// The value form: Q(s, a, g) = gamma^steps by cross-entropy, with policy extraction.
dc_status dc_value_build(dc_agent *agent, const dc_backup *backup, const dc_policy *policy);

#endif
