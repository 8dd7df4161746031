// Parts of HTML pages: elements, tables, figures, sections. All text from outside goes through dc_markup_text. Tables
// carry their roles and each cell the name of its column, so that on a narrow screen the style (page.css) can lay a
// row out as a card and a screen reader still reads a table.
#ifndef DC_PARTS_H
#define DC_PARTS_H

#include "report/markup.h"
#include "report/plot.h"
#include "report/stats.h"

#include <math.h>

static inline void text(dc_text *out, const char *s) {
    dc_markup_text(out, s, DC_MARKUP_ALL);
}

// <tag>escaped</tag>
static inline void element(dc_text *out, const char *tag, const char *s) {
    dc_text_add(out, "<%s>", tag);
    text(out, s);
    dc_text_add(out, "</%s>\n", tag);
}

static inline void mean_sd(dc_text *out, double mean, double sd, int decimals) {
    dc_markup_fixed(out, mean, decimals);
    if (!isfinite(sd)) return;
    dc_text_add(out, " <small>± ");
    dc_markup_fixed(out, sd, decimals);
    dc_text_add(out, "</small>");
}

// One seed has no deviation.
static inline void spread(dc_text *out, const dc_spread *s, int decimals) {
    if (s->count > 1)
        mean_sd(out, s->mean, s->sd, decimals);
    else
        dc_markup_fixed(out, s->mean, decimals);
}

static inline void table_open(dc_text *out, const char *caption) {
    dc_text_add(out, "<div class=\"table\"><table role=\"table\">\n<caption>");
    text(out, caption);
    dc_text_add(out, "</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">");
}

static inline void head(dc_text *out, const char *name) {
    dc_text_add(out, "<th role=\"columnheader\" scope=\"col\">");
    text(out, name);
    dc_text_add(out, "</th>");
}

static inline void body(dc_text *out) {
    dc_text_add(out, "</tr></thead>\n<tbody role=\"rowgroup\">\n");
}

static inline void row_open(dc_text *out, const char *name) {
    dc_text_add(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    text(out, name);
    dc_text_add(out, "</th>");
}

// A row of a method: its line and marker as in the figures stand before the name.
static inline void row_open_as(dc_text *out, const char *name, int style) {
    dc_text_add(out, "<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
    dc_plot_key(out, style);
    text(out, name);
    dc_text_add(out, "</th>");
}

static inline void cell_open(dc_text *out, const char *column, const char *class) {
    dc_text_add(out, "<td role=\"cell\" class=\"%s\" data-label=\"", class);
    text(out, column);
    dc_text_add(out, "\"><span>");
}

static inline void cell_close(dc_text *out) {
    dc_text_add(out, "</span></td>");
}

static inline void row_close(dc_text *out) {
    dc_text_add(out, "</tr>\n");
}

static inline void table_close(dc_text *out) {
    dc_text_add(out, "</tbody></table></div>\n");
}

// A bar under a number; the number itself says what the bar shows.
static inline void meter(dc_text *out, double part) {
    double percent = isfinite(part) ? fmin(fmax(part, 0), 1) * 100 : 0;
    dc_text_add(out, "<span class=\"meter\" aria-hidden=\"true\"><i style=\"width:");
    dc_markup_fixed(out, percent, 1);
    dc_text_add(out, "%%\"></i></span>");
}

static inline void section(dc_text *out, const char *id, const char *title) {
    dc_text_add(out, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
    text(out, title);
    dc_text_add(out, "</h2>\n");
}

static inline void section_end(dc_text *out) {
    dc_text_add(out, "</section>\n");
}

static inline void figure_open(dc_text *out, const char *about) {
    dc_text_add(out, "<figure><div class=\"picture\" role=\"img\" aria-label=\"");
    text(out, about);
    dc_text_add(out, "\">\n");
}

// Nullable: note, which is seen; the title stands in the picture.
static inline void figure_close(dc_text *out, const char *title, const char *note) {
    dc_text_add(out, "</div><figcaption>");
    text(out, title);
    dc_text_add(out, "</figcaption>");
    if (note) element(out, "p", note);
    dc_text_add(out, "</figure>\n");
}

static inline void figure(dc_text *out, const char *title, const char *about, const dc_text *svg,
                          const char *note) {
    figure_open(out, about);
    dc_text_bytes(out, svg->bytes, svg->used);
    figure_close(out, title, note);
}

// A table that would have too many cells.
static inline void too_large(dc_text *out, int rows, int columns) {
    dc_text_add(
        out,
        "<p class=\"note\">%d rows and %d columns are more than a page can show; <code>dcrl "
        "report --format csv</code> has every number.</p>\n",
        rows, columns);
}

#endif
