/* From a buffer of CUPTI's records to events of ours: the four kinds are read, their times moved to CLOCK_MONOTONIC, their names copied; what
 * cannot have been is counted and left out.
 *
 * Of a CUPTI newer than this build knows the first records are examined before any is believed: if they do not make sense, the layout has
 * changed, and nothing is taken from there. */
#ifndef COMMPROF_CUPTI_WALK_H
#define COMMPROF_CUPTI_WALK_H

#include "gpu/backend.h"

struct walk {
    int (*next)(uint8_t *buffer, size_t valid_bytes, void **record); /* cuptiActivityGetNextRecord */
    uint32_t version, devices;
    int64_t from_ns, until_ns; /* records lie in between */
    gpu_take take;

    uint64_t records, implausible; /* handed over, left out; they add up */
    int64_t longest_ns;            /* of those handed over; the caller may lower it */
    uint32_t examined, senseless;  /* where the version is not known */
    bool layout_is_wrong;
};

void walk_buffer(struct walk *walk, uint8_t *buffer, size_t valid_bytes);

#endif
