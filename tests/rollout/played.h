// Policies with weights that matter, in checkpoints of real runs: a run is built on a small data set, its
// weights are overwritten (policies begin near zero, which would hide mistakes), and it is saved.
#ifndef PLAYED_H
#define PLAYED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/philox.h"
#include "train/folder.h"
#include "train/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A walk of 40 steps by chance.
static inline void make_walk(dc_dataset *data, int width, int act) {
    enum { ROWS = 41 };
    int64_t *starts;
    float *obs, *actions;
    *data = (dc_dataset){0};
    assert_int_equal(dc_dataset_make(data, ROWS, 1, &starts), DC_OK);
    starts[1] = ROWS;
    assert_int_equal(dc_dataset_add(data, "obs", width, &obs), DC_OK);
    assert_int_equal(dc_dataset_add(data, "act", act, &actions), DC_OK);
    for (uint32_t i = 0; i < (uint32_t)(ROWS * width); i++)
        obs[i] = 2 * dc_unit(dc_philox(6, 98, 0, i).v[0]) - 1;
    for (uint32_t i = 0; i < (uint32_t)(ROWS * act); i++)
        actions[i] = 2 * dc_unit(dc_philox(6, 98, 1, i).v[0]) - 1;
    assert_int_equal(dc_dataset_seal(data), DC_OK);
}

// Vectors that are neither zero nor one; and the policy's last layer, which begins near zero, as large
// as the others.
static inline void stir(dc_run *run) {
    const dc_params *p = &run->agent.params;
    for (int i = 0; i < p->count; i++) {
        const dc_param_row *row = &p->rows[i];
        for (int k = 0; row->init != DC_INIT_XAVIER && k < row->e * row->cols; k++)
            p->slabs.live[row->offset + k] += (dc_real)(0.1 * sin(i + 3 * k));
        if (row->init != DC_INIT_XAVIER || row->gain <= 0 || row->gain >= 1) continue;
        for (int64_t k = 0; k < (int64_t)row->e * row->rows * row->cols; k++)
            p->slabs.live[row->offset + k] *= (dc_real)(1.5 / row->gain);
    }
}

// Start a run in memory of its folder, with options "key", "value", ..., NULL, and stir its weights.
static inline void start_played(dc_run *run, const dc_dataset *data, const char *folder,
                                const char *agent, const char *const *pairs) {
    assert_int_equal(dc_run_configure(run, agent), DC_OK);
    for (; *pairs; pairs += 2)
        if (dc_run_set(run, pairs[0], pairs[1]) != DC_OK) fail_msg("%s", dc_error());
    if (dc_run_start(run, data, folder) != DC_OK) fail_msg("%s", dc_error());
    stir(run);
}

// Write its checkpoint of step 0, whatever its weights are.
static inline void save_played(dc_run *run, char path[DC_PATH_MAX]) {
    assert_int_equal(dc_folder_checkpoint(path, run->folder, 0), DC_OK);
    if (dc_checkpoint_write(run, path) != DC_OK) fail_msg("%s", dc_error());
}

static inline void remove_tree(const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

#endif
