// Ranks that train together begin alike: rank 0 has started or resumed its runs from their folders, and sends their
// state to the others, which have read nothing of them. So it does not matter how many ranks wrote a checkpoint.
#include "train/run.h"

#include "base/hash.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

typedef struct header {
    uint64_t command; // hash of what is trained on what
    int64_t step, sum_count, words;
    double sums[DC_METRICS_MAX + 2];
} header;

static dc_status hash_command(const dc_run *run, uint64_t *hash) {
    dc_run_options options = run->options;
    dc_text text;
    options.threads = 0;
    dc_text_init(&text);
    dc_options_json(dc_run_table, &options, &text);
    dc_options_json(run->algo->options, run->config, &text);
    dc_text_add(&text, "%s %lld", run->algo->name, (long long)run->agent.params.slabs.size);
    dc_status status = dc_text_status(&text);
    if (status == DC_OK) *hash = dc_hash(text.bytes, strlen(text.bytes), run->data->hash);
    dc_text_fini(&text);
    return status;
}

// All ranks come to the same verdict, so none waits for one that has left.
static dc_status check_command(const dc_run *run, uint64_t command, uint64_t first) {
    if (!dc_ranks_any(run->ranks, command != first)) return DC_OK;
    return dc_fail(DC_USAGE, "give all the same, or set DCRL_RANKS=off for runs of their own",
                   "the ranks were given different commands or data");
}

static void share_slabs(dc_run *run) {
    const dc_slabs *s = &run->agent.params.slabs;
    dc_real *slabs[] = {s->live, s->ema, s->m, s->v};
    for (int i = 0; i < 4; i++) {
        int64_t reals = slabs[i] == s->ema ? s->ema_size : s->size;
        dc_ranks_broadcast(run->ranks, 0, slabs[i], reals * (int64_t)sizeof *s->live);
    }
}

static dc_status share_sampler(dc_run *run, int64_t *saved, int64_t count) {
    int64_t *words = saved ? saved : malloc((size_t)count * sizeof *words);
    if (!words) return dc_fail(DC_NO_MEMORY, NULL, "no memory for the sampler's state");
    dc_ranks_broadcast(run->ranks, 0, words, count * (int64_t)sizeof *words);
    dc_status status = saved ? DC_OK : dc_sampler_load(run->agent.sampler, words, (size_t)count);
    if (!saved) free(words);
    return status;
}

static dc_status meet(dc_run *run) {
    bool leads = dc_ranks_rank(run->ranks) == 0;
    header h = {.step = run->step, .sum_count = run->sum_count};
    int64_t *words = NULL;
    size_t count = 0;
    uint64_t command;
    memcpy(h.sums, run->sums, sizeof h.sums);
    DC_TRY(hash_command(run, &command));
    if (leads && run->step > 0) DC_TRY(dc_sampler_save(run->agent.sampler, &words, &count));
    h.command = command;
    h.words = (int64_t)count;
    dc_ranks_broadcast(run->ranks, 0, &h, sizeof h);
    dc_status status = check_command(run, command, h.command);
    if (status == DC_OK && h.step > 0) {
        share_slabs(run);
        status = share_sampler(run, words, h.words);
        run->step = h.step;
        run->sum_count = h.sum_count;
        memcpy(run->sums, h.sums, sizeof h.sums);
    }
    free(words);
    return status;
}

dc_status dc_population_meet(dc_run *runs, int count) {
    for (int i = 0; i < count && runs->ranks; i++)
        DC_TRY(meet(&runs[i]));
    return DC_OK;
}
