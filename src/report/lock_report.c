// Reporting on combination-lock runs, see lock_report.h. Results come in any order; groups are the
// distinct agents and horizons in order of first appearance (horizons sorted).
#include "report/lock_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS_MAX = DC_LOCK_AGENTS_MAX, HORIZONS_MAX = 64 };

typedef struct groups {
    const char *agents[AGENTS_MAX];
    int64_t horizons[HORIZONS_MAX]; // ascending
    int agent_count, horizon_count;
} groups;

typedef struct spread {
    double mean, sd;
    int count;
} spread;

// --- JSON ---

void dc_lock_result_json(const dc_lock_result *r, dc_text *out) {
    dc_text_add(out, "{\"agent\": ");
    dc_json_quote(out, r->agent);
    dc_text_add(out, ", \"horizon\": %" PRId64 ", \"n\": ", r->horizon);
    dc_text_add(out, r->n < 0 ? "null" : "%" PRId64, r->n);
    dc_text_add(
        out, ", \"steps\": %" PRId64 ", \"seed\": %" PRId64 ", \"batch\": %" PRId64 ", \"slots\": ",
        r->steps, r->seed, r->batch);
    dc_text_add(out, r->slots < 0 ? "null" : "%" PRId64, r->slots);
    dc_text_add(out, ", \"hidden\": [");
    for (int i = 0; i < r->hidden.count; i++)
        dc_text_add(out, "%s%" PRId64, i ? ", " : "", r->hidden.v[i]);
    dc_text_add(out, "], \"accumulated_error\": ");
    dc_json_number(out, r->score.accumulated_error);
    dc_text_add(out, ", \"error_by_distance\": [");
    for (int i = 0; i < r->score.bins; i++) {
        dc_text_add(out, "%s{\"distance\": ", i ? ", " : "");
        dc_json_number(out, r->score.distance[i]);
        dc_text_add(out, ", \"error\": ");
        dc_json_number(out, r->score.error[i]);
        dc_text_add(out, "}");
    }
    dc_text_add(out, "], \"steps_per_second\": %.1f, \"seconds\": %.2f}", r->steps_per_second,
                r->seconds);
}

static bool get_number(const dc_json *object, const char *key, double *out) {
    const dc_json *v = dc_json_get(object, key);
    *out = v && v->kind == DC_JSON_NUMBER ? v->number : v && v->kind == DC_JSON_NULL ? -1 : NAN;
    return isfinite(*out);
}

static bool get_int(const dc_json *object, const char *key, int64_t *out) {
    double x;
    if (!get_number(object, key, &x) || fabs(x) > 9e15) return false;
    *out = (int64_t)x;
    return true;
}

static bool get_bins(const dc_json *object, dc_lock_score *score) {
    const dc_json *bins = dc_json_get(object, "error_by_distance");
    if (!bins || bins->kind != DC_JSON_ARRAY || bins->count > DC_LOCK_BINS) return false;
    for (const dc_json *b = bins->child; b; b = b->next, score->bins++)
        if (!get_number(b, "distance", &score->distance[score->bins]) ||
            !get_number(b, "error", &score->error[score->bins]))
            return false;
    return true;
}

static bool get_hidden(const dc_json *object, dc_int_list *hidden) {
    const dc_json *list = dc_json_get(object, "hidden");
    if (!list || list->kind != DC_JSON_ARRAY || list->count > DC_LIST_MAX) return false;
    for (const dc_json *v = list->child; v; v = v->next)
        if (!dc_json_int(v, &hidden->v[hidden->count++])) return false;
    return true;
}

dc_status dc_lock_result_read(const dc_json *o, const char *what, dc_lock_result *r) {
    *r = (dc_lock_result){0};
    const dc_json *agent = dc_json_get(o, "agent");
    bool good = agent && agent->kind == DC_JSON_STRING && agent->text_length < sizeof r->agent;
    if (good) memcpy(r->agent, agent->text, agent->text_length);
    good = good && get_int(o, "horizon", &r->horizon) && get_int(o, "n", &r->n) &&
           get_int(o, "steps", &r->steps);
    good = good && get_int(o, "seed", &r->seed) && get_int(o, "batch", &r->batch) &&
           get_int(o, "slots", &r->slots);
    good = good && get_number(o, "accumulated_error", &r->score.accumulated_error);
    good = good && get_number(o, "steps_per_second", &r->steps_per_second) &&
           get_number(o, "seconds", &r->seconds);
    good = good && get_bins(o, &r->score) && get_hidden(o, &r->hidden);
    if (!good)
        return dc_fail(DC_BAD_INPUT, "remove it to run this again",
                       "%s is not a result of dcrl lock", what);
    return DC_OK;
}

// --- groups ---

static int by_number(const void *x, const void *y) {
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static groups group(const dc_lock_result *r, int count) {
    groups g = {0};
    for (int i = 0; i < count; i++) {
        int a = 0, h = 0;
        while (a < g.agent_count && strcmp(g.agents[a], r[i].agent) != 0)
            a++;
        while (h < g.horizon_count && g.horizons[h] != r[i].horizon)
            h++;
        if (a == g.agent_count && a < AGENTS_MAX) g.agents[g.agent_count++] = r[i].agent;
        if (h == g.horizon_count && h < HORIZONS_MAX) g.horizons[g.horizon_count++] = r[i].horizon;
    }
    qsort(g.horizons, (size_t)g.horizon_count, sizeof g.horizons[0], by_number);
    return g;
}

// Mean and standard deviation over seeds of A(H) (bin < 0) or of the error in one bin.
static spread over_seeds(const dc_lock_result *r, int count, const char *agent, int64_t horizon,
                         int bin) {
    spread s = {0};
    double square = 0;
    for (int i = 0; i < count; i++) {
        if (r[i].horizon != horizon || strcmp(r[i].agent, agent) != 0) continue;
        double x = bin < 0 ? r[i].score.accumulated_error : r[i].score.error[bin];
        s.mean += x;
        square += x * x;
        s.count++;
    }
    if (!s.count) return s;
    s.mean /= s.count;
    double var = s.count > 1 ? (square - s.count * s.mean * s.mean) / (s.count - 1) : 0;
    s.sd = var > 0 ? sqrt(var) : 0;
    return s;
}

// Mean steps per second of an agent's runs.
static double speed(const dc_lock_result *r, int count, const char *agent) {
    double sum = 0;
    int runs = 0;
    for (int i = 0; i < count; i++)
        if (!strcmp(r[i].agent, agent)) {
            sum += r[i].steps_per_second;
            runs++;
        }
    return sum / runs;
}

// --- table and sentence ---

void dc_lock_table(const dc_lock_result *r, int count, dc_text *out) {
    groups g = group(r, count);
    int seeds = over_seeds(r, count, g.agents[0], g.horizons[0], -1).count;
    dc_text_add(out, "mean |error| of distances of at least H/2, over %d seed%s\n\n%-28s", seeds,
                seeds == 1 ? "" : "s", "agent");
    for (int h = 0; h < g.horizon_count; h++) {
        char head[32];
        snprintf(head, sizeof head, "H = %" PRId64, g.horizons[h]);
        dc_text_add(out, "  %18s", head);
    }
    dc_text_add(out, "  %10s\n", "steps/s");
    for (int a = 0; a < g.agent_count; a++) {
        dc_text_add(out, "%-28s", g.agents[a]);
        for (int h = 0; h < g.horizon_count; h++) {
            spread s = over_seeds(r, count, g.agents[a], g.horizons[h], -1);
            char cell[40] = "-";
            if (s.count == 1)
                snprintf(cell, sizeof cell, s.mean < 1e5 ? "%.2f" : "%.1e", s.mean);
            else if (s.count)
                snprintf(cell, sizeof cell, s.mean < 1e5 ? "%.2f +- %.2f" : "%.1e +- %.0e", s.mean,
                         s.sd);
            dc_text_add(out, "  %18s", cell);
        }
        dc_text_add(out, "  %10.0f\n", speed(r, count, g.agents[a]));
    }
}

void dc_lock_sentence(const dc_lock_result *r, int count, dc_text *out) {
    groups g = group(r, count);
    int64_t far = g.horizons[g.horizon_count - 1];
    int best = -1; // not every agent need have been there
    for (int a = 0; a < g.agent_count; a++) {
        spread s = over_seeds(r, count, g.agents[a], far, -1);
        if (s.count && (best < 0 || s.mean < over_seeds(r, count, g.agents[best], far, -1).mean))
            best = a;
    }
    DC_CHECK(best >= 0);
    double least = over_seeds(r, count, g.agents[best], far, -1).mean;
    dc_text_add(out, "At H = %" PRId64 " the long-range error of %s is %.3g", far, g.agents[best],
                least);
    const char *join = ": ";
    for (int a = 0; a < g.agent_count; a++) {
        spread s = over_seeds(r, count, g.agents[a], far, -1);
        if (a == best || !s.count) continue;
        if (s.mean / least < 1.1)
            dc_text_add(out, "%sabout that of %s", join, g.agents[a]);
        else
            dc_text_add(out, "%s%.3g times lower than that of %s", join, s.mean / least,
                        g.agents[a]);
        join = ", ";
    }
    dc_text_add(out, ".\n");
}

// --- plot ---

typedef struct line { // storage behind one series
    double x[HORIZONS_MAX], y[HORIZONS_MAX], lo[HORIZONS_MAX], hi[HORIZONS_MAX];
} line;

static void point(line *l, int at, double x, spread s) {
    l->x[at] = x;
    l->y[at] = s.count ? s.mean : NAN;
    l->lo[at] = s.mean - s.sd;
    l->hi[at] = s.mean + s.sd;
}

static dc_series series(const char *name, int style, int count, const line *l) {
    return (dc_series){name, count, l->x, l->y, l->lo, l->hi, style, false};
}

// The whole plot is one figure; the panels alone are for pages that lay them out themselves.
static dc_status draw_whole(void *ctx, const dc_panel *panels, int count, int which) {
    return which == 0 ? dc_plot_svg(ctx, panels, count) : DC_OK;
}

dc_status dc_lock_plot(const dc_lock_result *r, int count, dc_text *out) {
    return dc_lock_panels(r, NULL, count, draw_whole, out);
}

// Nullable: style
static int style_of(const groups *g, int agent, const dc_lock_result *r, const int *style,
                    int count) {
    for (int i = 0; style && i < count; i++)
        if (!strcmp(r[i].agent, g->agents[agent])) return style[i];
    return agent;
}

dc_status dc_lock_panels(const dc_lock_result *r, const int *style, int count,
                         dc_lock_panel_fn *each, void *ctx) {
    _Static_assert((int)DC_LOCK_BINS <= (int)HORIZONS_MAX, "a line holds either");
    groups g = group(r, count);
    line *lines = calloc((size_t)g.agent_count * 2, sizeof *lines);
    if (!lines) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a plot");
    dc_series by_horizon[AGENTS_MAX], by_distance[AGENTS_MAX];
    int64_t far = g.horizons[g.horizon_count - 1];
    const dc_lock_result *any = r; // bins are the same for all runs of one horizon
    for (int i = 0; i < count; i++)
        if (r[i].horizon == far) any = &r[i];
    for (int a = 0; a < g.agent_count; a++) {
        int colour = style_of(&g, a, r, style, count);
        line *up = &lines[2 * a], *across = &lines[2 * a + 1];
        for (int h = 0; h < g.horizon_count; h++)
            point(up, h, (double)g.horizons[h],
                  over_seeds(r, count, g.agents[a], g.horizons[h], -1));
        for (int b = 0; b < any->score.bins; b++)
            point(across, b, any->score.distance[b], over_seeds(r, count, g.agents[a], far, b));
        by_horizon[a] = series(g.agents[a], colour, g.horizon_count, up);
        by_distance[a] = series(g.agents[a], colour, any->score.bins, across);
    }
    char title[64];
    snprintf(title, sizeof title, "error by distance, H = %" PRId64, far);
    dc_panel panels[2] = {
        {"accumulated error A(H)", "horizon H", "mean |error| of distances >= H/2", true, true,
         by_horizon, g.agent_count, false, false},
        {title, "distance g - s", "mean |error|", false, true, by_distance, g.agent_count, false,
         false},
    };
    int first = g.horizon_count > 1 ? 0 : 1;
    dc_status status = DC_OK;
    for (int p = first; p < 2 && status == DC_OK; p++)
        status = each(ctx, panels + first, 2 - first, p - first);
    free(lines);
    return status;
}
