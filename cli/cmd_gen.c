// dcrl gen: writes the data set of an environment as an npz file that OGBench's own loader takes.
#include "args.h"
#include "cli.h"

#include "data/npz.h"
#include "env/lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: dcrl gen ENV -o FILE.npz [--seed S]\n"
    "\n"
    "Makes a data set: observations (N, ...), actions (N, ...), terminals (N).\n"
    "dcrl list envs shows the environments.\n"
    "\n"
    "example: dcrl gen lock-512 -o lock-512.npz\n";

typedef struct flags {
    char out[DC_TEXT_MAX];
    int64_t seed;
} flags;

static const dc_option table[] = {
    {"out", DC_TEXT, offsetof(flags, out), "", 0, 0, NULL, "file to write"},
    {"seed", DC_INT, offsetof(flags, seed), "0", 0, 9e15, NULL,
     "the same seed gives the same bytes"},
    {0},
};

static dc_status put(dc_npz_writer *writer, const dc_dataset *data) {
    const dc_column *obs = dc_dataset_column(data, "obs"), *act = dc_dataset_column(data, "act");
    DC_TRY(dc_npz_writer_put(writer, "observations", DC_F4, 2, (int64_t[]){data->rows, obs->width},
                             obs->values));
    int32_t *whole = calloc((size_t)data->rows * 2, sizeof *whole), *terminals = whole + data->rows;
    if (!whole) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %" PRId64 " rows", data->rows);
    for (int64_t r = 0; r < data->rows; r++) // whole numbers: discrete actions
        whole[r] = (int32_t)act->values[r];
    for (int64_t t = 0; t < data->traj_count; t++)
        terminals[data->traj_start[t + 1] - 1] = 1;
    dc_status status =
        dc_npz_writer_put(writer, "actions", DC_I4, 2, (int64_t[]){data->rows, 1}, whole);
    if (status == DC_OK)
        status = dc_npz_writer_put(writer, "terminals", DC_I4, 1, &data->rows, terminals);
    free(whole);
    DC_TRY(status);
    return dc_npz_writer_save(writer);
}

static dc_status write_lock(const char *env, const flags *f) {
    int horizon;
    dc_lock lock;
    dc_dataset data = {0};
    DC_TRY(dc_lock_horizon(env, &horizon));
    DC_TRY(dc_lock_init(&lock, horizon, (uint64_t)f->seed));
    dc_npz_writer *writer = NULL;
    dc_status status = dc_lock_data(&lock, &data);
    if (status == DC_OK) status = dc_npz_writer_new(&writer, f->out, 6);
    if (status == DC_OK) status = put(writer, &data);
    dc_npz_writer_free(writer);
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
    if (status == DC_OK) printf("wrote %s: %d states of combination-lock\n", f->out, horizon);
    return status;
}

dc_status cmd_gen(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl gen ENV -o FILE.npz", "one environment is needed");
    DC_TRY(cli_args_need(&args, "out"));
    return write_lock(args.words[0], &f);
}
