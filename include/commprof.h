/* Marks that a program can set for commprof: the beginning of a training step, and the part of the
 * program (a region) that a thread is in.
 *
 *     #include <commprof.h>
 *
 *     for (int step = 0; step < steps; step++) {
 *         commprof_step();
 *         commprof_region_begin("forward");
 *         ...
 *         commprof_region_end();
 *     }
 *
 * Nothing has to be linked: these functions check whether the profiler is preloaded, and do nothing
 * if it is not. They also do nothing before MPI_Init, after MPI_Finalize, in a function that MPI
 * itself has called, and in a forked child. C99 and later, C++; Linux. The manual page
 * commprof_step(3) has the details, also for Fortran and Python. */
#ifndef COMMPROF_H
#define COMMPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* If a compiler emits these inline functions out of line, their symbol names differ from the
 * library's. */
#ifdef __GNUC__
#define COMMPROF_HERE(NAME) __asm__(NAME "_here")
#else
#define COMMPROF_HERE(NAME)
#endif

/* Begin a training step; the previous step ends. Steps belong to the process: any thread may call
 * this. */
static inline void commprof_step(void) COMMPROF_HERE("commprof_step");

/* Begin a region on this thread, within the current one: its calls count under the path, such as
 * "epoch/forward". The name is copied. */
static inline void commprof_region_begin(const char *name) COMMPROF_HERE("commprof_region_begin");

/* End the region that this thread began last. Does nothing if none is open. */
static inline void commprof_region_end(void) COMMPROF_HERE("commprof_region_end");

/* Returns 1 while calls of this process are counted, else 0. */
static inline int commprof_is_recording(void) COMMPROF_HERE("commprof_is_recording");

/* COMMPROF_FIND(SYMBOL, function) sets a pointer to the function of the preloaded library; null
 * where there is none. A weak reference does this, but linkers drop one that code for a fixed
 * address (-fno-pie) makes directly, so it is made through the global offset table. */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__)
#define COMMPROF_FIND(SYMBOL, function) \
    __asm__(".weak " SYMBOL "\n\tmovq " SYMBOL "@GOTPCREL(%%rip), %0" : "=r"(function))
#elif defined(__GNUC__) && defined(__aarch64__)
#define COMMPROF_FIND(SYMBOL, function)                                                           \
    __asm__(".weak " SYMBOL "\n\tadrp %0, :got:" SYMBOL "\n\tldr %0, [%0, #:got_lo12:" SYMBOL "]" \
            : "=r"(function))
#else
#define COMMPROF_FIND(SYMBOL, function) ((function) = 0)
#endif

static inline void commprof_step(void)
{
    void (*function)(void);
    COMMPROF_FIND("commprof_step", function);
    if (function)
        function();
}

static inline void commprof_region_begin(const char *name)
{
    void (*function)(const char *);
    COMMPROF_FIND("commprof_region_begin", function);
    if (function)
        function(name);
}

static inline void commprof_region_end(void)
{
    void (*function)(void);
    COMMPROF_FIND("commprof_region_end", function);
    if (function)
        function();
}

static inline int commprof_is_recording(void)
{
    int (*function)(void);
    COMMPROF_FIND("commprof_is_recording", function);
    return function ? function() : 0;
}

#undef COMMPROF_FIND
#undef COMMPROF_HERE

#ifdef __cplusplus
}
#endif

#endif
