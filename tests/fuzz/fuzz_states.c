// Fuzz target: npz files of states to render, of states and actions to replay, and of draws, for three kinds of
// environment. Nothing is simulated: what is read must keep what simulation relies on. An input is read in one of the
// seven ways, by its size, so that a seed is tried in others as soon as it grows.
#include "files.h"
#include "zip_repair.h"

#include "env/recorded.h"
#include "env/states.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const envs[] = {"pointmaze-medium-v0", "cube-double-v0", "puzzle-3x3-v0"};

static double sink;

static void sum(const double *values, int64_t count) {
    for (int64_t i = 0; values && i < count; i++)
        sink += values[i];
}

static void render(const dc_env_spec *spec) {
    dc_states states;
    if (dc_states_file(&states, spec, files_path("in.npz")) == DC_OK) {
        DC_CHECK(states.count > 0 && states.family == spec->family);
        sum(states.qpos, states.count * spec->family->nq);
        sum(states.extra, states.count * spec->family->extra);
    }
    dc_states_free(&states);
}

static void replay(const dc_env_spec *spec) {
    const dc_env_family *f = spec->family;
    dc_replay r = {0};
    dc_arena arena;
    dc_arena_init(&arena, (size_t)256 << 20);
    if (dc_replay_read(&r, spec, files_path("in.npz"), &arena) == DC_OK) {
        DC_CHECK(r.starts > 0 && r.steps >= 0 && (r.tasks || (r.qpos && r.qvel)));
        sum(r.actions, r.starts * r.steps * f->act);
        sum(r.tasks, r.starts);
        sum(r.qpos, r.starts * f->nq);
        sum(r.qvel, r.starts * f->nv);
        sum(r.target, r.starts * f->oracle);
        sum(r.extra, r.starts * f->extra);
        sum(r.draws, r.draws ? r.starts * r.draw_count : 0);
        for (int64_t i = 0; r.tasks && i < r.starts; i++)
            DC_CHECK(r.tasks[i] >= 1 && r.tasks[i] <= DC_TASKS && r.tasks[i] == floor(r.tasks[i]));
    }
    dc_arena_fini(&arena);
}

static void draws(void) {
    dc_gen gen = {0};
    double *values;
    if (dc_gen_read_draws(&gen, files_path("in.npz"), 2, &values) == DC_OK)
        sum(gen.draws, 2 * gen.draw_count);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static dc_env_spec specs[3];
    files_begin();
    if (!specs[0].family)
        for (int i = 0; i < 3; i++)
            DC_CHECK(dc_env_find(&specs[i], envs[i]) == DC_OK);
    files_put("in.npz", data, size);
    size_t way = size % 7;
    if (way == 6)
        draws();
    else if (way % 2)
        replay(&specs[way / 2]);
    else
        render(&specs[way / 2]);
    return 0;
}
