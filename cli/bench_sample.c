// dcrl bench sample: how many tree nodes per second one core hands out, and what memory the sampler
// takes, over trajectories of 1,000 and of 1,000,000 steps. The data set is a table of trajectories
// made here: the sampler reads nothing else.
#include "args.h"
#include "bench.h"

#include "sample/sampler.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct flags {
    int64_t batch, slots, seed;
    int split;
    double seconds;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_INT(flags, batch, "1024", 1, 1 << 24, "rows of a step"),
    DC_OPTION_INT(flags, slots, "128", 1, 1 << 20, "trees in flight"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of all draws"),
    DC_OPTION_CHOICE(flags, split, "midpoint", "midpoint|random",
                     "where a segment is divided; random trees lie in memory"),
    DC_OPTION_REAL(flags, seconds, "1", 0.01, 3600, "time to measure each horizon for"),
    {0},
};

static const char usage[] =
    "usage: dcrl bench sample [--json]\n\n"
    "Tree nodes per second that the sampler hands out on one core, and the bytes it takes, over\n"
    "trajectories of 1,000 and of 1,000,000 steps.\n\n"
    "example: dcrl bench sample --json\n";

enum { ROWS = 1000000, HORIZONS = 2, WARM_STEPS = 100, CHECK_STEPS = 64 };
static const int64_t horizons[HORIZONS] = {1000, 1000000};

typedef struct result {
    double nodes_per_second;
    size_t bytes;
} result;

// About ROWS rows in trajectories of `steps` steps, at least four of them.
static dc_status make_table(dc_dataset *data, int64_t steps) {
    int64_t count = ROWS / steps > 4 ? ROWS / steps : 4;
    int64_t *start = malloc((size_t)(count + 1) * sizeof *start);
    if (!start)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for %lld trajectories", (long long)count);
    for (int64_t t = 0; t <= count; t++)
        start[t] = t * (steps + 1);
    *data = (dc_dataset){.rows = start[count], .traj_count = count, .traj_start = start};
    return DC_OK;
}

static dc_status measure(dc_sampler *sampler, const flags *f, result *out) {
    uint64_t step = 0, first = WARM_STEPS;
    while (step < first)
        DC_TRY(dc_sampler_next(sampler, step++));
    double start = dc_now(), spent = 0;
    while (spent < f->seconds) {
        for (int q = 0; q < CHECK_STEPS; q++)
            DC_TRY(dc_sampler_next(sampler, step++));
        spent = dc_now() - start;
    }
    out->nodes_per_second = (double)(step - first) * (double)f->batch / spent;
    out->bytes = dc_sampler_bytes(sampler);
    return DC_OK;
}

static dc_status run(const flags *f, int64_t steps, result *out) {
    dc_dataset data;
    DC_TRY(make_table(&data, steps));
    dc_row_table rows = {.seed = (uint64_t)f->seed, .batch = (int)f->batch};
    dc_rows_add(&rows, (dc_row_rule){.name = "start",
                                     .kind = DC_ROW_TREE,
                                     .draws = DC_STREAM_SLOT,
                                     .split = (dc_split)f->split,
                                     .slots = (int)f->slots});
    dc_rows_add(&rows, (dc_row_rule){.name = "split",
                                     .kind = DC_ROW_SPLIT,
                                     .of = "start",
                                     .split = (dc_split)f->split});
    dc_rows_add(&rows, (dc_row_rule){.name = "end", .kind = DC_ROW_END, .of = "start"});
    dc_sampler *sampler;
    dc_status status = dc_sampler_new(&sampler, &data, &rows);
    if (status == DC_OK) status = measure(sampler, f, out);
    dc_sampler_free(sampler);
    free((void *)(uintptr_t)data.traj_start);
    return status;
}

// The slowest horizon speaks for all; bytes are the most that any took.
static void print_json(const result *results) {
    result worst = results[0];
    for (int h = 1; h < HORIZONS; h++) {
        if (results[h].nodes_per_second < worst.nodes_per_second)
            worst.nodes_per_second = results[h].nodes_per_second;
        if (results[h].bytes > worst.bytes) worst.bytes = results[h].bytes;
    }
    printf("{\"bench\": \"sample\", \"nodes_per_second\": %.0f, \"bytes\": %zu, \"horizons\": [",
           worst.nodes_per_second, worst.bytes);
    for (int h = 0; h < HORIZONS; h++)
        printf("%s{\"steps\": %lld, \"nodes_per_second\": %.0f, \"bytes\": %zu}", h ? ", " : "",
               (long long)horizons[h], results[h].nodes_per_second, results[h].bytes);
    puts("]}");
}

dc_status bench_sample(int argc, char **argv) {
    flags f;
    result results[HORIZONS];
    cli_args args = {.usage = usage, .flags = flag_table, .config = &f, .takes = CLI_JSON};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    for (int h = 0; h < HORIZONS; h++) {
        DC_TRY(run(&f, horizons[h], &results[h]));
        if (!args.json)
            printf("%8lld steps per trajectory: %6.1f million nodes per second, %zu bytes\n",
                   (long long)horizons[h], results[h].nodes_per_second * 1e-6, results[h].bytes);
    }
    if (args.json) print_json(results);
    return DC_OK;
}
