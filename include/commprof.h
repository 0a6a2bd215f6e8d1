/* What a program can tell commprof: that a training step begins, and which part of itself, a region, it is in.
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
 * Nothing has to be linked: these functions look whether the profiler is preloaded, and do nothing where it is not. They do nothing either
 * before MPI_Init, after MPI_Finalize, in a function that MPI itself has called, and in a forked child. C99 and later, C++; Linux. The
 * manual page commprof_step(3) tells the rest, and how to do this in Fortran and Python. */
#ifndef COMMPROF_H
#define COMMPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* So that a compiler that makes functions of these gives them names that the library's do not have. */
#ifdef __GNUC__
#define COMMPROF_HERE(NAME) __asm__(NAME "_here")
#else
#define COMMPROF_HERE(NAME)
#endif

/* A training step begins, and the one before ends. Steps are the process's, whichever thread says so. */
static inline void commprof_step(void) COMMPROF_HERE("commprof_step");

/* This thread enters a part of the program, within the one that it is in: its calls count as "epoch/forward". The name is copied. */
static inline void commprof_region_begin(const char *name) COMMPROF_HERE("commprof_region_begin");

/* This thread leaves the region that it has entered last. Without one, this does nothing. */
static inline void commprof_region_end(void) COMMPROF_HERE("commprof_region_end");

/* 1 while calls of this process are counted. */
static inline int commprof_is_recording(void) COMMPROF_HERE("commprof_is_recording");

/* COMMPROF_FIND(SYMBOL, function) sets a pointer to the function of the preloaded library; null where there is none. A weak reference does
 * this, but linkers drop one that code for a fixed address (-fno-pie) makes directly, so it is made through the global offset table. */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__)
#define COMMPROF_FIND(SYMBOL, function) __asm__(".weak " SYMBOL "\n\tmovq " SYMBOL "@GOTPCREL(%%rip), %0" : "=r"(function))
#elif defined(__GNUC__) && defined(__aarch64__)
#define COMMPROF_FIND(SYMBOL, function) \
    __asm__(".weak " SYMBOL "\n\tadrp %0, :got:" SYMBOL "\n\tldr %0, [%0, #:got_lo12:" SYMBOL "]" : "=r"(function))
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
