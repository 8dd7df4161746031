// Does training wait for the disk when its store is not in memory? A step here draws ROWS_A_STEP
// rows anywhere, and computes for COMPUTE_MS (it sleeps, so that the answer does not depend on how
// busy the processor is). One JSON line: milliseconds per step spends on reading its rows
//   warm        all rows in memory
//   cold        none of them, each row waited for when it is touched
//   cold_ahead  none of them, the next step's rows asked for before the computation, as training does
// and the largest resident size. `bench_store FOLDER` takes a store, which should be large; without
// one it makes a store of 600 MB.
#define _DEFAULT_SOURCE // posix_fadvise, getrusage
#include "base/file.h"
#include "base/pages.h"
#include "base/philox.h"
#include "data/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_A_STEP = 6144, COMPUTE_MS = 40, STEPS = 25, OWN_ROWS = 5 << 20, OWN_WIDTH = 29 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const uint8_t *row_of(const dc_dataset *data, const dc_column *column, int step, int i) {
    dc_u32x4 words = dc_philox(7, (uint32_t)step, (uint64_t)i, 0);
    uint64_t row = dc_below64(words.v[0], words.v[1], (uint64_t)data->rows);
    return dc_column_at(column, (int64_t)row, 0);
}

// Drop the pages of every shard from memory.
static dc_status make_cold(const char *folder, const dc_store_index *index) {
    const dc_store_column *obs = index->columns;
    while (strcmp(obs->name, "obs") != 0)
        obs++; // an index that was read has it
    for (int s = 0; s < index->shard_count; s++) {
        char path[DC_STORE_PATH_MAX];
        DC_TRY(dc_store_column_path(path, folder, obs, s));
        int fd = open(path, O_RDONLY);
        if (fd < 0) return dc_fail(DC_IO, NULL, "cannot open %s", path);
        (void)fsync(fd); // only clean pages can be dropped
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return DC_OK;
}

// Seconds per step that pass while its rows are read. Steps of each kind draw rows of their own.
static double time_steps(const dc_dataset *data, int kind, bool ahead) {
    const dc_column *column = dc_dataset_column(data, "obs");
    size_t bytes = dc_column_row_size(column);
    volatile unsigned sink = 0;
    double waited = 0;
    for (int s = kind * STEPS; s < (kind + 1) * STEPS; s++) {
        double start = now();
        for (int i = 0; ahead && i < ROWS_A_STEP; i++)
            dc_pages_want(row_of(data, column, s, i), bytes);
        waited += now() - start;
        nanosleep(&(struct timespec){.tv_nsec = COMPUTE_MS * 1000000L}, NULL);
        start = now();
        for (int i = 0; i < ROWS_A_STEP; i++)
            sink = sink + *row_of(data, column, s, i);
        waited += now() - start;
    }
    return waited / STEPS;
}

static dc_status time_kind(const char *folder, const dc_store_index *index, int kind, double *ms) {
    dc_dataset data;
    if (kind) DC_TRY(make_cold(folder, index));
    DC_TRY(dc_store_load(&data, folder));
    if (kind == 0) (void)dc_dataset_hash(&data); // reads everything
    *ms = 1e3 * time_steps(&data, kind, kind == 2);
    dc_dataset_fini(&data);
    return DC_OK;
}

static dc_status bench(const char *folder) {
    dc_store_index index;
    dc_arena arena;
    dc_arena_init(&arena, 0);
    double ms[3] = {0};
    dc_status status = dc_store_index_read(&index, &arena, folder);
    for (int kind = 0; status == DC_OK && kind < 3; kind++)
        status = time_kind(folder, &index, kind, &ms[kind]);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    if (status == DC_OK)
        printf("{\"bench\": \"store\", \"rows\": %lld, \"rows_a_step\": %d, \"compute_ms\": %d, "
               "\"warm_ms\": %.2f, \"cold_ms\": %.2f, \"cold_ahead_ms\": %.2f, "
               "\"max_resident_mb\": %ld}\n",
               (long long)index.rows, ROWS_A_STEP, COMPUTE_MS, ms[0], ms[1], ms[2],
               use.ru_maxrss / 1024);
    dc_arena_fini(&arena);
    return status;
}

static dc_status write_own(const char *folder, const dc_store_index *index) {
    char path[DC_STORE_PATH_MAX];
    int64_t table[] = {0, index->rows};
    DC_TRY(dc_store_path(path, folder, dc_store_table_name));
    DC_TRY(dc_file_write(path, table, sizeof table));
    static float rows[DC_STORE_UNIT * OWN_WIDTH];
    dc_store_writer w;
    dc_store_writer_init(&w, folder, index);
    for (int c = 0; c < index->column_count; c++)
        for (int64_t r = 0; r < index->rows; r += DC_STORE_UNIT)
            DC_TRY(dc_store_writer_append(&w, rows, DC_STORE_UNIT));
    return dc_store_index_write(index, folder);
}

static dc_status bench_own(void) {
    char folder[] = "/tmp/bench-store-XXXXXX";
    if (!mkdtemp(folder)) return dc_fail(DC_IO, NULL, "no temporary folder");
    int64_t shards[5] = {1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20};
    dc_store_index index = {.rows = OWN_ROWS, .traj_count = 1, .column_count = 2};
    index.columns[0] = (dc_store_column){"obs", DC_TYPE_F32, DC_F4, 1, {OWN_WIDTH}, OWN_WIDTH};
    index.columns[1] = (dc_store_column){"act", DC_TYPE_F32, DC_F4, 1, {1}, 1};
    index.shard_count = 5;
    index.shards = shards;
    dc_status status = write_own(folder, &index);
    if (status == DC_OK) status = bench(folder);
    dc_store_remove(folder, &index);
    return status;
}

int main(int argc, char **argv) {
    dc_status status = argc < 2 ? bench_own() : bench(argv[1]);
    if (status != DC_OK) fprintf(stderr, "bench_store: %s\n", dc_error());
    return status == DC_OK ? 0 : 1;
}
