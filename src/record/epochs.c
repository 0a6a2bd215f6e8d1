/* Each side of a window has a table with a count for each rank that has been a partner in an epoch
 * of that side, and remembers the group of the last one. If the next group has the same members,
 * its ranks need not be translated: MPI is asked whether they are, by their world ranks, which
 * takes it a look at the (small) group only, not at the world. */
#include "epochs.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "message_numbers.h"

enum { PEERS_MAX = 1 << 14 };

/* How many epochs a rank has been a partner in. */
struct peer {
    uint32_t world_rank; /* and 1; 0: an empty place */
    uint32_t epochs;
};

struct side {
    int count; /* members of the group of the last epoch */
    /* an epoch was not counted: its group had too many members, or some that are not in
     * MPI_COMM_WORLD. So from then on numbers would be wrong */
    bool is_lost;
    int32_t world_ranks[EPOCHS_PARTNERS_MAX];
    uint32_t places[EPOCHS_PARTNERS_MAX]; /* in `peers` */
    uint32_t size, used;                  /* of `peers`; the size is a power of two */
    struct peer peers[];                  /* open addressing */
};

static uint32_t place_of(const struct side *side, uint32_t world_rank)
{
    uint32_t at = world_rank * 0x9e3779b1u >> 8, mask = side->size - 1;
    while (side->peers[at & mask].world_rank && side->peers[at & mask].world_rank != world_rank)
        at++;
    return at & mask;
}

/* A copy (of nothing, if `old` is NULL) with this number of places. NULL: no memory, or too
 * many. */
static struct side *with_places(const struct side *old, uint32_t size)
{
    struct side *side =
        size > PEERS_MAX ? NULL : memory_take(sizeof *side + size * sizeof side->peers[0]);
    if (!side)
        return NULL;
    if (old)
        *side = *old;
    side->size = size;
    for (uint32_t i = 0; old && i < old->size; i++)
        if (old->peers[i].world_rank)
            side->peers[place_of(side, old->peers[i].world_rank)] = old->peers[i];
    return side;
}

/* With room for one more group; at most half of the places are in use. False: there is none. */
static bool make_room(void **at)
{
    struct side *side = *at;
    if (side && 2 * (side->used + EPOCHS_PARTNERS_MAX) <= side->size)
        return true;
    struct side *larger = with_places(side, side ? 2 * side->size : 2 * EPOCHS_PARTNERS_MAX);
    if (!larger)
        return false;
    memory_give(side);
    *at = larger;
    return true;
}

/* The partners of another group than before. */
static bool find_partners(struct side *side, mpi_handle group, int count)
{
    if (count > EPOCHS_PARTNERS_MAX || !communicators_of_group(group, count, side->world_ranks))
        return false;
    for (int i = 0; i < count; i++) {
        uint32_t world_rank = (uint32_t)side->world_ranks[i] + 1;
        uint32_t place = side->places[i] = place_of(side, world_rank);
        side->used += !side->peers[place].world_rank;
        side->peers[place].world_rank = world_rank;
    }
    return true;
}

static void enter_another(void **at, mpi_handle group, int count)
{
    struct quiet before = quiet_begin();
    bool is_known = make_room(at) && find_partners(*at, group, count);
    quiet_end(&before);
    struct side *side = *at;
    if (side)
        side->is_lost = !is_known;
    else
        message_numbers_end();
}

static void enter(void **at, mpi_handle group)
{
    struct side *side = *at;
    int count = 0;
    bool is_asked = mpi_query.Group_size(group, &count) == MPI_SUCCESS,
         is_same = side && side->count == count && !side->is_lost &&
                   communicators_is_group(group, count, side->world_ranks);
    if (!is_same && !(side && side->is_lost))
        enter_another(at, group, is_asked ? count : EPOCHS_PARTNERS_MAX + 1);
    side = *at;
    if (!side)
        return;
    side->count = count;
    for (int i = 0; !side->is_lost && i < count; i++)
        side->peers[side->places[i]].epochs++;
}

/* The number of an epoch fits the field of a sample. */
static int32_t number_of(const struct side *side, int partner)
{
    return (int32_t)((side->peers[side->places[partner]].epochs - 1) % INT32_MAX) + 1;
}

/* The sample of a partner of a call, or of all partners that are not known. */
static void sample_partner(const struct call *call, const struct ledger_sample *of_call,
                           const struct communicator *window, const struct side *side,
                           int32_t world_rank, int32_t number)
{
    struct thread *thread = call->thread;
    struct ledger_sample *sample =
        samples_of_window(&thread->window, thread->cells.record, call->end);
    if (!sample)
        return;
    sample_fill(sample,
                &(struct ledger_sample){
                    .start_ticks = call->start,
                    .end_ticks = call->end,
                    .peer = world_rank,
                    .call = call->id & 0xfff,
                    .flags = LEDGER_SAMPLE_EPOCH,
                    .communicator = of_call->communicator,
                    .partners = (uint16_t)(side->count < UINT16_MAX ? side->count : UINT16_MAX),
                    .region = of_call->region,
                    .epoch = number,
                    .sequence = window->object});
}

static bool is_numbered(const struct communicator *window)
{
    return window && window->object && window->object <= COMMUNICATORS_OBJECTS_MAX;
}

static void sample_partners(const struct call *call, const struct ledger_sample *sample,
                            const struct communicator *window, const struct side *side)
{
    if (!sample || !side || !side->count)
        return;
    if (side->is_lost || message_numbers_have_ended()) {
        sample_partner(call, sample, window, side, LEDGER_NO_RANK, 0);
        return;
    }
    for (int i = 0; i < side->count; i++)
        sample_partner(call, sample, window, side, side->world_ranks[i], number_of(side, i));
}

void epochs_open(const struct call *call, const struct ledger_sample *sample,
                 struct communicator *window, enum epochs_side side, mpi_handle group)
{
    if (!is_numbered(window))
        return;
    enter(&window->epochs[side], group);
    sample_partners(call, sample, window, window->epochs[side]);
}

void epochs_close(const struct call *call, const struct ledger_sample *sample,
                  const struct communicator *window, enum epochs_side side)
{
    if (is_numbered(window))
        sample_partners(call, sample, window, window->epochs[side]);
}
