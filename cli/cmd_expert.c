// dcrl expert: policies of walking robots, trained from nothing and measured. `train` is in expert_train.c, `eval`
// in expert_eval.c.
#include "cli.h"
#include "expert.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "dcrl expert: policies of walking robots, which make the data of mazes (dcrl gen --expert)\n"
    "\n"
    "usage: dcrl expert train ant|antball|humanoid -o FILE     (dcrl expert train --help says "
    "more)\n"
    "       dcrl expert eval FILE                              (dcrl expert eval --help)\n"
    "\n"
    "  train  learn to walk on an open plane, in a direction that is commanded, or to dribble a "
    "ball, by soft\n"
    "         actor-critic from nothing\n"
    "  eval   play it there, and hold its speed, falls and postures beside those of OGBench's "
    "data\n"
    "\n"
    "Experts that come with the program lie in configs/experts/. docs/experts.md tells the rest.\n"
    "\n"
    "example: dcrl expert train ant -o ant.safetensors --seed 1\n"
    "         dcrl expert eval ant.safetensors\n";

dc_status cmd_expert(int argc, char **argv) {
    static const char *const names[] = {"train", "eval"};
    if (argc == 0)
        return dc_fail(DC_USAGE, "dcrl expert train ROBOT -o FILE", "a sub-command is missing");
    if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) return fputs(help, stdout), DC_OK;
    if (!strcmp(argv[0], names[0])) return cli_expert_train(argc - 1, argv + 1);
    if (!strcmp(argv[0], names[1])) return cli_expert_eval(argc - 1, argv + 1);
    const char *near = dc_nearest(argv[0], names, 2);
    return dc_fail(DC_USAGE, "see dcrl expert --help", "unknown sub-command (%s)%s%s", argv[0],
                   near ? ", perhaps " : "", near ? near : "");
}
