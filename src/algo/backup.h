// Backup: the structure that td-n, trl and dcrl share, as data. A segment (i, k, j) trains its parent
// toward the composition of its two children; a propagation row (s, s_n, g) trains d(s, g) toward n steps
// and the rest; a grounding row trains a single step. A method's file fills a dc_backup; backup.c turns
// it into rows and stacks them so that each set of weights is applied once. What "composition" and
// "steps" mean is the form's: a sum of distances (distance.c) or a product of discounted values (value.c).
#ifndef DC_BACKUP_H
#define DC_BACKUP_H

#include "algo/policy.h"
#include "algo/returns.h"

typedef enum dc_segments { // where segments come from
    DC_SEG_NONE,
    DC_SEG_TREE,  // binary trees, node by node
    DC_SEG_PAIRS, // i.i.d. pairs, split once
} dc_segments;

// Rows on which the oracle critic is distilled where there is no propagation loss, whose rows cover goals
// everywhere: states with goals by the mixture, or the segments, which hardly contain far goals.
typedef enum dc_distil { DC_DISTIL_GOALS, DC_DISTIL_SEGMENTS } dc_distil;

typedef struct dc_backup {
    dc_segments segments;
    dc_split split;
    dc_order order;
    int slots, rebuild_every;
    int64_t stage_length; // pairs: above 0, lengths grow by stages (sample/rows.h)
    bool propagation;
    int n; // steps of a propagation target
    bool grounding;
    dc_goal_mix goals;     // of propagation; the distance form draws pairs instead
    dc_use first, second;  // weights of the children: DC_STOPPED (online) or DC_EMA
    double kappa_dc;       // upper expectile, of value, of the segment loss
    double kappa_prop;     // and of the propagation loss; 0: the form's own
    double lambda;         // weight of a segment (1 + distance)^-lambda
    int known;             // spans of up to this many steps are exact
    bool clip;             // keep composed distances between 0 and the longest trajectory
    int candidates;        // split=max
    double segment_weight; // of the segment loss beside the others; 0: 1
    int distil;            // dc_distil
    const dc_policy *policy;
} dc_backup;

// What the family's descriptors hold: a method's settings as a backup.
typedef struct dc_backup_family {
    dc_backup (*backup)(const dc_method *m);
} dc_backup_family;

// The rows of a batch after the networks: (e, batch, 1) each, or -1 where the method has none.
typedef struct dc_backup_nodes {
    dc_ref parent, first, second; // segments; children carry no gradient
    dc_ref prop, boot;            // propagation: d(s, g), and d(s_n, g) by the target weights
    dc_ref ground;                // single steps
    dc_ref left, right;           // steps of the children (inputs)
    dc_ref nsteps, off;           // n', and steps from s to g or -1 (inputs)
} dc_backup_nodes;

// A form: what a value is, and so what its losses are.
struct dc_form {
    const char *name;
    bool acts; // its value takes an action, so that there is a policy
    bool
        goal_pairs; // propagation rows are pairs of one trajectory, not a state and a mixture of goals
    dc_law pair_law; // of i.i.d. segments
    int n;           // steps of a propagation target, if the user does not say
    dc_status (*check)(const dc_method *m);
    void (*networks)(dc_nets *nets, const dc_method *m);
    dc_ref (*segment)(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n);
    dc_ref (*propagation)(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n);
    dc_ref (*grounding)(dc_agent *a, const dc_backup_nodes *n);
    // Add what else the value needs, and log its mean.
    dc_ref (*rest)(dc_agent *a, const dc_backup *b, const dc_backup_nodes *n, dc_ref total);
    dc_ref (*query)(dc_infer *q, const dc_method *m);
};
extern const dc_form dc_form_distance;         // d(s, g) in steps, by squared error
extern const dc_form dc_form_value;            // Q(s, a, g) = gamma^steps, by cross-entropy
const dc_form *dc_form_find(const char *name); // NULL if there is none

// The functions of a descriptor, for a method whose settings `fn` turns into a backup.
#define DC_BACKUP_METHOD(fn)                                                                       \
    .check = dc_backup_check, .rows = dc_backup_rows, .networks = dc_backup_networks,              \
    .losses = dc_backup_losses, .act = dc_backup_act, .query = dc_backup_query,                    \
    .policy_after = dc_backup_policy_after, .whole_goals = true,                                   \
    .shared = &(const dc_backup_family) {                                                          \
        fn                                                                                         \
    }
dc_status dc_backup_check(const dc_method *m);
void dc_backup_rows(dc_row_table *rows, const dc_method *m);
void dc_backup_networks(dc_nets *nets, const dc_method *m);
dc_ref dc_backup_losses(dc_agent *a, const dc_method *m);
dc_ref dc_backup_act(dc_infer *q, const dc_method *m);
dc_ref dc_backup_query(dc_infer *q, const dc_method *m);
int64_t dc_backup_policy_after(const dc_method *m);

// n as given, or the form's own.
int dc_backup_n(const dc_method *m, int64_t n);
// split=max: the dc_split_fn that asks the critic; ctx is the agent.
dc_status dc_choose_split(void *ctx, int64_t count, const int64_t *i, const int64_t *j, int64_t *k);

// Sums of two learned distances run away under i.i.d. sampling: a constant error doubles with every
// composition. That no distance exceeds the longest trajectory is known to every method alike.
#define DC_CLIP_OPTION(config)                                                                     \
    DC_OPTION_BOOL(config, clip, "on", "keep composed targets between 0 and the longest trajectory")
#define DC_N_OPTION(config)                                                                        \
    DC_OPTION_INT(                                                                                 \
        config, n, "0", 0, 1e6,                                                                    \
        "steps of a propagation target; distances up to n are exact; 0: 64, in the value form 25")
#define DC_DISTIL_OPTION(config)                                                                   \
    DC_OPTION_CHOICE(                                                                              \
        config, distil, "goals", "goals|segments",                                                 \
        "rows of the oracle critic without propagation: goals by goal_*, or segments")
#define DC_KAPPA_PROP_OPTION(config)                                                               \
    DC_OPTION_REAL(config, kappa_prop, "0", 0, 0.99,                                               \
                   "expectile of the propagation loss, above 0.5 prefers shorter routes; 0: 0.5, " \
                   "in the value form 0.7")

#endif
