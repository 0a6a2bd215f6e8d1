/* Questions that are answered by running something: the program's loader, the MPI library, a
 * launcher, Python. Each runs in a child process with a time limit of some seconds, so a crash or
 * hang does no harm. */
#ifndef COMMPROF_ASK_H
#define COMMPROF_ASK_H

#include <stdbool.h>

/* The libraries that the loader would load for a program with this library first in LD_PRELOAD, as
 * ldd prints them, and the loader's error messages. The caller frees it; NULL: the loader could not
 * be run. The program itself does not run. */
char *ask_loader(const char *loader, const char *program, const char *library);

/* First line: an MPI library's ABI. Following lines: its version string. If the library cannot be
 * loaded: an empty line, then the reason. The caller frees it. */
char *ask_mpi(const char *library);

/* A launcher's output for --version. The caller frees it. */
char *ask_launcher(const char *launcher);

/* The version of numpy that python3 has, which reports are written with; empty: none. The caller
 * frees it. */
char *ask_reports(void);

/* Imports mpi4py in this Python, which loads MPI but does not initialize it. Output lines: `version
 * TEXT`, `file PATH` for each mapped file, or `error TEXT`. The caller frees it. */
char *ask_python(const char *python);

#endif
