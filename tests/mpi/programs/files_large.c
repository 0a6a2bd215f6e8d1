#define LARGE_COUNTS
#include "files.c"
