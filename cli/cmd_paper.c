// dcrl paper: every table and figure of the paper by name, repeated at a scale that fits the machine.
#include "args.h"
#include "cli.h"
#include "paper.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl paper list [--json]\n"
    "       dcrl paper run NAME... --out DIR [--scale smoke|small|medium|paper] [--device cuda] "
    "[--jobs N] [--dry-run] [--slurm]\n"
    "\n"
    "Repeats tables and figures of the paper: makes the data, trains and evaluates every method, "
    "and "
    "writes the page\n"
    "DIR/index.html, which has our figures beside the published ones, with NAME.csv beside it. "
    "NAME "
    "is one of\n"
    "dcrl paper list, several of them, or all. Stopped at any point, the same command goes on; "
    "other "
    "names join the\n"
    "folder and share its data and runs. --dry-run tells first what there is to do, and about how "
    "long that takes.\n"
    "A scale says how many updates, seeds and rows of data, and which smaller task stands for one "
    "that is too large;\n"
    "--scales FILE has scales of your own (docs/paper.md). What cannot be made is told as "
    "missing.\n"
    "\n"
    "example: dcrl paper run accumulation --scale smoke --out runs/paper\n"
    "         dcrl paper run n-step ablations --scale medium --device cuda --out runs/medium "
    "--dry-run\n"
    "         dcrl paper run all --scale paper --device cuda --out runs/paper --slurm\n";

static const dc_option table[] = {
    DC_OPTION_TEXT(paper_flags, out, "", "folder for data, runs and the page"),
    DC_OPTION_TEXT(paper_flags, scale, "small",
                   "smoke (minutes), small, medium, paper, or one of --scales"),
    DC_OPTION_TEXT(paper_flags, scales, "", "JSON file with scales of your own"),
    DC_OPTION_TEXT(paper_flags, data, "",
                   "folder of data sets under OGBench's names; those are taken as they are, others "
                   "made in --out"),
    DC_OPTION_CHOICE(paper_flags, device, "cpu", "cpu|cuda", "where to train"),
    DC_OPTION_INT(paper_flags, jobs, "0", 0, 1024,
                  "runs at a time; 0: one for each core, on a GPU one"),
    DC_OPTION_INT(paper_flags, threads, "0", 0, 1024, "cores to use in all; 0: every one"),
    DC_OPTION_BOOL_AS("dry-run", paper_flags, dry_run, "off",
                      "tell data, disk, steps and time, and stop"),
    DC_OPTION_BOOL(paper_flags, slurm, "off",
                   "write the scripts of a job array to DIR/slurm, and stop"),
    DC_OPTION_BOOL_AS("only-data", paper_flags, only_data, "off", "make the data, and stop"),
    DC_OPTION_BOOL_AS("only-page", paper_flags, only_page, "off",
                      "write the page anew from what is there"),
    DC_OPTION_INT(paper_flags, task, "-1", -1, 1e6,
                  "make this run alone, as a task of an array does; -1: all, and the page"),
    DC_OPTION_BOOL(paper_flags, names, "off", "list: the names alone, one a line"),
    {0},
};

// ---- list ----

static const char *text_of(const dc_json *e, const char *key) {
    const dc_json *v = dc_json_get(e, key);
    return v && v->kind == DC_JSON_STRING ? v->text : NULL;
}

static void json_texts(dc_text *out, const char *key, const dc_json *list) {
    dc_text_add(out, ", \"%s\": [", key);
    for (const dc_json *m = list ? list->child : NULL; m; m = m->next) {
        if (m->kind == DC_JSON_STRING) dc_json_quote(out, m->text);
        if (m->kind == DC_JSON_NUMBER) dc_text_add(out, "%s", m->text);
        dc_text_add(out, m->next ? ", " : "");
    }
    dc_text_add(out, "]");
}

// Why nothing of an experiment can be made; NULL: some of it can.
static const char *missing_of(const dc_plan *plan, const char *name) {
    for (int i = 0; i < plan->count; i++) {
        const dc_experiment *e = &plan->experiments[i];
        const char *why = NULL;
        if (strcmp(e->name, name) != 0) continue;
        for (int k = 0; k < dc_experiment_cells(e); k++) {
            why = e->cells[k].missing;
            if (!why) break;
        }
        return why;
    }
    return NULL;
}

static void json_row(dc_text *out, const dc_json *e, const char *missing) {
    static const char *const texts[] = {"title", "says", "found", "view", "along"};
    dc_text_add(out, "{\"name\": \"%s\"", e->key);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *value = text_of(e, texts[i]);
        if (!value) continue;
        dc_text_add(out, ", \"%s\": ", texts[i]);
        dc_json_quote(out, value);
    }
    if (missing) dc_text_add(out, ", \"missing\": ");
    if (missing) dc_json_quote(out, missing);
    json_texts(out, "tasks", dc_json_get(e, "tasks"));
    json_texts(out, "methods", dc_json_get(e, "methods"));
    json_texts(out, "values", dc_json_get(e, "values"));
    dc_text_add(out, "}%s\n", e->next ? "," : "");
}

static void put_row(dc_text *out, const dc_json *e, const char *missing, bool json, bool names) {
    if (json)
        json_row(out, e, missing);
    else if (names)
        dc_text_add(out, "%s\n", e->key);
    else
        dc_text_add(out, "%-16s %s\n", e->key, text_of(e, "says"));
    if (!json && !names && missing) dc_text_add(out, "%-16s missing: %s\n", "", missing);
}

static dc_status list(bool json, bool names) {
    dc_plan plan;
    dc_text out;
    DC_TRY(dc_plan_open(&plan, NULL, "paper"));
    dc_text_init(&out);
    dc_status status = names ? DC_OK : dc_plan_add(&plan, "all");
    if (json) dc_text_add(&out, "{\"experiments\": [\n");
    for (const dc_json *e = plan.all->child; e; e = e->next)
        put_row(&out, e, missing_of(&plan, e->key), json, names);
    if (json) dc_text_add(&out, "]}\n");
    if (status == DC_OK) status = dc_text_status(&out);
    if (status == DC_OK) fputs(out.bytes, stdout);
    dc_text_fini(&out);
    dc_plan_fini(&plan);
    return status;
}

// ---- run ----

static dc_status act(paper *p, bool json) {
    const paper_flags *f = p->flags;
    DC_TRY(paper_find(p));
    if (f->dry_run) return paper_tell(p, json);
    if (f->slurm) return paper_write_slurm(p);
    if (f->only_page) return paper_write_page(p);
    return paper_make(p);
}

static dc_status open_plan(paper *p, const cli_args *args) {
    for (int i = 1; i < args->word_count; i++)
        DC_TRY(dc_plan_add(&p->plan, args->words[i]));
    return paper_join(p);
}

static dc_status run(const cli_args *args, paper_flags *f) {
    paper p = {.flags = f};
    size_t n = strlen(f->out);
    while (n > 1 && f->out[n - 1] == '/')
        f->out[--n] = 0;
    if (args->word_count < 2)
        return dc_fail(DC_USAGE, "dcrl paper list shows them",
                       "the name of a table or figure is missing");
    if (!n) return dc_fail(DC_USAGE, "write --out DIR", "a folder for the runs is missing");
    if (args->json && !f->dry_run)
        return dc_fail(DC_USAGE, "NAME.csv in --out has the numbers",
                       "--json goes with --dry-run alone");
    DC_TRY(dc_plan_open(&p.plan, *f->scales ? f->scales : NULL, f->scale));
    dc_status status = open_plan(&p, args);
    if (status == DC_OK) status = act(&p, args->json);
    paper_fini(&p);
    return status;
}

dc_status cmd_paper(int argc, char **argv) {
    static const char *const names[] = {"list", "run"};
    paper_flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS | CLI_JSON};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    const char *word = args.word_count ? args.words[0] : "";
    if (!strcmp(word, names[0]) && args.word_count == 1) return list(args.json, f.names);
    if (!strcmp(word, names[1])) return run(&args, &f);
    const char *near = dc_nearest(word, names, 2);
    return dc_fail(DC_USAGE, "dcrl paper list, or dcrl paper run NAME --out DIR",
                   "unknown sub-command (%s)%s%s", word, near ? ", perhaps " : "",
                   near ? near : "");
}
