#include "kit.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIT_BYTES_MOST = 1 << 30, LINE_MOST = 1 << 28, RANKS_MOST = 1 << 24, WORDS_MOST = 20 };
#define MEMORY_MOST ((int64_t)1 << 40) /* bytes of a thread */

/* A kit that is being read: its lines, and what is wrong with it. */
struct reader {
    struct kit *kit;
    int rank;       /* whose programs are kept */
    bool is_kept;   /* the present program is */
    int64_t before; /* so many calls of it that set up are to come; -1: there is no program */
    int64_t program_rank, thread; /* programs are in order */
    /* of each rank, the last round whose parent it is a member of, and in which it is in a
     * communicator */
    int *in_parent, *in_round;
    size_t room_made, room_requests;
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

static int64_t maybe_far(struct reader *reader, const char *word, int64_t most)
{
    return strcmp(word, "-") == 0 ? KIT_NONE : number_of(reader, word, 0, most);
}

static int maybe(struct reader *reader, const char *word, int most)
{
    return (int)maybe_far(reader, word, most);
}

static int vector_of(struct reader *reader, const char *word, int ranks)
{
    int number = maybe(reader, word, reader->kit->vectors - 1);
    if (!reader->wrong && number != KIT_NONE && reader->kit->vector[number].length != ranks)
        reader->wrong = "a vector has not a count for each rank";
    return number;
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

/* Cuts a line into words; -1: there are too many. */
static int words_of(char *line, char *words[WORDS_MOST])
{
    int count = 0;
    for (char *rest = line, *word; (word = next_word(&rest, " "));) {
        if (count == WORDS_MOST)
            return -1;
        words[count++] = word;
    }
    return count;
}

/* Rows of a table have the numbers of their places. */
static void in_order(struct reader *reader, const char *word, int rows)
{
    number_of(reader, word, rows, rows);
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

static bool can_be_made(struct reader *reader, int number)
{
    const struct kit *kit = reader->kit;
    const struct kit_comm *comm = &kit->comm[number], *parent = &kit->comm[comm->parent];
    if (number < KIT_DUP) { /* all ranks in their order; none are listed */
        for (int i = 0; i < comm->size; i++)
            if (comm->members[i] != i)
                return false;
        return (int)comm->how == number && comm->parent == number && comm->round == 0 &&
               comm->size == (number == KIT_WORLD ? kit->ranks : 0);
    }
    if (comm->how < KIT_DUP || comm->parent == number || comm->parent == KIT_SELF)
        return false;
    if (comm->how == KIT_SPLIT)
        return can_be_split(reader, number);
    return comm->round == number && comm->size == parent->size &&
           memcmp(comm->members, parent->members, (size_t)comm->size * sizeof *comm->members) == 0;
}

static void take_comm(struct reader *reader, char *words[WORDS_MOST])
{
    static const char *const HOW[] = {"world", "self", "dup", "split"};
    struct kit *kit = reader->kit;
    int number = kit->comms, how = 0;
    if (!reader->in_parent || !reader->in_round) {
        reader->wrong = "communicators stand before the number of ranks";
        return;
    }
    in_order(reader, words[1], number);
    struct kit_comm *comm = next_row((void **)&kit->comm, &kit->comms, sizeof *comm);
    while (how < KIT_SPLIT && strcmp(words[4], HOW[how]) != 0)
        how++;
    comm->how = (enum kit_how)how;
    comm->parent = (int)number_of(reader, words[2], 0, number);
    comm->round = (int)number_of(reader, words[3], 0, number);
    char *rest = strcmp(words[5], "-") == 0 ? NULL : words[5];
    for (char *word; (word = next_word(&rest, ",")) && !reader->wrong;) {
        int *member = next_row((void **)&comm->members, &comm->size, sizeof *member);
        *member = (int)number_of(reader, word, 0, kit->ranks - 1);
    }
    if (!reader->wrong && (strcmp(words[4], HOW[how]) != 0 || !can_be_made(reader, number)))
        reader->wrong = "a communicator cannot be made";
}

/* Once, before all lines that have ranks. */
static void take_ranks(struct reader *reader, const char *word)
{
    int ranks = (int)number_of(reader, word, 1, RANKS_MOST);
    if (reader->kit->ranks)
        reader->wrong = "it has two numbers of ranks";
    if (reader->wrong)
        return;
    reader->kit->ranks = ranks;
    reader->in_parent = calloc((size_t)ranks, sizeof *reader->in_parent);
    reader->in_round = calloc((size_t)ranks, sizeof *reader->in_round);
    if (!reader->in_parent || !reader->in_round)
        abort();
}

static void take_type(struct reader *reader, char *words[WORDS_MOST])
{
    struct kit *kit = reader->kit;
    in_order(reader, words[1], kit->types);
    struct kit_type *type = next_row((void **)&kit->type, &kit->types, sizeof *type);
    name_of(reader, type->name, words[2]);
    type->bytes = number_of(reader, words[3], 0, INT32_MAX);
    type->extent = number_of(reader, words[4], INT32_MIN, INT32_MAX);
    type->blocks = number_of(reader, words[5], 1, INT32_MAX);
}

static void take_vector(struct reader *reader, char *line)
{
    struct kit *kit = reader->kit;
    char *rest = line;
    next_word(&rest, " ");
    in_order(reader, next_word(&rest, " "), kit->vectors);
    struct kit_vector *vector = next_row((void **)&kit->vector, &kit->vectors, sizeof *vector);
    int places = 0;
    int64_t sum = 0;
    for (char *word; (word = next_word(&rest, " ")) && !reader->wrong;) {
        int *count = next_row((void **)&vector->counts, &vector->length, sizeof *count);
        *(int *)next_row((void **)&vector->places, &places, sizeof *count) = (int)sum;
        *count = (int)number_of(reader, word, 0, INT32_MAX);
        if ((sum += *count) > INT32_MAX)
            reader->wrong = "the counts of a vector are too large";
    }
}

static void take_call(struct reader *reader, char *words[WORDS_MOST])
{
    struct kit *kit = reader->kit;
    in_order(reader, words[1], kit->calls);
    struct kit_call *call = next_row((void **)&kit->call, &kit->calls, sizeof *call);
    name_of(reader, call->name, words[2]);
    call->comm = maybe(reader, words[3], kit->comms - 1);
    if (reader->wrong)
        return;
    int ranks = call->comm == KIT_NONE                  ? 0
                : kit->comm[call->comm].how == KIT_SELF ? 1
                                                        : kit->comm[call->comm].size;
    call->type = maybe(reader, words[4], kit->types - 1);
    call->count = maybe(reader, words[5], INT32_MAX);
    name_of(reader, call->op, words[6]);
    call->root = maybe(reader, words[7], ranks - 1);
    call->peer = maybe(reader, words[8], ranks - 1);
    call->tag = maybe(reader, words[9], INT32_MAX);
    call->in_place = maybe(reader, words[10], 1);
    call->vector = vector_of(reader, words[11], ranks);
    call->received_type = maybe(reader, words[12], kit->types - 1);
    call->received_count = maybe(reader, words[13], INT32_MAX);
    call->received_peer = maybe(reader, words[14], ranks - 1);
    call->received_tag = maybe(reader, words[15], INT32_MAX);
    call->received_vector = vector_of(reader, words[16], ranks);
    call->buffer_at = maybe_far(reader, words[17], MEMORY_MOST - 1);
    call->received_at = maybe_far(reader, words[18], MEMORY_MOST - 1);
    call->pause_ns = maybe(reader, words[19], INT32_MAX);
}

static void end_program(struct reader *reader)
{
    if (reader->before > 0)
        reader->wrong = "a program has fewer calls than set up its requests";
}

/* Programs are in the order of ranks and threads, so that none is there twice. */
static void take_program(struct reader *reader, char *words[WORDS_MOST])
{
    struct kit *kit = reader->kit;
    int64_t rank = number_of(reader, words[1], 0, kit->ranks - 1);
    int64_t thread = number_of(reader, words[2], 0, INT32_MAX);
    end_program(reader);
    if (rank < reader->program_rank || (rank == reader->program_rank && thread <= reader->thread))
        reader->wrong = "programs are not in the order of ranks and threads";
    reader->program_rank = rank;
    reader->thread = thread;
    reader->before = number_of(reader, words[3], 0, INT32_MAX);
    reader->is_kept = rank == reader->rank;
    kit->has_threads |= thread != 0;
    if (!reader->is_kept || reader->wrong)
        return;
    struct kit_program *program = next_row((void **)&kit->program, &kit->programs, sizeof *program);
    program->thread = (int)thread;
    program->before = (size_t)reader->before;
    program->first = kit->made_count;
}

static void keep_request(struct reader *reader, int request)
{
    struct kit *kit = reader->kit;
    struct kit_program *program = &kit->program[kit->programs - 1];
    kit->requests =
        grown(kit->requests, kit->request_count, &reader->room_requests, sizeof *kit->requests);
    kit->requests[kit->request_count++] = request;
    kit->made[kit->made_count - 1].requests++;
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
        .call = (int)number_of(reader, call ? call : "", 0, kit->calls - 1),
        .first_request = kit->request_count,
    };
    if (reader->before < 0)
        reader->wrong = "a call is in no program";
    reader->before -= reader->before > 0;
    if (reader->wrong)
        return;
    if (reader->is_kept) {
        kit->made = grown(kit->made, kit->made_count, &reader->room_made, sizeof *kit->made);
        kit->made[kit->made_count++] = made;
        kit->program[kit->programs - 1].count++;
    }
    for (char *word; (word = next_word(&rest, " ")) && !reader->wrong;) {
        int request = (int)number_of(reader, word, 0, KIT_REQUESTS_MOST);
        if (reader->is_kept)
            keep_request(reader, request);
    }
}

/* A line for people: numbers, and words or, if it `has_text`, a word if there are `names`, then any
 * text. */
static void take_note(struct reader *reader, char *line, int numbers, int names, bool has_text)
{
    char name[KIT_NAME_BYTES], *rest = line, *word;
    next_word(&rest, " "); /* the kind of line */
    for (int i = 0; i < numbers; i++) {
        word = next_word(&rest, " ");
        number_of(reader, word ? word : "", 0, INT64_MAX);
    }
    for (int i = 0; i < names; i++) {
        word = next_word(&rest, " ");
        name_of(reader, name, word ? word : "");
    }
    if (has_text != (rest != NULL))
        reader->wrong = "a line is not as in a kit";
}

static void take_ranks_line(struct reader *reader, char *words[WORDS_MOST])
{
    take_ranks(reader, words[1]);
}

static void take_window(struct reader *reader, char *words[WORDS_MOST])
{
    reader->kit->window_ns = number_of(reader, words[1], 0, INT64_MAX);
}

static void take_words(struct reader *reader, char *line)
{
    static const struct {
        const char *kind;
        int words;
        void (*take)(struct reader *reader, char *words[WORDS_MOST]);
    } KINDS[] = {{"ranks", 2, take_ranks_line}, {"window", 2, take_window},
                 {"comm", 6, take_comm},        {"type", 6, take_type},
                 {"call", 20, take_call},       {"program", 4, take_program}};
    char *words[WORDS_MOST];
    int count = words_of(line, words);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(words[0], KINDS[i].kind) == 0 && count == KINDS[i].words) {
            KINDS[i].take(reader, words);
            return;
        }
    reader->wrong = "a line is not as in a kit";
}

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

static void take_line(struct reader *reader, char *line)
{
    if (isdigit((unsigned char)*line) || *line == '~')
        take_made(reader, line);
    else if (begins(line, "vector "))
        take_vector(reader, line);
    else if (begins(line, "recorded "))
        take_note(reader, line, 2, 0, true);
    else if (begins(line, "left-out "))
        take_note(reader, line, 1, 1, true);
    else if (begins(line, "late "))
        take_note(reader, line, 1, 1, false);
    else if (!begins(line, "library "))
        take_words(reader, line);
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

/* Files */

static void *plain_open(const char *path, const char *mode)
{
    return fopen(path, mode);
}

static int plain_read(void *file, void *to, unsigned bytes)
{
    return (int)fread(to, 1, bytes, file);
}

static int plain_close(void *file)
{
    return fclose(file);
}

/* The text of a kit, line by line: of a file, or of this program. Without zlib a kit that `gzip -d`
 * has decompressed can be read. */
struct lines {
    void *file;
    int (*read)(void *, void *, unsigned);
    int (*close)(void *);
    const char *inside;      /* what remains of it; NULL: it is a file */
    char *buffer;            /* line, and what was read beyond it */
    size_t room, used, next; /* `next`: where the next line begins in it */
    size_t all;              /* bytes read so far */
    int got;                 /* by the last reading; 0: all was read, -1: it is damaged */
};

static bool lines_open(struct lines *lines, const char *path)
{
    *lines = (struct lines){.inside = kit_inside, .got = 1};
    if (kit_inside)
        return true;
    void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    void *(*open)(const char *, const char *) =
        zlib ? (void *(*)(const char *, const char *))dlsym(zlib, "gzopen") : plain_open;
    lines->read = zlib ? (int (*)(void *, void *, unsigned))dlsym(zlib, "gzread") : plain_read;
    lines->close = zlib ? (int (*)(void *))dlsym(zlib, "gzclose") : plain_close;
    return (lines->file = open(path, "rb"));
}

static bool lines_close(struct lines *lines)
{
    free(lines->buffer);
    return !lines->file || lines->close(lines->file) == 0;
}

static void read_more(struct lines *lines)
{
    enum { PIECE = 1 << 16 };
    if (lines->next > 0)
        memmove(lines->buffer, lines->buffer + lines->next, lines->used - lines->next);
    lines->used -= lines->next;
    lines->next = 0;
    if (lines->room < lines->used + PIECE + 1) {
        lines->room = 2 * lines->room + PIECE + 1;
        if (!(lines->buffer = realloc(lines->buffer, lines->room)))
            abort();
    }
    if (lines->inside) {
        lines->got = (int)strnlen(lines->inside, PIECE);
        memcpy(lines->buffer + lines->used, lines->inside, (size_t)lines->got);
        lines->inside += lines->got;
    } else
        lines->got = lines->read(lines->file, lines->buffer + lines->used, PIECE);
    lines->used += lines->got > 0 ? (size_t)lines->got : 0;
    lines->all += lines->got > 0 ? (size_t)lines->got : 0;
}

/* The next line with its length, without its end; NULL: there is none. */
static char *lines_next(struct lines *lines, size_t *length, bool *is_ended)
{
    char *end;
    while (!(end = lines->used > lines->next
                       ? memchr(lines->buffer + lines->next, '\n', lines->used - lines->next)
                       : NULL) &&
           lines->got > 0 && lines->used - lines->next < LINE_MOST && lines->all < KIT_BYTES_MOST)
        read_more(lines);
    char *line = lines->buffer + lines->next;
    *is_ended = end;
    *length = end ? (size_t)(end - line) : lines->used - lines->next;
    if (!end && *length == 0)
        return NULL;
    line[*length] = '\0';
    lines->next += *length + (end != NULL);
    return line;
}

/* The first two lines, and the sum of the others; what is wrong, or NULL. */
static const char *check_sum(struct lines *lines, char digest[65])
{
    static const char HEAD[] = "commprof-kit 1", NAME[] = "sha256 ";
    struct sha256 sum;
    size_t length;
    bool is_ended;
    char said[65] = "", *line = lines_next(lines, &length, &is_ended);
    if (!line || strcmp(line, HEAD) != 0)
        return line && *line == '\x1f' ? "needs zlib (libz.so.1), which decompresses it"
                                       : "is no kit of this version";
    line = lines_next(lines, &length, &is_ended);
    if (!line || !begins(line, NAME) || length >= sizeof NAME - 1 + sizeof said)
        return "has no SHA-256";
    strcpy(said, line + strlen(NAME));
    sha256_begin(&sum);
    while ((line = lines_next(lines, &length, &is_ended))) {
        sha256_add(&sum, line, length);
        sha256_add(&sum, "\n", is_ended);
    }
    sha256_end(&sum, digest);
    return lines->all >= KIT_BYTES_MOST               ? "is too large"
           : lines->got < 0                           ? "is damaged"
           : !kit_inside && strcmp(said, digest) != 0 ? "is damaged: its SHA-256 is another one"
                                                      : NULL;
}

/* The lines behind the first two. */
static int take_lines(struct reader *reader, struct lines *lines)
{
    size_t length;
    bool is_ended;
    int number = 0;
    for (char *line; !reader->wrong && (line = lines_next(lines, &length, &is_ended));)
        if (++number > 2) {
            if (strlen(line) != length)
                reader->wrong = "a line is not as in a kit";
            else
                take_line(reader, line);
        }
    if (!reader->wrong)
        end_program(reader);
    if (!reader->wrong && (!reader->kit->ranks || reader->kit->comms < KIT_DUP))
        reader->wrong = "it is not complete";
    return number;
}

/* Its sum is checked first, piece by piece: a file that is small until it is decompressed costs no
 * memory. */
bool kit_read(struct kit *kit, const char *path, int rank, char *why, size_t why_bytes)
{
    struct reader reader = {
        .kit = kit, .rank = rank, .before = -1, .program_rank = -1, .thread = -1};
    struct lines lines;
    *kit = (struct kit){0};
    if (!lines_open(&lines, path)) {
        snprintf(why, why_bytes, "cannot be opened");
        return false;
    }
    const char *damage = check_sum(&lines, kit->sha256);
    if (!lines_close(&lines) && !damage)
        damage = "is damaged";
    if (damage || !lines_open(&lines, path)) {
        snprintf(why, why_bytes, "%s", damage ? damage : "cannot be opened");
        return false;
    }
    int number = take_lines(&reader, &lines);
    lines_close(&lines);
    if (reader.wrong)
        snprintf(why, why_bytes, "line %d: %s", number, reader.wrong);
    free(reader.in_parent);
    free(reader.in_round);
    return !reader.wrong;
}
