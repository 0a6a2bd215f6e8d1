#define PERSISTENT
#include "collectives.c"
