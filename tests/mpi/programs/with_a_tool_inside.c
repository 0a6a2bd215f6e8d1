/* The program for tools, with a busy one linked in. */
#include "busy_tool.c"

#include "for_tools.c"
