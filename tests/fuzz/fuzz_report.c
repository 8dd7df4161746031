// Fuzz target: two run folders of any files as a report reads them, to what a report can be: a page, which takes ten
// times as long as reading, for some of the inputs, another form for others.
#include "files.h"

#include "base/file.h"
#include "report/html.h"
#include "report/lock_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a/config.json", "a/train.csv",   "a/timing.csv",
                                    "a/eval.csv",    "a/result.json", "a/map-x.svg",
                                    "a/DONE",        "b/config.json", "b/train.csv",
                                    "b/eval.csv",    "b/result.json", "b/seed-1/config.json"};
enum { FORMS = 8, PAGE = 7 }; // form 0: curves; others: tables; the last: the page as well
enum { NAMES = sizeof names / sizeof names[0] };

// Bytes of a run must not become tags of the page that run anything.
static void check_page(const dc_text *out) {
    static const char *const never[] = {"<script", "<iframe", "<object", "<foreignObject"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        DC_CHECK(!strstr(out->bytes, never[i]));
    DC_CHECK(strlen(out->bytes) == out->used);
}

static dc_status compose(const dc_runs *runs, size_t form, dc_arena *arena, dc_text *out) {
    dc_table scores;
    dc_compare compare;
    dc_curves curves;
    if (form == 0) {
        DC_TRY(dc_curves_build(&curves, runs, arena));
        return curves.count ? dc_plot_svg(out, curves.panels, curves.count) : DC_OK;
    }
    DC_TRY(dc_table_build(&scores, runs, true, arena));
    if (form != PAGE) {
        if (form % 2)
            dc_table_csv(&scores, out);
        else
            dc_table_markdown(&scores, runs, out);
        return dc_text_status(out);
    }
    DC_TRY(dc_compare_build(&compare, &scores, arena));
    DC_TRY(dc_curves_build(&curves, runs, arena));
    DC_TRY(dc_html_page(runs, &scores, &compare, &curves, NULL, 0, arena, out));
    check_page(out);
    if (compare.tasks) dc_compare_text(&compare, out);
    return dc_text_status(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!files_root[0]) {
        files_begin();
        DC_CHECK(dc_folder_make(files_path("a")) == DC_OK);
        DC_CHECK(dc_folder_make(files_path("b/seed-1")) == DC_OK);
    }
    files_split(names, NAMES, (const char *)data, size);
    dc_runs runs;
    const char *root = files_root;
    if (dc_runs_read(&runs, &root, 1) != DC_OK) return 0;
    dc_arena arena;
    dc_text out;
    dc_arena_init(&arena, 0);
    dc_text_init(&out);
    (void)compose(&runs, size % FORMS, &arena, &out);
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    dc_runs_fini(&runs);
    return 0;
}
