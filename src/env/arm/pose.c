// Poses, see pose.h.
#include "env/arm/pose.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double pi = 3.141592653589793;
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

// ---- turns about z ----

// The angle of a turn about z, as the logarithm of its quaternion.
static double turn_of(const double q[4]) {
    double w = q[0], square = q[3] * q[3], norm = sqrt(square);
    if (square < tiny) return (2 / w - 2.0 / 3.0 * square / pow(w, 3)) * q[3];
    if (fabs(w) < tiny) return (w > 0 ? 1 : -1) * pi / norm * q[3];
    return 2 * atan2(w < 0 ? -norm : norm, fabs(w)) / norm * q[3];
}

void dc_quat_between(const double a[4], const double b[4], double part, double out[4]) {
    double back[4], turn[4];
    conjugate(a, back);
    dc_quat_mul(back, b, turn);
    dc_quat_yaw(part * turn_of(turn), turn);
    dc_quat_mul(a, turn, out);
}

// Halfway along a screw: translation and turn are taken to a velocity, halved, and followed.
dc_pose dc_pose_midway(const dc_pose *a, const dc_pose *b) {
    dc_pose back = dc_pose_inverse(a), way = dc_pose_mul(&back, b), half = {.p = {0}};
    double turn = turn_of(way.q), square = turn * turn, angle = sqrt(square), c, s;
    c = square < tiny
            ? 1 + -square / 12
            : 1 + (1 - angle * cos(0.5 * angle) / (2 * sin(0.5 * angle))) / square * -square;
    s = 0.5 * turn;
    double v[3] = {0.5 * (c * way.p[0] + s * way.p[1]), 0.5 * (-s * way.p[0] + c * way.p[1]),
                   0.5 * way.p[2]};
    turn *= 0.5;
    dc_quat_yaw(turn, half.q);
    square = turn * turn;
    angle = sqrt(square);
    bool series = square < tiny;
    c = series ? half.q[0] * half.q[0] - half.q[3] * half.q[3]
               : 1 + (angle - sin(angle)) / (square * angle) * -square;
    s = series ? 2 * (half.q[0] * half.q[3]) : (1 - cos(angle)) / square * turn;
    half.p[0] = c * v[0] + -s * v[1];
    half.p[1] = s * v[0] + c * v[1];
    half.p[2] = v[2];
    return dc_pose_mul(a, &half);
}
