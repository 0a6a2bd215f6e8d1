#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value rows_null(void)
{
    return (struct value){.type = VALUE_NULL};
}

struct value rows_number(const struct store *store, int64_t number)
{
    (void)store;
    return (struct value){.type = VALUE_NUMBER, .number = number};
}

struct value rows_unless_zero(const struct store *store, int64_t number)
{
    return number ? rows_number(store, number) : rows_null();
}

struct value rows_boolean(const struct store *store, uint64_t number)
{
    return rows_number(store, number != 0);
}

struct value rows_bytes(const struct store *store, uint64_t bytes)
{
    return bytes != LEDGER_BYTES_UNKNOWN ? rows_number(store, (int64_t)bytes) : rows_null();
}

struct value rows_rank(const struct store *store, int64_t rank)
{
    return rank != LEDGER_NO_RANK ? rows_number(store, rank) : rows_null();
}

struct value rows_text(const struct store *store, const char *text)
{
    (void)store;
    return text ? (struct value){.type = VALUE_TEXT, .text = text} : rows_null();
}

struct value rows_call(const struct store *store, unsigned call)
{
    return rows_text(store, rows_call_name(store, call));
}

struct value rows_ticks(const struct store *store, uint64_t ticks)
{
    return rows_number(store, rows_since_start_ns(store, ticks));
}

struct value rows_clock_ns(const struct store *store, int64_t monotonic_ns)
{
    return monotonic_ns ? rows_number(store, rows_monotonic_since_start_ns(store, monotonic_ns))
                        : rows_null();
}

struct value rows_name(const char *const *names, size_t count, unsigned number)
{
    return (struct value){.type = VALUE_TEXT, .text = names[number < count ? number : 0]};
}

/* After some rows of a table, one statement inserts sixteen, and a value stays bound from the last
 * sixteen if it is the same: half the time for 50,000 samples. SQLite before 3.32 binds at most 999
 * values. */
enum { GROUP_ROWS = 16, GROUP_AFTER = 256 };

struct group {
    sqlite3_stmt *statement;
    size_t columns, rows; /* those that wait to be inserted */
    struct value bound[GROUP_ROWS][ROWS_COLUMNS_MOST];
};

/* "INSERT INTO peer ON CONFLICT ..." with a row's columns: "INSERT INTO peer (call, count) VALUES
 * (?,?),(?,?) ON CONFLICT ..." */
static void write_statement(char *sql, size_t bytes, const char *insert, const struct column *row,
                            size_t count, int rows)
{
    const char *clause = strstr(insert, " ON CONFLICT");
    int used = snprintf(sql, bytes, "%.*s",
                        (int)(clause ? clause - insert : (ptrdiff_t)strlen(insert)), insert);
    for (size_t i = 0; i < count; i++)
        used += snprintf(sql + used, bytes - (size_t)used, "%s%s", i ? "," : " (", row[i].name);
    for (int at = 0; at < rows; at++)
        for (size_t i = 0; i < count; i++)
            used += snprintf(sql + used, bytes - (size_t)used, "%s?",
                             i ? "," : (at ? "),(" : ") VALUES ("));
    snprintf(sql + used, bytes - (size_t)used, ")%s", clause ? clause : "");
}

static sqlite3_stmt *prepare(struct store *store, const char *insert, const struct column *row,
                             size_t count, int rows)
{
    char sql[4096];
    sqlite3_stmt *statement = NULL;
    write_statement(sql, sizeof sql, insert, row, count, rows);
    store->failed |= sqlite.prepare_v2(store->database, sql, -1, &statement, NULL) != SQLITE_OK;
    return statement;
}

static struct insert *insert_of(struct store *store, const char *text, const struct column *row,
                                size_t count)
{
    struct insert *insert = store->inserts;
    while (insert->text && insert->text != text)
        insert++;
    if (!insert->text)
        *insert = (struct insert){text, prepare(store, text, row, count, 1), 0, NULL};
    return insert;
}

static void bind(sqlite3_stmt *statement, size_t index, const struct value *value)
{
    if (value->type == VALUE_NUMBER)
        sqlite.bind_int64(statement, (int)index, value->number);
    else if (value->type == VALUE_TEXT)
        sqlite.bind_text(statement, (int)index, value->text, -1, NULL);
    else
        sqlite.bind_null(statement, (int)index);
}

static void step(struct store *store, sqlite3_stmt *statement)
{
    store->failed |= sqlite.step(statement) != SQLITE_DONE;
    sqlite.reset(statement);
}

static void insert_one(struct store *store, sqlite3_stmt *statement, const struct column *row,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        bind(statement, i + 1, &row[i].value);
    step(store, statement);
}

void rows_insert(struct store *store, const char *text, const struct column *row, size_t count)
{
    if (store->failed)
        return;
    const struct insert *insert = insert_of(store, text, row, count);
    if (!store->failed)
        insert_one(store, insert->statement, row, count);
}

/* NULL: there is no memory, so rows are inserted one by one. */
static struct group *group_begin(struct store *store, const char *text, const struct column *row,
                                 size_t count)
{
    struct group *group = calloc(1, sizeof *group); /* NULL is bound everywhere */
    if (!group)
        return NULL;
    group->statement = prepare(store, text, row, count, GROUP_ROWS);
    group->columns = count;
    return group;
}

static bool is_same(const struct value *left, const struct value *right)
{
    if (left->type != right->type)
        return false;
    return left->type == VALUE_NULL ||
           (left->type == VALUE_TEXT ? left->text == right->text : left->number == right->number);
}

static void insert_in_group(struct store *store, struct group *group, const struct column *row,
                            size_t count)
{
    struct value *bound = group->bound[group->rows];
    for (size_t i = 0; i < count; i++)
        if (!is_same(&bound[i], &row[i].value)) {
            bound[i] = row[i].value;
            bind(group->statement, group->rows * count + i + 1, &bound[i]);
        }
    group->rows = (group->rows + 1) % GROUP_ROWS;
    if (group->rows == 0)
        step(store, group->statement);
}

void rows_insert_many(struct store *store, const char *text, const struct column *row, size_t count)
{
    if (store->failed)
        return;
    struct insert *insert = insert_of(store, text, row, count);
    if (insert->rows++ == GROUP_AFTER)
        insert->group = group_begin(store, text, row, count);
    if (store->failed)
        return;
    if (insert->group)
        insert_in_group(store, insert->group, row, count);
    else
        insert_one(store, insert->statement, row, count);
}

/* The last rows, fewer than a group. */
static void group_end(struct store *store, const struct insert *insert)
{
    struct group *group = insert->group;
    for (size_t row = 0; row < group->rows && !store->failed; row++) {
        for (size_t i = 0; i < group->columns; i++)
            bind(insert->statement, i + 1, &group->bound[row][i]);
        step(store, insert->statement);
    }
    sqlite.finalize(group->statement);
    free(group);
}

void rows_end(struct store *store)
{
    for (const struct insert *insert = store->inserts; insert->text; insert++) {
        if (insert->group)
            group_end(store, insert);
        sqlite.finalize(insert->statement);
    }
}

void rows_insert_buckets(struct store *store, const char *insert, const char *number_column,
                         int64_t number, const uint64_t buckets[HISTOGRAM_BUCKETS])
{
    for (int64_t bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
        if (buckets[bucket]) {
            const struct column row[] = {{number_column, rows_number(store, number)},
                                         {"bucket", rows_number(store, bucket)},
                                         {"count", rows_number(store, (int64_t)buckets[bucket])}};
            ROWS_INSERT_MANY(store, insert, row);
        }
}

struct ledger_chunk *rows_chunk(const struct ledger_header *ledger, enum ledger_kind kind,
                                uint32_t *index)
{
    while (*index < ledger->chunk_count) {
        struct ledger_chunk *chunk = ledger_chunk_at(ledger, (*index)++);
        if (chunk->kind == kind)
            return chunk;
    }
    return NULL;
}

void *rows_entry(const struct ledger_header *ledger, enum ledger_kind kind,
                 struct rows_place *place)
{
    while (!place->chunk || place->next_entry >= place->chunk->used) {
        place->chunk = rows_chunk(ledger, kind, &place->next_chunk);
        place->next_entry = 0;
        if (!place->chunk)
            return NULL;
    }
    return ledger_entry(place->chunk, place->next_entry++);
}

const char *rows_call_name(const struct store *store, unsigned call)
{
    if (call >= COUNT(store->calls) || !store->calls[call])
        return "";
    store->is_named[call] = true;
    return store->calls[call]->name;
}

bool rows_call_is_nccl(const struct store *store, unsigned call)
{
    return call < COUNT(store->calls) && store->calls[call] &&
           strcmp(store->calls[call]->library, "nccl") == 0;
}

int64_t rows_wall_ns(const struct ledger_header *ledger)
{
    return ledger->end_ns - ledger->start_ns;
}

int64_t rows_since_start_ns(const struct store *store, uint64_t ticks)
{
    const struct ledger_header *ledger = store->ledger;
    int64_t since = (int64_t)(ticks - ledger->clock_ticks);
    return rows_monotonic_since_start_ns(
        store,
        ledger->clock_ns + (int64_t)(((__int128)since * (int64_t)ledger->clock_scale) >> 32));
}

int64_t rows_reset_ns(const struct store *store)
{
    uint64_t reset_ticks = store->ledger->reset_ticks;
    return reset_ticks ? rows_since_start_ns(store, reset_ticks) : 0;
}

int64_t rows_monotonic_since_start_ns(const struct store *store, int64_t monotonic_ns)
{
    int64_t ns = monotonic_ns - store->ledger->start_ns;
    return ns > 0 ? ns : 0;
}
