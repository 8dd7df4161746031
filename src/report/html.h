// The report as one HTML page: what was reached, how it was learned, how fast, with which options,
// and how to do it again. Everything is inside the page: no script, no font, no link to another
// file; light and dark follow the reader's setting. The same runs give the same bytes.
#ifndef DC_HTML_H
#define DC_HTML_H

#include "report/curves.h"
#include "report/runs.h"
#include "report/table.h"

extern const char dc_page_css[]; // src/report/page.css, embedded

// Write the page. Nullable: title (made from the runs then).
dc_status dc_html_page(const dc_runs *runs, const dc_table *table, const dc_curves *curves,
                       const char *title, dc_text *out);

// Append a figure: `svg` is an element that this program drew (it is copied as it is), `about` says
// in words what it shows. For panels of plot.h and for maps drawn by others.
void dc_html_figure(dc_text *out, const char *title, const char *about, const dc_text *svg);

#endif
