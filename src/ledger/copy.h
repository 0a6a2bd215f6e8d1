/* A copy of the ledger, for readers that cannot reach it where it lies. */
#ifndef COMMPROF_COPY_H
#define COMMPROF_COPY_H

/* Write the_ledger as it is now to `path`, complete or not at all, while the job goes on counting: what it adds meanwhile is in the copy
 * or not, as it comes. Returns 0 or an errno: EAGAIN if the table of message sizes was rearranged each time, EEXIST if the file there is
 * none of our copies. Takes no lock and no memory. One thread at a time, one path. */
int ledger_copy(const char *path);

/* Delete the copy, if the file there is one of ours. */
void ledger_copy_remove(const char *path);

#endif
