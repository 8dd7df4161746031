// A copy of an environment behind the public API: alone in a dcrl_env, or one of many in a dcrl_vec. Its
// episodes are a function of (seed, number of the episode), so copies never depend on each other.
#ifndef DC_API_ENV_HANDLE_H
#define DC_API_ENV_HANDLE_H

#include "api/api.h"
#include "env/states.h"
#include "env/view.h"

struct dcrl_env {
    dc_world *own; // Nullable: the world, if it is this copy's alone
    bool lent;     // it belongs to a dcrl_vec
    dc_env env;
    dc_philox_draws draws;
    uint64_t seed, episode;      // of the next reset
    int task, steps;             // of the running episode; task 0: none yet
    double *action, *obs, *goal; // one block of memory, which `action` owns
    double *given;               // (given_count) numbers that the next reset draws; Nullable
    int64_t given_count;
    dc_view *view; // Nullable: made by the first picture
    dc_states shown;
    int width, height; // of the view
};

// A copy in a world. Borrows: world
dc_status dc_handle_init(dcrl_env *e, const dc_world *world, uint64_t seed);
void dc_handle_fini(dcrl_env *e); // safe on a zeroed struct; does not free `own`
// Start an episode of a task, 0 for one at random; leaves e->obs and e->goal.
dc_status dc_handle_reset(dcrl_env *e, int task);
// Take e->action; leaves e->obs. floats: its numbers are float32.
dc_status dc_handle_step(dcrl_env *e, bool floats, dc_outcome *outcome);

#endif
