// What stands at the head of a page: how long training took, on what, and what evaluations found.
#ifndef DC_FACTS_H
#define DC_FACTS_H

#include "report/runs.h"

typedef struct dc_best { // of a curve, with its last value
    double best, last;   // NaN: there is none
    int64_t best_step, last_step;
} dc_best;

// Wall-clock seconds of training, all goes of a run that was resumed together; NaN where no log says.
double dc_facts_seconds(const dc_report_run *run);
// Append "3 h 12 min", "5 min 20 s" or "7.5 s".
void dc_facts_duration(double seconds, dc_text *out);
// Append the device of a run as its config has it; of a GPU with its name. Nothing if it does not say.
void dc_facts_device(const dc_report_run *run, dc_text *out);
// The mean over a group's runs at each step of its longest log: the best and the last, as logged. Success of
// eval.csv, or the held-out value error of train.csv, of which less is better.
dc_best dc_facts_success(const dc_report_group *group);
dc_best dc_facts_held_out(const dc_report_group *group);
// Episodes of a run's last evaluation; 0 where no log says.
int64_t dc_facts_episodes(const dc_report_run *run);

#endif
