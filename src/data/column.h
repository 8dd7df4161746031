// Column: the values of one array of a data set, a row per row of the data, and their type.
//
// Most columns are float32. An array of uint8 (pictures above all) stays uint8 from the file to
// the reader of a row, since a million pictures of 64 x 64 x 3 are 12 GB as bytes and 49 GB as
// floats. Readers that know only float32 use `values`, which is NULL in a column of bytes; all
// others ask here for the address of a row and the size of a value, and convert what they need.
#ifndef DC_COLUMN_H
#define DC_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dc_type { DC_TYPE_F32, DC_TYPE_U8, DC_TYPES } dc_type;

typedef struct dc_column {
    const char *name;     // "obs", "act", ...: the internal name
    const float *values;  // (rows, width) of a column of DC_TYPE_F32; else NULL
    const uint8_t *bytes; // (rows, width) of a column of DC_TYPE_U8; else NULL
    const int64_t *shape; // (ndim) of a row, whose product is width; (64, 64, 3) of a picture
    int ndim;             // 0: a row is one number, or its shape is not known
    int width;            // values per row
    dc_type type;
    bool mapped; // values come from the disk when they are touched (data/store)
    bool whole;  // the file has whole numbers; as actions, they name one of several
} dc_column;

// Bytes of one value.
static inline size_t dc_type_size(dc_type type) {
    return type == DC_TYPE_U8 ? sizeof(uint8_t) : sizeof(float);
}

// Bytes of one row.
static inline size_t dc_column_row_size(const dc_column *column) {
    return (size_t)column->width * dc_type_size(column->type);
}

// Say where the values of a column lie, whose type is set.
static inline void dc_column_set(dc_column *column, const void *values) {
    column->bytes = column->type == DC_TYPE_U8 ? (const uint8_t *)values : NULL;
    column->values = column->type == DC_TYPE_F32 ? (const float *)values : NULL;
}

// Values of a row from its value number `first` on, of the column's type: (width - first). Row 0
// gives the start of the whole column.
static inline const void *dc_column_at(const dc_column *column, int64_t row, int first) {
    int64_t at = row * column->width + first;
    if (column->type == DC_TYPE_U8) return column->bytes + at;
    return column->values + at;
}

// One value, whatever its type.
static inline float dc_column_value(const dc_column *column, int64_t row, int index) {
    int64_t at = row * column->width + index;
    return column->type == DC_TYPE_U8 ? (float)column->bytes[at] : column->values[at];
}

// `count` values of a row from its value number `first` on, as floats: bytes give 0 to 255.
static inline void dc_column_floats(const dc_column *column, int64_t row, int first, int count,
                                    float *out) {
    int64_t at = row * column->width + first;
    if (column->type == DC_TYPE_U8)
        for (int i = 0; i < count; i++)
            out[i] = (float)column->bytes[at + i];
    else
        for (int i = 0; i < count; i++)
            out[i] = column->values[at + i];
}

#endif
