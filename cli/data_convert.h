// dcrl data convert, see data_convert.c.
#ifndef CLI_DATA_CONVERT_H
#define CLI_DATA_CONVERT_H

#include "base/status.h"

dc_status cli_data_convert(int argc, char **argv);

#endif
