// The report's page, see html.h. Sections are written in the order in which a reader asks: what
// came out, how it was learned, how fast, what differed, how to repeat it. A section without data
// is left out. All text from outside goes through dc_markup_text; pictures that lie in run folders
// are shown as images, where nothing in them can act on the page.
//
// Tables carry their roles and each cell the name of its column, so that on a narrow screen the
// style can lay a row out as a card and a screen reader still reads a table.
//
// What sections ask of all groups (the best of an environment, which options differ) is found once, before
// they are written, so that time and size grow with the runs and not with their square.
#include "report/html_page.h"

#include "base/build.h"
#include "base/names.h"

#include "report/commands.h"
#include "report/facts.h"
#include "report/markup.h"
#include "report/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- facts ---

static void rank(page *p, env_facts *env, const dc_score *s) {
    if (!p->best || s->over.mean > p->best->over.mean) p->best = s;
    if (!env->published && s->published) env->published = s;
    if (s->evaluations < env->evaluations) env->evaluations = s->evaluations;
    if (s->over.count > env->seeds) env->seeds = s->over.count;
}

static dc_status find_envs(page *p) {
    const dc_runs *runs = p->runs;
    env_facts *envs = dc_arena_take(p->arena, (size_t)runs->env_count * sizeof *envs);
    if (!envs) return DC_NO_MEMORY;
    p->envs = envs;
    for (int e = 0; e < runs->env_count; e++)
        envs[e].evaluations = DC_LAST_EVALUATIONS;
    for (int g = 0; g < runs->group_count; g++)
        p->seeds = p->seeds || runs->groups[g].count > 1;
    for (int i = 0; i < p->table->count; i++) {
        const dc_score *s = &p->table->scores[i];
        if (s->metric == DC_METRIC_OVERALL) rank(p, &envs[s->group->env_place], s);
    }
    return DC_OK;
}

static dc_status find_options(page *p) {
    const dc_runs *runs = p->runs;
    dc_names names;
    size_t most = 0;
    dc_names_init(&names, p->arena);
    for (int g = 0; g < runs->group_count; g++)
        most += (size_t)runs->groups[g].runs[0]->option_count;
    option_facts *options = dc_arena_take(p->arena, (most + 1) * sizeof *options);
    if (!options) return DC_NO_MEMORY;
    p->options = options;
    for (int g = 0; g < runs->group_count; g++) {
        const dc_report_run *run = runs->groups[g].runs[0];
        for (const dc_json *m = run->config->child; m; m = m->next) {
            int place;
            if (!dc_runs_counts(run, m->key)) continue;
            DC_TRY(dc_names_put(&names, m->key, &place));
            option_facts *o = &options[place];
            if (!o->key) *o = (option_facts){.key = m->key, .first = m};
            o->differs = o->differs || !dc_runs_same_value(m, o->first);
        }
    }
    p->option_count = names.count;
    return DC_OK;
}

// --- header ---

// The last part of a path that names runs: seed-K is in the folder of its run.
static size_t folder_name(const char *path, bool several, const char **name) {
    size_t end = strlen(path), at = end;
    for (int level = 0; level < 2; level++) {
        for (at = end; at > 0 && path[at - 1] != '/';)
            at--;
        bool member = !strncmp(path + at, "seed-", 5) || several;
        if (level || !member || at < 2) break;
        end = at - 1;
    }
    *name = path + at;
    return end - at;
}

// Name of a run, or of the folder that has all runs of a group; nothing if no folder has.
void dc_html_group_name(const dc_report_group *g, dc_text *out) {
    const char *name;
    size_t n = folder_name(g->runs[0]->folder, g->count > 1, &name);
    size_t all = (size_t)(name - g->runs[0]->folder) + n;
    for (int i = 1; i < g->count; i++)
        if (strncmp(g->runs[0]->folder, g->runs[i]->folder, all) != 0 ||
            g->runs[i]->folder[all] != '/')
            return;
    dc_text_bytes(out, name, n);
}

static bool all_alone(const page *p) {
    bool all = true;
    for (int i = 0; i < p->runs->count; i++)
        all = all && p->runs->runs[i].alone;
    return all;
}

static void default_title(const page *p, dc_text *out) {
    const dc_report_group *g = p->runs->groups;
    int envs = p->runs->env_count, count = p->runs->group_count;
    if (count == 1)
        dc_text_add(out, "%s on %s", g->label, g->env);
    else if (envs == 1)
        dc_text_add(out, "%d agents on %s", count, g->env);
    else
        dc_text_add(out, "%d runs on %d %s", p->runs->count, envs,
                    all_alone(p) ? "data sets" : "environments");
}

static void summary_success(const dc_score *best, dc_text *out) {
    dc_text_add(out, "On %s, %s reaches ", best->group->env, best->group->label);
    dc_markup_fixed(out, best->over.mean, 1);
    dc_text_add(out, " %% success");
    if (best->over.count > 1) {
        dc_text_add(out, " (± ");
        dc_markup_fixed(out, best->over.sd, 1);
        dc_text_add(out, " over %d seeds)", best->over.count);
    }
    if (best->published) {
        dc_text_add(out, "; published: ");
        dc_markup_fixed(out, best->paper.mean, 0);
        if (isfinite(best->paper.sd)) dc_text_add(out, " ± ");
        if (isfinite(best->paper.sd)) dc_markup_fixed(out, best->paper.sd, 0);
    }
    dc_text_add(out, ".");
}

// The sentence of `dcrl lock`, without the end of its line.
void dc_html_lock_sentence(const page *p, dc_text *out) {
    dc_lock_sentence(p->locks, p->lock_count, out);
    if (out->used && out->bytes[out->used - 1] == '\n') out->bytes[--out->used] = 0;
}

// Whether any run logged held-out rows.
static bool held_out(const page *p) {
    for (int i = 0; i < p->runs->count; i++)
        for (int c = 0; c < p->runs->runs[i].train.columns; c++)
            if (!strncmp(p->runs->runs[i].train.names[c], "val_", 4)) return true;
    return false;
}

static void summary(const page *p, dc_text *out) {
    if (p->best)
        summary_success(p->best, out);
    else if (p->lock_count)
        dc_html_lock_sentence(p, out);
    else
        dc_text_add(out, "%d run%s trained%s.", p->runs->count, p->runs->count == 1 ? "" : "s",
                    !all_alone(p) ? ", none evaluated yet"
                    : held_out(p)
                        ? " on data without an environment, and measured on held-out rows. "
                          "To play a policy, use an environment of your own (docs/api.md)"
                        : " on data without an environment. To measure what was learned, "
                          "hold rows out: put X-val.npz beside X.npz, or give --val. To play a "
                          "policy, use an environment of your own (docs/api.md)");
}

static void fact(dc_text *out, int value, const char *name) {
    dc_text_add(out, "<div><dt>%s%s</dt><dd>%d</dd></div>\n", name, value == 1 ? "" : "s", value);
}

// An empty text; a failure of what it held is the page's.
static void start_again(dc_text *out, dc_text *value) {
    dc_text_follow(out, value);
    dc_text_fini(value);
    dc_text_init(value);
}

// A fact in words: <dt>name</dt><dd>what value ends with</dd>; follows and clears value. Nothing if it is empty.
static void fact_text(dc_text *out, const char *name, dc_text *value) {
    if (value->used) {
        dc_text_add(out, "<div><dt>%s</dt><dd>", name);
        text(out, value->bytes);
        dc_text_add(out, "</dd></div>\n");
    }
    start_again(out, value);
}

// A value, and under it at which step it was found.
static void value_fact(dc_text *out, const char *name, double x, const char *unit, int64_t step) {
    char count[DC_COUNT_MAX];
    if (!isfinite(x)) return;
    dc_text_add(out, "<div><dt>%s, step %s</dt><dd>", name, dc_markup_count(step, count));
    dc_markup_fixed(out, x, 1);
    dc_text_add(out, "%s</dd></div>\n", unit);
}

// Of the group whose result stands in the summary.
static void score_facts(const page *p, dc_text *value) {
    const dc_report_group *g = p->best ? p->best->group : p->runs->groups;
    bool held_out = !p->best && p->runs->group_count == 1;
    if (!p->best && !held_out) return;
    dc_best b = p->best ? dc_facts_success(g) : dc_facts_held_out(g);
    int64_t episodes = p->best ? dc_facts_episodes(g->runs[0]) : 0;
    const char *unit = p->best ? " %" : " steps";
    value_fact(p->out, p->best ? "best evaluation" : "best held-out error", b.best, unit,
               b.best_step);
    value_fact(p->out, p->best ? "last evaluation" : "last held-out error", b.last, unit,
               b.last_step);
    if (episodes) dc_text_add(value, "%" PRId64, episodes);
    fact_text(p->out, "episodes each", value);
}

static dc_status run_facts(const page *p, dc_text *value) {
    double longest = NAN;
    dc_names known;
    dc_text all;
    int place;
    dc_names_init(&known, p->arena);
    dc_text_init(&all);
    for (int i = 0; i < p->runs->count; i++) {
        const dc_report_run *run = &p->runs->runs[i];
        longest = fmax(longest, dc_facts_seconds(run));
        int before = known.count;
        dc_facts_device(run, value);
        if (value->used) DC_TRY(dc_names_put(&known, value->bytes, &place));
        if (known.count > before) dc_text_add(&all, "%s%s", place ? ", " : "", value->bytes);
        start_again(p->out, value);
    }
    fact_text(p->out, "device", &all);
    if (isfinite(longest)) dc_facts_duration(longest, value);
    fact_text(p->out, p->runs->count == 1 ? "training" : "training, longest run", value);
    return DC_OK;
}

static dc_status write_facts(const page *p) {
    int open = 0;
    dc_text value;
    dc_text_init(&value);
    dc_text_add(p->out, "<dl class=\"facts\">\n");
    for (int i = 0; i < p->runs->count; i++)
        open += !p->runs->runs[i].done;
    if (p->runs->count > 1) {
        fact(p->out, p->runs->count, "run");
        fact(p->out, p->runs->env_count, all_alone(p) ? "data set" : "environment");
        fact(p->out, p->runs->group_count, "group");
    }
    if (open) dc_text_add(p->out, "<div><dt>still training</dt><dd>%d</dd></div>\n", open);
    score_facts(p, &value);
    dc_status status = run_facts(p, &value);
    dc_text_add(p->out, "</dl>\n");
    dc_text_follow(p->out, &value);
    dc_text_fini(&value);
    return status;
}

static dc_status write_header(const page *p, const char *title) {
    dc_text line;
    dc_text_init(&line);
    dc_text_add(p->out, "<header>\n<p class=\"kicker\">dcrl report");
    if (p->runs->group_count == 1) dc_html_group_name(p->runs->groups, &line);
    if (line.used) dc_text_add(p->out, " · <span>");
    if (line.used) text(p->out, line.bytes);
    dc_text_add(p->out, line.used ? "</span></p>\n" : "</p>\n");
    start_again(p->out, &line);
    element(p->out, "h1", title);
    summary(p, &line);
    dc_text_add(p->out, "<p class=\"lead\">");
    dc_text_follow(p->out, &line);
    text(p->out, line.bytes);
    dc_text_add(p->out, "</p>\n");
    dc_text_fini(&line);
    DC_TRY(write_facts(p));
    dc_text_add(p->out, "</header>\n");
    return DC_OK;
}

// --- options ---

static void value_cell(const page *p, const dc_report_group *g, const char *key) {
    const dc_json *option = dc_runs_option(g->runs[0], key);
    dc_text value;
    dc_text_init(&value);
    if (option) dc_runs_value(option, &value);
    dc_text_follow(p->out, &value);
    cell_open(p->out, key, option ? "value" : "value none");
    text(p->out, value.used ? value.bytes : option ? "(empty)" : "–");
    cell_close(p->out);
    dc_text_fini(&value);
}

static void key_value(const page *p, const option_facts *o) {
    dc_text value;
    dc_text_init(&value);
    dc_runs_value(o->first, &value);
    dc_text_follow(p->out, &value);
    dc_text_add(p->out, "<div><dt>");
    text(p->out, o->key);
    dc_text_add(p->out, "</dt><dd>");
    text(p->out, value.used ? value.bytes : "(empty)");
    dc_text_add(p->out, "</dd></div>\n");
    dc_text_fini(&value);
}

static void folder_small(const page *p, const dc_report_group *g) {
    dc_text folder;
    dc_text_init(&folder);
    dc_html_group_name(g, &folder);
    dc_text_follow(p->out, &folder);
    if (folder.used) dc_text_add(p->out, " <small>");
    if (folder.used) text(p->out, folder.bytes);
    if (folder.used) dc_text_add(p->out, "</small>");
    dc_text_fini(&folder);
}

// A group, and the name of its folder.
static void folder_row(const page *p, const dc_report_group *g, const char *name) {
    dc_text_add(p->out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    text(p->out, name);
    folder_small(p, g);
    dc_text_add(p->out, "</th>");
}

static void write_different(const page *p) {
    table_open(p->out, "what differs between groups");
    head(p->out, "group");
    for (int o = 0; o < p->option_count; o++)
        if (p->options[o].differs) head(p->out, p->options[o].key);
    body(p->out);
    for (int g = 0; g < p->runs->group_count; g++) {
        char name[512];
        const dc_report_group *group = &p->runs->groups[g];
        snprintf(name, sizeof name, "%.200s · %.250s", group->env, group->label);
        folder_row(p, group, name);
        for (int o = 0; o < p->option_count; o++)
            if (p->options[o].differs) value_cell(p, group, p->options[o].key);
        row_close(p->out);
    }
    table_close(p->out);
}

static void write_same(const page *p) {
    bool one = p->runs->group_count == 1;
    dc_text_add(p->out, "<details%s><summary>%s</summary>\n<dl class=\"same\">\n",
                one ? " open" : "", one ? "All options" : "Same in all groups that have it");
    for (int o = 0; o < p->option_count; o++)
        if (!p->options[o].differs) key_value(p, &p->options[o]);
    dc_text_add(p->out, "</dl></details>\n");
}

static void write_options(const page *p) {
    int different = 0;
    for (int o = 0; o < p->option_count; o++)
        different += p->options[o].differs;
    section(p->out, "options", "Options");
    if (different && dc_compare_too_large(p->runs->group_count, different))
        too_large(p->out, p->runs->group_count, different);
    else if (different)
        write_different(p);
    if (p->option_count > different) write_same(p);
    section_end(p->out);
}

// --- how to repeat it ---

// The distinct values of a text option over a group's runs.
static dc_status provenance(const page *p, const dc_report_group *g, const char *key,
                            const char *name) {
    dc_names known;
    dc_names_init(&known, p->arena);
    dc_text_add(p->out, "<div><dt>%s</dt><dd>", name);
    for (int i = 0; i < g->count; i++) {
        const dc_json *v = dc_json_get(g->runs[i]->config, key);
        int place, before = known.count;
        if (!v || v->kind != DC_JSON_STRING) continue;
        DC_TRY(dc_names_put(&known, v->text, &place));
        if (place < before) continue;
        dc_text_add(p->out, "%s", place ? ", " : "");
        text(p->out, v->text);
    }
    dc_text_add(p->out, "</dd></div>\n");
    return DC_OK;
}

// A command whose lines break between flags: each is a box with its value. The text is written over.
static void command_text(dc_text *out, char *line) {
    for (char *next; line; line = next) {
        next = strstr(line, " --");
        if (next) *next++ = 0;
        dc_text_add(out, "<span>");
        text(out, line);
        dc_text_add(out, "</span>%s", next ? " " : "");
    }
}

static dc_status write_recipe(const page *p, const dc_report_group *g) {
    dc_text command;
    dc_text_init(&command);
    dc_command_of(g, &command);
    dc_text_add(p->out, "<details%s><summary>", p->runs->group_count == 1 ? " open" : "");
    text(p->out, g->env);
    dc_text_add(p->out, " · ");
    text(p->out, g->label);
    folder_small(p, g);
    dc_text_add(p->out, "</summary>\n<pre tabindex=\"0\"><code>");
    command_text(p->out, command.bytes);
    dc_text_add(p->out, "</code></pre>\n<dl class=\"same\">\n<div><dt>runs</dt><dd>");
    for (int i = 0; i < g->count; i++) {
        dc_text_add(p->out, i ? ", " : "");
        text(p->out, g->runs[i]->folder);
    }
    dc_text_add(p->out, "</dd></div>\n");
    dc_text_follow(p->out, &command);
    dc_text_fini(&command);
    DC_TRY(provenance(p, g, "build", "build"));
    DC_TRY(provenance(p, g, "arithmetic", "computed with"));
    DC_TRY(provenance(p, g, "data_hash", "data hash"));
    dc_text_add(p->out, "</dl></details>\n");
    return DC_OK;
}

static dc_status write_recipes(const page *p) {
    section(p->out, "repeat", "How to repeat it");
    dc_text_add(p->out, "<p class=\"note\">The same build, options, data and seed give the same "
                        "numbers. Options at their defaults are left out.</p>\n");
    for (int g = 0; g < p->runs->group_count; g++)
        DC_TRY(write_recipe(p, &p->runs->groups[g]));
    section_end(p->out);
    return DC_OK;
}

// --- the page ---

// Lock results under the labels that the tables use.
static dc_status collect_locks(page *p) {
    p->locks = calloc((size_t)p->runs->count, sizeof *p->locks);
    p->lock_style = dc_arena_take(p->arena, (size_t)p->runs->count * sizeof *p->lock_style);
    if (!p->locks || !p->lock_style)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for the results");
    for (int g = 0; g < p->runs->group_count; g++)
        for (int i = 0; i < p->runs->groups[g].count; i++) {
            const dc_lock_result *result = p->runs->groups[g].runs[i]->result;
            if (!result) continue;
            p->lock_style[p->lock_count] = p->runs->groups[g].style;
            dc_lock_result *copy = &p->locks[p->lock_count++];
            *copy = *result;
            snprintf(copy->agent, sizeof copy->agent, "%s", p->runs->groups[g].label);
        }
    return DC_OK;
}

static void write_start(const page *p, const char *title) {
    dc_text_add(p->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                        "<meta name=\"color-scheme\" content=\"light dark\">\n");
    if (p->refresh)
        dc_text_add(p->out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", p->refresh);
    element(p->out, "title", title);
    dc_text_add(p->out, "<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", dc_page_css,
                dc_plot_dark);
}

static dc_status write_page(const page *p, const char *title) {
    write_start(p, title);
    DC_TRY(write_header(p, title));
    dc_html_compare(p);
    DC_TRY(dc_html_success(p));
    dc_html_maps(p);
    DC_TRY(dc_html_lock(p));
    DC_TRY(dc_html_held_out(p));
    DC_TRY(dc_html_speed(p));
    DC_TRY(dc_html_training(p));
    write_options(p);
    DC_TRY(write_recipes(p));
    dc_text_add(p->out, "<footer>Written by dcrl %s</footer>\n</main>\n</body>\n</html>\n",
                dc_build_id());
    return dc_text_status(p->out);
}

dc_status dc_html_page(const dc_runs *runs, const dc_table *table, const dc_compare *compare,
                       const dc_curves *curves, const char *title, int refresh, dc_arena *arena,
                       dc_text *out) {
    page p = {.out = out,
              .arena = arena,
              .runs = runs,
              .table = table,
              .compare = compare,
              .curves = curves,
              .refresh = refresh};
    dc_text made;
    dc_text_init(&made);
    default_title(&p, &made);
    dc_status status = dc_text_status(&made);
    if (status == DC_OK) status = find_envs(&p);
    if (status == DC_OK) status = find_options(&p);
    if (status == DC_OK) status = collect_locks(&p);
    if (status == DC_OK) status = write_page(&p, title ? title : made.bytes);
    dc_text_fini(&made);
    free(p.locks);
    return status;
}
