/* commprof-replay [options] KIT: make a job's MPI calls again.
 *
 * The launcher starts it on as many ranks as the job had, with commprof-run before it, so that its
 * profile can be compared with the job's. It finds the MPI library at run time, as libcommprof.so
 * does: one binary for all. The first pass is not counted: connections are made in it.
 *
 * `hvprof-report replay source` writes these files and a kit as one file of C, for people who have
 * an MPI library and nothing else of ours. */
#include "player.h"
#include "race.h"
#include "watch.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, NUMBER_MOST = 1000000, WHY_BYTES = 512 };

static const char USAGE[] = "usage: mpirun -n RANKS commprof-run commprof-replay [options] KIT\n"
                            "Make the MPI calls of a kit (hvprof-report replay kit) again, on as "
                            "many ranks as its job.\n\n";
static const char USAGE_INSIDE[] =
    "usage: mpirun -n RANKS PROGRAM [options]\n"
    "Make the MPI calls of the kit in this program again, on as many ranks as its job.\n\n";
static const char OPTIONS[] =
    "  --repeat N                 passes that are counted, after one that is not (1)\n"
    "  --gaps recorded|none       compute between calls as long as the job did, or not (recorded)\n"
    "  --arrival recorded|together|barrier\n"
    "                             together: all ranks enter each blocking collective at one time;\n"
    "                             barrier: after a barrier\n"
    "  --buffers recorded|hot|cold\n"
    "                             hot: read before each call; cold: taken out of all caches\n"
    "  --patience SECONDS         end the job if no call of a rank ends for so long and as long "
    "as\n"
    "                             the kit computes; 0: never (300)\n"
    "  --race ROWS                let algorithms of collectives take turns; for hvprof-report "
    "tune\n"
    "  --race-output FOLDER       where each rank writes how long each of these calls took\n"
    "  --algorithms               print the library's variables that choose algorithms, and end\n"
    "  --mpi LIBRARY              the MPI library (default: the one that the program is linked\n"
    "                             with, else the launcher's)\n"
    "  --help, --version\n";

#ifndef COMMPROF_VERSION /* in a program that replay source wrote */
#define COMMPROF_VERSION "0, with a kit inside"
#endif

static int print_usage(FILE *to, int exit_status)
{
    fputs(kit_inside ? USAGE_INSIDE : USAGE, to);
    fputs(OPTIONS, to);
    return exit_status;
}

/* -1: it is no number, or out of range. */
static int number_from(int least, const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    return end == text || *end || number < least || number > NUMBER_MOST ? -1 : (int)number;
}

/* Which of the words it is; -1: none. */
static int choice(const char *word, const char *const words[])
{
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return -1;
}

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "commprof-replay: %s: %s\n", what, why);
    return EXIT_USAGE;
}

/* The profile has it as env.COMMPROF_REPLAY_<NAME>: what is replayed, and with which options. */
static void say_in_profile(const char *name, const char *value)
{
    char variable[64] = "COMMPROF_REPLAY_";
    for (size_t end = strlen(variable); *name && end + 1 < sizeof variable; end++, name++)
        variable[end] = (char)toupper((unsigned char)*name);
    setenv(variable, value, 1);
}

/* Without --patience, which changes nothing, and --mpi: the profile has the path of the library in
 * any case. */
static int next_option(int argc, char **argv, const struct option *names)
{
    int place = -1, option = getopt_long(argc, argv, "h", names, &place);
    if (place >= 0 && option == names[place].val && names[place].has_arg && option != 'm' &&
        option != 'p')
        say_in_profile(names[place].name, optarg);
    return option;
}

struct options {
    const char *kit, *library, *race, *race_output;
    bool lists; /* the algorithms of the library */
    int passes, patience_s;
    struct player_settings settings;
};

/* Options whose argument is one of some words. */
static struct {
    int option;
    const char *const words[4];
    int place; /* of the word; -1: it is none of them */
} choices[] = {{'g', {"recorded", "none"}, 0},
               {'a', {"recorded", "together", "barrier"}, 0},
               {'b', {"recorded", "hot", "cold"}, 0}};

static void choose_word(int option, const char *word)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].option == option)
            choices[i].place = choice(word, choices[i].words);
}

static void take_option(struct options *options, int option)
{
    switch (option) {
    case 'r':
        options->passes = number_from(1, optarg);
        break;
    case 'p':
        options->patience_s = number_from(0, optarg);
        break;
    case 'm':
        options->library = optarg;
        break;
    case 'R':
        options->race = optarg;
        break;
    case 'o':
        options->race_output = optarg;
        break;
    case 'l':
        options->lists = true;
        break;
    case 'v':
        exit(puts("commprof " COMMPROF_VERSION) == EOF);
    case 'h':
        exit(print_usage(stdout, 0));
    case '?':
        exit(print_usage(stderr, EXIT_USAGE));
    default:
        choose_word(option, optarg);
    }
}

static bool read_options(struct options *options, int argc, char **argv)
{
    static const struct option NAMES[] = {
        {"repeat", required_argument, NULL, 'r'},   {"gaps", required_argument, NULL, 'g'},
        {"arrival", required_argument, NULL, 'a'},  {"buffers", required_argument, NULL, 'b'},
        {"patience", required_argument, NULL, 'p'}, {"mpi", required_argument, NULL, 'm'},
        {"race", required_argument, NULL, 'R'},     {"race-output", required_argument, NULL, 'o'},
        {"algorithms", no_argument, NULL, 'l'},     {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},           {0}};
    *options = (struct options){.passes = 1, .patience_s = WATCH_PATIENCE_S};
    for (int option; (option = next_option(argc, argv, NAMES)) != -1;)
        take_option(options, option);
    int gaps = choices[0].place, arrival = choices[1].place, buffers = choices[2].place;
    options->settings = (struct player_settings){
        .has_gaps = gaps == 0, .arrival = (enum arrival)arrival, .buffers = (enum buffers)buffers};
    options->kit = kit_inside ? "the kit in this program" : argv[optind];
    return (options->lists || optind + !kit_inside == argc) &&
           !options->race == !options->race_output && options->passes > 0 &&
           options->patience_s >= 0 && gaps >= 0 && arrival >= 0 && buffers >= 0;
}

/* MPI's functions that the program calls by itself; of its set-up and the first pass nothing is
 * counted. */
static struct {
    int (*Init_thread)(int *, char ***, int, int *);
    int (*Comm_rank)(mpi_handle, int *);
    int (*Comm_size)(mpi_handle, int *);
    int (*Pcontrol)(int, ...);
    int (*Finalize)(void);
    int (*Abort)(mpi_handle, int);
} setup;

static bool resolve_setup(void)
{
#define FUNCTION(NAME) (setup.NAME = (__typeof__(setup.NAME))library_function("MPI_" #NAME))
    return FUNCTION(Init_thread) && FUNCTION(Comm_rank) && FUNCTION(Comm_size) &&
           FUNCTION(Pcontrol) && FUNCTION(Finalize) && FUNCTION(Abort);
#undef FUNCTION
}

static void play_passes(const struct kit *kit, const struct objects *objects,
                        const struct options *options, int rank)
{
    struct player_settings settings = options->settings;
    for (int pass = 0; pass <= options->passes; pass++) {
        watch_own(watch_slot(0), "MPI_Bcast or MPI_Recv to compare clocks", KIT_NONE);
        arrival_begin(settings.arrival, options->race, rank, kit->ranks);
        watch_own_end(watch_slot(0));
        settings.is_counted = pass > 0;
        race_pass(pass);
        int64_t took_ns = player_play(kit, objects, &settings);
        if (rank == 0 && pass > 0)
            printf("commprof-replay: pass %d of %d took %.6f s; the job took %.6f s\n", pass,
                   options->passes, (double)took_ns * 1e-9, (double)kit->window_ns * 1e-9);
    }
}

/* Whether the kit can be replayed with these options; says why not. */
static bool is_offered(const struct options *options, const struct kit *kit)
{
    if (kit->has_threads && options->settings.arrival)
        return !complain(options->kit, "has ranks of several threads, for which only --arrival "
                                       "recorded is offered");
    if (kit->has_threads && options->race)
        return !complain(options->kit, "has ranks of several threads, which cannot race "
                                       "algorithms");
    if (options->settings.buffers == BUFFERS_COLD && !buffers_can_be_cold())
        return !complain("--buffers cold", "is not offered for this processor");
    return true;
}

/* Reads the kit and finds the MPI library; says what is wrong. */
static bool prepare_job(const struct options *options, struct kit *kit, char *why, size_t why_bytes)
{
    const char *what = options->kit;
    if (kit_read(kit, options->kit, -1, why, why_bytes)) {
        say_in_profile("kit", kit->sha256);
        snprintf(why, why_bytes, "none is found; name it with --mpi");
        what = "MPI library";
        if (library_load(options->library, why, why_bytes) && resolve_setup())
            return is_offered(options, kit);
    }
    return !complain(what, why);
}

static void begin_mpi(int *argc, char ***argv, const struct kit *kit, int *rank, int *size)
{
    int level;
    watch_own(watch_slot(0), "MPI_Init_thread", KIT_NONE);
    setup.Init_thread(argc, argv, mpi_abi.thread_levels[kit->has_threads ? 3 : 0], &level);
    watch_own_end(watch_slot(0));
    setup.Pcontrol(0);
    setup.Comm_rank(mpi_abi.comm_world, rank);
    setup.Comm_size(mpi_abi.comm_world, size);
}

/* Makes what the kit needs. `is_own`: what is wrong may be so on this rank alone. */
static bool begin_kit(const struct options *options, struct kit *kit, struct objects *objects,
                      int rank, bool *is_own, char *why, size_t why_bytes)
{
    if (!kit_read(kit, options->kit, rank, why, why_bytes) || !player_begin(kit, why, why_bytes))
        return false;
    *is_own = !player_begin_programs(kit, why, why_bytes);
    if (*is_own)
        return false;
    watch_kit(kit, rank, options->settings.has_gaps, setup.Abort);
    return objects_make(objects, kit, rank, why, why_bytes) &&
           (!options->race || race_begin(objects, kit, options->race, why, why_bytes));
}

/* Returns whether all passes were played; says why not. */
static bool replay_kit(const struct options *options, struct kit *kit, int rank, int size)
{
    struct objects objects = {0};
    char why[WHY_BYTES];
    bool is_own = false;
    if (size != kit->ranks) {
        snprintf(why, sizeof why, "is a job of %d ranks; this one has %d", kit->ranks, size);
        return rank == 0 ? !complain(options->kit, why) : false;
    }
    if (!begin_kit(options, kit, &objects, rank, &is_own, why, sizeof why)) {
        if (rank == 0 || is_own)
            complain(options->kit, why);
        setup.Abort(mpi_abi.comm_world, EXIT_USAGE);
        return false;
    }
    play_passes(kit, &objects, options, rank);
    if (options->race && !race_end(options->race_output, rank, why, sizeof why))
        return !complain("--race-output", why);
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    struct kit kit;
    char why[WHY_BYTES] = "none is found; name it with --mpi";
    int rank = 0, size = 0;
    if (!read_options(&options, argc, argv))
        return print_usage(stderr, EXIT_USAGE);
    if (options.lists)
        return library_load(options.library, why, sizeof why) && race_list(stdout)
                   ? 0
                   : complain("MPI library", why);
    if (!prepare_job(&options, &kit, why, sizeof why))
        return EXIT_USAGE;
    watch_begin(options.patience_s);
    begin_mpi(&argc, &argv, &kit, &rank, &size);
    bool is_right = replay_kit(&options, &kit, rank, size);
    watch_own(watch_slot(0), "MPI_Finalize", KIT_NONE);
    setup.Finalize();
    watch_own_end(watch_slot(0));
    return is_right ? 0 : EXIT_USAGE;
}
