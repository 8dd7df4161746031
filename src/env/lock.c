// combination-lock, see lock.h.
#include "env/lock.h"

#include "base/options.h"
#include "base/philox.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HORIZON_MIN = 4, HORIZON_MAX = 1 << 20 };

static int bits_for(int states) {
    int bits = 0;
    while (1 << bits < states)
        bits++;
    return bits;
}

// A seeded permutation of 0 ... n-1 (Fisher-Yates).
static void shuffle(int *v, int n, uint64_t seed) {
    for (int i = 0; i < n; i++)
        v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k =
            (int)dc_below(dc_philox(seed, DC_STREAM_LOCK, 0, (uint32_t)i).v[0], (uint32_t)i + 1);
        int swap = v[i];
        v[i] = v[k];
        v[k] = swap;
    }
}

dc_status dc_lock_init(dc_lock *lock, int horizon, uint64_t seed) {
    *lock = (dc_lock){0};
    if (horizon < HORIZON_MIN || horizon > HORIZON_MAX)
        return dc_fail(DC_USAGE, NULL, "the horizon must be between %d and %d (%d)", HORIZON_MIN,
                       HORIZON_MAX, horizon);
    *lock = (dc_lock){.horizon = horizon, .bits = bits_for(horizon)};
    lock->code = calloc((size_t)horizon, sizeof *lock->code);
    lock->answer = calloc((size_t)horizon, sizeof *lock->answer);
    if (!lock->code || !lock->answer) {
        dc_lock_fini(lock);
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for a lock of %d states", horizon);
    }
    shuffle(lock->code, horizon, seed);
    for (int s = 0; s < horizon; s++)
        lock->answer[s] = (int)(dc_philox(seed, DC_STREAM_LOCK, 1, (uint32_t)s).v[0] & 1);
    return DC_OK;
}

void dc_lock_fini(dc_lock *lock) {
    free(lock->code);
    free(lock->answer);
    *lock = (dc_lock){0};
}

void dc_lock_reset(dc_lock *lock) {
    lock->state = 0;
}

int dc_lock_step(dc_lock *lock, int action) {
    if (action != lock->answer[lock->state])
        lock->state = 0;
    else if (lock->state < lock->horizon - 1)
        lock->state++;
    return lock->state;
}

void dc_lock_observe(const dc_lock *lock, int state, float *obs) {
    for (int b = 0; b < lock->bits; b++)
        obs[b] = (float)(lock->code[state] >> b & 1);
}

static dc_status fill(const dc_lock *lock, dc_dataset *data) {
    int64_t *starts;
    float *obs, *act;
    DC_TRY(dc_dataset_make(data, lock->horizon, 1, &starts));
    DC_TRY(dc_dataset_add(data, "obs", lock->bits, &obs));
    DC_TRY(dc_dataset_add(data, "act", 1, &act));
    data->columns[data->column_count - 1].whole = true;
    starts[0] = 0;
    starts[1] = lock->horizon;
    for (int s = 0; s < lock->horizon; s++) {
        dc_lock_observe(lock, s, obs + (int64_t)s * lock->bits);
        act[s] = (float)lock->answer[s];
    }
    return dc_dataset_seal(data);
}

dc_status dc_lock_data(const dc_lock *lock, dc_dataset *data) {
    dc_status status = fill(lock, data);
    if (status != DC_OK) dc_dataset_fini(data);
    return status;
}

static dc_status unknown(const char *env) {
    char name[16];
    int n = (int)strcspn(env, "-");
    snprintf(name, sizeof name, "%.*s", n < 15 ? n : 15, env);
    bool near = strcmp(name, "lock") != 0 && dc_nearest(name, (const char *const[]){"lock"}, 1);
    if (near && env[n])
        return dc_fail(DC_USAGE, NULL, "unknown environment '%s': did you mean 'lock%s'?", env,
                       env + n);
    return dc_fail(DC_USAGE,
                   "dcrl list envs names them; a lock is lock-H with H from 4 to 1048576, for "
                   "instance lock-512",
                   "unknown environment '%s'", env);
}

dc_status dc_lock_horizon(const char *env, int *horizon) {
    long h = 0;
    char *end = NULL;
    if (!strncmp(env, "lock-", 5) && env[5] >= '1' && env[5] <= '9') h = strtol(env + 5, &end, 10);
    if (!end || *end || h < HORIZON_MIN || h > HORIZON_MAX) return unknown(env);
    *horizon = (int)h;
    return DC_OK;
}
