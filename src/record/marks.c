/* The exported functions that the inline functions of include/commprof.h call if the library is
 * preloaded. */
#include "regions.h"

#define EXPORT __attribute__((visibility("default"), noinline))

EXPORT void commprof_step(void);
EXPORT void commprof_region_begin(const char *name);
EXPORT void commprof_region_end(void);
EXPORT int commprof_is_recording(void);

void commprof_step(void)
{
    struct thread *thread = regions_thread(__builtin_frame_address(0));
    if (!thread)
        return;
    regions_step(thread);
    thread_return(thread);
}

void commprof_region_begin(const char *name)
{
    struct thread *thread = regions_thread(__builtin_frame_address(0));
    if (!thread)
        return;
    regions_begin(thread, name, REGIONS_OF_PROGRAM);
    thread_return(thread);
}

void commprof_region_end(void)
{
    struct thread *thread = regions_thread(__builtin_frame_address(0));
    if (!thread)
        return;
    regions_end(thread, REGIONS_OF_PROGRAM);
    thread_return(thread);
}

int commprof_is_recording(void)
{
    return __atomic_load_n(&thread_epoch, __ATOMIC_RELAXED) &&
           __atomic_load_n(&the_ledger.header->counting_since_ns, __ATOMIC_RELAXED);
}
