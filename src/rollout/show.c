// One episode of a policy, see show.h.
#include "rollout/show.h"

#include <stdlib.h>

enum { ACT_MAX = 64 };

typedef struct stage {
    const dc_env_spec *spec;
    dc_env env;
    double obs[DC_OBS_MAX], goal[DC_OBS_MAX];
    float row[2 * DC_OBS_MAX], action[ACT_MAX];
} stage;

static dc_status ask(stage *s, dc_actor *actor, uint64_t moment) {
    int obs = s->spec->obs;
    for (int c = 0; c < obs; c++)
        s->row[c] = (float)s->obs[c];
    for (int c = 0; c < s->spec->goal; c++)
        s->row[obs + c] = (float)s->goal[c];
    return dc_actor_act(actor, 1, s->row, &moment, s->action);
}

static dc_status step(stage *s, bool *success) {
    double action[ACT_MAX];
    dc_outcome outcome;
    for (int c = 0; c < s->spec->family->act; c++)
        action[c] = (double)s->action[c];
    DC_TRY(dc_env_step(&s->env, action, s->obs, &outcome));
    *success = outcome.success;
    return DC_OK;
}

static dc_status play(const dc_show *show, stage *s, dc_actor *actor, const atomic_int *stop,
                      dc_states *states, bool *success) {
    DC_TRY(dc_env_reset(&s->env, show->task, s->goal));
    DC_TRY(dc_env_observe(&s->env, s->obs));
    DC_TRY(dc_states_new(states, s->spec, s->spec->horizon + 1));
    dc_states_put(states, 0, &s->env);
    states->count = 1;
    for (int t = 0; t < s->spec->horizon && !*success; t++) {
        if (stop && atomic_load(stop)) return dc_fail(DC_INTERRUPTED, NULL, "stopped");
        if (show->progress) show->progress->fn(show->progress->ctx, t, s->spec->horizon);
        DC_TRY(ask(s, actor, dc_actor_moment(show->task - 1, show->episode, t)));
        DC_TRY(step(s, success));
        dc_states_put(states, states->count++, &s->env);
    }
    return DC_OK;
}

static dc_status check(const dc_env_spec *spec, const dc_actor *actor) {
    const dc_env_family *f = spec->family;
    DC_CHECK(spec->obs <= DC_OBS_MAX && spec->goal <= DC_OBS_MAX && f->act <= ACT_MAX);
    if (actor->in == spec->obs + spec->goal && actor->act == f->act) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "take the environment that it was trained for",
                   "the policy takes %d values and gives %d, %s needs %d and %d", actor->in,
                   actor->act, spec->name, spec->obs + spec->goal, f->act);
}

dc_status dc_show_play(const dc_show *show, const dc_world *world, dc_actor *actor,
                       const atomic_int *stop, dc_states *states, bool *success) {
    dc_philox_draws draws;
    uint64_t number = (uint64_t)(show->task - 1) * (uint64_t)show->episodes;
    *states = (dc_states){0};
    *success = false;
    DC_TRY(check(dc_world_spec(world), actor));
    number += (uint64_t)show->episode;
    stage *s = calloc(1, sizeof *s); // too large for a small stack
    if (!s) return dc_fail(DC_NO_MEMORY, NULL, "no memory to play an episode");
    s->spec = dc_world_spec(world);
    dc_status status = dc_env_new(&s->env, world, dc_draws_philox(&draws, show->seed, number));
    s->env.float_actions = true; // as a float32 policy's actions are
    if (status == DC_OK) status = play(show, s, actor, stop, states, success);
    dc_env_free(&s->env);
    free(s);
    if (status != DC_OK) dc_states_free(states);
    return status;
}
