/* The inline functions of commprof.h as functions that Fortran can call (commprof_marks.f90). */
#include <commprof.h>

void commprof_mark_step(void);
void commprof_mark_region_begin(const char *name);
void commprof_mark_region_end(void);

void commprof_mark_step(void)
{
    commprof_step();
}

void commprof_mark_region_begin(const char *name)
{
    commprof_region_begin(name);
}

void commprof_mark_region_end(void)
{
    commprof_region_end();
}
