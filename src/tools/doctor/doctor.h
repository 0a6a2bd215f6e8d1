/* commprof-run --doctor: whether a program can be profiled, and why not. */
#ifndef COMMPROF_DOCTOR_H
#define COMMPROF_DOCTOR_H

#include <stdbool.h>

/* Print one line for each thing found out about a program (as typed, with its arguments; looked for in PATH), and a verdict in the last. `library` is what
 * would be preloaded, after what LD_PRELOAD has already. True: it can be profiled. */
bool doctor_examine(char *const command[], const char *library);

#endif
