// Many copies of an environment that step together, by threads of the library. Copy i is a dcrl_env with the seed
// `seed + i`: its episodes depend neither on the other copies nor on the number of threads. Numbers are doubles, as the
// simulator has them.
#ifndef DCRL_VEC_H
#define DCRL_VEC_H

#include <dcrl/env.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dcrl_vec dcrl_vec;

// What becomes of a copy whose episode has ended, by its goal or by its time limit.
typedef enum dcrl_autoreset {
    DCRL_RESET_NEVER = 0, // it goes on until dcrl_vec_reset
    DCRL_RESET_NEXT_STEP, // the next step resets it and takes no action
    DCRL_RESET_SAME_STEP  // the step that ended it resets it
} dcrl_autoreset;

// What a step of all copies led to. The arrays are the caller's; those that are NULL are left out, but for the first.
typedef struct dcrl_vec_step_out {
    double *observations; // (count, obs)
    double
        *rewards; // (count) 1 for a reached goal, else 0; in single-task form minus what is missing
    unsigned char *successes; // (count) 1 for a reached goal, which ends the episode
    unsigned char *truncated; // (count) 1 when the time limit is reached
    unsigned char
        *began; // (count) 1 for a copy that was reset: observation and goal are the new episode's
    double *
        last_observations; // (count, obs) with DCRL_RESET_SAME_STEP: the observation that ended the episode
} dcrl_vec_step_out;

// Open count copies; threads 0 takes all cores.
DCRL_API dcrl_status dcrl_vec_open(dcrl_vec **vec, const char *name, int count, uint64_t seed,
                                   dcrl_autoreset autoreset, int threads);
DCRL_API int dcrl_vec_count(const dcrl_vec *vec);
// A copy, for all that env.h says but reset, step and close; not while dcrl_vec_reset or dcrl_vec_step run. NULL if
// there is none of that number. Borrows: vec
DCRL_API dcrl_env *dcrl_vec_env(dcrl_vec *vec, int index);
// Tasks (count) of all episodes that begin from now on, 1 ... tasks, or 0 for one at random, as it is at first.
DCRL_API dcrl_status dcrl_vec_set_tasks(dcrl_vec *vec, const int *tasks);
// Start episodes in all copies, or in those (count) that are marked; writes the first observations (count, obs) and the
// goals (count, goal) of these. Nullable: marked
DCRL_API dcrl_status dcrl_vec_reset(dcrl_vec *vec, const unsigned char *marked,
                                    double *observations, double *goals);
// Take actions (count, act), cut to [-1, 1]. floats: they were float32 numbers, with which OGBench computes a little
// differently. After an error the copies that it is about must be reset.
DCRL_API dcrl_status dcrl_vec_step(dcrl_vec *vec, const double *actions, int floats,
                                   const dcrl_vec_step_out *out);
// Goals (count, goal) of the running episodes.
DCRL_API dcrl_status dcrl_vec_goals(const dcrl_vec *vec, double *goals);
// Free all copies. Nullable: vec
DCRL_API void dcrl_vec_close(dcrl_vec *vec);

#ifdef __cplusplus
}
#endif
#endif
