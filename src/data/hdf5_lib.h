// The HDF5 library, loaded when the first file is opened: only conversion needs it, and it would bring twenty
// other libraries into every start of the program. Its header is needed to build; a build without has
// dc_hdf5_load alone, which says how to get it.
#ifndef DC_HDF5_LIB_H
#define DC_HDF5_LIB_H

#include "base/status.h"

// Load it, once. Errors: DC_UNSUPPORTED, with what to install.
dc_status dc_hdf5_load(void);

#ifdef DC_HDF5
#include <hdf5.h>

// result, name, arguments; each is called as dc_h5.name
#define DC_HDF5_FUNCTIONS(F)                                                                       \
    F(herr_t, H5open, (void))                                                                      \
    F(herr_t, H5Eset_auto2, (hid_t, H5E_auto2_t, void *))                                          \
    F(herr_t, H5PLset_loading_state, (unsigned))                                                   \
    F(hid_t, H5Fopen, (const char *, unsigned, hid_t))                                             \
    F(herr_t, H5Fclose, (hid_t))                                                                   \
    F(hid_t, H5Oopen, (hid_t, const char *, hid_t))                                                \
    F(herr_t, H5Oclose, (hid_t))                                                                   \
    F(H5I_type_t, H5Iget_type, (hid_t))                                                            \
    F(htri_t, H5Lexists, (hid_t, const char *, hid_t))                                             \
    F(herr_t, H5Lget_info, (hid_t, const char *, H5L_info_t *, hid_t))                             \
    F(herr_t, H5Literate, (hid_t, H5_index_t, H5_iter_order_t, hsize_t *, H5L_iterate_t, void *))  \
    F(hid_t, H5Dopen2, (hid_t, const char *, hid_t))                                               \
    F(herr_t, H5Dclose, (hid_t))                                                                   \
    F(hid_t, H5Dget_space, (hid_t))                                                                \
    F(hid_t, H5Dget_type, (hid_t))                                                                 \
    F(hid_t, H5Dget_create_plist, (hid_t))                                                         \
    F(hsize_t, H5Dget_storage_size, (hid_t))                                                       \
    F(herr_t, H5Dread, (hid_t, hid_t, hid_t, hid_t, hid_t, void *))                                \
    F(hid_t, H5Screate_simple, (int, const hsize_t *, const hsize_t *))                            \
    F(int, H5Sget_simple_extent_ndims, (hid_t))                                                    \
    F(int, H5Sget_simple_extent_dims, (hid_t, hsize_t *, hsize_t *))                               \
    F(herr_t, H5Sselect_hyperslab,                                                                 \
      (hid_t, H5S_seloper_t, const hsize_t *, const hsize_t *, const hsize_t *, const hsize_t *))  \
    F(herr_t, H5Sclose, (hid_t))                                                                   \
    F(H5T_class_t, H5Tget_class, (hid_t))                                                          \
    F(size_t, H5Tget_size, (hid_t))                                                                \
    F(H5T_sign_t, H5Tget_sign, (hid_t))                                                            \
    F(herr_t, H5Tclose, (hid_t))                                                                   \
    F(hid_t, H5Pcreate, (hid_t))                                                                   \
    F(herr_t, H5Pclose, (hid_t))                                                                   \
    F(H5D_layout_t, H5Pget_layout, (hid_t))                                                        \
    F(int, H5Pget_chunk, (hid_t, int, hsize_t *))                                                  \
    F(int, H5Pget_external_count, (hid_t))                                                         \
    F(herr_t, H5Pset_chunk_cache, (hid_t, size_t, size_t, double))

typedef struct dc_hdf5_table {
#define FIELD(result, name, arguments) result(*name) arguments;
    DC_HDF5_FUNCTIONS(FIELD)
#undef FIELD
    hid_t float32, int64, uint8, access; // types in memory; the class of properties of reading
} dc_hdf5_table;

extern dc_hdf5_table dc_h5; // filled by dc_hdf5_load
#endif

#endif
