// Parts of `dcrl expert`; each gets the words after its own name.
#ifndef CLI_EXPERT_H
#define CLI_EXPERT_H

#include "args.h"

#include "online/learn.h"

// Set --set key=value pairs on a learner.
dc_status cli_learn_sets(dc_learn *learn, const cli_args *args);
dc_status cli_expert_train(int argc, char **argv);
dc_status cli_expert_eval(int argc, char **argv);

#endif
