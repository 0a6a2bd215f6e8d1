/* If a result of MPI is wrong, the program prints it and fails. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(claim) ((claim) ? (void)0 : check_failed(__FILE__, __LINE__, #claim))

static inline void check_failed(const char *file, int line, const char *claim)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
    exit(99);
}

#endif
