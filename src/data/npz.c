// The npz reader, see npz.h.
//
// A zip file is read from its end: the END record (or END64, for large files) says where the
// central directory lies, the directory lists the entries, each entry has a local header with its
// bytes after it. All of it is said twice, and files may come from anywhere, so opening a file
// checks everything once, against the size of the file and against each other: records lie where
// they should, local headers agree with the directory, entries do not overlap, names are not
// repeated. What is left to go wrong after that is the packed bytes themselves, and they carry a
// CRC.
//
// Memory: an entry is unpacked only after its npy header was unpacked alone and promised exactly
// the entry's size, which in turn cannot be more than deflate could have packed into its bytes. So
// a reader takes no more memory than the arrays that the file can truly hold.
//
// Speed: libdeflate unpacks whole buffers about twice as fast as zlib; zlib unpacks in chunks where
// a second buffer as large as the array would be too much. Values are converted while they are in
// cache.
#include "data/npz.h"

#include "data/zip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    DEFLATE_RATIO = 1032,       // 258 bytes from 2 bits: more is not possible
    ENTRIES_MAX = 65536,        // absurd beyond
    PEEK = 512,                 // most npy headers take 128 bytes
    CHUNK = 1 << 18,            // bytes unpacked at a time; a multiple of every value's size
    WHOLE_MAX = 256 * (1 << 20) // largest entry that gets a buffer of its own, unless told
};

static const char damaged[] = "the file is damaged or cut short: copy or make it again";

static dc_status bad_file(const dc_npz *npz, const char *what) {
    return dc_fail(DC_BAD_INPUT, damaged, "%s (%s)", what, npz->path);
}

static dc_status bad_entry(const dc_npz *npz, const dc_npz_entry *entry, const char *what) {
    return dc_fail(DC_BAD_INPUT, damaged, "%s (entry '%s' of %s)", what, entry->name, npz->path);
}

// ---- the directory ----

// Where the central directory is: bytes at ... at + size, count records. It ends where `end`
// begins.
typedef struct directory {
    uint64_t at, size, count, end;
    bool many_disks;
} directory;

// The END record is last; only a comment follows, whose length it tells.
static dc_status find_end(const dc_npz *npz, uint64_t *at) {
    static const char what[] = "not an npz file";
    if (npz->size < ZIP_END_SIZE) return bad_file(npz, what);
    uint64_t last = npz->size - ZIP_END_SIZE, first = last > 65535 ? last - 65535 : 0;
    for (uint64_t p = last + 1; p-- > first;)
        if (zip_get32(npz->bytes + p) == ZIP_END && zip_get16(npz->bytes + p + 20) == last - p)
            return *at = p, DC_OK;
    if (!memcmp(npz->bytes, "PK", 2)) return bad_file(npz, what);
    return dc_fail(DC_BAD_INPUT,
                   "numpy.savez and dcrl gen write such files, and dcrl data convert of HDF5",
                   "%s (%s)", what, npz->path);
}

// The 64-bit record stands before its locator, which stands before the END record.
static dc_status read_end64(const dc_npz *npz, uint64_t end, directory *dir) {
    static const char what[] = "the zip64 end record is malformed";
    if (end < ZIP_LOCATOR64_SIZE + ZIP_END64_SIZE) return bad_file(npz, what);
    const uint8_t *locator = npz->bytes + end - ZIP_LOCATOR64_SIZE;
    uint64_t at = zip_get64(locator + 8), last = end - ZIP_LOCATOR64_SIZE - ZIP_END64_SIZE;
    if (zip_get32(locator) != ZIP_LOCATOR64 || at > last) return bad_file(npz, what);
    const uint8_t *p = npz->bytes + at;
    if (zip_get32(p) != ZIP_END64 || zip_get64(p + 4) != last - at + ZIP_END64_SIZE - 12)
        return bad_file(npz, what);
    dir->many_disks = zip_get32(locator + 4) != 0 || zip_get32(locator + 16) > 1 ||
                      zip_get32(p + 16) != 0 || zip_get32(p + 20) != 0 ||
                      zip_get64(p + 24) != zip_get64(p + 32);
    dir->count = zip_get64(p + 32);
    dir->size = zip_get64(p + 40);
    dir->at = zip_get64(p + 48);
    dir->end = at;
    return DC_OK;
}

static dc_status find_directory(const dc_npz *npz, directory *dir) {
    uint64_t end = 0;
    DC_TRY(find_end(npz, &end));
    const uint8_t *p = npz->bytes + end;
    *dir = (directory){.count = zip_get16(p + 10), .size = zip_get32(p + 12), .end = end};
    dir->at = zip_get32(p + 16);
    if (dir->count == 0xffff || dir->size == 0xffffffff || dir->at == 0xffffffff)
        DC_TRY(read_end64(npz, end, dir));
    else
        dir->many_disks = zip_get16(p + 4) || zip_get16(p + 6) || zip_get16(p + 8) != dir->count;
    if (dir->many_disks)
        return dc_fail(DC_UNSUPPORTED, "save it as one file", "a zip file in several parts (%s)",
                       npz->path);
    if (dir->at > dir->end || dir->size != dir->end - dir->at)
        return bad_file(npz, "the central directory is not where the end record says");
    if (dir->count > ENTRIES_MAX || dir->count * ZIP_CENTRAL_SIZE > dir->size)
        return bad_file(npz, "the number of entries is impossible");
    return DC_OK;
}

// ---- entries ----

// Replace saturated 32-bit numbers by those of the zip64 extra field, which holds them in order.
static bool widen(const uint8_t *extra, size_t n, uint64_t *const *values, int count) {
    const uint8_t *field = NULL, *end = NULL;
    while (n >= 4) {
        size_t size = zip_get16(extra + 2);
        if (size > n - 4) return false;
        if (zip_get16(extra) == ZIP_EXTRA64) {
            if (field) return false;
            field = extra + 4;
            end = field + size;
        }
        extra += 4 + size;
        n -= 4 + size;
    }
    for (int i = 0; i < count; i++) {
        if (*values[i] != 0xffffffff) continue;
        if (!field || end - field < 8) return false;
        *values[i] = zip_get64(field);
        field += 8;
    }
    return true;
}

static dc_status take_name(dc_npz *npz, dc_npz_entry *entry, const uint8_t *name, size_t n) {
    if (n == 0 || memchr(name, 0, n)) return bad_file(npz, "an entry's name is malformed");
    entry->array = n > 4 && memcmp(name + n - 4, ".npy", 4) == 0;
    entry->name = dc_arena_text(&npz->arena, (const char *)name, entry->array ? n - 4 : n);
    return entry->name ? DC_OK : DC_NO_MEMORY;
}

// Only plain, stored or deflated entries of possible sizes.
static dc_status check_kind(const dc_npz *npz, dc_npz_entry *entry, unsigned flags,
                            unsigned method) {
    if (flags & (1u | 1u << 6 | 1u << 13))
        return dc_fail(DC_UNSUPPORTED, "save it without a password",
                       "an encrypted entry (entry '%s' of %s)", entry->name, npz->path);
    if (method != ZIP_STORED && method != ZIP_DEFLATE)
        return dc_fail(DC_UNSUPPORTED, "save it with numpy.savez or numpy.savez_compressed",
                       "compression method %u cannot be read (entry '%s' of %s)", method,
                       entry->name, npz->path);
    entry->deflated = method == ZIP_DEFLATE;
    if (!entry->deflated && entry->packed != entry->size)
        return bad_entry(npz, entry, "a stored entry of two sizes");
    if (entry->packed > npz->size || entry->size > entry->packed * DEFLATE_RATIO)
        return bad_entry(npz, entry, "an impossible size");
    return DC_OK;
}

// Does the local header say what the directory said? Where bit 3 is set, sizes and CRC follow the
// data, and may be zero here.
static bool local_agrees(const uint8_t *local, const uint8_t *central, const dc_npz_entry *entry) {
    size_t name = zip_get16(local + 26);
    uint64_t packed = zip_get32(local + 18), size = zip_get32(local + 22);
    uint64_t *values[] = {&size, &packed};
    if (!widen(local + ZIP_LOCAL_SIZE + name, zip_get16(local + 28), values, 2)) return false;
    if (zip_get16(local + 6) != zip_get16(central + 8)) return false;  // flags
    if (zip_get16(local + 8) != zip_get16(central + 10)) return false; // method
    if (name != zip_get16(central + 28)) return false;
    if (memcmp(local + ZIP_LOCAL_SIZE, central + ZIP_CENTRAL_SIZE, name) != 0) return false;
    uint32_t crc = zip_get32(local + 14);
    if (zip_get16(local + 6) & 8 && crc == 0 && packed == 0 && size == 0) return true;
    return crc == entry->crc && packed == entry->packed && size == entry->size;
}

// Find the packed bytes of an entry through its local header; `end` is where the directory begins.
static dc_status read_local(const dc_npz *npz, const uint8_t *central, uint64_t end,
                            dc_npz_entry *entry) {
    if (entry->local > end || end - entry->local < ZIP_LOCAL_SIZE)
        return bad_entry(npz, entry, "the entry lies outside of the file");
    const uint8_t *local = npz->bytes + entry->local;
    if (zip_get32(local) != ZIP_LOCAL) return bad_entry(npz, entry, "the local header is missing");
    uint64_t names = (uint64_t)zip_get16(local + 26) + zip_get16(local + 28);
    uint64_t room = end - entry->local - ZIP_LOCAL_SIZE;
    if (names > room || entry->packed > room - names)
        return bad_entry(npz, entry, "the entry is cut short");
    if (!local_agrees(local, central, entry))
        return bad_entry(npz, entry, "the local header does not agree with the directory");
    entry->offset = entry->local + ZIP_LOCAL_SIZE + names;
    return DC_OK;
}

// One record of the directory, of at most `room` bytes; its size goes to *used.
static dc_status read_entry(dc_npz *npz, const directory *dir, const uint8_t *p, uint64_t room,
                            dc_npz_entry *entry, uint64_t *used) {
    static const char what[] = "the central directory is malformed";
    if (room < ZIP_CENTRAL_SIZE || zip_get32(p) != ZIP_CENTRAL) return bad_file(npz, what);
    size_t name = zip_get16(p + 28), extra = zip_get16(p + 30);
    *used = (uint64_t)ZIP_CENTRAL_SIZE + name + extra + zip_get16(p + 32);
    if (*used > room) return bad_file(npz, what);
    DC_TRY(take_name(npz, entry, p + ZIP_CENTRAL_SIZE, name));
    entry->crc = zip_get32(p + 16);
    entry->packed = zip_get32(p + 20);
    entry->size = zip_get32(p + 24);
    entry->local = zip_get32(p + 42);
    uint64_t *values[] = {&entry->size, &entry->packed, &entry->local};
    if (!widen(p + ZIP_CENTRAL_SIZE + name, extra, values, 3))
        return bad_entry(npz, entry, "an extra field is malformed");
    if (zip_get16(p + 34) != 0) return bad_entry(npz, entry, "an entry on another disk");
    DC_TRY(check_kind(npz, entry, zip_get16(p + 8), zip_get16(p + 10)));
    return read_local(npz, p, dir->at, entry);
}

static int by_name(const void *a, const void *b) {
    const dc_npz_entry *x = *(dc_npz_entry *const *)a, *y = *(dc_npz_entry *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (int)x->array - (int)y->array;
}

static int by_place(const void *a, const void *b) {
    const dc_npz_entry *x = *(dc_npz_entry *const *)a, *y = *(dc_npz_entry *const *)b;
    return (x->local > y->local) - (x->local < y->local);
}

// No name twice, no byte in two entries.
static dc_status check_together(dc_npz *npz) {
    size_t n = npz->count;
    dc_npz_entry **sorted = dc_arena_take(&npz->arena, n * sizeof *sorted);
    if (!sorted) return DC_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &npz->entries[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            return bad_entry(npz, sorted[i], "two entries of one name");
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t i = 1; i < n; i++)
        if (sorted[i]->local < sorted[i - 1]->offset + sorted[i - 1]->packed)
            return bad_entry(npz, sorted[i], "two entries overlap");
    return DC_OK;
}

static dc_status read_directory(dc_npz *npz) {
    directory dir;
    DC_TRY(find_directory(npz, &dir));
    npz->count = (size_t)dir.count;
    npz->entries = dc_arena_take(&npz->arena, npz->count * sizeof *npz->entries);
    if (!npz->entries) return DC_NO_MEMORY;
    uint64_t at = dir.at, used = 0;
    for (size_t i = 0; i < npz->count; i++, at += used)
        DC_TRY(read_entry(npz, &dir, npz->bytes + at, dir.end - at, &npz->entries[i], &used));
    if (at != dir.end) return bad_file(npz, "the central directory has bytes left over");
    return check_together(npz);
}

dc_status dc_npz_open_memory(dc_npz *npz, const char *name, const void *bytes, size_t size) {
    *npz = (dc_npz){.path = name, .bytes = bytes, .size = size, .whole_max = WHOLE_MAX};
    dc_arena_init(&npz->arena, 0);
    dc_status status = read_directory(npz);
    if (status != DC_OK) dc_npz_close(npz);
    return status;
}

dc_status dc_npz_open(dc_npz *npz, const char *path) {
    *npz = (dc_npz){.path = path};
    dc_map map = {0};
    DC_TRY(dc_map_open(&map, path));
    dc_status status = dc_npz_open_memory(npz, path, map.bytes, map.size);
    if (status == DC_OK)
        npz->map = map;
    else
        dc_map_close(&map);
    return status;
}

void dc_npz_close(dc_npz *npz) {
    dc_arena_fini(&npz->arena);
    dc_map_close(&npz->map);
    *npz = (dc_npz){0};
}

const dc_npz_entry *dc_npz_find(const dc_npz *npz, const char *name) {
    for (size_t i = 0; i < npz->count; i++)
        if (npz->entries[i].array && strcmp(npz->entries[i].name, name) == 0)
            return &npz->entries[i];
    return NULL;
}

// ---- unpacking ----

// Unpacks an entry in chunks, stored or deflated, and sums up its CRC.
typedef struct unpacker {
    const dc_npz *npz;
    const dc_npz_entry *entry;
    const uint8_t *next; // packed bytes not yet used
    uint64_t left;
    uint32_t crc;
    z_stream z;
} unpacker;

static dc_status unpack_init(unpacker *u, const dc_npz *npz, const dc_npz_entry *entry) {
    *u = (unpacker){.npz = npz, .entry = entry};
    u->next = npz->bytes + entry->offset;
    u->left = entry->packed;
    if (entry->deflated && inflateInit2(&u->z, -15) != Z_OK)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory to unpack %s", npz->path);
    return DC_OK;
}

static void unpack_fini(unpacker *u) {
    if (u->entry->deflated) inflateEnd(&u->z);
}

// One call of inflate; zlib counts in 32 bits. False when the bytes are not deflate's.
static bool inflate_some(unpacker *u, uint8_t *out, size_t n, size_t *got, bool *ended) {
    size_t in = u->left < 1u << 30 ? (size_t)u->left : 1u << 30;
    u->z.next_in = (z_const Bytef *)u->next;
    u->z.avail_in = (uInt)in;
    u->z.next_out = out;
    u->z.avail_out = (uInt)n;
    int code = inflate(&u->z, Z_NO_FLUSH);
    size_t used = in - u->z.avail_in;
    u->next += used;
    u->left -= used;
    *got = n - u->z.avail_out;
    *ended = code == Z_STREAM_END;
    return code == Z_STREAM_END || (code == Z_OK && (used || *got));
}

// Exactly the next n bytes (n < 2^32).
static dc_status unpack(unpacker *u, uint8_t *out, size_t n) {
    if (!u->entry->deflated) {
        if (n > u->left) return bad_entry(u->npz, u->entry, "the entry is cut short");
        memcpy(out, u->next, n);
        u->next += n;
        u->left -= n;
    }
    bool ended = false;
    for (size_t done = 0, got; u->entry->deflated && done < n; done += got)
        if (ended || !inflate_some(u, out + done, n - done, &got, &ended))
            return bad_entry(u->npz, u->entry, "the packed bytes are malformed");
    u->crc = libdeflate_crc32(u->crc, out, n);
    return DC_OK;
}

static dc_status check_crc(const dc_npz *npz, const dc_npz_entry *entry, uint32_t crc) {
    if (crc == entry->crc || npz->skip_crc) return DC_OK;
    return bad_entry(npz, entry, "the checksum does not match");
}

// All of the entry was read: does the packed data end here, and is the CRC right?
static dc_status unpack_end(unpacker *u) {
    uint8_t beyond;
    size_t got = 0;
    bool ended = true;
    if (u->entry->deflated && !inflate_some(u, &beyond, 1, &got, &ended)) ended = false;
    if (!ended || got || u->left)
        return bad_entry(u->npz, u->entry, "the packed bytes do not end where they should");
    return check_crc(u->npz, u->entry, u->crc);
}

// A whole deflated entry at once: out has entry->size bytes.
static dc_status unpack_whole(const dc_npz *npz, const dc_npz_entry *entry, uint8_t *out) {
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    if (!d) return dc_fail(DC_NO_MEMORY, NULL, "no memory to unpack %s", npz->path);
    size_t used = 0, got = 0;
    enum libdeflate_result result = libdeflate_deflate_decompress_ex(
        d, npz->bytes + entry->offset, entry->packed, out, entry->size, &used, &got);
    libdeflate_free_decompressor(d);
    if (result != LIBDEFLATE_SUCCESS || used != entry->packed || got != entry->size)
        return bad_entry(npz, entry, "the packed bytes are malformed");
    return check_crc(npz, entry, libdeflate_crc32(0, out, entry->size));
}

// ---- arrays ----

// The first n bytes of an entry (n <= entry->size), not checked by CRC yet.
static dc_status peek(const dc_npz *npz, const dc_npz_entry *entry, uint8_t *out, size_t n) {
    unpacker u;
    DC_TRY(unpack_init(&u, npz, entry));
    dc_status status = unpack(&u, out, n);
    unpack_fini(&u);
    return status;
}

static dc_status parse_head(const dc_npz *npz, const dc_npz_entry *entry, dc_npy *npy) {
    uint8_t first[PEEK];
    size_t n = entry->size < PEEK ? (size_t)entry->size : PEEK, header;
    DC_TRY(peek(npz, entry, first, n));
    DC_TRY(dc_npy_header_size(first, n, &header));
    if (header <= n) return dc_npy_parse(npy, first, n);
    if (header > entry->size) return bad_entry(npz, entry, "the npy header is cut short");
    uint8_t *bytes = malloc(header);
    if (!bytes) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %zu bytes", header);
    dc_status status = peek(npz, entry, bytes, header);
    if (status == DC_OK) status = dc_npy_parse(npy, bytes, header);
    free(bytes);
    return status;
}

dc_status dc_npz_head(const dc_npz *npz, const dc_npz_entry *entry, dc_npy *npy) {
    if (!entry->array)
        return dc_fail(DC_UNSUPPORTED, "arrays end in .npy", "not an array (entry '%s' of %s)",
                       entry->name, npz->path);
    dc_status status = parse_head(npz, entry, npy);
    if (status != DC_OK)
        return dc_fail(status, NULL, "array '%s' of %s: %s", entry->name, npz->path, dc_error());
    if (npy->bytes != entry->size - npy->header)
        return bad_entry(npz, entry, "the array's shape does not match its size");
    return DC_OK;
}

// Where values go: one of these.
typedef struct target {
    uint8_t *bytes; // as they are
    float *floats;
    double *doubles;
} target;

// Values of the type that they have in the file need no conversion: where they go, else NULL.
static uint8_t *as_they_are(const target *t, dc_dtype type) {
    return type == DC_F4 && t->floats ? (uint8_t *)t->floats : t->bytes;
}

static void convert(target *t, dc_dtype type, const uint8_t *bytes, size_t n) {
    if (t->floats) {
        dc_npy_floats(type, bytes, n, t->floats);
        t->floats += n;
    } else {
        dc_npy_doubles(type, bytes, n, t->doubles);
        t->doubles += n;
    }
}

struct dc_npz_reader {
    unpacker u;
    dc_dtype type;
    uint64_t left; // values to come
    uint8_t buffer[CHUNK];
};

// Unpack the npy header, which is known already.
static dc_status skip_header(dc_npz_reader *s, size_t n) {
    for (size_t part; n; n -= part) {
        part = n < CHUNK ? n : CHUNK;
        DC_TRY(unpack(&s->u, s->buffer, part));
    }
    return s->left ? DC_OK : unpack_end(&s->u);
}

dc_status dc_npz_reader_open(dc_npz_reader **reader, const dc_npz *npz, const dc_npz_entry *entry,
                             const dc_npy *npy) {
    *reader = NULL;
    dc_npz_reader *s = malloc(sizeof *s);
    if (!s) return dc_fail(DC_NO_MEMORY, NULL, "no memory to unpack %s", npz->path);
    s->type = npy->type;
    s->left = npy->count;
    dc_status status = unpack_init(&s->u, npz, entry);
    if (status != DC_OK) {
        free(s);
        return status;
    }
    *reader = s;
    return skip_header(s, npy->header);
}

void dc_npz_reader_close(dc_npz_reader *s) {
    if (!s) return;
    unpack_fini(&s->u);
    free(s);
}

// The next n values; when they are the last, the end is checked too.
static dc_status read_values(dc_npz_reader *s, uint64_t n, target t) {
    size_t size = dc_dtype_size(s->type);
    uint8_t *straight = as_they_are(&t, s->type);
    DC_CHECK(n <= s->left);
    s->left -= n;
    for (uint64_t part; n; n -= part) {
        part = n < CHUNK / size ? n : CHUNK / size;
        DC_TRY(unpack(&s->u, straight ? straight : s->buffer, part * size));
        if (straight)
            straight += part * size;
        else
            convert(&t, s->type, s->buffer, part);
    }
    return s->left ? DC_OK : unpack_end(&s->u);
}

dc_status dc_npz_reader_floats(dc_npz_reader *reader, uint64_t n, float *out) {
    return n ? read_values(reader, n, (target){.floats = out}) : DC_OK;
}

dc_status dc_npz_reader_values(dc_npz_reader *reader, uint64_t n, void *out) {
    return n ? read_values(reader, n, (target){.bytes = out}) : DC_OK;
}

static dc_status convert_whole(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                               target t) {
    uint8_t *buffer = malloc(entry->size);
    if (!buffer)
        return dc_fail(DC_NO_MEMORY, NULL, "no memory for %llu bytes",
                       (unsigned long long)entry->size);
    dc_status status = unpack_whole(npz, entry, buffer);
    if (status == DC_OK) convert(&t, npy->type, buffer + npy->header, npy->count);
    free(buffer);
    return status;
}

static dc_status read_as(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                         target t) {
    if (entry->deflated && entry->size <= npz->whole_max) return convert_whole(npz, entry, npy, t);
    dc_npz_reader *s;
    dc_status status = dc_npz_reader_open(&s, npz, entry, npy);
    if (status == DC_OK && npy->count) status = read_values(s, npy->count, t);
    dc_npz_reader_close(s);
    return status;
}

dc_status dc_npz_floats(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                        float *out) {
    return read_as(npz, entry, npy, (target){.floats = out});
}

dc_status dc_npz_doubles(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                         double *out) {
    return read_as(npz, entry, npy, (target){.doubles = out});
}

dc_status dc_npz_room(const dc_npy *npy, dc_arena *arena, void **values) {
    size_t before = (npy->header + 63) / 64 * 64;
    uint8_t *memory = dc_arena_take(arena, before + npy->bytes);
    if (!memory) return DC_NO_MEMORY;
    *values = memory + before;
    return DC_OK;
}

dc_status dc_npz_fill(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                      void *values) {
    uint8_t *start = (uint8_t *)values - npy->header;
    if (entry->deflated) return unpack_whole(npz, entry, start);
    unpacker u;
    DC_TRY(unpack_init(&u, npz, entry));
    for (uint64_t left = entry->size, n; left; left -= n, start += n) {
        n = left < CHUNK ? left : CHUNK;
        DC_TRY(unpack(&u, start, n));
    }
    return unpack_end(&u);
}

dc_status dc_npz_values(const dc_npz *npz, const dc_npz_entry *entry, const dc_npy *npy,
                        dc_arena *arena, void **values) {
    DC_TRY(dc_npz_room(npy, arena, values));
    return dc_npz_fill(npz, entry, npy, *values);
}
