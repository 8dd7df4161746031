// See live.h. Everything is read from the folder again: the page is what `dcrl report` would write now.
#include "report/live.h"

#include "base/file.h"
#include "report/html.h"
#include "train/folder.h"

#include <string.h>

static dc_status compose(const dc_runs *runs, bool alive, dc_arena *arena, dc_text *out) {
    dc_table table;
    dc_compare compare;
    dc_curves curves;
    DC_TRY(dc_table_build(&table, runs, false, arena));
    DC_TRY(dc_compare_build(&compare, &table, arena));
    DC_TRY(dc_curves_build(&curves, runs, arena));
    return dc_html_page(runs, &table, &compare, &curves, NULL, alive ? DC_LIVE_SECONDS : 0, arena,
                        out);
}

dc_status dc_live_page(const char *folder, bool alive) {
    char path[DC_PATH_MAX];
    dc_runs runs;
    dc_arena arena;
    dc_text out;
    DC_TRY(dc_folder_path(path, folder, "report.html"));
    DC_TRY(dc_runs_read(&runs, &folder, 1));
    dc_arena_init(&arena, 0);
    dc_text_init(&out);
    dc_folder_sweep(folder);
    dc_status status = compose(&runs, alive, &arena, &out);
    if (status == DC_OK) status = dc_file_write_inside(path, out.bytes, out.used);
    dc_text_fini(&out);
    dc_arena_fini(&arena);
    dc_runs_fini(&runs);
    return status;
}
