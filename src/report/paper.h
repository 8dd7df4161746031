// Published figures: what the paper reports, and OGBench's benchmark table for the methods that are its own;
// configs/paper.json, which travels inside the library. A figure is found by environment and by an
// agent's label, so that a variant is compared with the same variant or with nothing. A table speaks of
// one kind of goals, whole observations ("plain") or what counts of them ("oraclerep"), and a run is
// compared with tables of its own kind only.
#ifndef DC_PAPER_H
#define DC_PAPER_H

#include "base/json.h"

#include <stdbool.h>

extern const char dc_paper_json[]; // the embedded file

typedef struct dc_paper_figure {
    double mean, sd;    // success in percent; sd NaN where none is published
    const char *data;   // size of the data set that it was trained on: "1B"
    const char *steps;  // updates behind it: "1M"
    const char *source; // where it stands
} dc_paper_figure;

dc_status dc_paper_open(dc_arena *arena, const dc_json **paper);
// A published figure; task is "overall" or "task1" and so on. False when there is none.
bool dc_paper_find(const dc_json *paper, const char *env, const char *label, const char *task,
                   dc_paper_figure *out);

#endif
