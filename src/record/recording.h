/* Decides when calls are recorded and counted: from the end of MPI_Init to MPI_Finalize, and as
 * MPI_Pcontrol and the time window say. */
#ifndef COMMPROF_RECORDING_H
#define COMMPROF_RECORDING_H

#include <stdbool.h>

void recording_begin(void);
void recording_end(void);

/* For MPI_Pcontrol and the time window: pause or resume counting; reset all sums to zero. */
void recording_switch(bool on);
bool recording_is_on(void);
void recording_reset(void);

/* Name for the report what pauses counting ("MPI_Pcontrol(0)"); the fact "unseen.off" lists each
 * once. */
void recording_paused_by(const char *what);

#endif
