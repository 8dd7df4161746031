#ifndef CLI_SAMPLE_AGENT_H
#define CLI_SAMPLE_AGENT_H

#include "args.h"

#include "data/dataset.h"

// Print `count` rows of a method's batches as CSV; the args' --set pairs are options of the method and of runs.
dc_status cli_sample_agent(const char *name, const cli_args *args, const dc_dataset *data,
                           int64_t seed, int64_t count);

#endif
