/* Repeats a wrapper's work for an MPI_Bcast of one byte on MPI_COMM_WORLD, without the call itself,
 * on a thread of its own whose single cell is outside the ledger. The caches are warm here and less
 * so in the job, so the figure is a lower estimate. The minimum of several batches is used: the
 * others were interrupted. */
#include "cost.h"

#include "functions.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/signatures.h"

enum { BATCHES = 32, CALLS = LEDGER_PAGE_SAMPLES };

static __attribute__((noinline)) int one_call(int root)
{
    call_site site = provider_site(__builtin_return_address(0)) | SITE_JOB;
    void *real = function_target(FUNCTION_Bcast, ENTRY_MPI, site & 0xff);
    __asm__ volatile("" : : "r"(real) : "memory");
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Bcast, site);
    announce_rooted(&call, mpi_abi.comm_world,
                    announce_counted(&call, mpi_abi.comm_world, 1, mpi_abi.byte, 0, false), root);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_bcast(&call, 1, mpi_abi.byte, root, mpi_abi.comm_world);
    struct ledger_sample *sample = account_call(&call, traffic);
    signature_store(sample,
                    sample && traffic.bytes ? SIGNATURE_OF(.count = 1, .type = mpi_abi.byte) : 0);
    return root;
}

/* Static, since it is larger than a frame of the job's threads may be. */
static struct thread *spare_thread(struct communicator *world)
{
    static struct thread spare;
    static struct ledger_thread record;
    static struct {
        struct ledger_cell cell;
        struct ledger_block blocks[HISTOGRAM_BLOCKS];
    } single;
    static struct ledger_cell *cell = &single.cell;
    uint64_t key = cell_key(CALL_Bcast, communicators_slot(world), LEDGER_CALL);
    *cell = (struct ledger_cell){
        .bytes = world ? 1 : 0, .live = 1, .min_ns = UINT64_MAX, .last_block = HISTOGRAM_BLOCKS};
    memcpy(&cell->call, &key, sizeof key);
    for (int i = 0; i < HISTOGRAM_BLOCKS; i++)
        cell->blocks[i] = (int32_t)((char *)&single.blocks[i] - (char *)cell);
    spare.epoch = thread_epoch;
    spare.cells = (struct cells){.index = &cell, .index_mask = 0, .record = &record};
    struct recent bcast = {.comm = mpi_abi.comm_world,
                           .type = mpi_abi.byte,
                           .count = 1,
                           .how = recent_how(CALL_Bcast, false)};
    struct recent *recent = recent_place(spare.recent, &bcast);
    announce_look_up(recent, bcast.comm, bcast.type, bcast.op, bcast.count, bcast.how);
    recent->signature = 1; /* known: MPI is not asked, nothing is entered */
    return &spare;
}

/* The job's sequence of collectives is none of ours: ours go into an entry outside the ledger. A
 * communicator that the job has not used is not in the ledger afterwards, either. */
struct aside {
    uint16_t slot;
    struct ledger_communicator *entry;
};

static struct ledger_communicator outside;

static struct aside put_aside(struct communicator *world)
{
    if (!world)
        return (struct aside){.entry = NULL};
    struct aside aside = {world->slot, world->entry};
    world->slot = aside.slot ? aside.slot : LEDGER_COMMUNICATOR_OTHER;
    world->entry = &outside;
    return aside;
}

static void put_back(struct communicator *world, struct aside aside)
{
    if (!world)
        return;
    world->slot = aside.slot;
    world->entry = aside.entry;
}

uint64_t cost_per_call_ps(void)
{
    struct communicator *world = mpi_abi.known ? communicators_find(mpi_abi.comm_world)
                                               : NULL; /* a job of sessions has none */
    struct thread *mine = this_thread;
    struct aside aside = put_aside(world);
    uint64_t least = UINT64_MAX;
    this_thread = spare_thread(world);
    for (int batch = 0; batch < BATCHES; batch++) {
        static struct ledger_page page; /* outside the ledger; a batch fills it */
        this_thread->window = (struct samples_window){
            &page, page.samples, page.samples + LEDGER_PAGE_SAMPLES, UINT64_MAX};
        uint64_t begin = clock_ticks();
        for (int i = 0; i < CALLS; i++)
            one_call(0);
        uint64_t ticks = clock_ticks() - begin;
        least = ticks < least ? ticks : least;
    }
    this_thread = mine;
    put_back(world, aside);
    return clock_duration_ns(least * 1000) / CALLS;
}
