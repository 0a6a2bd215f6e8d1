#define ROUNDS 1 /* what is reduced in place is not the same again */
#define PERSISTENT
#define LARGE_COUNTS
#include "in_place.c"
