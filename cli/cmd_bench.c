// dcrl bench: finds the benchmark and runs it; benches.def lists them.
#include "bench.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name;
    cli_command *run;
    const char *help;
} row;

static const row benches[] = {
#define BENCH(name, function, help) {#name, function, help},
#include "benches.def"
#undef BENCH
};
enum { BENCHES = sizeof benches / sizeof benches[0] };

static void help(void) {
    puts("usage: dcrl bench NAME [--json] [...]      dcrl bench NAME --help says more\n");
    for (size_t b = 0; b < BENCHES; b++)
        printf("  %-10s %s\n", benches[b].name, benches[b].help);
    puts("\nexample: dcrl bench train --seconds 10 --json");
}

static dc_status unknown(const char *word) {
    const char *names[BENCHES];
    for (size_t b = 0; b < BENCHES; b++)
        names[b] = benches[b].name;
    const char *near = dc_nearest(word, names, BENCHES);
    if (near)
        return dc_fail(DC_USAGE, NULL, "unknown benchmark (%s): did you mean '%s'?", word, near);
    return dc_fail(DC_USAGE, "dcrl bench --help lists them", "unknown benchmark (%s)", word);
}

dc_status cmd_bench(int argc, char **argv) {
    if (argc < 1)
        return dc_fail(DC_USAGE, "dcrl bench --help lists them", "a benchmark's name is missing");
    if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) return help(), DC_OK;
    for (size_t b = 0; b < BENCHES; b++)
        if (!strcmp(argv[0], benches[b].name)) return benches[b].run(argc - 1, argv + 1);
    return unknown(argv[0]);
}
