#include "unseen.h"

#include "base/scope.h"
#include "ledger/ledger.h"
#include "mpi/launcher.h"
#include "mpi/provider.h"
#include "record/call_table.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_pytorch(const struct scope_import *import, void *data)
{
    (void)import, (void)data;
    return true;
}

static bool has_pytorch(void)
{
    return scope_bindings("libtorch", is_pytorch, NULL);
}

/* PyTorch names the threads of its process groups for gloo, and gloo its own. Both end with the
 * process group. */
static bool is_a_thread_of_gloo(const char *thread)
{
    char file[sizeof "/proc/self/task//comm" + NAME_MAX], name[32] = "";
    snprintf(file, sizeof file, "/proc/self/task/%s/comm", thread);
    FILE *comm = fopen(file, "re");
    if (!comm)
        return false;
    bool is = fgets(name, sizeof name, comm) && strstr(name, "gloo_");
    fclose(comm);
    return is;
}

static bool has_gloo(void)
{
    DIR *threads = has_pytorch() ? opendir("/proc/self/task") : NULL;
    bool has = false;
    for (struct dirent *thread; threads && !has && (thread = readdir(threads));)
        has = is_a_thread_of_gloo(thread->d_name);
    if (threads)
        closedir(threads);
    return has;
}

/* By what torch.distributed is started with: its launcher's variables, or the start by another
 * process with PyTorch (mp.spawn). Processes that a rank starts for its data look the same; if the
 * rank is recorded, they are known by its ledger. */
static bool is_a_rank_of_pytorch(void)
{
    if (!getenv("MASTER_ADDR") || !has_pytorch() || launcher_has_ancestor_with(".ledger"))
        return false;
    const char *size = getenv("WORLD_SIZE");
    return getenv("RANK") && size ? atoi(size) > 1 : launcher_has_ancestor_with("/libtorch");
}

static void record_tools(void)
{
    char tools[2 * PATH_MAX] = "", path[PATH_MAX];
    for (unsigned id = CALL_NONE + 1; id < CALL_FIRST_OF_NCCL; id++) {
        bool is_new =
            provider_tool_before_us(CALL_TABLE[id].name, path, sizeof path) && !strstr(tools, path);
        if (is_new && strlen(tools) + strlen(path) + sizeof ", " <= sizeof tools)
            strcat(strcat(tools, *tools ? ", " : ""), path);
    }
    if (*tools)
        ledger_fact("unseen.tool", tools);
}

void unseen_record_at_begin(void)
{
    record_tools();
}

void unseen_record_at_end(void)
{
    char path[PATH_MAX], number[16];
    unsigned look_ups = provider_look_ups_unanswered();
    snprintf(number, sizeof number, "%u", look_ups);
    if (look_ups > 0)
        ledger_fact("unseen.dlsym", number);
    if (provider_caller_past_us(path))
        ledger_fact("unseen.bypass", path);
    if (provider_unseen(false, path, sizeof path))
        ledger_fact("unseen.library", path);
    if (has_gloo())
        ledger_fact("unseen.gloo", "PyTorch");
}

const char *unseen_altogether(void)
{
    static char why[PATH_MAX + 256];
    char path[PATH_MAX];
    if (provider_unseen(true, path, sizeof path))
        snprintf(
            why, sizeof why,
            "the program has initialized MPI (%s) through functions that the profiler does not "
            "intercept; %s",
            path,
            provider_look_ups_unanswered() > 0
                ? "COMMPROF_DLSYM is off: with --dlsym, look-ups by dlsym are answered"
                : "--dlsym covers look-ups by dlsym, but not dlvsym, dlmopen and RTLD_DEEPBIND");
    else if (is_a_rank_of_pytorch() || has_gloo())
        snprintf(why, sizeof why,
                 "torch.distributed has called neither MPI nor NCCL; gloo, its backend for CPUs, "
                 "is not profiled");
    else
        return NULL;
    return why;
}
