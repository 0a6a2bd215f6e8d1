#include "kit.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kit holds at most this. */
enum {
#define KIT_SIZE(NAME, MOST) NAME##_MOST = MOST,
#include "kit.def"
};

enum bound {
#define KIT_BOUND(NAME, VALUE) BOUND_##NAME,
#include "kit.def"
};

/* The part of a line that is kept as it is. */
union row {
    struct kit_comm comm;
    struct kit_type type;
    struct kit_call call;
    struct kit_program program;
};

static const struct word {
    const char *line;
    enum { AS_NUMBER, AS_MAYBE, AS_NAME, AS_LIST, AS_NUMBERS, AS_TEXT, AS_HOW } how;
    enum bound least, most;
    size_t at, bytes; /* of its field; 0: it has none */
} WORDS[] = {
#define FIELD(LINE, WORD) \
    offsetof(struct kit_##LINE, WORD), sizeof(((struct kit_##LINE *)NULL)->WORD)
#define KIT_WORD(LINE, WORD, HOW, LEAST, MOST) \
    {#LINE, AS_##HOW, BOUND_##LEAST, BOUND_##MOST, FIELD(LINE, WORD)},
#define KIT_NOTE(LINE, WORD, HOW, LEAST, MOST) {#LINE, AS_##HOW, BOUND_##LEAST, BOUND_##MOST, 0, 0},
#include "kit.def"
#undef FIELD
};

static const char UNLIKE[] = "a line is not as in a kit";

/* A kit that is being read: its lines, and what is wrong with it. */
struct reader {
    struct kit *kit;
    int rank;                   /* whose programs are kept */
    bool is_kept;               /* the present program is */
    int64_t before;             /* so many calls of it that set up are to come */
    struct kit_program program; /* the present one; programs are in order */
    int64_t gaps_ns;            /* of the program so far */
    int line;                   /* its number */
    /* of each rank, the last round whose parent it is a member of, and in which it is in a
     * communicator */
    int *in_parent, *in_round;
    int64_t number;    /* the last one of a line */
    int *list, listed; /* the others */
    size_t room_made, room_requests;
    int table_lines; /* read so far */
    const char *wrong;
};

static void *grown(void *rows, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return rows;
    *room = *room ? 2 * *room : 64;
    void *more = realloc(rows, *room * bytes);
    if (!more)
        abort();
    return more;
}

/* One more row of a table that grows by doubling; its number is its place. */
static void *next_row(void **rows, int *count, size_t bytes)
{
    if ((*count & (*count - 1)) == 0 &&
        !(*rows = realloc(*rows, (*count ? 2u * (unsigned)*count : 1u) * bytes)))
        abort();
    void *row = (char *)*rows + (size_t)(*count)++ * bytes;
    memset(row, 0, bytes);
    return row;
}

static int64_t bound_of(const struct kit *kit, enum bound bound, const union row *row)
{
    switch (bound) {
#define KIT_BOUND(NAME, VALUE) \
    case BOUND_##NAME:         \
        return VALUE;
#include "kit.def"
    }
    return -1;
}

static int64_t number_of(struct reader *reader, const char *word, int64_t least, int64_t most)
{
    enum { DIGITS_MOST = 18 };
    const char *digits = word + (*word == '-');
    size_t length = strspn(digits, "0123456789");
    bool is_number = length >= 1 && length <= DIGITS_MOST && !digits[length];
    int64_t value = is_number ? strtol(word, NULL, 10) : 0;
    if (!is_number || value < least || value > most) {
        reader->wrong = "a number is out of range";
        return least;
    }
    return value;
}

static void name_of(struct reader *reader, char name[KIT_NAME_BYTES], const char *word)
{
    if (!*word || strlen(word) >= KIT_NAME_BYTES)
        reader->wrong = "a name is empty or too long";
    snprintf(name, KIT_NAME_BYTES, "%s", strcmp(word, "-") == 0 ? "" : word);
}

/* The next word, with one blank before the one after it; NULL: there is none. */
static char *next_word(char **rest, const char *blank)
{
    return strsep(rest, blank);
}

static void list_of(struct reader *reader, char *text, const char *blank, int64_t most)
{
    for (char *word; (word = next_word(&text, blank)) && !reader->wrong;) {
        int *number = next_row((void **)&reader->list, &reader->listed, sizeof *number);
        *number = (int)number_of(reader, word, 0, most);
    }
}

static enum kit_how how_of(const char *text)
{
    static const char *const HOW[] = {"world", "self", "dup", "split"};
    int how = 0;
    while (how < KIT_UNKNOWN && strcmp(text, HOW[how]) != 0)
        how++;
    return (enum kit_how)how;
}

static void store_value(const struct word *word, void *field, int64_t value)
{
    if (word->bytes == sizeof(int))
        *(int *)field = (int)value;
    else if (word->bytes)
        *(int64_t *)field = value;
}

static void take_word(struct reader *reader, const struct word *word, char *text, union row *row)
{
    int64_t least = bound_of(reader->kit, word->least, row);
    int64_t most = bound_of(reader->kit, word->most, row);
    char name[KIT_NAME_BYTES];
    void *field = (char *)row + word->at;
    bool is_none = strcmp(text, "-") == 0;
    switch (word->how) {
    case AS_NAME:
        name_of(reader, word->bytes ? field : name, text);
        break;
    case AS_LIST:
        list_of(reader, is_none ? NULL : text, ",", most);
        break;
    case AS_NUMBERS:
        list_of(reader, text, " ", most);
        break;
    case AS_HOW:
        store_value(word, field, how_of(text));
        break;
    case AS_MAYBE:
        if (is_none) {
            store_value(word, field, KIT_NONE);
            break;
        } /* fall through */
    case AS_NUMBER:
        reader->number = number_of(reader, text, least, most);
        store_value(word, field, reader->number);
        break;
    default: /* AS_TEXT */
        break;
    }
}

/* The first word of a line of this kind; NULL: there is none. */
static const struct word *first_word(const char *line)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(WORDS[i].line, line) == 0)
            return &WORDS[i];
    return NULL;
}

static bool is_word_of(const struct word *word, const char *line)
{
    return word < WORDS + sizeof WORDS / sizeof *WORDS && strcmp(word->line, line) == 0;
}

/* The words of a line behind the one that says its kind. */
static void take_words(struct reader *reader, const char *line, char *rest, union row *row)
{
    const struct word *word = first_word(line);
    bool is_like = rest && word;
    for (; is_like && is_word_of(word, line); word++) {
        bool is_last = word->how == AS_TEXT || word->how == AS_NUMBERS;
        char *text = is_last ? rest : next_word(&rest, " ");
        if (text)
            take_word(reader, word, text, row);
        if (reader->wrong)
            return;
        is_like = text || word->how == AS_NUMBERS;
        rest = is_last ? NULL : rest;
    }
    if (!is_like || rest)
        reader->wrong = UNLIKE;
}

/* Whether one call on the parent makes this communicator, with the others of its round. */
static bool can_be_split(struct reader *reader, int number)
{
    const struct kit_comm *comms = reader->kit->comm, *comm = &comms[number];
    const struct kit_comm *before = comm - 1, *parent = &comms[comm->parent];
    bool is_first = comm->round == number;
    if (!is_first && (before->how != KIT_SPLIT || before->round != comm->round ||
                      before->parent != comm->parent))
        return false;
    for (int i = 0; is_first && i < parent->size; i++)
        reader->in_parent[parent->members[i]] = comm->round;
    for (int i = 0; i < comm->size; i++) {
        int rank = comm->members[i];
        if (reader->in_parent[rank] != comm->round || reader->in_round[rank] == comm->round)
            return false;
        reader->in_round[rank] = comm->round;
    }
    return true;
}

/* MPI_COMM_WORLD and MPI_COMM_SELF: all ranks in their order; none are listed. */
static bool is_predefined(const struct kit *kit, int number)
{
    const struct kit_comm *comm = &kit->comm[number];
    for (int i = 0; i < comm->size; i++)
        if (comm->members[i] != i)
            return false;
    return (int)comm->how == number && comm->parent == number && comm->round == 0 &&
           comm->size == (number == KIT_WORLD ? kit->ranks : 0);
}

static bool can_be_made(struct reader *reader, int number)
{
    const struct kit *kit = reader->kit;
    const struct kit_comm *comm = &kit->comm[number], *parent = &kit->comm[comm->parent];
    if (number < KIT_DUP)
        return is_predefined(kit, number);
    if (comm->how < KIT_DUP || comm->how == KIT_UNKNOWN || comm->parent == number ||
        comm->parent == KIT_SELF)
        return false;
    if (comm->how == KIT_SPLIT)
        return can_be_split(reader, number);
    return comm->round == number && comm->size == parent->size &&
           memcmp(comm->members, parent->members, (size_t)comm->size * sizeof *comm->members) == 0;
}

static void take_comm(struct reader *reader, const union row *row)
{
    struct kit *kit = reader->kit;
    int number = kit->comms;
    struct kit_comm *comm = next_row((void **)&kit->comm, &kit->comms, sizeof *comm);
    *comm = row->comm;
    comm->members = reader->list;
    comm->size = reader->listed;
    reader->list = NULL;
    if (!kit->ranks)
        reader->wrong = "communicators stand before the number of ranks";
    else if (!can_be_made(reader, number))
        reader->wrong = "a communicator cannot be made";
}

/* Once, before all lines that have ranks. */
static void take_ranks(struct reader *reader, const union row *row)
{
    size_t ranks = (size_t)reader->number;
    (void)row;
    if (reader->kit->ranks) {
        reader->wrong = "it has two numbers of ranks";
        return;
    }
    reader->kit->ranks = (int)ranks;
    reader->in_parent = calloc(ranks + 1, sizeof *reader->in_parent);
    reader->in_round = calloc(ranks + 1, sizeof *reader->in_round);
    if (!reader->in_parent || !reader->in_round)
        abort();
}

static void take_window(struct reader *reader, const union row *row)
{
    (void)row;
    reader->kit->window_ns = reader->number;
}

static void take_type(struct reader *reader, const union row *row)
{
    struct kit *kit = reader->kit;
    *(struct kit_type *)next_row((void **)&kit->type, &kit->types, sizeof row->type) = row->type;
}

static void take_vector(struct reader *reader, const union row *row)
{
    struct kit *kit = reader->kit;
    struct kit_vector *vector = next_row((void **)&kit->vector, &kit->vectors, sizeof *vector);
    int64_t sum = 0;
    (void)row;
    *vector = (struct kit_vector){.length = reader->listed, .counts = reader->list};
    reader->list = NULL;
    if (!(vector->places = calloc((size_t)vector->length + 1, sizeof *vector->places)))
        abort();
    for (int i = 0; i < vector->length && sum <= INT32_MAX; i++) {
        vector->places[i] = (int)sum;
        sum += vector->counts[i];
    }
    if (sum > INT32_MAX)
        reader->wrong = "the counts of a vector are too large";
}

static void take_call(struct reader *reader, const union row *row)
{
    struct kit *kit = reader->kit;
    int ranks = kit_ranks(kit, row->call.comm);
    const int vectors[] = {row->call.vector, row->call.received_vector};
    *(struct kit_call *)next_row((void **)&kit->call, &kit->calls, sizeof row->call) = row->call;
    for (int i = 0; i < 2; i++)
        if (vectors[i] != KIT_NONE && kit->vector[vectors[i]].length != ranks)
            reader->wrong = "a vector has not a count for each rank";
}

static void end_program(struct reader *reader)
{
    if (reader->before > 0)
        reader->wrong = "a program has fewer calls than set up its requests";
}

/* Programs are in the order of ranks and threads, so that none is there twice. */
static void take_program(struct reader *reader, const union row *row)
{
    struct kit *kit = reader->kit;
    const struct kit_program *last = &reader->program, *now = &row->program;
    end_program(reader);
    if (!reader->wrong &&
        (now->rank < last->rank || (now->rank == last->rank && now->thread <= last->thread)))
        reader->wrong = "programs are not in the order of ranks and threads";
    reader->program = *now;
    reader->before = (int64_t)now->before;
    reader->gaps_ns = 0;
    reader->is_kept = now->rank == reader->rank;
    kit->has_threads |= now->thread != 0;
    if (!reader->is_kept || reader->wrong)
        return;
    struct kit_program *program = next_row((void **)&kit->program, &kit->programs, sizeof *program);
    *program = *now;
    program->line = reader->line + 1;
    program->first = kit->made_count;
}

static void keep_made(struct reader *reader, struct kit_made made)
{
    struct kit *kit = reader->kit;
    kit->made = grown(kit->made, kit->made_count, &reader->room_made, sizeof *kit->made);
    kit->made[kit->made_count] = made;
}

static void keep_request(struct reader *reader, int request)
{
    struct kit *kit = reader->kit;
    struct kit_program *program = &kit->program[kit->programs - 1];
    kit->requests =
        grown(kit->requests, kit->request_count, &reader->room_requests, sizeof *kit->requests);
    kit->requests[kit->request_count++] = request;
    if (request >= program->requests)
        program->requests = request + 1;
}

/* Checked in all programs. */
static void take_made(struct reader *reader, char *line)
{
    struct kit *kit = reader->kit;
    char *rest = line, *gap = next_word(&rest, " "), *call = next_word(&rest, " ");
    struct kit_made made = {
        .gap_ns = number_of(reader, gap + (*gap == '~'), 0, INT64_MAX),
        .is_asleep = *gap == '~',
        .call = (unsigned)number_of(reader, call ? call : "", 0, kit->calls - 1),
        .first_request = (uint32_t)kit->request_count,
    };
    if (!reader->wrong && reader->before < 0)
        reader->wrong = "a call is in no program";
    reader->before -= reader->before > 0;
    if (__builtin_add_overflow(reader->gaps_ns, made.gap_ns, &reader->gaps_ns))
        reader->gaps_ns = INT64_MAX;
    if (reader->gaps_ns > kit->gaps_ns)
        kit->gaps_ns = reader->gaps_ns;
    if (reader->wrong)
        return;
    if (reader->is_kept) {
        keep_made(reader, made);
        kit->made_count++;
        kit->program[kit->programs - 1].count++;
    }
    for (char *word; (word = next_word(&rest, " ")) && !reader->wrong;) {
        int request = (int)number_of(reader, word, 0, REQUESTS_MOST);
        if (reader->is_kept)
            keep_request(reader, request);
    }
}

static void take_line(struct reader *reader, char *line)
{
    static const struct {
        const char *line;
        void (*take)(struct reader *reader, const union row *row);
    } KINDS[] = {{"ranks", take_ranks},    {"window", take_window}, {"comm", take_comm},
                 {"type", take_type},      {"vector", take_vector}, {"call", take_call},
                 {"program", take_program}};
    union row row;
    char *rest = line;
    if (isdigit((unsigned char)*line) || *line == '~') {
        take_made(reader, line);
        return;
    }
    if (reader->table_lines++ == TABLE_LINES_MOST) {
        reader->wrong = "a kit has not so many lines before its programs";
        return;
    }
    next_word(&rest, " ");
    memset(&row, 0, sizeof row); /* an initializer clears its first member alone */
    reader->listed = 0;
    take_words(reader, line, rest, &row);
    for (size_t i = 0; !reader->wrong && i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(line, KINDS[i].line) == 0)
            KINDS[i].take(reader, &row);
}

/* SHA-256 (FIPS 180-4). */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};

static uint32_t turned(uint32_t value, int by)
{
    return value >> by | value << (32 - by);
}

/* The first 32 bits of the fractional part of the root (2: square, 3: cube) of the n-th prime,
 * exactly: by integers alone. */
static uint32_t root_of_prime(int n, int root)
{
    unsigned prime = 1;
    for (int found = -1; found < n;) {
        prime++;
        unsigned divisor = 2;
        while (prime % divisor)
            divisor++;
        found += divisor == prime;
    }
    uint64_t low = 0, high = (uint64_t)1 << 37; /* of root * 2^32 */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        unsigned __int128 power = (unsigned __int128)middle * middle;
        unsigned __int128 whole = (unsigned __int128)prime << 64;
        bool is_above =
            root == 2 ? power > whole : power > ((unsigned __int128)prime << 96) / middle;
        *(is_above ? &high : &low) = middle;
    }
    return (uint32_t)low;
}

static uint32_t constants[64], first_state[8];

static void sha256_begin(struct sha256 *sum)
{
    for (int i = 0; i < 64 && !constants[63]; i++) {
        constants[i] = root_of_prime(i, 3);
        first_state[i % 8] = i < 8 ? root_of_prime(i, 2) : first_state[i % 8];
    }
    *sum = (struct sha256){0};
    memcpy(sum->state, first_state, sizeof first_state);
}

static void sha256_block(struct sha256 *sum)
{
    uint32_t words[64], s[8];
    memcpy(s, sum->state, sizeof s);
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)sum->block[4 * i] << 24 | (uint32_t)sum->block[4 * i + 1] << 16 |
                   (uint32_t)sum->block[4 * i + 2] << 8 | sum->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + words[i - 7] +
                   (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 64; i++) {
        uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + words[i];
        uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                          ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (int i = 0; i < 8; i++)
        sum->state[i] += s[i];
}

static void sha256_add(struct sha256 *sum, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sum->block[sum->bytes++ % sizeof sum->block] = (unsigned char)bytes[i];
        if (sum->bytes % sizeof sum->block == 0)
            sha256_block(sum);
    }
}

static void sha256_end(struct sha256 *sum, char digest[65])
{
    uint64_t bits = 8 * sum->bytes;
    sha256_add(sum, "\x80", 1);
    while (sum->bytes % sizeof sum->block != sizeof sum->block - sizeof bits)
        sha256_add(sum, "", 1);
    for (int i = 7; i >= 0; i--)
        sha256_add(sum, (const char[]){(char)(bits >> 8 * i)}, 1);
    for (int i = 0; i < 8; i++)
        snprintf(digest + (size_t)8 * (size_t)i, 9, "%08x", sum->state[i]);
}

/* Text: of a file, or of this program */

/* The stream of zlib's inflate, whose layout its version and size confirm; there may be no header
 * of it where this is built. */
struct inflation {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    char *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state, *take, *give, *opaque;
    int data_type;
    unsigned long adler, reserved;
};

enum { INFLATE_OK = 0, INFLATE_END = 1, INFLATE_STUCK = -5, INFLATE_GZIP_ALONE = 31 };

static struct {
    const char *(*version)(void);
    int (*begin)(struct inflation *, int bits, const char *version, int stream_bytes);
    int (*more)(struct inflation *, int flush);
    int (*end)(struct inflation *);
} zlib;

enum { PIECE = 1 << 16 };

/* The text of a kit, line by line. It is one gzip stream from the first byte of the file to the
 * last, or, for machines without zlib, what `gzip -d` makes of it. */
struct lines {
    FILE *file;
    bool is_packed;
    struct inflation stream;
    unsigned char packed[PIECE];
    const char *inside;      /* what remains of it; NULL: it is a file */
    char *buffer;            /* line, and what was read beyond it */
    size_t room, used, next; /* `next`: where the next line begins in it */
    size_t all;              /* bytes read so far */
    bool is_ended;           /* all was read, or it is wrong */
    const char *wrong;
};

static bool zlib_begin(struct inflation *stream)
{
    void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
#define FUNCTION(NAME, SYMBOL) (zlib.NAME = (__typeof__(zlib.NAME))dlsym(library, SYMBOL))
    return FUNCTION(version, "zlibVersion") && FUNCTION(begin, "inflateInit2_") &&
           FUNCTION(more, "inflate") && FUNCTION(end, "inflateEnd") &&
           zlib.begin(stream, INFLATE_GZIP_ALONE, zlib.version(), sizeof *stream) == INFLATE_OK;
#undef FUNCTION
}

static void lines_open(struct lines *lines, const char *path)
{
    enum { GZIP_BEGINS = 0x1f };
    *lines = (struct lines){.inside = kit_inside};
    if (kit_inside)
        return;
    if (!(lines->file = fopen(path, "rb"))) {
        lines->wrong = "cannot be opened";
        return;
    }
    int first = getc(lines->file);
    ungetc(first, lines->file);
    lines->is_packed = first == GZIP_BEGINS;
    if (lines->is_packed && !zlib_begin(&lines->stream))
        lines->wrong = "needs zlib (libz.so.1), which decompresses it";
}

static void lines_close(struct lines *lines)
{
    if (lines->stream.state)
        zlib.end(&lines->stream);
    if (lines->file)
        fclose(lines->file);
    free(lines->buffer);
}

/* The next piece of what is packed; 0: there is none, or it is damaged. */
static size_t unpack(struct lines *lines, char *to)
{
    struct inflation *stream = &lines->stream;
    stream->next_out = to;
    stream->avail_out = PIECE;
    for (int result = INFLATE_OK; stream->avail_out > 0 && result != INFLATE_END;) {
        if (stream->avail_in == 0) {
            stream->next_in = lines->packed;
            stream->avail_in = (unsigned)fread(lines->packed, 1, PIECE, lines->file);
        }
        bool is_last = stream->avail_in == 0;
        result = zlib.more(stream, 0);
        bool is_right = result == INFLATE_END ? stream->avail_in == 0 && getc(lines->file) == EOF
                        : is_last             ? stream->avail_out == 0
                                              : result == INFLATE_OK || result == INFLATE_STUCK;
        if (!is_right) {
            lines->wrong = "is damaged: it is not one whole gzip stream";
            return 0;
        }
    }
    return PIECE - stream->avail_out;
}

static size_t copy_inside(struct lines *lines, char *to)
{
    size_t bytes = strnlen(lines->inside, PIECE);
    memcpy(to, lines->inside, bytes);
    lines->inside += bytes;
    return bytes;
}

static void read_more(struct lines *lines)
{
    if (lines->next > 0)
        memmove(lines->buffer, lines->buffer + lines->next, lines->used - lines->next);
    lines->used -= lines->next;
    lines->next = 0;
    if (lines->room < lines->used + PIECE + 1) {
        lines->room = 2 * lines->room + PIECE + 1;
        if (!(lines->buffer = realloc(lines->buffer, lines->room)))
            abort();
    }
    char *to = lines->buffer + lines->used;
    size_t bytes = lines->inside      ? copy_inside(lines, to)
                   : lines->is_packed ? unpack(lines, to)
                                      : fread(to, 1, PIECE, lines->file);
    lines->used += bytes;
    lines->all += bytes;
    if (lines->all > TEXT_MOST)
        lines->wrong = "is too large: a kit has 256 MiB of text at most";
    lines->is_ended = bytes == 0 || lines->wrong;
}

/* Reads until the next line is held; NULL: it has no end, or is too long. */
static char *end_of_line(struct lines *lines)
{
    for (size_t seen = 0;;) {
        size_t held = lines->used - lines->next;
        char *begin = lines->buffer + lines->next;
        char *end = held > seen ? memchr(begin + seen, '\n', held - seen) : NULL;
        if (end || lines->is_ended || held > LINE_MOST)
            return end;
        seen = held;
        read_more(lines);
    }
}

/* The next line with its length, without its end; NULL: there is none. */
static char *lines_next(struct lines *lines, size_t *length)
{
    char *end = end_of_line(lines), *line = lines->buffer + lines->next;
    *length = end ? (size_t)(end - line) : lines->used - lines->next;
    if (lines->wrong || (!end && *length == 0))
        return NULL;
    line[*length] = '\0';
    lines->next += *length + (end != NULL);
    return line;
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static bool is_line(const char *line, size_t length, const char *text)
{
    return line && length == strlen(text) && memcmp(line, text, length) == 0;
}

/* The first two lines, and the sum of the others; what is wrong, or NULL. */
static const char *check_sum(struct lines *lines, char digest[65])
{
    struct sha256 sum;
    size_t length = 0;
    char said[sizeof "sha256 " + 64] = "", own[sizeof said];
    char *line = lines_next(lines, &length);
    if (lines->wrong)
        return lines->wrong;
    if (!line || !begins(line, "commprof-kit "))
        return "is no kit of commprof's";
    if (!is_line(line, length, "commprof-kit 1"))
        return "is a kit of another version than 1";
    line = lines_next(lines, &length);
    if (line && strlen(line) == length)
        snprintf(said, sizeof said, "%.*s", length < sizeof said ? (int)length : 0, line);
    sha256_begin(&sum);
    do {
        sha256_add(&sum, lines->buffer + lines->next, lines->used - lines->next);
        lines->next = lines->used;
        read_more(lines);
    } while (!lines->is_ended);
    sha256_end(&sum, digest);
    snprintf(own, sizeof own, "sha256 %s", digest);
    return lines->wrong                            ? lines->wrong
           : !kit_inside && strcmp(said, own) != 0 ? "is damaged: its SHA-256 is another one"
                                                   : NULL;
}

/* The lines behind the first two. */
static void take_lines(struct reader *reader, struct lines *lines)
{
    size_t length;
    for (char *line; !reader->wrong && (line = lines_next(lines, &length));)
        if (++reader->line > 2) {
            if (length > LINE_MOST || strlen(line) != length)
                reader->wrong = "a line is too long, or has a byte that is 0";
            else
                take_line(reader, line);
        }
    if (!reader->wrong)
        end_program(reader);
    if (!reader->wrong && (!reader->kit->ranks || reader->kit->comms < KIT_DUP))
        reader->wrong = "it is not complete";
    keep_made(reader, (struct kit_made){.first_request = (uint32_t)reader->kit->request_count});
}

/* Its sum is checked first, piece by piece: a file that is small until it is decompressed costs no
 * memory. */
bool kit_read(struct kit *kit, const char *path, int rank, char *why, size_t why_bytes)
{
    struct reader reader = {
        .kit = kit, .rank = rank, .before = -1, .program = {.rank = -1, .thread = -1}};
    struct lines lines;
    *kit = (struct kit){0};
    lines_open(&lines, path);
    const char *wrong = lines.wrong ? lines.wrong : check_sum(&lines, kit->sha256);
    lines_close(&lines);
    if (!wrong) {
        lines_open(&lines, path);
        if (!lines.wrong)
            take_lines(&reader, &lines);
        wrong = lines.wrong;
        lines_close(&lines);
        if (!wrong && reader.wrong)
            snprintf(why, why_bytes, "line %d: %s", reader.line, reader.wrong);
    }
    if (wrong)
        snprintf(why, why_bytes, "%s", wrong);
    free(reader.list);
    free(reader.in_parent);
    free(reader.in_round);
    return !wrong && !reader.wrong;
}
