/* 3,000 rounds, each with messages of another size, to another rank, on another communicator. */
#include <mpi.h>
#include <stddef.h>

enum { ROUNDS = 3000, COMMUNICATORS = 150, LARGEST = 1 << 15 };

static char out[LARGEST], in[LARGEST];

int main(void)
{
    int size, rank;
    MPI_Comm comms[COMMUNICATORS];
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request requests[2];
        MPI_Comm comm = comms[i % COMMUNICATORS];
        int bytes = i * 37 % LARGEST, to = (rank + i) % size,
            from = (rank + size - i % size) % size;
        MPI_Irecv(in, LARGEST, MPI_BYTE, from, 0, comm, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, to, 0, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, LARGEST, MPI_BYTE, from, 1, comm,
                     MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
