// Fuzz target: npz files as held-out data of a small run, which stays. Those that fit are measured: losses and the
// value's error, over rows and pairs that lie within them.
#include "files.h"
#include "zip_repair.h"

#include "data/dataset.h"
#include "train/held_out.h"
#include "train/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 24, WIDTH = 2, LENGTH = 8 };
static dc_run run = DC_RUN_NONE;
static dc_dataset rows;

static void begin(void) {
    int64_t *starts;
    float *obs, *act;
    files_begin();
    DC_CHECK(dc_dataset_make(&rows, ROWS, ROWS / LENGTH, &starts) == DC_OK);
    for (int t = 0; t <= ROWS / LENGTH; t++)
        starts[t] = t * LENGTH;
    DC_CHECK(dc_dataset_add(&rows, "obs", WIDTH, &obs) == DC_OK);
    DC_CHECK(dc_dataset_add(&rows, "act", WIDTH, &act) == DC_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        obs[i] = (float)i, act[i] = 0.5F;
    DC_CHECK(dc_dataset_seal(&rows) == DC_OK);
    static const char *const options[][2] = {{"env", "pointmaze-medium-navigate"},
                                             {"form", "value"},
                                             {"hidden", "4"},
                                             {"batch", "4"},
                                             {"steps", "4"},
                                             {"threads", "1"},
                                             {"n", "2"},
                                             {"slots", "2"}};
    DC_CHECK(dc_run_configure(&run, "dcrl") == DC_OK);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        DC_CHECK(dc_run_set(&run, options[i][0], options[i][1]) == DC_OK);
    DC_CHECK(dc_run_start(&run, &rows, NULL) == DC_OK);
}

static void measure(const dc_dataset *held_out) {
    dc_held_out *h;
    double values[DC_METRICS_MAX + 1];
    if (dc_held_out_new(&h, &run, held_out) != DC_OK) return;
    int count = dc_held_out_count(h);
    DC_CHECK(count >= 1 && count <= DC_METRICS_MAX + 1);
    for (int i = 0; i < count; i++)
        DC_CHECK(!strncmp(dc_held_out_name(h, i), "val_", 4));
    (void)dc_held_out_measure(h, &run.agent, values);
    dc_held_out_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!rows.rows) begin();
    dc_npz npz;
    dc_dataset held_out = {0};
    if (dc_npz_open_memory(&npz, "val.npz", data, size) != DC_OK) return 0;
    npz.skip_crc = true;
    if (dc_dataset_read(&held_out, &npz) == DC_OK && held_out.rows <= 1000) measure(&held_out);
    dc_dataset_fini(&held_out);
    dc_npz_close(&npz);
    return 0;
}
