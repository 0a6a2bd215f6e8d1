/* Finds which MPI library serves a call and who makes it, once for each call site; the answer is
 * cached by return address.
 *
 * A call counts if the job made it: not if the MPI library called its own functions (ROMIO, for
 * one, uses the public names), and not if it belongs to a second MPI library in the same process.
 * Each call is passed on to the library that its caller is bound to, as the dynamic linker would
 * have done without the profiler. */
#ifndef COMMPROF_PROVIDER_H
#define COMMPROF_PROVIDER_H

#include "mpi_abi.h"

#include <limits.h>

enum { PROVIDERS_MAX = 4 };

/* Which of a function's two names the caller used. */
enum entry { ENTRY_MPI, ENTRY_PMPI };

/* A call site, packed. Bit 0: the job itself makes the call. Bit 1: the site is in another PMPI
 * tool, which comes after us. From bit 8: the provider that serves it. */
typedef unsigned call_site;

enum { SITE_JOB = 1, SITE_TOOL = 2, SITES = 8192 };

static inline unsigned site_provider(call_site site)
{
    return site >> 8;
}

/* Each word holds a return address (upper 48 bits) and its site (lower 16), so that reading it is
 * one atomic load. */
extern uint64_t provider_sites[SITES];

call_site provider_site_classify(const void *return_address);

static inline unsigned provider_site_slot(uint64_t address)
{
    return (unsigned)(address ^ address >> 13) % SITES;
}

static inline call_site provider_site(const void *return_address)
{
    uint64_t address = (uint64_t)return_address;
    uint64_t word = __atomic_load_n(&provider_sites[provider_site_slot(address)], __ATOMIC_RELAXED);
    uint64_t difference = word ^ address << 16;
    return __builtin_expect(difference <= 0xffff, 1) ? (call_site)difference
                                                     : provider_site_classify(return_address);
}

/* The function `name` ("Allreduce") that callers of that provider reach through an entry: another
 * PMPI tool's MPI_Allreduce if one comes after us, else the library's own. NULL if the library has
 * no such function. */
void *provider_function(unsigned provider, enum entry entry, const char *name);

/* For a look-up by dlsym: our wrapper called `name` if `function` belongs to the profiled MPI
 * library, else NULL. If no MPI library is profiled yet, the one of `function` is from now on.
 * `return_address`: who looks it up. */
void *provider_wrapper(void *function, const char *name, const void *return_address);

/* How many look-ups found a function of an MPI library and were not answered with a wrapper,
 * because of COMMPROF_DLSYM=off. */
unsigned provider_look_ups_unanswered(void);

/* Another PMPI tool that defines a function ("MPI_Send") and gets the job's calls of it before us:
 * a library preloaded before us, or the program itself. Calls that it makes of its own are
 * indistinguishable from the job's. False: there is none. */
bool provider_tool_before_us(const char *function, char *path, size_t bytes);

/* A library of this process whose calls go to the profiled MPI library without us: it was opened
 * with RTLD_DEEPBIND. */
bool provider_caller_past_us(char path[PATH_MAX]);

/* An MPI library of this process that has been initialized and is not the profiled one: it is the
 * second, preloading does not reach it (RTLD_DEEPBIND, dlmopen), or COMMPROF_DLSYM is off. If
 * nothing is recorded, none is the profiled one. */
bool provider_unseen(bool nothing_is_recorded, char *path, size_t bytes);

/* The path of the profiled library; "" before the first call. */
const char *provider_path(void);

#endif
