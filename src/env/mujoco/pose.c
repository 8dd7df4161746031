// Poses, see pose.h.
#include "env/mujoco/pose.h"

#include <math.h>
#include <mujoco/mujoco.h>
#include <stdbool.h>
#include <string.h>

static const double tiny = 1e-10; // squared angles below it are expanded in a series

void dc_quat_mul(const double a[4], const double b[4], double out[4]) {
    double r[4] = {
        -a[1] * b[1] - a[2] * b[2] - a[3] * b[3] + a[0] * b[0],
        a[1] * b[0] + a[2] * b[3] - a[3] * b[2] + a[0] * b[1],
        -a[1] * b[3] + a[2] * b[0] + a[3] * b[1] + a[0] * b[2],
        a[1] * b[2] - a[2] * b[1] + a[3] * b[0] + a[0] * b[3],
    };
    memcpy(out, r, sizeof r);
}

static void conjugate(const double q[4], double out[4]) {
    out[0] = q[0];
    for (int k = 1; k < 4; k++)
        out[k] = -q[k];
}

static void rotate(const double q[4], const double v[3], double out[3]) {
    double r[4] = {0, v[0], v[1], v[2]}, back[4];
    conjugate(q, back);
    dc_quat_mul(q, r, r);
    dc_quat_mul(r, back, r);
    memcpy(out, r + 1, 3 * sizeof *out);
}

void dc_quat_yaw(double yaw, double out[4]) {
    double square = yaw * yaw, angle = sqrt(square);
    bool series = square < tiny;
    out[0] = series ? 1 - square / 8 + square * square / 384 : cos(0.5 * angle);
    out[1] = out[2] = 0;
    out[3] = yaw * (series ? 0.5 - square / 48 + square * square / 3840 : sin(0.5 * angle) / angle);
}

double dc_yaw_of(const double q[4]) {
    return atan2(2 * (q[0] * q[3] + q[1] * q[2]), 1 - 2 * (q[2] * q[2] + q[3] * q[3]));
}

dc_pose dc_pose_mul(const dc_pose *a, const dc_pose *b) {
    dc_pose r;
    dc_quat_mul(a->q, b->q, r.q);
    rotate(a->q, b->p, r.p);
    for (int k = 0; k < 3; k++)
        r.p[k] += a->p[k];
    return r;
}

dc_pose dc_pose_inverse(const dc_pose *a) {
    dc_pose r;
    conjugate(a->q, r.q);
    rotate(r.q, a->p, r.p);
    for (int k = 0; k < 3; k++)
        r.p[k] = -r.p[k];
    return r;
}

dc_pose dc_pose_of(const double *xpos, const double *xmat) {
    dc_pose r;
    mju_mat2Quat(r.q, xmat);
    memcpy(r.p, xpos, sizeof r.p);
    return r;
}
