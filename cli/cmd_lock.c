// dcrl lock: the paper's measurement of error accumulation. One run, or a sweep over agents x
// horizons x seeds that runs side by side; with --out every run has a folder of its own, and the
// same command goes on where it was stopped.
#include "args.h"
#include "cli.h"
#include "lock_jobs.h"
#include "runs.h"

#include "base/file.h"
#include "train/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl lock [--agent A,B,...] [--horizon H,H,...] [--n N] [--steps N] [--seed S|A-B] "
    "[--out DIR] [--json]\n"
    "\n"
    "Learns distances in a combination-lock of H states and prints how far off the long ones are: "
    "A(H) is the\n"
    "mean |d - (g - s)| over all pairs with g - s >= H/2. Several agents, horizons or seeds make a "
    "sweep that\n"
    "runs on all cores; an agent may carry options, as in dcrl:recursion=off:order=down. With "
    "--out each run\n"
    "keeps its state in DIR, the same command continues it, and DIR/lock.svg shows the curves.\n"
    "\n"
    "example: dcrl lock --agent dcrl,dcrl:recursion=off,trl-n:kappa=0.5,td-n --horizon 256,512 --n "
    "16 \\\n"
    "                   --hidden 128,128,128 --batch 256 --steps 40000 --seed 0-2 --out "
    "runs/lock\n";

static const dc_option table[] = {
    DC_OPTION_TEXT(lock_flags, agent, "dcrl",
                   "methods, each with :key=value options; dcrl list agents"),
    DC_OPTION_LIST(lock_flags, horizon, "512", 4, 1 << 20, "states of the lock"),
    DC_OPTION_INT(lock_flags, n, "64", 1, 1e6,
                  "steps of a propagation target; distances up to n are exact"),
    DC_OPTION_INT(lock_flags, steps, "40000", 1, 1e12, "updates to train (the paper: 5000000)"),
    DC_OPTION_TEXT(lock_flags, seed, "0", "one seed, a list 0,1,2 or a range 0-2"),
    DC_OPTION_INT(lock_flags, slots, "128", 1, 1e6, "trees in flight"),
    DC_OPTION_LIST(lock_flags, hidden, "512,512,512", 1, 8192, "widths of the hidden layers"),
    DC_OPTION_INT(lock_flags, batch, "512", 1, 1 << 20, "rows per loss"),
    DC_OPTION_CHOICE(lock_flags, device, "cpu", "cpu|cuda", "where to train"),
    DC_OPTION_INT(lock_flags, threads, "0", 0, 1024, "cores to use in all; 0: every one"),
    DC_OPTION_TEXT(lock_flags, out, "", "folder for runs, results and plot"),
    {0},
};

// The same run twice would be two processes in one folder, or a result counted twice.
static dc_status refuse_twins(const lock_sweep *sweep) {
    for (int a = 0; a < sweep->count; a++)
        for (int b = 0; b < a; b++) {
            const dc_lock_result *x = &sweep->jobs[a].result, *y = &sweep->jobs[b].result;
            bool same =
                !strcmp(x->agent, y->agent) && x->horizon == y->horizon && x->seed == y->seed;
            if (same ||
                (*sweep->jobs[a].folder && !strcmp(sweep->jobs[a].folder, sweep->jobs[b].folder)))
                return dc_fail(DC_USAGE, "name each agent, horizon and seed once",
                               "two runs are the same (agent %s, horizon %" PRId64 ", seed %" PRId64
                               ")",
                               x->agent, x->horizon, x->seed);
        }
    return DC_OK;
}

// One job for every agent, horizon and seed.
static dc_status make_jobs(const lock_flags *f, const cli_args *args, lock_sweep *sweep) {
    int64_t seeds[LOCK_SEEDS_MAX];
    int seed_count;
    DC_TRY(cli_seeds(f->seed, seeds, LOCK_SEEDS_MAX, &seed_count));
    char agents[DC_TEXT_MAX], *rest = agents;
    snprintf(agents, sizeof agents, "%s", f->agent);
    int agent_count = 1;
    for (const char *c = agents; *c; c++)
        agent_count += *c == ',';
    if (agent_count > DC_LOCK_AGENTS_MAX)
        return dc_fail(DC_USAGE, NULL, "at most %d agents a sweep (%d)", DC_LOCK_AGENTS_MAX,
                       agent_count);
    sweep->jobs =
        calloc((size_t)(agent_count * f->horizon.count * seed_count), sizeof *sweep->jobs);
    if (!sweep->jobs) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
    for (char *agent; (agent = cli_split(&rest, ','));)
        for (int h = 0; h < f->horizon.count; h++)
            for (int s = 0; s < seed_count; s++)
                DC_TRY(lock_job_init(&sweep->jobs[sweep->count++], f, args, agent, f->horizon.v[h],
                                     seeds[s]));
    return refuse_twins(sweep);
}

static dc_status collect(const lock_sweep *sweep, dc_lock_result **results) {
    *results = calloc((size_t)sweep->count, sizeof **results);
    if (!*results) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the results");
    for (int i = 0; i < sweep->count; i++)
        (*results)[i] = sweep->jobs[i].result;
    return DC_OK;
}

static dc_status write_plot(const dc_lock_result *results, int count, const char *folder,
                            char path[1024]) {
    dc_text svg;
    dc_text_init(&svg);
    dc_status status = dc_lock_plot(results, count, &svg);
    snprintf(path, 1024, "%s/lock.svg", folder);
    dc_folder_sweep(folder);
    if (status == DC_OK) status = dc_text_status(&svg);
    if (status == DC_OK) status = dc_file_write_inside(path, svg.bytes, svg.used);
    dc_text_fini(&svg);
    return status;
}

static void print_json(const dc_lock_result *results, int count, const char *plot, dc_text *out) {
    if (count > 1) dc_text_add(out, "{\"runs\": [");
    for (int i = 0; i < count; i++) {
        if (i) dc_text_add(out, ", ");
        dc_lock_result_json(&results[i], out);
    }
    if (count > 1) {
        dc_text_add(out, "], \"plot\": ");
        if (plot)
            dc_json_quote(out, plot);
        else
            dc_text_add(out, "null");
        dc_text_add(out, "}");
    }
    dc_text_add(out, "\n");
}

static void print_text(const dc_lock_result *results, int count, const char *plot, dc_text *out) {
    dc_lock_table(results, count, out);
    if (plot) dc_text_add(out, "\nplot: %s\n", plot);
    dc_text_add(out, "\n");
    dc_lock_sentence(results, count, out);
}

static dc_status print_result(const lock_sweep *sweep, const lock_flags *f, bool json) {
    dc_lock_result *results;
    DC_TRY(collect(sweep, &results));
    char plot[1024];
    dc_status status = *f->out ? write_plot(results, sweep->count, f->out, plot) : DC_OK;
    dc_text out;
    dc_text_init(&out);
    if (status == DC_OK) {
        (json ? print_json : print_text)(results, sweep->count, *f->out ? plot : NULL, &out);
        status = dc_text_status(&out);
    }
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    free(results);
    return status;
}

dc_status cmd_lock(int argc, char **argv) {
    lock_flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    lock_sweep sweep = {.threads = (int)f.threads};
    dc_status status = make_jobs(&f, &args, &sweep);
    if (status == DC_OK) status = lock_sweep_run(&sweep);
    if (status == DC_OK) status = print_result(&sweep, &f, args.json);
    lock_sweep_fini(&sweep);
    return status;
}
