#define LARGE_COUNTS
#include "collectives.c"
