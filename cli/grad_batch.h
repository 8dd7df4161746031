// The batch of `dcrl grad`: which arrays a method needs, and reading them from an npz file into a data set whose
// row (rule * size + r) is row r of that rule. So every number that a step uses comes from outside.
#ifndef CLI_GRAD_BATCH_H
#define CLI_GRAD_BATCH_H

#include "algo/agent.h"
#include "train/run.h"

typedef struct grad_rule {     // a rule of the method's table, as arrays
    char name[64], action[80]; // "goal", "goal_action"
    const char *about;
    bool counts; // (batch) numbers; else (batch, width) observations
    bool has_action;
} grad_rule;

typedef struct grad_inputs { // what a method needs
    int count;
    grad_rule rule[DC_RULES_MAX];
    bool draws[DC_DRAWS];
    bool longest; // takes the states of the longest trajectory
} grad_inputs;

typedef struct grad_batch {
    int64_t size, width, act_width; // act_width 0: no actions
    double longest;                 // 0: not given
    dc_dataset data;
    int64_t *counts[DC_RULES_MAX]; // (size), counts only
    float *draws[DC_DRAWS];        // (size) or (size, act_width)
} grad_batch;

// Names of the draws' arrays.
extern const char *const grad_draw_names[DC_DRAWS];

// Find out by building the method on a tiny data set.
dc_status grad_inputs_find(grad_inputs *inputs, const dc_run *run);
void grad_inputs_print(const grad_inputs *inputs, bool json);
dc_status grad_batch_read(grad_batch *batch, const grad_inputs *inputs, const char *path);
// Put the batch where sampler and gather would have put theirs.
void grad_batch_give(const grad_batch *batch, const grad_inputs *inputs, dc_agent *agent);
void grad_batch_free(grad_batch *batch); // safe on a zeroed struct

#endif
