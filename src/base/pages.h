// Pages: memory taken straight from the system. Anonymous pages come zeroed, so large blocks need
// no second pass over them; a range of addresses can be reserved first and filled with mapped files
// one after the other, so that many files read as one array. The only file beside base/file.c that
// knows mmap.
#ifndef DC_PAGES_H
#define DC_PAGES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zeroed memory aligned to a page, in huge pages where the system has them; NULL when there is none
// (no message). Sizes need not be whole pages.
void *dc_pages_take(size_t size);
void dc_pages_free(void *memory, size_t size); // Nullable: memory

// Bytes of a page; bytes of memory that this machine has, 0 when that is not known.
size_t dc_page_size(void);
size_t dc_machine_memory(void);

// A stretch of addresses. What is not filled may not be touched.
typedef struct dc_range {
    const uint8_t *bytes; // NULL: none
    size_t size;
} dc_range;

dc_status dc_range_reserve(dc_range *range, size_t size);
void dc_range_free(dc_range *range); // safe twice
// Map a regular file of exactly `size` bytes (above 0) at `offset`, a multiple of the page's size.
// Errors: DC_BAD_INPUT when the file has another size.
dc_status dc_range_fill(dc_range *range, size_t offset, const char *path, size_t size);
// Rows will be read here and there, not in order: the system reads single pages, nothing around
// them.
void dc_range_random(const dc_range *range);
// Begin to read the pages of n bytes from the disk, if they are not in memory; does not wait.
void dc_pages_want(const void *bytes, size_t n);
// Faults of this process that had to wait for a disk, so far.
long dc_disk_faults(void);

#endif
