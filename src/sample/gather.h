// Gather: writes the rows that the sampler drew straight into the networks' concatenated inputs. An
// algorithm declares its feeds once; nothing is copied twice.
#ifndef DC_GATHER_H
#define DC_GATHER_H

#include "backend/backend.h"
#include "data/dataset.h"
#include "sample/crop.h"
#include "sample/sampler.h"

enum { DC_FEEDS_MAX = 64, DC_PACKS_MAX = 4, DC_DRAWS_MAX = 8 };

// A block whose rows are needed only where the count of rule `steps` exceeds `known`: those rows are packed, one pack
// after the other, behind the fixed rows of their input; `index` receives the row of each, or -1.
typedef struct dc_pack {
    dc_ref input, index;
    int steps;
    int known;
    int *rows; // (batch) batch rows that are needed, in order
    int count; // of them
    int row0;  // where they start
} dc_pack;

// Random numbers that a batch has beside its rows, under a name: each name draws from a stream of its own, so a method may
// have several of a kind (sample/noise.h).
typedef enum dc_draw_kind {
    DC_DRAW_NOISE, // standard normals
    DC_DRAW_TIME,  // one number per row, uniform in [0, 1)
} dc_draw_kind;

typedef struct dc_draw {
    const char *name; // "noise"
    dc_draw_kind kind;
    int columns;        // of a row; TIME: 1
    uint32_t stream;    // base/philox.h
    const float *given; // Nullable: (batch, columns) to take in place of draws
} dc_draw;

// What a column's values are scaled by: x becomes (x - mean) * rate.
typedef struct dc_scale {
    const float *mean, *rate; // (width of the column)
} dc_scale;

typedef struct dc_feed {
    dc_ref input;            // node to write
    int row0, col0;          // top left corner there
    const dc_column *column; // data to take; NULL: the rule's integer itself
    int rule;                // which rows (sample/rows.h)
    int times; // above 1: the rule gives so many for every row of the batch, and so many rows are written
    dc_pack *pack;         // Nullable: only its rows, at its place
    int skip, take;        // columns of it; take 0: all
    const dc_scale *scale; // Nullable: of all values of the column
    bool crop;             // pictures, which dc_feeds.crop moves
    int draw;              // above 0: `take` columns of that draw; TIME: its number in each of them
    int one_hot;           // above 0: a whole number as so many columns, one of them 1
    int repeat;            // above 0: every row so many times, one after the other; without a
                           // column, one_hot shows the number of the repetition
} dc_feed;

typedef struct dc_feeds {
    int batch, feed_count, pack_count;
    int first;     // row of the sampler's batch that is this one's first, which may be a part of it
    uint64_t seed; // of draws
    dc_crop crop;  // of feeds that say so
    dc_feed feeds[DC_FEEDS_MAX];
    int draw_count;
    dc_draw draws[DC_DRAWS_MAX + 1]; // numbers 1 to draw_count
    dc_pack packs[DC_PACKS_MAX];
    int fixed_rows[DC_PACKS_MAX]; // rows of pack p's input that are always used
} dc_feeds;

// Number of the draw of that name; adds it if there is none. One name for two kinds or widths is a bug and aborts.
int dc_feeds_draw(dc_feeds *feeds, const char *name, dc_draw_kind kind, int columns);
void dc_gather(dc_feeds *feeds, const dc_sampler *sampler, const dc_exec *exec);
// Ask the disk for the rows of mapped columns that a gather of this sampler would take, without
// waiting for them. Nullable: pool.
void dc_gather_want(const dc_feeds *feeds, const dc_sampler *sampler, dc_pool *pool);

#endif
