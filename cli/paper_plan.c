// Data sets and runs of a plan, see paper.h.
#include "paper.h"

#include "base/file.h"
#include "env/gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_FROM = 10000, SHARD = 1000, VAL_FROM = 10 }; // episodes; as dcrl gen has it

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory for the list of runs");
}

dc_status paper_path(const paper *p, char *out, const char *name) {
    int n = snprintf(out, DC_PATH_MAX, "%s/%s", p->flags->out, name);
    if (n < DC_PATH_MAX) return DC_OK;
    return dc_fail(DC_USAGE, "choose a shorter one", "the path of --out is too long");
}

dc_status paper_folder(const paper *p, char *out, const char *name) {
    DC_TRY(paper_path(p, out, name));
    for (char *at = out + strlen(p->flags->out) + 1; at; at = at ? at + 1 : NULL) {
        at = strchr(at, '/');
        if (at) *at = 0;
        dc_status status = dc_folder_inside(out);
        if (at) *at = '/';
        DC_TRY(status);
    }
    return DC_OK;
}

// ---- plan.json ----

static dc_status read_plan(paper *p, const dc_json *root, const char *path) {
    const dc_json *settings = dc_json_get(root, "settings");
    const dc_json *names = dc_json_get(root, "experiments");
    if (!settings || settings->kind != DC_JSON_STRING || !names || names->kind != DC_JSON_ARRAY)
        return dc_fail(DC_BAD_INPUT, "remove it, if the folder is of the scale that you name",
                       "%s is damaged", path);
    if (strcmp(settings->text, p->plan.settings) != 0)
        return dc_fail(DC_USAGE, "give another --out, or the same --scale as before",
                       "%s holds experiments of another scale", p->flags->out);
    for (const dc_json *m = names->child; m; m = m->next) {
        if (m->kind != DC_JSON_STRING || !dc_json_get(p->plan.all, m->text)) continue;
        DC_TRY(dc_plan_add(&p->plan, m->text));
    }
    return DC_OK;
}

dc_status paper_join(paper *p) {
    char path[DC_PATH_MAX], *bytes;
    size_t n;
    bool exists;
    const dc_json *root;
    p->wanted = p->plan.count;
    DC_TRY(paper_path(p, path, "plan.json"));
    DC_TRY(dc_file_find(path, &exists));
    if (!exists) return dc_run_refuse(p->flags->out);
    DC_TRY(dc_file_read_inside(path, 1 << 20, &bytes, &n));
    dc_status status = dc_json_parse(&p->plan.arena, path, bytes, n, &root);
    free(bytes);
    DC_TRY(status);
    return read_plan(p, root, path);
}

dc_status paper_write_plan(const paper *p) {
    char path[DC_PATH_MAX];
    dc_text text;
    DC_TRY(paper_path(p, path, "plan.json"));
    dc_text_init(&text);
    dc_text_add(&text, "{\"scale\": ");
    dc_json_quote(&text, p->plan.scale);
    dc_text_add(&text, ",\n\"settings\": ");
    dc_json_quote(&text, p->plan.settings);
    dc_text_add(&text, ",\n\"experiments\": [");
    for (int i = 0; i < p->plan.count; i++) {
        dc_text_add(&text, i ? ", " : "");
        dc_json_quote(&text, p->plan.experiments[i].name);
    }
    dc_text_add(&text, "]}\n");
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) status = dc_file_write_inside(path, text.bytes, text.used);
    dc_text_fini(&text);
    return status;
}

// ---- data sets ----

static dc_status keep_error(paper *p, const char **out) {
    *out = dc_arena_text(&p->plan.arena, dc_error(), strlen(dc_error()));
    return *out ? DC_OK : no_memory();
}

// Whether a set lies in a folder under a name, as a file or as a store.
static dc_status look_in(const char *folder, const char *name, paper_set *set) {
    static const char *const ends[] = {".npz", "/index.json"};
    for (int i = 0; i < 2 && !set->there; i++) {
        char path[DC_PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s%s", folder, name, ends[i]);
        if (n >= (int)sizeof path) continue;
        DC_TRY(dc_file_find(path, &set->there));
        if (set->there) // a store is named by its folder
            snprintf(set->path, sizeof set->path, "%.*s", i ? n - (int)strlen(ends[1]) : n, path);
    }
    return DC_OK;
}

dc_status paper_look(paper_set *set) {
    char path[DC_PATH_MAX + 16];
    if (set->shards) {
        DC_TRY(dc_folder_inside(set->path));
        snprintf(path, sizeof path, "%s/index.json", set->path);
        return dc_file_find(path, &set->there);
    }
    DC_TRY(dc_file_inside(set->path));
    DC_TRY(dc_file_find(set->path, &set->there));
    snprintf(path, sizeof path, "%.*s-val.npz", (int)strlen(set->path) - 4, set->path);
    DC_TRY(dc_file_inside(path));
    if (!set->there || set->episodes < VAL_FROM) return DC_OK;
    return dc_file_find(path, &set->there); // gen writes it last
}

// How much there is of a set, and whether it can be made. Errors: DC_IO, DC_USAGE if it cannot.
static dc_status size_set(const dc_paper_scale *s, int64_t transitions, dc_env_spec *spec,
                          paper_set *set) {
    dc_gen gen;
    dc_data_kind kind = spec->data;
    dc_env_plain(spec);
    DC_TRY(dc_gen_init(&gen, spec, kind, &set->episodes));
    set->rows = s->rows ? s->rows : gen.rows;
    if (transitions) set->episodes = (transitions - 1) / (set->rows - 1) + 1;
    set->shards = set->episodes > SHARD_FROM ? (int)((set->episodes - 1) / SHARD + 1) : 0;
    double all = 1.1 * (double)set->episodes * (double)set->rows; // with those for validation
    set->bytes = all * dc_gen_packed_bytes(spec);
    if (set->shards) set->bytes += all / 1.1 * 4 * (spec->family->obs + spec->family->act);
    return dc_gen_experts_find(spec);
}

// OGBench's name, and behind it what of its size is not OGBench's.
static void name_set(const dc_env_spec *spec, const dc_paper_scale *s, int64_t transitions,
                     char name[DC_TEXT_MAX]) {
    char plain[DC_ENV_NAME_MAX], size[32] = "", rows[32] = "";
    dc_env_data_name(spec, spec->data, false, plain);
    if (transitions) snprintf(size, sizeof size, "-%" PRId64, transitions);
    if (s->rows) snprintf(rows, sizeof rows, "x%" PRId64, s->rows);
    snprintf(name, DC_TEXT_MAX, "%s%s%s", plain, size, rows);
}

static dc_status fill_set(paper *p, const dc_cell *c, const dc_paper_scale *s, paper_set *set) {
    dc_env_spec spec;
    char plain[DC_ENV_NAME_MAX], name[DC_TEXT_MAX], folder[DC_PATH_MAX];
    DC_TRY(dc_env_find(&spec, c->env));
    set->obs = spec.family->obs;
    set->act = spec.family->act;
    set->goal = spec.goal;
    dc_env_data_name(&spec, spec.data, false, plain);
    snprintf(set->env, sizeof set->env, "%s", plain);
    name_set(&spec, s, c->transitions, name);
    if (*p->flags->data) DC_TRY(look_in(p->flags->data, plain, set));
    dc_status status = size_set(s, c->transitions, &spec, set);
    if (status == DC_NO_MEMORY || set->there) return set->there ? DC_OK : status;
    if (status != DC_OK) return keep_error(p, &set->missing);
    DC_TRY(paper_folder(p, folder, "data"));
    int n =
        snprintf(set->path, sizeof set->path, "%s/%s%s", folder, name, set->shards ? "" : ".npz");
    return n < (int)sizeof set->path ? paper_look(set) : paper_path(p, folder, set->path);
}

// The set of a cell; cells of one environment and size share it.
static dc_status find_set(paper *p, const dc_experiment *e, const dc_cell *c, int *place) {
    paper_set set = {.there = false};
    DC_TRY(fill_set(p, c, &e->scale, &set));
    for (*place = 0; *place < p->set_count; ++*place) {
        const paper_set *old = &p->sets[*place];
        bool same = !strcmp(old->env, set.env) && !strcmp(old->path, set.path);
        if (same) return DC_OK;
    }
    paper_set *sets = realloc(p->sets, (size_t)(p->set_count + 1) * sizeof *sets);
    if (!sets) return no_memory();
    p->sets = sets;
    p->sets[p->set_count++] = set;
    return DC_OK;
}

// ---- runs ----

// Whether all runs of a cell have ended, by the files that say so.
static dc_status find_done(const paper *p, paper_run *r) {
    char folder[DC_PATH_MAX], name[DC_PATH_MAX + 32];
    const dc_experiment *e = r->experiment;
    r->done = true;
    DC_TRY(paper_folder(p, folder, r->cell->folder));
    for (int64_t s = e->scale.seeds; s-- > 0 && r->done;) {
        DC_TRY(dc_cell_member(e, r->cell, p->flags->out, s, folder, sizeof folder));
        snprintf(name, sizeof name, "%s/%s", folder, e->lock ? "result.json" : "DONE");
        DC_TRY(dc_file_find(name, &r->done));
    }
    if (!r->done || e->view != DC_VIEW_MAPS) return DC_OK;
    snprintf(name, sizeof name, "%s/map-task1.svg", folder); // of the least seed
    return dc_file_find(name, &r->done);
}

static dc_status add_run(paper *p, const dc_experiment *e, dc_cell *c, int set) {
    for (int i = 0; i < p->run_count; i++) {
        paper_run *old = &p->runs[i];
        if (strcmp(old->cell->folder, c->folder) != 0) continue;
        if (e->view != DC_VIEW_MAPS) return DC_OK;
        old->experiment = e; // whose maps are wanted, too
        return find_done(p, old);
    }
    paper_run *runs = realloc(p->runs, (size_t)(p->run_count + 1) * sizeof *runs);
    if (!runs) return no_memory();
    p->runs = runs;
    p->runs[p->run_count] = (paper_run){.experiment = e, .cell = c, .set = set};
    return find_done(p, &p->runs[p->run_count++]);
}

static dc_status find_cell(paper *p, const dc_experiment *e, dc_cell *c, bool wanted) {
    int set = -1;
    if (c->missing) return DC_OK;
    if (!e->lock) DC_TRY(find_set(p, e, c, &set));
    if (set >= 0) c->missing = p->sets[set].missing;
    return c->missing || !wanted ? DC_OK : add_run(p, e, c, set);
}

dc_status paper_find(paper *p) {
    for (int i = 0; i < p->plan.count; i++) {
        dc_experiment *e = &p->plan.experiments[i];
        for (int k = 0; k < dc_experiment_cells(e); k++)
            DC_TRY(find_cell(p, e, &e->cells[k], i < p->wanted));
    }
    return DC_OK;
}

void paper_fini(paper *p) {
    free(p->sets);
    free(p->runs);
    dc_plan_fini(&p->plan);
}

// ---- command lines ----

static dc_status convert_words(const paper_set *set, cli_job *job) {
    DC_TRY(cli_job_word(job, "data"));
    DC_TRY(cli_job_word(job, "convert"));
    for (int i = 0; i < set->shards; i++)
        DC_TRY(cli_job_word(job, "%s-%03d.npz", set->path, i));
    return cli_job_word(job, "%s.part", set->path);
}

dc_status paper_set_words(const paper *p, const paper_set *set, int which, cli_job *job) {
    snprintf(job->folder, sizeof job->folder, "%s", set->path);
    snprintf(job->log, sizeof job->log, "%s.log", set->path);
    DC_TRY(cli_job_word(job, "dcrl"));
    if (which) return convert_words(set, job);
    DC_TRY(cli_job_word(job, "gen"));
    DC_TRY(cli_job_word(job, "%s", set->env));
    DC_TRY(cli_job_word(job, "--out=%s%s", set->path, set->shards ? ".npz" : ""));
    DC_TRY(cli_job_word(job, "--episodes=%" PRId64, set->episodes));
    DC_TRY(cli_job_word(job, "--rows=%" PRId64, set->rows));
    return p->flags->threads ? cli_job_word(job, "--threads=%" PRId64, p->flags->threads) : DC_OK;
}

static dc_status add_list(cli_job *job, const char *flag, const dc_int_list *list) {
    char text[512] = "";
    for (int i = 0; i < list->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRId64, i ? "," : "",
                 list->v[i]);
    return list->count ? cli_job_word(job, "--%s=%s", flag, text) : DC_OK;
}

static dc_status add_seeds(cli_job *job, int64_t seeds) {
    return seeds > 1 ? cli_job_word(job, "--seed=0-%" PRId64, seeds - 1)
                     : cli_job_word(job, "--seed=0");
}

static dc_status lock_words(const paper_run *run, cli_job *job) {
    const dc_lock_scale *l = &run->experiment->scale.lock;
    DC_TRY(cli_job_word(job, "lock"));
    DC_TRY(cli_job_word(job, "--agent=%s", run->cell->method));
    DC_TRY(cli_job_word(job, "--horizon=%s", run->cell->value));
    DC_TRY(cli_job_word(job, "--n=%" PRId64, l->n));
    DC_TRY(cli_job_word(job, "--steps=%" PRId64, l->steps));
    DC_TRY(cli_job_word(job, "--batch=%" PRId64, l->batch));
    return add_list(job, "hidden", &l->hidden);
}

static dc_status add_set(void *job, const char *key, const char *value) {
    return cli_job_word(job, "--set=%s=%s", key, value);
}

static dc_status train_words(const paper *p, const paper_run *run, cli_job *job) {
    const dc_paper_scale *s = &run->experiment->scale;
    char agent[DC_TEXT_MAX];
    int64_t every = s->steps / s->evaluations > 0 ? s->steps / s->evaluations : 1;
    int64_t log = s->steps / 100 > 0 ? s->steps / 100 : 1;
    dc_cell_agent(run->cell, agent);
    DC_TRY(cli_job_word(job, "train"));
    DC_TRY(cli_job_word(job, "%s", run->cell->preset));
    DC_TRY(cli_job_word(job, "--agent=%s", agent));
    DC_TRY(cli_job_word(job, "--data=%s", p->sets[run->set].path));
    DC_TRY(cli_job_word(job, "--steps=%" PRId64, s->steps));
    DC_TRY(cli_job_word(job, "--eval-every=%" PRId64, every));
    DC_TRY(cli_job_word(job, "--eval-episodes=%" PRId64, s->episodes));
    DC_TRY(cli_job_word(job, "--save-every=%" PRId64, every));
    DC_TRY(cli_job_word(job, "--log-every=%" PRId64, log < 1000 ? log : 1000));
    if (s->batch) DC_TRY(cli_job_word(job, "--batch=%" PRId64, s->batch));
    DC_TRY(add_list(job, "hidden", &s->hidden));
    DC_TRY(cli_job_word(job, "--report"));
    return dc_cell_sets(run->experiment, run->cell, add_set, job);
}

dc_status paper_run_words(const paper *p, const paper_run *run, int threads, cli_job *job) {
    DC_TRY(paper_path(p, job->folder, run->cell->folder));
    snprintf(job->log, sizeof job->log, "%s.log", job->folder);
    DC_TRY(cli_job_word(job, "dcrl"));
    DC_TRY(run->experiment->lock ? lock_words(run, job) : train_words(p, run, job));
    DC_TRY(add_seeds(job, run->experiment->scale.seeds));
    DC_TRY(cli_job_word(job, "--device=%s", p->flags->device ? "cuda" : "cpu"));
    if (threads) DC_TRY(cli_job_word(job, "--threads=%d", threads));
    return cli_job_word(job, "--out=%s", job->folder);
}
