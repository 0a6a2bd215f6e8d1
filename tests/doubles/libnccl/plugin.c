#include "plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    GROUP = 1,
    COLL = 2,
    P2P = 4,
    KERNEL_CH = 64,
    KERNEL_CH_STOP = 22,
    GROUP_API = 256,
    COLL_API = 512,
    P2P_API = 1024,
    CE_COLL = 4096,
    MOST = 2048
};

struct descr_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t gpu_ns;
        } kernel;
        char room[256];
    };
};

/* Version 5 lacks ce_coll and is otherwise the same. */
struct descr_v6 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool captured;
        } p2p_api;
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algo, *proto;
            void *parent_group;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *parent_group;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t gpu_ns;
        } kernel;
        struct {
            uint64_t seq;
            const char *func;
            const void *send;
            void *recv;
            size_t count;
            int root;
            const char *datatype, *sync_strategy;
            bool intra_batch_sync;
            uint32_t batch_size, batches, ce_seq;
            void *stream;
        } ce_coll;
        char room[256];
    };
};

struct plugin {
    const char *name;
    void *init;
    int (*start)(void *context, void **handle, void *descr);
    int (*stop)(void *handle);
    int (*record)(void *handle, int state, void *args);
    int (*finalize)(void *context);
};

typedef int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                    int nranks, int rank, void *log);
typedef int init_v5(void **context, uint64_t hash, int *mask, const char *name, int nodes,
                    int nranks, int rank, void *log);

static const struct plugin *plugin;
static int version, mask;
static _Thread_local struct {
    struct descr_v4 descr;
    struct plugin_comm *comm;
    void *handle;
    bool is_on_copy_engines;
} tasks[MOST];
static _Thread_local int task_count;

int plugin_load(int newest)
{
    const char *name = getenv("NCCL_PROFILER_PLUGIN");
    if (!name)
        return 0;
    void *library =
        dlopen(strcasecmp(name, "STATIC_PLUGIN") == 0 ? NULL : name, RTLD_NOW | RTLD_LOCAL);
    static const char *const NAMES[] = {"ncclProfiler_v4", "ncclProfiler_v5", "ncclProfiler_v6"};
    for (version = newest; library && version >= 4; version--)
        if ((plugin = dlsym(library, NAMES[version - 4])))
            return version;
    return version = 0;
}

void plugin_begin(struct plugin_comm *comm, uint64_t hash, const char *name, int nranks, int rank)
{
    comm->rank = rank;
    comm->context = NULL;
    if (version == 4)
        ((init_v4 *)plugin->init)(&comm->context, &mask, name, hash, 1, nranks, rank, NULL);
    else if (version >= 5)
        ((init_v5 *)plugin->init)(&comm->context, hash, &mask, name, 1, nranks, rank, NULL);
}

void plugin_end(struct plugin_comm *comm)
{
    if (plugin && comm->context)
        plugin->finalize(comm->context);
}

/* How NCCL would do it: small ones by another protocol. */
static const char *protocol_for(size_t count)
{
    return count < 50 ? "LL" : "SIMPLE";
}

static uint8_t channels_for(size_t count)
{
    return count < 50 ? 1 : 2;
}

static uint8_t channels_of(int task)
{
    if (tasks[task].is_on_copy_engines)
        return 0;
    return tasks[task].descr.type == P2P ? tasks[task].descr.p2p.channels
                                         : tasks[task].descr.coll.channels;
}

static uint64_t count_of(int task)
{
    return tasks[task].descr.type == P2P ? tasks[task].descr.p2p.count
                                         : tasks[task].descr.coll.count;
}

static bool is_message(const char *function)
{
    return strcmp(function, "Send") == 0 || strcmp(function, "Recv") == 0;
}

static void raise_call(struct plugin_comm *comm, const char *function, size_t count,
                       const char *datatype, int root, bool is_captured)
{
    struct descr_v6 descr = {.type = GROUP_API, .rank = comm->rank};
    void *of_group = &descr, *handle = &descr;
    plugin->start(comm->context, &of_group, &descr);
    descr = (struct descr_v6){
        .type = is_message(function) ? P2P_API : COLL_API, .parent = of_group, .rank = comm->rank};
    if (descr.type == P2P_API) {
        descr.p2p_api.func = function;
        descr.p2p_api.count = count;
        descr.p2p_api.datatype = datatype;
        descr.p2p_api.captured = is_captured;
    } else {
        descr.coll_api.func = function;
        descr.coll_api.count = count;
        descr.coll_api.datatype = datatype;
        descr.coll_api.root = root;
        descr.coll_api.captured = is_captured;
    }
    if (mask & (int)descr.type) {
        plugin->start(comm->context, &handle, &descr);
        if (handle)
            plugin->stop(handle);
    }
    if (of_group)
        plugin->stop(of_group);
}

void plugin_call(struct plugin_comm *comm, const char *function, size_t count, const char *datatype,
                 int root, bool is_captured)
{
    if (version >= 5)
        raise_call(comm, function, count, datatype, root, is_captured);
    if (version == 0)
        return;
    struct descr_v4 *descr = &tasks[task_count].descr;
    tasks[task_count].is_on_copy_engines = false;
    tasks[task_count++].comm = comm;
    *descr = (struct descr_v4){.type = is_message(function) ? P2P : COLL, .rank = comm->rank};
    if (descr->type == P2P) {
        descr->p2p.func = function;
        descr->p2p.count = count;
        descr->p2p.datatype = datatype;
        descr->p2p.peer = root;
        descr->p2p.channels = 1;
    } else {
        descr->coll.func = function;
        descr->coll.count = count;
        descr->coll.datatype = datatype;
        descr->coll.root = root;
        descr->coll.algo = "RING";
        descr->coll.proto = protocol_for(count);
        descr->coll.channels = channels_for(count);
    }
}

void plugin_call_on_copy_engines(struct plugin_comm *comm, const char *function, size_t count,
                                 const char *datatype, int root)
{
    int before = task_count;
    if (version >= 5)
        plugin_call(comm, function, count, datatype, root, false);
    for (int i = before; i < task_count; i++)
        tasks[i].is_on_copy_engines = true;
}

/* Each channel of an operation begins 10 ns after the one before, and all take 1000 ns for an
 * element; operations of a launch together. */
static void run_kernels(void)
{
    for (int i = 0; i < task_count; i++)
        for (uint8_t channel = 0; channel < channels_of(i) && mask & KERNEL_CH; channel++) {
            uint64_t begin_ns = 5000000 + 10u * channel, end_ns = begin_ns + 1000 * count_of(i);
            struct descr_v4 four = {
                .type = KERNEL_CH, .parent = tasks[i].handle, .kernel = {channel, begin_ns}};
            struct descr_v6 five = {
                .type = KERNEL_CH, .parent = tasks[i].handle, .kernel = {channel, begin_ns}};
            void *handle = NULL;
            plugin->start(tasks[i].comm->context, &handle, version == 4 ? (void *)&four : &five);
            if (handle) {
                plugin->record(handle, KERNEL_CH_STOP, &end_ns);
                plugin->stop(handle);
            }
        }
}

/* Only version 6 has an event for it, outside groups. */
static void raise_ce_coll(int i)
{
    struct descr_v4 *task = &tasks[i].descr;
    struct descr_v6 descr = {.type = CE_COLL, .rank = task->rank};
    descr.ce_coll.func = task->coll.func;
    descr.ce_coll.count = task->coll.count;
    descr.ce_coll.root = task->coll.root;
    descr.ce_coll.datatype = task->coll.datatype;
    descr.ce_coll.sync_strategy = "UC";
    tasks[i].handle = NULL;
    if (version >= 6 && mask & CE_COLL)
        plugin->start(tasks[i].comm->context, &tasks[i].handle, &descr);
}

/* Version 5: what was called is told of as it is launched, too. */
static void raise_launch(int i, void *of_group)
{
    if (tasks[i].is_on_copy_engines) {
        raise_ce_coll(i);
        return;
    }
    struct descr_v4 *task = &tasks[i].descr;
    struct descr_v6 descr = {.type = task->type, .parent = task, .rank = task->rank};
    if (task->type == P2P) {
        descr.p2p.func = task->p2p.func;
        descr.p2p.count = task->p2p.count;
        descr.p2p.datatype = task->p2p.datatype;
        descr.p2p.peer = task->p2p.peer;
        descr.p2p.channels = task->p2p.channels;
        descr.p2p.parent_group = of_group;
    } else {
        descr.coll.func = task->coll.func;
        descr.coll.count = task->coll.count;
        descr.coll.datatype = task->coll.datatype;
        descr.coll.root = task->coll.root;
        descr.coll.algo = task->coll.algo;
        descr.coll.proto = task->coll.proto;
        descr.coll.channels = task->coll.channels;
        descr.coll.parent_group = of_group;
    }
    tasks[i].handle = NULL;
    if (mask & task->type)
        plugin->start(tasks[i].comm->context, &tasks[i].handle, &descr);
}

static void raise_launches(void)
{
    struct descr_v6 descr = {.type = GROUP};
    void *of_group = NULL;
    if (task_count && mask & (GROUP | COLL | P2P))
        plugin->start(tasks[0].comm->context, &of_group, &descr);
    for (int i = 0; i < task_count; i++)
        raise_launch(i, of_group);
    for (int i = 0; i < task_count; i++)
        if (tasks[i].handle)
            plugin->stop(tasks[i].handle);
    if (of_group)
        plugin->stop(of_group);
    run_kernels();
    task_count = 0;
}

void plugin_launch(void)
{
    struct descr_v4 descr = {.type = GROUP};
    void *of_group = NULL;
    if (version >= 5)
        raise_launches();
    if (task_count && mask & GROUP)
        plugin->start(tasks[0].comm->context, &of_group, &descr);
    for (int i = 0; i < task_count && of_group; i++) {
        tasks[i].handle = NULL;
        tasks[i].descr.parent = of_group;
        if (mask & tasks[i].descr.type)
            plugin->start(tasks[i].comm->context, &tasks[i].handle, &tasks[i].descr);
    }
    for (int i = 0; i < task_count && of_group; i++)
        if (tasks[i].handle)
            plugin->stop(tasks[i].handle);
    if (of_group)
        plugin->stop(of_group);
    if (version == 4 && of_group)
        run_kernels();
    task_count = 0;
}
