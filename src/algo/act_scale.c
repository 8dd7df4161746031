// Actions in units of their own, see act_scale.h.
#include "algo/act_scale.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double most = 1 - 1e-5; // what actions within [-1, 1] are clipped to, too

dc_status dc_act_scale_init(dc_act_scale *s, int width) {
    size_t n = (size_t)width;
    *s = (dc_act_scale){.width = width};
    s->low = calloc(4 * n, sizeof *s->low);
    if (!s->low) return dc_fail(DC_NO_MEMORY, NULL, "no memory to scale actions");
    s->high = s->low + n;
    s->mean = s->high + n;
    s->rate = s->mean + n;
    s->scale = (dc_scale){s->mean, s->rate};
    return DC_OK;
}

void dc_act_scale_fini(dc_act_scale *s) {
    free(s->low);
    *s = (dc_act_scale){0};
}

static double half(const dc_act_scale *s, int c) {
    return ((double)s->high[c] - (double)s->low[c]) / 2;
}

dc_status dc_act_scale_settle(dc_act_scale *s) {
    for (int c = 0; c < s->width; c++) {
        bool range = isfinite(s->low[c]) && isfinite(s->high[c]) && s->low[c] <= s->high[c];
        s->mean[c] = (float)(((double)s->low[c] + (double)s->high[c]) / 2);
        s->rate[c] = half(s, c) > 0 ? (float)(most / half(s, c)) : 0;
        if (!range || !isfinite(s->rate[c]) || !isfinite(dc_act_reach(s, c)))
            return dc_fail(DC_BAD_INPUT, "look at the actions with dcrl data info",
                           "impossible range of action %d: %g to %g", c, (double)s->low[c],
                           (double)s->high[c]);
    }
    return DC_OK;
}

// ---- from the run's option ----

// A number up to `end`, finite as a float.
static bool read_number(const char *text, const char *end, float *out) {
    char copy[DC_NUMBER_MAX * 2];
    double x;
    size_t n = (size_t)(end - text);
    if (n == 0 || n >= sizeof copy || dc_number_scan(text, n, DC_GRAMMAR_LOOSE) != n) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)n, text);
    if (!dc_number_real(copy, &x)) return false;
    *out = (float)x;
    return isfinite(*out);
}

dc_status dc_act_scale_parse(const char *text, dc_act_scaling *scaling, dc_bounds *given) {
    *given = (dc_bounds){-1, 1};
    *scaling = !strcmp(text, "off")    ? DC_ACTIONS_AS_THEY_ARE
               : !strcmp(text, "auto") ? DC_ACTIONS_BY_DATA
                                       : DC_ACTIONS_GIVEN;
    if (*scaling != DC_ACTIONS_GIVEN) return DC_OK;
    const char *comma = strchr(text, ',');
    if (comma && read_number(text, comma, &given->low) &&
        read_number(comma + 1, text + strlen(text), &given->high) && given->low < given->high)
        return DC_OK;
    return dc_fail(DC_USAGE, NULL,
                   "act_scale must be off, auto or LOW,HIGH, such as -3.14,3.14 (%.60s)", text);
}

// ---- from the data ----

static void bound_columns(dc_act_scale *s, const dc_dataset *data, const float *actions) {
    for (int c = 0; c < s->width; c++) {
        s->low[c] = INFINITY;
        s->high[c] = -INFINITY;
    }
    for (int64_t r = 0; r < data->rows; r++, actions += s->width)
        for (int c = 0; c < s->width; c++) {
            s->low[c] = actions[c] < s->low[c] ? actions[c] : s->low[c];
            s->high[c] = actions[c] > s->high[c] ? actions[c] : s->high[c];
        }
}

// One range for all columns, in place of each one's own.
static dc_status take_given(dc_act_scale *s, dc_bounds given) {
    for (int c = 0; c < s->width; c++) {
        if (s->low[c] < given.low || s->high[c] > given.high)
            return dc_fail(DC_BAD_INPUT, "give a wider range, or act_scale=auto",
                           "action %d of the data lies between %g and %g, act_scale is %g,%g", c,
                           (double)s->low[c], (double)s->high[c], (double)given.low,
                           (double)given.high);
        s->low[c] = given.low;
        s->high[c] = given.high;
    }
    return DC_OK;
}

dc_status dc_act_scale_take(dc_act_scale *s, const dc_dataset *data, dc_act_scaling scaling,
                            dc_bounds given) {
    const dc_column *act = dc_dataset_column(data, "act");
    if (scaling == DC_ACTIONS_AS_THEY_ARE && !dc_layout_in_range(data->actions))
        return dc_fail(
            DC_BAD_INPUT,
            "train with --act-scale auto, which takes each column's own range to [-1, 1] "
            "and back, or with --act-scale LOW,HIGH",
            "actions of the data lie between %g and %g, not within [-1, 1]",
            (double)data->actions.low, (double)data->actions.high);
    if (scaling == DC_ACTIONS_AS_THEY_ARE) return DC_OK;
    DC_TRY(dc_act_scale_init(s, act->width));
    bound_columns(s, data, act->values);
    if (scaling == DC_ACTIONS_GIVEN) DC_TRY(take_given(s, given));
    return dc_act_scale_settle(s);
}

float dc_act_reach(const dc_act_scale *s, int c) {
    return (float)(half(s, c) / most);
}

void dc_act_scale_undo(const dc_act_scale *s, float *actions) {
    for (int c = 0; c < s->width; c++) {
        double x = (double)s->mean[c] + (double)actions[c] * half(s, c) / most;
        x = x < (double)s->low[c] ? (double)s->low[c] : x;
        actions[c] = x > (double)s->high[c] ? s->high[c] : (float)x;
    }
}
