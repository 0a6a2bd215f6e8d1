#include "record/account.h"
#include "record/announce.h"
#include "record/recording.h"
#include "record/signatures.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "unit.h"

/* Eight ranks, this one is rank 3. */
enum { HERE = 3, BYTES_4 = 0x4c000405 /* MPICH: MPI_INT */, SUM = 0x58000003, MAX = 0x58000001 };

static const int MEMBERS[] = {2, 3, 5};
static mpi_handle few;

static void begin_with(size_t ledger_bytes)
{
    fake_mpi_speak("mpich");
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    fake_world(8, HERE);
    few = fake_comm(MEMBERS, 3);
    CHECK(communicators_find(few) != NULL);
    CHECK(requests_begin(false));
    signatures_begin(the_ledger.limit_bytes, false);
    recording_begin();
    recording_switch(true);
    CHECK(thread_ready() != NULL);
}

static void begin(void)
{
    begin_with(8 << 20);
}

/* As the wrapper does it; the bytes announced. */
static uint64_t bcast(mpi_handle comm, mpi_count count, mpi_handle type)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Bcast, SITE_JOB);
    announce_rooted(&call, comm, announce_counted(&call, comm, count, type, 0, false), 0);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    account_call(&call, traffic_bcast(&call, count, type, 0, comm));
    return call.bytes;
}

static unsigned allreduce(mpi_count count, mpi_handle op, bool is_in_place)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Allreduce, SITE_JOB);
    announce_collective(&call, few, announce_counted(&call, few, count, BYTES_4, op, is_in_place));
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_allreduce(&call, count, BYTES_4, few);
    struct ledger_sample *sample = account_call(&call, traffic);
    signature_store(sample, SIGNATURE_OF(.count = count, .type = BYTES_4, .op = op,
                                         .is_in_place = is_in_place));
    return sample->signature;
}

/* Broadcasts of this many bytes on a communicator, in a region, in cells that count. */
static uint64_t counted(mpi_handle comm, uint64_t bytes, unsigned region)
{
    const struct cells *cells = &this_thread->cells;
    unsigned slot = communicators_slot(communicators_find(comm));
    uint64_t count = 0;
    for (uint32_t i = 0; i < cells->count; i++) {
        const struct ledger_cell *cell = cells->all[i];
        if (cell->live && cell->call == CALL_Bcast && cell->communicator == slot &&
            cell->bytes == bytes && cell->region == region)
            count += cell_count(cell);
    }
    return count;
}

/* As the wrapper does it; the communicator that it is counted on. */
static struct communicator *put(mpi_handle win)
{
    struct call call UNTIL_RETURN;
    call_enter(&call, CALL_Put, SITE_JOB);
    announce_target(&call, win, announce_counted(&call, win, 5, BYTES_4, 0, false), 0);
    call_start(&call);
    call_end(&call, MPI_SUCCESS);
    struct traffic traffic = traffic_put(&call, 5, BYTES_4, 0, win);
    account_call(&call, traffic);
    return traffic.communicator;
}

TEST(a_window_s_handle_is_that_of_the_next_if_its_end_was_not_seen)
{
    enum { WINDOW = 0x20000001 };
    begin();
    communicators_attach(communicators_key_of_window(WINDOW), few);
    CHECK(put(WINDOW)->created_on == communicators_find(few));
    communicators_attach(communicators_key_of_window(WINDOW), mpi_abi.comm_world);
    CHECK(put(WINDOW)->created_on == communicators_find(mpi_abi.comm_world));
}

static int next_type_bytes;

static int type_bytes(mpi_handle type, int *bytes)
{
    (void)type;
    *bytes = next_type_bytes;
    return MPI_SUCCESS;
}

TEST(a_freed_type_s_handle_is_that_of_the_next)
{
    begin();
    mpi_query.Type_size = type_bytes;
    for (next_type_bytes = 24; next_type_bytes <= 40; next_type_bytes += 8) {
        CHECK_EQUAL(bcast(few, 5, FAKE_TYPE), LEDGER_BYTES_UNKNOWN);
        CHECK_EQUAL(counted(few, 5 * (uint64_t)next_type_bytes, 0), 1);
    }
}

TEST(no_call_is_lost_when_its_cell_is_folded)
{
    enum { SIZES = 20 };
    uint64_t total = 0;
    begin_with(1 << 20);
    for (mpi_count count = 1; count <= SIZES; count++)
        bcast(few, count, BYTES_4);
    for (uint64_t bytes = 1; !the_ledger.header->folded_cells;
         bytes++) /* other calls take all room */
        account_count(this_thread, bytes, cell_key(CALL_Send, 0, LEDGER_CALL), 1, 0);
    for (mpi_count count = 1; count <= SIZES; count++)
        bcast(few, count, BYTES_4);
    for (uint32_t i = 0; i < this_thread->cells.count; i++)
        if (this_thread->cells.all[i]->live && this_thread->cells.all[i]->call == CALL_Bcast)
            total += cell_count(this_thread->cells.all[i]);
    CHECK_EQUAL(total, 2 * SIZES);
}

TEST(each_signature_keeps_its_number)
{
    begin();
    samples_begin(256 << 10);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(allreduce(5, SUM, false), 1);
        CHECK_EQUAL(allreduce(5, SUM, true), 2);
        CHECK_EQUAL(allreduce(5, MAX, false), 3);
        CHECK_EQUAL(allreduce(6, MAX, false), 4);
    }
}
