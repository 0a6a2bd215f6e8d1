#include "cupti/buffers.h"

#include "base/clock.h"
#include "unit.h"

#include <pthread.h>

static uint8_t *request(void)
{
    uint8_t *buffer = NULL;
    size_t bytes = 0, most_records = 1;
    buffers_request(&buffer, &bytes, &most_records);
    CHECK(buffer != NULL && (uintptr_t)buffer % 8 == 0);
    CHECK_EQUAL(bytes, BUFFER_BYTES);
    CHECK_EQUAL(most_records, 0);
    return buffer;
}

static void complete(uint8_t *buffer, size_t valid_bytes)
{
    buffers_complete(NULL, 0, buffer, BUFFER_BYTES, valid_bytes);
}

static uint8_t *last_taken;
static size_t taken_bytes;

static void take(uint8_t *buffer, size_t valid_bytes)
{
    last_taken = buffer;
    taken_bytes += valid_bytes;
}

TEST(a_request_may_be_refused_where_cupti_allows_it)
{
    uint8_t *buffer;
    size_t bytes = 1, most_records;
    CHECK(buffers_begin(true));
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        request();
    buffers_request(&buffer, &bytes, &most_records);
    CHECK(buffer == NULL && bytes == 0);
    complete(NULL, 0);
    CHECK_EQUAL(buffers_collect(take), 0);
}

static void *forwarded;

static void their_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                           size_t valid_bytes)
{
    (void)context, (void)stream, (void)bytes, (void)valid_bytes;
    forwarded = buffer;
}

TEST(buffers_of_another_client_are_left_alone_or_passed_on)
{
    static uint64_t theirs[64];
    CHECK(buffers_begin(false));
    complete((uint8_t *)theirs, sizeof theirs);
    CHECK_EQUAL(buffers_collect(take), 0);
    CHECK_EQUAL(buffers_sunk_records(), 0);
    buffers_forward(their_complete);
    complete((uint8_t *)theirs, sizeof theirs);
    CHECK(forwarded == theirs);
}

TEST(a_buffer_that_was_not_lent_cannot_come_back)
{
    CHECK(buffers_begin(false));
    uint8_t *buffer = request();
    complete(buffer + 8, 64); /* inside it */
    complete(buffer, 100);
    complete(buffer, 200);
    CHECK_EQUAL(buffers_collect(take), 1);
    complete(buffer, 300);
    CHECK_EQUAL(buffers_collect(take), 0);
    CHECK_EQUAL(taken_bytes, 100);
}

TEST(more_bytes_than_a_buffer_has_are_not_believed)
{
    CHECK(buffers_begin(false));
    complete(request(), (size_t)BUFFER_BYTES + 1);
    CHECK_EQUAL(buffers_collect(take), 1);
    CHECK_EQUAL(taken_bytes, BUFFER_BYTES);
}

TEST(records_that_nobody_has_read_are_estimated)
{
    enum { RECORDS = 10, BYTES = RECORDS * 216 };
    CHECK(buffers_begin(false));
    CHECK_EQUAL(buffers_unread_records(), 0);
    uint8_t *read = request(), *completed = request(), *lent = request(), *untouched = request();
    memset(read, 1, BYTES);
    complete(read, BYTES);
    CHECK_EQUAL(buffers_collect(take), 1);
    memset(completed, 1, BYTES);
    complete(completed, BYTES);
    memset(lent, 1, BYTES);
    CHECK(untouched != NULL);
    CHECK_EQUAL(buffers_unread_records(), 2 * RECORDS);
    CHECK(request() == read); /* lent again, and empty */
    CHECK_EQUAL(buffers_unread_records(), 2 * RECORDS);
    buffers_abandon();
    CHECK_EQUAL(buffers_unread_records(), RECORDS);
}

/* Each thread fills a buffer with its number and completes it. The sink is left unwritten: all
 * threads share it. */
enum { THREADS = 4, ROUNDS = 5000, WORDS = 64 };
static uint8_t *the_sink;
static unsigned threads_done;
static uint64_t words_taken;

static void *lend_and_complete(void *number)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t *buffer = request();
        for (unsigned word = 0; word < WORDS && buffer != the_sink; word++)
            ((volatile uint64_t *)buffer)[word] = (uintptr_t)number;
        complete(buffer, WORDS * sizeof(uint64_t));
    }
    __atomic_fetch_add(&threads_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void take_words(uint8_t *buffer, size_t valid_bytes)
{
    const uint64_t *words = (const uint64_t *)buffer;
    CHECK_EQUAL(valid_bytes, WORDS * sizeof *words);
    for (unsigned i = 0; i < WORDS; i++)
        CHECK_EQUAL(words[i], words[0]);
    words_taken += WORDS;
}

TEST(threads_may_lend_and_complete_while_buffers_are_collected)
{
    pthread_t threads[THREADS];
    CHECK(buffers_begin(false));
    uint8_t *all[BUFFER_COUNT];
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        all[i] = request();
    the_sink = request();
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        complete(all[i], 0);
    buffers_collect(take);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, lend_and_complete, (void *)(i + 1)), 0);
    while (__atomic_load_n(&threads_done, __ATOMIC_ACQUIRE) < THREADS)
        buffers_collect(take_words);
    buffers_collect(take_words);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(words_taken > 0);
    CHECK_EQUAL(buffers_lent_since_ns(), INT64_MAX);
    uint64_t sunk_bytes = buffers_sunk_records() * 216; /* rounded up once */
    uint64_t all_bytes = (uint64_t)THREADS * ROUNDS * WORDS * sizeof(uint64_t);
    CHECK(words_taken * sizeof(uint64_t) + sunk_bytes >= all_bytes &&
          words_taken * sizeof(uint64_t) + sunk_bytes < all_bytes + 216);
}
