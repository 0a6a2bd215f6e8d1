/* What the parts of the store have in common (store.c, store_samples.c, store_gpu.c): walking a ledger, and inserting rows. */
#ifndef COMMPROF_ROWS_H
#define COMMPROF_ROWS_H

#include "ledger/ledger.h"
#include "sqlite.h"

#include <stdbool.h>

struct store {
    sqlite3 *database;
    const struct ledger_header *ledger;
    const struct ledger_call *calls[1024]; /* by number */
    uint8_t levels[UINT16_MAX + 1];        /* sample_level by a communicator's slot */
    int64_t settled_ns;                    /* the last kept activity of a GPU began here */
    struct gap *gaps;                      /* store_samples.c */
    size_t gap_count;
    bool failed;
};

/* Time since the rank's start. */
struct span {
    int64_t begin_ns, end_ns;
};

sqlite3_stmt *rows_prepare(struct store *store, const char *sql);

/* Run a prepared statement with values: i int64_t, o const int64_t *, t text; a null pointer is stored as NULL. */
void rows_insert(struct store *store, sqlite3_stmt *statement, const char *types, ...);

/* A histogram's rows (number, bucket, count); empty buckets have none. */
void rows_insert_buckets(struct store *store, sqlite3_stmt *statement, int64_t number, const uint64_t buckets[HISTOGRAM_BUCKETS]);

/* The next chunk of a kind from `*index` on; NULL at the end. */
struct ledger_chunk *rows_chunk(const struct ledger_header *ledger, enum ledger_kind kind, uint32_t *index);

#define FOR_EACH_CHUNK(chunk, store, kind) for (uint32_t at_ = 0; (chunk = rows_chunk((store)->ledger, kind, &at_));)

const char *rows_call_name(const struct store *store, unsigned call);
bool rows_call_is_nccl(const struct store *store, unsigned call);

int64_t rows_wall_ns(const struct ledger_header *ledger); /* until now, if it goes on */
int64_t rows_since_start_ns(const struct ledger_header *ledger, uint64_t ticks);

/* The same of something that cannot have been before the start: at least 0. */
int64_t rows_moment_ns(const struct store *store, uint64_t ticks);

/* store_samples.c: single calls, when all of them were kept, steps, spans of regions; and the same of what GPUs did. */
void store_samples(struct store *store);

/* store_gpu.c: what GPUs did, in sums; and one activity as a sample. */
void store_gpu(struct store *store);
void store_activity_sample(struct store *store, sqlite3_stmt *statement, const struct ledger_sample *sample);

#endif
