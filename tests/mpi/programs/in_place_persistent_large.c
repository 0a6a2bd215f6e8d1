#define ROUNDS 1 /* an in-place reduction changes its input */
#define PERSISTENT
#define LARGE_COUNTS
#include "in_place.c"
