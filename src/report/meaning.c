// One list of all that methods log; the page shows a sentence under each figure, and a test asks for one
// of every column that some method has.
#include "report/meaning.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *column, *sentence;
} meanings[] = {
    {"loss_dc", "Error of a segment's value against the target composed from its two halves."},
    {"loss_prop", "Error of a goal's value against its n-step target: the steps that the data "
                  "took, then the value from there."},
    {"loss_ground", "Error of the value of a single step, whose true value is known."},
    {"loss_oracle", "Error of the critic that sees goals in the task's own form, against the "
                    "critic that sees whole observations."},
    {"loss_way", "Ways through a third state. tdp: error of a pair's value against the best of "
                 "them; coe: value of the proposed ones, negated."},
    {"loss_far",
     "Error of the value of random pairs against that of the longest distance to be expected."},
    {"loss_subgoal", "Error of proposed subgoals against states from the data."},
    {"loss_action",
     "Distance from a state to itself with an action chosen: choosing should cost nothing."},
    {"loss_backup",
     "Error of distances against one step more than the distance from the next state."},
    {"loss_value", "Error of the value of a state and a goal against its target."},
    {"loss_critic", "Error of the value of a state, an action and a goal against its target."},
    {"loss_contrast", "Contrastive loss: how poorly goals that a state reached are told from other "
                      "goals of the batch."},
    {"loss_negative",
     "Pushes random states apart: large where the distances between them are small."},
    {"loss_local", "Squared excess of single-step distances over one step."},
    {"loss_lambda", "Loss of the Lagrange multiplier, which rises until the constraint holds."},
    {"loss_dynamics", "Error of the predicted next state."},
    {"loss_goal_value", "Error of distances to goals in the task's own form, against distances to "
                        "whole observations."},
    {"loss_q", "The critic's value of the policy's actions, negated and normalised: -1 is all "
               "there is to gain."},
    {"loss_bc", "Behaviour cloning: error of the policy's actions against those in the data."},
    {"loss_actor", "The policy's loss: the critic's value, negated, with weighted terms for "
                   "entropy and for the data's actions."},
    {"loss_awr", "Error of the policy's actions against those in the data, weighted by advantage."},
    {"loss_flow", "Flow matching: error of the policy's velocity field against the way from noise "
                  "to the data's actions."},
    {"loss_high", "Error of the high-level policy's subgoals against those that the data reached."},
    {"loss_low",
     "Error of the low-level policy's actions against those that the data took towards a subgoal."},
    {"value_mean", "Mean value in the batch: the higher, the nearer goals seem."},
    {"distance_mean", "Mean predicted distance in the batch, in steps."},
    {"log_pi",
     "Mean log-likelihood of the policy's own actions: it falls as the policy becomes wider."},
    {"grad_norm", "Norm of the gradient of all weights, before it is applied."},
    {"val_value_error", "Mean error of predicted distances on held-out rows, in steps."},
};

const char *dc_meaning(const char *column) {
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (!strcmp(meanings[i].column, column)) return meanings[i].sentence;
    return NULL;
}
