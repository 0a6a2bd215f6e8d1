#define NONBLOCKING
#include "in_place.c"
