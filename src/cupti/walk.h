/* Converts a buffer of CUPTI's records to our events: reads the four kinds, converts their times to
 * CLOCK_MONOTONIC and copies their names. Records with impossible contents are counted and left
 * out.
 *
 * If CUPTI is newer than the versions this build knows, the first records are examined before any
 * is used: if they do not make sense, the layout has changed, and no records are taken. */
#ifndef COMMPROF_CUPTI_WALK_H
#define COMMPROF_CUPTI_WALK_H

#include "gpu/backend.h"

struct walk {
    int (*next)(uint8_t *buffer, size_t valid_bytes,
                void **record); /* cuptiActivityGetNextRecord */
    uint32_t version, devices;
    int64_t from_ns, until_ns; /* records must lie in between */
    gpu_take take;

    uint64_t records,
        implausible;    /* handed over; left out; their sum is the number of records read */
    int64_t longest_ns; /* of the records handed over; the caller may lower it */
    uint32_t examined, senseless; /* for an unknown version */
    bool layout_is_wrong;
};

void walk_buffer(struct walk *walk, uint8_t *buffer, size_t valid_bytes);

#endif
