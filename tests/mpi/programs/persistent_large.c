#define LARGE_COUNTS
#include "persistent.c"
