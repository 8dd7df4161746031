// thin
#include "args.h"
#include "cli.h"
#include "env/lock.h"
#include "rollout/lock_eval.h"
#include "train/run.h"

#include <stdio.h>
#include <time.h>

typedef struct flags { char agent[DC_TEXT_MAX]; int64_t horizon, n, steps, seed, batch, threads; dc_int_list hidden; char out[DC_TEXT_MAX]; } flags;
static const dc_option table[] = {
    {"agent", DC_TEXT, offsetof(flags, agent), "dcrl", 0, 0, NULL, "method"},
    {"horizon", DC_INT, offsetof(flags, horizon), "512", 4, 1e6, NULL, "states"},
    {"n", DC_INT, offsetof(flags, n), "64", 1, 1e6, NULL, "n"},
    {"steps", DC_INT, offsetof(flags, steps), "40000", 1, 1e12, NULL, "steps"},
    {"seed", DC_INT, offsetof(flags, seed), "0", 0, 1e12, NULL, "seed"},
    {"batch", DC_INT, offsetof(flags, batch), "512", 1, 1e6, NULL, "batch"},
    {"threads", DC_INT, offsetof(flags, threads), "0", 0, 1024, NULL, "threads"},
    {"hidden", DC_LIST, offsetof(flags, hidden), "512,512,512", 1, 8192, NULL, "hidden"},
    {"out", DC_TEXT, offsetof(flags, out), "", 0, 0, NULL, "folder"},
    {0}};
dc_status cmd_lock(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = "x", .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    dc_run run;
    DC_TRY(dc_run_configure(&run, f.agent));
    run.options.steps = f.steps; run.options.seed = f.seed; run.options.batch = f.batch; run.options.hidden = f.hidden; run.options.threads = f.threads;
    char n[32]; snprintf(n, sizeof n, "%lld", (long long)f.n);
    if (dc_options_find(run.algo->options, "n")) DC_TRY(dc_run_set(&run, "n", n));
    for (int i = 0; i < args.set_count; i++) { char k[256]; snprintf(k, sizeof k, "%s", args.sets[i]); char *e = k; while (*e && *e != '=') e++; *e = 0; DC_TRY(dc_run_set(&run, k, e + 1)); }
    dc_lock lock; dc_dataset data;
    DC_TRY(dc_lock_init(&lock, (int)f.horizon, (uint64_t)f.seed));
    DC_TRY(dc_lock_data(&lock, &data));
    DC_TRY(dc_run_start(&run, &data, *f.out ? f.out : NULL));
    struct timespec t0, t1; clock_gettime(CLOCK_MONOTONIC, &t0);
    DC_TRY(dc_run_train(&run));
    clock_gettime(CLOCK_MONOTONIC, &t1);
    double dt = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    dc_lock_score score;
    DC_TRY(dc_lock_evaluate(&run.agent, &score));
    printf("%s H %lld seed %lld A %.3f  steps/s %.1f loss %.4f\n", f.agent, (long long)f.horizon, (long long)f.seed, score.accumulated_error, (double)f.steps / dt, run.last[0]);
    dc_run_fini(&run); dc_dataset_fini(&data); dc_lock_fini(&lock);
    return DC_OK;
}
