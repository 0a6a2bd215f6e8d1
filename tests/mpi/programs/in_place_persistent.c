#define ROUNDS 1 /* what is reduced in place is not the same again */
#define PERSISTENT
#include "in_place.c"
