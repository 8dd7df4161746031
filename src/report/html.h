// The report as one HTML page: what was reached, how it was learned, how fast, with which options,
// and how to do it again. Everything is inside the page: no script, no font, no link to another
// file; light and dark follow the reader's setting. The same runs give the same bytes.
#ifndef DC_HTML_H
#define DC_HTML_H

#include "report/compare.h"
#include "report/curves.h"
#include "report/runs.h"
#include "report/table.h"

extern const char dc_page_css[]; // src/report/page.css, embedded

// Write the page. Borrows: arena, for what is found on the way. Nullable: title (made from the runs then). A browser
// loads it again after `refresh` seconds; 0: never.
dc_status dc_html_page(const dc_runs *runs, const dc_table *table, const dc_compare *compare,
                       const dc_curves *curves, const char *title, int refresh, dc_arena *arena,
                       dc_text *out);

#endif
