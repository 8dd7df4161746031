// Gather: writes the rows that the streams name straight into the networks' concatenated inputs. An
// algorithm declares its feeds once; nothing is copied twice.
#ifndef DC_GATHER_H
#define DC_GATHER_H

#include "backend/backend.h"
#include "data/dataset.h"
#include "sample/sampler.h"

typedef struct dc_feed {
    dc_ref input;            // node to write
    int row0, col0;          // top left corner there
    const dc_column *column; // data to take; NULL: the stream's integer itself
    dc_stream stream;        // which rows
} dc_feed;

void dc_gather(const dc_feed *feeds, int count, const dc_sampler *sampler, int batch, const dc_exec *exec);

#endif
