// Loading HDF5, see hdf5_lib.h.
#include "data/hdf5_lib.h"

#ifndef DC_HDF5

dc_status dc_hdf5_load(void) {
    return dc_fail(DC_UNSUPPORTED,
                   "install libhdf5-dev (tools/setup.sh build does) and build again, or convert to "
                   ".npz with h5py and numpy",
                   "this build cannot read HDF5");
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

dc_hdf5_table dc_h5;

// The header's own declarations have these types.
#define CHECK(result, name, arguments)                                                             \
    _Static_assert(_Generic(&name, result(*) arguments : 1, default : 0), #name);
DC_HDF5_FUNCTIONS(CHECK)
#undef CHECK

#define TEXT_OF(name) #name
#define NAME(name)    TEXT_OF(name) // as the header may have renamed it

static bool find(void *library, const char *name, void *out, size_t size) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, size);
    return symbol != NULL;
}

static bool find_number(void *library, const char *name, hid_t *out) {
    hid_t *at = NULL;
    if (!find(library, name, &at, sizeof at)) return false;
    *out = *at;
    return true;
}

static const char *failure; // NULL: it is there

static void load(void) {
    void *library = dlopen(DC_HDF5, RTLD_NOW | RTLD_LOCAL);
    bool good = library != NULL;
#define FIND(result, name, arguments)                                                              \
    good = good && find(library, NAME(name), &dc_h5.name, sizeof dc_h5.name);
    DC_HDF5_FUNCTIONS(FIND)
#undef FIND
    good = good && dc_h5.H5open() >= 0 && // gives the numbers below their values
           find_number(library, "H5T_NATIVE_FLOAT_g", &dc_h5.float32) &&
           find_number(library, "H5T_NATIVE_INT64_g", &dc_h5.int64) &&
           find_number(library, "H5T_NATIVE_UINT8_g", &dc_h5.uint8) &&
           find_number(library, "H5P_CLS_DATASET_ACCESS_ID_g", &dc_h5.access);
    if (!good) {
        failure = library ? "it lacks a function" : "it is not there";
        return;
    }
    dc_h5.H5Eset_auto2(H5E_DEFAULT, NULL, NULL); // it prints nothing
    dc_h5.H5PLset_loading_state(0);              // and loads no code that a file names
}

dc_status dc_hdf5_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (!failure) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, "install libhdf5 (Debian: libhdf5-103-1), or build again",
                   "%s cannot be loaded: %s", DC_HDF5, failure);
}

#endif
