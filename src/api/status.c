// Codes and messages of the public API.
#include "api/api.h"
#include "base/build.h"

#include <stdarg.h>
#include <stdio.h>

_Static_assert((int)DCRL_OK == (int)DC_OK && (int)DCRL_USAGE == (int)DC_USAGE &&
                   (int)DCRL_BAD_INPUT == (int)DC_BAD_INPUT && (int)DCRL_IO == (int)DC_IO &&
                   (int)DCRL_NO_MEMORY == (int)DC_NO_MEMORY &&
                   (int)DCRL_NOT_FINITE == (int)DC_NOT_FINITE &&
                   (int)DCRL_INTERRUPTED == (int)DC_INTERRUPTED &&
                   (int)DCRL_UNSUPPORTED == (int)DC_UNSUPPORTED,
               "public and internal codes are the same numbers");

dcrl_status dc_api_refuse(const char *function, const char *hint, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return (dcrl_status)dc_fail(DC_USAGE, hint, "%s: %s", function, text);
}

const char *dcrl_message(void) {
    return dc_error();
}

const char *dcrl_version(void) {
    return dc_build_id();
}
