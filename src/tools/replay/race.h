/* Lets the algorithms of collectives take turns within one launch, and writes down how long each
 * call took, and how many messages it sent.
 *
 * MPI_T writes the variable that chooses the algorithm. Open MPI reads it when a communicator is
 * made, so each candidate has a duplicate of the communicator; MPICH reads it at each call. */
#ifndef COMMPROF_RACE_H
#define COMMPROF_RACE_H

#include "objects.h"

#include <stdio.h>

enum { RACE_AS_LAUNCHED = -1 };

/* MPI_T's list of variables that choose algorithms, with their values; needs no MPI_Init. False:
 * the library has no MPI_T. */
bool race_list(FILE *to);

/* After objects_make, on all ranks. `rows`: ROW;ROW;... A row is
 *
 *     CALL,BYTES,RANKS,VARIABLE,SEGMENTS,CANDIDATE,...
 *
 * and stands for the blocking calls of this name and size on communicators of so many ranks; a
 * VARIABLE is the name of one of MPI_T's, or -. A CANDIDATE is a value, or VALUE:SEGMENT to set
 * the variable SEGMENTS as well, or - for what was launched. All ranks get equal rows. */
bool race_begin(struct objects *objects, const struct kit *kit, const char *rows, char *why,
                size_t why_bytes);

void race_pass(int pass);

/* Around the call with this number of the kit. */
void race_enter(int call);
void race_leave(int error);

/* Writes FOLDER/rank-N.race: the host, how messages were counted, and a line for each call. Before
 * MPI_Finalize. */
bool race_end(const char *folder, int rank, char *why, size_t why_bytes);

#endif
