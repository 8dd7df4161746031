// CSV of numbers, see csv.h. Two passes over the bytes: lines are counted first, so that the table
// is taken once and no larger than the file could fill.
#include "report/csv.h"

#include "base/json.h"
#include "base/number.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct source {
    const char *what; // name of the file
    const char *at, *end;
    int line;
} source;

static dc_status bad(const source *in, const char *problem) {
    return dc_fail(DC_BAD_INPUT, "repair the file or leave the run out", "%s:%d: %s", in->what,
                   in->line, problem);
}

// The next line without its end; false after the last.
static bool next_line(source *in, const char **line, size_t *n) {
    if (in->at == in->end) return false;
    const char *stop = memchr(in->at, '\n', (size_t)(in->end - in->at));
    *line = in->at;
    *n = (size_t)((stop ? stop : in->end) - in->at);
    in->at = stop ? stop + 1 : in->end;
    in->line++;
    if (*n && (*line)[*n - 1] == '\r') --*n;
    return true;
}

// Cut the next field off a line; false after the last.
static bool next_field(const char **line, size_t *n, const char **field, size_t *length) {
    if (!*line) return false;
    const char *comma = memchr(*line, ',', *n);
    *field = *line;
    *length = comma ? (size_t)(comma - *line) : *n;
    *line = comma ? comma + 1 : NULL;
    *n -= comma ? *length + 1 : *n;
    return true;
}

static dc_status read_header(source *in, dc_csv *csv, dc_arena *arena) {
    const char *line, *field;
    size_t n, length;
    if (!next_line(in, &line, &n) || !n) {
        in->line = 1;
        return bad(in, "a header with the names of the columns is missing");
    }
    csv->names = dc_arena_take(arena, DC_CSV_COLUMNS * sizeof *csv->names);
    if (!csv->names) return DC_NO_MEMORY;
    while (next_field(&line, &n, &field, &length)) {
        if (csv->columns == DC_CSV_COLUMNS) return bad(in, "too many columns");
        if (!length || memchr(field, 0, length) || !dc_json_utf8(field, length))
            return bad(in, "a column has no proper name");
        char *name = dc_arena_text(arena, field, length);
        if (!name) return DC_NO_MEMORY;
        if (dc_csv_column(csv, name) >= 0) return bad(in, "two columns have the same name");
        csv->names[csv->columns++] = name;
    }
    return DC_OK;
}

// A number; NaN for what is none but may stand there.
static bool read_number(const char *field, size_t length, double *out) {
    static const char *const gaps[] = {"", "nan", "-nan", "inf", "-inf"};
    char text[64];
    *out = NAN;
    if (length >= sizeof text) return false;
    memcpy(text, field, length);
    text[length] = 0;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
        if (!strcmp(text, gaps[i])) return true;
    return dc_number_scan(text, length, DC_GRAMMAR_LOOSE) == length && dc_number_real(text, out);
}

static dc_status read_row(const source *in, const char *line, size_t n, dc_csv *csv) {
    double *row = csv->values + (size_t)csv->rows * (size_t)csv->columns;
    const char *field;
    size_t length;
    int c = 0;
    for (; next_field(&line, &n, &field, &length); c++) {
        char problem[96];
        if (c == csv->columns) return bad(in, "the row has more fields than the header");
        if (read_number(field, length, &row[c])) continue;
        snprintf(problem, sizeof problem, "column %d (%.40s) holds no number", c + 1,
                 csv->names[c]);
        return bad(in, problem);
    }
    if (c < csv->columns) return bad(in, "the row has fewer fields than the header");
    csv->rows++;
    return DC_OK;
}

dc_status dc_csv_parse(dc_csv *csv, dc_arena *arena, const char *what, const char *bytes,
                       size_t n) {
    *csv = (dc_csv){0};
    source in = {what, bytes, bytes + n, 0};
    DC_TRY(read_header(&in, csv, arena));
    size_t lines = 0;
    for (const char *c = in.at; c < in.end; c++)
        lines += *c == '\n';
    // A row of k columns takes k bytes at least, so that the table is bounded by the file.
    if (lines > INT_MAX || lines > n / (size_t)csv->columns)
        return in.line++, bad(&in, "the rows have fewer fields than the header");
    csv->values = dc_arena_take(arena, (lines + 1) * (size_t)csv->columns * sizeof *csv->values);
    if (!csv->values) return DC_NO_MEMORY;
    const char *line;
    while (next_line(&in, &line, &n)) {
        if (in.at[-1] != '\n') return bad(&in, "the last line was cut");
        DC_TRY(read_row(&in, line, n, csv));
    }
    return DC_OK;
}

int dc_csv_column(const dc_csv *csv, const char *name) {
    for (int c = 0; c < csv->columns; c++)
        if (!strcmp(csv->names[c], name)) return c;
    return -1;
}

double dc_csv_at(const dc_csv *csv, int row, int column) {
    return csv->values[(size_t)row * (size_t)csv->columns + (size_t)column];
}
