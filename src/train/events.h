// Logs of a run as events that TensorBoard reads: RUN/events.out.tfevents.*, one file for each go of the program.
// They say what train.csv, timing.csv and eval.csv say, with the time of day besides, and are no part of what
// makes a run: nothing here reads them.
#ifndef DC_EVENTS_H
#define DC_EVENTS_H

#include "base/status.h"

#include <stdint.h>
#include <stdio.h>

typedef struct dc_events {
    FILE *file; // NULL: closed
} dc_events;

// Begin a file in a run's folder for steps after `step`: what earlier files say of later steps is void.
dc_status dc_events_open(dc_events *events, const char *folder, int64_t step);
// Values of one step, under their names with `group` and a slash before them.
dc_status dc_events_put(dc_events *events, int64_t step, const char *group,
                        const char *const *names, const double *values, int count);
void dc_events_close(dc_events *events); // safe on a zeroed struct

#endif
