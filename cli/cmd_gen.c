// dcrl gen: writes the data set of an environment as npz files that OGBench's own loader takes. Data
// of mazes and tables comes in two files, for training and (a tenth as many episodes) for validation,
// NAME.npz and NAME-val.npz, or in several such pairs (gen_set.h).
#include "args.h"
#include "cli.h"
#include "gen_set.h"
#include "ranks.h"
#include "runs.h"

#include "base/json.h"
#include "data/npz.h"
#include "env/lock.h"
#include "env/recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl gen ENV -o FILE.npz|DIR [--type navigate|stitch|explore|play|noisy] [--episodes "
    "N]\n"
    "                [--shards N] [--seed S] [--threads T] [--expert FILE] [--ball-expert FILE] "
    "[--json]\n"
    "\n"
    "Makes a data set: observations (N, ...), actions (N, ...), terminals (N), of mazes and tables "
    "qpos and\n"
    "qvel, and button_states where there are buttons. A second file, FILE-val.npz, has a tenth as "
    "many\n"
    "episodes for validation. A set in shards is written as FILE-000.npz, FILE-000-val.npz and so "
    "on; the\n"
    "same command goes on where it was stopped, and dcrl data convert joins them.\n"
    "Ants and humanoids are moved by trained experts; those that come with dcrl, if none is "
    "named.\n"
    "Of a visual environment, observations are pictures (N, 64, 64, 3) of uint8.\n"
    "dcrl list envs shows the environments. mpirun -n R dcrl gen ..., or srun, splits the work "
    "over R processes.\n"
    "\n"
    "example: dcrl gen lock-512 -o lock-512.npz\n"
    "         dcrl gen pointmaze-medium-navigate-v0 -o data/\n"
    "         dcrl gen antmaze-large-navigate-v0 -o data/\n"
    "         dcrl gen puzzle-3x3-play-v0 -o data/\n"
    "         dcrl gen visual-cube-single-play-v0 -o data/\n"
    "         dcrl gen puzzle-4x6-play-100m-v0 -o data/puzzle-100m/\n";

typedef struct flags {
    char out[DC_TEXT_MAX], draws[DC_TEXT_MAX], trace[DC_TEXT_MAX];
    char expert[DC_TEXT_MAX], ball_expert[DC_TEXT_MAX];
    int type;
    int64_t episodes, rows, shards, seed, threads;
} flags;

enum { MANY_EPISODES = 10000, SHARD_EPISODES = 1000 };

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "",
                   "FILE.npz to write, or a folder (DIR/) for files under OGBench's names"),
    DC_OPTION_CHOICE(flags, type, "any", "any|navigate|stitch|explore|play|noisy",
                     "kind of data; any: as the name says, else navigate or play"),
    DC_OPTION_INT(flags, episodes, "0", 0, 1e8, "for training; 0: as many as OGBench's"),
    DC_OPTION_INT(flags, rows, "0", 0, 20000,
                  "of an episode, one more than transitions: 2 or more; 0: as many as OGBench's"),
    DC_OPTION_INT(
        flags, shards, "0", 0, 999,
        "pairs of files; 0: one, or one for every 1000 episodes if there are more than 10000"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15,
                  "the same seed gives the same bytes, for any number of threads"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "0: one for every core"),
    DC_OPTION_TEXT(flags, expert, "",
                   "of antmaze, antsoccer and humanoidmaze: the expert that walks, as dcrl expert "
                   "train writes it; empty: the one that comes with dcrl"),
    DC_OPTION_TEXT(flags, ball_expert, "", "of antsoccer: the expert that dribbles; the same"),
    DC_OPTION_TEXT(flags, draws, "",
                   "npz with draws (episodes, D): numbers in place of random ones, to compare with "
                   "another generator"),
    DC_OPTION_TEXT(flags, trace, "",
                   "npz for what the first file does not hold, of tables and walkers: qpos and "
                   "actions in float64, the aim, success, ended"),
    {0},
};

// ---- locks ----

static dc_status put_lock(dc_npz_writer *writer, const dc_dataset *data) {
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

// One object: the environment, and the files of its set.
static dc_status print_json(const char *env, const dc_text *files) {
    DC_TRY(dc_text_status(files));
    printf("{\"env\": \"%s\", \"files\": [%s]}\n", env, files->used ? files->bytes : "");
    return DC_OK;
}

static dc_status tell_lock(const char *env, const char *path, int64_t trajectories, int64_t rows) {
    dc_text file;
    dc_text_init(&file);
    dc_text_add(&file, "{\"path\": ");
    dc_json_quote(&file, path);
    dc_text_add(&file, ", \"episodes\": %" PRId64 ", \"rows\": %" PRId64, trajectories, rows);
    dc_text_add(&file, ", \"validation\": false, \"made\": true}");
    dc_status status = print_json(env, &file);
    dc_text_fini(&file);
    return status;
}

static dc_status write_lock(const char *env, const flags *f, const cli_args *args) {
    int horizon;
    if (!cli_ranks_leads()) return DC_OK; // it is made in no time
    DC_TRY(cli_check_name(f->out, ".npz", false));
    dc_lock lock;
    dc_dataset data = {0};
    DC_TRY(dc_lock_horizon(env, &horizon));
    DC_TRY(dc_lock_init(&lock, horizon, (uint64_t)f->seed));
    dc_npz_writer *writer = NULL;
    dc_status status = dc_lock_data(&lock, &data);
    if (status == DC_OK) status = dc_npz_writer_new(&writer, f->out, 6);
    if (status == DC_OK) status = put_lock(writer, &data);
    int64_t rows = data.rows, trajectories = data.traj_count;
    dc_npz_writer_free(writer);
    dc_dataset_fini(&data);
    dc_lock_fini(&lock);
    if (status == DC_OK && !args->quiet)
        printf("wrote %s: %d states of combination-lock\n", f->out, horizon);
    if (status != DC_OK || !args->json) return status;
    return tell_lock(env, f->out, trajectories, rows);
}

// ---- sets of episodes ----

// FILE of FILE.npz, or in a folder OGBench's name.
static dc_status name_stem(const flags *f, const char *name, bool *named, dc_text *stem) {
    size_t n = strlen(f->out);
    DC_TRY(cli_check_name(f->out, ".npz", true));
    *named = n > 4 && !strcmp(f->out + n - 4, ".npz");
    if (*named) {
        dc_text_bytes(stem, f->out, n - 4);
        return dc_text_status(stem);
    }
    DC_TRY(dc_folder_make(f->out));
    dc_text_add(stem, "%s%s%s", f->out, f->out[n - 1] == '/' ? "" : "/", name);
    return dc_text_status(stem);
}

static dc_status make_set(gen_set *set, const flags *f, const dc_env_spec *spec, bool large,
                          dc_text *stem) {
    dc_world *world = NULL;
    double *draws = NULL;
    char name[DC_ENV_NAME_MAX];
    dc_env_data_name(spec, set->gen.kind, large, name);
    dc_status status = name_stem(f, name, &set->named, stem);
    set->stem = stem->bytes;
    if (status == DC_OK && f->draws[0])
        status = dc_gen_read_draws(&set->gen, f->draws, set->episodes + set->episodes / 10, &draws);
    if (status == DC_OK) status = dc_world_new(&world, spec);
    set->gen.world = world;
    if (status == DC_OK) status = gen_set_make(set);
    dc_world_free(world);
    free(draws);
    return status;
}

static dc_status make_with_experts(gen_set *set, const flags *f, const dc_env_spec *spec,
                                   bool large) {
    dc_gen_experts experts;
    dc_text stem;
    DC_TRY(dc_gen_experts_open(&experts, spec,
                               (const char *const[DC_GEN_EXPERTS]){f->expert, f->ball_expert}));
    set->gen.experts = &experts;
    dc_text_init(&stem);
    dc_status status = make_set(set, f, spec, large, &stem);
    dc_text_fini(&stem);
    set->gen.experts = NULL;
    dc_gen_experts_close(&experts);
    return status;
}

static dc_status write_set(const char *env, const flags *f, const cli_args *args) {
    dc_env_spec spec;
    dc_text files;
    gen_set set = {.env = spec.name, .threads = (int)f->threads, .trace = f->trace};
    DC_TRY(dc_env_find(&spec, env));
    if (f->type && spec.data && f->type != (int)spec.data)
        return dc_fail(DC_USAGE, "leave one of them out",
                       "--type and the name '%s' say different things", env);
    dc_data_kind kind = f->type ? (dc_data_kind)f->type : spec.data;
    int64_t large = spec.large ? dc_gen_hundred(&spec) : 0;
    dc_env_plain(&spec); // forms of a task share the same data
    DC_TRY(dc_gen_init(&set.gen, &spec, kind, &set.episodes));
    if (large) set.episodes = large;
    if (f->episodes) set.episodes = f->episodes;
    if (f->rows == 1)
        return dc_fail(DC_USAGE, "give 2 or more",
                       "an episode of one row has no transition (--rows 1)");
    if (f->rows) set.gen.rows = f->rows;
    int64_t shards = f->shards                      ? f->shards
                     : set.episodes > MANY_EPISODES ? (set.episodes - 1) / SHARD_EPISODES + 1
                                                    : 1;
    if (shards > set.episodes)
        return dc_fail(DC_USAGE, "--shards", "%" PRId64 " shards of %" PRId64 " episodes", shards,
                       set.episodes);
    set.shards = (int)shards;
    set.gen.seed = (uint64_t)f->seed;
    if (f->trace[0] && !dc_gen_has_trace(spec.family))
        return dc_fail(DC_USAGE, "leave --trace out", "there is no trace of %s", spec.name);
    dc_text_init(&files);
    set.quiet = args->quiet;
    if (args->json) set.files = &files;
    dc_status status = make_with_experts(&set, f, &spec, large > 0);
    if (status == DC_OK && args->json) status = print_json(spec.name, &files);
    dc_text_fini(&files);
    return status;
}

dc_status cmd_gen(int argc, char **argv) {
    flags f;
    cli_args args = {
        .usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS | CLI_JSON | CLI_QUIET};
    DC_TRY(cli_ranks_join());
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    args.quiet = args.quiet || !cli_ranks_leads();
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl gen ENV -o FILE.npz", "one environment is needed");
    DC_TRY(cli_args_need(&args, "out"));
    if (!f.out[0]) return dc_fail(DC_USAGE, "-o FILE.npz", "--out names no file");
    return dc_env_has_tasks(args.words[0]) ? write_set(args.words[0], &f, &args)
                                           : write_lock(args.words[0], &f, &args);
}
