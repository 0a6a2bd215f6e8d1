#define PERSISTENT
#define LARGE_COUNTS
#include "collectives.c"
