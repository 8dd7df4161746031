// Fuzz target: HDF5 files of any arrangement, converted. The input is a plan by which the library itself writes the
// file: its own bytes are the library's matter (SECURITY.md), what a file may say with them is ours. What is converted
// must be readable, or say in words why not.
#include "files.h"

#include "data/dataset.h"
#include "data/hdf5.h"

#include <hdf5.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct plan {
    const uint8_t *at, *end;
} plan;

static unsigned take(plan *p, unsigned below) {
    return p->at < p->end ? *p->at++ % below : 0;
}

static const char *const places[] = {"observations",
                                     "actions",
                                     "terminals",
                                     "timeouts",
                                     "infos/qpos",
                                     "infos/qvel",
                                     "infos",
                                     "data",
                                     "data/demo_0",
                                     "data/demo_1",
                                     "data/demo_0/obs",
                                     "data/demo_0/obs/object",
                                     "data/demo_0/obs/eye",
                                     "data/demo_0/actions",
                                     "data/demo_1/obs/object",
                                     "data/demo_1/obs/eye",
                                     "data/demo_1/actions",
                                     "episode_0",
                                     "episode_0/observations",
                                     "episode_0/actions",
                                     "episode_1/observations",
                                     "episode_1/actions",
                                     "episode_0/observations/desired_goal",
                                     "episode_0/observations/x",
                                     "episode_1/observations/x",
                                     "episode_01/actions",
                                     "episode_999999999999999/actions",
                                     "metadata/name"};
enum { PLACES = sizeof places / sizeof places[0], VALUES = 1 << 16, CHUNK = 1 << 21 };
static const hsize_t sides[] = {
    1, 2, 3, 5, 8, 9, 60, 0, 300, 1000, (hsize_t)1 << 24, (hsize_t)1 << 40};
enum { SIDES = sizeof sides / sizeof sides[0] };

static hid_t parents, in_memory; // properties

// A type of the file; those that are no numbers are to be refused.
static hid_t type_of(unsigned number) {
    const hid_t plain[] = {H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE, H5T_NATIVE_UINT8,
                           H5T_NATIVE_INT8,  H5T_NATIVE_INT64,  H5T_STD_I32BE,
                           H5T_IEEE_F64BE,   H5T_NATIVE_HBOOL,  H5T_NATIVE_LDOUBLE};
    enum { PLAIN = sizeof plain / sizeof plain[0] };
    if (number < PLAIN) return H5Tcopy(plain[number]);
    if (number == PLAIN) {
        hid_t text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, number);
        return text;
    }
    if (number == PLAIN + 1) return H5Tarray_create2(H5T_NATIVE_FLOAT, 1, (hsize_t[]){2});
    if (number == PLAIN + 2) {
        hid_t flag = H5Tenum_create(H5T_NATIVE_INT8);
        H5Tenum_insert(flag, "FALSE", (int8_t[]){0});
        H5Tenum_insert(flag, "TRUE", (int8_t[]){1});
        return flag;
    }
    hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "x", 0, H5T_NATIVE_FLOAT);
    return pair;
}

// How an array lies: compact, in one piece, in chunks (packed), or outside of the file. A chunk that the library would
// have to write whole has at most CHUNK values.
static hid_t storage(plan *p, int ndim, const hsize_t *dims) {
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[5], size = 1;
    unsigned way = take(p, 8);
    for (int d = 0; d < ndim; d++) {
        chunk[d] = sides[take(p, SIDES - 2)];
        if (chunk[d] && size * chunk[d] > CHUNK) chunk[d] = 1;
        size *= chunk[d];
    }
    if (way == 0) H5Pset_layout(how, H5D_COMPACT);
    if (way == 1) H5Pset_external(how, files_path("outside"), 0, H5F_UNLIMITED);
    if (way >= 4 && ndim) H5Pset_chunk(how, ndim, chunk);
    if (way >= 6 && ndim) H5Pset_deflate(how, 1);
    (void)dims;
    return how;
}

static void write_array(plan *p, hid_t file, const char *path) {
    static uint8_t values[VALUES];
    hsize_t dims[5], most[5], count = 1;
    int ndim = (int)take(p, 5);
    bool grows = take(p, 4) == 0;
    for (int d = 0; d < ndim; d++) {
        dims[d] = sides[take(p, grows ? SIDES : SIDES - 2)];
        most[d] = H5S_UNLIMITED;
        count = count > VALUES ? count : count * dims[d];
    }
    hid_t type = type_of(take(p, 13)), how = storage(p, ndim, dims),
          space = ndim ? H5Screate_simple(ndim, dims, grows ? most : NULL) : H5Screate(H5S_SCALAR);
    hid_t id = H5Dcreate2(file, path, type, space, parents, how, H5P_DEFAULT);
    uint8_t seed = (uint8_t)take(p, 256);
    for (int i = 0; i < VALUES; i++)
        values[i] = seed < 200 ? (uint8_t)(seed && i % (seed + 1) == seed) : (uint8_t)(i * seed);
    if (id >= 0 && count * H5Tget_size(type) <= VALUES)
        H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    if (id >= 0) H5Dclose(id);
    H5Sclose(space);
    H5Pclose(how);
    H5Tclose(type);
}

static void write_link(plan *p, hid_t file, const char *path) {
    const char *to = places[take(p, PLACES)];
    unsigned kind = take(p, 3);
    if (kind == 0) H5Lcreate_soft(to, file, path, parents, H5P_DEFAULT);
    if (kind == 1) H5Lcreate_external("other.hdf5", to, file, path, parents, H5P_DEFAULT);
    if (kind == 2) H5Lcreate_hard(file, take(p, 2) ? to : "/", file, path, parents, H5P_DEFAULT);
}

static void write_file(plan *p, const char *path) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, in_memory);
    DC_CHECK(file >= 0);
    for (int i = 0; i < 12 && p->at < p->end; i++) {
        const char *place = places[take(p, PLACES)];
        unsigned kind = take(p, 8);
        if (kind == 0) {
            hid_t group = H5Gcreate2(file, place, parents, H5P_DEFAULT, H5P_DEFAULT);
            if (group >= 0) H5Gclose(group);
        } else if (kind == 1) {
            write_link(p, file, place);
        } else {
            write_array(p, file, place);
        }
    }
    DC_CHECK(H5Fclose(file) >= 0);
}

static void begin(void) {
    files_begin();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    parents = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(parents, 1);
    in_memory = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(in_memory, 1 << 16, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!files_root[0]) begin();
    char in[256], out[256];
    snprintf(in, sizeof in, "%s", files_path("in.hdf5"));
    snprintf(out, sizeof out, "%s", files_path("out.npz"));
    unlink(out);
    plan p = {data, data + size};
    dc_hdf5_options options = {.obs = take(&p, 8) ? "" : "object,eye"};
    dc_hdf5_done done;
    write_file(&p, in);
    if (dc_hdf5_to_npz(in, out, &options, NULL, NULL, &done) != DC_OK) {
        DC_CHECK(access(out, F_OK) != 0);
        return 0;
    }
    dc_dataset made = {0};
    DC_CHECK(done.rows >= 2 && done.episodes >= 1 && access(out, F_OK) == 0);
    dc_status status = dc_dataset_load(&made, out);
    DC_CHECK(status != DC_OK || made.rows <= done.rows);
    dc_dataset_fini(&made);
    return 0;
}
