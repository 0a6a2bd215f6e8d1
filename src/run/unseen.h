/* Gaps that the profiler knows of: facts unseen.<reason> in the ledger, and a line at the exit of a
 * process of which nothing was recorded although it communicated.
 *
 *     unseen.tool     paths of PMPI tools that get the job's calls before us, separated by commas:
 *                     their own calls count as the job's
 *     unseen.dlsym    number of look-ups by dlsym that COMMPROF_DLSYM=off has left with the MPI
 *                     library
 *     unseen.bypass   path of a library, opened with RTLD_DEEPBIND, whose calls reach MPI without
 *                     us
 *     unseen.library  path of an MPI library that has been initialized and is not the one that is
 *                     profiled
 *     unseen.gloo     "PyTorch": it has process groups of gloo */
#ifndef COMMPROF_UNSEEN_H
#define COMMPROF_UNSEEN_H

void unseen_record_at_begin(void);
void unseen_record_at_end(void);

/* Why nothing was recorded of a process that communicated; NULL: it did not. Costs a walk over the
 * names of the loaded libraries. */
const char *unseen_altogether(void);

#endif
