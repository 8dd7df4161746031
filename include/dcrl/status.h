// How calls say that something went wrong: a code, and a sentence with what to do. The library never
// prints, never exits and never aborts because of what it is given.
#ifndef DCRL_STATUS_H
#define DCRL_STATUS_H

#if defined(__GNUC__)
#define DCRL_API __attribute__((visibility("default")))
#else
#define DCRL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dcrl_status {
    DCRL_OK = 0,
    DCRL_USAGE,       // the caller asked for something that does not exist
    DCRL_BAD_INPUT,   // a file or value is malformed
    DCRL_IO,          // the system refused a read, write, sync or rename
    DCRL_NO_MEMORY,   // an allocation failed
    DCRL_NOT_FINITE,  // NaN or Inf in training or simulation
    DCRL_INTERRUPTED, // a run was asked to stop; its state was saved
    DCRL_UNSUPPORTED  // this build or machine cannot do it
} dcrl_status;

// The version of these headers. While the first two numbers stay, functions are added and never changed.
#define DCRL_VERSION_MAJOR 0
#define DCRL_VERSION_MINOR 1
#define DCRL_VERSION_PATCH 0

// The last error of the calling thread, one line: "what (value): what to do". Empty after a call that succeeded.
DCRL_API const char *dcrl_message(void);
// Version, commit and compiler of the library, whose version may be newer than the headers'.
DCRL_API const char *dcrl_version(void);

#ifdef __cplusplus
}
#endif
#endif
