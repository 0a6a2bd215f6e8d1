/* NCCL's side of its profiler plugins, as our double of it and a program with NCCL inside
 * (tests/mpi/programs/nccl_static.c) have it. The plugin is looked for as NCCL does:
 * NCCL_PROFILER_PLUGIN, STATIC_PLUGIN for the process itself, the newest version first.
 *
 * What it tells is NCCL's of 2.27 for version 4, of 2.28 for version 5, of 2.29 for version 6: a
 * call raises an event by itself (versions 5 and 6), or an operation does when its group is
 * launched, if the plugin has given the group a handle (version 4). */
#ifndef NCCL_PLUGIN_DOUBLE_H
#define NCCL_PLUGIN_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plugin_comm {
    void *context;
    int rank;
};

/* The version that was found, at most `newest`; 0: none. */
int plugin_load(int newest);

void plugin_begin(struct plugin_comm *comm, uint64_t hash, const char *name, int nranks, int rank);
void plugin_end(struct plugin_comm *comm);

/* An operation: `function` "AllReduce", `datatype` "ncclFloat32". Version 4: it is launched at
 * plugin_launch. */
void plugin_call(struct plugin_comm *comm, const char *function, size_t count, const char *datatype,
                 int root, bool is_captured);

/* A collective without a kernel: as it is launched, only version 6 tells of it. NCCL 2.27 has none,
 * so by version 4 nothing is told. */
void plugin_call_on_copy_engines(struct plugin_comm *comm, const char *function, size_t count,
                                 const char *datatype, int root);
void plugin_launch(void);

#endif
