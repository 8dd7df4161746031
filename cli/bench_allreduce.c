// dcrl bench allreduce: what it costs that ranks add up their gradients, by the size of all weights: the chain that keeps
// the order of sums (backend/cpu/share.c), and the broadcast of its end.
#include "args.h"
#include "bench.h"
#include "ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct flags {
    double seconds, largest;
} flags;

static const dc_option flag_table[] = {
    DC_OPTION_REAL(flags, seconds, "0.5", 0.01, 3600, "time to measure each size for"),
    DC_OPTION_REAL(flags, largest, "64", 0.01, 4096, "millions of weights to end with"),
    {0},
};

static const char usage[] = "usage: mpirun -n R dcrl bench allreduce [--json]\n\n"
                            "Seconds that R ranks take to add up gradients of some sizes as "
                            "training does: from rank to rank\n"
                            "in the order of sums, layer by layer, then from the last to all.\n\n"
                            "example: mpirun -n 2 dcrl bench allreduce --json\n";

enum { PIECES = 8 }; // layers, that follow each other from rank to rank

// One gradient of n weights, all of them times the number of ranks before: the sum can be told.
static void add_up(float *sum, int64_t n) {
    int rank = dc_ranks_rank(cli_ranks), count = dc_ranks_count(cli_ranks);
    for (int k = 0; k < PIECES; k++) {
        int64_t first = n * k / PIECES, end = n * (k + 1) / PIECES;
        int64_t bytes = (end - first) * (int64_t)sizeof *sum;
        if (rank > 0) dc_ranks_receive(cli_ranks, rank - 1, sum + first, bytes);
        for (int64_t i = first; i < end; i++)
            sum[i] = (rank > 0 ? sum[i] : 0) + 1;
        if (rank < count - 1) dc_ranks_send(cli_ranks, rank + 1, sum + first, bytes);
    }
    dc_ranks_flush(cli_ranks);
    dc_ranks_broadcast(cli_ranks, count - 1, sum, n * (int64_t)sizeof *sum);
}

// All ranks repeat it as often as rank 0 says.
static dc_status measure(const flags *f, int64_t n, double *seconds) {
    float *sum = malloc((size_t)n * sizeof *sum);
    if (!sum)
        return dc_fail(DC_NO_MEMORY, "lower --largest", "no memory for %lld weights", (long long)n);
    int64_t times = 0;
    add_up(sum, n); // connects
    double start = dc_now();
    for (char more = 1; more; times++) {
        add_up(sum, n);
        more = dc_now() - start < f->seconds;
        dc_ranks_broadcast(cli_ranks, 0, &more, 1);
    }
    *seconds = (dc_now() - start) / (double)times;
    bool wrong = false;
    for (int64_t i = 0; i < n; i++)
        wrong = wrong || sum[i] != (float)dc_ranks_count(cli_ranks);
    free(sum);
    DC_CHECK(!wrong);
    return DC_OK;
}

dc_status bench_allreduce(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = flag_table, .config = &f, .takes = CLI_JSON};
    DC_TRY(cli_ranks_join());
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    int ranks = dc_ranks_count(cli_ranks);
    if (args.json) printf("{\"bench\": \"allreduce\", \"ranks\": %d, \"sizes\": [", ranks);
    for (int64_t n = 10000, k = 0; (double)n <= f.largest * 1e6; n *= 10, k++) {
        double seconds = 0;
        DC_TRY(measure(&f, n, &seconds));
        double rate = (double)n * 4 / seconds / 1e9;
        if (args.json)
            printf("%s{\"weights\": %" PRId64 ", \"seconds\": %.6g, \"gb_per_second\": %.4g}",
                   k ? ", " : "", n, seconds, rate);
        else
            printf("%d ranks, %9" PRId64 " weights: %8.3f ms, %6.2f GB/s\n", ranks, n,
                   1e3 * seconds, rate);
    }
    if (args.json) puts("]}");
    return DC_OK;
}
