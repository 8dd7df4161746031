// Data sets of the public API: files go to data/, a caller's arrays are copied and checked like a file's.
#include "algo/agent.h"
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
    DC_API_GIVEN(data);
    *data = NULL;
    DC_API_GIVEN(path);
    dc_status status = new_handle(data);
    if (status == DC_OK) status = dc_dataset_load(&(*data)->data, path);
    return dc_api_status(give(data, status));
}

typedef struct arrays { // a caller's, as dcrl_dataset_make is given them
    int64_t rows;
    int obs, act;
    const float *observations, *actions;
    const unsigned char *ends;
    bool borrow; // observations
} arrays;

static dc_status check_values(const dc_dataset *data, const char *name, int width,
                              const float *values) {
    uint64_t n = (uint64_t)data->rows * (uint64_t)width, bad = dc_layout_first_bad(values, n);
    if (bad == n) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "repair or remove that trajectory", "NaN or Inf in %s at row %lld",
                   name, (long long)(bad / (uint64_t)width));
}

// Copy a caller's array (rows, width) into a new column.
static dc_status copy_column(dc_dataset *data, const char *name, int width, const float *from,
                             float **values) {
    DC_TRY(dc_dataset_add(data, name, width, values));
    memcpy(*values, from, (size_t)data->rows * (size_t)width * sizeof *from);
    return check_values(data, name, width, *values);
}

static void fill_table(int64_t rows, const unsigned char *ends, int64_t *start) {
    int64_t t = 0;
    start[0] = 0;
    for (int64_t r = 0; r < rows; r++)
        if (ends[r]) start[++t] = r + 1;
}

// A caller's array (rows, width) as a column, where it lies.
static dc_status lend_column(dc_dataset *data, const char *name, int width, const float *from) {
    DC_TRY(dc_dataset_lend(data, name, width, from));
    return check_values(data, name, width, from);
}

static dc_status fill(dc_dataset *data, const arrays *from) {
    int64_t rows = from->rows, count = 0, *start;
    const unsigned char *ends = from->ends;
    float *values;
    for (int64_t r = 0; r < rows; r++)
        count += ends[r] != 0;
    if (!count)
        return dc_fail(DC_BAD_INPUT, "set ends at the last row of every episode",
                       "no trajectory ends (ends is 0 at every row)");
    if (!ends[rows - 1])
        return dc_fail(DC_BAD_INPUT,
                       "set ends there if an episode ends with that row, or leave out the rows "
                       "behind the last end",
                       "the last trajectory has no end (row %lld)", (long long)(rows - 1));
    DC_TRY(dc_dataset_make(data, rows, count, &start));
    fill_table(rows, ends, start);
    DC_TRY(from->borrow ? lend_column(data, "obs", from->obs, from->observations)
                        : copy_column(data, "obs", from->obs, from->observations, &values));
    DC_TRY(copy_column(data, "act", from->act, from->actions, &values));
    dc_dataset_settle_actions(data, values, from->act);
    return dc_dataset_seal(data);
}

static dcrl_status make(dcrl_dataset **data, const arrays *from) {
    dc_status status = new_handle(data);
    if (status == DC_OK) status = fill(&(*data)->data, from);
    return dc_api_status(give(data, status));
}

#define NEED_ARRAYS                                                                                \
    DC_API_GIVEN(data);                                                                            \
    *data = NULL;                                                                                  \
    DC_API_GIVEN(observations);                                                                    \
    DC_API_GIVEN(actions);                                                                         \
    DC_API_GIVEN(ends);                                                                            \
    DC_API_NEED(rows >= 2, "a trajectory has 2 or more", "too few rows (%lld)", (long long)rows);  \
    DC_API_NEED(obs >= 1 && act >= 1, "give 1 or more of each",                                    \
                "impossible numbers of values (observations %d, actions %d)", obs, act)

dcrl_status dcrl_dataset_make(dcrl_dataset **data, int64_t rows, int obs, int act,
                              const float *observations, const float *actions,
                              const unsigned char *ends) {
    NEED_ARRAYS;
    return make(data, &(arrays){rows, obs, act, observations, actions, ends, false});
}

dcrl_status dcrl_dataset_borrow(dcrl_dataset **data, int64_t rows, int obs, int act,
                                const float *observations, const float *actions,
                                const unsigned char *ends) {
    NEED_ARRAYS;
    return make(data, &(arrays){rows, obs, act, observations, actions, ends, true});
}

int64_t dcrl_dataset_rows(const dcrl_dataset *data) {
    return data ? data->data.rows : 0;
}

int64_t dcrl_dataset_trajectories(const dcrl_dataset *data) {
    return data ? data->data.traj_count : 0;
}

const int64_t *dcrl_dataset_starts(const dcrl_dataset *data) {
    return data ? data->data.traj_start : NULL;
}

int dcrl_dataset_columns(const dcrl_dataset *data) {
    return data ? data->data.column_count : 0;
}

dcrl_status dcrl_dataset_column(const dcrl_dataset *data, int index, dcrl_column *column) {
    DC_API_GIVEN(data);
    DC_API_GIVEN(column);
    DC_API_NEED(index >= 0 && index < data->data.column_count,
                "dcrl_dataset_columns gives their number", "there is no such column (%d of %d)",
                index, data->data.column_count);
    const dc_column *c = &data->data.columns[index];
    *column = (dcrl_column){.name = c->name,
                            .values = c->values,
                            .bytes = c->bytes,
                            .shape = c->shape,
                            .ndim = c->ndim,
                            .width = c->width};
    return dc_api_status(DC_OK);
}

int dcrl_dataset_choices(const dcrl_dataset *data) {
    const dc_column *act = data ? dc_dataset_column(&data->data, "act") : NULL;
    int count = 0;
    if (!act || dc_count_actions(&data->data, act, &count) != DC_OK) return 0;
    return count;
}

void dcrl_dataset_close(dcrl_dataset *data) {
    if (!data) return;
    dc_dataset_fini(&data->data);
    free(data);
}
