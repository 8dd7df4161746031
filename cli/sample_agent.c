// dcrl sample --agent: all rows of a method's batch, one column for each rule of its table (sample/rows.h), by name;
// of a rule with several rows for each row of the batch, numbered columns.
#include "sample_agent.h"

#include "runs.h"

#include <inttypes.h>
#include <stdio.h>

static void print_head(const dc_row_table *rows) {
    fputs("step", stdout);
    for (int r = 0; r < rows->count; r++) {
        int times = dc_row_times(&rows->rule[r]);
        if (times == 1) printf(",%s", rows->rule[r].name);
        for (int k = 0; times > 1 && k < times; k++)
            printf(",%s%d", rows->rule[r].name, k);
    }
    fputc('\n', stdout);
}

static void print_numbers(const dc_agent *agent, int rule, int row) {
    int times = dc_row_times(&agent->rows.rule[rule]);
    for (int k = 0; k < times; k++)
        printf(",%" PRId64, dc_sampler_drawn(agent->sampler, rule)[row * times + k]);
}

static dc_status print_rows(dc_agent *agent, int64_t count) {
    const dc_row_table *rows = &agent->rows;
    print_head(rows);
    for (int64_t done = 0; done < count;) {
        uint64_t step = dc_sampler_step(agent->sampler);
        agent->step = step;
        DC_TRY(dc_sampler_next(agent->sampler, step));
        for (int b = 0; b < rows->batch && done < count; b++, done++) {
            printf("%" PRIu64, step);
            for (int r = 0; r < rows->count; r++)
                print_numbers(agent, r, b);
            fputc('\n', stdout);
        }
        if (ferror(stdout)) return dc_fail(DC_IO, NULL, "standard output could not be written");
    }
    return DC_OK;
}

dc_status cli_sample_agent(const char *name, const cli_args *args, const dc_dataset *data,
                           int64_t seed, int64_t count) {
    dc_run run = DC_RUN_NONE;
    dc_agent agent = {0};
    dc_agent_options options;
    dc_status status = dc_run_configure(&run, name);
    if (status == DC_OK) status = cli_run_sets(&run, args);
    if (status == DC_OK) status = dc_run_agent_options(&run, &options);
    if (status == DC_OK) {
        options.seed = (uint64_t)seed;
        options.hidden = (dc_int_list){1, {1}}; // rows do not depend on it, but for split=max
        status = dc_agent_init(&agent, run.algo, run.config, &options, data, NULL);
    }
    if (status == DC_OK) status = print_rows(&agent, count);
    dc_agent_fini(&agent);
    dc_run_fini(&run);
    return status;
}
