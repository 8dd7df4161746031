// Line plots as self-contained SVG: one or more panels side by side, each with series, seed bands,
// axes with round ticks and a legend. Numbers come from run folders; the picture goes to a file or
// page.
#ifndef DC_PLOT_H
#define DC_PLOT_H

#include "base/text.h"

#include <stdbool.h>

typedef struct dc_series {
    const char *name;
    int count;
    const double *x, *y;   // (count)
    const double *lo, *hi; // (count) band around y; Nullable
    int style;             // its colour and marker: a method has the same on a whole page
    bool dotted;           // the same method on other data
} dc_series;

typedef struct dc_panel {
    const char *title, *x_label, *y_label;
    bool log_x, log_y; // log2 ticks on x, decades on y
    const dc_series *series;
    int count;
    bool percent;   // y is shown from 0 to 100, so that pictures compare
    bool from_zero; // x begins at 0
} dc_panel;

// Append an <svg> element of `count` panels. Values that are not finite (or not positive on a log
// axis) leave a gap. _svg is a file of its own, right in the light and in the dark; _figure stands in a
// page that has dc_plot_dark in its style.
dc_status dc_plot_svg(dc_text *out, const dc_panel *panels, int count);
dc_status dc_plot_figure(dc_text *out, const dc_panel *panels, int count);
// Append what stands before a name in legends, for tables of the same page.
void dc_plot_key(dc_text *out, int style);

extern const char dc_plot_dark[]; // CSS
#endif
