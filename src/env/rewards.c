// See rewards.h.
#include "env/rewards.h"

#include "env/family.h"

double dc_task_reward(const dc_env_spec *spec, const float *qpos, const float *extra) {
    DC_CHECK(spec->task > 0);
    return spec->family->ops->reward(spec, qpos, extra);
}
