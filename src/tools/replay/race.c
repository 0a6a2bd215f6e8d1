/* Which candidate a call gets follows from how many of its row there were before on its
 * communicator, so all ranks agree without a message. In each round of turns every candidate has
 * one, and rounds differ in order: of two candidates A B B A B A A B.
 *
 * Messages are counted where the library hands them over: to UCX, or under Open MPI to the
 * component pml_monitoring, where that is enabled. (Its variables of MPI_T are invalid in 4.1.) */
#include "race.h"

#include "arrival.h"
#include "base/host.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROWS_MOST = 1024, CANDIDATES_MOST = 64, TEXT_BYTES = 4096 };

struct tool_variable {
    void *handle; /* NULL: there is none */
    int launched;
};

struct candidate {
    int value, segment;
    uint64_t *comm; /* a duplicate of each communicator of the kit, under Open MPI */
};

struct raced_row {
    char call[KIT_NAME_BYTES];
    int64_t bytes;
    int ranks, candidates;
    struct tool_variable algorithm, segments;
    struct candidate candidate[CANDIDATES_MOST];
    unsigned *turn; /* the next one on each communicator */
};

struct sent {
    uint64_t messages, bytes;
};

struct raced_call {
    int row, comm, pass, candidate, error;
    int64_t begin_ns, end_ns;
    struct sent sent;
};

static struct {
    const struct kit *kit;
    struct objects *objects;
    struct raced_row row[ROWS_MOST];
    int rows, pass;
    int *of_call; /* the row of each call of the kit; -1: none */
    struct raced_call *result, now;
    size_t results, room;
    uint64_t comm; /* in whose place a duplicate is */
} race;

/* Messages that the library has handed to its network layer, and which layer says so. */
static struct sent sent_so_far;
static const char *counted = "no";

static void count(const char *layer, size_t bytes)
{
    counted = layer;
    sent_so_far.messages++;
    sent_so_far.bytes += bytes;
}

/* Loaded with a component of the library, for this alone, a function does not come next. */
static void *function_behind(const char *name, const char *const libraries[])
{
    void *function = dlsym(RTLD_NEXT, name);
    for (int i = 0; !function && libraries[i]; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        function = library ? dlsym(library, name) : NULL;
    }
    return function;
}

/* UCX's function, and that of Open MPI's component pml_monitoring: the library under test finds
 * these first (exported.list). Without --race they count nothing and hand over. */
void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t bytes, uint64_t tag,
                       const void *parameters);
void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t bytes, uint64_t tag,
                       const void *parameters)
{
    static void *(*send)(void *, const void *, size_t, uint64_t, const void *);
    static const char *const LIBRARIES[] = {"libucp.so.0", NULL};
    if (!send)
        send = (__typeof__(send))function_behind("ucp_tag_send_nbx", LIBRARIES);
    if (race.rows)
        count("ucx", bytes);
    return send(endpoint, buffer, bytes, tag, parameters);
}

void mca_common_monitoring_record_pml(int world_rank, size_t bytes, int tag);
void mca_common_monitoring_record_pml(int world_rank, size_t bytes, int tag)
{
    static void (*record)(int, size_t, int);
    static const char *const LIBRARIES[] = {"libmca_common_monitoring.so.50",
                                            "libmca_common_monitoring.so.60", NULL};
    if (!record)
        record = (__typeof__(record))function_behind("mca_common_monitoring_record_pml", LIBRARIES);
    if (race.rows)
        count("monitoring", bytes);
    if (record)
        record(world_rank, bytes, tag);
}

static struct {
    int (*init_thread)(int, int *);
    int (*finalize)(void);
    int (*enum_get_info)(void *, int *, char *, int *);
    int (*enum_get_item)(void *, int, int *, char *, int *);
    int (*cvar_write)(void *, void *);
} tool;

static bool tool_begin(void)
{
    int provided;
#define FUNCTION(NAME) (tool.NAME = (__typeof__(tool.NAME))library_function("MPI_T_" #NAME))
    return FUNCTION(init_thread) && FUNCTION(finalize) && FUNCTION(enum_get_info) &&
           FUNCTION(enum_get_item) && FUNCTION(cvar_write) && mpi_query.T_cvar_get_num &&
           mpi_query.T_cvar_get_info && mpi_query.T_cvar_handle_alloc && mpi_query.T_cvar_read &&
           tool.init_thread(mpi_abi.thread_levels[0], &provided) == MPI_SUCCESS;
#undef FUNCTION
}

/* A variable by its number. MPI_T's enumerations are pointers in all libraries. */
struct tool_description {
    char name[TEXT_BYTES], text[TEXT_BYTES];
    void *items; /* NULL: it is no enumeration */
};

static bool describe(int index, struct tool_description *described)
{
    int name_bytes = TEXT_BYTES, text_bytes = TEXT_BYTES, verbosity, binding, scope;
    uintptr_t type = 0;
    described->items = NULL;
    return mpi_query.T_cvar_get_info(index, described->name, &name_bytes, &verbosity, &type,
                                     &described->items, described->text, &text_bytes, &binding,
                                     &scope) == MPI_SUCCESS;
}

static bool variable_find(const char *name, struct tool_variable *variable)
{
    static struct tool_description described;
    int all = 0, count;
    *variable = (struct tool_variable){0};
    if (strcmp(name, "-") == 0)
        return true;
    mpi_query.T_cvar_get_num(&all);
    for (int i = 0; i < all; i++)
        if (describe(i, &described) && strcmp(described.name, name) == 0)
            return mpi_query.T_cvar_handle_alloc(i, NULL, &variable->handle, &count) ==
                       MPI_SUCCESS &&
                   mpi_query.T_cvar_read(variable->handle, &variable->launched) == MPI_SUCCESS;
    return false;
}

static bool variable_write(const struct tool_variable *variable, int value)
{
    return !variable->handle || tool.cvar_write(variable->handle, &value) == MPI_SUCCESS;
}

/* Open MPI's ends in an algorithm, MPICH's in an ALGORITHM. */
static bool chooses_algorithm(const char *name)
{
    static const char END[] = "_algorithm";
    size_t bytes = strlen(name);
    return bytes >= sizeof END && strcasecmp(name + bytes - (sizeof END - 1), END) == 0;
}

static void list_one(FILE *to, const struct tool_description *described, int items)
{
    char name[TEXT_BYTES];
    struct tool_variable variable;
    if (!variable_find(described->name, &variable))
        return;
    fprintf(to, "variable %s %d", described->name, variable.launched);
    for (int i = 0; i < items; i++) {
        int value, bytes = sizeof name;
        if (tool.enum_get_item(described->items, i, &value, name, &bytes) == MPI_SUCCESS)
            fprintf(to, " %d=%s", value, name);
    }
    if (!items) {
        fputs(" ", to);
        for (const char *at = described->text; *at; at++)
            fputc(*at == '\n' ? ' ' : *at, to);
    }
    fputc('\n', to);
}

static void list_all(FILE *to)
{
    static struct tool_description described;
    char name[TEXT_BYTES];
    int all = 0;
    mpi_query.T_cvar_get_num(&all);
    for (int i = 0; i < all; i++) {
        int items = 0, bytes = sizeof name;
        if (!describe(i, &described) || !chooses_algorithm(described.name))
            continue;
        if (described.items && tool.enum_get_info(described.items, &items, name, &bytes))
            items = 0;
        list_one(to, &described, items);
    }
}

bool race_list(FILE *to)
{
    char text[8192] = "";
    int bytes = 0;
    Dl_info found;
    void *version = library_function("MPI_Get_library_version");
    if (!version || !tool_begin())
        return false;
    mpi_query.Get_library_version(text, &bytes);
    text[strcspn(text, "\n")] = '\0';
    fprintf(to, "library %s\npath %s\n", text,
            dladdr(version, &found) ? found.dli_fname : "unknown");
    list_all(to);
    return true;
}

static bool candidate_read(struct candidate *candidate, const char *word)
{
    char *end;
    *candidate = (struct candidate){RACE_AS_LAUNCHED, RACE_AS_LAUNCHED, NULL};
    if (strcmp(word, "-") == 0)
        return true;
    candidate->value = (int)strtol(word, &end, 10);
    if (*end == ':')
        candidate->segment = (int)strtol(end + 1, &end, 10);
    return !*end && candidate->value >= 0;
}

static bool row_read(struct raced_row *row, char *text)
{
    char *words[CANDIDATES_MOST + 5], *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (count < CANDIDATES_MOST + 5)
            words[count++] = word;
    if (count < 6 || strlen(words[0]) >= sizeof row->call)
        return false;
    memcpy(row->call, words[0], strlen(words[0]) + 1);
    row->bytes = (int64_t)strtoull(words[1], NULL, 10);
    row->ranks = atoi(words[2]);
    row->candidates = count - 5;
    row->turn = calloc((size_t)race.kit->comms, sizeof *row->turn);
    bool is_right = row->turn && variable_find(words[3], &row->algorithm) &&
                    variable_find(words[4], &row->segments);
    for (int i = 5; is_right && i < count; i++)
        is_right = candidate_read(&row->candidate[i - 5], words[i]);
    return is_right;
}

static bool is_of(const struct raced_row *row, const struct kit_call *call)
{
    int64_t type_bytes = call->type == KIT_NONE ? 0 : race.kit->type[call->type].bytes;
    int64_t count = call->count == KIT_NONE ? 0 : call->count;
    return strcmp(row->call, call->name) == 0 && call->comm != KIT_NONE &&
           kit_ranks(race.kit, call->comm) == row->ranks && count * type_bytes == row->bytes;
}

static bool is_on(int number, int comm)
{
    for (int i = 0; i < race.kit->calls; i++)
        if (race.of_call[i] == number && race.kit->call[i].comm == comm)
            return true;
    return false;
}

/* A refusal is a result, not the end of the job. */
static void return_errors(mpi_handle comm)
{
    int (*set)(mpi_handle, mpi_handle) =
        (int (*)(mpi_handle, mpi_handle))library_function("MPI_Comm_set_errhandler");
    mpi_handle handler = mpi_abi.kind == MPI_ABI_OPEN_MPI
                             ? mpi_object_address("ompi_mpi_errors_return")
                         : mpi_abi.kind == MPI_ABI_MPICH ? 0x54000001
                                                         : 0;
    if (set && handler)
        set(comm, handler);
}

static bool apply(const struct raced_row *row, const struct candidate *candidate)
{
    return candidate->value == RACE_AS_LAUNCHED ||
           (variable_write(&row->algorithm, candidate->value) &&
            variable_write(&row->segments, candidate->segment));
}

static void take_back(const struct raced_row *row)
{
    variable_write(&row->algorithm, row->algorithm.launched);
    variable_write(&row->segments, row->segments.launched);
}

static bool duplicate(struct raced_row *row, int comm)
{
    int (*dup)(mpi_handle, void *) = (int (*)(mpi_handle, void *))library_function("MPI_Comm_dup");
    mpi_handle parent = mpi_handle_load(&race.objects->comm[comm], 0);
    bool is_right = true;
    for (int i = 0; is_right && parent != mpi_abi.comm_null && i < row->candidates; i++) {
        struct candidate *candidate = &row->candidate[i];
        if (!candidate->comm)
            candidate->comm = calloc((size_t)race.kit->comms, sizeof *candidate->comm);
        is_right = candidate->comm && apply(row, candidate) &&
                   dup(parent, &candidate->comm[comm]) == MPI_SUCCESS;
        take_back(row);
        if (is_right)
            return_errors(mpi_handle_load(&candidate->comm[comm], 0));
    }
    return is_right;
}

static bool read_rows(char *text, char *why, size_t why_bytes)
{
    char *rest = NULL;
    for (char *row = strtok_r(text, ";", &rest); row; row = strtok_r(NULL, ";", &rest)) {
        snprintf(why, why_bytes, "--race: %.200s: is no row that this library can race", row);
        if (race.rows == ROWS_MOST || !row_read(&race.row[race.rows++], row))
            return false;
    }
    return true;
}

static int row_of(const struct kit_call *call)
{
    int found = -1;
    for (int i = 0; i < race.rows; i++)
        found = is_of(&race.row[i], call) ? i : found;
    return found;
}

/* For the calls that the row races on a communicator. */
static bool prepare_comm(int row, int comm)
{
    if (!is_on(row, comm))
        return true;
    return_errors(mpi_handle_load(&race.objects->comm[comm], 0));
    return mpi_abi.kind != MPI_ABI_OPEN_MPI || duplicate(&race.row[row], comm);
}

bool race_begin(struct objects *objects, const struct kit *kit, const char *rows, char *why,
                size_t why_bytes)
{
    char *text = strdup(rows);
    race.kit = kit, race.objects = objects;
    race.of_call = calloc((size_t)kit->calls + 1, sizeof *race.of_call);
    snprintf(why, why_bytes, "the library has no MPI_T");
    if (!text || !race.of_call || !tool_begin() || !read_rows(text, why, why_bytes))
        return false;
    free(text);
    for (int i = 0; i < kit->calls; i++)
        race.of_call[i] = row_of(&kit->call[i]);
    snprintf(why, why_bytes, "a duplicate of a communicator cannot be made");
    for (int i = 0; i < race.rows; i++)
        for (int comm = 0; comm < kit->comms; comm++)
            if (!prepare_comm(i, comm))
                return false;
    return true;
}

void race_pass(int pass)
{
    race.pass = pass;
}

static int choose(const struct raced_row *row, unsigned turn)
{
    unsigned all = (unsigned)row->candidates, round = turn / all, place = turn % all;
    return (int)(((round % 2 ? all - 1 - place : place) + round / 2) % all);
}

void race_enter(int call)
{
    race.now.row = race.rows ? race.of_call[call] : -1;
    if (race.now.row < 0)
        return;
    struct raced_row *row = &race.row[race.now.row];
    race.now.comm = race.kit->call[call].comm;
    race.now.candidate = choose(row, row->turn[race.now.comm]++);
    const struct candidate *candidate = &row->candidate[race.now.candidate];
    uint64_t *comm = &race.objects->comm[race.now.comm];
    race.comm = *comm;
    if (candidate->comm)
        *comm = candidate->comm[race.now.comm];
    else
        apply(row, candidate);
    race.now.sent = sent_so_far;
    race.now.begin_ns = arrival_common_ns();
}

void race_leave(int error)
{
    if (race.now.row < 0 || !race.rows)
        return;
    race.now.end_ns = arrival_common_ns();
    struct raced_row *row = &race.row[race.now.row];
    if (row->candidate[race.now.candidate].comm)
        race.objects->comm[race.now.comm] = race.comm;
    else
        take_back(row);
    race.now.sent = (struct sent){sent_so_far.messages - race.now.sent.messages,
                                  sent_so_far.bytes - race.now.sent.bytes};
    race.now.error = error;
    race.now.pass = race.pass;
    if (race.results == race.room) {
        race.room = race.room ? 2 * race.room : 4096;
        race.result = realloc(race.result, race.room * sizeof *race.result);
        if (!race.result)
            abort();
    }
    race.result[race.results++] = race.now;
}

bool race_end(const char *folder, int rank, char *why, size_t why_bytes)
{
    char path[TEXT_BYTES];
    snprintf(path, sizeof path, "%s/rank-%d.race", folder, rank);
    FILE *file = fopen(path, "w");
    snprintf(why, why_bytes, "%s: cannot be written", path);
    if (!file)
        return false;
    if (rank == 0)
        race_list(file);
    fprintf(file, "host %s\ncounted %s\n", host_name(), counted);
    for (size_t i = 0; i < race.results; i++) {
        const struct raced_call *one = &race.result[i];
        fprintf(file, "%d %d %d %d %d %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", one->row,
                one->comm, one->pass, one->candidate, one->error, one->begin_ns, one->end_ns,
                one->sent.messages, one->sent.bytes);
    }
    if (mpi_abi.kind == MPI_ABI_OPEN_MPI) /* once for race_begin, once for race_list */
        for (int i = 0; i < 1 + (rank == 0); i++)
            tool.finalize();
    return fclose(file) == 0;
}
