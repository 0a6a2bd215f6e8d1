#define LARGE_COUNTS
#include "point_to_point.c"
