// Fuzz target: a file of scales, from its bytes to the cells of experiments and the page of what has not been run. The
// scale that is opened is "mine".
#include "files.h"

#include "report/experiment_page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dc_plan plan;
    dc_text page;
    files_begin();
    files_put("scales.json", data, size);
    if (dc_plan_open(&plan, files_path("scales.json"), "mine") != DC_OK) return 0;
    dc_text_init(&page);
    bool good = dc_plan_add(&plan, "n-step") == DC_OK &&
                dc_plan_add(&plan, "strategies") == DC_OK &&
                dc_plan_add(&plan, "accumulation") == DC_OK;
    if (good) DC_CHECK(dc_experiment_page(&plan, &page) == DC_OK);
    for (int i = 0; i < plan.count; i++)
        dc_experiment_csv(&plan.experiments[i], &page);
    dc_text_fini(&page);
    dc_plan_fini(&plan);
    return 0;
}
