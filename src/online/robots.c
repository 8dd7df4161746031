// Robots that learn online, see robots.h. OGBench's own settings (docs/experts.md) with larger steps, and with
// commands relabelled where that is exact.
#include "online/robots.h"

#include <string.h>

static const dc_robot_option ant_options[] = {
    {"steps", "600000"},    {"reward", "10"},   {"agg", "min"}, {"hidden", "256,256"},
    {"alpha_start", "0.1"}, {"relabel", "0.5"}, {NULL, NULL},
};
static const dc_robot_option antball_options[] = {
    {"steps", "12000000"}, {"reward", "1"},        {"agg", "min"},
    {"hidden", "256,256"}, {"alpha_start", "0.1"}, {"critic_layernorm", "on"},
    {NULL, NULL},
};
static const dc_robot_option humanoid_options[] = {
    {"steps", "40000000"},     {"reward", "0.1"},      {"agg", "mean"},
    {"hidden", "512,512,512"}, {"alpha_start", "0.1"}, {"critic_layernorm", "on"},
    {"relabel", "0.5"},        {NULL, NULL},
};

static const dc_robot robots[DC_EXPERT_KINDS] = {
    [DC_EXPERT_ANT] = {DC_EXPERT_ANT, ant_options},
    [DC_EXPERT_ANTBALL] = {DC_EXPERT_ANTBALL, antball_options},
    [DC_EXPERT_HUMANOID] = {DC_EXPERT_HUMANOID, humanoid_options},
};

const dc_robot *dc_robot_of(const dc_plane *plane) {
    dc_expert_kind kind = dc_expert_kind_of(plane->name);
    DC_CHECK(kind < DC_EXPERT_KINDS && dc_expert_facts_of(kind)->obs == dc_plane_input(plane));
    return &robots[kind];
}

// Neighbours with one factor, in the order in which a policy sees them.
typedef struct stretch {
    int count;
    float rate;
} stretch;

void dc_robot_rates(const dc_plane *plane, float *rates) {
    static const stretch all[DC_EXPERT_KINDS][8] = {
        // height, quaternion, joints | velocity | turning, joints' speeds | direction
        [DC_EXPERT_ANT] = {{13, 1}, {3, 0.5F}, {11, 0.3F}, {2, 1}},
        // the same and the ball's height, quaternion | its velocity | its turning | ball, goal
        [DC_EXPERT_ANTBALL] =
            {{18, 1}, {3, 0.5F}, {11, 0.3F}, {3, 0.5F}, {3, 0.1F}, {2, 0.2F}, {2, 0.2F}},
        // posture | velocity, twice | turning, joints' speeds | direction
        [DC_EXPERT_HUMANOID] = {{37, 1}, {6, 0.5F}, {24, 0.1F}, {2, 1}},
    };
    int done = 0;
    for (const stretch *s = all[dc_robot_of(plane)->kind]; s->count; s++)
        for (int k = 0; k < s->count; k++)
            rates[done++] = s->rate;
    DC_CHECK(done == dc_plane_input(plane));
}
