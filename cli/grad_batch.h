// The batch of `dcrl grad`: which arrays a method needs, and reading them from an npz file into a data set whose
// row (first * size + r) is row r of that rule. So every number that a step uses comes from outside.
#ifndef CLI_GRAD_BATCH_H
#define CLI_GRAD_BATCH_H

#include "algo/agent.h"
#include "train/run.h"

typedef struct grad_rule {     // a rule of the method's table, as arrays
    char name[64], action[80]; // "goal", "goal_action"
    const char *about;
    bool counts;   // (batch) numbers; else (batch * times, width) observations
    int times;     // rows for every row of the batch
    int64_t first; // `times` of the rules before it, added up
    bool has_action;
} grad_rule;

typedef struct grad_column { // another array of the data that a rule's rows have (dc_algo.needs)
    char name[96];           // "state_base"
    const char *column;      // "base"
    int rule, width;         // width: 0: that of an observation
} grad_column;

enum { GRAD_COLUMNS = 32 };

typedef struct grad_inputs { // what a method needs
    int count;
    int64_t rows; // of all rules, for every row of the batch
    grad_rule rule[DC_RULES_MAX];
    const dc_need *needs; // Nullable
    int goal;             // columns of a goal; 0: those of an observation
    int column_count;
    grad_column column[GRAD_COLUMNS];
    int draw_count;
    dc_draw draw[DC_DRAWS_MAX]; // columns are those of the tiny data set
    bool longest;               // takes the states of the longest trajectory
} grad_inputs;

typedef struct grad_batch {
    int64_t size, width, act_width; // act_width 0: no actions
    double longest;                 // 0: not given
    dc_dataset data;
    int64_t *counts[DC_RULES_MAX]; // (size), counts only
    float *draws[DC_DRAWS_MAX];    // (size, draw_width)
    int64_t draw_width[DC_DRAWS_MAX];
} grad_batch;

// Find out by building the method on a tiny data set.
dc_status grad_inputs_find(grad_inputs *inputs, const dc_run *run);
void grad_inputs_print(const grad_inputs *inputs, bool json);
dc_status grad_batch_read(grad_batch *batch, const grad_inputs *inputs, const char *path);
// Put the batch where sampler and gather would have put theirs. Errors: DC_BAD_INPUT for a draw of a wrong width.
dc_status grad_batch_give(const grad_batch *batch, const grad_inputs *inputs, dc_agent *agent);
void grad_batch_free(grad_batch *batch); // safe on a zeroed struct

#endif
