/* A library that a program opens privately, as Python does, and that is bound to its own copy of
 * NCCL. Returns how many operations that made. */
#include "nccl_double.h"

#include <string.h>

long operate(int operations)
{
    ncclUniqueId id;
    ncclComm_t comm;
    char buffer[64];
    memset(&id, 0x5a, sizeof id);
    if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess)
        return -1;
    for (int i = 0; i < operations; i++)
        if (ncclBcast(buffer, 16, ncclFloat32, 0, comm, NULL) != ncclSuccess)
            return -1;
    return double_nccl_calls() - 1;
}
