#include "record/signatures.h"

#include "fake_mpi.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <pthread.h>

/* Derived types of MPICH's ABI, each under a handle that the test may give to another one. */
static struct fake_type {
    mpi_handle handle, within;
    int combiner, integers[40], integer_count, bytes;
    mpi_aint extent;
    mpi_count large; /* made with large counts: the first of them */
} fake_types[8];
static int types_held, fake_commutes;

enum { VECTOR = 0x5018, OTHER = 0x5028, USERS_OP = 0x98000000, SUM = 0x58000003 };
enum {
    NAMED_COMBINER = 1,
    VECTOR_COMBINER = 4,
    INDEXED_COMBINER = 7,
    SUBARRAY_COMBINER = 13,
    RESIZED_COMBINER = 18
};
enum { MPICH_FLOAT = 0x4c00040a };

static const struct fake_type *type_of(mpi_handle handle)
{
    static const struct fake_type NAMED = {.combiner = NAMED_COMBINER, .extent = 4};
    __atomic_add_fetch(&fake_questions, 1, __ATOMIC_RELAXED); /* several threads may ask */
    for (size_t i = 0; i < sizeof fake_types / sizeof *fake_types; i++)
        if (fake_types[i].handle == mpi_handle_bits(handle))
            return &fake_types[i];
    CHECK_EQUAL(mpi_handle_bits(handle), MPICH_FLOAT);
    return &NAMED;
}

static int fake_extent(mpi_handle type, mpi_aint *low, mpi_aint *extent)
{
    *low = 0;
    *extent = type_of(type)->extent;
    return MPI_SUCCESS;
}

static int fake_envelope(mpi_handle type, int *integers, int *addresses, int *types, int *combiner)
{
    const struct fake_type *known = type_of(type);
    CHECK(!known->large); /* MPI would call the job's error handler */
    *integers = known->integer_count;
    *addresses = known->combiner == RESIZED_COMBINER ? 2 : 0;
    *types = known->combiner != NAMED_COMBINER;
    *combiner = known->combiner;
    return MPI_SUCCESS;
}

static int fake_large_envelope(mpi_handle type, mpi_count *integers, mpi_count *addresses,
                               mpi_count *counts, mpi_count *types, int *combiner)
{
    const struct fake_type *known = type_of(type);
    *counts = known->large ? 3 : 0;
    *integers = known->large ? 0 : known->integer_count;
    *addresses = 0;
    *types = known->combiner != NAMED_COMBINER;
    *combiner = known->combiner;
    return MPI_SUCCESS;
}

static int fake_contents(mpi_handle type, int integers, int addresses, int types, int *values,
                         mpi_aint *places, void *within)
{
    const struct fake_type *known = type_of(type);
    (void)addresses, (void)types, (void)places;
    memcpy(values, known->integers, (size_t)integers * sizeof *values);
    mpi_handle_store(within, known->within);
    types_held += known->within != MPICH_FLOAT;
    return MPI_SUCCESS;
}

static int fake_large_contents(mpi_handle type, mpi_count integers, mpi_count addresses,
                               mpi_count counts, mpi_count types, int *values, mpi_aint *places,
                               mpi_count *large, void *within)
{
    if (!counts)
        return fake_contents(type, (int)integers, (int)addresses, (int)types, values, places,
                             within);
    large[0] = type_of(type)->large;
    mpi_handle_store(within, MPICH_FLOAT);
    return MPI_SUCCESS;
}

static int fake_free(void *type)
{
    CHECK(mpi_handle_load(type, 0) != MPICH_FLOAT); /* a predefined type cannot be freed */
    types_held--;
    return MPI_SUCCESS;
}

static int fake_name(mpi_handle type, char *name, int *length)
{
    CHECK_EQUAL(mpi_handle_bits(type), MPICH_FLOAT);
    *length = sprintf(name, "MPI_FLOAT");
    __atomic_add_fetch(&fake_questions, 1, __ATOMIC_RELAXED);
    return MPI_SUCCESS;
}

static int fake_op_commutative(mpi_handle op, int *commutes)
{
    CHECK_EQUAL(mpi_handle_bits(op), USERS_OP);
    *commutes = fake_commutes;
    return MPI_SUCCESS;
}

static int fake_bytes(mpi_handle type, int *bytes)
{
    *bytes = type_of(type)->bytes;
    return MPI_SUCCESS;
}

static void begin_with(size_t ledger_bytes)
{
    CHECK_EQUAL(ledger_open("ledger", ledger_bytes), 0);
    fake_mpi_speak("mpich");
    mpi_query.Type_get_extent = fake_extent;
    mpi_query.Type_get_envelope = fake_envelope;
    mpi_query.Type_get_contents = fake_contents;
    mpi_query.Type_free = fake_free;
    mpi_query.Type_get_name = fake_name;
    mpi_query.Type_size = fake_bytes;
    mpi_query.Op_commutative = fake_op_commutative;
    signatures_begin(the_ledger.limit_bytes, false);
}

static void begin(void)
{
    begin_with(64 << 20);
}

static struct thread own;

static unsigned number_of(struct signature_arguments arguments)
{
    arguments.bytes = arguments.bytes ? arguments.bytes : 64;
    return signature_number(&own, NULL, &arguments);
}

#define NUMBER(...) number_of((struct signature_arguments){__VA_ARGS__})

static const struct ledger_signature *entry_of(unsigned number)
{
    const struct ledger_signature *entry;
    READER_EACH(entry, the_ledger.header, LEDGER_SIGNATURES)
        if (entry->signature == number)
            return entry;
    CHECK(!"there is no such signature");
    return NULL;
}

static uint64_t blocks(unsigned number)
{
    return entry_of(number)->blocks;
}

/* Blocks of two elements, each four after the one before. */
static const struct fake_type THREE_BLOCKS = {
    VECTOR, MPICH_FLOAT, VECTOR_COMBINER, {3, 2, 4}, 3, 24, 40, 0};

TEST(equal_arguments_have_one_number)
{
    begin();
    struct signature_arguments sum = {
        .count = 10, .type = MPICH_FLOAT, .op = SUM, .is_in_place = true};
    CHECK_EQUAL(number_of(sum), 1);
    unsigned asked = fake_questions;
    CHECK_EQUAL(number_of(sum), 1);
    memset(&own, 0, sizeof own); /* another thread */
    CHECK_EQUAL(number_of(sum), 1);
    CHECK_EQUAL(fake_questions, asked);
    const struct ledger_signature *entry = entry_of(1);
    CHECK_TEXT(entry->datatype, "MPI_FLOAT");
    CHECK_TEXT(entry->op, "MPI_SUM");
    CHECK_EQUAL(entry->count, 10);
    CHECK_EQUAL(entry->type_bytes, 4);
    CHECK_EQUAL(entry->extent, 4);
    CHECK_EQUAL(entry->flags, LEDGER_SIGNATURE_IN_PLACE | LEDGER_SIGNATURE_COMMUTATIVE);
}

TEST(each_argument_makes_a_difference)
{
    begin();
    for (int twice = 0; twice < 2; twice++) {
        CHECK_EQUAL(NUMBER(.count = 10, .type = MPICH_FLOAT), 1);
        CHECK_EQUAL(NUMBER(.count = 11, .type = MPICH_FLOAT), 2);
        CHECK_EQUAL(NUMBER(.count = 10, .type = MPICH_FLOAT, .op = SUM), 3);
        CHECK_EQUAL(NUMBER(.count = 10, .type = MPICH_FLOAT, .op = SUM - 1), 4);
        CHECK_EQUAL(NUMBER(.count = 10, .type = MPICH_FLOAT, .is_in_place = true), 5);
        CHECK_EQUAL(NUMBER(.count = 10, .type = MPICH_FLOAT, .memory_kind = LEDGER_DEVICE), 6);
    }
}

TEST(bits_above_a_handle_do_not_count)
{
    begin();
    CHECK_EQUAL(NUMBER(.count = 1, .type = MPICH_FLOAT, .op = SUM), 1);
    CHECK_EQUAL(
        NUMBER(.count = 1, .type = 0xffffffff00000000 | MPICH_FLOAT, .op = 1ull << 40 | SUM), 1);
}

TEST(a_type_of_a_freed_one_s_handle_is_another)
{
    begin();
    struct signature_arguments two = {.count = 2, .type = VECTOR};
    fake_types[0] = THREE_BLOCKS;
    CHECK_EQUAL(number_of(two), 1);
    CHECK_EQUAL(number_of(two), 1);
    fake_types[0] = (struct fake_type){VECTOR, MPICH_FLOAT, VECTOR_COMBINER, {2, 3, 7}, 3, 24, 40,
                                       0}; /* of the same size and extent */
    CHECK_EQUAL(number_of(two), 2);
    fake_types[0].handle = 0;
    fake_types[1] =
        (struct fake_type){OTHER, MPICH_FLOAT, VECTOR_COMBINER, {3, 2, 4}, 3, 24, 40, 0};
    two.type = OTHER;
    CHECK_EQUAL(number_of(two), 1);
    CHECK_TEXT(entry_of(1)->datatype, "vector");
    CHECK_EQUAL(blocks(1), 3);
    CHECK_EQUAL(blocks(2), 2);
    CHECK_EQUAL(types_held, 0);
}

TEST(an_operation_of_a_freed_one_s_handle_is_another)
{
    begin();
    struct signature_arguments users = {.count = 2, .type = MPICH_FLOAT, .op = USERS_OP};
    CHECK_EQUAL(number_of(users), 1);
    fake_commutes = 1;
    CHECK_EQUAL(number_of(users), 2);
    fake_commutes = 0;
    CHECK_EQUAL(number_of(users), 1);
    CHECK_TEXT(entry_of(1)->op, "user");
    CHECK_EQUAL(entry_of(1)->flags, 0);
    CHECK_EQUAL(entry_of(2)->flags, LEDGER_SIGNATURE_COMMUTATIVE);
}

TEST(blocks_are_those_of_the_type_within)
{
    begin();
    fake_types[0] = THREE_BLOCKS;
    fake_types[1] = (struct fake_type){OTHER, VECTOR, RESIZED_COMBINER, {0}, 0, 24, 4, 0};
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = OTHER)), 3);
    fake_types[1] = (struct fake_type){OTHER, OTHER, RESIZED_COMBINER, {0}, 0, 24,
                                       4,     0}; /* deeper than we look */
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = OTHER)), 0);
    fake_types[1] =
        (struct fake_type){OTHER, MPICH_FLOAT, INDEXED_COMBINER, {2, 1, 1, 0, 5}, 5, 8, 24, 0};
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = OTHER)), 2);
    fake_types[1] = (struct fake_type){
        OTHER, MPICH_FLOAT, SUBARRAY_COMBINER, {2, 8, 8, 3, 5, 0, 0, 56}, 8, 60, 256, 0};
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = OTHER)), 3);
    fake_types[1].integers[7] = 57; /* MPI_ORDER_FORTRAN */
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = OTHER)), 5);
    CHECK_EQUAL(types_held, 0);
}

/* A part of so many dimensions, of 1 * 2 * 3 * 1 * 2 * 3... elements. */
static uint64_t blocks_of_subarray(int dimensions, int order)
{
    struct fake_type type = {
        VECTOR, MPICH_FLOAT, SUBARRAY_COMBINER, {dimensions}, 3 * dimensions + 2, 4, 4, 0};
    for (int i = 0; i < dimensions; i++) {
        type.integers[1 + i] = 8;
        type.integers[1 + dimensions + i] = 1 + i % 3;
    }
    type.integers[3 * dimensions + 1] = order;
    fake_types[0] = type;
    return blocks(NUMBER(.count = (mpi_count)dimensions, .type = VECTOR));
}

TEST(a_subarray_has_as_many_blocks_as_its_part_has_rows)
{
    enum { ORDER_C = 56, ORDER_FORTRAN = 57 };
    begin();
    CHECK_EQUAL(blocks_of_subarray(1, ORDER_C), 1);
    CHECK_EQUAL(blocks_of_subarray(3, ORDER_C), 1 * 2);
    CHECK_EQUAL(blocks_of_subarray(3, ORDER_FORTRAN), 2 * 3);
    CHECK_EQUAL(blocks_of_subarray(10, ORDER_FORTRAN), 6 * 6 * 6 * 1);
    CHECK_EQUAL(blocks_of_subarray(11, ORDER_C), 0); /* more arguments than we look at */
}

TEST(the_arguments_of_a_constructor_say_how_many_blocks_there_are)
{
    static const struct {
        const char *name;
        int combiner, integers, blocks; /* MPICH's combiner */
    } CONSTRUCTORS[] = {{"contiguous", 3, 1, 1},     {"vector", 4, 3, 7},  {"hvector", 6, 2, 7},
                        {"struct", 12, 4, 3},        {"indexed", 7, 7, 3}, {"hindexed", 9, 4, 3},
                        {"indexed_block", 10, 5, 3}, {"darray", 14, 9, 0}, {"f90_real", 15, 2, 1},
                        {"value_index", 20, 0, 1},   {"unknown", 99, 3, 0}};
    begin();
    for (size_t i = 0; i < sizeof CONSTRUCTORS / sizeof *CONSTRUCTORS; i++) {
        unit_context = CONSTRUCTORS[i].name;
        fake_types[0] = (struct fake_type){
            VECTOR, MPICH_FLOAT, CONSTRUCTORS[i].combiner, {7}, CONSTRUCTORS[i].integers, 4, 4, 0};
        unsigned number = NUMBER(.count = 1, .type = VECTOR);
        CHECK_TEXT(entry_of(number)->datatype, CONSTRUCTORS[i].name);
        CHECK_EQUAL(blocks(number), CONSTRUCTORS[i].blocks);
    }
}

TEST(a_type_made_with_large_counts_is_asked_about_in_that_form)
{
    begin();
    mpi_query.Type_get_envelope_c = fake_large_envelope;
    mpi_query.Type_get_contents_c = fake_large_contents;
    fake_types[0] =
        (struct fake_type){VECTOR, MPICH_FLOAT, VECTOR_COMBINER, {0}, 0, 24, 40, 1ll << 33};
    CHECK_EQUAL(blocks(NUMBER(.count = 1, .type = VECTOR)), 1ll << 33);
}

TEST(a_type_for_each_count_is_in_the_hash)
{
    begin();
    const int sizes[] = {1, 2};
    const uint32_t floats[] = {MPICH_FLOAT, MPICH_FLOAT}, mixed[] = {MPICH_FLOAT, VECTOR};
    fake_types[0] = THREE_BLOCKS;
    struct signature_arguments some = {.counts = {sizes, false}, .length = 2, .types = floats};
    CHECK_EQUAL(number_of(some), 1);
    some.types = mixed;
    CHECK_EQUAL(number_of(some), 2);
    CHECK_TEXT(entry_of(2)->datatype, "");
    CHECK_EQUAL(entry_of(2)->count, 0);
}

/* How many facts have this key and, behind it, this value. */
static unsigned facts_of(const char *text)
{
    unsigned facts = 0;
    for (uint32_t i = 0; i < the_ledger.header->chunk_count; i++) {
        struct ledger_chunk *chunk = ledger_chunk_at(the_ledger.header, i);
        for (size_t k = 0; chunk->kind == LEDGER_FACTS && k + strlen(text) <= chunk->used; k++)
            facts += memcmp((char *)ledger_entry(chunk, 0) + k, text, strlen(text)) == 0;
    }
    return facts;
}

static unsigned full_facts(void)
{
    return facts_of("signatures_full");
}

/* A thread in or outside a record of the windows 10 to 20. */
static void begin_recorded(size_t ledger_bytes)
{
    begin_with(ledger_bytes);
    signatures_begin(the_ledger.limit_bytes, true);
    the_ledger.header->record_first = 10;
    the_ledger.header->record_last = 20;
}

static void enter_window(uint64_t window)
{
    static struct ledger_page page;
    page.first = window;
    own.window.page = &page;
}

TEST(a_job_to_be_recorded_has_vectors_of_counts_as_facts)
{
    begin_recorded(64 << 20);
    const int sizes[] = {1, 0, 30};
    const uint32_t types[] = {MPICH_FLOAT, MPICH_FLOAT, VECTOR};
    fake_types[0] = THREE_BLOCKS;
    struct signature_arguments some = {
        .bytes = 124, .type = MPICH_FLOAT, .counts = {sizes, false}, .length = 3};
    CHECK_EQUAL(number_of(some), 1);
    CHECK_EQUAL(number_of(some), 1);
    CHECK_EQUAL(facts_of("counts.1"
                         "1 0 30"),
                1);
    some.type = 0;
    some.types = types;
    CHECK_EQUAL(number_of(some), 2);
    CHECK_EQUAL(facts_of("counts.2"
                         "4 0 720"),
                1);
}

/* The text of a vector has half of a chunk; each number may have 20 digits, and a blank before it
 * and a zero behind. */
TEST(vectors_of_counts_are_facts_up_to_half_of_a_chunk)
{
    enum { ROOM = LEDGER_CHUNK_BYTES / 2, LONGEST = 21 };
    static const struct {
        long long first, last; /* all others are 1 */
        size_t bytes;          /* before the last */
        unsigned facts;
    } VECTORS[] = {{10, -1, ROOM - LONGEST - 1, 1},
                   {1, 1, ROOM - LONGEST, 0},
                   {10, -1, ROOM - LONGEST + 1, 0}};
    static long long counts[ROOM];
    begin_recorded(64 << 20);
    for (unsigned i = 0; i < 3; i++) {
        char key[32];
        int length = 0;
        counts[length++] = VECTORS[i].first;
        size_t bytes = VECTORS[i].first == 10 ? 2 : 1;
        for (; bytes < VECTORS[i].bytes; bytes += 2)
            counts[length++] = 1;
        CHECK_EQUAL(bytes, VECTORS[i].bytes);
        counts[length++] = VECTORS[i].last;
        CHECK_EQUAL(
            NUMBER(.bytes = 4, .type = MPICH_FLOAT, .counts = {counts, true}, .length = length),
            i + 1);
        snprintf(key, sizeof key, "counts.%u1", i + 1);
        CHECK_EQUAL(facts_of(key), VECTORS[i].facts);
    }
    CHECK_EQUAL(facts_of(" 1 18446744073709551615"), 1);
}

TEST(buffers_tell_calls_in_the_record_apart)
{
    begin_recorded(64 << 20);
    struct recent recent = {.type = MPICH_FLOAT, .count = 10};
    struct signature_arguments some = {
        .bytes = 40, .count = 10, .type = MPICH_FLOAT, .buffer = &own, .received = &recent};
    enter_window(8);
    CHECK_EQUAL(signature_number(&own, &recent, &some), 1);
    CHECK_EQUAL(recent.signature, 0); /* else calls in the record would have it, too */
    enter_window(9);
    CHECK_EQUAL(signature_number(&own, &recent, &some), 2);
    enter_window(21);
    CHECK_EQUAL(signature_number(&own, &recent, &some), 2);
    CHECK_EQUAL(entry_of(1)->buffer_at, 0);
    CHECK_EQUAL(entry_of(2)->buffer_at, (uintptr_t)&own);
    CHECK_EQUAL(entry_of(2)->received_at, (uintptr_t)&recent);
    some.received = &own;
    CHECK_EQUAL(signature_number(&own, &recent, &some), 3);
    some.buffer = mpi_abi.in_place;
    CHECK_EQUAL(signature_number(&own, &recent, &some), 4);
    CHECK_EQUAL(entry_of(4)->buffer_at, 0);
    enter_window(22);
    CHECK_EQUAL(signature_number(&own, &recent, &some), 1);
}

TEST(what_is_outside_the_record_and_many_buffers_leave_room)
{
    begin_recorded(1 << 20);
    unsigned room = (unsigned)(the_ledger.limit_bytes / 8 / sizeof(struct ledger_signature)), i = 0;
    enter_window(1);
    while (NUMBER(.count = 1 + i, .type = MPICH_FLOAT))
        i++;
    CHECK_EQUAL(i, room / 2);
    CHECK_EQUAL(full_facts(), 0);
    enter_window(15);
    for (const char *buffer = (char *)&own; i < room - room / 4; i++)
        CHECK_EQUAL(NUMBER(.buffer = buffer + i), i + 1);
    CHECK_EQUAL(NUMBER(.buffer = &own), i + 1);
    CHECK_EQUAL(NUMBER(.buffer = &room), i + 1);
    CHECK_EQUAL(entry_of(i + 1)->buffer_at, 0);
}

TEST(numbers_end_at_65535)
{
    begin();
    for (unsigned i = 1; i <= UINT16_MAX; i++)
        CHECK_EQUAL(NUMBER(.count = i, .type = MPICH_FLOAT), i);
    CHECK_EQUAL(NUMBER(.count = UINT16_MAX + 1, .type = MPICH_FLOAT), 0);
    for (unsigned i = 1; i <= UINT16_MAX; i += 1000)
        CHECK_EQUAL(NUMBER(.count = i, .type = MPICH_FLOAT), i);
}

enum { THREADS = 4, SIZES = 2000 };

static void *look_up_all(void *numbers)
{
    struct thread *thread = calloc(1, sizeof *thread);
    for (unsigned i = 0; i < SIZES; i++)
        ((unsigned *)numbers)[i] =
            signature_number(thread, NULL,
                             &(struct signature_arguments){
                                 .bytes = 4, .count = 1 + (i * 7) % SIZES, .type = MPICH_FLOAT});
    free(thread);
    return NULL;
}

TEST(threads_agree_on_numbers)
{
    static unsigned numbers[THREADS][SIZES];
    pthread_t threads[THREADS];
    begin();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look_up_all, numbers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SIZES; i++) {
        CHECK(numbers[0][i] > 0);
        CHECK_EQUAL(entry_of(numbers[0][i])->count, 1 + (i * 7) % SIZES);
        for (int k = 1; k < THREADS; k++)
            CHECK_EQUAL(numbers[k][i], numbers[0][i]);
    }
}
