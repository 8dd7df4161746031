// The number type of networks: float, or double when the sources are compiled for gradient checks.
#ifndef DC_REAL_H
#define DC_REAL_H

#ifdef DC_DOUBLE
typedef double dc_real;
#else
typedef float dc_real;
#endif

#endif
