// How far points of a robot may be from one of its joints, whatever angles its joints have: sums of lengths along bodies.
#include "env/mujoco/engine.h"

#include <math.h>

static double length(const double v[3]) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// How far a body's points may be from its origin, and it from its parent's.
static double size_of(const mjModel *m, int body) {
    double most = 0;
    for (int g = m->body_geomadr[body]; g < m->body_geomadr[body] + m->body_geomnum[body]; g++)
        most = fmax(most, length(m->geom_pos + (ptrdiff_t)3 * g) + m->geom_rbound[g]);
    return most;
}

static double anchor_of(const mjModel *m, int body) {
    double most = 0;
    for (int j = m->body_jntadr[body]; j < m->body_jntadr[body] + m->body_jntnum[body]; j++)
        most = fmax(most, length(m->jnt_pos + (ptrdiff_t)3 * j));
    return most;
}

// Each joint of a body may carry it to the other side of its own anchor.
static double step_of(const mjModel *m, int body) {
    return length(m->body_pos + (ptrdiff_t)3 * body) +
           2 * anchor_of(m, body) * m->body_jntnum[body];
}

double dc_model_reach(const mjModel *m, int bodies, int of) {
    double most = 0;
    for (int b = of; b < bodies; b++) {
        double far = size_of(m, b);
        int at = b;
        for (; at > of; at = m->body_parentid[at])
            far += step_of(m, at);
        if (at == of) most = fmax(most, far + anchor_of(m, of));
    }
    return most;
}
