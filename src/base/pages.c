// Pages, see pages.h. Advice to the system (madvise) is advice: it may be refused, on a kernel
// without huge pages for instance, and then everything works as before, only slower; so its result
// is not looked at.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS, madvise
#include "base/pages.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t HUGE_MIN = (size_t)4 << 20; // two huge pages on most machines

void *dc_pages_take(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_MIN) (void)madvise(p, size, MADV_HUGEPAGE);
#endif
    return p;
}

void dc_pages_free(void *memory, size_t size) {
    if (memory) munmap(memory, size);
}

size_t dc_page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

size_t dc_machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (size_t)pages * dc_page_size() : 0;
}

// ---- ranges ----

static void *address(const dc_range *range, size_t offset) {
    return (void *)(uintptr_t)(range->bytes + offset);
}

dc_status dc_range_reserve(dc_range *range, size_t size) {
    *range = (dc_range){0};
    void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return dc_fail(DC_NO_MEMORY, "raise the limit on addresses (ulimit -v)",
                       "no room for %zu bytes of addresses", size);
    *range = (dc_range){p, size};
    return DC_OK;
}

void dc_range_free(dc_range *range) {
    if (range->bytes) munmap(address(range, 0), range->size);
    *range = (dc_range){0};
}

// Errors of one file, all in one place.
static dc_status fill(const dc_range *range, size_t offset, int fd, const char *path, size_t size) {
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return dc_fail(DC_IO, "convert the data again", "not a regular file (%s)", path);
    if ((uintmax_t)info.st_size != size)
        return dc_fail(DC_BAD_INPUT, "the file is cut or of another store: convert the data again",
                       "%lld bytes where %zu belong (%s)", (long long)info.st_size, size, path);
    if (mmap(address(range, offset), size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
        return dc_fail(DC_IO, "raise vm.max_map_count, or convert with more rows a shard",
                       "cannot map: %s (%s)", strerror(errno), path);
    return DC_OK;
}

dc_status dc_range_fill(dc_range *range, size_t offset, const char *path, size_t size) {
    DC_CHECK(size > 0 && offset <= range->size && size <= range->size - offset);
    int fd;
    bool exists;
    DC_TRY(dc_file_find(path, &exists));
    if (!exists)
        return dc_fail(DC_IO, "a part of the store is missing: convert the data again",
                       "cannot open: %s (%s)", strerror(ENOENT), path);
    DC_TRY(dc_open_inside(path, O_RDONLY, &fd));
    dc_status status = fill(range, offset, fd, path, size);
    close(fd);
    return status;
}

void dc_range_random(const dc_range *range) {
    (void)madvise(address(range, 0), range->size, MADV_RANDOM);
}

void dc_pages_want(const void *bytes, size_t n) {
    uintptr_t page = (uintptr_t)dc_page_size(), at = (uintptr_t)bytes, first = at / page * page;
    (void)madvise((void *)first, (size_t)(at - first) + n, MADV_WILLNEED);
}

long dc_disk_faults(void) {
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? use.ru_majflt : 0;
}
