// What makes an expert good enough, see play.h. The centres are the published data's, which tell how fast and how
// upright OGBench's own experts went; the widths are ours. Two-sided, because a much faster or more careful robot
// makes other data. docs/experts.md says where each number comes from.
#include "online/play.h"

#include <math.h>

#define BAND(robot, score, noisy, low, high)                                                       \
    { DC_EXPERT_##robot, DC_SCORE_##score, noisy, low, high }

const dc_band dc_bands[] = {
    BAND(ANT, speed, 0, 1.5, 2.8),
    BAND(ANT, speed, 1, 1.3, 2.6),
    BAND(ANT, ends, 1, 0, 1),
    BAND(ANT, step, 1, 0.11, 0.24),
    BAND(ANT, height_50, 1, 0.42, 0.65),
    BAND(ANT, tilt, 1, 0.45, 1),
    BAND(ANT, cell, 1, 15, 45),
    BAND(ANTBALL, reach, 1, 0.7, 1),
    BAND(HUMANOID, speed, 0, 2.2, 4.5),
    BAND(HUMANOID, speed, 1, 1.9, 4.2),
    BAND(HUMANOID, falls, 1, 0, 1),
    BAND(HUMANOID, up, 1, 0.95, 1),
    BAND(HUMANOID, step, 1, 0.04, 0.09),
    BAND(HUMANOID, height_50, 1, 1.05, 1.4),
};
const int dc_band_count = sizeof dc_bands / sizeof dc_bands[0];

static const struct {
    dc_score score;
    double ant, humanoid;
} published[] = {
    {DC_SCORE_step, 0.131, 0.0478},     {DC_SCORE_step_5, 0.027, 0.008},
    {DC_SCORE_step_25, 0.086, 0.029},   {DC_SCORE_step_50, 0.132, 0.048},
    {DC_SCORE_step_75, 0.175, 0.066},   {DC_SCORE_step_95, 0.229, 0.088},
    {DC_SCORE_step_99, 0.263, 0.099},   {DC_SCORE_height, 0.553, 0.946},
    {DC_SCORE_height_5, 0.426, 0.264},  {DC_SCORE_height_25, 0.500, 0.668},
    {DC_SCORE_height_50, 0.552, 1.117}, {DC_SCORE_height_75, 0.606, 1.205},
    {DC_SCORE_height_95, 0.698, 1.271}, {DC_SCORE_jerk, 1.84, 2.22},
    {DC_SCORE_jerk_50, 1.77, 2.17},
};

double dc_published(dc_expert_kind kind, dc_score score) {
    for (size_t k = 0; k < sizeof published / sizeof published[0]; k++)
        if (published[k].score == score && kind != DC_EXPERT_ANTBALL)
            return kind == DC_EXPERT_ANT ? published[k].ant : published[k].humanoid;
    return NAN;
}

bool dc_bands_hold(dc_expert_kind kind, const dc_scores scores[2]) {
    for (int b = 0; b < dc_band_count; b++) {
        const dc_band *band = &dc_bands[b];
        double x = scores[band->noisy].value[band->score];
        if (band->kind == kind && !(x >= band->low && x <= band->high)) return false;
    }
    return true;
}

double dc_play_worth(const dc_plane *plane, const dc_scores scores[2]) {
    const double *v = scores[1].value;
    if (plane->ball) return v[DC_SCORE_reach];
    double lost = plane->head ? v[DC_SCORE_falls] : v[DC_SCORE_ends];
    return (scores[0].value[DC_SCORE_speed] + v[DC_SCORE_speed]) / 2 - 0.1 * lost;
}

static void add_scores(const dc_scores *scores, dc_text *out) {
    bool first = true;
    dc_text_add(out, "{");
    for (int s = 0; s < DC_SCORES; s++) {
        if (!isfinite(scores->value[s])) continue;
        dc_text_add(out, "%s\"%s\": %.4g", first ? "" : ", ", dc_score_name((dc_score)s),
                    scores->value[s]);
        first = false;
    }
    dc_text_add(out, "}");
}

void dc_scores_json(const dc_scores scores[2], double noise, dc_text *out) {
    dc_text_add(out, "{\"noise 0\": ");
    add_scores(&scores[0], out);
    dc_text_add(out, ", \"noise %g\": ", noise);
    add_scores(&scores[1], out);
    dc_text_add(out, "}");
}
