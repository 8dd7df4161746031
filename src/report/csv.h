// Logs of a run as numbers: train.csv, timing.csv and eval.csv have one header of column names and
// rows of numbers. A field that is empty, nan or inf reads as NaN, a gap in a curve; anything else
// that is no number, a row of another width or a last line that was cut is an error with its line.
#ifndef DC_CSV_H
#define DC_CSV_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>

enum { DC_CSV_COLUMNS = 256 }; // most columns of a file

typedef struct dc_csv {
    int columns, rows;
    const char **names; // (columns)
    double *values;     // (rows, columns)
} dc_csv;

// Parse n bytes. `what` names the file in errors. Borrows: nothing; all is copied into the arena.
dc_status dc_csv_parse(dc_csv *csv, dc_arena *arena, const char *what, const char *bytes, size_t n);
// Index of a column by name; -1 when there is none.
int dc_csv_column(const dc_csv *csv, const char *name);
double dc_csv_at(const dc_csv *csv, int row, int column);

#endif
