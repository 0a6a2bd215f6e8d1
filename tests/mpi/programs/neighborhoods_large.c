#define LARGE_COUNTS
#include "neighborhoods.c"
