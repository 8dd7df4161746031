// dcrl export: a run's policy as one file that needs nothing of this program.
#include "args.h"
#include "cli.h"
#include "runs.h"

#include "base/file.h"
#include "rollout/export.h"
#include "train/pick.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl export RUN -o policy.c|policy.onnx [--step N] [--samples N] [--flow-steps N] "
    "[--seed S]\n"
    "\n"
    "Writes the policy of a run's checkpoint with its weights, scales of observations and actions, "
    "and all that it\n"
    "does to act, candidates included. RUN may also be a checkpoint's file.\n"
    "  policy.c     one C99 file without dependencies: policy_act(&memory, observation, goal, "
    "moment, action)\n"
    "  policy.onnx  for ONNX runtimes (opset 13): observation, goal and, for policies that draw "
    "noise, standard\n"
    "               normals (one row of them for each row) to action; any number of rows\n"
    "\n"
    "example: dcrl export runs/pointmaze -o policy.c\n"
    "         dcrl export runs/cube -o policy.onnx --samples 8\n";

typedef struct flags {
    char out[DC_TEXT_MAX];
    int64_t step, samples, flow_steps, seed;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "FILE.c or FILE.onnx"),
    DC_OPTION_INT(flags, step, "-1", -1, 1e12, "checkpoint to take; -1: the newest"),
    DC_OPTION_INT(flags, samples, "0", 0, 4096,
                  "flow policies: candidates; 0: as the run was configured"),
    DC_OPTION_INT(flags, flow_steps, "0", 0, 1000,
                  "flow policies: Euler steps; 0: as the run was configured"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, ".c: seed of the noise"),
    {0},
};

static dc_status checkpoint_of(const char *word, int64_t step, char path[DC_PATH_MAX]) {
    char run[DC_PATH_MAX];
    bool folder;
    DC_TRY(dc_folder_find(word, &folder));
    if (!folder) {
        snprintf(path, DC_PATH_MAX, "%s", word);
        return DC_OK;
    }
    DC_TRY(dc_folder_run(run, word));
    DC_TRY(dc_pick_in(run, &step));
    if (step < 0) return dc_fail(DC_BAD_INPUT, "train first", "%s has no checkpoint", run);
    return dc_folder_checkpoint(path, run, step);
}

dc_status cmd_export(int argc, char **argv) {
    flags f;
    char path[DC_PATH_MAX];
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl export RUN -o policy.c", "one run is needed");
    const char *dot = strrchr(f.out, '.');
    bool c = dot && !strcmp(dot, ".c"), onnx = dot && !strcmp(dot, ".onnx");
    if (!c && !onnx)
        return dc_fail(DC_USAGE, "write -o policy.c or -o policy.onnx",
                       "a policy is written as .c or .onnx (%s)", f.out);
    DC_TRY(checkpoint_of(args.words[0], f.step, path));
    dc_actor_options options = {.rows = 1,
                                .samples = (int)f.samples,
                                .flow_steps = (int)f.flow_steps,
                                .seed = (uint64_t)f.seed};
    dc_actor actor;
    DC_TRY(dc_actor_open(&actor, path, &options, NULL));
    dc_status status = (c ? dc_export_c : dc_export_onnx)(&actor, f.out);
    if (status == DC_OK)
        printf("wrote %s: %s at step %" PRId64 ", %d + %d numbers to %d\n", f.out,
               actor.from.method.algo->name, actor.from.step, actor.obs, actor.goal, actor.act);
    dc_actor_fini(&actor);
    return status;
}
