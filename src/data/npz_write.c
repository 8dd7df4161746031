// The npz writer, see npz.h.
//
// A generator makes rows of all its arrays at the same time, but a zip file holds one entry after
// the other, each with its size in front. So every array is packed into a spool of its own, a
// nameless file beside the target, and _save puts the spools together: by then sizes and CRCs are
// known and nothing has to be patched. Memory stays at one small buffer an array, however many rows
// come.
//
// The npy header is known last, too (it holds the number of rows), and stands first. In a deflated
// entry it goes in front of the spool as a deflate block of the stored kind, which ends on a whole
// byte, so packed bytes can follow it as they are; the CRC of both is combined.
//
// The file is the same for the same rows: no clock, no names of machines. All records use 64-bit
// sizes, so there is one way for files of all sizes. Values of stored arrays start at multiples of
// 64 bytes, so that other programs can map them.
#define _GNU_SOURCE // O_TMPFILE
#include "data/npz.h"

#include "data/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    BUFFER = 1 << 18,
    ALIGN = 64,
    BLOCK_HEAD = 5,    // of a stored deflate block
    DOS_DATE = 0x0021, // 1 January 1980, the first day that zip knows
    VERSION = 45,      // the first version with 64-bit sizes
    LOCAL_EXTRA = 20,  // bytes of the zip64 field in a local header
    CENTRAL_EXTRA = 28
};

typedef struct spool {
    char name[DC_NPZ_WRITE_NAME + 5]; // with ".npy"
    dc_npy npy;
    bool grows;         // the first dimension counts rows that are appended
    uint64_t row_bytes; // of one row, or of the whole array if it does not grow
    int fd;
    uint8_t *buffer; // (BUFFER) packed bytes that wait to be written
    size_t pending;
    z_stream z;
    bool deflating;            // z is alive
    uint32_t crc;              // of the values; from _save on, of header and values
    uint64_t packed, unpacked; // bytes in the spool and of values; from _save on, of the entry
    uint64_t local;            // offset of the local header
} spool;

struct dc_npz_writer {
    char *path;
    int level;
    dc_save save;
    dc_status status; // first failure; later calls return it
    int count;
    spool *spools[DC_NPZ_WRITE_ARRAYS];
};

// ---- spools ----

static dc_status no_memory(void) {
    return dc_fail(DC_NO_MEMORY, NULL, "no memory to write an array");
}

// Makes the name the folder's own for a moment.
static int open_in_folder(char *path) {
    char *slash = strrchr(path, '/'), after = slash ? slash[1] : 0;
    if (!slash) return open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    slash[1] = 0;
    int fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    slash[1] = after;
    return fd;
}

// A file without a name in the target's folder (its disk has to have the room anyway). File systems that know no such
// files give it one, which is removed at once; a kill in between leaves it.
static dc_status open_nameless(const char *path, int *fd) {
    size_t n = strlen(path);
    char *name = malloc(n + 14);
    if (!name) return no_memory();
    memcpy(name, path, n);
    memcpy(name + n, ".spool-XXXXXX", 14);
    *fd = open_in_folder(name);
    if (*fd >= 0) return free(name), DC_OK;
    *fd = mkstemp(name);
    dc_status status = DC_OK;
    if (*fd < 0)
        status = dc_fail(DC_IO, "check that its folder exists and may be written", "%s (%s)",
                         strerror(errno), path);
    else
        unlink(name);
    free(name);
    return status;
}

static dc_status flush(dc_npz_writer *w, spool *s) {
    for (size_t done = 0; done < s->pending;) {
        ssize_t n = dc_file_system.write(s->fd, s->buffer + done, s->pending - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return dc_fail(DC_IO, "free some room on its disk", "%s (%s)",
                           n < 0 ? strerror(errno) : "nothing was written", w->path);
        done += (size_t)n;
    }
    s->packed += s->pending;
    s->pending = 0;
    return DC_OK;
}

static dc_status store(dc_npz_writer *w, spool *s, const uint8_t *bytes, size_t n) {
    while (n) {
        size_t room = BUFFER - s->pending, part = n < room ? n : room;
        memcpy(s->buffer + s->pending, bytes, part);
        s->pending += part;
        bytes += part;
        n -= part;
        if (s->pending == BUFFER) DC_TRY(flush(w, s));
    }
    return DC_OK;
}

// Deflate n bytes (n < 2^32), or with Z_FINISH all that is still inside.
static dc_status squeeze(dc_npz_writer *w, spool *s, const uint8_t *bytes, size_t n, int mode) {
    s->z.next_in = (z_const Bytef *)bytes;
    s->z.avail_in = (uInt)n;
    int code;
    do {
        s->z.next_out = s->buffer + s->pending;
        s->z.avail_out = (uInt)(BUFFER - s->pending);
        code = deflate(&s->z, mode);
        DC_CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR);
        s->pending = BUFFER - s->z.avail_out;
        if (s->pending == BUFFER) DC_TRY(flush(w, s));
    } while (s->z.avail_in || (mode == Z_FINISH && code != Z_STREAM_END));
    return DC_OK;
}

static void spool_free(spool *s) {
    if (!s) return;
    if (s->deflating) deflateEnd(&s->z);
    if (s->fd >= 0) close(s->fd);
    free(s->buffer);
    free(s);
}

static dc_status spool_open(dc_npz_writer *w, spool *s) {
    s->buffer = malloc(BUFFER);
    if (!s->buffer) return no_memory();
    DC_TRY(open_nameless(w->path, &s->fd));
    if (w->level == 0) return DC_OK;
    if (deflateInit2(&s->z, w->level, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return no_memory();
    s->deflating = true;
    return DC_OK;
}

static dc_status spool_add(dc_npz_writer *w, const char *name, const dc_npy *npy, spool **out) {
    DC_CHECK(w->count < DC_NPZ_WRITE_ARRAYS && name[0] && strlen(name) <= DC_NPZ_WRITE_NAME);
    spool *s = calloc(1, sizeof *s);
    if (!s) return no_memory();
    s->fd = -1;
    s->npy = *npy;
    snprintf(s->name, sizeof s->name, "%s.npy", name);
    for (int i = 0; i < w->count; i++)
        DC_CHECK(strcmp(w->spools[i]->name, s->name) != 0);
    w->spools[w->count++] = s;
    *out = s;
    return spool_open(w, s);
}

static dc_status spool_write(dc_npz_writer *w, spool *s, const uint8_t *bytes, uint64_t n) {
    if (n == 0) return DC_OK; // bytes may be NULL, which libdeflate takes for a new start
    s->crc = libdeflate_crc32(s->crc, bytes, n);
    s->unpacked += n;
    if (!s->deflating) return store(w, s, bytes, n);
    for (uint64_t part; n; n -= part, bytes += part) {
        part = n < 1u << 30 ? n : 1u << 30;
        DC_TRY(squeeze(w, s, bytes, part, Z_NO_FLUSH));
    }
    return DC_OK;
}

// ---- arrays ----

dc_status dc_npz_writer_new(dc_npz_writer **writer, const char *path, int level) {
    *writer = NULL;
    DC_CHECK(level >= 0 && level <= 9);
    dc_npz_writer *w = calloc(1, sizeof *w);
    if (!w) return no_memory();
    w->level = level;
    w->path = malloc(strlen(path) + 1);
    dc_status status = w->path ? dc_save_open(&w->save, path) : no_memory();
    if (status != DC_OK) {
        free(w->path);
        free(w);
        return status;
    }
    memcpy(w->path, path, strlen(path) + 1);
    *writer = w;
    return DC_OK;
}

dc_status dc_npz_writer_add(dc_npz_writer *w, const char *name, dc_dtype type, int row_ndim,
                            const int64_t *row_shape, int *array) {
    DC_TRY(w->status);
    DC_CHECK(row_ndim >= 0 && row_ndim < DC_NPY_DIMS);
    int64_t shape[DC_NPY_DIMS] = {1};
    for (int d = 0; d < row_ndim; d++)
        shape[d + 1] = row_shape[d];
    dc_npy npy;
    spool *s;
    *array = w->count;
    w->status = dc_npy_make(&npy, type, row_ndim + 1, shape);
    if (w->status == DC_OK) w->status = spool_add(w, name, &npy, &s);
    DC_TRY(w->status);
    s->grows = true;
    s->row_bytes = npy.bytes;
    s->npy.shape[0] = 0;
    return DC_OK;
}

dc_status dc_npz_writer_append(dc_npz_writer *w, int array, const void *rows, int64_t count) {
    DC_TRY(w->status);
    DC_CHECK(array >= 0 && array < w->count && count >= 0);
    spool *s = w->spools[array];
    DC_CHECK(s->grows);
    s->npy.shape[0] += count;
    return w->status = spool_write(w, s, rows, (uint64_t)count * s->row_bytes);
}

dc_status dc_npz_writer_put(dc_npz_writer *w, const char *name, dc_dtype type, int ndim,
                            const int64_t *shape, const void *values) {
    DC_TRY(w->status);
    dc_npy npy;
    spool *s;
    w->status = dc_npy_make(&npy, type, ndim, shape);
    if (w->status == DC_OK) w->status = spool_add(w, name, &npy, &s);
    if (w->status == DC_OK) w->status = spool_write(w, s, values, npy.bytes);
    return w->status;
}

// ---- putting the file together ----

// What local header and directory say alike: version, flags, method, time, date, CRC, sizes (in the
// extra field), name length, extra length.
static uint8_t *put_common(uint8_t *p, const spool *s, size_t extra) {
    p = zip_put(p, 2, VERSION);
    p = zip_put(p, 2, 0);
    p = zip_put(p, 2, s->deflating ? ZIP_DEFLATE : ZIP_STORED);
    p = zip_put(p, 2, 0);
    p = zip_put(p, 2, DOS_DATE);
    p = zip_put(p, 4, s->crc);
    p = zip_put(p, 8, UINT64_MAX); // both 32-bit sizes
    p = zip_put(p, 2, strlen(s->name));
    return zip_put(p, 2, extra);
}

static uint8_t *put_text(uint8_t *p, const char *text) {
    size_t n = strlen(text);
    memcpy(p, text, n);
    return p + n;
}

// The local header, padded so that what follows it starts at a multiple of ALIGN.
static dc_status write_local(dc_npz_writer *w, spool *s) {
    uint8_t head[ZIP_LOCAL_SIZE + sizeof s->name + LOCAL_EXTRA + 6 + ALIGN], *p = head;
    s->local = w->save.offset;
    uint64_t bare = s->local + ZIP_LOCAL_SIZE + strlen(s->name) + LOCAL_EXTRA + 6;
    size_t pad = (size_t)((ALIGN - bare % ALIGN) % ALIGN);
    p = zip_put(p, 4, ZIP_LOCAL);
    p = put_common(p, s, LOCAL_EXTRA + 6 + pad);
    p = put_text(p, s->name);
    p = zip_put(p, 2, ZIP_EXTRA64);
    p = zip_put(p, 2, LOCAL_EXTRA - 4);
    p = zip_put(p, 8, s->unpacked);
    p = zip_put(p, 8, s->packed);
    p = zip_put(p, 2, ZIP_EXTRA_PAD);
    p = zip_put(p, 2, 2 + pad);
    p = zip_put(p, 2, ALIGN);
    memset(p, 0, pad);
    return dc_save_write(&w->save, head, (size_t)(p - head) + pad);
}

static dc_status write_central(dc_npz_writer *w, const spool *s) {
    uint8_t head[ZIP_CENTRAL_SIZE + sizeof s->name + CENTRAL_EXTRA], *p = head;
    p = zip_put(p, 4, ZIP_CENTRAL);
    p = zip_put(p, 2, 3 << 8 | VERSION); // made on Unix
    p = put_common(p, s, CENTRAL_EXTRA);
    p = zip_put(p, 6, 0);                       // comment, disk, internal attributes
    p = zip_put(p, 4, (uint64_t)0100644 << 16); // a plain file, rw-r--r--
    p = zip_put(p, 4, UINT32_MAX);              // offset: in the extra field
    p = put_text(p, s->name);
    p = zip_put(p, 2, ZIP_EXTRA64);
    p = zip_put(p, 2, CENTRAL_EXTRA - 4);
    p = zip_put(p, 8, s->unpacked);
    p = zip_put(p, 8, s->packed);
    p = zip_put(p, 8, s->local);
    return dc_save_write(&w->save, head, (size_t)(p - head));
}

static dc_status write_end(dc_npz_writer *w, uint64_t start) {
    uint8_t end[ZIP_END64_SIZE + ZIP_LOCATOR64_SIZE + ZIP_END_SIZE], *p = end;
    uint64_t at = w->save.offset;
    p = zip_put(p, 4, ZIP_END64);
    p = zip_put(p, 8, ZIP_END64_SIZE - 12);
    p = zip_put(p, 2, 3 << 8 | VERSION);
    p = zip_put(p, 2, VERSION);
    p = zip_put(p, 8, 0); // disks
    p = zip_put(p, 8, (uint64_t)w->count);
    p = zip_put(p, 8, (uint64_t)w->count);
    p = zip_put(p, 8, at - start);
    p = zip_put(p, 8, start);
    p = zip_put(p, 4, ZIP_LOCATOR64);
    p = zip_put(p, 4, 0);
    p = zip_put(p, 8, at);
    p = zip_put(p, 4, 1);
    p = zip_put(p, 4, ZIP_END);
    p = zip_put(p, 4, 0);          // disks
    p = zip_put(p, 4, UINT32_MAX); // counts
    p = zip_put(p, 8, UINT64_MAX); // size and offset
    p = zip_put(p, 2, 0);
    DC_CHECK(p == end + sizeof end);
    return dc_save_write(&w->save, end, sizeof end);
}

static dc_status copy_spool(dc_npz_writer *w, spool *s, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        uint64_t want = size - done < BUFFER ? size - done : BUFFER;
        ssize_t n = pread(s->fd, s->buffer, want, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return dc_fail(DC_IO, NULL, "what was written cannot be read back (%s)", w->path);
        DC_TRY(dc_save_write(&w->save, s->buffer, (size_t)n));
        done += (uint64_t)n;
    }
    return DC_OK;
}

// One entry: local header, npy header, values.
static dc_status write_entry(dc_npz_writer *w, spool *s) {
    if (s->deflating) DC_TRY(squeeze(w, s, NULL, 0, Z_FINISH));
    DC_TRY(flush(w, s));
    uint8_t head[BLOCK_HEAD + DC_NPY_WRITE_MAX], *text = head + BLOCK_HEAD;
    dc_npy_write(&s->npy, text);
    size_t n = s->npy.header, block = s->deflating ? BLOCK_HEAD : 0;
    uint8_t *p = zip_put(head, 1, 0); // not the last block, stored
    p = zip_put(p, 2, n);
    zip_put(p, 2, ~(uint64_t)n);
    uint64_t spooled = s->packed;
    s->crc = (uint32_t)crc32_combine(libdeflate_crc32(0, text, n), s->crc, (z_off_t)s->unpacked);
    s->packed += block + n;
    s->unpacked += n;
    DC_TRY(write_local(w, s));
    DC_TRY(dc_save_write(&w->save, text - block, block + n));
    return copy_spool(w, s, spooled);
}

static dc_status write_all(dc_npz_writer *w) {
    for (int i = 0; i < w->count; i++)
        DC_TRY(write_entry(w, w->spools[i]));
    uint64_t start = w->save.offset;
    for (int i = 0; i < w->count; i++)
        DC_TRY(write_central(w, w->spools[i]));
    DC_TRY(write_end(w, start));
    return dc_save_commit(&w->save);
}

dc_status dc_npz_writer_save(dc_npz_writer *w) {
    DC_TRY(w->status);
    return w->status = write_all(w);
}

void dc_npz_writer_free(dc_npz_writer *w) {
    if (!w) return;
    dc_save_abort(&w->save);
    for (int i = 0; i < w->count; i++)
        spool_free(w->spools[i]);
    free(w->path);
    free(w);
}
