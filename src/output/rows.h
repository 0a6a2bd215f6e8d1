/* Shared by store.c, store_samples.c and store_gpu.c: reading a ledger chunk by chunk, and
 * inserting rows. */
#ifndef COMMPROF_ROWS_H
#define COMMPROF_ROWS_H

#include "ledger/ledger.h"
#include "sqlite.h"

#include <stdbool.h>

/* The text that was passed to rows_insert, and its prepared statement. */
struct insert {
    const char *text;
    sqlite3_stmt *statement;
    size_t rows;         /* inserted by rows_insert_many */
    struct group *group; /* rows.c; NULL: it has inserted few */
};

struct store {
    sqlite3 *database;
    const struct ledger_header *ledger;
    const struct ledger_call *calls[1024]; /* by number */
    bool *is_named;                        /* by number: whether a row names the call */
    int64_t settled_ns;                    /* begin of the last sampled GPU activity */
    struct insert inserts[40];             /* one for each text, and an empty one */
    struct gap *gaps;                      /* store_samples.c */
    size_t gap_count;
    bool failed;
};

/* Time since the rank's start. */
struct span {
    int64_t begin_ns, end_ns;
};

/* The value of one column of a row. */
struct value {
    enum { VALUE_NULL, VALUE_NUMBER, VALUE_TEXT } type;
    union {
        int64_t number;
        const char *text;
    };
};

struct column {
    const char *name;
    struct value value;
};

/* A row of a table, from the ledger's struct `entry` and a struct value for each column that
 * rows.def calls COMPUTED:
 *
 *     const struct value sequence = rows_number(store, 7);
 *     const struct column row[] = {
 *     #define ROWS_OF_SAMPLE
 *     #include "rows.def"
 *     };
 *     ROWS_INSERT(store, "INSERT INTO sample", row);
 */
#define RANK(column) {#column, rows_number(store, store->ledger->world_rank)},
#define COLUMN(column, conversion, field) {#column, rows_##conversion(store, entry->field)},
#define NAME(column, list, field) \
    {#column, rows_name(list##_names, COUNT(list##_names), entry->field)},
#define FLAG(column, mask, field) {#column, rows_boolean(store, entry->field & LEDGER_##mask)},
#define COMPUTED(column, source) {#column, column},
#define COUNT(array) (sizeof(array) / sizeof *(array))

#define NAMES(list, ...) \
    static const char *const list##_names[] __attribute__((unused)) = {__VA_ARGS__};
#include "rows.def"

/* The conversions of rows.def. A number above INT64_MAX cannot be stored, and none is as large. */
struct value rows_null(void);
struct value rows_number(const struct store *store, int64_t number);
struct value rows_unless_zero(const struct store *store, int64_t number);
struct value rows_boolean(const struct store *store, uint64_t number);
struct value rows_bytes(const struct store *store, uint64_t bytes);
struct value rows_rank(const struct store *store, int64_t rank);
struct value rows_text(const struct store *store, const char *text); /* NULL: null */
struct value rows_call(const struct store *store, unsigned call);
struct value rows_ticks(const struct store *store, uint64_t ticks);
struct value rows_clock_ns(const struct store *store, int64_t monotonic_ns);
struct value rows_name(const char *const *names, size_t count,
                       unsigned number); /* the first name for an unknown number */

/* `insert` names the table: "INSERT INTO peer ON CONFLICT ...". Statements are finalized by
 * rows_end. */
#define ROWS_INSERT(store, insert, row) rows_insert(store, insert, row, COUNT(row))
void rows_insert(struct store *store, const char *insert, const struct column *row, size_t count);
void rows_end(struct store *store);

/* The same for tables that may have thousands of rows. They are inserted at rows_end at the latest,
 * and their texts must stay until then. */
#define ROWS_INSERT_MANY(store, insert, row)                                           \
    do {                                                                               \
        _Static_assert(COUNT(row) <= ROWS_COLUMNS_MOST, "a group has room for a row"); \
        rows_insert_many(store, insert, row, COUNT(row));                              \
    } while (0)
enum { ROWS_COLUMNS_MOST = 28 };
void rows_insert_many(struct store *store, const char *insert, const struct column *row,
                      size_t count);

/* A histogram's rows (number, bucket, count); empty buckets have none. */
void rows_insert_buckets(struct store *store, const char *insert, const char *number_column,
                         int64_t number, const uint64_t buckets[HISTOGRAM_BUCKETS]);

/* The next chunk of a kind from `*index` on; NULL at the end. */
struct ledger_chunk *rows_chunk(const struct ledger_header *ledger, enum ledger_kind kind,
                                uint32_t *index);

#define FOR_EACH_CHUNK(chunk, store, kind) \
    for (uint32_t at_ = 0; (chunk = rows_chunk((store)->ledger, kind, &at_));)

/* The next entry of a kind whose entries have one size, in all its chunks; NULL at the end. `place`
 * is zero at the start. */
struct rows_place {
    struct ledger_chunk *chunk;
    uint32_t next_chunk, next_entry;
};
void *rows_entry(const struct ledger_header *ledger, enum ledger_kind kind,
                 struct rows_place *place);

#define FOR_EACH_ENTRY(entry, store, kind)           \
    for (struct rows_place place_ = {.chunk = NULL}; \
         (entry = rows_entry((store)->ledger, kind, &place_));)

/* A call's name, "" if it is unknown. The call gets a row of table `call`. */
const char *rows_call_name(const struct store *store, unsigned call);
bool rows_call_is_nccl(const struct store *store, unsigned call);

int64_t rows_wall_ns(const struct ledger_header *ledger); /* up to now while the rank is running */

/* Nanoseconds since the rank's start, at least 0: of ticks, and of a time on the monotonic
 * clock. */
int64_t rows_since_start_ns(const struct store *store, uint64_t ticks);
int64_t rows_monotonic_since_start_ns(const struct store *store, int64_t monotonic_ns);

int64_t rows_reset_ns(const struct store *store); /* the last reset, since the start; 0: none */

/* store_samples.c: samples of calls and GPU activities, steps, spans of regions, and the windows in
 * which samples are complete. */
void store_samples(struct store *store);

/* store_gpu.c: sums of GPU activities; and one activity as a sample. */
void store_gpu(struct store *store);
void store_activity_sample(struct store *store, const struct ledger_sample *sample);

#endif
