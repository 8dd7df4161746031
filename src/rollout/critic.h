// Critic: what a checkpoint thinks of actions, for pictures and for whoever ranks them. The one that
// the policy was trained with: oracle_critic where goals have a representation, else critic.
#ifndef DC_CRITIC_H
#define DC_CRITIC_H

#include "base/pool.h"
#include "nn/mlp.h"
#include "tensor/run.h"

typedef struct dc_critic {
    int in;   // values of an input row [observation | goal | action]
    int rows; // most rows a call
    dc_params params;
    dc_mlp mlp;
    dc_graph graph;
    dc_exec exec;
    dc_ref input, least;
} dc_critic;

// Read the weights of a checkpoint. Borrows: pool (until fini). Nullable: pool
dc_status dc_critic_open(dc_critic *critic, const char *checkpoint, int rows, dc_pool *pool);
void dc_critic_fini(dc_critic *critic);
// Least logit of the ensemble for input rows (count, in): logits (count). sigmoid(logit) = gamma^steps.
void dc_critic_ask(dc_critic *critic, int count, const float *rows, float *logits);

#endif
