// Status: how a function says that the world (a file, a flag, memory) did not do what was asked.
// A function that can fail returns dc_status; the message and the hint lie in a record of the
// calling thread, written by dc_fail and read by the code that reports it. Bugs abort (DC_CHECK) instead.
// The library never prints and never exits: cli/ does.
#ifndef DC_STATUS_H
#define DC_STATUS_H

typedef enum dc_status {
    DC_OK = 0,
    DC_USAGE,       // the caller asked for something that does not exist: exit 2
    DC_BAD_INPUT,   // a file or value is malformed: exit 1
    DC_IO,          // the system refused a read, write, sync or rename
    DC_NO_MEMORY,   // an allocation failed
    DC_NOT_FINITE,  // NaN or Inf in training
    DC_INTERRUPTED, // a signal asked to stop; state was saved
    DC_UNSUPPORTED, // this build or machine cannot do it
} dc_status;

// Record an error of this thread and return its code. `hint` says what to do (nullable); the
// message is formatted like printf.
dc_status dc_fail(dc_status code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The last error of this thread, as "message: hint"; valid until the next dc_fail of this thread.
const char *dc_error(void);
// Forget it: then dc_error() is "".
void dc_error_clear(void);

// Put words in front of the last error, keeping its code ("reading weights: ...").
dc_status dc_fail_prefix(dc_status code, const char *prefix);

#ifdef __clang_analyzer__ // tell it that these return the code, so never DC_OK
#define dc_fail(code, ...)           (dc_fail(code, __VA_ARGS__), (code))
#define dc_fail_prefix(code, prefix) (dc_fail_prefix(code, prefix), (code))
#endif

// Abort with file, line and the broken expectation. For bugs only; never compiled out.
void dc_bug(const char *file, int line, const char *what) __attribute__((noreturn));

#define DC_CHECK(cond) ((cond) ? (void)0 : dc_bug(__FILE__, __LINE__, #cond))

#define DC_TRY(call)                                                                               \
    do {                                                                                           \
        dc_status dc_try_ = (call);                                                                \
        if (dc_try_ != DC_OK) return dc_try_;                                                      \
    } while (0)

// The same for functions that clean up at a label; needs a local `dc_status status`.
#define DC_GOTO(call, label)                                                                       \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != DC_OK) goto label;                                                           \
    } while (0)

#endif
