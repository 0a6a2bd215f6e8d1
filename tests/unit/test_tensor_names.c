#include "record/tensor_names.h"

#include "tensor_lists.h"
#include "unit.h"

enum { TENSORS = 5, ROOM = TENSOR_LIST_OF_NONE + TENSORS * TENSOR_BYTES, DAMAGED = 100000 };
static const int tensors[TENSORS] = {3, 4, 5, 7, 130};

struct found {
    unsigned number;
    uint64_t hashes[TENSORS];
};

static void note(void *context, uint64_t hash)
{
    struct found *found = context;
    if (found->number < TENSORS)
        found->hashes[found->number] = hash;
    found->number++;
}

typedef unsigned (*writes)(void *bytes, const int *tensors, int count, int is_last);
typedef bool (*reads)(const void *bytes, uint64_t length, tensor_name_found found, void *context);
static const struct kind {
    writes write;
    reads read;
} KINDS[] = {{list_requests, tensor_names_requested}, {list_responses, tensor_names_answered}};
enum { KINDS_ALL = sizeof KINDS / sizeof *KINDS };

/* In memory of exactly that length, so that the sanitizer sees what is read beyond. */
static bool read_alone(reads read, const unsigned char *bytes, unsigned length, struct found *found)
{
    unsigned char *alone = malloc(length);
    memcpy(alone, bytes, length);
    bool is_list = read(alone, length, note, found);
    free(alone);
    return is_list;
}

TEST(each_name_of_a_list_is_found_and_has_one_hash_in_both_kinds_of_list)
{
    unsigned char bytes[ROOM];
    struct found found[KINDS_ALL] = {{0}};
    for (int i = 0; i < KINDS_ALL; i++) {
        unsigned length = KINDS[i].write(bytes, tensors, TENSORS, false);
        CHECK(read_alone(KINDS[i].read, bytes, length, &found[i]));
        CHECK_EQUAL(found[i].number, TENSORS);
    }
    CHECK_EQUAL(memcmp(found[0].hashes, found[1].hashes, sizeof found[0].hashes), 0);
    CHECK(found[0].hashes[0] != found[0].hashes[1]);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

TEST(a_damaged_list_is_read_within_its_bytes_and_finds_no_more_names_than_fit)
{
    uint64_t state = 1;
    unsigned refused = 0;
    for (int i = 0; i < DAMAGED; i++) {
        const struct kind *kind = &KINDS[i % KINDS_ALL];
        unsigned char bytes[ROOM];
        struct found found = {0};
        unsigned length = kind->write(bytes, tensors, TENSORS, false);
        for (uint64_t damage = 1 + next_random(&state) % 4; damage; damage--)
            bytes[next_random(&state) % (length - 1)] = (unsigned char)next_random(&state);
        refused += !read_alone(kind->read, bytes, length, &found);
        CHECK(found.number <= length / 4);
    }
    CHECK(refused > DAMAGED / 4);
}
