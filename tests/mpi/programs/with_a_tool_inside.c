/* The program for a busy tool, with the tool linked in. */
#include "busy_tool.c"

#include "for_a_busy_tool.c"
