// The guard around MuJoCo. By itself the library ends the process on an error and writes
// MUJOCO_LOG.TXT on a warning. Its two hooks are set here, once: a warning is only remembered (per
// thread), an error jumps back to the guard, because the library does not expect its hook to
// return. The jump leaves nothing of ours behind: between guard and hook there is only MuJoCo,
// whose scratch memory belongs to the mjData that the next reset clears.
#include "env/mujoco/engine.h"

#include "base/log.h"
#include "base/number.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

enum { TEXT = 256 };
static _Thread_local jmp_buf *escape; // of the innermost guard of this thread
static _Thread_local char said[TEXT]; // the last error or warning
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_warning(const char *text) {
    snprintf(said, sizeof said, "%s", text);
}

static void on_error(const char *text) {
    snprintf(said, sizeof said, "%s", text);
    DC_CHECK(escape); // every call that can fail stands in a guard
    longjmp(*escape, 1);
}

static void set_hooks(void) {
    mju_user_error = on_error;
    mju_user_warning = on_warning;
}

static dc_status warnings_of(const mjData *data) {
    for (int w = 0; data && w < mjNWARNING; w++)
        if (data->warning[w].number)
            return dc_fail(DC_NOT_FINITE, "check the state and the actions that were given",
                           "the simulation broke down: %s", said[0] ? said : mju_warningText(w, 0));
    if (said[0]) dc_log(DC_WARN, "MuJoCo: %s", said);
    return DC_OK;
}

dc_status dc_mujoco_guard(dc_work *work, void *ctx, const mjData *data) {
    jmp_buf here, *volatile outer = escape;
    pthread_once(&once, set_hooks);
    volatile locale_t before = dc_locale_enter(); // models are text with numbers in it
    said[0] = 0;
    if (setjmp(here)) {
        escape = outer;
        dc_locale_leave(before);
        return dc_fail(DC_UNSUPPORTED, NULL, "MuJoCo gave up: %s", said);
    }
    escape = &here;
    work(ctx);
    escape = outer;
    dc_locale_leave(before);
    return warnings_of(data);
}
