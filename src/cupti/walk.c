#include "walk.h"

#include "cupti_clock.h"
#include "dump.h"
#include "names.h"
#include "records.h"

#include <ctype.h>

#define LONGEST_NS \
    (INT64_C(600) * 1000000000) /* longer times are considered wrong: no kernel takes ten minutes
                                 * \ */
enum { RECORDS_TO_EXAMINE = 256, MOST_SENSELESS_ONE_OF = 8 };

static bool is_plausible(const struct walk *walk, const struct gpu_event *event)
{
    return event->start_ns >= walk->from_ns && event->end_ns <= walk->until_ns &&
           event->end_ns >= event->start_ns && event->end_ns - event->start_ns <= LONGEST_NS;
}

/* Converts the times; false: the record has none (the GPU's buffer was full, or the activity has
 * not ended), or impossible ones. */
static bool date(const struct walk *walk, struct gpu_event *event)
{
    if (!event->start_ns || !event->end_ns || (uint64_t)event->end_ns < (uint64_t)event->start_ns)
        return false;
    event->start_ns = cupti_clock_ns((uint64_t)event->start_ns);
    event->end_ns = cupti_clock_ns((uint64_t)event->end_ns);
    return is_plausible(walk, event);
}

static void take_record(struct walk *walk, struct gpu_event *event)
{
    if (!date(walk, event)) {
        walk->implausible++;
        return;
    }
    event->name = names_read(event->name);
    int64_t duration_ns = event->end_ns - event->start_ns;
    walk->longest_ns = duration_ns > walk->longest_ns ? duration_ns : walk->longest_ns;
    walk->records++;
    walk->take(event);
}

static bool makes_sense(const struct walk *walk, struct gpu_event *event)
{
    const char *name = names_read(event->name);
    bool has_times = event->start_ns && event->end_ns;
    return event->device < walk->devices && name && isprint((unsigned char)*name) &&
           (!has_times || date(walk, event));
}

static void examine(struct walk *walk, uint8_t *buffer, size_t valid_bytes)
{
    void *record = NULL;
    struct gpu_event event;
    while (walk->examined < RECORDS_TO_EXAMINE && walk->next(buffer, valid_bytes, &record) == 0) {
        if (!records_read(record, walk->version, &event) || event.kind != LEDGER_ACTIVITY_KERNEL)
            continue;
        walk->examined++;
        walk->senseless += !makes_sense(walk, &event);
    }
    walk->layout_is_wrong = walk->senseless * MOST_SENSELESS_ONE_OF > walk->examined;
}

void walk_buffer(struct walk *walk, uint8_t *buffer, size_t valid_bytes)
{
    void *record = NULL;
    struct gpu_event event;
    names_forget();
    dump_buffer(buffer, valid_bytes);
    if (walk->version > CUPTI_NEWEST_KNOWN && walk->examined < RECORDS_TO_EXAMINE)
        examine(walk, buffer, valid_bytes);
    while (!walk->layout_is_wrong && walk->next(buffer, valid_bytes, &record) == 0) {
        bool is_known = records_read(record, walk->version, &event);
        dump_record((size_t)((uint8_t *)record - buffer), is_known ? names_read(event.name) : NULL);
        if (is_known)
            take_record(walk, &event);
    }
}
