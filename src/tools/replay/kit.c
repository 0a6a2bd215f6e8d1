#include "kit.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIT_BYTES_MOST = 1 << 30, RANKS_MOST = 1 << 24, WORDS_MOST = 20 };
#define MEMORY_MOST ((int64_t)1 << 40) /* bytes of a thread */

/* A kit that is being read: its lines, and what is wrong with it. */
struct reader {
    struct kit *kit;
    int rank;     /* whose programs are kept */
    bool is_kept; /* the present program is */
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
    char *end;
    long value = strtol(word, &end, 10);
    if (end == word || *end || value < least || value > most) {
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
    if (strlen(word) >= KIT_NAME_BYTES)
        reader->wrong = "a name is too long";
    snprintf(name, KIT_NAME_BYTES, "%s", strcmp(word, "-") == 0 ? "" : word);
}

/* Cuts a line into words; -1: there are too many. */
static int words_of(char *line, char *words[WORDS_MOST])
{
    int count = 0;
    for (char *rest, *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (count == WORDS_MOST)
            return -1;
        words[count++] = word;
    }
    return count;
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
        return (int)comm->how == number && comm->size == (number == KIT_WORLD ? kit->ranks : 0);
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
    struct kit_comm *comm = next_row((void **)&kit->comm, &kit->comms, sizeof *comm);
    while (how < KIT_SPLIT && strcmp(words[4], HOW[how]) != 0)
        how++;
    comm->how = (enum kit_how)how;
    comm->parent = (int)number_of(reader, words[2], 0, number);
    comm->round = (int)number_of(reader, words[3], 0, number);
    char *rest, *word = strcmp(words[5], "-") == 0 ? NULL : strtok_r(words[5], ",", &rest);
    for (; word; word = strtok_r(NULL, ",", &rest)) {
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
    struct kit_type *type = next_row((void **)&kit->type, &kit->types, sizeof *type);
    name_of(reader, type->name, words[2]);
    type->bytes = number_of(reader, words[3], 0, INT32_MAX);
    type->extent = number_of(reader, words[4], INT32_MIN, INT32_MAX);
    type->blocks = number_of(reader, words[5], 1, INT32_MAX);
}

static void take_vector(struct reader *reader, char *line)
{
    struct kit *kit = reader->kit;
    struct kit_vector *vector = next_row((void **)&kit->vector, &kit->vectors, sizeof *vector);
    char *rest;
    int places = 0;
    int64_t sum = 0;
    strtok_r(line, " ", &rest);
    strtok_r(NULL, " ", &rest);
    for (char *word; (word = strtok_r(NULL, " ", &rest)) && !reader->wrong;) {
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
    call->buffer_at = maybe_far(reader, words[17], MEMORY_MOST);
    call->received_at = maybe_far(reader, words[18], MEMORY_MOST);
    call->pause_ns = maybe(reader, words[19], INT32_MAX);
}

static void take_program(struct reader *reader, char *words[WORDS_MOST])
{
    struct kit *kit = reader->kit;
    reader->is_kept = number_of(reader, words[1], 0, kit->ranks - 1) == reader->rank;
    kit->has_threads |= strcmp(words[2], "0") != 0;
    if (!reader->is_kept)
        return;
    struct kit_program *program = next_row((void **)&kit->program, &kit->programs, sizeof *program);
    program->thread = (int)number_of(reader, words[2], 0, INT32_MAX);
    program->before = (size_t)number_of(reader, words[3], 0, INT32_MAX);
    program->first = kit->made_count;
}

static void take_made(struct reader *reader, char *line)
{
    struct kit *kit = reader->kit;
    if (!reader->is_kept)
        return;
    if (!kit->programs) {
        reader->wrong = "a call is in no program";
        return;
    }
    struct kit_program *program = &kit->program[kit->programs - 1];
    char *rest, *gap = strtok_r(line, " ", &rest), *call = strtok_r(NULL, " ", &rest);
    kit->made = grown(kit->made, kit->made_count, &reader->room_made, sizeof *kit->made);
    struct kit_made *made = &kit->made[kit->made_count++];
    *made = (struct kit_made){
        .gap_ns = number_of(reader, gap + (*gap == '~'), 0, INT64_MAX),
        .is_asleep = *gap == '~',
        .call = (int)number_of(reader, call ? call : "", 0, kit->calls - 1),
        .first_request = kit->request_count,
    };
    program->count++;
    for (char *word; (word = strtok_r(NULL, " ", &rest)); made->requests++) {
        kit->requests =
            grown(kit->requests, kit->request_count, &reader->room_requests, sizeof *kit->requests);
        int request = (int)number_of(reader, word, 0, KIT_REQUESTS_MOST);
        kit->requests[kit->request_count++] = request;
        if (request >= program->requests)
            program->requests = request + 1;
    }
}

static void take_line(struct reader *reader, char *line)
{
    static const struct {
        const char *kind;
        int words;
        void (*take)(struct reader *reader, char *words[WORDS_MOST]);
    } KINDS[] = {{"comm", 6, take_comm},
                 {"type", 6, take_type},
                 {"call", 20, take_call},
                 {"program", 4, take_program}};
    char *words[WORDS_MOST];
    if (isdigit((unsigned char)*line) || *line == '~')
        take_made(reader, line);
    else if (strncmp(line, "vector ", 7) == 0)
        take_vector(reader, line);
    else if (strncmp(line, "ranks ", 6) == 0)
        take_ranks(reader, line + 6);
    else if (strncmp(line, "window ", 7) == 0)
        reader->kit->window_ns = number_of(reader, line + 7, 0, INT64_MAX);
    else if (strncmp(line, "sha256 ", 7) == 0)
        snprintf(reader->kit->sha256, sizeof reader->kit->sha256, "%s", line + 7);
    else if (strncmp(line, "left-out ", 9) != 0 && strncmp(line, "late ", 5) != 0 &&
             strncmp(line, "library ", 8) != 0 && strncmp(line, "recorded ", 9) != 0) {
        int count = words_of(line, words);
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
            if (count > 0 && strcmp(words[0], KINDS[i].kind) == 0 && count == KINDS[i].words) {
                KINDS[i].take(reader, words);
                return;
            }
        reader->wrong = "a line is not as in a kit";
    }
}

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

/* All of the file as text. Without zlib a kit that `gzip -d` has decompressed can be read. */
static char *text_of(const char *path, char *why, size_t why_bytes)
{
    void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    void *(*open)(const char *, const char *) =
        zlib ? (void *(*)(const char *, const char *))dlsym(zlib, "gzopen") : plain_open;
    int (*read)(void *, void *, unsigned) =
        zlib ? (int (*)(void *, void *, unsigned))dlsym(zlib, "gzread") : plain_read;
    int (*close)(void *) = zlib ? (int (*)(void *))dlsym(zlib, "gzclose") : plain_close;
    void *file = open(path, "rb");
    if (!file) {
        snprintf(why, why_bytes, "cannot be opened");
        return NULL;
    }
    size_t used = 0, room = 1 << 20;
    char *text = malloc(room);
    int got = 1;
    while (text && used < KIT_BYTES_MOST &&
           (got = read(file, text + used, (unsigned)(room - used - 1))) > 0)
        if ((used += (size_t)got) + 1 == room)
            text = realloc(text, room *= 2);
    bool is_whole = close(file) == 0 && got == 0; /* the end may be missing */
    if (!text || !is_whole) {
        snprintf(why, why_bytes, "%s", got > 0 ? "is too large" : "is damaged");
        free(text);
        return NULL;
    }
    text[used] = '\0';
    return text;
}

bool kit_read(struct kit *kit, const char *path, int rank, char *why, size_t why_bytes)
{
    static const char HEAD[] = "commprof-kit 1";
    struct reader reader = {.kit = kit, .rank = rank};
    char *rest, *text = kit_inside ? strdup(kit_inside) : text_of(path, why, why_bytes);
    int number = 1;
    *kit = (struct kit){0};
    if (!text)
        return false;
    char *line = strtok_r(text, "\n", &rest);
    if (!line || strcmp(line, HEAD) != 0)
        reader.wrong = line && *line == '\x1f' ? "zlib (libz.so.1) is needed to decompress it"
                                               : "it is no kit of this version";
    while (!reader.wrong && (line = strtok_r(NULL, "\n", &rest)) && ++number)
        take_line(&reader, line);
    if (!reader.wrong && (!kit->ranks || kit->comms < KIT_DUP))
        reader.wrong = "it is not complete";
    if (reader.wrong)
        snprintf(why, why_bytes, "line %d: %s", number, reader.wrong);
    free(reader.in_parent);
    free(reader.in_round);
    free(text);
    return !reader.wrong;
}
