// Layout, see layout.h. Files come from anywhere, so a file is checked here once and nowhere later:
// sizes agree, observations and actions are finite, flags are 0 or 1, the last trajectory ends.
#include "data/layout.h"

#include "base/log.h"

#include <math.h>
#include <string.h>

static const char expected[] =
    "a data set has arrays observations (N, ...), actions (N, ...) and terminals (N)";

// ---- arrays ----

// The names of what a file holds, for the error that says what it does not hold.
static dc_status missing(const dc_npz *npz, const char *name) {
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < npz->count && used + 40 < sizeof list; i++) {
        const char *text = npz->entries[i].name;
        size_t n = strlen(text) < 30 ? strlen(text) : 30;
        if (used) list[used++] = ' ';
        memcpy(list + used, text, n);
        used += n;
        list[used] = 0;
    }
    return dc_fail(DC_BAD_INPUT, expected, "no array '%s' (%s has: %s)", name, npz->path,
                   used ? list : "nothing");
}

static dc_status find(const dc_npz *npz, const char *name, const dc_npz_entry **entry,
                      dc_npy *npy) {
    *entry = dc_npz_find(npz, name);
    if (!*entry) return missing(npz, name);
    DC_TRY(dc_npz_head(npz, *entry, npy));
    if (npy->ndim == 0 || npy->count == 0)
        return dc_fail(DC_BAD_INPUT, expected, "array '%s' has no rows (%s)", name, npz->path);
    return DC_OK;
}

// Enter an array with rows as a column.
static dc_status enter(dc_layout *l, const char *name, const dc_npz_entry *entry,
                       const dc_npy *npy) {
    const char *path = l->npz->path;
    int64_t width = (int64_t)(npy->count / (uint64_t)npy->shape[0]);
    for (int c = 0; c < l->count; c++)
        if (strcmp(l->columns[c].name, name) == 0)
            return dc_fail(DC_BAD_INPUT, "rename one of them", "%s: two columns of one name (%s)",
                           path, name);
    if (l->count == DC_COLUMNS_MAX)
        return dc_fail(DC_BAD_INPUT, "leave out arrays that training does not need",
                       "%s: more than %d columns (%s)", path, DC_COLUMNS_MAX, name);
    if (width > DC_WIDTH_MAX)
        return dc_fail(DC_BAD_INPUT, "give every row 1 to 2^24 values",
                       "impossible row size (%s: %lld values)", name, (long long)width);
    dc_layout_column *column = &l->columns[l->count++];
    *column = (dc_layout_column){.name = name, .entry = entry, .npy = *npy, .width = (int)width};
    column->type = npy->type == DC_U1 && strcmp(name, "act") != 0 ? DC_TYPE_U8 : DC_TYPE_F32;
    return DC_OK;
}

static dc_status same_rows(const dc_layout *l, const char *name, const dc_npy *npy) {
    if (npy->shape[0] == l->rows) return DC_OK;
    return dc_fail(DC_BAD_INPUT, expected, "'observations' has %lld rows but '%s' has %lld (%s)",
                   (long long)l->rows, name, (long long)npy->shape[0], l->npz->path);
}

// An array of one number a row; any other that has this name is a column like others.
static dc_status find_timeouts(dc_layout *l) {
    const dc_npz_entry *entry = dc_npz_find(l->npz, "timeouts");
    dc_npy npy;
    if (!entry) return DC_OK;
    dc_status status = dc_npz_head(l->npz, entry, &npy);
    if (status == DC_UNSUPPORTED) return DC_OK;
    DC_TRY(status);
    if (npy.ndim == 0 || npy.shape[0] != l->rows || npy.count != (uint64_t)l->rows) return DC_OK;
    l->timeouts = entry;
    l->timeouts_npy = npy;
    return DC_OK;
}

static dc_status read_main(dc_layout *l) {
    const dc_npz_entry *obs = NULL, *act = NULL;
    dc_npy obs_npy = {0}, act_npy = {0};
    DC_TRY(find(l->npz, "observations", &obs, &obs_npy));
    DC_TRY(find(l->npz, "actions", &act, &act_npy));
    DC_TRY(find(l->npz, "terminals", &l->terminals, &l->terminals_npy));
    l->rows = obs_npy.shape[0];
    DC_TRY(same_rows(l, "actions", &act_npy));
    DC_TRY(same_rows(l, "terminals", &l->terminals_npy));
    if (l->terminals_npy.count != (uint64_t)l->rows)
        return dc_fail(DC_BAD_INPUT, expected, "'terminals' has more than one value a row (%s)",
                       l->npz->path);
    DC_TRY(enter(l, "obs", obs, &obs_npy));
    DC_TRY(enter(l, "act", act, &act_npy));
    l->columns[0].finite = l->columns[1].finite = true;
    l->columns[1].real = dc_dtype_is_float(act_npy.type);
    return find_timeouts(l);
}

static bool is_main(const char *name) {
    return !strcmp(name, "observations") || !strcmp(name, "actions") || !strcmp(name, "terminals");
}

// All other arrays of as many rows; what is not made of numbers is passed over.
static dc_status read_others(dc_layout *l) {
    for (size_t i = 0; i < l->npz->count; i++) {
        const dc_npz_entry *entry = &l->npz->entries[i];
        dc_npy npy;
        if (is_main(entry->name) || entry == l->timeouts) continue;
        dc_status status = dc_npz_head(l->npz, entry, &npy);
        if (status == DC_UNSUPPORTED) {
            dc_log(DC_WARN, "left out: %s", dc_error());
            continue;
        }
        DC_TRY(status);
        if (npy.ndim == 0 || npy.shape[0] != l->rows || npy.count == 0) continue;
        DC_TRY(enter(l, entry->name, entry, &npy));
    }
    return DC_OK;
}

dc_status dc_layout_read(dc_layout *layout, const dc_npz *npz) {
    *layout = (dc_layout){.npz = npz};
    DC_TRY(read_main(layout));
    return read_others(layout);
}

// ---- values ----

bool dc_layout_same_bytes(const dc_layout_column *column) {
    return column->type == DC_TYPE_U8 || column->npy.type == DC_F4;
}

// Index of the first value that is NaN or infinite, or n. Blocks keep the loop free of exits.
uint64_t dc_layout_first_bad(const float *v, uint64_t n) {
    enum { BLOCK = 4096 };
    for (uint64_t start = 0; start < n; start += BLOCK) {
        uint64_t end = n - start < BLOCK ? n : start + BLOCK;
        uint32_t most = 0;
        for (uint64_t i = start; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, v + i, sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
        if (most < 0x7f800000) continue;
        while (isfinite(v[start]))
            start++;
        return start;
    }
    return n;
}

void dc_layout_clip(float *v, uint64_t n) {
    const float most = (float)(1 - 1e-5);
    for (uint64_t i = 0; i < n; i++) {
        float x = v[i] < -most ? -most : v[i];
        v[i] = x > most ? most : x;
    }
}

void dc_layout_bound(dc_bounds *bounds, const float *v, uint64_t n) {
    float low = bounds->low, high = bounds->high;
    for (uint64_t i = 0; i < n; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    *bounds = (dc_bounds){low, high};
}

bool dc_layout_in_range(dc_bounds bounds) {
    const float most = 1.001f;
    return bounds.low >= -most && bounds.high <= most;
}

dc_status dc_layout_check(const dc_layout *layout, int column, uint64_t first, const float *values,
                          uint64_t n) {
    const dc_layout_column *c = &layout->columns[column];
    uint64_t at = c->finite ? dc_layout_first_bad(values, n) : n;
    if (at < n)
        return dc_fail(DC_BAD_INPUT, "repair or remove that trajectory",
                       "NaN, or infinite as float32, in '%s' at row %lld (%s)", c->entry->name,
                       (long long)((first + at) / (uint64_t)c->width), layout->npz->path);
    return DC_OK;
}

dc_status dc_layout_check_flags(const dc_layout *layout, const char *name, int64_t row,
                                const float *flags, int64_t count) {
    for (int64_t r = 0; r < count; r++)
        if (flags[r] != 0 && flags[r] != 1)
            return dc_fail(DC_BAD_INPUT, "1 marks the last row of a trajectory, 0 the others",
                           "'%s' holds %g at row %lld (%s)", name, (double)flags[r],
                           (long long)(row + r), layout->npz->path);
    return DC_OK;
}

// One flag at the end of a file without any would turn all of its episodes into one.
dc_status dc_layout_check_end(const dc_layout *layout, int64_t ended, int64_t open) {
    if (open == layout->rows) return DC_OK;
    const char *path = layout->npz->path;
    if (layout->timeouts && ended) return DC_OK;
    if (!ended)
        return dc_fail(DC_BAD_INPUT,
                       "write 1 at the last row of every episode, or say where episodes were cut "
                       "off in an array 'timeouts' of the same form",
                       "no trajectory ends: %s 0 at every row (%s)",
                       layout->timeouts ? "'terminals' and 'timeouts' are" : "'terminals' is",
                       path);
    return dc_fail(DC_BAD_INPUT,
                   "write 1 there if an episode ends with that row, or remove the rows behind the "
                   "last 1",
                   "the last trajectory does not end: 'terminals' is 0 at row %lld (%s)",
                   (long long)layout->rows - 1, path);
}

dc_status dc_layout_check_length(int64_t traj, int64_t first, int64_t rows) {
    if (rows >= 2) return DC_OK;
    return dc_fail(
        DC_BAD_INPUT,
        "a trajectory needs two rows or more; if terminals mark success and not the end of an "
        "episode, write the ends there",
        "trajectory %lld has a single row (row %lld)", (long long)traj, (long long)first);
}
