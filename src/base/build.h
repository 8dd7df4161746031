// The build's id, as every run records it: "0.1.0 (commit, compiler)".
#ifndef DC_BUILD_H
#define DC_BUILD_H

const char *dc_build_id(void);

#endif
