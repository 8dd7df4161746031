// NPZ: numpy's archive of arrays, a zip file whose entries are npy files. The reader works on a
// mapped file or on bytes in memory and trusts nothing that it has not checked against their
// size; the writer appends rows of several arrays at once and publishes the file whole or not at
// all.
//
//     file -> dc_npz_open -> dc_npz_find -> dc_npz_head -> dc_npz_floats -> columns of data/dataset
//     rows -> dc_npz_writer_append -> dc_npz_writer_save -> file
#ifndef DC_NPZ_H
#define DC_NPZ_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"
#include "data/npy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- reading ----

typedef struct dc_npz_entry {
    const char *name;      // without ".npy"
    bool array;            // the name did end in ".npy"; other entries are not arrays
    bool deflated;         // else stored as it is
    uint32_t crc;          // of the unpacked bytes
    uint64_t packed, size; // bytes in the file, bytes when unpacked (npy header included)
    uint64_t local;        // offset of the local header
    uint64_t offset;       // offset of the packed bytes
} dc_npz_entry;

typedef struct dc_npz {
    const char *path;     // named in errors
    const uint8_t *bytes; // (size) the whole file
    size_t size;
    size_t count;
    dc_npz_entry *entries; // (count) in the order of the file's directory
    bool skip_crc;         // only for fuzzing: a mutated file should get past the checksum
    uint64_t whole_max; // larger deflated arrays are converted in chunks, without a buffer as large
    dc_map map;         // behind bytes, when a path was opened
    dc_arena arena;     // owns entries and names
} dc_npz;

// Open an archive and check its whole directory. Borrows: path.
dc_status dc_npz_open(dc_npz *npz, const char *path);
// The same for bytes in memory; `name` stands for the path in errors. Borrows: name, bytes.
dc_status dc_npz_open_memory(dc_npz *npz, const char *name, const void *bytes, size_t size);
// Safe after a failed open.
void dc_npz_close(dc_npz *npz);

// Array by name; NULL when there is none.
const dc_npz_entry *dc_npz_find(const dc_npz *npz, const char *name);
// Type and shape of an array, checked against the entry's size. Errors: DC_UNSUPPORTED for arrays
// that are not little-endian C-order numbers, and for entries that are not arrays.
dc_status dc_npz_head(const dc_npz *npz, const dc_npz_entry *entry, dc_npy *npy);

// Values of an array as float or double; npy comes from dc_npz_head, out has npy->count values.
dc_status dc_npz_floats(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                        float *out);
dc_status dc_npz_doubles(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                         double *out);
// Values of an array in their own type, aligned to 64 bytes, in memory of the arena (no second
// copy).
dc_status dc_npz_values(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                        dc_arena *arena, void **values);
// The two halves of _values, so that many arrays can be unpacked by many threads: room in the arena
// (with room for the npy header, which is unpacked too, before the values), and the values into it.
dc_status dc_npz_room(const dc_npy *npy, dc_arena *arena, void **values);
dc_status dc_npz_fill(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                      void *values);

// Values of an array in chunks, in memory that does not depend on its size. The last chunk also
// checks the CRC and that the packed bytes end there. Close it also after a failed open. Borrows:
// npz, entry.
typedef struct dc_npz_reader dc_npz_reader;
dc_status dc_npz_reader_open(dc_npz_reader **reader, const dc_npz *npz, const dc_npz_entry *entry,
                             const dc_npy *npy);
// The next n values, as float or in their own type; there must be as many left.
dc_status dc_npz_reader_floats(dc_npz_reader *reader, uint64_t n, float *out);
dc_status dc_npz_reader_values(dc_npz_reader *reader, uint64_t n, void *out);
void dc_npz_reader_close(dc_npz_reader *reader); // Nullable: reader

// ---- writing ----

enum { DC_NPZ_WRITE_ARRAYS = 64, DC_NPZ_WRITE_NAME = 200 }; // at most; bytes of a name
typedef struct dc_npz_writer dc_npz_writer;

// Start a file; level 0 stores, 1 (fast) to 9 (small) deflates. Nothing is at `path` before _save.
dc_status dc_npz_writer_new(dc_npz_writer **writer, const char *path, int level);
// Declare an array by the type and shape of one row; `array` is its number for _append.
dc_status dc_npz_writer_add(dc_npz_writer *writer, const char *name, dc_dtype type, int row_ndim,
                            const int64_t *row_shape, int *array);
// Append rows (count, row_shape...) to an array; arrays may take turns in any order.
dc_status dc_npz_writer_append(dc_npz_writer *writer, int array, const void *rows, int64_t count);
// A whole array at once, of any shape, () included.
dc_status dc_npz_writer_put(dc_npz_writer *writer, const char *name, dc_dtype type, int ndim,
                            const int64_t *shape, const void *values);
// Put the file together and publish it. Call once; _free must follow.
dc_status dc_npz_writer_save(dc_npz_writer *writer);
// Free the writer; without _save before it, nothing is left behind. Nullable: writer.
void dc_npz_writer_free(dc_npz_writer *writer);

#endif
