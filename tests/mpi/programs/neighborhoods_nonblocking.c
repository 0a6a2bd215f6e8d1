#define NONBLOCKING
#include "neighborhoods.c"
