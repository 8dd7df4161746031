// Gather, see gather.h. A feed is a rectangle of `batch` rows; feeds never overlap, so each is one block
// of work for the pool.
#include "sample/gather.h"

typedef struct job {
    const dc_feed *feeds;
    const dc_sampler *sampler;
    const dc_exec *exec;
    int batch;
} job;

static void feed_block(void *ctx, int block) {
    const job *j = ctx;
    const dc_feed *f = &j->feeds[block];
    const int64_t *rows = dc_sampler_stream(j->sampler, f->stream);
    dc_view in = dc_value(j->exec, f->input);
    dc_real *out = in.p + (int64_t)f->row0 * in.cols + f->col0;
    if (!f->column) {
        for (int b = 0; b < j->batch; b++)
            out[(int64_t)b * in.cols] = (dc_real)rows[b];
        return;
    }
    int width = f->column->width;
    for (int b = 0; b < j->batch; b++) {
        const float *from = f->column->values + rows[b] * width;
        dc_real *to = out + (int64_t)b * in.cols;
        for (int c = 0; c < width; c++)
            to[c] = (dc_real)from[c];
    }
}

void dc_gather(const dc_feed *feeds, int count, const dc_sampler *sampler, int batch, const dc_exec *exec) {
    job j = {feeds, sampler, exec, batch};
    dc_pool_run(exec->pool, feed_block, &j, count);
}
