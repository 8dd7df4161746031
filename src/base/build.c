// The build's id; build_id.h is made by tools/build_id.cmake at every build.
#include "base/build.h"

#include "build_id.h"

const char *dc_build_id(void) {
    return DCRL_BUILD;
}
