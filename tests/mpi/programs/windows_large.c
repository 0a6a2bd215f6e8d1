#define LARGE_COUNTS
#include "windows.c"
