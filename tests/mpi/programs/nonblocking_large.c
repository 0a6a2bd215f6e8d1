#define LARGE_COUNTS
#include "nonblocking.c"
