// What the files of the public API share. Every public function checks what it is given, calls the
// stage that does the work, and hands its status out under the public name.
#ifndef DC_API_H
#define DC_API_H

#include "base/status.h"
#include "data/dataset.h"
#include "dcrl/dcrl.h"

struct dcrl_dataset {
    dc_dataset data;
};

// The public codes are the internal ones.
static inline dcrl_status dc_api_status(dc_status status) {
    return (dcrl_status)status;
}

// Refuse a call whose condition does not hold, and name it: a caller's mistake is no bug of ours.
#define DC_API_NEED(cond)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return dc_api_status(dc_fail(DC_USAGE, "see the function's header",                    \
                                         "%s was called without %s", __func__, #cond));            \
    } while (0)

#endif
