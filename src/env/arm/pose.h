// Poses in space, in the order of operations of the reference, so that numbers agree to the last
// places: quaternions (w, x, y, z) and translations.
#ifndef DC_POSE_H
#define DC_POSE_H

typedef struct dc_pose {
    double q[4], p[3];
} dc_pose;

void dc_quat_mul(const double a[4], const double b[4], double out[4]);
void dc_quat_yaw(double yaw, double out[4]); // a turn about z
double dc_yaw_of(const double q[4]);         // in [-pi, pi]

dc_pose dc_pose_mul(const dc_pose *a, const dc_pose *b);
dc_pose dc_pose_inverse(const dc_pose *a);

// Of turns about z alone: a part (0 ... 1) of the way from a to b; halfway between two poses.
void dc_quat_between(const double a[4], const double b[4], double part, double out[4]);
dc_pose dc_pose_midway(const dc_pose *a, const dc_pose *b);

#endif
