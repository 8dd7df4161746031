// Mazes as SVG, see maze_plot.h. Values and paths come from rollout/; a run folder's map-*.svg files
// are made of this, and report/html shows them.
//
// A panel is a nested <svg> in the maze's own coordinates, so positions are written as they are; one group
// in it turns y upwards, as the camera of `dcrl render` has it. Colours are a small PNG behind the walls:
// one pixel per position, smoothed by the viewer. Lines have a dark edge, so that they are seen on every
// colour.
#include "report/maze_plot.h"

#include "report/markup.h"
#include "report/png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDE = 300,    // of a panel
    GAP = 20,      // between panels, and around them
    HEAD = 22,     // a panel's title
    ACROSS = 3,    // most panels in a row
    LEGEND = 96,   // height of the legend
    BAR = 64,      // steps of the colour bar
    COLOURS = 255, // of the palette, behind the transparent one
};

static const double rim = 1.2;    // of the outer walls that is shown, in the maze's units
static const double stride = 0.3; // positions of a path nearer than this to the last are left out
static const double jump = 3;     // a step this long is a teleport, and is not drawn

static const char style[] =
    "<style>\n"
    "text{font:13px system-ui,'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif;"
    "fill:#1d2129}\n"
    ".soft{fill:#5b6472;font-size:12px}.title{font-weight:600}.page{fill:#fff}"
    ".wall{fill:#d3d8df;stroke:#d3d8df;stroke-width:.08}.frame{fill:none;stroke:#aab2bd}\n"
    ".way,.cross{fill:none;stroke-linejoin:round;stroke-linecap:round}"
    ".edge{stroke:#10141a;stroke-opacity:.75}.reached{stroke:#fff}"
    ".missed{stroke:#ff6a3d}.mark{fill:#fff;stroke:#10141a}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.soft{fill:#9aa4b2}.page{fill:#1a1e25}"
    ".wall{fill:#39414d;stroke:#39414d}.frame{stroke:#4b5563}}\n"
    "</style>\n";

// --- colours ---

// Viridis, by nine of its colours, from far to near.
static const dc_colour stops[] = {{0x44, 0x01, 0x54}, {0x47, 0x2d, 0x7b}, {0x3b, 0x52, 0x8b},
                                  {0x2c, 0x72, 0x8e}, {0x21, 0x91, 0x8c}, {0x28, 0xae, 0x80},
                                  {0x5e, 0xc9, 0x62}, {0xad, 0xdc, 0x30}, {0xfd, 0xe7, 0x25}};
enum { STOPS = sizeof stops / sizeof stops[0] };

static uint8_t mix(uint8_t a, uint8_t b, double part) {
    return (uint8_t)lround(a + part * (b - a));
}

// The colour of a distance, as a part of the longest.
static dc_colour colour_of(double part) {
    double at = (1 - fmin(fmax(part, 0), 1)) * (STOPS - 1);
    int i = (int)fmin(floor(at), STOPS - 2);
    dc_colour a = stops[i], b = stops[i + 1];
    return (dc_colour){mix(a.r, b.r, at - i), mix(a.g, b.g, at - i), mix(a.b, b.b, at - i)};
}

// Nearest whole step of 1, 2 or 5 times a power of ten, with three to seven of them in the range.
static double tick_of(double most) {
    double power = pow(10, floor(log10(most / 3)));
    double part = most / 3 / power;
    return power * (part >= 5 ? 5 : part >= 2 ? 2 : 1);
}

double dc_maze_longest(const dc_maze_panel *panels, int count) {
    double most = 1;
    for (int p = 0; p < count; p++)
        for (int i = 0; i < panels[p].map->rows * panels[p].map->cols; i++)
            if (isfinite(panels[p].map->steps[i])) most = fmax(most, panels[p].map->steps[i]);
    return most;
}

// --- numbers ---

static void number(dc_text *out, double v) {
    long long n = llround(v * 100);
    dc_text_add(out, "%s%lld", n < 0 ? "-" : "", llabs(n) / 100);
    if (n % 100) dc_text_add(out, ".%02lld", llabs(n) % 100);
}

static void attribute(dc_text *out, const char *name, double v) {
    dc_text_add(out, " %s=\"", name);
    number(out, v);
    dc_text_add(out, "\"");
}

static void place(dc_text *out, double x, double y) {
    number(out, x);
    dc_text_add(out, ",");
    number(out, y);
}

static void label(dc_text *out, double x, double y, const char *class, const char *anchor,
                  const char *text) {
    dc_text_add(out, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
    attribute(out, "x", x);
    attribute(out, "y", y);
    dc_text_add(out, ">");
    dc_markup_text(out, text, DC_MARKUP_ALL);
    dc_text_add(out, "</text>\n");
}

// --- a panel ---

// A pixel's colour; walls take that of a free neighbour, since smoothing would mix in what is there.
static uint8_t pixel(const dc_value_map *m, int row, int col, double most) {
    static const int around[9][2] = {{0, 0},   {-1, 0}, {1, 0},  {0, -1}, {0, 1},
                                     {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
    for (int k = 0; k < 9; k++) {
        int r = row + around[k][0], c = col + around[k][1];
        if (r < 0 || c < 0 || r >= m->rows || c >= m->cols) continue;
        double steps = (double)m->steps[r * m->cols + c];
        if (isfinite(steps))
            return (uint8_t)(1 + lround(fmin(fmax(steps / most, 0), 1) * (COLOURS - 1)));
    }
    return 0;
}

static dc_status colours(dc_text *out, const dc_value_map *m, double most) {
    dc_colour palette[256] = {{0}};
    for (int i = 0; i < COLOURS; i++)
        palette[i + 1] = colour_of((double)i / (COLOURS - 1));
    uint8_t *pixels = malloc((size_t)(m->rows * m->cols));
    if (!pixels) return dc_fail(DC_NO_MEMORY, NULL, "no memory for a picture");
    for (int i = 0; i < m->rows * m->cols; i++)
        pixels[i] = pixel(m, i / m->cols, i % m->cols, most);
    dc_text png;
    dc_text_init(&png);
    dc_status status = dc_png_write(&png, m->cols, m->rows, pixels, palette);
    free(pixels);
    dc_text_add(out, "<image x=\"-6\" y=\"-6\"");
    attribute(out, "width", 4 * m->maze->cols);
    attribute(out, "height", 4 * m->maze->rows);
    dc_text_add(out, " preserveAspectRatio=\"none\" href=\"data:image/png;base64,");
    if (status == DC_OK) dc_markup_base64(out, png.bytes, png.used);
    dc_text_add(out, "\"/>\n");
    dc_text_fini(&png);
    return status;
}

// Walls as one path, a rectangle for every run of them in a row.
static void walls(dc_text *out, const dc_maze *maze) {
    dc_text_add(out, "<path class=\"wall\" d=\"");
    for (int i = 0; i < maze->rows; i++)
        for (int j = 0, end; j < maze->cols; j = end + 1) {
            for (end = j; end < maze->cols && dc_maze_wall(maze, (dc_cell){i, end});)
                end++;
            if (end > j)
                dc_text_add(out, "M%d,%dh%dv4h%dz", 4 * j - 6, 4 * i - 6, 4 * (end - j),
                            -4 * (end - j));
        }
    dc_text_add(out, "\"/>\n");
}

// How much larger lines and marks are drawn than in a medium maze, in the maze's units: in a wide
// maze, which is shown smaller, they would get too thin.
static double bold(const dc_maze *maze) {
    enum { MEDIUM = 8 };
    return pow((maze->cols - 2 + rim / 2) / (MEDIUM - 2 + rim / 2), 0.6);
}

static void dashes(dc_text *out, double width) {
    dc_text_add(out, " stroke-dasharray=\"");
    place(out, 3.6 * width, 2.2 * width);
    dc_text_add(out, "\"");
}

static void line(dc_text *out, const dc_path *p, const char *class, double width, double dash) {
    const float *last = p->xy;
    dc_text_add(out, "<path class=\"way %s\"", class);
    attribute(out, "stroke-width", width);
    if (!p->success) dashes(out, dash);
    dc_text_add(out, " d=\"");
    for (int i = 0; i < p->count; i++) {
        const float *at = p->xy + 2 * (ptrdiff_t)i;
        double far = hypot((double)(at[0] - last[0]), (double)(at[1] - last[1]));
        if (i > 0 && i < p->count - 1 && far < stride) continue;
        dc_text_add(out, i == 0 || far > jump ? "M" : "L");
        place(out, (double)at[0], (double)at[1]);
        last = at;
    }
    dc_text_add(out, "\"/>\n");
}

static void cross(dc_text *out, double x, double y, double arm) {
    for (int edge = 1; edge >= 0; edge--) {
        dc_text_add(out, "<path class=\"cross %s\"", edge ? "edge" : "missed");
        attribute(out, "stroke-width", arm * (edge ? 1 : 0.5));
        dc_text_add(out, " d=\"M");
        place(out, x - arm, y - arm);
        dc_text_add(out, "L");
        place(out, x + arm, y + arm);
        dc_text_add(out, "M");
        place(out, x - arm, y + arm);
        dc_text_add(out, "L");
        place(out, x + arm, y - arm);
        dc_text_add(out, "\"/>\n");
    }
}

static void dot(dc_text *out, double x, double y, double radius) {
    dc_text_add(out, "<circle class=\"mark\"");
    attribute(out, "cx", x);
    attribute(out, "cy", y);
    attribute(out, "r", radius);
    attribute(out, "stroke-width", radius * 0.4);
    dc_text_add(out, "/>\n");
}

static void star(dc_text *out, double x, double y, double radius) {
    static const double turn = 0.62831853071795865; // a tenth of a circle
    dc_text_add(out, "<path class=\"mark goal\" stroke-linejoin=\"round\"");
    attribute(out, "stroke-width", radius * 0.22);
    for (int k = 0; k < 10; k++) {
        double r = k % 2 ? radius * 0.42 : radius;
        dc_text_add(out, k ? "L" : " d=\"M");
        place(out, x + r * sin(k * turn), y + r * cos(k * turn)); // y goes up
    }
    dc_text_add(out, "z\"/>\n");
}

// What did not arrive lies below what did.
static void routes(dc_text *out, const dc_maze_panel *panel) {
    double size = bold(panel->map->maze), wide = 0.52 * size, thin = 0.26 * size;
    for (int arrived = 0; arrived <= 1; arrived++)
        for (int k = 0; k < panel->path_count; k++) {
            const dc_path *p = &panel->paths[k];
            if (p->success != arrived || !p->count) continue;
            line(out, p, "edge", wide, thin);
            line(out, p, arrived ? "reached" : "missed", thin, thin);
            const float *end = p->xy + 2 * (ptrdiff_t)(p->count - 1);
            if (!arrived) cross(out, (double)end[0], (double)end[1], 0.5 * size);
        }
}

static double tall(const dc_maze *maze) { // height of a panel's maze
    return WIDE * (maze->rows - 2 + rim / 2) / (maze->cols - 2 + rim / 2);
}

static void panel_title(dc_text *out, const dc_maze_panel *panel, double x, double y) {
    int reached = 0;
    char text[128];
    for (int k = 0; k < panel->path_count; k++)
        reached += panel->paths[k].success;
    snprintf(text, sizeof text, "Task %d", panel->task);
    label(out, x, y + 14, "title", "start", text);
    if (!panel->path_count) return;
    snprintf(text, sizeof text, "%d of %d reach the goal", reached, panel->path_count);
    label(out, x + WIDE, y + 14, "soft", "end", text);
}

static dc_status draw_panel(dc_text *out, const dc_maze_panel *panel, double x, double y,
                            double most) {
    const dc_maze *maze = panel->map->maze;
    double high = tall(maze);
    panel_title(out, panel, x, y);
    dc_text_add(out, "<svg class=\"maze\"");
    attribute(out, "x", x);
    attribute(out, "y", y + HEAD);
    attribute(out, "width", WIDE);
    attribute(out, "height", high);
    dc_text_add(out, " viewBox=\"");
    place(out, -2 - rim, 2 - rim - 4 * (maze->rows - 2));
    dc_text_add(out, ",");
    place(out, 4 * (maze->cols - 2) + 2 * rim, 4 * (maze->rows - 2) + 2 * rim);
    dc_text_add(out, "\">\n<g transform=\"scale(1,-1)\">\n");
    DC_TRY(colours(out, panel->map, most));
    walls(out, maze);
    routes(out, panel);
    dot(out, panel->map->start[0], panel->map->start[1], 0.62 * bold(maze));
    star(out, panel->map->goal[0], panel->map->goal[1], 1.25 * bold(maze));
    dc_text_add(out, "</g>\n</svg>\n<rect class=\"frame\"");
    attribute(out, "x", x);
    attribute(out, "y", y + HEAD);
    attribute(out, "width", WIDE);
    attribute(out, "height", high);
    dc_text_add(out, "/>\n");
    return DC_OK;
}

// --- legend ---

static void colour_bar(dc_text *out, double x, double y, double most) {
    char text[32];
    for (int i = 0; i < BAR; i++) {
        dc_colour c = colour_of((i + 0.5) / BAR);
        dc_text_add(out, "<rect fill=\"#%02x%02x%02x\" height=\"12\"", c.r, c.g, c.b);
        attribute(out, "x", x + (double)WIDE * i / BAR);
        attribute(out, "y", y);
        attribute(out, "width", WIDE - (double)WIDE * i / BAR); // to the end: no gaps
        dc_text_add(out, "/>\n");
    }
    double step = tick_of(most);
    for (double v = 0; v <= most; v += step) {
        snprintf(text, sizeof text, "%.0f", v);
        label(out, x + WIDE * v / most, y + 26, "soft", v > 0 ? "middle" : "start", text);
    }
}

static void sample(dc_text *out, double x, double y, bool success, const char *text) {
    for (int k = 0; k < 2; k++) {
        const char *class = k == 0 ? "edge" : success ? "reached" : "missed";
        dc_text_add(out, "<path class=\"way %s\"", class);
        attribute(out, "stroke-width", k == 0 ? 5 : 2.5);
        if (!success) dashes(out, 2.5);
        dc_text_add(out, " d=\"M");
        place(out, x, y);
        dc_text_add(out, "h26\"/>\n");
    }
    if (!success) cross(out, x + 26, y, 4.5);
    label(out, x + (success ? 32 : 36), y + 4, "soft", "start", text);
}

static void legend(dc_text *out, double x, double y, double most) {
    label(out, x, y + 12, "soft", "start", "predicted steps to the goal (log_γ Q)");
    colour_bar(out, x, y + 20, most);
    dot(out, x + 8, y + 68, 5);
    label(out, x + 20, y + 72, "soft", "start", "start");
    star(out, x + 72, y + 68, 9);
    label(out, x + 86, y + 72, "soft", "start", "goal");
    sample(out, x + 122, y + 68, true, "reached");
    sample(out, x + 218, y + 68, false, "missed");
}

// --- the picture ---

dc_status dc_maze_svg(dc_text *out, const char *title, const dc_maze_panel *panels, int count,
                      double most) {
    DC_CHECK(count > 0 && most > 0);
    double row = HEAD + tall(panels[0].map->maze) + GAP;
    int across = count < ACROSS ? count : ACROSS, down = (count + across - 1) / across;
    bool beside = count % across != 0; // the legend takes the place of the next panel
    double width = GAP + across * (WIDE + GAP), height = GAP + down * row + (beside ? 0 : LEGEND);
    dc_text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
    attribute(out, "width", width);
    attribute(out, "height", height);
    dc_text_add(out, " viewBox=\"0,0,");
    place(out, width, height);
    dc_text_add(out, "\">\n<title>");
    dc_markup_text(out, title, DC_MARKUP_ALL);
    dc_text_add(out, "</title>\n%s<rect class=\"page\"", style);
    attribute(out, "width", width);
    attribute(out, "height", height);
    dc_text_add(out, "/>\n");
    for (int p = 0; p < count; p++) {
        int r = p / across, c = p % across;
        DC_TRY(draw_panel(out, &panels[p], GAP + c * (WIDE + GAP), GAP / 2.0 + r * row, most));
    }
    int r = beside ? down - 1 : down, c = beside ? count % across : 0;
    legend(out, GAP + c * (WIDE + GAP), GAP / 2.0 + r * row, most);
    dc_text_add(out, "</svg>\n");
    return dc_text_status(out);
}
