// Inverse kinematics of the arm: joint angles that bring its flange to a pose, by damped least
// squares from where the joints are now. Comes from arm_mj.c; the arm alone is a model of its own.
#include "env/arm/motion.h"

#include <math.h>
#include <string.h>

enum { DOF = 6, TRIES = 20 };
static const double damping = 1e-12, close_enough = 1e-4;
static const double turn_max = 0.7853981633974483; // 45 degrees a joint

static double norm3(const double *v) {
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// What is missing: translation, then rotation as an axis times an angle.
static void measure(const mjData *d, int site, const dc_pose *to, double error[DOF]) {
    double q[4], back[4], turn[4];
    for (int k = 0; k < 3; k++)
        error[k] = to->p[k] - d->site_xpos[3 * site + k];
    mju_mat2Quat(q, d->site_xmat + (ptrdiff_t)9 * site);
    mju_negQuat(back, q);
    mju_mulQuat(turn, to->q, back);
    mju_quat2Vel(error + 3, turn, 1);
}

// Gauss with row exchanges; b becomes the solution.
static void solve(double a[DOF][DOF], double b[DOF]) {
    for (int c = 0; c < DOF; c++) {
        int top = c;
        for (int r = c + 1; r < DOF; r++)
            if (fabs(a[r][c]) > fabs(a[top][c])) top = r;
        double row[DOF], swap = b[c];
        memcpy(row, a[c], sizeof row);
        memcpy(a[c], a[top], sizeof row);
        memcpy(a[top], row, sizeof row);
        b[c] = b[top];
        b[top] = swap;
        for (int r = c + 1; r < DOF; r++) {
            double factor = a[r][c] / a[c][c];
            for (int k = c; k < DOF; k++)
                a[r][k] -= factor * a[c][k];
            b[r] -= factor * b[c];
        }
    }
    for (int r = DOF - 1; r >= 0; r--) {
        for (int k = r + 1; k < DOF; k++)
            b[r] -= a[r][k] * b[k];
        b[r] /= a[r][r];
    }
}

// x = J' (J J' + damping)^-1 error, no joint by more than turn_max.
static void improve(const double jac[DOF][DOF], double error[DOF], double x[DOF]) {
    double h[DOF][DOF], most = 0;
    for (int r = 0; r < DOF; r++)
        for (int c = 0; c < DOF; c++) {
            h[r][c] = r == c ? damping : 0;
            for (int k = 0; k < DOF; k++)
                h[r][c] += jac[r][k] * jac[c][k];
        }
    solve(h, error);
    for (int c = 0; c < DOF; c++) {
        x[c] = 0;
        for (int r = 0; r < DOF; r++)
            x[c] += jac[r][c] * error[r];
        most = fmax(most, fabs(x[c]));
    }
    for (int c = 0; c < DOF && most > turn_max; c++)
        x[c] *= turn_max / most;
}

void dc_arm_solve(const dc_arm_world *w, mjData *d, const dc_pose *to, const double *from,
                  double *joints) {
    double error[DOF], jac[DOF][DOF], x[DOF];
    memcpy(d->qpos, from, DOF * sizeof *from);
    for (int t = 0; t < TRIES; t++) {
        mj_kinematics(w->alone, d);
        mj_comPos(w->alone, d);
        measure(d, w->flange, to, error);
        if (norm3(error) <= close_enough && norm3(error + 3) <= close_enough) break;
        mj_jacSite(w->alone, d, jac[0], jac[3], w->flange);
        improve((const double(*)[DOF])jac, error, x);
        mj_integratePos(w->alone, d->qpos, x, 1);
    }
    memcpy(joints, d->qpos, DOF * sizeof *joints);
}
