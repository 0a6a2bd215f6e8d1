/* Questions that are answered by running something: the program's loader, the MPI library, Python. Each runs in a process of its own,
 * has some seconds, and may do there what it likes. */
#ifndef COMMPROF_ASK_H
#define COMMPROF_ASK_H

#include <stdbool.h>

/* What the loader would load for a program with this library preloaded, after what LD_PRELOAD has already, as ldd prints it, and what it
 * complains of. To be freed; NULL: it could not be asked. The program itself does not run. */
char *ask_loader(const char *loader, const char *program, const char *library);

/* An MPI library's ABI in the first line, its version string in those that follow; an empty first line, and the reason after it,
 * where it could not be loaded. To be freed. */
char *ask_mpi(const char *library);

/* What a launcher says of its version. To be freed. */
char *ask_launcher(const char *launcher);

/* What a Python loads for mpi4py: its output lines are `version TEXT`, `file PATH` for each file in memory, or `error TEXT`. To be
 * freed. MPI is loaded but not initialized. */
char *ask_python(const char *python);

#endif
