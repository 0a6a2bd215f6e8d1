#include "announce.h"

__attribute__((noinline)) void announce_look_up(struct recent *recent, mpi_handle comm,
                                                mpi_handle type, mpi_handle op, uint64_t count,
                                                uint32_t how)
{
    static struct ledger_cell none; /* of no key */
    *recent = (struct recent){.comm = comm, .type = type, .op = op, .count = count, .cell = &none};
    recent->bytes = announce_bytes((mpi_count)count, type);
    recent->removed = __atomic_load_n(&communicators_removed, __ATOMIC_ACQUIRE);
    recent->communicator = mpi_abi.known ? communicators_under(mpi_handle_bits(comm)) : NULL;
    recent->doing = (uint16_t)how;
    if (recent->communicator) {
        recent->doing |= (uint64_t)communicators_slot(recent->communicator)
                         << LEDGER_DOING_SLOT_BIT;
        recent->how = how; /* until now it was of no call */
    }
}
