// Store: a data set as a folder of plain files that are mapped, not read, so it may be larger than
// memory and opens at once. A column is cut into shards, one raw file each:
//
//     index.json           what is in the folder; a folder without it is unfinished
//     trajectories.i64     first row of each trajectory, and the end: (trajectories + 1)
//     obs-00000.f32 ...    rows of shard 0 of column "obs": (shard rows, width); .u8 of bytes
//
// Every shard but the last has a multiple of 1024 rows, and its files are whole pages of 4096
// bytes: of float32 always, of bytes where the width is a multiple of 4 or the rows of 4096. That
// is the trick of the format: the shards of a column are mapped one behind the other into one range
// of addresses, and dc_column.values is one array again. Nothing else in the program knows that
// shards exist, and rows are drawn uniformly over all of them.
//
//     npz files -> data/convert -> dc_store_writer -> folder -> dc_store_load -> columns
#ifndef DC_STORE_H
#define DC_STORE_H

#include "base/arena.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/npy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DC_STORE_NAME_MAX = 64,       // bytes of a column's name
    DC_STORE_UNIT = 1024,         // rows: shards but the last are multiples
    DC_STORE_PAGE = 4096,         // bytes of DC_STORE_UNIT rows of one float32
    DC_STORE_FILES_MAX = 1 << 15, // shards x columns: the system maps so many, and twice as many
    DC_STORE_INDEX_MAX = 1 << 22, // bytes of index.json
    DC_STORE_PATH_MAX = 4096
};

// ---- the index ----

typedef struct dc_store_column {
    char name[DC_STORE_NAME_MAX + 1]; // letters, digits, '_', '-', '.', not first
    dc_type type;                     // of the values here
    dc_dtype source;                  // type in the file that it came from
    int ndim;                         // of a row
    int64_t shape[DC_NPY_DIMS];       // (ndim) of a row
    int width;                        // values per row: the product of shape
} dc_store_column;

typedef struct dc_store_index {
    int64_t rows, traj_count;
    uint64_t hash;     // dc_dataset_hash
    dc_bounds actions; // of real actions that are not within [-1, 1], and so not clipped; else 0, 0
    dc_dtype terminals; // type in the file that it came from
    int column_count;
    dc_store_column columns[DC_COLUMNS_MAX];
    int shard_count;
    const int64_t *shards; // (shard_count) rows of each
} dc_store_index;

// Parse and check index.json; `what` names it in errors. The shards live in the arena.
dc_status dc_store_index_parse(dc_store_index *index, dc_arena *arena, const char *what,
                               const char *bytes, size_t n);
dc_status dc_store_index_read(dc_store_index *index, dc_arena *arena, const char *folder);
// Errors: those of writing.
dc_status dc_store_index_write(const dc_store_index *index, const char *folder);
// Whether a column may have that name: it becomes a part of file names.
bool dc_store_name_ok(const char *name);
// Bytes of one row of a column.
size_t dc_store_row_size(const dc_store_column *column);
// Whether shards of so many rows are whole pages of every column of the index. (The last shard of a
// store need not be.)
bool dc_store_whole_pages(const dc_store_index *index, int64_t rows);

// Names of files in a folder.
dc_status dc_store_column_path(char out[DC_STORE_PATH_MAX], const char *folder,
                               const dc_store_column *column, int shard);
dc_status dc_store_path(char out[DC_STORE_PATH_MAX], const char *folder, const char *file);
extern const char dc_store_index_name[], dc_store_table_name[];

// ---- reading ----

// Map a store as a data set that rows are drawn from; dc_dataset_fini unmaps it. Sizes of all files
// and the table of trajectories are checked; values are not read, so the hash is the index's word
// (dcrl data info checks it).
dc_status dc_store_load(dc_dataset *data, const char *folder);
// The same for an index that is read, or not written yet, and for reading rows in their order.
dc_status dc_store_map(dc_dataset *data, const char *folder, const dc_store_index *index);
// For dc_dataset_fini. Nullable: store.
void dc_store_free(dc_store *store);

// ---- writing ----

// Writes a store column after column. Borrows: folder, index (columns, rows and shards are set).
typedef struct dc_store_writer {
    const char *folder;
    const dc_store_index *index;
    int column, shard;
    int64_t row; // rows of this shard that are written
    dc_save save;
    bool open; // save is in progress
} dc_store_writer;

void dc_store_writer_init(dc_store_writer *writer, const char *folder, const dc_store_index *index);
// The next values of the columns in their order, (count, width) of the column's type; count must
// not exceed the rows that the column still lacks.
dc_status dc_store_writer_append(dc_store_writer *writer, const void *rows, int64_t count);
// Drop an unfinished file.
void dc_store_writer_fini(dc_store_writer *writer);
// Remove every file of a store, finished or not, and the folder.
void dc_store_remove(const char *folder, const dc_store_index *index);

#endif
