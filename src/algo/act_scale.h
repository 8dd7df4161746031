// Actions in units of their own. Networks see and give actions within [-1, 1]; a data set may hold radians,
// newtons or pixels. Then each column c has a range, low to high, and its actions x become
//
//     (x - mean) * rate,    mean = (low + high) / 2,    rate = (1 - 1e-5) / ((high - low) / 2)
//
// in training and where a value is asked about an action, as observations are scaled (sample/gather.h). What
// a policy answers goes the other way and is cut to low and high. A column that does not vary is 0 to the
// networks, and its one value to everybody else. Ranges come from the data or from the run's act_scale; they
// travel in the checkpoint.
#ifndef DC_ACT_SCALE_H
#define DC_ACT_SCALE_H

#include "base/status.h"
#include "data/dataset.h"
#include "sample/gather.h"

typedef enum dc_act_scaling {
    DC_ACTIONS_AS_THEY_ARE, // and they must lie within [-1, 1]
    DC_ACTIONS_BY_DATA,     // each column has the range that it has in the data
    DC_ACTIONS_GIVEN,       // all columns have one range, which no action of the data leaves
} dc_act_scaling;

typedef struct dc_act_scale {
    int width;
    float *low, *high, *mean, *rate; // (width) each, one piece of memory
    dc_scale scale;                  // mean and rate
} dc_act_scale;

// Room for the ranges, to be filled in before _settle, which gives mean and rate. _fini also on a zeroed
// struct. Errors of _settle: DC_BAD_INPUT for numbers that are no range.
dc_status dc_act_scale_init(dc_act_scale *s, int width);
dc_status dc_act_scale_settle(dc_act_scale *s);
void dc_act_scale_fini(dc_act_scale *s);

// "off", "auto" or LOW,HIGH, of which the last is left in `given`.
dc_status dc_act_scale_parse(const char *text, dc_act_scaling *scaling, dc_bounds *given);
// The ranges of a data set's real actions; nothing is allocated for actions as they are. Errors: actions
// outside of [-1, 1], or of the range that is given.
dc_status dc_act_scale_take(dc_act_scale *s, const dc_dataset *data, dc_act_scaling scaling,
                            dc_bounds given);
// What 1 of action c is in the data's units: an action x stands for mean + x reach, cut to low and high.
float dc_act_reach(const dc_act_scale *s, int c);
// Actions (width) of a network, within [-1, 1], in the data's units.
void dc_act_scale_undo(const dc_act_scale *s, float *actions);

#endif
