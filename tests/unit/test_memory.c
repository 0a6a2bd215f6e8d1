#include "base/memory.h"

#include "unit.h"

#include <pthread.h>
#include <sys/time.h>

enum { LARGEST_SMALL = 32 << 10 };

/* On both sides of the bounds between sizes of blocks, and of what is mapped by itself. */
static const size_t SIZES[] = {0,
                               1,
                               32,
                               33,
                               64,
                               65,
                               4096,
                               4097,
                               8191,
                               8192,
                               8193,
                               9000,
                               30000,
                               LARGEST_SMALL,
                               LARGEST_SMALL + 1,
                               1 << 20};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

static bool is_all(const unsigned char *memory, size_t bytes, unsigned char value)
{
    size_t same = 0;
    while (same < bytes && memory[same] == value)
        same++;
    return same == bytes;
}

/* Takes some blocks, writes to all, and gives them back. */
static void use(unsigned char value)
{
    enum { BLOCKS = 8 };
    unsigned char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = memory_take(SIZES[i % 5]);
        memset(blocks[i], value, SIZES[i % 5]);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (!is_all(blocks[i], SIZES[i % 5], value))
            abort();
        memory_give(blocks[i]);
    }
}

static void on_alarm(int signal)
{
    use((unsigned char)signal);
}

static void *use_often(void *value)
{
    for (int i = 0; i < (UNIT_SANITIZED ? 2000 : 20000); i++)
        use((unsigned char)(uintptr_t)value);
    return NULL;
}

TEST(threads_and_their_handlers_never_share_a_block)
{
    pthread_t threads[4];
    struct itimerval often = {{0, 100}, {0, 100}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, use_often, (void *)(100 + i)), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    CHECK_EQUAL(memory_in_use(), 0);
}

TEST(memory_that_grows_keeps_what_is_in_it)
{
    unsigned char *memory = NULL;
    for (int i = 0; i < SIZE_COUNT; i++) {
        size_t before = i ? SIZES[i - 1] : 0;
        CHECK((memory = memory_resize(memory, SIZES[i])));
        CHECK(is_all(memory, before, 7));
        memset(memory, 7, SIZES[i]);
    }
    memory_give(memory);
    CHECK_EQUAL(memory_in_use(), 0);
    CHECK(!memory_take(SIZE_MAX) && !memory_take(SIZE_MAX / 2));
    CHECK_EQUAL(memory_in_use(), 0);
}
