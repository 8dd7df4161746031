// A Gaussian squashed by tanh, as the policies of sacbc and sac are. One network gives its mean and its log standard
// deviation, side by side in one last layer (1, batch, 2 act):
//
//   a = tanh(u),  u = mean + std eps,  eps normal,  log std clipped to [-5, high]
#ifndef DC_SQUASHED_H
#define DC_SQUASHED_H

#include "algo/agent.h"

typedef struct dc_squashed { // a sample, all (1, batch, act)
    dc_ref eps, log_std, u, action;
} dc_squashed;

// Factor on the initial weights of that layer, behind layers of widths `hidden`: its limit is then `gain` times
// that of a layer for the mean alone.
double dc_squashed_gain(const dc_int_list *hidden, int act, double gain);
// Of an output `out` (1, rows, 2 act).
dc_ref dc_squashed_log_std(dc_graph *g, dc_ref out, int act, double high);
// A sample of out (1, batch, 2 act), with the draw `noise` for eps.
dc_squashed dc_squashed_draw(dc_agent *a, dc_ref out, double high, const char *noise);
// Each column's part of log pi(a), (1, batch, act), but for a constant: log pi of a row is the sum of its columns
// less dc_squashed_constant.
dc_ref dc_squashed_log_pi(dc_agent *a, const dc_squashed *s);
double dc_squashed_constant(const dc_method *m);

#endif
