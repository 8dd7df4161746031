// dcrl report: run folders in, one file out: a page for people, or a table or figure for a paper.
#include "args.h"
#include "cli.h"

#include "base/file.h"
#include "base/json.h"
#include "report/html.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl report RUN... [-o report.html] [--format html|svg|csv|md|text] [--title TEXT] "
    "[--json]\n"
    "\n"
    "Reads run folders, or folders of runs, and writes one file: a self-contained HTML page with "
    "success of\n"
    "methods and tasks beside published figures, learning curves, throughput, options and the "
    "commands to\n"
    "repeat it; or the curves as SVG, or the scores as CSV or Markdown. Without a file it prints "
    "the table of\n"
    "methods and tasks. Runs that differ only by their seed are averaged. --json prints that table "
    "as JSON.\n"
    "\n"
    "example: dcrl report runs/lock -o report.html\n"
    "         dcrl report runs/a runs/b\n";

enum { BY_NAME, HTML, SVG, CSV, MD, TEXT };

typedef struct flags {
    char out[DC_TEXT_MAX], title[DC_TEXT_MAX];
    int format;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "file to write; -: standard output, as without any"),
    DC_OPTION_CHOICE(flags, format, "auto", "auto|html|svg|csv|md|text",
                     "what to write; auto: by the end of the file's name, else html; without a "
                     "file text"),
    DC_OPTION_TEXT(flags, title, "", "headline of the page"),
    {0},
};

// What to write, if no flag says it.
static dc_status choose_format(flags *f) {
    static const char *const ends[] = {"", ".html", ".svg", ".csv", ".md", ".txt"};
    if (f->format != BY_NAME) return DC_OK;
    const char *slash = strrchr(f->out, '/'), *dot = strrchr(slash ? slash : f->out, '.');
    f->format = *f->out ? HTML : TEXT; // a name without an end is a page
    if (!dot) return DC_OK;
    for (f->format = HTML; f->format <= TEXT; f->format++)
        if (!strcmp(dot, ends[f->format])) return DC_OK;
    return dc_fail(DC_USAGE, "end the name in .html, .svg, .csv, .md or .txt, or give --format",
                   "what to write is not clear from the name (%s)", f->out);
}

// Success where there are evaluations, else what training logged.
static dc_status draw(const dc_curves *curves, dc_text *out) {
    if (!curves->count)
        return dc_fail(DC_BAD_INPUT, "name runs that have train.csv or eval.csv",
                       "there are no curves to draw");
    return dc_plot_svg(out, curves->panels, curves->success ? curves->success : curves->count);
}

static dc_status say(const dc_compare *compare, const dc_table *scores, dc_text *out) {
    if (!compare->tasks) dc_table_held_out(scores, out);
    if (out->used) return dc_text_status(out);
    if (!compare->tasks)
        return dc_fail(
            DC_BAD_INPUT,
            "dcrl eval evaluates them; of data without an environment, -o page.html shows "
            "losses and held-out rows",
            "no run has been evaluated");
    dc_compare_text(compare, out);
    return dc_text_status(out);
}

static dc_status compose(const dc_runs *runs, const flags *f, dc_arena *arena, dc_text *out) {
    dc_table scores;
    dc_compare compare;
    dc_curves curves;
    int format = f->format;
    DC_TRY(dc_table_build(&scores, runs, format == CSV, arena));
    DC_TRY(dc_compare_build(&compare, &scores, arena));
    DC_TRY(dc_curves_build(&curves, runs, arena));
    if (format == HTML)
        return dc_html_page(runs, &scores, &compare, &curves, *f->title ? f->title : NULL, 0, arena,
                            out);
    if (format == SVG) return draw(&curves, out);
    if (format == TEXT) return say(&compare, &scores, out);
    if (format == CSV) {
        dc_table_csv(&scores, out);
    } else {
        dc_table_markdown(&scores, runs, out);
        if (compare.count > 1) dc_compare_markdown(&compare, out);
    }
    return dc_text_status(out);
}

// {"runs": 3, "groups": 1, "file": "report.html", "table": [...]}: the file, if one was written, and the table of methods and tasks.
static dc_status print_json(const dc_runs *runs, const char *file, dc_arena *arena) {
    dc_table scores;
    dc_compare compare;
    dc_text out;
    DC_TRY(dc_table_build(&scores, runs, false, arena));
    DC_TRY(dc_compare_build(&compare, &scores, arena));
    dc_text_init(&out);
    dc_text_add(&out, "{\"runs\": %d, \"groups\": %d", runs->count, runs->group_count);
    if (*file) dc_text_add(&out, ", \"file\": ");
    if (*file) dc_json_quote(&out, file);
    dc_text_add(&out, ", \"table\": ");
    dc_compare_json(&compare, &out);
    dc_text_add(&out, "}\n");
    dc_status status = dc_text_status(&out);
    if (status == DC_OK) fwrite(out.bytes, 1, out.used, stdout);
    dc_text_fini(&out);
    return status;
}

static dc_status write_json(const dc_runs *runs, const flags *f) {
    dc_arena arena;
    dc_text out;
    dc_arena_init(&arena, 0);
    dc_text_init(&out);
    dc_status status = *f->out ? compose(runs, f, &arena, &out) : DC_OK;
    if (status == DC_OK && *f->out) status = dc_file_write(f->out, out.bytes, out.used);
    if (status == DC_OK) status = print_json(runs, f->out, &arena);
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    return status;
}

static dc_status write_report(const dc_runs *runs, const flags *f, bool quiet) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_text out;
    dc_text_init(&out);
    dc_status status = compose(runs, f, &arena, &out);
    bool print = !*f->out || !strcmp(f->out, "-");
    if (status == DC_OK && print) fwrite(out.bytes, 1, out.used, stdout);
    if (status == DC_OK && !print) status = dc_file_write(f->out, out.bytes, out.used);
    if (status == DC_OK && !print && !quiet)
        printf("%s: %d run%s in %d group%s\n", f->out, runs->count, runs->count == 1 ? "" : "s",
               runs->group_count, runs->group_count == 1 ? "" : "s");
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    return status;
}

dc_status cmd_report(int argc, char **argv) {
    flags f;
    cli_args args = {
        .usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS | CLI_JSON | CLI_QUIET};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (!args.word_count)
        return dc_fail(DC_USAGE, "dcrl report RUN... -o report.html", "a run folder is missing");
    DC_TRY(choose_format(&f));
    if (args.json && !strcmp(f.out, "-"))
        return dc_fail(DC_USAGE, "leave one of them out", "--json and -o - both print");
    dc_runs runs;
    DC_TRY(dc_runs_read(&runs, (const char *const *)args.words, args.word_count));
    dc_status status = args.json ? write_json(&runs, &f) : write_report(&runs, &f, args.quiet);
    dc_runs_fini(&runs);
    return status;
}
