/* commprof-run --doctor: whether a program can be profiled, and why not. */
#ifndef COMMPROF_DOCTOR_H
#define COMMPROF_DOCTOR_H

#include <stdbool.h>

/* Print one line for each finding about a program (as typed, with its arguments; searched in PATH),
 * and the verdict in the last line. `library` would be the first in LD_PRELOAD. True if the program
 * can be profiled. */
bool doctor_examine(char *const command[], const char *library);

#endif
