// SVG line plots, see plot.h. Numbers from run folders come in as panels of series; one <svg>
// element goes out. It is self-contained (no script, no ids, so many fit into one page; what recolours
// it in the dark goes by attributes, and stands in a file's own style or once in a page's) and its bytes depend on the input alone: coordinates and labels are formatted here from
// integers, since printf's decimal point follows the locale of the program that loads the library.
//
// Order of work: fit the two axes of a panel to its data, write frame, ticks and labels, then
// bands, lines and markers, and the legend in rows below the frame, where it covers nothing.
#include "report/plot.h"

#include "report/markup.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 520, // of a panel; its height is HEIGHT and a ROW for each legend row after the first
    HEIGHT = 360,
    LEFT = 72, // frame of the data inside the panel
    RIGHT = 504,
    TOP = 38,
    BOTTOM = 276,
    LEGEND = 340, // base line of the first legend row
    ROW = 20,
    TICKS = 64,   // most ticks of an axis
    MARKERS = 40, // most points that all get a marker; a longer series gets a dozen
    NAME = 44,    // longest name, in characters
};

// Okabe and Ito's colours, readable with any kind of colour vision; markers differ as well.
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#555555", "#8c6d1f"};
enum { COLOURS = sizeof colours / sizeof colours[0], SHAPES = 5 };

// In the dark the drawing is recoloured by its attributes. The ground is that of page.css.
const char dc_plot_dark[] =
    "@media screen and (prefers-color-scheme: dark) {\n"
    ".plot{fill:#e6e9ee}.plot>rect[fill=\"#fff\"]{fill:#1a1e25}.plot "
    "[stroke=\"#fff\"]{stroke:#1a1e25}"
    ".plot [stroke=\"#e8e8e8\"]{stroke:#2b313b}.plot [stroke=\"#888\"]{stroke:#6c7684}\n"
    ".plot [fill=\"#555\"],.plot [fill=\"#888\"]{fill:#9aa4b2}\n"
    ".plot [stroke=\"#0072b2\"]{stroke:#4aa8e0}.plot [fill=\"#0072b2\"]{fill:#4aa8e0}"
    ".plot [stroke=\"#d55e00\"]{stroke:#f07f2f}.plot [fill=\"#d55e00\"]{fill:#f07f2f}\n"
    ".plot [stroke=\"#009e73\"]{stroke:#25c195}.plot [fill=\"#009e73\"]{fill:#25c195}"
    ".plot [stroke=\"#555555\"]{stroke:#b4bcc8}.plot [fill=\"#555555\"]{fill:#b4bcc8}\n"
    ".plot [stroke=\"#8c6d1f\"]{stroke:#c9a545}.plot [fill=\"#8c6d1f\"]{fill:#c9a545}\n"
    "}\n";

static const double tiny = 1e-280, huge = 1e280;

typedef struct axis {
    bool log;
    double lo, hi;   // range shown, in data units
    double from, to; // the same in pixels
} axis;

typedef struct tick {
    double at;
    char text[80]; // "" for a minor tick
    int power;     // exponent above the text, INT_MIN for none
} tick;

// ------------------------------------------------------------------------------------ numbers and
// text

// A coordinate with two decimals, trailing zeros dropped.
static void add_px(dc_text *out, double v) {
    long long n = llround(v * 100);
    const char *sign = n < 0 ? "-" : "";
    n = n < 0 ? -n : n;
    if (n % 100 == 0) {
        dc_text_add(out, "%s%lld", sign, n / 100);
    } else if (n % 10 == 0) {
        dc_text_add(out, "%s%lld.%lld", sign, n / 100, n / 10 % 10);
    } else {
        dc_text_add(out, "%s%lld.%02lld", sign, n / 100, n % 100);
    }
}

static void add_point(dc_text *out, double x, double y) {
    add_px(out, x);
    dc_text_add(out, ",");
    add_px(out, y);
}

// name="v", with a space in front.
static void add_attr(dc_text *out, const char *name, double v) {
    dc_text_add(out, " %s=\"", name);
    add_px(out, v);
    dc_text_add(out, "\"");
}

// A value for a person, four digits.
static void add_value(dc_text *out, double v) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", v);
    char *comma = strchr(text, ',');
    if (comma) *comma = '.';
    dc_text_add(out, "%s", text);
}

// ----------------------------------------------------------------------------------------------
// axes

static bool drawable(const axis *a, double v) {
    return isfinite(v) && fabs(v) < huge && (!a->log || v > tiny);
}

static double to_px(const axis *a, double v) {
    if (v < a->lo) v = a->lo; // the lower edge of a band may lie below a log axis
    double t = a->log ? log(v / a->lo) / log(a->hi / a->lo) : (v - a->lo) / (a->hi - a->lo);
    return a->from + t * (a->to - a->from);
}

static void stretch(axis *a, double v) {
    if (!drawable(a, v)) return;
    a->lo = fmin(a->lo, v);
    a->hi = fmax(a->hi, v);
}

// Air around the data; a single value gets a range of its own. False if there is nothing to show.
static bool settle(axis *a, bool from_zero) {
    if (a->lo > a->hi) return false;
    if (a->log) {
        double pad = a->hi / a->lo > 1.05 ? pow(a->hi / a->lo, 0.04) : 2;
        a->lo /= pad;
        a->hi *= pad;
        return true;
    }
    double size = fmax(fabs(a->lo), fabs(a->hi));
    double range = a->hi - a->lo, least = fmax(size * 1e-6, tiny);
    double pad = range > least ? range * 0.04 : size > tiny ? size * 0.1 : 1;
    bool zero = from_zero && a->lo >= 0 && a->lo < 0.4 * a->hi;
    a->lo = zero ? 0 : a->lo - pad;
    a->hi += pad;
    return true;
}

// Errors and distances are read against zero, so y starts there when the data come near it.
static bool fit(const dc_panel *p, axis *x, axis *y) {
    *x = (axis){p->log_x, INFINITY, -INFINITY, LEFT, RIGHT};
    *y = (axis){p->log_y, INFINITY, -INFINITY, BOTTOM, TOP};
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            if (!drawable(y, p->series[s].y[i])) continue;
            stretch(x, p->series[s].x[i]);
            if (drawable(x, p->series[s].x[i])) stretch(y, p->series[s].y[i]);
        }
    double floor_y = y->lo / 10; // a band may pull a log axis down by one decade, not to the abyss
    for (int s = 0; s < p->count; s++)
        for (int i = 0; i < p->series[s].count; i++) {
            const dc_series *l = &p->series[s];
            if (!drawable(x, l->x[i]) || !drawable(y, l->y[i])) continue;
            if (l->lo) stretch(y, y->log && l->lo[i] < floor_y ? floor_y : l->lo[i]);
            if (l->hi) stretch(y, l->hi[i]);
        }
    if (p->percent && y->lo <= y->hi) stretch(y, 0), stretch(y, 100);
    if (p->from_zero && x->lo <= x->hi) stretch(x, 0);
    bool some_x = settle(x, p->from_zero), some_y = settle(y, !p->percent);
    return some_x && some_y;
}

// ----------------------------------------------------------------------------------------------
// ticks

// n * 10^e in plain digits.
static void decimal(char *text, size_t size, long long n, int e, const char *unit) {
    char digits[48];
    int length = snprintf(digits, sizeof digits, "%0*lld", e < 0 ? 1 - e : 1, n < 0 ? -n : n);
    const char *sign = n < 0 ? "−" : "";
    if (n == 0) {
        snprintf(text, size, "0");
    } else if (e >= 0) {
        snprintf(text, size, "%s%s%.*s%s", sign, digits, e, "000000000000000", unit);
    } else {
        int whole = length + e;
        snprintf(text, size, "%s%.*s.%s%s", sign, whole, digits, digits + whole, unit);
    }
}

static int linear_ticks(const axis *a, tick *ticks) {
    double raw = (a->hi - a->lo) / 6;
    int e = (int)floor(log10(raw));
    double m = raw / pow(10, e);
    int step = m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10;
    if (step == 10) step = 1, e++;
    double size = step * pow(10, e), top = fmax(fabs(a->lo), fabs(a->hi));
    long long first = (long long)ceil(a->lo / size - 1e-9);
    long long last = (long long)floor(a->hi / size + 1e-9);
    bool plain = top < 1e10 && e > -5;
    int unit = top >= 1e6 ? 6 : top >= 1e4 ? 3 : 0;
    int count = 0;
    for (long long k = first; k <= last && count < TICKS; k++) {
        tick *t = &ticks[count++];
        *t = (tick){.at = (double)k * size, .power = INT_MIN};
        if (plain) {
            decimal(t->text, sizeof t->text, k * step, e - unit, unit == 6 ? "M" : unit ? "k" : "");
        } else {
            snprintf(t->text, sizeof t->text, k ? "%llde%d" : "0", k * step, e);
        }
    }
    return count;
}

// Powers of two: 64, 128, ... with as many left out as needed to keep the labels apart.
static int octave_ticks(const axis *a, tick *ticks) {
    int first = (int)ceil(log2(a->lo)), last = (int)floor(log2(a->hi));
    if (last - first < 1) return linear_ticks(a, ticks);
    int stride = (last - first) / 8 + 1, count = 0;
    for (int k = first; k <= last; k += stride) {
        tick *t = &ticks[count++];
        *t = (tick){.at = ldexp(1, k), .power = INT_MIN};
        if (k >= 0 && k < 17) {
            snprintf(t->text, sizeof t->text, "%d", 1 << k);
        } else if (k < 0 && k > -7) {
            snprintf(t->text, sizeof t->text, "1/%d", 1 << -k);
        } else {
            snprintf(t->text, sizeof t->text, "2");
            t->power = k;
        }
    }
    return count;
}

static void decade_label(tick *t, int digit, int k) {
    if (k >= -3 && k <= 4) {
        decimal(t->text, sizeof t->text, digit, k, "");
    } else if (digit == 1) {
        snprintf(t->text, sizeof t->text, "10");
        t->power = k;
    }
}

// Decades; a short range also shows 2 and 5, a longer one small ticks between.
static int decade_ticks(const axis *a, tick *ticks) {
    double decades = log10(a->hi / a->lo);
    if (decades < 0.7) return linear_ticks(a, ticks);
    int first = (int)floor(log10(a->lo)), last = (int)floor(log10(a->hi));
    int stride = (last - first) / 8 + 1, count = 0;
    for (int k = first; k <= last; k += stride)
        for (int digit = 1; digit < 10 && count < TICKS; digit++) {
            double at = digit * pow(10, k);
            bool named = digit == 1 || (decades < 2 && (digit == 2 || digit == 5));
            if (at < a->lo || at > a->hi || (!named && (stride > 1 || decades > 5))) continue;
            tick *t = &ticks[count++];
            *t = (tick){.at = at, .power = INT_MIN};
            if (named) decade_label(t, digit, k);
        }
    return count;
}

// ---------------------------------------------------------------------------------------------
// drawing

static void add_line(dc_text *out, double x1, double y1, double x2, double y2, const char *colour) {
    dc_text_add(out, "<line");
    add_attr(out, "x1", x1);
    add_attr(out, "y1", y1);
    add_attr(out, "x2", x2);
    add_attr(out, "y2", y2);
    dc_text_add(out, " stroke=\"%s\"/>\n", colour);
}

static void add_label(dc_text *out, double x, double y, const char *rest, const char *text) {
    dc_text_add(out, "<text");
    add_attr(out, "x", x);
    add_attr(out, "y", y);
    dc_text_add(out, " %s>", rest);
    dc_markup_text(out, text, 56);
    dc_text_add(out, "</text>\n");
}

static void add_tick(dc_text *out, const axis *a, bool horizontal, const tick *t) {
    double v = to_px(a, t->at);
    int length = t->text[0] ? 5 : 3;
    if (horizontal) {
        if (t->text[0]) add_line(out, v, TOP, v, BOTTOM, "#e8e8e8");
        add_line(out, v, BOTTOM, v, BOTTOM + length, "#888");
    } else {
        if (t->text[0]) add_line(out, LEFT, v, RIGHT, v, "#e8e8e8");
        add_line(out, LEFT - length, v, LEFT, v, "#888");
    }
    if (!t->text[0]) return;
    dc_text_add(out, "<text");
    add_attr(out, "x", horizontal ? v : LEFT - 9);
    add_attr(out, "y", horizontal ? BOTTOM + 19 : v + 4);
    dc_text_add(out, " text-anchor=\"%s\" fill=\"#555\">%s", horizontal ? "middle" : "end",
                t->text);
    if (t->power != INT_MIN)
        dc_text_add(out, "<tspan dy=\"-5\" font-size=\"9\">%s%d</tspan>", t->power < 0 ? "−" : "",
                    t->power < 0 ? -t->power : t->power);
    dc_text_add(out, "</text>\n");
}

static void add_axes(dc_text *out, const axis *x, const axis *y) {
    tick ticks[TICKS];
    int count = x->log ? octave_ticks(x, ticks) : linear_ticks(x, ticks);
    for (int i = 0; i < count; i++)
        add_tick(out, x, true, &ticks[i]);
    count = y->log ? decade_ticks(y, ticks) : linear_ticks(y, ticks);
    for (int i = 0; i < count; i++)
        add_tick(out, y, false, &ticks[i]);
}

// A marker around (x, y); outlined in white, so that overlapping ones stay apart.
static void add_marker(dc_text *out, int style, double x, double y) {
    static const double corners[SHAPES][8] = {
        {0},
        {-3.4, -3.4, 3.4, -3.4, 3.4, 3.4, -3.4, 3.4},
        {0, -4.6, 4.3, 3.4, -4.3, 3.4, 0, -4.6},
        {0, -4.8, 4.8, 0, 0, 4.8, -4.8, 0},
        {0, 4.6, 4.3, -3.4, -4.3, -3.4, 0, 4.6},
    };
    int shape = style % SHAPES;
    dc_text_add(out, shape ? "<path d=\"M" : "<circle");
    if (shape) {
        for (int i = 0; i < 4; i++) {
            if (i) dc_text_add(out, "L");
            add_point(out, x + corners[shape][2 * i], y + corners[shape][2 * i + 1]);
        }
        dc_text_add(out, "Z\"");
    } else {
        add_attr(out, "cx", x);
        add_attr(out, "cy", y);
        dc_text_add(out, " r=\"3.8\"");
    }
    dc_text_add(out, " fill=\"%s\" stroke=\"#fff\"", colours[style % COLOURS]);
}

// Points i .. end-1 form one unbroken run in all of the given columns; returns end.
static int run_end(const dc_series *s, const axis *x, const axis *y, bool band, int i) {
    for (; i < s->count; i++) {
        if (!drawable(x, s->x[i]) || !drawable(y, s->y[i])) break;
        if (band && !(isfinite(s->lo[i]) && drawable(y, s->hi[i]))) break;
    }
    return i;
}

static void add_band(dc_text *out, const dc_series *s, const axis *x, const axis *y, int style) {
    if (!s->lo || !s->hi) return;
    for (int i = 0, end; i < s->count; i = end + 1) {
        end = run_end(s, x, y, true, i);
        if (end - i < 2) continue;
        dc_text_add(out, "<path d=\"");
        for (int k = i; k < end; k++) {
            dc_text_add(out, k == i ? "M" : "L");
            add_point(out, to_px(x, s->x[k]), to_px(y, s->hi[k]));
        }
        for (int k = end - 1; k >= i; k--) {
            dc_text_add(out, "L");
            add_point(out, to_px(x, s->x[k]), to_px(y, s->lo[k]));
        }
        dc_text_add(out, "Z\" fill=\"%s\" fill-opacity=\"0.16\"/>\n", colours[style % COLOURS]);
    }
}

// The end of a line element in the style of a series; the second round of colours is dashed.
static void add_stroke(dc_text *out, int style, bool dotted) {
    dc_text_add(out, " stroke=\"%s\" stroke-width=\"2\"%s/>\n", colours[style % COLOURS],
                dotted                ? " stroke-dasharray=\"2 3\""
                : style / COLOURS % 2 ? " stroke-dasharray=\"6 3\""
                                      : "");
}

static void add_curve(dc_text *out, const dc_series *s, const axis *x, const axis *y, int style) {
    for (int i = 0, end; i < s->count; i = end + 1) {
        end = run_end(s, x, y, false, i);
        if (end - i < 2) continue;
        dc_text_add(out, "<polyline points=\"");
        for (int k = i; k < end; k++) {
            if (k > i) dc_text_add(out, " ");
            add_point(out, to_px(x, s->x[k]), to_px(y, s->y[k]));
        }
        dc_text_add(out, "\" fill=\"none\"");
        add_stroke(out, style, s->dotted);
    }
}

// Each marker shows its numbers when pointed at. A point without neighbours always gets one.
static void add_markers(dc_text *out, const dc_series *s, const axis *x, const axis *y, int style) {
    int every = s->count <= MARKERS ? 1 : (s->count + 11) / 12;
    for (int i = 0, end; i < s->count; i = end + 1) {
        end = run_end(s, x, y, false, i);
        for (int k = i; k < end; k++) {
            if (k % every && end - i > 1) continue;
            add_marker(out, style, to_px(x, s->x[k]), to_px(y, s->y[k]));
            dc_text_add(out, "><title>");
            dc_markup_text(out, s->name, NAME);
            dc_text_add(out, ": ");
            add_value(out, s->x[k]);
            dc_text_add(out, ", ");
            add_value(out, s->y[k]);
            dc_text_add(out, "</title></%s>\n", style % SHAPES ? "path" : "circle");
        }
    }
}

// ----------------------------------------------------------------------------------------------
// legend

static double entry_width(const char *name) {
    return 50 + 6.7 * dc_markup_length(name, NAME);
}

// Entries from `first` that fit into one row; their width goes to `width`.
static int row_end(const dc_panel *p, int first, double *width) {
    int i = first;
    *width = 0;
    while (i < p->count && (i == first || *width + entry_width(p->series[i].name) <= WIDTH - 16))
        *width += entry_width(p->series[i++].name);
    return i;
}

static int legend_rows(const dc_panel *p) {
    int rows = 0;
    double width;
    for (int i = 0; i < p->count; i = row_end(p, i, &width))
        rows++;
    return rows;
}

// A line of 24 with a marker in its middle.
static void add_sample(dc_text *out, double x, double y, int style, bool dotted) {
    dc_text_add(out, "<line");
    add_attr(out, "x1", x);
    add_attr(out, "y1", y);
    add_attr(out, "x2", x + 24);
    add_attr(out, "y2", y);
    add_stroke(out, style, dotted);
    add_marker(out, style, x + 12, y);
    dc_text_add(out, "/>\n");
}

void dc_plot_key(dc_text *out, int style) {
    dc_text_add(out, "<svg class=\"plot key\" viewBox=\"0 0 24 12\" width=\"24\" height=\"12\" "
                     "aria-hidden=\"true\">");
    add_sample(out, 0, 6, style, false);
    dc_text_add(out, "</svg>");
}

static void add_legend(dc_text *out, const dc_panel *p) {
    int row = 0;
    for (int i = 0, end; i < p->count; i = end, row++) {
        double width, y = LEGEND + row * ROW;
        end = row_end(p, i, &width);
        double x = (WIDTH - width) / 2 + 6;
        if (x < 8) x = 8;
        for (; i < end; i++) {
            add_sample(out, x, y - 4, p->series[i].style, p->series[i].dotted);
            dc_text_add(out, "<text");
            add_attr(out, "x", x + 30);
            add_attr(out, "y", y);
            dc_text_add(out, " font-size=\"12\">");
            dc_markup_text(out, p->series[i].name, NAME);
            dc_text_add(out, "</text>\n");
            x += entry_width(p->series[i].name);
        }
    }
}

// -----------------------------------------------------------------------------------------------
// panel

static void add_panel(dc_text *out, const dc_panel *p, int column) {
    axis x, y;
    bool some = fit(p, &x, &y);
    dc_text_add(out, "<g transform=\"translate(%d,0)\">\n", column * WIDTH);
    if (some) add_axes(out, &x, &y);
    dc_text_add(out,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                "stroke=\"#888\"/>\n",
                LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    const double middle_x = (LEFT + RIGHT) / 2.0, middle_y = (TOP + BOTTOM) / 2.0;
    add_label(out, middle_x, 24, "font-size=\"15\" font-weight=\"600\" text-anchor=\"middle\"",
              p->title);
    add_label(out, middle_x, BOTTOM + 39, "font-size=\"12.5\" text-anchor=\"middle\"", p->x_label);
    dc_text_add(out, "<g transform=\"translate(16,");
    add_px(out, middle_y);
    dc_text_add(out, ") rotate(-90)\">");
    add_label(out, 0, 0, "font-size=\"12.5\" text-anchor=\"middle\"", p->y_label);
    dc_text_add(out, "</g>\n");
    if (!some)
        add_label(out, middle_x, middle_y, "font-size=\"13\" fill=\"#888\" text-anchor=\"middle\"",
                  "no data");
    for (int s = 0; some && s < p->count; s++)
        add_band(out, &p->series[s], &x, &y, p->series[s].style);
    for (int s = 0; some && s < p->count; s++) {
        add_curve(out, &p->series[s], &x, &y, p->series[s].style);
        add_markers(out, &p->series[s], &x, &y, p->series[s].style);
    }
    add_legend(out, p);
    dc_text_add(out, "</g>\n");
}

static dc_status add_svg(dc_text *out, const dc_panel *panels, int count, bool alone) {
    if (count < 1) return dc_fail(DC_BAD_INPUT, NULL, "a plot needs at least one panel");
    int rows = 1;
    for (int p = 0; p < count; p++) {
        int more = legend_rows(&panels[p]);
        rows = more > rows ? more : rows;
    }
    int width = count * WIDTH, height = HEIGHT + (rows - 1) * ROW;
    dc_text_add(out,
                "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "width=\"%d\" "
                "height=\"%d\" role=\"img\" font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, "
                "'DejaVu Sans', sans-serif\" font-size=\"11.5\" fill=\"#222\">\n",
                width, height, width, height);
    if (alone) dc_text_add(out, "<style>%s</style>\n", dc_plot_dark);
    dc_text_add(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    for (int p = 0; p < count; p++)
        add_panel(out, &panels[p], p);
    dc_text_add(out, "</svg>\n");
    return dc_text_status(out);
}

dc_status dc_plot_svg(dc_text *out, const dc_panel *panels, int count) {
    return add_svg(out, panels, count, true);
}

dc_status dc_plot_figure(dc_text *out, const dc_panel *panels, int count) {
    return add_svg(out, panels, count, false);
}
