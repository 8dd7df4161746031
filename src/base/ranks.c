// Ranks over Open MPI, see ranks.h. Of its interface only what is in FUNCTIONS is used, by its binary form (handles are
// pointers to objects that the library names), which has stayed the same from version 1.7 to 5.
//
// Every wait is a loop of tests, because a rank that was killed shows nowhere else: a message that never comes looks like
// one that is late. So a loop that takes long looks whether the others' processes are there, those on this machine, and
// whether one of them said that it deserts.
#define _GNU_SOURCE // RTLD_NOW and its like beside POSIX
#include "base/ranks.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/pool.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *handle; // of a communicator, a type, a request, an error handler

#define FUNCTIONS(F)                                                                               \
    F(Init_thread, (int *, char ***, int, int *))                                                  \
    F(Finalize, (void))                                                                            \
    F(Comm_rank, (handle, int *))                                                                  \
    F(Comm_size, (handle, int *))                                                                  \
    F(Comm_set_errhandler, (handle, handle))                                                       \
    F(Ibcast, (void *, int, handle, int, handle, handle *))                                        \
    F(Iallgatherv,                                                                                 \
      (const void *, int, handle, void *, const int *, const int *, handle, handle, handle *))     \
    F(Isend, (const void *, int, handle, int, int, handle, handle *))                              \
    F(Irecv, (void *, int, handle, int, int, handle, handle *))                                    \
    F(Iprobe, (int, int, handle, int *, void *))                                                   \
    F(Test, (handle *, int *, void *))

typedef struct library {
#define MEMBER(name, arguments) int(*name) arguments;
    FUNCTIONS(MEMBER)
#undef MEMBER
    handle world, byte, errors_return;
} library;

enum {
    FUNNELED = 1,    // MPI_THREAD_FUNNELED
    ANY_SOURCE = -1, // MPI_ANY_SOURCE
    DATA = 1,        // tags of messages
    DESERTED = 2,
    PENDING_MAX = 256,
    PIECE = 1 << 28, // bytes of a message; counts are ints
};

typedef struct process { // where a rank is
    uint64_t machine;    // and which numbers of processes count there
    uint64_t cores;      // that it may use
    int64_t pid;
} process;

typedef struct pending {
    handle request;
    const char *bytes;
    int64_t size;
} pending;

struct dc_ranks {
    library mpi;
    dc_ranks_lost_fn *lost;
    int rank, count;
    process *process; // (count)
    pending sends[PENDING_MAX];
    int sending;
    void *buffer[2];
    int64_t buffer_size[2];
    int *sizes, *places; // (count)
    dc_ranks_cost cost;
};

// ---- finding out ----

static int number_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

bool dc_ranks_started(void) {
    const char *wish = getenv("DCRL_RANKS");
    if (wish && !strcmp(wish, "off")) return false;
    if (number_of("OMPI_COMM_WORLD_SIZE") > 1) return true; // mpirun
    if (number_of("PMI_SIZE") > 1) return true;             // srun --mpi=pmi2, and other launchers
    return getenv("PMIX_RANK") && number_of("SLURM_STEP_NUM_TASKS") > 1; // srun --mpi=pmix
}

// ---- the library ----

static bool find(void *from, const char *name, void *out) {
    void *symbol = dlsym(from, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static dc_status load(library *mpi) {
    static const char *const names[] = {"libmpi.so.40", "libmpi.so"};
    const char *hint = "install Open MPI (openmpi-bin), or set DCRL_RANKS=off for processes of "
                       "their own";
    void *from = NULL;
    for (int i = 0; i < 2 && !from; i++)
        from = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL); // its plug-ins look for it
    if (!from)
        return dc_fail(DC_UNSUPPORTED, hint,
                       "this is one of several ranks, and libmpi.so is not there");
    bool good = true;
#define FIND(name, arguments) good = good && find(from, "MPI_" #name, &mpi->name);
    FUNCTIONS(FIND)
#undef FIND
    good = good && find(from, "ompi_mpi_comm_world", &mpi->world) &&
           find(from, "ompi_mpi_byte", &mpi->byte) &&
           find(from, "ompi_mpi_errors_return", &mpi->errors_return);
    if (good) return DC_OK;
    return dc_fail(DC_UNSUPPORTED, hint,
                   "this is one of several ranks, and libmpi.so is no Open MPI");
}

// ---- waiting ----

static bool is_there(const dc_ranks *r, int rank) {
    const process *p = &r->process[rank];
    bool here = p->machine == r->process[r->rank].machine;
    return !here || kill((pid_t)p->pid, 0) == 0 || errno != ESRCH;
}

static void lose(dc_ranks *r, int rank) {
    bool tells = true;
    for (int k = 0; k < r->rank; k++)
        tells = tells && !is_there(r, k);
    r->lost(rank, tells);
    abort(); // it does not come back
}

// Whether a rank said that it deserts; its word may be on its way when its process is gone.
static bool was_told(dc_ranks *r, bool long_look) {
    int told = 0;
    for (int k = long_look ? 100 : 1; k > 0 && !told; k--)
        if (r->mpi.Iprobe(ANY_SOURCE, DESERTED, r->mpi.world, &told, NULL) != 0) return false;
    return told != 0;
}

static void look_for_lost(dc_ranks *r) {
    int gone = -1;
    for (int k = 0; k < r->count && gone < 0; k++)
        if (!is_there(r, k)) gone = k;
    if (was_told(r, gone >= 0)) r->lost(-1, false);
    if (gone >= 0) lose(r, gone);
}

// Many ranks may share a core: after some tests it is given to others, and after a second mostly.
static void give_way(int64_t tests, double since) {
    if (tests < 500) return;
    if (tests % 64 == 0 && dc_now() - since > 1)
        nanosleep(&(struct timespec){0, 500000}, NULL);
    else
        sched_yield();
}

static void wait_for(dc_ranks *r, handle *request) {
    double since = dc_now(), looked = since;
    int done = 0;
    for (int64_t tests = 0; !done; tests++) {
        if (r->mpi.Test(request, &done, NULL) != 0) {
            look_for_lost(r);
            lose(r, -1);
        }
        if (done) break;
        give_way(tests, since);
        if (tests % 256 || dc_now() - looked < 0.02) continue;
        look_for_lost(r);
        looked = dc_now();
    }
    r->cost.waited += dc_now() - since;
}

// ---- joining and parting ----

// Processes can be asked for by number where the kernel was started once and the numbers are of one space.
static process this_process(void) {
    char text[256] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t n = file ? fread(text, 1, 64, file) : 0;
    if (file) fclose(file);
    ssize_t more = readlink("/proc/self/ns/pid", text + n, sizeof text - n);
    if (more > 0) n += (size_t)more;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    (void)sched_getaffinity(0, sizeof cores, &cores);
    uint64_t machine = dc_hash(text, n, 0);
    return (process){machine, dc_hash(&cores, sizeof cores, machine), getpid()};
}

static dc_status meet(dc_ranks *r) {
    size_t count = (size_t)r->count;
    int64_t *sizes = malloc(count * sizeof *sizes);
    r->process = calloc(count, sizeof *r->process);
    r->sizes = calloc(count, sizeof *r->sizes);
    r->places = calloc(count, sizeof *r->places);
    bool good = sizes && r->process && r->sizes && r->places;
    process own = this_process();
    for (int k = 0; good && k < r->count; k++) {
        sizes[k] = sizeof own;
        r->process[k] = (process){.machine = (uint64_t)k}; // on no machine yet
    }
    process *all = calloc(count, sizeof *all);
    if (good && all) {
        dc_ranks_gather(r, &own, all, sizes);
        memcpy(r->process, all, count * sizeof *all);
    }
    good = good && all;
    free(all);
    free(sizes);
    return good ? DC_OK : dc_fail(DC_NO_MEMORY, NULL, "no memory");
}

static void release(dc_ranks *r) {
    free(r->buffer[0]);
    free(r->buffer[1]);
    free(r->process);
    free(r->sizes);
    free(r->places);
    free(r);
}

dc_status dc_ranks_join(dc_ranks **out, dc_ranks_lost_fn *lost) {
    *out = NULL;
    dc_ranks *r = calloc(1, sizeof *r);
    if (!r) return dc_fail(DC_NO_MEMORY, NULL, "no memory");
    r->lost = lost;
    dc_status status = load(&r->mpi);
    int provided;
    bool good = status == DC_OK && r->mpi.Init_thread(NULL, NULL, FUNNELED, &provided) == 0 &&
                r->mpi.Comm_set_errhandler(r->mpi.world, r->mpi.errors_return) == 0 &&
                r->mpi.Comm_rank(r->mpi.world, &r->rank) == 0 &&
                r->mpi.Comm_size(r->mpi.world, &r->count) == 0;
    if (status == DC_OK && !good)
        status = dc_fail(DC_UNSUPPORTED, NULL, "MPI could not be started");
    if (status == DC_OK && r->count < 2)
        status = dc_fail(DC_UNSUPPORTED,
                         "use mpirun of the Open MPI that is installed, or srun --mpi=pmix; "
                         "DCRL_RANKS=off if they have nothing to do with each other",
                         "this is one of several ranks, and they do not find each other");
    if (status == DC_OK) status = meet(r);
    if (status == DC_OK)
        *out = r;
    else
        release(r);
    return status;
}

void dc_ranks_leave(dc_ranks *r) {
    if (!r) return;
    dc_ranks_flush(r);
    (void)dc_ranks_any(r, false); // nobody parts while others may still look for it
    r->mpi.Finalize();
    release(r);
}

void dc_ranks_desert(dc_ranks *r) {
    static char word;
    handle request;
    if (!r) return;
    for (int k = 0; k < r->count; k++) {
        int done = 0;
        if (k == r->rank ||
            r->mpi.Isend(&word, 1, r->mpi.byte, k, DESERTED, r->mpi.world, &request))
            continue;
        for (int tests = 0; tests < 100 && !done; tests++)
            (void)r->mpi.Test(&request, &done, NULL);
    }
}

int dc_ranks_rank(const dc_ranks *r) {
    return r ? r->rank : 0;
}

int dc_ranks_count(const dc_ranks *r) {
    return r ? r->count : 1;
}

int dc_ranks_cores(const dc_ranks *r) {
    int beside = 0, cores = dc_core_count();
    for (int k = 0; r && k < r->count; k++)
        beside += r->process[k].cores == r->process[r->rank].cores;
    return beside < 2 ? cores : cores > beside ? cores / beside : 1;
}

int dc_ranks_before(const dc_ranks *r) {
    int before = 0;
    for (int k = 0; r && k < r->rank; k++)
        before += r->process[k].machine == r->process[r->rank].machine;
    return before;
}

void dc_ranks_look(dc_ranks *r) {
    if (r) look_for_lost(r);
}

void dc_ranks_watch(dc_ranks *r, double seconds) {
    for (double since = dc_now(); r && dc_now() - since < seconds;) {
        look_for_lost(r);
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

// ---- exchanges ----

static void check(dc_ranks *r, int error) {
    if (!error) return;
    look_for_lost(r);
    lose(r, -1);
}

static int piece_of(int64_t size, int64_t at) {
    return (int)(size - at < PIECE ? size - at : PIECE);
}

static void count_sent(dc_ranks *r, int64_t bytes) {
    r->cost.messages++;
    r->cost.bytes += bytes;
}

void dc_ranks_broadcast(dc_ranks *r, int from, void *bytes, int64_t size) {
    handle request;
    for (int64_t at = 0; r && at < size; at += PIECE) {
        check(r, r->mpi.Ibcast((char *)bytes + at, piece_of(size, at), r->mpi.byte, from,
                               r->mpi.world, &request));
        wait_for(r, &request);
        if (from == r->rank) count_sent(r, piece_of(size, at));
    }
}

void dc_ranks_gather(dc_ranks *r, const void *own, void *all, const int64_t *sizes) {
    int64_t place = 0;
    handle request;
    if (!r) return;
    for (int k = 0; k < r->count; k++) {
        DC_CHECK(place + sizes[k] <= INT_MAX);
        r->sizes[k] = (int)sizes[k];
        r->places[k] = (int)place;
        place += sizes[k];
    }
    check(r, r->mpi.Iallgatherv(own, r->sizes[r->rank], r->mpi.byte, all, r->sizes, r->places,
                                r->mpi.byte, r->mpi.world, &request));
    wait_for(r, &request);
    count_sent(r, sizes[r->rank]);
}

static void finish_send(dc_ranks *r, int i) {
    wait_for(r, &r->sends[i].request);
    r->sends[i] = r->sends[--r->sending];
}

void dc_ranks_send(dc_ranks *r, int to, const void *bytes, int64_t size) {
    for (int64_t at = 0; r && at < size; at += PIECE) {
        if (r->sending == PENDING_MAX) finish_send(r, 0);
        pending *p = &r->sends[r->sending++];
        *p = (pending){NULL, (const char *)bytes + at, piece_of(size, at)};
        check(r, r->mpi.Isend(p->bytes, (int)p->size, r->mpi.byte, to, DATA, r->mpi.world,
                              &p->request));
        count_sent(r, p->size);
    }
}

void dc_ranks_receive(dc_ranks *r, int from, void *bytes, int64_t size) {
    const char *first = bytes, *end = first + size;
    handle request;
    for (int i = r ? r->sending - 1 : -1; i >= 0; i--) {
        const pending *p = &r->sends[i];
        if (p->bytes < end && first < p->bytes + p->size) finish_send(r, i);
    }
    for (int64_t at = 0; r && at < size; at += PIECE) {
        check(r, r->mpi.Irecv((char *)bytes + at, piece_of(size, at), r->mpi.byte, from, DATA,
                              r->mpi.world, &request));
        wait_for(r, &request);
    }
}

void dc_ranks_flush(dc_ranks *r) {
    while (r && r->sending)
        finish_send(r, r->sending - 1);
}

bool dc_ranks_any(dc_ranks *r, bool here) {
    if (!r) return here;
    int64_t *sizes = dc_ranks_buffer(r, 0, (int64_t)sizeof *sizes * r->count);
    char *all = dc_ranks_buffer(r, 1, r->count), own = here;
    bool any = false;
    for (int k = 0; k < r->count; k++)
        sizes[k] = 1;
    dc_ranks_gather(r, &own, all, sizes);
    for (int k = 0; k < r->count; k++)
        any = any || all[k];
    return any;
}

void *dc_ranks_buffer(dc_ranks *r, int piece, int64_t size) {
    if (size <= r->buffer_size[piece]) return r->buffer[piece];
    void *more = realloc(r->buffer[piece], (size_t)size);
    DC_CHECK(more); // less than a gradient
    r->buffer[piece] = more;
    r->buffer_size[piece] = size;
    return more;
}

dc_ranks_cost dc_ranks_so_far(const dc_ranks *r) {
    return r ? r->cost : (dc_ranks_cost){0};
}
