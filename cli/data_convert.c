// dcrl data convert: npz files into a store, or a store into an npz file. The work is
// data/convert's; here are the command line, the word about disk space before anything is written,
// and a progress line for what takes longer than a moment.
#include "data_convert.h"

#include "args.h"
#include "runs.h"

#include "data/convert.h"
#include "data/hdf5.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl data convert FILE.npz... FOLDER [--rows-per-shard N]\n"
    "       dcrl data convert FOLDER FILE.npz [--level L]\n"
    "       dcrl data convert FILE.hdf5 FILE.npz [--level L] [--obs NAME,NAME]\n"
    "\n"
    "Turns .npz files into a store, a folder of plain files that `dcrl train`, `dcrl sample` and\n"
    "`dcrl data info` take in place of a file. A store opens at once and may be larger than "
    "memory.\n"
    "The rows of several files follow each other. Or turns a store back into one .npz file.\n"
    "HDF5 files of D4RL, Minari and robomimic become .npz. Where observations are a group of "
    "arrays,\n"
    "they stand side by side in the order of their names, without desired_goal and pictures; "
    "--obs\n"
    "names others.\n"
    "\n"
    "example: dcrl data convert cube-quadruple-play-100m-v0-*.npz cube-100m\n"
    "         dcrl train --data cube-100m --agent dcrl --out runs/cube\n";

typedef struct flags {
    int64_t rows_per_shard, level;
    char obs[DC_TEXT_MAX];
} flags;

static const dc_option table[] = {
    DC_OPTION_INT(flags, rows_per_shard, "1048576", DC_STORE_UNIT, 1e12,
                  "rows of a file of the store, a multiple of 1024"),
    DC_OPTION_INT(flags, level, "1", 0, 9, ".npz: 0 stores, 1 (fast) to 9 (small) deflates"),
    DC_OPTION_TEXT(flags, obs, "",
                   "HDF5: arrays of observations, in this order; empty: all that fit"),
    {0},
};

enum { QUIET_SECONDS = 2 };
static const uint64_t LARGE = 1000000000; // bytes that are worth a word before they are written

typedef struct watch {
    cli_line line;
    double start, shown;
} watch;

static bool show(void *ctx, uint64_t done, uint64_t total) {
    watch *w = ctx;
    double now = dc_now(), seconds = now - w->start;
    if (atomic_load(&cli_stop)) return false;
    if (seconds < QUIET_SECONDS || now - w->shown < 0.1) return true;
    w->shown = now;
    char text[128], eta[32];
    double part = (double)done / (double)total, rate = (double)done / seconds;
    snprintf(text, sizeof text, "%.1f of %.1f GB (%.0f%%)  %.0f MB/s  ETA %s", (double)done / 1e9,
             (double)total / 1e9, 100 * part, rate / 1e6,
             cli_duration((double)(total - done) / (rate + 1e-9), eta));
    cli_line_show(&w->line, text);
    return true;
}

static dc_status run(dc_convert *c) {
    watch w = {.start = dc_now()};
    cli_line_init(&w.line);
    if (c->disk > LARGE)
        fprintf(stderr, "converting %.1f GB; %s needs up to %.1f GB of disk\n",
                (double)c->bytes / 1e9, c->output, (double)c->disk / 1e9);
    cli_catch_signals();
    dc_status status = dc_convert_run(c, show, &w);
    cli_line_clear(&w.line);
    if (status == DC_OK)
        printf("wrote %s: %lld rows, %lld trajectories, hash %016llx\n", c->output,
               (long long)c->index.rows, (long long)c->index.traj_count,
               (unsigned long long)c->index.hash);
    return status;
}

static bool show_rows(void *ctx, int64_t rows) {
    watch *w = ctx;
    double now = dc_now();
    if (atomic_load(&cli_stop)) return false;
    if (now - w->start < QUIET_SECONDS || now - w->shown < 0.1) return true;
    w->shown = now;
    char text[64];
    snprintf(text, sizeof text, "%lld rows", (long long)rows);
    cli_line_show(&w->line, text);
    return true;
}

// D4RL's file is one list of rows, the others are groups of episodes.
static void print_hdf5(const char *output, const dc_hdf5_done *done) {
    printf("wrote %s: %lld rows", output, (long long)done->rows);
    if (done->episodes > 1) printf(", %lld episodes", (long long)done->episodes);
    printf(" in the layout of %s, observations from %s; dcrl data info checks it\n", done->layout,
           done->obs);
}

static dc_status from_hdf5(const char *input, const char *output, const flags *f) {
    dc_hdf5_options options = {f->obs, (int)f->level};
    dc_hdf5_done done;
    watch w = {.start = dc_now()};
    size_t n = strlen(output);
    if (n < 4 || strcmp(output + n - 4, ".npz") != 0)
        return dc_fail(DC_USAGE, "give FILE.npz, and convert that into a store",
                       "HDF5 becomes .npz (%s)", output);
    cli_line_init(&w.line);
    cli_catch_signals();
    dc_status status = dc_hdf5_to_npz(input, output, &options, show_rows, &w, &done);
    cli_line_clear(&w.line);
    if (status == DC_OK) print_hdf5(output, &done);
    return status;
}

dc_status cli_data_convert(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count < 2)
        return dc_fail(DC_USAGE, "dcrl data convert IN... OUT",
                       "an input or the output is missing");
    if (f.rows_per_shard % DC_STORE_UNIT)
        return dc_fail(DC_USAGE, "give a multiple of 1024", "impossible shards (%lld rows)",
                       (long long)f.rows_per_shard);
    int inputs = args.word_count - 1;
    if (inputs == 1 && dc_hdf5_is(args.words[0]))
        return from_hdf5(args.words[0], args.words[1], &f);
    DC_TRY(cli_check_name(args.words[inputs], ".npz", true));
    if (*f.obs) return dc_fail(DC_USAGE, "leave it out", "--obs is for HDF5 alone (%s)", f.obs);
    dc_convert_options options = {f.rows_per_shard, (int)f.level};
    dc_convert convert;
    dc_status status = dc_convert_open(&convert, (const char *const *)args.words, inputs,
                                       args.words[inputs], &options);
    if (status == DC_OK) status = run(&convert);
    dc_convert_close(&convert);
    return status;
}
