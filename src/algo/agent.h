// Agent: a method built for a data set: weights, loss graph, sampler and the feeds between them, plus a
// forward-only graph that queries its value for any rows. Built by algo/, driven by train/.
#ifndef DC_AGENT_H
#define DC_AGENT_H

#include "algo/infer.h"
#include "algo/method.h"
#include "base/pool.h"
#include "data/dataset.h"
#include "sample/gather.h"
#include "sample/prefetch.h"
#include "sample/sampler.h"
#include "tensor/run.h"

enum {
    DC_METRICS_MAX = 16,
    DC_QUERY_ROWS = 1024,
    DC_QUERY_PICTURES = 64
}; // rows of a query at once

// Whether networks see observations as they are, or less their mean and divided by their deviation in the
// data. By itself bytes become 0 to 1, and floats stay.
typedef enum dc_scaling { DC_SCALING_AUTO, DC_SCALING_OFF, DC_SCALING_ON } dc_scaling;

// Whether observations are pictures that networks see through encoders: those of bytes whose shape says so, none, or those
// of a size that is given.
typedef enum dc_pictures { DC_PICTURES_AUTO, DC_PICTURES_OFF, DC_PICTURES_GIVEN } dc_pictures;
enum {
    DC_PICTURE_LEAST = 16,
    DC_PICTURE_MOST = 1024,
    DC_PICTURE_CHANNELS = 64
}; // places each way, by themselves

typedef struct dc_agent_options {
    const dc_form *form;
    double gamma;
    int rep_size, rep[DC_REP_MAX]; // goal representation: columns of an observation; 0: all of it
    const char *goal_column;       // Nullable: the array whose columns those are, in place of "obs"
    bool acted, averaged;          // of dc_method
    uint64_t seed;
    int batch;
    int first, part; // rows of the batch that its loss is about; part 0: all of them
    dc_int_list hidden;
    int64_t steps;  // updates to come in all
    double longest; // states of the longest trajectory; 0: as the data has it
    dc_scaling scaling;
    dc_pictures pictures;
    dc_picture picture; // of DC_PICTURES_GIVEN
    bool concat;        // of dc_method
    double crop; // share of batches whose pictures are cropped (sample/crop.h), and by how much
    int crop_pad;
    dc_act_scaling act_scaling;
    dc_bounds act_given; // of DC_ACTIONS_GIVEN
    // Nullable: goals of another agent on the same data, with the same rep, that outlives this one
    const dc_column *goals;
    // Nullable: an agent that outlives this one, on data of the same kind, whose scales of observations and
    // actions and whose number of discrete actions are taken in place of what this data would give
    const dc_agent *like;
} dc_agent_options;

struct dc_agent {
    dc_method method;
    const dc_dataset *data;
    dc_agent_options options;
    dc_pool *pool;
    dc_column goals;    // what stands for a row that is a goal
    float *goal_values; // (rows, rep_size) what it owns if that is not a part of "obs" as it stands
    float *scales;      // (2, obs) and (2, goal): means and rates; NULL: nothing is scaled
    float *scratch;     // (2, obs) rows of bytes as floats
    dc_scale obs_scale, goal_scale;
    dc_act_scale act_scale; // of no width: actions are taken as they are

    dc_params params;
    dc_nets nets;
    dc_graph graph; // loss and its gradients
    dc_exec exec;
    dc_row_table rows; // what a batch consists of
    dc_feeds feeds;
    dc_sampler *sampler;
    dc_prefetch ahead;
    struct {
        const char *name;
        dc_ref node;
    } metrics[DC_METRICS_MAX]; // scalars worth logging
    int metric_count;

    dc_infer *query;      // what its value says; NULL: it has none
    uint64_t step;        // that is being sampled; the split chooser draws by it
    int64_t policy_after; // updates of the other networks alone, then the policy alone; 0: together
    int known;            // distances of up to this many steps are given, not learned
    int candidates;       // split=max: candidates per segment
};

// Build a method on a data set. Borrows: config, data, pool (until fini).
dc_status dc_agent_init(dc_agent *agent, const dc_algo *algo, const void *config,
                        const dc_agent_options *options, const dc_dataset *data, dc_pool *pool);
void dc_agent_fini(dc_agent *agent);
// Let a GPU answer dc_agent_distances from now on, in fp32, with the weights that the host has now.
dc_status dc_agent_query_on_gpu(dc_agent *agent);
// Gather, forward, backward on the rows that the sampler holds.
void dc_agent_run(dc_agent *agent);
// Sample and run for the given step: leaves gradients in the slab.
dc_status dc_agent_gradients(dc_agent *agent, uint64_t step);
// The update that follows `done` others: which weights it trains, and Adam's constants for them.
dc_adam dc_agent_adam(const dc_agent *agent, double lr, double tau, int64_t done);
// Distances in steps between count pairs of data rows, by the live weights; where the value takes an
// action, that of the action taken at s. The mean over the ensemble. The method must have a query.
dc_status dc_agent_distances(dc_agent *agent, int64_t count, const int64_t *s, const int64_t *g,
                             float *d);

// "auto", "off" or HEIGHT,WIDTH,CHANNELS, which is left in `given`.
dc_status dc_pictures_parse(const char *text, dc_pictures *pictures, dc_picture *given);
// How many discrete actions the column `act` of a data set has; 0: they are real numbers.
dc_status dc_count_actions(const dc_dataset *data, const dc_column *act, int *actions);
// Where a goal begins within a row of agent->goals.
int dc_agent_goal_skip(const dc_agent *agent);

// For losses: y (ensemble, rows, out) of a network; a trained scalar; log a number of the graph.
dc_ref dc_agent_net(dc_agent *a, const char *name, dc_ref x, dc_use use);
dc_ref dc_agent_scalar(dc_agent *a, const char *name, dc_use use);
void dc_agent_metric(dc_agent *agent, const char *name, dc_ref node);

#endif
