// Published figures: what the paper reports, and OGBench's benchmark table for the methods that are its own
// ("plain": goals are whole observations); configs/paper.json, which travels inside the library. A figure
// is found by environment and by an agent's label, so that a variant is compared with the same
// variant or with nothing. An environment's name in the paper is the start of ours
// (humanoidmaze-giant for humanoidmaze-giant-navigate-oraclerep-v0).
#ifndef DC_PAPER_H
#define DC_PAPER_H

#include "base/json.h"

#include <stdbool.h>

extern const char dc_paper_json[]; // the embedded file

typedef struct dc_paper_figure {
    double mean, sd;    // success in percent
    const char *data;   // size of the data set that it was trained on: "1B"
    const char *source; // where it stands in the paper
} dc_paper_figure;

dc_status dc_paper_open(dc_arena *arena, const dc_json **paper);
// A published figure; task is "overall" or "task1" and so on. False when there is none.
bool dc_paper_find(const dc_json *paper, const char *env, const char *label, const char *task,
                   dc_paper_figure *out);

#endif
