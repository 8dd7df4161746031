// See events.h. A file is records: the length (8 bytes), a checksum of these, the bytes, a checksum of those. Each
// record is one message of protocol buffers:
//
//   Event       1 wall_time (double)  2 step  3 file_version  5 summary  7 session_log
//   Summary     1 value*
//   Value       1 tag  2 simple_value (float)
//   SessionLog  1 status (1: start)
//
// A checksum is CRC-32C, rotated and moved by a constant. Numbers are little-endian.
#include "train/events.h"

#include "base/file.h"
#include "base/text.h"
#include "train/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VARINT = 0, EIGHT = 1, BYTES = 2, FOUR = 5 };
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7 }; // of an event
static const uint32_t castagnoli = 0x82f63b78, moved = 0xa282ead8;

static uint32_t checksum(const char *bytes, size_t n) {
    uint32_t crc = ~(uint32_t)0;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? castagnoli : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + moved;
}

static void put_number(dc_text *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        char byte = (char)(value >> (8 * i) & 0xff);
        dc_text_bytes(out, &byte, 1);
    }
}

static void put_varint(dc_text *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7)
        put_number(out, (value & 0x7f) | 0x80, 1);
    put_number(out, value, 1);
}

static void put_key(dc_text *out, int field, int type) {
    put_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_bytes(dc_text *out, int field, const char *bytes, size_t n) {
    put_key(out, field, BYTES);
    put_varint(out, n);
    dc_text_bytes(out, bytes, n);
}

// An event of now, with one more field.
static dc_status put_event(dc_events *e, int64_t step, int field, const char *bytes, size_t n) {
    struct timespec now;
    uint64_t bits;
    dc_text event, record;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    memcpy(&bits, &seconds, sizeof bits);
    dc_text_init(&event);
    dc_text_init(&record);
    put_key(&event, WALL_TIME, EIGHT);
    put_number(&event, bits, 8);
    put_key(&event, STEP, VARINT);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, field, bytes, n);
    put_number(&record, event.used, 8);
    put_number(&record, checksum(record.bytes ? record.bytes : "", record.used), 4);
    dc_text_bytes(&record, event.bytes ? event.bytes : "", event.used);
    put_number(&record, checksum(event.bytes ? event.bytes : "", event.used), 4);
    dc_status status = dc_text_status(&event);
    if (status == DC_OK) status = dc_text_status(&record);
    if (status == DC_OK &&
        (fwrite(record.bytes, 1, record.used, e->file) != record.used || fflush(e->file) != 0))
        status =
            dc_fail(DC_IO, "free some space there", "cannot write events (%s)", strerror(errno));
    dc_text_fini(&event);
    dc_text_fini(&record);
    return status;
}

static dc_status begin(dc_events *e, int64_t step) {
    static const char version[] = "brain.Event:2", start[] = {1 << 3 | VARINT, 1};
    DC_TRY(put_event(e, step, FILE_VERSION, version, sizeof version - 1));
    return put_event(e, step + 1, SESSION_LOG, start, sizeof start);
}

dc_status dc_events_open(dc_events *e, const char *folder, int64_t step) {
    char name[96], path[DC_PATH_MAX];
    snprintf(name, sizeof name, "events.out.tfevents.%" PRId64 ".dcrl.%ld", (int64_t)time(NULL),
             (long)getpid());
    DC_TRY(dc_folder_path(path, folder, name));
    e->file = fopen(path, "wbx");
    if (!e->file)
        return dc_fail(DC_IO, "check the folder's permissions", "cannot write %s (%s)", path,
                       strerror(errno));
    dc_status status = begin(e, step);
    if (status != DC_OK) dc_events_close(e);
    return status;
}

dc_status dc_events_put(dc_events *e, int64_t step, const char *group, const char *const *names,
                        const double *values, int count) {
    dc_text summary;
    dc_text_init(&summary);
    for (int i = 0; i < count; i++) {
        float x = (float)values[i];
        uint32_t bits;
        dc_text value, tag;
        memcpy(&bits, &x, sizeof bits);
        dc_text_init(&value);
        dc_text_init(&tag);
        dc_text_add(&tag, "%s/%s", group, names[i]);
        put_bytes(&value, 1, tag.bytes ? tag.bytes : "", tag.used);
        put_key(&value, 2, FOUR);
        put_number(&value, bits, 4);
        put_bytes(&summary, 1, value.bytes ? value.bytes : "", value.used);
        dc_text_follow(&summary, &tag);
        dc_text_follow(&summary, &value);
        dc_text_fini(&tag);
        dc_text_fini(&value);
    }
    dc_status status = dc_text_status(&summary);
    if (status == DC_OK)
        status = put_event(e, step, SUMMARY, summary.bytes ? summary.bytes : "", summary.used);
    dc_text_fini(&summary);
    return status;
}

void dc_events_close(dc_events *e) {
    if (e->file) fclose(e->file);
    e->file = NULL;
}
