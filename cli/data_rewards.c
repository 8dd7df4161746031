// dcrl data rewards: what a single task says of the rows of a file, as a small file beside it. The
// data itself is the same for all tasks and is not copied.
#include "data_rewards.h"

#include "args.h"

#include "base/arena.h"
#include "data/npz.h"
#include "env/rewards.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const char usage[] =
    "usage: dcrl data rewards FILE.npz ENV-singletask[-taskK] -o OUT.npz\n"
    "\n"
    "Writes rewards (N) and masks (N) of a single task for the rows of a file that holds qpos, "
    "and\n"
    "button_states where there are buttons. A reward is minus the number of conditions that do "
    "not\n"
    "hold; a mask is 0 where all of them hold, else 1.\n"
    "\n"
    "example: dcrl data rewards scene-play-v0.npz scene-singletask-task4-v0 -o task4.npz\n";

typedef struct flags {
    char out[DC_TEXT_MAX];
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "file to write"),
    {0},
};

typedef struct relabel {
    dc_env_spec spec;
    dc_npz npz;
    dc_arena arena;
    int64_t rows, solved;                  // rows: -1 until an array was read
    float *qpos, *extra, *rewards, *masks; // (rows, ...)
} relabel;

// An array of the file, (rows, width); the first one says how many rows there are.
static dc_status read_array(relabel *j, const char *name, int width, float **values) {
    dc_npy npy;
    const dc_npz_entry *entry = dc_npz_find(&j->npz, name);
    if (!entry)
        return dc_fail(DC_BAD_INPUT, "dcrl gen and OGBench write it", "there is no array '%s' (%s)",
                       name, j->npz.path);
    DC_TRY(dc_npz_head(&j->npz, entry, &npy));
    bool first = j->rows < 0;
    if (npy.ndim != 2 || npy.shape[1] != width || (!first && npy.shape[0] != j->rows))
        return dc_fail(DC_BAD_INPUT, "is it data of that environment?",
                       "%s has not the %d columns that %s has, or not the rows of qpos (%s)", name,
                       width, j->spec.family->name, j->npz.path);
    j->rows = npy.shape[0];
    *values = dc_arena_take(&j->arena, (size_t)npy.count * sizeof **values);
    if (!*values) return DC_NO_MEMORY;
    return dc_npz_floats(&j->npz, entry, &npy, *values);
}

static dc_status reward_rows(relabel *j) {
    const dc_env_family *f = j->spec.family;
    size_t bytes = (size_t)j->rows * sizeof(float);
    j->rewards = dc_arena_take(&j->arena, bytes);
    j->masks = dc_arena_take(&j->arena, bytes);
    if (!j->rewards || !j->masks) return DC_NO_MEMORY;
    for (int64_t r = 0; r < j->rows; r++) {
        const float *extra = j->extra ? j->extra + r * f->extra : NULL;
        j->rewards[r] = (float)dc_task_reward(&j->spec, j->qpos + r * f->nq, extra);
        j->masks[r] = j->rewards[r] == 0 ? 0.0F : 1.0F;
        j->solved += j->rewards[r] == 0;
    }
    return DC_OK;
}

static dc_status write_out(const relabel *j, const char *path) {
    dc_npz_writer *w = NULL;
    dc_status status = dc_npz_writer_new(&w, path, 6);
    if (status == DC_OK) status = dc_npz_writer_put(w, "rewards", DC_F4, 1, &j->rows, j->rewards);
    if (status == DC_OK) status = dc_npz_writer_put(w, "masks", DC_F4, 1, &j->rows, j->masks);
    if (status == DC_OK) status = dc_npz_writer_save(w);
    dc_npz_writer_free(w);
    return status;
}

static dc_status run(relabel *j, const char *in, const char *out) {
    const dc_env_family *f = j->spec.family;
    DC_TRY(dc_npz_open(&j->npz, in));
    DC_TRY(read_array(j, "qpos", f->nq, &j->qpos));
    if (f->extra) DC_TRY(read_array(j, dc_env_extra_facts(f)->name, f->extra, &j->extra));
    DC_TRY(reward_rows(j));
    DC_TRY(write_out(j, out));
    printf("wrote %s: %" PRId64 " rows, %" PRId64 " of them solve %s\n", out, j->rows, j->solved,
           j->spec.name);
    return DC_OK;
}

dc_status cli_data_rewards(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 2)
        return dc_fail(DC_USAGE, "dcrl data rewards FILE.npz ENV -o OUT.npz",
                       "a file and an environment are needed");
    DC_TRY(cli_args_need(&args, "out"));
    DC_TRY(cli_check_name(f.out, ".npz", false));
    relabel j = {.rows = -1};
    DC_TRY(dc_env_find(&j.spec, args.words[1]));
    if (!j.spec.task)
        return dc_fail(DC_USAGE, "give its single-task form, ENV-singletask-task1",
                       "%s has no rewards of its own", j.spec.name);
    dc_arena_init(&j.arena, 0);
    dc_status status = run(&j, args.words[0], f.out);
    dc_npz_close(&j.npz);
    dc_arena_fini(&j.arena);
    return status;
}
