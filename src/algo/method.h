// Method: a learning algorithm as a description. Each file of algo/ that is a method (bc.c is the shortest)
// ends with a dc_algo, a table of functions. Everything else (sampling, gather, gradients, update,
// checkpoints, acting, evaluation, GPU) works from that description and knows no method by name.
//
//   options    the fields of its config, as a table                    (base/options.h)
//   check      do options and data go together?
//   rows       which rows of the data a batch has, each under a name   (sample/rows.h)
//   networks   its networks, by name                                   (nn/nets.h)
//   losses     what is minimised, as a graph over those rows           (algo/agent.h, algo/batch.h)
//   act        from observation and goal to an action                  (algo/infer.h)
//   query      from state, goal and action to a distance, if it has a value
//
// None of these functions computes a loss or an action: they describe graphs, which are compiled for the CPU
// or a GPU and then run. check to losses are called once, in this order, when an agent is built on a data set
// (algo/agent.c); act and query once per inference graph (dc_infer_new). A checkpoint that is opened for acting
// needs check, networks, act and query only, and no data.
//
// dc_algo is the method as such; dc_method is that method with its options and the sizes of its data, and
// is what these functions are given.
#ifndef DC_METHOD_H
#define DC_METHOD_H

#include "algo/act_scale.h"
#include "base/options.h"
#include "nn/nets.h"
#include "sample/gather.h"
#include "sample/rows.h"

enum { DC_ACTIONS_MAX = 256, DC_REP_MAX = 64 };

typedef struct dc_agent dc_agent;
typedef struct dc_infer dc_infer;
typedef struct dc_method dc_method;
typedef struct dc_form dc_form;

// An array that the data must have, and whether its rows are as wide as an observation, a goal, or one number.
typedef struct dc_need {
    const char *name;
    enum { DC_NEED_ONE, DC_NEED_OBS, DC_NEED_GOAL } width;
} dc_need;

typedef struct dc_algo {
    const char *name, *about;
    const dc_option *options; // over its own config struct
    size_t config_size;
    dc_status (*check)(const dc_method *m); // Nullable
    const dc_need *needs; // Nullable: arrays beside the usual ones; ends with a NULL name
    void (*rows)(dc_row_table *rows, const dc_method *m); // add rules to an empty table
    void (*networks)(dc_nets *nets, const dc_method *m);
    dc_ref (*losses)(dc_agent *a, const dc_method *m); // the sum to minimise
    dc_ref (*act)(dc_infer *q, const dc_method *m);    // (1, rows, act); -1: it has no policy
    // Nullable: it has no value. (e, rows, 1); sets q->reading, which says what the numbers mean.
    dc_ref (*query)(dc_infer *q, const dc_method *m);
    // With goal representations (dc_method.rep): query also takes goals that are whole
    // observations (DC_INFER_QUERY_DATA), because a second network is trained on those.
    bool whole_goals;
    // Updates of all networks but the policy's, after which the policy's alone are trained. Nullable: all
    // are trained together
    int64_t (*policy_after)(const dc_method *m);
    const void *shared; // for files that several methods share (backup.c); no other code reads it
} dc_algo;

// All methods, in the order of algos.def; ends with NULL.
extern const dc_algo *const dc_algos[];
// Learns from its own steps, so it is not in that list of what learns from a data set (online/online.h).
extern const dc_algo dc_algo_sac;
// By name; an unknown one is a usage error with the nearest name.
dc_status dc_algo_find(const char *name, const dc_algo **algo);

// A method with everything that decides what it computes, for training and for acting alike.
struct dc_method {
    const dc_algo *algo;
    const void *config;  // (algo->config_size)
    const dc_form *form; // what a value is: steps, or gamma^steps (algo/backup.h; of dcrl, trl, td)
    double gamma;        // discount
    dc_int_list hidden;  // widths of the hidden layers
    uint64_t seed;
    int batch;
    int64_t steps;  // updates to come in all; a curriculum spreads its stages over them
    double longest; // states of the longest trajectory
    // What it sees of its data:
    int obs;  // columns of an observation
    int goal; // columns of a goal as a task gives it
    dc_picture
        picture;   // that an observation is, for networks' encoders; height 0: a row of numbers
    bool concat;   // of a state and goals that are pictures a network has one encoder
    bool acted;    // n-step targets do not read the action of a trajectory's last row
    bool averaged; // the policy acts by the average (EMA) of its weights
    bool rep; // a goal is some columns of an observation (its representation), say xy; else all
    int act;  // columns of an action as networks see it: one per choice if it is discrete; 0: none
    int actions; // number of discrete actions; 0: real numbers
    // Nullable: what observations (obs) and goals (goal) are scaled by, in training and in acting alike.
    const dc_scale *obs_scale, *goal_scale;
    const dc_act_scale *act_scale; // Nullable: real actions that have units of their own
};

// Whether values of a form take an action, so that there can be a policy.
bool dc_form_acts(const dc_form *form);
// Whole observations in [state | goal | goal ...] with so many goals: dc_net.observations.
static inline int dc_observations(const dc_method *m, int goals) {
    return m->rep ? 1 : 1 + goals;
}
// Errors: DC_BAD_INPUT if the data set has no actions; DC_UNSUPPORTED if they are discrete.
dc_status dc_need_actions(const dc_method *m);
dc_status dc_need_real_actions(const dc_method *m);

#endif
