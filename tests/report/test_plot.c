// The SVG plots: what is drawn, what leaves a gap, and what hostile input may not do.
// `test_plot DIR` writes every figure into DIR instead: test_plot_py.py reads them with a real XML
// parser, and a person looks at them.
#include "report/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double hs[] = {64, 128, 256, 512, 1024, 2048};
enum { H = sizeof hs / sizeof hs[0] };

typedef void figure_fn(dc_text *out);

// ----------------------------------------------------------------------------------------------
// figures

// The figure of the lock experiment in shape: A(H) with bands, and error by distance.
static void figure_lock(dc_text *out) {
    static const char *const names[] = {"dcrl", "dcrl, recursion off", "trl-n", "td-n", "trl"};
    static double y[5][H], lo[5][H], hi[5][H], d[48], e[2][48];
    dc_series a[5], b[2];
    for (int m = 0; m < 5; m++) {
        for (int i = 0; i < H; i++) {
            y[m][i] = (0.5 + 0.4 * m) * pow(hs[i] / 64, 0.05 + 0.28 * m);
            lo[m][i] = y[m][i] * (0.9 - 0.05 * m);
            hi[m][i] = y[m][i] * (1.1 + 0.05 * m);
        }
        a[m] = (dc_series){names[m], H, hs, y[m], lo[m], hi[m], m, false};
    }
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < 48; i++) {
            d[i] = 1 + i * 42;
            e[m][i] = 0.3 + 0.001 * d[i] * (1 + 4 * m) + 0.05 * sin(i);
        }
        b[m] = (dc_series){names[m], 48, d, e[m], NULL, NULL, m, false};
    }
    const dc_panel panels[] = {
        {"Accumulated error", "horizon H", "A(H)", true, true, a, 5, false, false},
        {"Error by distance, H = 2048", "distance g - s", "mean |d - (g - s)|", false, false, b, 2,
         false, false},
    };
    assert_int_equal(dc_plot_svg(out, panels, 2), DC_OK);
}

static void draw(dc_text *out, const dc_series *series, int count, bool log_x, bool log_y) {
    const dc_panel panel = {"title", "x", "y", log_x, log_y, series, count, false, false};
    assert_int_equal(dc_plot_svg(out, &panel, 1), DC_OK);
}

static void figure_gaps(dc_text *out) {
    const double x[] = {0, 1, 2, 3, 4, 5, 6}, y[] = {1, 2, NAN, 3, INFINITY, 4, 5};
    draw(out, &(dc_series){"gaps", 7, x, y, NULL, NULL, 0, false}, 1, false, false);
}

static void figure_one_point(dc_text *out) {
    const double x = 3, y = 0.25;
    draw(out, &(dc_series){"one", 1, &x, &y, &y, &y, 0, false}, 1, true, true);
}

static void figure_empty(dc_text *out) {
    const dc_series series[] = {{.name = "nothing"}, {.name = NULL}};
    draw(out, series, 2, true, true);
}

static void figure_nonpositive(dc_text *out) {
    const double x[] = {-1, 0, 1, 2, 4, 8}, y[] = {1, 1, 0, -2, 0.5, 3e-5};
    const double lo[] = {0, 0, 0, 0, -1, 1e-9}, hi[] = {2, 2, 2, 2, 2, 2};
    draw(out, &(dc_series){"log", 6, x, y, lo, hi, 0, false}, 1, true, true);
}

static void figure_extremes(dc_text *out) {
    const double x[] = {-1e308, 0, 1e6, 5e6, 1e308}, y[] = {0, 1e-310, 1e15, -2e15, 1e308};
    const double flat[] = {7, 7, 7, 7, 7};
    const dc_series series[] = {{"wide", 5, x, y, NULL, NULL, 0, false},
                                {"flat", 5, x, flat, NULL, NULL, 1, false}};
    draw(out, series, 2, false, false);
}

static void figure_hostile(dc_text *out) {
    static const char bad[] = "<script>alert('x')</script> & \"quoted\" ]]> %s%n \x01\x1b";
    static const char utf8[] =
        "κ = ½ 中 \xff\xc0\xaf\xed\xa0\x80\xef\xbf\xbf\xf4\x90\x80\x80 \xe4\xb8";
    const double x[] = {1, 2}, y[] = {1, 2};
    const dc_series series[] = {{bad, 2, x, y, NULL, NULL, 0, false},
                                {utf8, 2, y, x, NULL, NULL, 1, false}};
    const dc_panel panel = {bad, utf8, "</text><text>", false, false, series, 2, false, false};
    assert_int_equal(dc_plot_svg(out, &panel, 1), DC_OK);
}

static void figure_many(dc_text *out) {
    static double x[2000], y[11][2000];
    static char names[11][48];
    dc_series series[11];
    for (int m = 0; m < 11; m++) {
        for (int i = 0; i < 2000; i++) {
            x[i] = i * 500.0;
            y[m][i] = 1e-3 * exp(-i / 400.0) + 1e-4 * m + 2e-5 * sin(i * 0.02 * m);
        }
        snprintf(names[m], sizeof names[m], "a longer name, number %d", m);
        series[m] = (dc_series){names[m], 2000, x, y[m], NULL, NULL, m, false};
    }
    draw(out, series, 11, false, false);
}

static const struct {
    const char *name;
    figure_fn *draw;
} figures[] = {
    {"lock", figure_lock},
    {"gaps", figure_gaps},
    {"one_point", figure_one_point},
    {"empty", figure_empty},
    {"nonpositive", figure_nonpositive},
    {"extremes", figure_extremes},
    {"hostile", figure_hostile},
    {"many", figure_many},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static int count_of(const dc_text *text, const char *what) {
    int count = 0;
    for (const char *at = text->bytes; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

// ------------------------------------------------------------------------------------------------
// tests

static void test_same_bytes(void **state) {
    (void)state;
    for (int i = 0; i < FIGURES; i++) {
        dc_text a, b;
        dc_text_init(&a);
        dc_text_init(&b);
        figures[i].draw(&a);
        figures[i].draw(&b);
        assert_string_equal(a.bytes, b.bytes);
        assert_int_equal(count_of(&a, "<svg "), 1);
        assert_int_equal(count_of(&a, "</svg>"), 1);
        assert_int_equal(count_of(&a, "nan") + count_of(&a, "inf\""), 0);
        dc_text_fini(&a);
        dc_text_fini(&b);
    }
}

static void test_lock(void **state) {
    (void)state;
    dc_text out;
    dc_text_init(&out);
    figure_lock(&out);
    assert_int_equal(count_of(&out, "<polyline"), 7);
    assert_int_equal(count_of(&out, "fill-opacity"), 5);
    for (int i = 0; i < H; i++) {
        char label[32];
        snprintf(label, sizeof label, ">%d<", (int)hs[i]);
        assert_true(count_of(&out, label) >= 1);
    }
    assert_true(count_of(&out, ">0.5<") + count_of(&out, ">1<") >= 1);
    dc_text_fini(&out);
}

static void test_gaps(void **state) {
    (void)state;
    dc_text out;
    dc_text_init(&out);
    figure_gaps(&out); // 1 2 - 3 - 4 5: two lines and a lonely point, five markers and the legend's
    assert_int_equal(count_of(&out, "<polyline"), 2);
    assert_int_equal(count_of(&out, "<circle"), 6);
    dc_text_fini(&out);
}

static void test_little(void **state) {
    (void)state;
    dc_text out;
    dc_text_init(&out);
    figure_one_point(&out);
    assert_int_equal(count_of(&out, "<polyline"), 0);
    assert_int_equal(count_of(&out, "<circle"), 2);
    dc_text_fini(&out);
    figure_empty(&out);
    assert_int_equal(count_of(&out, "no data"), 1);
    dc_text_fini(&out);
    assert_int_equal(dc_plot_svg(&out, NULL, 0), DC_BAD_INPUT);
    dc_text_fini(&out);
}

static void test_nonpositive(void **state) {
    (void)state;
    dc_text out;
    dc_text_init(&out);
    figure_nonpositive(&out); // only x = 4 and 8 can be shown
    assert_int_equal(count_of(&out, "<polyline"), 1);
    assert_int_equal(count_of(&out, "<circle"), 3);
    assert_int_equal(count_of(&out, "fill-opacity"), 1); // the band runs into the lower edge
    dc_text_fini(&out);
}

static void test_hostile(void **state) {
    (void)state;
    dc_text out;
    dc_text_init(&out);
    figure_hostile(&out);
    assert_int_equal(count_of(&out, "<script"), 0);
    assert_int_equal(count_of(&out, "\x1b"), 0);
    assert_int_equal(count_of(&out, "\xff"), 0);
    assert_true(count_of(&out, "&#60;script&#62;") >= 1);
    assert_true(count_of(&out, "κ = ½ 中") >= 1);
    dc_text_fini(&out);
}

static int write_all(const char *folder) {
    for (int i = 0; i < FIGURES; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.svg", folder, figures[i].name);
        dc_text out;
        dc_text_init(&out);
        figures[i].draw(&out);
        FILE *file = fopen(path, "wb");
        if (!file) return perror(path), 1;
        size_t put = fwrite(out.bytes, 1, out.used, file);
        if (fclose(file) != 0 || put != out.used) return perror(path), 1;
        dc_text_fini(&out);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2) return write_all(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),  cmocka_unit_test(test_lock),
        cmocka_unit_test(test_gaps),        cmocka_unit_test(test_little),
        cmocka_unit_test(test_nonpositive), cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
