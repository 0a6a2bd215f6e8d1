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

enum { EXIT_USAGE = 2, NUMBER_MOST = 1000000 };

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

static bool read_options(struct options *options, int argc, char **argv)
{
    static const struct option NAMES[] = {
        {"repeat", required_argument, NULL, 'r'},   {"gaps", required_argument, NULL, 'g'},
        {"arrival", required_argument, NULL, 'a'},  {"buffers", required_argument, NULL, 'b'},
        {"patience", required_argument, NULL, 'p'}, {"mpi", required_argument, NULL, 'm'},
        {"race", required_argument, NULL, 'R'},     {"race-output", required_argument, NULL, 'o'},
        {"algorithms", no_argument, NULL, 'l'},     {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},           {0}};
    static const char *const GAPS[] = {"recorded", "none", NULL},
                             *const ARRIVALS[] = {"recorded", "together", "barrier", NULL},
                             *const BUFFERS[] = {"recorded", "hot", "cold", NULL};
    int gaps = 0, arrival = 0, buffers = 0;
    *options = (struct options){.passes = 1, .patience_s = WATCH_PATIENCE_S};
    for (int option; (option = next_option(argc, argv, NAMES)) != -1;)
        if (option == 'r')
            options->passes = number_from(1, optarg);
        else if (option == 'g')
            gaps = choice(optarg, GAPS);
        else if (option == 'a')
            arrival = choice(optarg, ARRIVALS);
        else if (option == 'b')
            buffers = choice(optarg, BUFFERS);
        else if (option == 'p')
            options->patience_s = number_from(0, optarg);
        else if (option == 'm')
            options->library = optarg;
        else if (option == 'R')
            options->race = optarg;
        else if (option == 'o')
            options->race_output = optarg;
        else if (option == 'l')
            options->lists = true;
        else if (option == 'v')
            exit(puts("commprof " COMMPROF_VERSION) == EOF);
        else
            exit(option == 'h' ? print_usage(stdout, 0) : print_usage(stderr, EXIT_USAGE));
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

int main(int argc, char **argv)
{
    struct options options;
    struct kit kit;
    struct objects objects = {0};
    char why[512] = "none is found; name it with --mpi";
    int level, rank = 0, size = 0;
    if (!read_options(&options, argc, argv))
        return print_usage(stderr, EXIT_USAGE);
    if (options.lists)
        return library_load(options.library, why, sizeof why) && race_list(stdout)
                   ? 0
                   : complain("MPI library", why);
    if (!kit_read(&kit, options.kit, -1, why, sizeof why))
        return complain(options.kit, why);
    say_in_profile("kit", kit.sha256);
    if (!library_load(options.library, why, sizeof why) || !resolve_setup())
        return complain("MPI library", why);
    if (kit.has_threads && options.settings.arrival)
        return complain(options.kit, "has ranks of several threads, for which only --arrival "
                                     "recorded is offered");
    if (kit.has_threads && options.race)
        return complain(options.kit, "has ranks of several threads, which cannot race algorithms");
    if (options.settings.buffers == BUFFERS_COLD && !buffers_can_be_cold())
        return complain("--buffers cold", "is not offered for this processor");
    watch_begin(options.patience_s);
    watch_own(watch_slot(0), "MPI_Init_thread", KIT_NONE);
    setup.Init_thread(&argc, &argv, mpi_abi.thread_levels[kit.has_threads ? 3 : 0], &level);
    watch_own_end(watch_slot(0));
    setup.Pcontrol(0);
    setup.Comm_rank(mpi_abi.comm_world, &rank);
    setup.Comm_size(mpi_abi.comm_world, &size);
    bool fits = size == kit.ranks;
    if (!fits)
        snprintf(why, sizeof why, "is a job of %d ranks; this one has %d", kit.ranks, size);
    bool is_right = fits && kit_read(&kit, options.kit, rank, why, sizeof why) &&
                    player_begin(&kit, why, sizeof why);
    bool is_own = is_right && !player_begin_programs(&kit, why, sizeof why);
    is_right = is_right && !is_own;
    if (is_right) {
        watch_kit(&kit, rank, options.settings.has_gaps, setup.Abort);
        is_right = objects_make(&objects, &kit, rank, why, sizeof why) &&
                   (!options.race || race_begin(&objects, &kit, options.race, why, sizeof why));
    }
    if (!is_right) {
        if (rank == 0 || is_own)
            complain(options.kit, why);
        if (fits)
            setup.Abort(mpi_abi.comm_world, EXIT_USAGE);
    } else {
        play_passes(&kit, &objects, &options, rank);
        is_right = !options.race || race_end(options.race_output, rank, why, sizeof why);
        if (!is_right)
            complain("--race-output", why);
    }
    watch_own(watch_slot(0), "MPI_Finalize", KIT_NONE);
    setup.Finalize();
    watch_own_end(watch_slot(0));
    return is_right ? 0 : EXIT_USAGE;
}
