// Playing: what an expert is worth on the open plane, as numbers that can be held beside those of published data.
// Episodes go to threads; each is a function of (seed, its number), so scores are the same for any number of them.
#ifndef DC_PLAY_H
#define DC_PLAY_H

#include "base/pool.h"
#include "base/text.h"
#include "env/expert.h"
#include "env/plane.h"

typedef enum dc_score {
#define SCORE(name, ...) DC_SCORE_##name,
#include "online/scores.def"
#undef SCORE
    DC_SCORES
} dc_score;

typedef struct dc_scores {
    double value[DC_SCORES]; // NaN: has no meaning for this robot
} dc_scores;

// Name, unit and meaning of a score.
const char *dc_score_name(dc_score score);
const char *dc_score_unit(dc_score score);
const char *dc_score_about(dc_score score);

typedef struct dc_play_spec {
    const dc_plane *plane;
    const dc_world *world;
    const dc_expert *expert;
    int episodes, steps; // steps of an episode, at most its horizon
    double noise;        // deviation of normals that are added to actions
    uint64_t seed;
} dc_play_spec;

// Nullable: pool
dc_status dc_play(const dc_play_spec *spec, dc_pool *pool, dc_scores *scores);

// Bands within which an expert is accepted, set before any was trained (docs/experts.md), and what is published of
// OGBench's data beside.
typedef struct dc_band {
    dc_expert_kind kind;
    dc_score score;
    int noisy;        // 0: without noise, 1: with
    double low, high; // both count as inside
} dc_band;
extern const dc_band dc_bands[];
extern const int dc_band_count;
// What is published of OGBench's data of that robot (antmaze- and humanoidmaze-medium-stitch); NaN: nothing.
double dc_published(dc_expert_kind kind, dc_score score);
// Whether the scores without and with noise are inside all bands of a robot.
bool dc_bands_hold(dc_expert_kind kind, const dc_scores scores[2]);
// What a search for the best policy goes by.
double dc_play_worth(const dc_plane *plane, const dc_scores scores[2]);
// Scores without and with noise as a JSON object: {"noise 0": {...}, "noise 0.2": {...}}.
void dc_scores_json(const dc_scores scores[2], double noise, dc_text *out);

#endif
