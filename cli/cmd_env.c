// dcrl env: the simulation seen from outside. `replay` plays given actions from given states, or
// from resets, and writes what came of it; `model` writes the compiled model for MuJoCo's own
// tools. Both are how the tests compare with the Python package.
#include "args.h"
#include "cli.h"

#include "data/npz.h"
#include "env/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl env replay ENV --in FILE.npz --out FILE.npz [--seed S] [--threads T]\n"
    "       dcrl env model ENV --out FILE.mjb\n"
    "\n"
    "replay takes qpos (S,nq), qvel (S,nv) and actions (S,T,A), and where wanted goal_xy (S,2); it "
    "sets each start\n"
    "state, plays the actions and writes qpos, qvel, obs, success, reward with shapes (S,T+1,...), "
    "goal_xy (S,2).\n"
    "With an arm, button_states (S,B) belong to the state, and in place of goal_xy stands target "
    "(S,G): positions of\n"
    "cubes, states of buttons, positions of drawer and window that count as success.\n"
    "With tasks (S) in place of qpos and qvel each start is a reset to that task (1 to 5), and "
    "goal (S,G) is written,\n"
    "too. draws (S,D) stands for the random numbers of resets and teleports, in order. float32 "
    "actions are taken as\n"
    "OGBench takes them.\n"
    "model writes the compiled model.\n"
    "\n"
    "example: dcrl env replay antmaze-medium-v0 --in starts.npz --out played.npz\n";

typedef struct flags {
    char in[DC_TEXT_MAX], out[DC_TEXT_MAX];
    int64_t seed, threads;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, in, "", "states and actions"),
    DC_OPTION_TEXT(flags, out, "", "file to write"),
    DC_OPTION_INT(flags, seed, "0", 0, 9e15, "seed of draws that are not given"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024, "0: one for every core"),
    {0},
};

// ---- writing ----

static dc_status take_output(dc_arena *arena, const dc_env_spec *spec, dc_replay *r) {
    size_t rows = (size_t)r->starts * (size_t)(r->steps + 1), word = sizeof(double);
    r->out_qpos = dc_arena_take(arena, rows * (size_t)spec->family->nq * word);
    r->out_qvel = dc_arena_take(arena, rows * (size_t)spec->family->nv * word);
    r->out_obs = dc_arena_take(arena, rows * (size_t)spec->obs * word);
    r->success = dc_arena_take(arena, rows);
    r->reward = dc_arena_take(arena, rows * word);
    r->out_goal = dc_arena_take(arena, (size_t)r->starts * (size_t)spec->goal * word);
    r->out_target = dc_arena_take(arena, (size_t)r->starts * (size_t)spec->family->oracle * word);
    r->out_extra = dc_arena_take(arena, rows * (size_t)spec->family->extra);
    bool all = r->out_qpos && r->out_qvel && r->out_obs && r->success && r->reward && r->out_goal &&
               r->out_target && r->out_extra;
    return all ? DC_OK : DC_NO_MEMORY;
}

static dc_status put(dc_npz_writer *writer, const dc_env_spec *spec, const dc_replay *r) {
    int64_t s = r->starts, t = r->steps + 1;
    const dc_env_family *f = spec->family;
    DC_TRY(dc_npz_writer_put(writer, "qpos", DC_F8, 3, (int64_t[]){s, t, f->nq}, r->out_qpos));
    DC_TRY(dc_npz_writer_put(writer, "qvel", DC_F8, 3, (int64_t[]){s, t, f->nv}, r->out_qvel));
    DC_TRY(dc_npz_writer_put(writer, "obs", DC_F8, 3, (int64_t[]){s, t, spec->obs}, r->out_obs));
    DC_TRY(dc_npz_writer_put(writer, "success", DC_B1, 2, (int64_t[]){s, t}, r->success));
    DC_TRY(dc_npz_writer_put(writer, "reward", DC_F8, 2, (int64_t[]){s, t}, r->reward));
    DC_TRY(dc_npz_writer_put(writer, dc_env_target_name(f), DC_F8, 2, (int64_t[]){s, f->oracle},
                             r->out_target));
    if (f->extra)
        DC_TRY(dc_npz_writer_put(writer, dc_env_extra_facts(f)->name, DC_U1, 3,
                                 (int64_t[]){s, t, f->extra}, r->out_extra));
    if (r->tasks)
        DC_TRY(
            dc_npz_writer_put(writer, "goal", DC_F8, 2, (int64_t[]){s, spec->goal}, r->out_goal));
    return dc_npz_writer_save(writer);
}

// ---- the commands ----

static dc_status play(const flags *f, const dc_env_spec *spec, dc_arena *arena) {
    dc_replay r = {.seed = (uint64_t)f->seed};
    dc_world *world = NULL;
    dc_pool *pool = NULL;
    dc_npz_writer *writer = NULL;
    DC_TRY(dc_replay_read(&r, spec, f->in, arena));
    DC_TRY(take_output(arena, spec, &r));
    dc_status status = dc_world_new(&world, spec);
    if (status == DC_OK) status = dc_pool_new(&pool, (int)f->threads);
    if (status == DC_OK) status = dc_replay_run(&r, world, pool);
    if (status == DC_OK) status = dc_npz_writer_new(&writer, f->out, 1);
    if (status == DC_OK) status = put(writer, spec, &r);
    dc_npz_writer_free(writer);
    dc_pool_free(pool);
    dc_world_free(world);
    return status;
}

static dc_status replay(const flags *f, const dc_env_spec *spec) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_status status = play(f, spec, &arena);
    dc_arena_fini(&arena);
    return status;
}

static dc_status model(const flags *f, const dc_env_spec *spec) {
    dc_world *world;
    DC_TRY(dc_world_new(&world, spec));
    dc_status status = dc_world_save(world, f->out);
    dc_world_free(world);
    return status;
}

dc_status cmd_env(int argc, char **argv) {
    static const char *const names[] = {"replay", "model"};
    flags f;
    dc_env_spec spec;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 2)
        return dc_fail(DC_USAGE, "dcrl env replay ENV --in FILE.npz --out FILE.npz",
                       "what to do and one environment are needed");
    const char *word = args.words[0];
    if (strcmp(word, names[0]) != 0 && strcmp(word, names[1]) != 0) {
        const char *near = dc_nearest(word, names, 2);
        return dc_fail(DC_USAGE, "see dcrl env --help", "unknown sub-command (%s)%s%s", word,
                       near ? ", perhaps " : "", near ? near : "");
    }
    DC_TRY(dc_env_find(&spec, args.words[1]));
    DC_TRY(cli_args_need(&args, "out"));
    bool compiled = !strcmp(word, names[1]);
    DC_TRY(cli_check_name(f.out, compiled ? ".mjb" : ".npz", false));
    if (compiled) return model(&f, &spec);
    DC_TRY(cli_args_need(&args, "in"));
    return replay(&f, &spec);
}
