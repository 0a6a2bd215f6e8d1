/* Finds the file that the kernel runs for the command that a user typed. */
#ifndef COMMPROF_PROGRAM_H
#define COMMPROF_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The file that execvp would run: the name itself if it has a slash, else the first in PATH. False,
 * with errno. */
bool program_find(const char *name, char *path, size_t bytes);

/* The name of the program that runs this file, if it is a script: that of its first line (/bin/sh
 * if there is none), or the one that `env` would run. False if it is not a script. */
bool program_interpreter(const char *script, char *interpreter, size_t bytes);

/* The kind of a program, by its name alone. */
enum program_kind {
    PROGRAM_ORDINARY,
    PROGRAM_LAUNCHER,    /* mpirun: starts ranks */
    PROGRAM_PYTHON,      /* loads MPI when a script imports mpi4py or the like */
    PROGRAM_INTERPRETER, /* loads what its script loads */
    PROGRAM_STARTER,     /* a shell, env, numactl: runs other programs */
};
enum program_kind program_kind(const char *path);

/* The script among the arguments of a Python; NULL: none, or it cannot be distinguished from the
 * options. */
const char *program_python_script(char *const arguments[]);

const char *program_name(const char *path); /* its last component */

#endif
