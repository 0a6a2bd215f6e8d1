#define ROUNDS 1 /* an in-place reduction changes its input */
#define PERSISTENT
#include "in_place.c"
