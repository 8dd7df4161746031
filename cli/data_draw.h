// dcrl data draw, see data_draw.c.
#ifndef CLI_DATA_DRAW_H
#define CLI_DATA_DRAW_H

#include "base/status.h"

dc_status cli_data_draw(int argc, char **argv);

#endif
