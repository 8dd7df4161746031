// What the benchmarks share. A benchmark answers one question, `dcrl bench NAME`, in a file of its
// own, bench_NAME.c, with a row in benches.def; with --json it prints one object and nothing else.
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli.h"

#include "base/clock.h"

#define BENCH(name, function, help) cli_command function;
#include "benches.def"
#undef BENCH

#endif
