// dcrl expert eval: how an expert does on its plane, without and with noise, beside the bands in which it should
// lie and what is published of the data that OGBench's experts made.
#include "args.h"
#include "expert.h"
#include "runs.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char usage[] = "usage: dcrl expert eval FILE [--episodes N] [--steps N] [--noise X] "
                            "[--seed S] [--threads T] [--json]\n"
                            "\n"
                            "Plays an expert on the open plane: episodes without noise, and as "
                            "many with noise on its actions, as dcrl gen\n"
                            "adds it. Prints speed along the command, ends, falls, time to cross a "
                            "cell, and how steps, heights and changes\n"
                            "of actions are spread; beside them the band in which it should lie, "
                            "and OGBench's data where they were measured\n"
                            "(in a maze, with turns at every cell: they are no goal for the plane, "
                            "but tell whether it is the same gait).\n"
                            "\n"
                            "example: dcrl expert eval configs/experts/ant.safetensors\n";

typedef struct flags {
    int64_t episodes, steps, seed, threads;
    double noise;
} flags;

static const dc_option table[] = {
    DC_OPTION_INT(flags, episodes, "64", 1, 100000, "without noise, and as many with it"),
    DC_OPTION_INT(flags, steps, "500", 1, 1000, "of an episode; a ball's has 200"),
    DC_OPTION_REAL(flags, noise, "0.2", 0.001, 10,
                   "deviation of what is added to actions; bands are for 0.2"),
    DC_OPTION_INT(flags, seed, "1", 0, 9e15, "of starts, commands and noise"),
    DC_OPTION_INT(flags, threads, "0", 0, 1024,
                  "0: one for every core. Results do not depend on it"),
    {0},
};

// ---- playing ----

typedef struct result {
    dc_expert expert;
    const char *path;
    const dc_plane *plane;
    dc_scores scores[2];
    bool holds;
} result;

static dc_status play(result *r, const flags *f, dc_world *world, dc_pool *pool) {
    int steps = (int)f->steps < r->plane->horizon ? (int)f->steps : r->plane->horizon;
    for (int k = 0; k < 2; k++) {
        dc_play_spec spec = {.plane = r->plane,
                             .world = world,
                             .expert = &r->expert,
                             .episodes = (int)f->episodes,
                             .steps = steps,
                             .noise = k ? f->noise : 0,
                             .seed = (uint64_t)f->seed};
        DC_TRY(dc_play(&spec, pool, &r->scores[k]));
    }
    r->holds = dc_bands_hold(r->expert.kind, r->scores);
    return DC_OK;
}

static dc_status measure(result *r, const flags *f) {
    dc_world *world = NULL;
    dc_pool *pool = NULL;
    DC_TRY(dc_plane_find(&r->plane, dc_expert_facts_of(r->expert.kind)->name));
    dc_status status = dc_plane_world(r->plane, &world);
    if (status == DC_OK) status = dc_pool_new(&pool, (int)f->threads);
    if (status == DC_OK) status = play(r, f, world, pool);
    dc_pool_free(pool);
    dc_world_free(world);
    return status;
}

// ---- telling ----

static const dc_band *band_of(const result *r, int score, int noisy) {
    for (int b = 0; b < dc_band_count; b++)
        if (dc_bands[b].kind == r->expert.kind && dc_bands[b].score == (dc_score)score &&
            dc_bands[b].noisy == noisy)
            return &dc_bands[b];
    return NULL;
}

static void add_number(dc_text *out, double x) {
    if (isfinite(x))
        dc_text_add(out, " %9.4g", x);
    else
        dc_text_add(out, " %9s", "-");
}

static void add_bands(const result *r, int score, dc_text *out) {
    char text[96] = "";
    int n = 0;
    for (int k = 0; k < 2; k++) {
        const dc_band *b = band_of(r, score, k);
        double x = r->scores[k].value[score];
        if (b)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s%g ... %g%s", n ? "; " : "",
                          k ? "noise: " : "", b->low, b->high,
                          x >= b->low && x <= b->high ? "" : " MISSED");
    }
    dc_text_add(out, "  %-34s", text);
}

static void print_text(const result *r, const flags *f, dc_text *out) {
    dc_text_add(out, "%s, %s: %s\nseed ", r->path, r->expert.hash, r->plane->about);
    dc_text_name(out, r->expert.seed); // the file says so
    dc_text_add(out, ", ");
    dc_text_name(out, r->expert.command);
    dc_text_add(out, "\n\n");
    dc_text_add(out, "%-10s %9s noise %-3g %9s  %-34s  meaning\n", "score", "no noise", f->noise,
                "published", "band");
    for (int s = 0; s < DC_SCORES; s++) {
        if (!isfinite(r->scores[0].value[s]) && !isfinite(r->scores[1].value[s])) continue;
        dc_text_add(out, "%-10s", dc_score_name((dc_score)s));
        for (int k = 0; k < 2; k++)
            add_number(out, r->scores[k].value[s]);
        add_number(out, dc_published(r->expert.kind, (dc_score)s));
        add_bands(r, s, out);
        const char *unit = dc_score_unit((dc_score)s);
        dc_text_add(out, "  %s%s%s\n", dc_score_about((dc_score)s), *unit ? ", " : "", unit);
    }
    dc_text_add(out, "\n%s\n",
                r->holds ? "inside all of its bands" : "NOT inside all of its bands");
}

static void print_json(const result *r, const flags *f, dc_text *out) {
    dc_text_add(out, "{\"expert\": ");
    dc_json_quote(out, r->path);
    dc_text_add(out,
                ", \"robot\": \"%s\", \"hash\": \"%s\", \"episodes\": %lld, \"noise\": %g, "
                "\"accepted\": %s, ",
                r->plane->name, r->expert.hash, (long long)f->episodes, f->noise,
                r->holds ? "true" : "false");
    dc_text_add(out, "\"scores\": ");
    dc_scores_json(r->scores, f->noise, out);
    dc_text_add(out, ", \"bands\": [");
    bool first = true;
    for (int b = 0; b < dc_band_count; b++) {
        const dc_band *band = &dc_bands[b];
        if (band->kind != r->expert.kind) continue;
        dc_text_add(out, "%s{\"score\": \"%s\", \"noisy\": %s, \"low\": %g, \"high\": %g}",
                    first ? "" : ", ", dc_score_name(band->score), band->noisy ? "true" : "false",
                    band->low, band->high);
        first = false;
    }
    dc_text_add(out, "]}\n");
}

static dc_status print_result(const result *r, const flags *f, bool json) {
    dc_text out;
    dc_text_init(&out);
    (json ? print_json : print_text)(r, f, &out);
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    return status;
}

dc_status cli_expert_eval(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_JSON | CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (args.word_count != 1)
        return dc_fail(DC_USAGE, "dcrl expert eval FILE", "one expert file is needed");
    result r = {.path = args.words[0]};
    DC_TRY(dc_expert_open(&r.expert, r.path));
    dc_status status = measure(&r, &f);
    if (status == DC_OK) status = print_result(&r, &f, args.json);
    dc_expert_close(&r.expert);
    return status;
}
