// The batch of `dcrl grad`, see grad_batch.h.
#include "grad_batch.h"

#include "data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_HERE = 1 << 20 };

// ---- what a method needs ----

// Columns for arrays that the method needs beside the usual ones.
static dc_status add_needs(dc_dataset *data, const dc_need *need, int64_t obs, int64_t goal) {
    float *values;
    for (; need && need->name; need++)
        DC_TRY(dc_dataset_add(data, need->name,
                              need->width == DC_NEED_OBS    ? obs
                              : need->width == DC_NEED_GOAL ? (goal ? goal : obs)
                                                            : 1,
                              &values));
    return DC_OK;
}

// A data set that is wide enough for the goal representation.
static dc_status tiny_data(dc_dataset *data, const dc_agent_options *options,
                           const dc_need *needs) {
    int64_t *starts, width = 4;
    float *values;
    if (options->picture.height) width = dc_picture_cells(options->picture);
    for (int k = 0; k < options->rep_size; k++)
        width = options->rep[k] >= width ? options->rep[k] + 1 : width;
    DC_TRY(dc_dataset_make(data, 4, 1, &starts));
    starts[1] = 4;
    DC_TRY(dc_dataset_add(data, "obs", width, &values));
    DC_TRY(dc_dataset_add(data, "act", 1, &values));
    DC_TRY(add_needs(data, needs, width, options->rep_size));
    return dc_dataset_seal(data);
}

// The need that a feed takes; NULL: what it takes is none.
static const dc_need *need_of(const grad_inputs *in, const dc_agent *a, const dc_feed *feed) {
    for (const dc_need *need = in->needs; need && need->name; need++) {
        bool goal = feed->column == &a->goals && !strcmp(need->name, a->options.goal_column);
        if (goal || (feed->column && feed->column == dc_dataset_column(a->data, need->name)))
            return need;
    }
    return NULL;
}

static void list_columns(grad_inputs *in, const dc_agent *a) {
    for (int f = 0; f < a->feeds.feed_count; f++) {
        const dc_feed *feed = &a->feeds.feeds[f];
        const dc_need *need = need_of(in, a, feed);
        if (!need) continue;
        grad_column c = {.column = need->name, .rule = feed->rule};
        c.width = need->width == DC_NEED_ONE ? 1 : need->width == DC_NEED_GOAL ? in->goal : 0;
        snprintf(c.name, sizeof c.name, "%s_%s", in->rule[feed->rule].name, need->name);
        bool listed = false;
        for (int k = 0; k < in->column_count; k++)
            listed = listed || !strcmp(in->column[k].name, c.name);
        DC_CHECK(in->column_count < GRAD_COLUMNS);
        if (!listed) in->column[in->column_count++] = c;
    }
}

static void list_inputs(grad_inputs *in, const dc_agent *a) {
    const dc_column *act = dc_dataset_column(a->data, "act");
    in->count = a->rows.count;
    in->longest = !dc_form_acts(a->method.form);
    for (int r = 0; r < in->count; r++) {
        grad_rule *rule = &in->rule[r];
        snprintf(rule->name, sizeof rule->name, "%s", a->rows.rule[r].name);
        snprintf(rule->action, sizeof rule->action, "%s_action", a->rows.rule[r].name);
        rule->about = a->rows.rule[r].about;
        rule->counts = dc_row_counts(&a->rows.rule[r]);
        rule->times = dc_row_times(&a->rows.rule[r]);
        rule->first = in->rows;
        in->rows += rule->times;
    }
    for (int f = 0; f < a->feeds.feed_count; f++) {
        const dc_feed *feed = &a->feeds.feeds[f];
        if (feed->column == act) in->rule[feed->rule].has_action = true;
    }
    list_columns(in, a);
    in->draw_count = a->feeds.draw_count;
    memcpy(in->draw, a->feeds.draws + 1, sizeof in->draw);
}

dc_status grad_inputs_find(grad_inputs *in, const dc_run *run) {
    dc_dataset data = {0};
    dc_agent agent = {0};
    dc_agent_options options;
    *in = (grad_inputs){.needs = run->algo->needs};
    DC_TRY(dc_run_agent_options(run, &options));
    in->goal = options.rep_size;
    options.batch = 1;
    options.hidden = (dc_int_list){1, {1}};
    dc_status status = tiny_data(&data, &options, in->needs);
    if (status == DC_OK)
        status = dc_agent_init(&agent, run->algo, run->config, &options, &data, NULL);
    if (status == DC_OK) list_inputs(in, &agent);
    dc_agent_fini(&agent);
    dc_dataset_fini(&data);
    return status;
}

static void print_one(const char *name, const char *shape, const char *about, bool json,
                      bool *first) {
    if (json)
        printf("%s{\"name\": \"%s\", \"shape\": \"%s\", \"type\": \"number\", \"meaning\": \"%s\"}",
               *first ? "{\"inputs\": [" : ", ", name, shape, about);
    else
        printf("%-22s %-17s %s\n", name, shape, about);
    *first = false;
}

void grad_inputs_print(const grad_inputs *in, bool json) {
    bool first = true;
    for (int r = 0; r < in->count; r++) {
        const grad_rule *rule = &in->rule[r];
        char rows[32] = "batch", shape[48];
        if (rule->times > 1) snprintf(rows, sizeof rows, "batch * %d", rule->times);
        snprintf(shape, sizeof shape, rule->counts ? "(%s)" : "(%s, width)", rows);
        print_one(rule->name, shape, rule->about, json, &first);
        snprintf(shape, sizeof shape, "(%s, actions)", rows);
        if (rule->has_action) print_one(rule->action, shape, "action there", json, &first);
    }
    for (int c = 0; c < in->column_count; c++)
        print_one(in->column[c].name, "(batch, columns)", "another array's rows there", json,
                  &first);
    for (int d = 0; d < in->draw_count; d++) {
        bool noise = in->draw[d].kind == DC_DRAW_NOISE;
        print_one(in->draw[d].name, noise ? "(batch, columns)" : "(batch)",
                  noise ? "standard normals, a row for each of the batch" : "uniform, 0 to 1", json,
                  &first);
    }
    if (in->longest)
        print_one("longest", "()",
                  "states of the longest trajectory, where targets are clipped (optional)", json,
                  &first);
    if (json) puts("]}");
}

// ---- reading ----

static dc_status misfit(const dc_npz *npz, const char *name) {
    return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s does not fit the batch", npz->path, name);
}

static dc_status read_head(const dc_npz *npz, const char *name, int ndim, dc_npy *npy,
                           const dc_npz_entry **entry) {
    *entry = dc_npz_find(npz, name);
    if (!*entry)
        return dc_fail(DC_BAD_INPUT, "dcrl grad --describe lists what is needed",
                       "%s has no array %s", npz->path, name);
    DC_TRY(dc_npz_head(npz, *entry, npy));
    if (npy->ndim != ndim || npy->count == 0)
        return dc_fail(DC_BAD_INPUT, NULL, "%s: array %s must have %d dimension%s", npz->path, name,
                       ndim, ndim == 1 ? "" : "s");
    return DC_OK;
}

static dc_status read_doubles(const dc_npz *npz, const char *name, int ndim, dc_npy *npy,
                              double **values) {
    const dc_npz_entry *entry;
    DC_TRY(read_head(npz, name, ndim, npy, &entry));
    *values = malloc((size_t)npy->count * sizeof **values);
    if (!*values) return dc_fail(DC_NO_MEMORY, NULL, "no memory for array %s", name);
    dc_status status = dc_npz_doubles(npz, entry, npy, *values);
    if (status != DC_OK) free(*values);
    return status;
}

// Rows of the batch and width by the first array of a kind, and whether it holds whole numbers.
static dc_status read_width(const dc_npz *npz, const grad_inputs *in, bool action, int64_t *size,
                            int64_t *width, bool *whole) {
    for (int r = 0; r < in->count; r++) {
        const grad_rule *rule = &in->rule[r];
        const dc_npz_entry *entry;
        dc_npy npy;
        if (rule->counts || rule->times > 1 || (action && !rule->has_action)) continue;
        DC_TRY(read_head(npz, action ? rule->action : rule->name, 2, &npy, &entry));
        if (npy.shape[0] > SIZE_MAX_HERE || npy.shape[1] < 1 || npy.shape[1] > SIZE_MAX_HERE)
            return misfit(npz, action ? rule->action : rule->name);
        *size = npy.shape[0];
        *width = npy.shape[1];
        *whole = !dc_dtype_is_float(npy.type);
        return DC_OK;
    }
    return DC_OK;
}

// One array (size, width) as floats.
static dc_status read_rows(const dc_npz *npz, const char *name, int64_t size, int64_t width,
                           float *out) {
    dc_npy npy;
    double *values;
    DC_TRY(read_doubles(npz, name, 2, &npy, &values));
    bool fits = npy.shape[0] == size && npy.shape[1] == width;
    for (int64_t i = 0; fits && i < size * width; i++)
        out[i] = (float)values[i];
    free(values);
    return fits ? DC_OK : misfit(npz, name);
}

static dc_status read_counts(const dc_npz *npz, const char *name, int64_t size, int64_t **out) {
    dc_npy npy;
    double *values;
    DC_TRY(read_doubles(npz, name, 1, &npy, &values));
    bool fits = npy.shape[0] == size;
    *out = fits ? calloc((size_t)size, sizeof **out) : NULL;
    for (int64_t i = 0; *out && i < size; i++)
        (*out)[i] = values[i] > -1e15 && values[i] < 1e15 ? (int64_t)values[i] : -1;
    free(values);
    if (!fits) return misfit(npz, name);
    return *out ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for the batch");
}

static dc_status read_draw(const dc_npz *npz, grad_batch *b, const dc_draw *draw, int d) {
    dc_npy npy;
    double *values;
    int ndim = draw->kind == DC_DRAW_NOISE ? 2 : 1;
    DC_TRY(read_doubles(npz, draw->name, ndim, &npy, &values));
    bool fits = npy.shape[0] == b->size;
    b->draw_width[d] = ndim == 2 ? npy.shape[1] : 1;
    b->draws[d] = fits ? malloc((size_t)npy.count * sizeof(float)) : NULL;
    for (int64_t i = 0; b->draws[d] && i < (int64_t)npy.count; i++)
        b->draws[d][i] = (float)values[i];
    free(values);
    if (!fits) return misfit(npz, draw->name);
    return b->draws[d] ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory for the batch");
}

static dc_status read_column(const dc_npz *npz, grad_batch *b, const grad_inputs *in,
                             const grad_column *c) {
    int64_t width = c->width ? c->width : b->width, first = in->rule[c->rule].first * b->size;
    const dc_column *column = dc_dataset_column(&b->data, c->column);
    float *values = (float *)(uintptr_t)column->values; // the batch's own
    return read_rows(npz, c->name, b->size, width, values + first * width);
}

static dc_status read_arrays(grad_batch *b, const grad_inputs *in, const dc_npz *npz, float *obs,
                             float *act) {
    for (int r = 0; r < in->count; r++) {
        const grad_rule *rule = &in->rule[r];
        if (rule->counts) {
            DC_TRY(read_counts(npz, rule->name, b->size, &b->counts[r]));
            continue;
        }
        int64_t first = rule->first * b->size, rows = rule->times * b->size;
        DC_TRY(read_rows(npz, rule->name, rows, b->width, obs + first * b->width));
        if (rule->has_action)
            DC_TRY(read_rows(npz, rule->action, rows, b->act_width, act + first * b->act_width));
    }
    for (int c = 0; c < in->column_count; c++)
        DC_TRY(read_column(npz, b, in, &in->column[c]));
    for (int d = 0; d < in->draw_count; d++)
        DC_TRY(read_draw(npz, b, &in->draw[d], d));
    return DC_OK;
}

static dc_status read_all(grad_batch *b, const grad_inputs *in, const dc_npz *npz) {
    int64_t *starts;
    float *obs, *act = NULL;
    bool whole = false;
    DC_TRY(read_width(npz, in, true, &b->size, &b->act_width, &whole));
    bool actions_whole = whole;
    DC_TRY(read_width(npz, in, false, &b->size, &b->width, &whole));
    DC_TRY(dc_dataset_make(&b->data, in->rows * b->size, 1, &starts));
    starts[0] = 0;
    starts[1] = in->rows * b->size;
    DC_TRY(dc_dataset_add(&b->data, "obs", b->width, &obs));
    if (b->act_width) DC_TRY(dc_dataset_add(&b->data, "act", b->act_width, &act));
    if (act) b->data.columns[b->data.column_count - 1].whole = actions_whole;
    DC_TRY(add_needs(&b->data, in->needs, b->width, in->goal));
    DC_TRY(read_arrays(b, in, npz, obs, act));
    if (in->longest && dc_npz_find(npz, "longest")) {
        dc_npy npy;
        double *longest;
        DC_TRY(read_doubles(npz, "longest", 0, &npy, &longest));
        b->longest = *longest;
        free(longest);
    }
    return dc_dataset_seal(&b->data);
}

dc_status grad_batch_read(grad_batch *b, const grad_inputs *in, const char *path) {
    dc_npz npz;
    *b = (grad_batch){0};
    DC_TRY(dc_npz_open(&npz, path));
    dc_status status = read_all(b, in, &npz);
    dc_npz_close(&npz);
    return status;
}

dc_status grad_batch_give(const grad_batch *b, const grad_inputs *in, dc_agent *agent) {
    for (int r = 0; r < in->count; r++) {
        const grad_rule *rule = &in->rule[r];
        int64_t *stream = dc_sampler_fix(agent->sampler, r);
        for (int64_t i = 0; i < rule->times * b->size; i++)
            stream[i] = rule->counts ? b->counts[r][i] : rule->first * b->size + i;
    }
    for (int d = 0; d < in->draw_count; d++) {
        dc_draw *draw = &agent->feeds.draws[d + 1];
        if (b->draw_width[d] != draw->columns)
            return dc_fail(DC_BAD_INPUT, NULL, "array %s must have %d columns, not %lld",
                           draw->name, draw->columns, (long long)b->draw_width[d]);
        draw->given = b->draws[d];
    }
    return DC_OK;
}

void grad_batch_free(grad_batch *b) {
    for (int r = 0; r < DC_RULES_MAX; r++)
        free(b->counts[r]);
    for (int d = 0; d < DC_DRAWS_MAX; d++)
        free(b->draws[d]);
    dc_dataset_fini(&b->data);
    *b = (grad_batch){0};
}
