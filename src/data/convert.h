// Converting data sets: npz files into a store, and a store into an npz file. Both work in chunks, so
// memory stays at one small buffer however large the data is, and both publish their result whole:
// an npz appears by a rename, and a store's index is written last.
//
//     dc_convert convert;
//     dc_convert_open(&convert, inputs, count, output)   -> checks, and how much it will write
//     dc_convert_run(&convert, progress)                  -> does it
//     dc_convert_close(&convert)
#ifndef DC_CONVERT_H
#define DC_CONVERT_H

#include "data/dataset.h"
#include "data/layout.h"
#include "data/npz.h"
#include "data/store.h"

#include <stdbool.h>
#include <stdint.h>

// Told now and then how many bytes of values are done; false stops the conversion.
typedef bool dc_convert_progress(void *ctx, uint64_t done, uint64_t total);

typedef struct dc_convert_options {
    int64_t rows_per_shard; // into a store; a multiple of DC_STORE_UNIT
    int level;              // into an npz: 0 stores, 1 (fast) to 9 (small) deflates
} dc_convert_options;

typedef struct dc_convert {
    const char *output;
    dc_convert_options options;
    bool to_store;
    uint64_t bytes; // of values, all in all
    uint64_t disk;  // bytes that the output's disk must have free, at most
    // Into a store:
    int input_count;
    dc_npz *inputs;     // (input_count)
    dc_layout *layouts; // (input_count) all alike but for the rows
    dc_bounds actions;  // of all files; none where they are discrete
    // Into an npz:
    dc_dataset data;

    dc_store_index index; // of the store, whichever side it is on
    dc_arena arena;
    uint64_t done; // bytes of values
    dc_convert_progress *progress;
    void *progress_ctx;
    void *buffer;   // values in flight, float32 or bytes
    uint8_t *whole; // the same as whole numbers of other types
} dc_convert;

// Open all inputs and check that they go together. An output that ends in ".npz" takes one store,
// any other is the folder of a new store and takes npz files, whose rows follow each other. _close
// also after a failure. Borrows: inputs, output.
dc_status dc_convert_open(dc_convert *convert, const char *const *inputs, int count,
                          const char *output, const dc_convert_options *options);
// Errors: DC_INTERRUPTED when progress (nullable) said so; nothing is left behind then, nor after
// any other failure.
dc_status dc_convert_run(dc_convert *convert, dc_convert_progress *progress, void *ctx);
void dc_convert_close(dc_convert *convert);

#endif
