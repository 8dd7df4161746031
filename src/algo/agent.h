// Agent: a method built for a data set: weights, loss graph, sampler and the feeds between them,
// plus a forward-only graph that asks the critic about any rows. Built by algo/, driven by train/.
#ifndef DC_AGENT_H
#define DC_AGENT_H

#include "base/options.h"
#include "base/pool.h"
#include "data/dataset.h"
#include "nn/mlp.h"
#include "sample/ahead.h"
#include "sample/gather.h"
#include "sample/sampler.h"
#include "tensor/run.h"

enum { DC_METRICS_MAX = 16, DC_ASK_ROWS = 1024, DC_ACTIONS_MAX = 256, DC_REP_MAX = 64 };

typedef enum dc_form { DC_FORM_DISTANCE, DC_FORM_VALUE } dc_form;

typedef struct dc_agent_options {  // what every method shares
    dc_form form;                  // d(s, g) in steps, or Q(s, a, g) = gamma^steps
    double gamma;                  // value form
    int rep_size, rep[DC_REP_MAX]; // goal representation: columns of an observation; 0: all of it
    uint64_t seed;
    int batch;
    dc_int_list hidden;
    int64_t steps;  // updates to come in all; a curriculum spreads its stages over them
    double longest; // states of the longest trajectory; 0: as the data has it
    // Nullable: goals of another agent on the same data, with the same rep, that outlives this one
    const dc_column *goals;
} dc_agent_options;

typedef struct dc_algo dc_algo;

typedef struct dc_agent {
    const dc_algo *algo;
    const dc_dataset *data;
    dc_agent_options options;
    dc_pool *pool;
    dc_column goals;    // what stands for a row that is a goal
    float *goal_values; // (rows, rep_size) what it owns if that is not a part of "obs" as it stands
    uint64_t step;      // that is being sampled; the split chooser draws by it

    dc_params params;
    dc_mlp critic, oracle, actor; // oracle and actor: value form, where the method has them
    dc_graph graph;               // loss and its gradients
    dc_exec exec;
    dc_feeds feeds;
    dc_sampler *sampler;
    dc_ahead ahead;
    struct {
        const char *name;
        dc_ref node;
    } metrics[DC_METRICS_MAX]; // scalars worth logging; the loss comes first
    int metric_count;

    dc_graph ask_graph; // critic, forward only, DC_ASK_ROWS rows
    dc_exec ask;
    dc_ref ask_in, ask_out;
    // Who runs it: NULL the CPU, else what takes the values of ask_in and leaves those of ask_out.
    dc_status (*ask_by)(void *ctx);
    void *ask_ctx;
    int actions; // value form: how many discrete actions the data has; 0: they are real numbers
    int64_t policy_first; // where the policy's weights begin in the slab; the critics' end there
    int64_t policy_after; // updates of the critics alone, then the policy alone; 0: all together
    int known;            // distances of up to this many steps are given, not learned
    int candidates;       // split=max: candidates a segment
} dc_agent;

struct dc_algo {
    const char *name, *about;
    const dc_option *options; // over its own config struct
    size_t config_size;
    dc_status (*build)(dc_agent *agent, const void *config);
};

// All methods, in the order of algos.def; ends with NULL.
extern const dc_algo *const dc_algos[];
// By name; an unknown one is a usage error with the nearest name.
dc_status dc_algo_find(const char *name, const dc_algo **algo);

// Build a method on a data set. Borrows: data, pool (until fini).
dc_status dc_agent_init(dc_agent *agent, const dc_algo *algo, const void *config,
                        const dc_agent_options *options, const dc_dataset *data, dc_pool *pool);
void dc_agent_fini(dc_agent *agent);
// Gather, forward, backward on the rows that the sampler holds.
void dc_agent_run(dc_agent *agent);
// Sample and run for the given step: leaves gradients in the slab.
dc_status dc_agent_gradients(dc_agent *agent, uint64_t step);
// The update that follows `done` others: which weights it trains, and Adam's constants for them.
dc_adam dc_agent_adam(const dc_agent *agent, double lr, double tau, int64_t done);
// Distances d(s, g) of count pairs of data rows, by the live weights; in the value form log_gamma
// Q(s, a, g) of the action taken at s, the mean of the ensemble.
dc_status dc_agent_distances(dc_agent *agent, int64_t count, const int64_t *s, const int64_t *g,
                             float *d);

// For algo/ files: the last part of a build (plan, memory, weights, sampler); add a feed; add a
// metric.
dc_status dc_agent_finish(dc_agent *agent, dc_ref loss, const dc_sampler_spec *spec);
void dc_agent_feed(dc_agent *agent, dc_feed feed);
// Actions of the data set: real numbers as they are, discrete ones as one of `actions` columns. Count
// them first; columns that they take; feed those of a stream's rows. Nullable: pack
dc_status dc_agent_count_actions(dc_agent *agent);
int dc_agent_act_width(const dc_agent *agent);
void dc_agent_feed_action(dc_agent *agent, dc_ref input, int row0, int col0, dc_stream stream,
                          dc_pack *pack);
// A pack of `input` behind its first fixed_rows rows; makes the index input.
dc_pack *dc_agent_pack(dc_agent *agent, dc_ref input, int fixed_rows, const char *name,
                       dc_stream steps, int known);
void dc_agent_metric(dc_agent *agent, const char *name, dc_ref node);

#endif
