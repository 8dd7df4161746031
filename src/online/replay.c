// Replay, see replay.h.
#include "online/replay.h"

#include <string.h>

static dc_status add_columns(dc_replay *r, const dc_plane *plane) {
    const struct {
        const char *name;
        int width;
    } columns[DC_REPLAY_COLUMNS] = {{"obs", plane->state},        {"command", DC_COMMAND},
                                    {"act", plane->family->act},  {"next_obs", plane->state},
                                    {"next_command", DC_COMMAND}, {"base", 1},
                                    {"pull", DC_COMMAND},         {"mask", 1}};
    for (int c = 0; c < DC_REPLAY_COLUMNS; c++) {
        r->widths[c] = columns[c].width;
        r->width += columns[c].width;
        DC_TRY(dc_dataset_add(&r->data, columns[c].name, columns[c].width, &r->values[c]));
    }
    return DC_OK;
}

// One trajectory with a row behind the last, which has no action: as a data set's last rows have none.
static dc_status build(dc_replay *r, const dc_plane *plane) {
    int64_t *start;
    DC_TRY(dc_dataset_make(&r->data, r->room + 1, 1, &start));
    start[0] = 0;
    start[1] = r->room + 1;
    r->data.grown = &r->filled;
    return add_columns(r, plane);
}

dc_status dc_replay_init(dc_replay *r, const dc_plane *plane, int64_t room) {
    *r = (dc_replay){.room = room};
    dc_status status = build(r, plane);
    if (status != DC_OK) dc_replay_fini(r);
    return status;
}

void dc_replay_fini(dc_replay *r) {
    dc_dataset_fini(&r->data);
    *r = (dc_replay){0};
}

dc_packed dc_replay_unpack(const dc_replay *r, float *row) {
    float *at[DC_REPLAY_COLUMNS];
    for (int c = 0; c < DC_REPLAY_COLUMNS; row += r->widths[c++])
        at[c] = row;
    return (dc_packed){at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]};
}

void dc_replay_add(dc_replay *r, const float *rows, int64_t count) {
    for (int64_t k = 0; k < count; k++, r->added++) {
        int64_t to = r->added % r->room;
        for (int c = 0; c < DC_REPLAY_COLUMNS; rows += r->widths[c++])
            memcpy(r->values[c] + to * r->widths[c], rows, (size_t)r->widths[c] * sizeof *rows);
    }
    r->filled = r->added < r->room ? r->added : r->room;
}
