// How fast is a data set loaded? One JSON line: seconds (best of several) to load a file of ROWS x
// 30 float32 observations and ROWS x 5 actions with every check and the hash, stored and deflated,
// and to write it. To compare:
//   bench_npz            makes the files in a temporary folder, measures, removes them
//   bench_npz FILE...    measures loading of the given files (numpy: time [f[k] for k in (f :=
//   np.load(FILE))])
#include "base/philox.h"
#include "data/dataset.h"
#include "data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 1000000, OBS = 30, ACT = 5, CHUNK = 1000, TRIES = 5 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Values with the entropy of measurements: 24 random bits each.
static void fill(float *v, size_t n, uint64_t step) {
    for (size_t i = 0; i < n; i += 4) {
        dc_u32x4 r = dc_philox(1, 0, step, (uint32_t)i);
        for (size_t k = 0; k < 4 && i + k < n; k++)
            v[i + k] = dc_unit(r.v[k]) * 2 - 1;
    }
}

static dc_status write_rows(dc_npz_writer *w) {
    static float obs[CHUNK * OBS], act[CHUNK * ACT];
    static uint8_t end[CHUNK];
    int a, b, c;
    DC_TRY(dc_npz_writer_add(w, "observations", DC_F4, 1, (int64_t[]){OBS}, &a));
    DC_TRY(dc_npz_writer_add(w, "actions", DC_F4, 1, (int64_t[]){ACT}, &b));
    DC_TRY(dc_npz_writer_add(w, "terminals", DC_B1, 0, NULL, &c));
    end[CHUNK - 1] = 1;
    fill(act, CHUNK * ACT, 0);
    for (uint64_t row = 0; row < ROWS; row += CHUNK) {
        fill(obs, CHUNK * OBS, row);
        DC_TRY(dc_npz_writer_append(w, a, obs, CHUNK));
        DC_TRY(dc_npz_writer_append(w, b, act, CHUNK));
        DC_TRY(dc_npz_writer_append(w, c, end, CHUNK));
    }
    return dc_npz_writer_save(w);
}

static dc_status time_write(const char *path, int level, double *seconds) {
    dc_npz_writer *w;
    double start = now();
    DC_TRY(dc_npz_writer_new(&w, path, level));
    dc_status status = write_rows(w);
    dc_npz_writer_free(w);
    *seconds = now() - start;
    return status;
}

static dc_status time_load(const char *path, double *seconds) {
    *seconds = 1e9;
    for (int i = 0; i < TRIES; i++) {
        dc_dataset data;
        double start = now();
        DC_TRY(dc_dataset_load(&data, path));
        double t = now() - start;
        *seconds = t < *seconds ? t : *seconds;
        dc_dataset_fini(&data);
    }
    return DC_OK;
}

static dc_status bench_own(void) {
    char folder[] = "/tmp/bench-npz-XXXXXX", path[64];
    if (!mkdtemp(folder)) return dc_fail(DC_IO, NULL, "no temporary folder");
    snprintf(path, sizeof path, "%s/a.npz", folder);
    double write[2] = {0}, load[2] = {0};
    dc_status status = DC_OK;
    for (int level = 0; status == DC_OK && level <= 1; level++) {
        status = time_write(path, level, &write[level]);
        if (status == DC_OK) status = time_load(path, &load[level]);
    }
    unlink(path);
    rmdir(folder);
    printf("{\"bench\": \"npz\", \"rows\": %d, \"load_stored_s\": %.4f, \"load_deflate_s\": %.4f, "
           "\"write_stored_s\": %.4f, \"write_deflate_s\": %.4f}\n",
           ROWS, load[0], load[1], write[0], write[1]);
    return status;
}

int main(int argc, char **argv) {
    dc_status status = argc < 2 ? bench_own() : DC_OK;
    for (int i = 1; status == DC_OK && i < argc; i++) {
        double seconds;
        status = time_load(argv[i], &seconds);
        if (status == DC_OK)
            printf("{\"bench\": \"npz\", \"file\": \"%s\", \"load_s\": %.4f}\n", argv[i], seconds);
    }
    if (status != DC_OK) fprintf(stderr, "bench_npz: %s\n", dc_error());
    return status == DC_OK ? 0 : 1;
}
