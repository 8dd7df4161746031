// The C half of test_npz_py.py.
//
//   tool_npz read FILE FOLDER       each array I: a line "name type d0 d1 ...", and its values as
//                                   FOLDER/I.raw, I.f4 and I.f8 (own type, float, double)
//   tool_npz write FILE LEVEL SPEC  a line of SPEC an array: "name type chunk raw-file d0 d1 ...";
//                                   arrays are appended in turns of `chunk` rows, or put whole when chunk is 0
#include "data/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 32 };

static dc_status dump(const char *folder, size_t i, const char *ending, const void *values,
                      size_t n) {
    char path[512];
    snprintf(path, sizeof path, "%s/%zu.%s", folder, i, ending);
    return dc_file_write(path, values, n);
}

static dc_status read_array(const dc_npz *npz, size_t i, const char *folder) {
    const dc_npz_entry *entry = &npz->entries[i];
    dc_npy npy;
    DC_TRY(dc_npz_head(npz, entry, &npy));
    printf("%s %s", entry->name, dc_dtype_name(npy.type));
    for (int d = 0; d < npy.ndim; d++)
        printf(" %" PRId64, npy.shape[d]);
    puts("");
    dc_arena arena;
    void *values = NULL;
    dc_arena_init(&arena, 0);
    float *floats = dc_arena_take(&arena, npy.count * sizeof *floats);
    double *doubles = dc_arena_take(&arena, npy.count * sizeof *doubles);
    dc_status status = floats && doubles ? DC_OK : DC_NO_MEMORY;
    if (status == DC_OK) status = dc_npz_values(npz, entry, &npy, &arena, &values);
    if (status == DC_OK) status = dc_npz_floats(npz, entry, &npy, floats);
    if (status == DC_OK) status = dc_npz_doubles(npz, entry, &npy, doubles);
    if (status == DC_OK) status = dump(folder, i, "raw", values, npy.bytes);
    if (status == DC_OK) status = dump(folder, i, "f4", floats, npy.count * sizeof *floats);
    if (status == DC_OK) status = dump(folder, i, "f8", doubles, npy.count * sizeof *doubles);
    dc_arena_fini(&arena);
    return status;
}

static dc_status read_file(const char *path, const char *folder) {
    dc_npz npz;
    DC_TRY(dc_npz_open(&npz, path));
    dc_status status = DC_OK;
    for (size_t i = 0; status == DC_OK && i < npz.count; i++)
        status = read_array(&npz, i, folder);
    dc_npz_close(&npz);
    return status;
}

typedef struct source {
    int array;
    int64_t chunk, rows, done;
    uint64_t row_bytes;
    char *bytes;
} source;

static dc_dtype type_of(const char *name) {
    int t = 0;
    while (t < DC_DTYPES && strcmp(dc_dtype_name((dc_dtype)t), name) != 0)
        t++;
    DC_CHECK(t < DC_DTYPES);
    return (dc_dtype)t;
}

static dc_status declare(dc_npz_writer *w, char *line, source *s) {
    char *name = strtok(line, " \n"), *type = strtok(NULL, " \n"), *chunk = strtok(NULL, " \n");
    char *path = strtok(NULL, " \n");
    int64_t shape[DC_NPY_DIMS] = {0};
    int ndim = 0;
    for (char *d; (d = strtok(NULL, " \n"));)
        shape[ndim++] = strtoll(d, NULL, 10);
    *s = (source){.chunk = strtoll(chunk, NULL, 10), .rows = shape[0]};
    size_t n;
    DC_TRY(dc_file_read(path, (size_t)1 << 32, &s->bytes, &n));
    if (s->chunk == 0) {
        s->done = s->rows;
        return dc_npz_writer_put(w, name, type_of(type), ndim, shape, s->bytes);
    }
    s->row_bytes = s->rows ? n / (uint64_t)s->rows : 0;
    return dc_npz_writer_add(w, name, type_of(type), ndim - 1, shape + 1, &s->array);
}

static dc_status write_turns(dc_npz_writer *w, source *sources, int count) {
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < count; i++) {
            source *s = &sources[i];
            int64_t n = s->rows - s->done < s->chunk ? s->rows - s->done : s->chunk;
            if (s->chunk == 0 || n == 0) continue;
            const char *rows = s->bytes + (uint64_t)s->done * s->row_bytes;
            DC_TRY(dc_npz_writer_append(w, s->array, rows, n));
            s->done += n;
            more = true;
        }
    }
    return dc_npz_writer_save(w);
}

static dc_status write_file(const char *path, int level, const char *spec) {
    FILE *lines = fopen(spec, "r");
    DC_CHECK(lines);
    dc_npz_writer *w;
    source sources[ARRAYS];
    int count = 0;
    char line[1024];
    dc_status status = dc_npz_writer_new(&w, path, level);
    while (status == DC_OK && count < ARRAYS && fgets(line, sizeof line, lines))
        status = declare(w, line, &sources[count++]);
    if (status == DC_OK) status = write_turns(w, sources, count);
    for (int i = 0; i < count; i++)
        free(sources[i].bytes);
    dc_npz_writer_free(w);
    fclose(lines);
    return status;
}

int main(int argc, char **argv) {
    dc_status status = DC_USAGE;
    if (argc == 4 && !strcmp(argv[1], "read")) status = read_file(argv[2], argv[3]);
    if (argc == 5 && !strcmp(argv[1], "write"))
        status = write_file(argv[2], atoi(argv[3]), argv[4]);
    if (status != DC_OK) fprintf(stderr, "tool_npz: %s\n", dc_error());
    return status == DC_OK ? 0 : 1;
}
