#define PERSISTENT
#include "neighborhoods.c"
