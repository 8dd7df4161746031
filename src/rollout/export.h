// Export: a policy of a checkpoint as a file that needs nothing of this program. Both walk the graph that the
// actor runs (algo/infer.h), so that whatever a method's policy does (a mean, the best of many candidates, a subgoal
// first, scaled observations, a goal representation) is in the file. Comes from rollout/actor.
//
//   .c      one C99 file with its weights, for robots: policy_act(memory, observation, goal, moment, action)
//   .onnx   for ONNX runtimes: observation, goal and, for policies that draw it, noise to action, any number of rows
#ifndef DC_EXPORT_H
#define DC_EXPORT_H

#include "rollout/actor.h"

// The actor must have been opened for one row, on the CPU. Errors: DC_UNSUPPORTED for an op that the format has
// no form of; of the file.
dc_status dc_export_c(const dc_actor *actor, const char *path);
dc_status dc_export_onnx(const dc_actor *actor, const char *path);

#endif
