// Ranks: the processes of one command that were started together, by `mpirun -n R` or srun, and exchange bytes over
// MPI. Open MPI's library is loaded when a process finds itself to be one of several, so nothing needs it otherwise.
//
// Exchanges happen in the same order on every rank, on the thread that joined. None of them fails: where another rank is
// gone, all that is left is to say so and to end, which is the business of whoever joined (dc_ranks_lost_fn).
// A NULL dc_ranks is a process by itself: rank 0 of 1, whose exchanges do nothing.
#ifndef DC_RANKS_H
#define DC_RANKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dc_ranks dc_ranks;

// Called when a rank is gone (-1: it is not known which); must end the process. `tells`: no other rank tells the user.
typedef void dc_ranks_lost_fn(int rank, bool tells);

// Whether this process was started as one of several. DCRL_RANKS=off says that they have nothing to do with each other.
bool dc_ranks_started(void);
// Meet the others. Errors: DC_UNSUPPORTED without an Open MPI.
dc_status dc_ranks_join(dc_ranks **ranks, dc_ranks_lost_fn *lost);
// Part when all have come to their end. Nullable: ranks, as everywhere below.
void dc_ranks_leave(dc_ranks *ranks);
// Part in the middle: the others are told to end without a word.
void dc_ranks_desert(dc_ranks *ranks);

int dc_ranks_rank(const dc_ranks *ranks);  // this process
int dc_ranks_count(const dc_ranks *ranks); // all of them
int dc_ranks_cores(
    const dc_ranks *ranks); // cores for this process, less those that others on the same cores need
int dc_ranks_before(const dc_ranks *ranks); // ranks on this machine that have lower numbers
// See whether another rank is gone: now, and for some time.
void dc_ranks_look(dc_ranks *ranks);
void dc_ranks_watch(dc_ranks *ranks, double seconds);

// Everyone gets what `from` has.
void dc_ranks_broadcast(dc_ranks *ranks, int from, void *bytes, int64_t size);
// Everyone gets what everyone has, by rank: sizes[k] bytes of rank k, one behind the other. `own` may not lie in `all`.
void dc_ranks_gather(dc_ranks *ranks, const void *own, void *all, const int64_t *sizes);
// To and from one other rank, in order. What is sent must stay as it is until the next receive into the same memory,
// which waits for that, or dc_ranks_flush.
void dc_ranks_send(dc_ranks *ranks, int to, const void *bytes, int64_t size);
void dc_ranks_receive(dc_ranks *ranks, int from, void *bytes, int64_t size);
void dc_ranks_flush(dc_ranks *ranks);
// Whether any rank says so.
bool dc_ranks_any(dc_ranks *ranks, bool here);
// Memory to exchange with, at least `size` bytes: two pieces, 0 and 1, each valid until it is asked for again.
void *dc_ranks_buffer(dc_ranks *ranks, int piece, int64_t size);

// What this rank has sent, and how long it waited for others.
typedef struct dc_ranks_cost {
    int64_t messages, bytes;
    double waited;
} dc_ranks_cost;
dc_ranks_cost dc_ranks_so_far(const dc_ranks *ranks);

#ifdef __cplusplus
}
#endif

#endif
