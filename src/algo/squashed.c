// Squashed Gaussians, see squashed.h.
#include "algo/squashed.h"

#include "algo/batch.h"

#include <math.h>

double dc_squashed_gain(const dc_int_list *hidden, int act, double gain) {
    double in = (double)hidden->v[hidden->count - 1];
    return gain * sqrt((in + 2 * act) / (in + act));
}

dc_ref dc_squashed_log_std(dc_graph *g, dc_ref out, int act, double high) {
    return dc_clip(g, dc_columns(g, out, act, act), -5, high);
}

dc_squashed dc_squashed_draw(dc_agent *a, dc_ref out, double high, const char *noise) {
    dc_graph *g = &a->graph;
    int act = a->method.act;
    dc_squashed s = {.eps = DC_BATCH(a, noise, NOISE(noise, act)),
                     .log_std = dc_squashed_log_std(g, out, act, high)};
    s.u = dc_add(g, dc_columns(g, out, 0, act), dc_mul(g, dc_exp(g, s.log_std), s.eps));
    s.action = dc_tanh(g, s.u);
    return s;
}

// -eps^2 / 2 - log std - log(2 pi) / 2 - log(1 - tanh^2 u), where log(1 - tanh^2 u) = 2 (log 2 - u - softplus(-2u)).
dc_ref dc_squashed_log_pi(dc_agent *a, const dc_squashed *s) {
    dc_graph *g = &a->graph;
    dc_ref normal = dc_add(g, dc_affine(g, dc_mul(g, s->eps, s->eps), -0.5, 0),
                           dc_affine(g, s->log_std, -1, 0));
    dc_ref squash = dc_add(g, s->u, dc_softplus(g, dc_affine(g, s->u, -2, 0)));
    return dc_add(g, normal, dc_affine(g, squash, 2, 0));
}

double dc_squashed_constant(const dc_method *m) {
    return m->act * (0.5 * log(2 * acos(-1)) + 2 * log(2));
}
