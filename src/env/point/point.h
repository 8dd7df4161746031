// The point mass, see point.c. What its files share.
#ifndef DC_POINT_H
#define DC_POINT_H

#include "env/maze/robots.h"

extern const dc_sim dc_point_sim; // point_mj.c

#endif
