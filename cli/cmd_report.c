// dcrl report: run folders in, one file out: a page for people, or a table or figure for a paper.
#include "args.h"
#include "cli.h"

#include "base/file.h"
#include "report/html.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dcrl report RUN... -o report.html [--format html|svg|csv|md] [--title TEXT]\n"
    "\n"
    "Reads run folders, or folders of runs, and writes one file: a self-contained HTML page with "
    "success\n"
    "beside the paper's figures, learning curves, throughput, options and the commands to repeat "
    "it; or the\n"
    "curves as SVG, or the scores as CSV or Markdown. Runs that differ only by their seed are "
    "averaged.\n"
    "\n"
    "example: dcrl report runs/lock -o report.html\n"
    "         dcrl report runs/a runs/b -o - --format md\n";

enum { BY_NAME, HTML, SVG, CSV, MD };

typedef struct flags {
    char out[DC_TEXT_MAX], title[DC_TEXT_MAX];
    int format;
} flags;

static const dc_option table[] = {
    DC_OPTION_TEXT(flags, out, "", "file to write; - for standard output"),
    DC_OPTION_CHOICE(flags, format, "auto", "auto|html|svg|csv|md",
                     "what to write; auto: by the end of the file's name, else html"),
    DC_OPTION_TEXT(flags, title, "", "headline of the page"),
    {0},
};

static int format_of(const flags *f) {
    static const char *const ends[] = {"", ".html", ".svg", ".csv", ".md"};
    if (f->format != BY_NAME) return f->format;
    size_t n = strlen(f->out);
    for (int i = SVG; i <= MD; i++)
        if (n > strlen(ends[i]) && !strcmp(f->out + n - strlen(ends[i]), ends[i])) return i;
    return HTML;
}

// Success where there are evaluations, else what training logged.
static dc_status draw(const dc_curves *curves, dc_text *out) {
    if (!curves->count)
        return dc_fail(DC_BAD_INPUT, "name runs that have train.csv or eval.csv",
                       "there are no curves to draw");
    return dc_plot_svg(out, curves->panels, curves->success ? curves->success : curves->count);
}

static dc_status compose(const dc_runs *runs, const flags *f, dc_arena *arena, dc_text *out) {
    dc_table scores;
    dc_curves curves;
    int format = format_of(f);
    DC_TRY(dc_table_build(&scores, runs, arena));
    DC_TRY(dc_curves_build(&curves, runs, arena));
    if (format == HTML)
        return dc_html_page(runs, &scores, &curves, *f->title ? f->title : NULL, out);
    if (format == SVG) return draw(&curves, out);
    if (format == CSV)
        dc_table_csv(&scores, out);
    else
        dc_table_markdown(&scores, runs, out);
    return dc_text_status(out);
}

static dc_status write_report(const dc_runs *runs, const flags *f) {
    dc_arena arena;
    dc_arena_init(&arena, 0);
    dc_text out;
    dc_text_init(&out);
    dc_status status = compose(runs, f, &arena, &out);
    bool print = !strcmp(f->out, "-");
    if (status == DC_OK && print) fwrite(out.bytes, 1, out.used, stdout);
    if (status == DC_OK && !print) status = dc_file_write(f->out, out.bytes, out.used);
    if (status == DC_OK && !print)
        printf("%s: %d run%s in %d group%s\n", f->out, runs->count, runs->count == 1 ? "" : "s",
               runs->group_count, runs->group_count == 1 ? "" : "s");
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    return status;
}

dc_status cmd_report(int argc, char **argv) {
    flags f;
    cli_args args = {.usage = usage, .flags = table, .config = &f, .takes = CLI_WORDS};
    DC_TRY(cli_args_parse(&args, argc, argv));
    if (args.help) return DC_OK;
    if (!args.word_count)
        return dc_fail(DC_USAGE, "dcrl report RUN... -o report.html", "a run folder is missing");
    if (!*f.out)
        return dc_fail(DC_USAGE, "dcrl report RUN... -o report.html",
                       "a file to write is missing (--out)");
    dc_runs runs;
    DC_TRY(dc_runs_read(&runs, (const char *const *)args.words, args.word_count));
    dc_status status = write_report(&runs, &f);
    dc_runs_fini(&runs);
    return status;
}
