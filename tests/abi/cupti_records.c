/* Compiled with NVIDIA's headers by test_cupti_records.py, which says which form of each record is
 * the newest there (-DKERNEL and so on): our view of the records lies where theirs does, and our
 * double of libcupti writes what a program that reads theirs understands. */
#include <cupti_activity.h>
#include <cupti_version.h>

#include "cupti/records.h"
#include "gpu_double.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME(OURS, OUR_FIELD, THEIRS, THEIR_FIELD)                                                 \
    _Static_assert(offsetof(struct OURS, OUR_FIELD) == offsetof(THEIRS, THEIR_FIELD), #OUR_FIELD); \
    _Static_assert(sizeof(((struct OURS *)0)->OUR_FIELD) == sizeof(((THEIRS *)0)->THEIR_FIELD),    \
                   #OUR_FIELD)
#define SAME_PLACE_AND_TIME(OURS, THEIRS)           \
    SAME(OURS, kind, THEIRS, kind);                 \
    SAME(OURS, start, THEIRS, start);               \
    SAME(OURS, end, THEIRS, end);                   \
    SAME(OURS, device, THEIRS, deviceId);           \
    SAME(OURS, context, THEIRS, contextId);         \
    SAME(OURS, stream, THEIRS, streamId);           \
    SAME(OURS, correlation, THEIRS, correlationId); \
    SAME(OURS, graph_node, THEIRS, graphNodeId);    \
    _Static_assert(sizeof(struct OURS) <= sizeof(THEIRS), "we read no more than there is")
#define SAME_COPY(OURS, THEIRS)                    \
    SAME(OURS, copy_kind, THEIRS, copyKind);       \
    SAME(OURS, source_kind, THEIRS, srcKind);      \
    SAME(OURS, destination_kind, THEIRS, dstKind); \
    SAME(OURS, bytes, THEIRS, bytes)

SAME_PLACE_AND_TIME(cupti_kernel, KERNEL);
SAME(cupti_kernel, name, KERNEL, name);
SAME(cupti_kernel, grid[0], KERNEL, gridX);
SAME(cupti_kernel, grid[1], KERNEL, gridY);
SAME(cupti_kernel, grid[2], KERNEL, gridZ);
SAME_PLACE_AND_TIME(cupti_copy, MEMCPY);
SAME_COPY(cupti_copy, MEMCPY);
SAME_PLACE_AND_TIME(cupti_peer_copy, PEER);
SAME_COPY(cupti_peer_copy, PEER);
SAME(cupti_peer_copy, destination_device, PEER, dstDeviceId);
SAME_PLACE_AND_TIME(cupti_set, MEMSET);
SAME(cupti_set, bytes, MEMSET, bytes);

_Static_assert((int)CUPTI_MEMCPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY &&
                   (int)CUPTI_MEMSET == (int)CUPTI_ACTIVITY_KIND_MEMSET,
               "kinds");
_Static_assert((int)CUPTI_CONCURRENT_KERNEL == (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kinds");
_Static_assert((int)CUPTI_MEMCPY2 == (int)CUPTI_ACTIVITY_KIND_MEMCPY2, "kinds");

static int kernels, copies, peer_copies, sets;

static void request(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
    *buffer = malloc(*bytes = 65536);
    *most_records = 0;
}

static void read_record(const CUpti_Activity *record)
{
    const KERNEL *kernel = (const KERNEL *)record;
    const MEMCPY *copy = (const MEMCPY *)record;
    const PEER *peer = (const PEER *)record;
    const MEMSET *set = (const MEMSET *)record;
    switch ((int)record->kind) {
    case CUPTI_CONCURRENT_KERNEL:
        assert(kernel->end - kernel->start == 1000 && kernel->deviceId == 0 &&
               kernel->contextId == 1 && kernel->streamId == 7);
        assert(!strcmp(kernel->name, "a_kernel") && kernel->correlationId &&
               kernel->graphNodeId == 0 && kernel->graphId == 0);
        assert(kernel->gridX == 2 && kernel->gridY == 3 && kernel->gridZ == 4);
        kernels++;
        break;
    case CUPTI_MEMCPY:
        assert(copy->end - copy->start == 2000 && copy->bytes == 100 &&
               copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
        assert(copy->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE &&
               copy->dstKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
        assert(copy->contextId == 1 && copy->streamId == 7 && copy->correlationId &&
               copy->graphNodeId == 0);
        copies++;
        break;
    case CUPTI_MEMCPY2:
        assert(peer->end - peer->start == 3000 && peer->bytes == 10 &&
               peer->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
        assert(peer->srcDeviceId == 0 && peer->dstDeviceId == 1 && peer->dstContextId == 2 &&
               peer->correlationId && !peer->graphNodeId);
        peer_copies++;
        break;
    case CUPTI_MEMSET:
        assert(set->end - set->start == 4000 && set->bytes == 50 && set->value == 9 &&
               set->graphNodeId && set->graphId == 1);
        sets++;
    }
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                     size_t valid_bytes)
{
    (void)context, (void)stream, (void)bytes;
    const size_t sizes[] = {[CUPTI_MEMCPY] = sizeof(MEMCPY),
                            [CUPTI_MEMSET] = sizeof(MEMSET),
                            [CUPTI_CONCURRENT_KERNEL] = sizeof(KERNEL),
                            [CUPTI_MEMCPY2] = sizeof(PEER)};
    size_t at = 0;
    for (CUpti_Activity *record = NULL;
         cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS;
         at += sizes[record->kind]) {
        assert((uint8_t *)record == buffer + at);
        read_record(record);
    }
    assert(at == valid_bytes);
}

int main(void)
{
    CUcontext first, second;
    CUdeviceptr here, there;
    char host[100] = "";
    CUgraph graph;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&first, 0);
    cuDevicePrimaryCtxRetain(&second, 1);
    cuCtxSetCurrent(second);
    cuMemAlloc(&there, 100);
    cuCtxSetCurrent(first);
    cuMemAlloc(&here, 100);
    cuptiActivityRegisterCallbacks(request, complete);
    for (int kind = 1; kind <= CUPTI_MEMCPY2; kind++)
        if (kind == CUPTI_MEMCPY || kind == CUPTI_MEMSET || kind == CUPTI_CONCURRENT_KERNEL ||
            kind == CUPTI_MEMCPY2)
            assert(cuptiActivityEnable(kind) == CUPTI_SUCCESS);
    double_launch_grid(NULL, "a_kernel", 1000, 2, 3, 4);
    double_copy(NULL, (void *)here, host, 100, 2000);
    double_copy(NULL, (void *)there, (void *)here, 10, 3000);
    cuStreamBeginCapture(NULL, 0);
    double_set(NULL, (void *)here, 9, 50, 4000);
    cuStreamEndCapture(NULL, &graph);
    cuGraphLaunch((CUgraphExec)graph, NULL);
    cuStreamSynchronize(NULL);
    cuptiActivityFlushAll(0);
    printf("%d %d %d %d\n", kernels, copies, peer_copies, sets);
}
