// What the files of the public API share. Every public function checks what it is given, calls the
// stage that does the work, and hands its status out under the public name.
#ifndef DC_API_H
#define DC_API_H

#include "base/status.h"
#include "data/dataset.h"
#include "dcrl/dcrl.h"
#include "rollout/eval.h"

struct dcrl_dataset {
    dc_dataset data;
};

// The public codes are the internal ones. What ends well leaves no message behind.
static inline dcrl_status dc_api_status(dc_status status) {
    if (status == DC_OK) dc_error_clear();
    return (dcrl_status)status;
}

static inline dcrl_score dc_api_score(const dc_eval_score *s) {
    dcrl_score score = {.episodes = s->episodes,
                        .overall = s->overall,
                        .deviation = s->sd,
                        .mean_steps = s->mean_steps};
    for (int t = 0; t < DC_TASKS; t++)
        score.task[t] = s->task[t];
    return score;
}

// Record that a caller's argument cannot be, in words: "function: what (value): hint".
dcrl_status dc_api_refuse(const char *function, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Refuse a call: a caller's mistake is no bug of ours.
#define DC_API_NEED(cond, hint, ...)                                                               \
    do {                                                                                           \
        if (!(cond)) return dc_api_refuse(__func__, hint, __VA_ARGS__);                            \
    } while (0)
#define DC_API_GIVEN(pointer)                                                                      \
    DC_API_NEED((pointer) != NULL, "see the function's header", #pointer " is NULL")
#define DC_API_THREADS(threads)                                                                    \
    DC_API_NEED((threads) >= 0 && (threads) <= 1024, "give 1 to 1024, or 0 for all cores",         \
                "impossible number of threads (%d)", threads)

#endif
