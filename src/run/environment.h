/* The environment variables that set up MPI libraries, launchers, transports and OpenMP, as facts;
 * and the files that they name. */
#ifndef COMMPROF_ENVIRONMENT_H
#define COMMPROF_ENVIRONMENT_H

#include <stddef.h>

/* Write a fact about the job or its machine, if settings.facts has its key. */
void environment_fact(const char *key, const char *value);

/* Writes a fact env.<variable> for each, and file.<variable> for a file of settings: its text up to
 * 4 kB, else its size and a hash. Secrets are masked in both. */
void environment_record(void);

/* The value of a setting as it may be recorded, with secrets masked. The result stays valid until
 * the next call. */
const char *environment_masked(const char *name, size_t length, const char *value);

#endif
