#define NONBLOCKING
#define LARGE_COUNTS
#include "in_place.c"
