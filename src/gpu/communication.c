/* Kernel names are from the libraries' public sources. The kernels of a library that is missing
 * here count as computing; their names are in the results, so a reader can notice. */
#include "communication.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Patterns for a function's qualified name, matched from the start of any of its namespaces or of
 * the function itself. `*` matches anything; so does the end of a pattern. */
static const char *const OF_NCCL[] = {
    "ncclDevKernel",         /* NCCL and RCCL from 2.19 on */
    "ncclKernel_",           /* from 2.8 on */
    "ncclSymDevKernel",      /* on symmetric memory: 2.27, */
    "ncclSymk",              /* from 2.28 on */
    "ncclAllGather*Kernel_", /* before 2.8 */
    "ncclAllReduce*Kernel_",
    "ncclBroadcast*Kernel_",
    "ncclReduce*Kernel_",
    "ncclSendRecv*Kernel_",
    "mscclKernel_", /* MSCCL, in RCCL */
};
static const char *const OF_OTHERS[] = {
    /* NVSHMEM and rocSHMEM: signals, waits and copies; collectives on a stream */
    "nvshmem",
    "rocshmem",
    "alltoall*_on_stream_kernel",
    "barrier*_on_stream_kernel",
    "broadcast*_on_stream_kernel",
    "fcollect*_on_stream_kernel",
    "rdxn*_on_stream_kernel",
    "reducescatter*_on_stream_kernel",
    "sync*_on_stream_kernel",

    /* PyTorch: symmetric memory (c10d), by its own kernels, those that use NCCL's device functions,
     * and NVSHMEM */
    "c10d::nccl_extension::",
    "c10d::nvshmem_extension::",
    "multimem_",
    "one_shot_all_reduce",
    "two_shot_all_reduce",

    /* DeepEP: dispatch and combine, but not how they are laid out (deep_ep::layout) */
    "deep_ep::internode",
    "deep_ep::intranode",

    /* vLLM, SGLang, AITER */
    "cross_device_reduce_",
    "quickreduce::",

    /* TensorRT-LLM and FlashInfer: all-reduce, alone or with what follows it */
    "allreduce_fusion_kernel_",
    "lamport_style_one_shot_all_reduce",
    "lowPrecisionOneShotAllReduceKernel",
    "lowPrecisionTwoShotAllReduceKernel",
    "moeA2ACombineKernel",
    "moeA2ADispatchKernel",
    "moefinalize_allreduce_fusion_kernel_",
    "moereduce_allreduce_fusion_kernel_",
    "oneShotAllReduceKernel",
    "trtllm_mnnvl_allreduce::",
    "twoShotAllReduceKernel",

    /* Transformer Engine: overlap of GEMM and communication */
    "kuserbuffers_",
    "userbuffers_",
};

static bool matches(const char *pattern, const char *text)
{
    for (; *pattern && *pattern != '*'; pattern++, text++)
        if (*pattern != *text)
            return false;
    if (!*pattern)
        return true;
    for (; *text; text++)
        if (matches(pattern + 1, text))
            return true;
    return false;
}

/* The qualified name "a::b::c" in a mangled one: _Z <name> or _Z N <name> <name> ..., where each
 * name is its length and its text. Template arguments and parameters follow and are ignored. A name
 * that is not mangled is copied as it is. */
static void qualified_name(const char *mangled, char *name, size_t room)
{
    size_t used = 0;
    const char *at = mangled + 2;
    snprintf(name, room, "%s", mangled);
    if (strncmp(mangled, "_Z", 2) != 0)
        return;
    at += *at == 'N';
    *name = '\0';
    for (;;) {
        char *text;
        at += *at == 'L'; /* of internal linkage */
        if (*at < '1' || *at > '9')
            return;
        size_t bytes = strtoull(at, &text, 10);
        if (bytes > strnlen(text, bytes) || used + bytes + 3 > room)
            return;
        used += (size_t)snprintf(name + used, room - used, "%s%.*s", used ? "::" : "", (int)bytes,
                                 text);
        at = text + bytes;
    }
}

static bool matches_one(const char *text, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (matches(patterns[i], text))
            return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *patterns, size_t count)
{
    char path[1024];
    qualified_name(name, path, sizeof path);
    const char *from = path;
    while (from && !matches_one(from, patterns, count)) {
        from = strstr(from, "::");
        from = from ? from + 2 : NULL;
    }
    return from != NULL;
}

bool communication_is_nccls(const char *name)
{
    return is_one_of(name, OF_NCCL, sizeof OF_NCCL / sizeof *OF_NCCL);
}

bool communication_has_kernel(const char *name)
{
    return communication_is_nccls(name) ||
           is_one_of(name, OF_OTHERS, sizeof OF_OTHERS / sizeof *OF_OTHERS);
}
