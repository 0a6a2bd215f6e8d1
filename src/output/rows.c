#include "rows.h"

#include "base/clock.h"

#include <stdarg.h>
#include <string.h>

sqlite3_stmt *rows_prepare(struct store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite.prepare_v2(store->database, sql, -1, &statement, NULL) != SQLITE_OK)
        store->failed = true;
    return statement;
}

static void bind_optional(sqlite3_stmt *statement, int index, const int64_t *value)
{
    if (value)
        sqlite.bind_int64(statement, index, *value);
    else
        sqlite.bind_null(statement, index);
}

void rows_insert(struct store *store, sqlite3_stmt *statement, const char *types, ...)
{
    if (store->failed)
        return;
    va_list values;
    va_start(values, types);
    for (int i = 0; types[i]; i++) {
        if (types[i] == 'i')
            sqlite.bind_int64(statement, i + 1, va_arg(values, int64_t));
        else if (types[i] == 'o')
            bind_optional(statement, i + 1, va_arg(values, const int64_t *));
        else
            sqlite.bind_text(statement, i + 1, va_arg(values, const char *), -1, NULL);
    }
    va_end(values);
    store->failed |= sqlite.step(statement) != SQLITE_DONE;
    sqlite.reset(statement);
}

void rows_insert_buckets(struct store *store, sqlite3_stmt *statement, int64_t number, const uint64_t buckets[HISTOGRAM_BUCKETS])
{
    for (int64_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
        if (buckets[bucket])
            rows_insert(store, statement, "iii", number, bucket, (int64_t)buckets[bucket]);
}

struct ledger_chunk *rows_chunk(const struct ledger_header *ledger, enum ledger_kind kind, uint32_t *index)
{
    while (*index < ledger->chunk_count) {
        struct ledger_chunk *chunk = ledger_chunk_at(ledger, (*index)++);
        if (chunk->kind == kind)
            return chunk;
    }
    return NULL;
}

const char *rows_call_name(const struct store *store, unsigned call)
{
    return call < 1024 && store->calls[call] ? store->calls[call]->name : "";
}

bool rows_call_is_nccl(const struct store *store, unsigned call)
{
    return call < 1024 && store->calls[call] && strcmp(store->calls[call]->library, "nccl") == 0;
}

int64_t rows_wall_ns(const struct ledger_header *ledger)
{
    return (ledger->ended == LEDGER_RUNNING ? clock_monotonic_ns() : ledger->end_ns) - ledger->start_ns;
}

int64_t rows_since_start_ns(const struct ledger_header *ledger, uint64_t ticks)
{
    int64_t since = (int64_t)(ticks - ledger->clock_ticks);
    return ledger->clock_ns - ledger->start_ns + (int64_t)(((__int128)since * (int64_t)ledger->clock_scale) >> 32);
}

int64_t rows_moment_ns(const struct store *store, uint64_t ticks)
{
    int64_t ns = rows_since_start_ns(store->ledger, ticks);
    return ns > 0 ? ns : 0;
}
