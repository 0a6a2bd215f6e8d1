/* Handles of derived types and of the user's operations may be reused for others as soon as they
 * are freed, so nothing about them is remembered here.
 *
 * MPI-4.1, 5.1.13: the int form of MPI_Type_get_envelope fails for types that were made with large
 * counts, so the other form is used where the library has it. A datatype that MPI_Type_get_contents
 * returns must be freed unless it is predefined. */
#include "datatypes.h"

#include <stdio.h>

/* How the blocks of a type are found. */
enum layout {
    PREDEFINED,
    WITHIN,         /* it has those of the type that it is made from */
    ONE,            /* it has one */
    FIRST_ARGUMENT, /* their number is the constructor's first argument */
    ROWS,           /* of a subarray: the product of all sizes but the contiguous one */
    PER_ADDRESS,    /* the constructor has an address for each */
    PER_INTEGER,    /* an integer for each, after the number of them */
    PER_INTEGER_2,  /* two integers */
    AFTER_2,        /* an integer for each, after two others */
    NOT_KNOWN,
};

/* The values of MPI_COMBINER_... differ between the ABIs; -1: there is none. */
static const struct constructor {
    const char *name;
    int16_t open_mpi, mpich, standard;
    enum layout layout;
} CONSTRUCTORS[] = {
    {NULL, 0, 1, 101, PREDEFINED},
    {"vector", 3, 4, 104, FIRST_ARGUMENT},
    {"resized", 17, 18, 116, WITHIN},
    {"contiguous", 2, 3, 103, ONE},
    {"hvector", 5, 6, 105, FIRST_ARGUMENT},
    {"subarray", 12, 13, 111, ROWS},
    {"struct", 11, 12, 110, PER_INTEGER},
    {"indexed", 6, 7, 106, PER_INTEGER_2},
    {"hindexed", 8, 9, 107, PER_INTEGER},
    {"indexed_block", 9, 10, 108, AFTER_2},
    {"hindexed_block", 18, 19, 109, PER_ADDRESS},
    {"dup", 1, 2, 102, WITHIN},
    {"hvector", 4, 5, -1, FIRST_ARGUMENT}, /* these three: Fortran's INTEGER forms of MPI-1 */
    {"hindexed", 7, 8, -1, NOT_KNOWN},
    {"struct", 10, 11, -1, NOT_KNOWN},
    {"darray", 13, 14, 112, NOT_KNOWN},
    {"f90_real", 14, 15, 113, ONE},
    {"f90_complex", 15, 16, 114, ONE},
    {"f90_integer", 16, 17, 115, ONE},
    {"value_index", 19, 20, 117, ONE},
    {"unknown", -1, -1, -1, NOT_KNOWN},
};

static const struct constructor *constructor_of(int combiner)
{
    const struct constructor *constructor = CONSTRUCTORS;
    while (constructor->layout != NOT_KNOWN || constructor->open_mpi >= 0) {
        int value = mpi_abi.kind == MPI_ABI_OPEN_MPI ? constructor->open_mpi
                    : mpi_abi.kind == MPI_ABI_MPICH  ? constructor->mpich
                                                     : constructor->standard;
        if (value == combiner)
            break;
        constructor++;
    }
    return constructor;
}

/* How many arguments of each kind the constructor had. Made with large counts, `counts` is not
 * 0. */
struct envelope {
    mpi_count integers, addresses, counts, types;
    const struct constructor *constructor;
};

static bool read_envelope(mpi_handle type, struct envelope *envelope)
{
    int combiner = -1, error = MPI_SUCCESS + 1;
    *envelope = (struct envelope){0};
    if (mpi_query.Type_get_envelope_c) {
        error = mpi_query.Type_get_envelope_c(type, &envelope->integers, &envelope->addresses,
                                              &envelope->counts, &envelope->types, &combiner);
    } else if (mpi_query.Type_get_envelope) {
        int integers = 0, addresses = 0, types = 0;
        error = mpi_query.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
        *envelope = (struct envelope){.integers = integers, .addresses = addresses, .types = types};
    }
    envelope->constructor = constructor_of(combiner);
    return error == MPI_SUCCESS;
}

/* The arguments of a constructor that had few, and the one type that it had. */
enum { MOST_ARGUMENTS = 32 };
struct contents {
    int integers[MOST_ARGUMENTS];
    mpi_count counts[MOST_ARGUMENTS];
    mpi_aint addresses[MOST_ARGUMENTS];
    uint64_t type; /* a handle in memory; to be released */
};

static bool read_contents(mpi_handle type, const struct envelope *envelope,
                          struct contents *contents)
{
    mpi_count integers = envelope->integers, addresses = envelope->addresses,
              counts = envelope->counts, types = envelope->types;
    if (types != 1 || integers > MOST_ARGUMENTS || addresses > MOST_ARGUMENTS ||
        counts > MOST_ARGUMENTS)
        return false;
    if (mpi_query.Type_get_envelope_c)
        return mpi_query.Type_get_contents_c &&
               mpi_query.Type_get_contents_c(type, integers, addresses, counts, types,
                                             contents->integers, contents->addresses,
                                             contents->counts, &contents->type) == MPI_SUCCESS;
    return mpi_query.Type_get_contents &&
           mpi_query.Type_get_contents(type, (int)integers, (int)addresses, (int)types,
                                       contents->integers, contents->addresses,
                                       &contents->type) == MPI_SUCCESS;
}

/* Predefined types, which have no type in them, are not freed. */
static void release_type(uint64_t type)
{
    struct envelope envelope;
    if (mpi_query.Type_free && read_envelope(mpi_handle_load(&type, 0), &envelope) &&
        envelope.types > 0)
        mpi_query.Type_free(&type);
}

/* ndims, then all sizes, all sizes of the part, all starts; the order last. */
static uint64_t rows_of(const struct contents *contents)
{
    int dimensions = contents->integers[0];
    if (dimensions < 1 || 3 * dimensions + 2 > MOST_ARGUMENTS)
        return 0;
    const int *part = contents->integers + 1 + dimensions;
    int contiguous = contents->integers[3 * dimensions + 1] == mpi_abi.order_c ? dimensions - 1 : 0;
    uint64_t rows = 1;
    for (int i = 0; i < dimensions; i++)
        rows *= i == contiguous ? 1 : (uint64_t)part[i];
    return rows;
}

static uint64_t blocks_of_arguments(mpi_handle type, const struct envelope *envelope)
{
    struct contents contents;
    bool is_large = envelope->counts > 0, has_rows = envelope->constructor->layout == ROWS;
    if ((is_large && has_rows) || !read_contents(type, envelope, &contents))
        return 0;
    mpi_count first = is_large ? contents.counts[0] : contents.integers[0];
    release_type(contents.type);
    return has_rows ? rows_of(&contents) : (uint64_t)first;
}

static uint64_t blocks_laid_out(mpi_handle type, const struct envelope *envelope)
{
    enum layout layout = envelope->constructor->layout;
    if (layout == FIRST_ARGUMENT || layout == ROWS)
        return blocks_of_arguments(type, envelope);
    if (layout == PREDEFINED || layout == ONE)
        return 1;
    if (envelope->counts > 0)
        return 0;
    return layout == PER_ADDRESS     ? (uint64_t)envelope->addresses
           : layout == PER_INTEGER   ? (uint64_t)envelope->integers - 1
           : layout == PER_INTEGER_2 ? (uint64_t)(envelope->integers - 1) / 2
           : layout == AFTER_2       ? (uint64_t)envelope->integers - 2
                                     : 0;
}

/* The type in a duplicate or resized type; to be released. 0: there is none. */
static uint64_t type_within(mpi_handle type, const struct envelope *envelope)
{
    struct contents contents = {.type = 0};
    return envelope->constructor->layout == WITHIN && read_contents(type, envelope, &contents)
               ? contents.type
               : 0;
}

/* Looks through a few duplicates and resized types. */
static uint64_t blocks_of(mpi_handle type, struct envelope envelope)
{
    enum { MOST_DEEP = 4 };
    uint64_t within[MOST_DEEP], blocks;
    int deep = 0;
    while (deep < MOST_DEEP && (within[deep] = type_within(type, &envelope))) {
        type = mpi_handle_load(&within[deep++], 0);
        if (!read_envelope(type, &envelope))
            break;
    }
    blocks = blocks_laid_out(type, &envelope);
    while (deep-- > 0)
        release_type(within[deep]);
    return blocks;
}

bool mpi_datatype_ask(mpi_handle type, struct mpi_datatype *datatype)
{
    struct envelope envelope;
    mpi_aint low, extent;
    if (!mpi_query.Type_get_extent ||
        mpi_query.Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
        !read_envelope(type, &envelope))
        return false;
    *datatype =
        (struct mpi_datatype){envelope.constructor->name, extent, blocks_of(type, envelope)};
    return true;
}

void mpi_datatype_name(mpi_handle type, char *name, size_t bytes)
{
    char found[256] = ""; /* MPI_MAX_OBJECT_NAME is at most 128 */
    int length = 0;
    if (mpi_query.Type_get_name)
        mpi_query.Type_get_name(type, found, &length);
    snprintf(name, bytes, "%.*s", (int)bytes - 1, *found ? found : "predefined");
}

/* The most frequent first. */
static struct named_op {
    const char *name, *open_mpi;
    mpi_handle mpich, standard;
    bool is_commutative;
    mpi_handle op; /* in this process */
} ops[] = {
    {"MPI_SUM", "ompi_mpi_op_sum", 0x58000003, 0x21, true, 0},
    {"MPI_MAX", "ompi_mpi_op_max", 0x58000001, 0x23, true, 0},
    {"MPI_MIN", "ompi_mpi_op_min", 0x58000002, 0x22, true, 0},
    {"MPI_PROD", "ompi_mpi_op_prod", 0x58000004, 0x24, true, 0},
    {"MPI_LAND", "ompi_mpi_op_land", 0x58000005, 0x30, true, 0},
    {"MPI_BAND", "ompi_mpi_op_band", 0x58000006, 0x28, true, 0},
    {"MPI_LOR", "ompi_mpi_op_lor", 0x58000007, 0x31, true, 0},
    {"MPI_BOR", "ompi_mpi_op_bor", 0x58000008, 0x29, true, 0},
    {"MPI_LXOR", "ompi_mpi_op_lxor", 0x58000009, 0x32, true, 0},
    {"MPI_BXOR", "ompi_mpi_op_bxor", 0x5800000a, 0x2a, true, 0},
    {"MPI_MINLOC", "ompi_mpi_op_minloc", 0x5800000b, 0x38, true, 0},
    {"MPI_MAXLOC", "ompi_mpi_op_maxloc", 0x5800000c, 0x39, true, 0},
    {"MPI_REPLACE", "ompi_mpi_op_replace", 0x5800000d, 0x3c, false, 0},
    {"MPI_NO_OP", "ompi_mpi_op_no_op", 0x5800000e, 0x3d, false, 0},
};
enum { OPS = sizeof ops / sizeof *ops };

void mpi_ops_learn(void)
{
    for (int i = 0; i < OPS; i++)
        ops[i].op = mpi_abi.kind == MPI_ABI_OPEN_MPI ? mpi_object_address(ops[i].open_mpi)
                    : mpi_abi.kind == MPI_ABI_MPICH  ? ops[i].mpich
                                                     : ops[i].standard;
}

static const struct named_op *find_op(mpi_handle op)
{
    for (int i = 0; i < OPS; i++)
        if (ops[i].op == mpi_handle_bits(op))
            return &ops[i];
    return NULL;
}

const char *mpi_op_name(mpi_handle op)
{
    const struct named_op *named = find_op(op);
    return named ? named->name : NULL;
}

mpi_handle mpi_op_named(const char *name)
{
    for (int i = 0; i < OPS; i++)
        if (strcmp(ops[i].name, name) == 0)
            return ops[i].op;
    return 0;
}

bool mpi_op_is_commutative(mpi_handle op)
{
    const struct named_op *named = find_op(op);
    int commutes = 0;
    if (named)
        return named->is_commutative;
    return mpi_query.Op_commutative && mpi_query.Op_commutative(op, &commutes) == MPI_SUCCESS &&
           commutes;
}

/* Predefined datatypes by the names that MPI gives them: Open MPI's objects, and the handles of the
 * two other ABIs. 0: it has none. */
static const struct {
    const char *name, *open_mpi;
    uint32_t mpich, standard;
} TYPES[] = {
    {"MPI_BYTE", "ompi_mpi_byte", 0x4c00010d, 0x247},
    {"MPI_PACKED", "ompi_mpi_packed", 0x4c00010f, 0x207},
    {"MPI_CHAR", "ompi_mpi_char", 0x4c000101, 0x243},
    {"MPI_SIGNED_CHAR", "ompi_mpi_signed_char", 0x4c000118, 0x244},
    {"MPI_UNSIGNED_CHAR", "ompi_mpi_unsigned_char", 0x4c000102, 0x245},
    {"MPI_SHORT", "ompi_mpi_short", 0x4c000203, 0x208},
    {"MPI_UNSIGNED_SHORT", "ompi_mpi_unsigned_short", 0x4c000204, 0x20c},
    {"MPI_INT", "ompi_mpi_int", 0x4c000405, 0x209},
    {"MPI_UNSIGNED", "ompi_mpi_unsigned", 0x4c000406, 0x20d},
    {"MPI_LONG", "ompi_mpi_long", 0x4c000807, 0x20a},
    {"MPI_UNSIGNED_LONG", "ompi_mpi_unsigned_long", 0x4c000808, 0x20e},
    {"MPI_LONG_LONG", "ompi_mpi_long_long_int", 0x4c000809, 0x20b},
    {"MPI_LONG_LONG_INT", "ompi_mpi_long_long_int", 0x4c000809, 0x20b},
    {"MPI_UNSIGNED_LONG_LONG", "ompi_mpi_unsigned_long_long", 0x4c000819, 0x20f},
    {"MPI_FLOAT", "ompi_mpi_float", 0x4c00040a, 0x210},
    {"MPI_DOUBLE", "ompi_mpi_double", 0x4c00080b, 0x214},
    {"MPI_LONG_DOUBLE", "ompi_mpi_long_double", 0x4c00100c, 0x220},
    {"MPI_C_BOOL", "ompi_mpi_c_bool", 0x4c00013f, 0x238},
    {"MPI_INT8_T", "ompi_mpi_int8_t", 0x4c000137, 0x240},
    {"MPI_UINT8_T", "ompi_mpi_uint8_t", 0x4c00013b, 0x241},
    {"MPI_INT16_T", "ompi_mpi_int16_t", 0x4c000238, 0x248},
    {"MPI_UINT16_T", "ompi_mpi_uint16_t", 0x4c00023c, 0x249},
    {"MPI_INT32_T", "ompi_mpi_int32_t", 0x4c000439, 0x250},
    {"MPI_UINT32_T", "ompi_mpi_uint32_t", 0x4c00043d, 0x251},
    {"MPI_INT64_T", "ompi_mpi_int64_t", 0x4c00083a, 0x258},
    {"MPI_UINT64_T", "ompi_mpi_uint64_t", 0x4c00083e, 0x259},
    {"MPI_AINT", "ompi_mpi_aint", 0x4c000843, 0x201},
    {"MPI_COUNT", "ompi_mpi_count", 0x4c000845, 0x202},
    {"MPI_OFFSET", "ompi_mpi_offset", 0x4c000844, 0x203},
    {"MPI_INTEGER", "ompi_mpi_integer", 0x4c00041b, 0},
    {"MPI_REAL", "ompi_mpi_real", 0x4c00041c, 0},
    {"MPI_DOUBLE_PRECISION", "ompi_mpi_dblprec", 0x4c00081f, 0},
    {"MPI_COMPLEX", "ompi_mpi_cplex", 0x4c00081e, 0},
    {"MPI_DOUBLE_COMPLEX", "ompi_mpi_dblcplex", 0x4c001022, 0},
    {"MPI_LOGICAL", "ompi_mpi_logical", 0x4c00041d, 0},
    {"MPI_CHARACTER", "ompi_mpi_character", 0x4c00011a, 0},
    {"MPI_C_FLOAT_COMPLEX", "ompi_mpi_c_float_complex", 0x4c000840, 0x212},
    {"MPI_C_DOUBLE_COMPLEX", "ompi_mpi_c_double_complex", 0x4c001041, 0x216},
    {"MPI_2INT", "ompi_mpi_2int", 0x4c000816, 0x22b},
};

mpi_handle mpi_type_named(const char *name)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(name, TYPES[i].name) == 0)
            return mpi_abi.kind == MPI_ABI_OPEN_MPI ? mpi_object_address(TYPES[i].open_mpi)
                   : mpi_abi.kind == MPI_ABI_MPICH  ? TYPES[i].mpich
                                                    : TYPES[i].standard;
    return 0;
}
