/* Allreduces by MPI_BAND, of which some are rounds of a negotiation: rank 0 gives five places, the
 * others two of them, so two are agreed on. */
#include "check.h"
#include "large_counts.h"

#include <stdint.h>

enum { WORDS = 1025 };
static uint64_t words[WORDS], came[WORDS];
static int rank;

static void *given(void)
{
    words[0] = 7 | (rank ? 3ULL : 31ULL) << 3;
    return words;
}

int main(void)
{
    MPI_Comm half, both;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#define AND(sent, received, count, type, comm) \
    CHECK(MPI_Allreduce(sent, received, (count_t)(count), type, MPI_BAND, comm) == MPI_SUCCESS)
    /* rounds: in place or not, signed or not, of 1 to 1,024 words */
    given();
    AND(MPI_IN_PLACE, words, 1, MPI_LONG_LONG, MPI_COMM_WORLD);
    AND(given(), came, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    AND(given(), came, 3, MPI_LONG, MPI_COMM_WORLD);
    AND(given(), came, 1024, MPI_UNSIGNED_LONG, MPI_COMM_WORLD);
    /* none: other sizes, counts, operations and communicators, and what does not block */
    AND(given(), came, 2, MPI_INT, MPI_COMM_WORLD);
    AND(given(), came, 0, MPI_LONG_LONG, MPI_COMM_WORLD);
    AND(given(), came, WORDS, MPI_LONG_LONG, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !rank, 0, &both);
    AND(given(), came, 1, MPI_LONG_LONG, both);
    MPI_Allreduce(given(), came, 1, MPI_LONG_LONG, MPI_BOR, MPI_COMM_WORLD);
    MPI_Reduce(given(), came, 1, MPI_LONG_LONG, MPI_BAND, 0, MPI_COMM_WORLD);
    MPI_Request request;
    MPI_Iallreduce(given(), came, 1, MPI_LONG_LONG, MPI_BAND, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* mistakes are for MPI to find: it may be asked nothing, and no buffer be read */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* to which Open MPI reports it */
    MPI_Allreduce(given(), MPI_IN_PLACE, 1, MPI_LONG_LONG, MPI_BAND, MPI_COMM_SELF);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
