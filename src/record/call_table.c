#include "call_table.h"

#include "ledger/ledger.h"

/* The form that follows from the kind of a wrapper. */
#define FORM_SETUP "blocking"
#define FORM_BLOCKING "blocking"
#define FORM_READING "blocking"
#define FORM_POLLING "blocking"
#define FORM_MAKING "blocking"
#define FORM_MAKING_ON "blocking"
#define FORM_ENDING "blocking"
#define FORM_BY_HAND "blocking"
#define FORM_UNLIKE "blocking"
#define FORM_STARTING "nonblocking"
#define FORM_STARTING_RECEIVE "nonblocking"
#define FORM_STARTING_EXCHANGE "nonblocking"
#define FORM_STARTING_BY_HAND "nonblocking"
#define FORM_PREPARING "persistent"
#define FORM_PREPARING_RECEIVE "persistent"
#define FORM_PREPARING_WITH_INFO "persistent"

uint8_t call_counted[CALL_COUNT];

const struct ledger_call CALL_TABLE[CALL_COUNT] = {
    {.call = CALL_NONE},
#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) \
    {CALL_##NAME, "MPI_" #NAME, #FAMILY, "mpi", FORM_##KIND, #BANDWIDTH, #WAITS_FOR},
#include "wrappers/calls.def"
#undef CALL
#define NCCL_CALL(NAME, FAMILY, BANDWIDTH, WAITS_FOR) \
    {CALL_nccl##NAME, "nccl" #NAME, #FAMILY, "nccl", "blocking", #BANDWIDTH, #WAITS_FOR},
#include "nccl/nccl_calls.def"
#undef NCCL_CALL
};

#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR)   \
    _Static_assert(sizeof("MPI_" #NAME) <= sizeof(CALL_TABLE[0].name), \
                   "MPI_" #NAME " has room for its name");
#include "wrappers/calls.def"
#undef CALL

/* A C identifier cannot be written "point-to-point". */
static void hyphens(char *text)
{
    for (; *text; text++)
        if (*text == '_')
            *text = '-';
}

void call_table_record(void)
{
    for (unsigned i = 1; i < CALL_COUNT; i++) {
        struct ledger_call entry = CALL_TABLE[i];
        hyphens(entry.family);
        hyphens(entry.bandwidth);
        hyphens(entry.waits_for);
        ledger_append(LEDGER_CALLS, &entry, sizeof entry);
    }
}
