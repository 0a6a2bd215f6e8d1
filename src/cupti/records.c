#include "records.h"

/* Indexed by CUpti_ActivityMemcpyKind; an array is in device memory. */
static const uint8_t COPY_OF[] = {
    [1] = LEDGER_COPY_TO_DEVICE, /* HTOD */
    [2] = LEDGER_COPY_TO_HOST,   /* DTOH */
    [3] = LEDGER_COPY_TO_DEVICE, /* HTOA */
    [4] = LEDGER_COPY_TO_HOST,   /* ATOH */
    [5] = LEDGER_COPY_ON_DEVICE, /* ATOA */
    [6] = LEDGER_COPY_ON_DEVICE, /* ATOD */
    [7] = LEDGER_COPY_ON_DEVICE, /* DTOA */
    [8] = LEDGER_COPY_ON_DEVICE, /* DTOD */
    [9] = LEDGER_COPY_ON_HOST,   /* HTOH */
    [10] = LEDGER_COPY_TO_PEER,  /* PTOP */
};

/* Indexed by CUpti_ActivityMemoryKind. */
static const uint8_t FLAGS_OF[] = {
    [1] = LEDGER_ACTIVITY_PAGEABLE,
    [5] = LEDGER_ACTIVITY_MANAGED,
    [7] = LEDGER_ACTIVITY_MANAGED, /* static */
};

static uint8_t copy_of(uint8_t kind)
{
    uint8_t copy = kind < sizeof COPY_OF ? COPY_OF[kind] : LEDGER_COPY_NONE;
    return copy ? copy : LEDGER_COPY_OTHER;
}

static uint8_t flags_of(uint8_t memory_kind)
{
    return memory_kind < sizeof FLAGS_OF ? FLAGS_OF[memory_kind] : 0;
}

/* 0: the record's numbers make no sense. */
static uint32_t blocks_of(const int32_t grid[3])
{
    uint64_t blocks = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (grid[i] <= 0 || (uint64_t)grid[i] > UINT32_MAX / blocks)
            return 0;
        blocks *= (uint64_t)grid[i];
    }
    return (uint32_t)blocks;
}

/* Fields that all records have under the same names. */
#define COMMON(KIND, RECORD)                                                                \
    .kind = (KIND), .start_ns = (int64_t)(RECORD)->start, .end_ns = (int64_t)(RECORD)->end, \
    .device = (RECORD)->device, .context = (RECORD)->context, .stream = (RECORD)->stream

bool records_read(const void *record, uint32_t cupti_version, struct gpu_event *event)
{
    const struct cupti_kernel *kernel = record;
    const struct cupti_copy *copy = record;
    const struct cupti_peer_copy *peer_copy = record;
    const struct cupti_set *set = record;
    bool knows_graphs =
        cupti_version >= CUPTI_FIRST_WITH_GRAPHS; /* otherwise the record ends before it */
    uint64_t graph_node;

    switch (kernel->kind) {
    case CUPTI_CONCURRENT_KERNEL:
        *event = (struct gpu_event){COMMON(LEDGER_ACTIVITY_KERNEL, kernel), .name = kernel->name,
                                    .blocks = blocks_of(kernel->grid)};
        graph_node = knows_graphs ? kernel->graph_node : 0;
        break;
    case CUPTI_MEMCPY:
        *event = (struct gpu_event){COMMON(LEDGER_ACTIVITY_COPY, copy), .bytes = copy->bytes,
                                    .copy = copy_of(copy->copy_kind)};
        event->flags = flags_of(copy->source_kind) | flags_of(copy->destination_kind);
        graph_node = knows_graphs ? copy->graph_node : 0;
        break;
    case CUPTI_MEMCPY2:
        *event = (struct gpu_event){COMMON(LEDGER_ACTIVITY_COPY, peer_copy),
                                    .bytes = peer_copy->bytes, .copy = LEDGER_COPY_TO_PEER};
        event->flags = flags_of(peer_copy->source_kind) | flags_of(peer_copy->destination_kind);
        graph_node = knows_graphs ? peer_copy->graph_node : 0;
        break;
    case CUPTI_MEMSET:
        *event = (struct gpu_event){COMMON(LEDGER_ACTIVITY_SET, set), .bytes = set->bytes};
        graph_node = knows_graphs ? set->graph_node : 0;
        break;
    default:
        return false;
    }
    event->flags |= graph_node ? LEDGER_ACTIVITY_GRAPH : 0;
    return true;
}
