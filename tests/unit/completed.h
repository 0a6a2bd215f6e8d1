/* A request that is taken out of the table, copied and ended, as account_completed does with it in
 * between. Other threads may look at its handle. */
#include "record/requests.h"

static bool requests_complete(mpi_handle handle, const struct ledger_thread *thread,
                              uint64_t start_ticks, uint64_t end_ticks, struct request *completed)
{
    struct request *taken = requests_take(handle, thread, start_ticks, end_ticks);
    if (!taken)
        return false;
    memcpy((char *)completed + sizeof taken->handle, (char *)taken + sizeof taken->handle,
           sizeof *taken - sizeof taken->handle);
    requests_end(taken, handle);
    return true;
}
