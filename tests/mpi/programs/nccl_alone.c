/* A process of a job without MPI: nccl_alone RANK RANKS COUNT. All ranks know the unique id. */
#include "nccl_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char buffer[64];
    ncclUniqueId id;
    ncclComm_t comm;
    if (argc != 4)
        return 2;
    memset(&id, 0x5a, sizeof id);
    if (ncclCommInitRank(&comm, atoi(argv[2]), id, atoi(argv[1])) != ncclSuccess)
        return 1;
    for (int i = 0; i < atoi(argv[3]); i++)
        if (ncclAllReduce(buffer, buffer, 16, ncclFloat32, ncclSum, comm, NULL) != ncclSuccess)
            return 1;
    printf("%ld calls\n", double_nccl_calls());
    return ncclCommDestroy(comm) != ncclSuccess;
}
