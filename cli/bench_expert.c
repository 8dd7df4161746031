// dcrl bench expert: steps per second of robots that act while they learn, with the policy and the replay, beside
// their simulation alone by the same actions. `dcrl bench env` has the environment under random actions.
#include "args.h"
#include "bench.h"
#include "expert.h"

#include "online/bench.h"

#include <stdio.h>

typedef struct flags {
    int64_t threads;
    double seconds;
} flags;

static const dc_option table[] = {
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "0: every core"),
    DC_OPTION_REAL(flags, seconds, "4", 0.01, 3600, "time for each robot"),
    {0},
};

static const char usage[] =
    "usage: dcrl bench expert [ROBOT] [--seconds T] [--threads T] [--set key=value] [--json]\n\n"
    "Steps per second of robots on the open plane that act as in dcrl expert train, of one robot "
    "or of each, and how\n"
    "much of the bare simulation's that is. --set takes the keys of dcrl expert train.\n\n"
    "example: dcrl bench expert ant --threads 2\n";

static dc_status configure(dc_learn *l, const flags *f, const cli_args *args) {
    char threads[32];
    snprintf(threads, sizeof threads, "%lld", (long long)f->threads);
    DC_TRY(dc_learn_set(l, "threads", threads));
    return cli_learn_sets(l, args);
}

static dc_status measure(const dc_plane *plane, const flags *f, const cli_args *args, bool first) {
    dc_learn *learn;
    dc_learn_rates r = {0, 0, 0};
    DC_TRY(dc_learn_new(&learn, plane));
    dc_status status = configure(learn, f, args);
    if (status == DC_OK) status = dc_learn_measure(learn, f->seconds, &r);
    dc_learn_free(learn);
    DC_TRY(status);
    if (args->json)
        printf("%s{\"name\": \"%s\", \"steps_per_second\": %.0f, \"bare_steps_per_second\": %.0f, "
               "\"ratio\": %.3f, \"cpu_ratio\": %.3f}",
               first ? "" : ", ", plane->name, r.acting, r.bare, r.acting / r.bare, r.cpu_ratio);
    else
        printf("%-9s %8.0f steps per second, %.2f of the bare simulation's %.0f (%.2f by processor "
               "time)\n",
               plane->name, r.acting, r.acting / r.bare, r.bare, r.cpu_ratio);
    return DC_OK;
}

dc_status bench_expert(int argc, char **argv) {
    flags f;
    const dc_plane *plane = NULL;
    cli_args args = {
        .usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_SET | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count > 1)
        return dc_fail(DC_USAGE, "dcrl bench expert [ROBOT]", "one robot at most");
    if (args.word_count) DC_TRY(dc_plane_find(&plane, args.words[0]));
    if (args.json) printf("{\"bench\": \"expert\", \"robots\": [");
    if (plane) DC_TRY(measure(plane, &f, &args, true));
    for (int k = 0; !plane && dc_plane_row(k); k++)
        DC_TRY(measure(dc_plane_row(k), &f, &args, k == 0));
    if (args.json) puts("]}");
    return DC_OK;
}
