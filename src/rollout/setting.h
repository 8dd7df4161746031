// What a run's config.json says of playing: the environment, the discount, and how the policy acts. A
// checkpoint holds weights alone, so whoever opens one reads this first.
#ifndef DC_SETTING_H
#define DC_SETTING_H

#include "rollout/actor.h"

typedef struct dc_setting {
    char env[DC_TEXT_MAX];
    double gamma;
    dc_policy policy; // kind, samples, flow_steps
} dc_setting;

// Read RUN/config.json; what it does not say has its default. A run on data alone names no
// environment.
dc_status dc_setting_read(dc_setting *setting, const char *folder);
// The actor's options for at most `rows` rows a call.
dc_actor_options dc_setting_actor(const dc_setting *setting, int rows, uint64_t seed);

#endif
