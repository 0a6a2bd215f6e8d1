/* Epochs of post, start, complete and wait on a window: which ranks a call opens or closes an epoch
 * with, and the how-manieth it is with each. The n-th Win_start of an origin whose group has a
 * target is matched by the n-th Win_post of that target whose group has the origin, so a reader of
 * both ranks' samples can match them exactly.
 *
 *     target  Win_post ........ Win_wait         the exposure
 *     origin       Win_start .. Win_complete     the access
 *
 * Groups are compared by their members, never by their handles, which may be freed and reused. All
 * epochs are counted, also while calls are not. */
#ifndef COMMPROF_EPOCHS_H
#define COMMPROF_EPOCHS_H

#include "call.h"

enum { EPOCHS_PARTNERS_MAX = COMMUNICATORS_SMALL_GROUP };
enum epochs_side { EPOCHS_ACCESS, EPOCHS_EXPOSURE };

/* `call` has opened an epoch with this group, or has closed the one that was open; `window` is the
 * description of the window (NULL: unknown, or the call has failed). If the call has a sample, each
 * partner gets one, too. MPI allows one epoch of a side at a time, so no two threads are here with
 * one side of a window. */
void epochs_open(const struct call *call, const struct ledger_sample *sample,
                 struct communicator *window, enum epochs_side side, mpi_handle group);
void epochs_close(const struct call *call, const struct ledger_sample *sample,
                  const struct communicator *window, enum epochs_side side);

#endif
