// Data sets of the public API: files go to data/, a caller's arrays are copied and checked like a file's.
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

static dc_status new_handle(dcrl_dataset **data) {
    *data = calloc(1, sizeof **data);
    return *data ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for a data set");
}

static dc_status give(dcrl_dataset **data, dc_status status) {
    if (status == DC_OK) return DC_OK;
    dcrl_dataset_close(*data);
    *data = NULL;
    return status;
}

dcrl_status dcrl_dataset_open(dcrl_dataset **data, const char *path) {
    DC_API_NEED(data);
    *data = NULL;
    DC_API_NEED(path);
    dc_status status = new_handle(data);
    if (status == DC_OK) status = dc_dataset_load(&(*data)->data, path);
    return dc_api_status(give(data, status));
}

// Copy a caller's array (rows, width) into a new column.
static dc_status copy_column(dc_dataset *data, const char *name, int width, const float *from,
                             float **values) {
    DC_TRY(dc_dataset_add(data, name, width, values));
    uint64_t n = (uint64_t)data->rows * (uint64_t)width;
    memcpy(*values, from, n * sizeof *from);
    uint64_t bad = dc_layout_first_bad(*values, n);
    if (bad == n) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "repair or remove that trajectory", "NaN or Inf in %s at row %lld",
                   name, (long long)(bad / (uint64_t)width));
}

static void fill_table(int64_t rows, const unsigned char *ends, int64_t *start) {
    int64_t t = 0;
    start[0] = 0;
    for (int64_t r = 0; r < rows; r++)
        if (ends[r]) start[++t] = r + 1;
}

static dc_status fill(dc_dataset *data, int64_t rows, int obs, int act, const float *observations,
                      const float *actions, const unsigned char *ends) {
    int64_t count = 0, *start;
    float *values;
    for (int64_t r = 0; r < rows; r++)
        count += ends[r] != 0;
    DC_TRY(dc_dataset_make(data, rows, count, &start));
    fill_table(rows, ends, start);
    DC_TRY(copy_column(data, "obs", obs, observations, &values));
    DC_TRY(copy_column(data, "act", act, actions, &values));
    dc_layout_clip(values, (uint64_t)rows * (uint64_t)act);
    return dc_dataset_seal(data);
}

dcrl_status dcrl_dataset_make(dcrl_dataset **data, int64_t rows, int obs, int act,
                              const float *observations, const float *actions,
                              const unsigned char *ends) {
    DC_API_NEED(data);
    *data = NULL;
    DC_API_NEED(observations && actions && ends);
    DC_API_NEED(rows >= 2 && obs >= 1 && act >= 1);
    if (!ends[rows - 1])
        return dc_api_status(dc_fail(DC_BAD_INPUT, "set ends at the last row",
                                     "the last trajectory has no end (row %lld)",
                                     (long long)(rows - 1)));
    dc_status status = new_handle(data);
    if (status == DC_OK) status = fill(&(*data)->data, rows, obs, act, observations, actions, ends);
    return dc_api_status(give(data, status));
}

int64_t dcrl_dataset_rows(const dcrl_dataset *data) {
    return data ? data->data.rows : 0;
}

int64_t dcrl_dataset_trajectories(const dcrl_dataset *data) {
    return data ? data->data.traj_count : 0;
}

void dcrl_dataset_close(dcrl_dataset *data) {
    if (!data) return;
    dc_dataset_fini(&data->data);
    free(data);
}
