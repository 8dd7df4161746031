// dcrl data rewards, see data_rewards.c.
#ifndef CLI_DATA_REWARDS_H
#define CLI_DATA_REWARDS_H

#include "base/status.h"

dc_status cli_data_rewards(int argc, char **argv);

#endif
