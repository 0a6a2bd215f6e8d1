/* The GPU thread takes a slot as valid if, after reading it, it sees that the writer has not yet
 * come round to that slot again. For that the writer has a fence between publishing `written` and
 * writing the next slot, and the GPU thread has one between reading a slot and reading `written`.
 *
 *     thread of the job                 GPU thread
 *     written = n                       slot n - SLOTS is read
 *     ---- fence ----                   ---- fence ----
 *     slot n (that is, n - SLOTS)       written is read: n, so the slot may be half the new call's
 *
 * The ledger says which call a thread is in (struct ledger_thread). A thread leaves a call only
 * after the call is in the ring, so a reader that reads the ledger first and the ring second finds
 * each call in at least one of them. The calls of the ring are handed over first: a thread's calls
 * follow each other, so the end of the last interval shows which part of the next is new. A thread
 * that is stopped between its second clock reading and leaving the call counts as in the call for
 * that long. */
#include "host_time.h"

#include "base/clock.h"
#include "call_table.h"

#include <sys/mman.h>

bool host_time_wanted;

static struct host_time *threads;

void host_time_enter(struct host_time *thread)
{
    thread->next = __atomic_load_n(&threads, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&threads, &thread->next, thread, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

static struct host_time_ring *make_ring(void)
{
    struct host_time_ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return ring == MAP_FAILED ? NULL : ring;
}

void host_time_add(struct host_time *thread, uint64_t start_ticks, uint64_t end_ticks)
{
    struct host_time_ring *ring = thread->ring || thread->unrecorded ? thread->ring : make_ring();
    if (!ring) {
        __atomic_store_n(&thread->unrecorded, thread->unrecorded + 1, __ATOMIC_RELAXED);
        return;
    }
    uint64_t at = ring->written;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&ring->slots[at % HOST_TIME_SLOTS].start_ticks, start_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->slots[at % HOST_TIME_SLOTS].end_ticks, end_ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&ring->written, at + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&thread->ring, ring, __ATOMIC_RELEASE);
}

/* Hand over the new part of a call, the thread's next; an earlier part may have been handed over
 * while the call ran. */
static void hand_over(struct host_time *thread, host_time_take take, uint64_t start_ticks,
                      uint64_t end_ticks)
{
    uint64_t from = start_ticks > thread->until_ticks ? start_ticks : thread->until_ticks;
    if (from >= end_ticks)
        return;
    take(from, end_ticks);
    thread->until_ticks = end_ticks;
}

static bool is_in_mpi(uint64_t doing)
{
    return doing & LEDGER_DOING_INSIDE && (uint16_t)doing < CALL_FIRST_OF_NCCL;
}

/* Read the slot of call number `at`; false: it is being written to again, or has been. */
static bool read_slot(const struct host_time_ring *ring, uint64_t at, uint64_t *start_ticks,
                      uint64_t *end_ticks)
{
    *start_ticks =
        __atomic_load_n(&ring->slots[at % HOST_TIME_SLOTS].start_ticks, __ATOMIC_RELAXED);
    *end_ticks = __atomic_load_n(&ring->slots[at % HOST_TIME_SLOTS].end_ticks, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&ring->written, __ATOMIC_RELAXED) - at < HOST_TIME_SLOTS;
}

static uint64_t collect_ring(struct host_time *thread, const struct host_time_ring *ring,
                             host_time_take take)
{
    uint64_t lost = 0, start_ticks, end_ticks;
    uint64_t written = __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
    if (written - thread->read > HOST_TIME_SLOTS) {
        lost = written - thread->read - HOST_TIME_SLOTS;
        thread->read += lost;
    }
    for (; thread->read < written; thread->read++) {
        if (read_slot(ring, thread->read, &start_ticks, &end_ticks))
            hand_over(thread, take, start_ticks, end_ticks);
        else
            lost++;
    }
    return lost;
}

static uint64_t collect_thread(struct host_time *thread, host_time_take take, uint64_t now)
{
    uint64_t doing = __atomic_load_n(&thread->record->doing, __ATOMIC_ACQUIRE);
    uint64_t since_ticks = __atomic_load_n(&thread->record->since_ticks, __ATOMIC_ACQUIRE);
    uint64_t unrecorded = __atomic_load_n(&thread->unrecorded, __ATOMIC_RELAXED);
    const struct host_time_ring *ring = __atomic_load_n(&thread->ring, __ATOMIC_ACQUIRE);
    uint64_t lost =
        unrecorded - thread->unrecorded_before + (ring ? collect_ring(thread, ring, take) : 0);
    thread->unrecorded_before = unrecorded;
    if (is_in_mpi(doing))
        hand_over(thread, take, since_ticks, now);
    return lost;
}

uint64_t host_time_collect(host_time_take take, uint64_t *lost)
{
    uint64_t now = clock_ticks();
    for (struct host_time *thread = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); thread;
         thread = thread->next)
        *lost += collect_thread(thread, take, now);
    return now;
}
