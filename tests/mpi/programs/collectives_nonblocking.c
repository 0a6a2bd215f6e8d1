#define NONBLOCKING
#include "collectives.c"
