/* pcontrol_names CASE: MPI_Pcontrol with a second argument, which is a name in the convention of
 * IPM, and otherwise whatever a register holds. Barriers tell what is counted where. */
#include <string.h>

#include <mpi.h>

#include "check.h"

static void barriers(int times)
{
    for (int i = 0; i < times; i++)
        MPI_Barrier(MPI_COMM_SELF);
}

static void regions(void)
{
    for (int i = 0; i < 5; i++) {
        char name[] = "solve"; /* not a constant: a program may put names together */
        MPI_Pcontrol(1, name);
        barriers(3);
        MPI_Pcontrol(-1, name);
    }
    MPI_Pcontrol(0, "restart");
    barriers(100);
}

static void nested(void)
{
    MPI_Pcontrol(1, "outer");
    barriers(1);
    MPI_Pcontrol(0, "event"); /* before any region has ended */
    MPI_Pcontrol(1, "in");
    barriers(2);
    MPI_Pcontrol(-1, "in");
    barriers(4);
    MPI_Pcontrol(-1, "outer");
    barriers(8);
}

static void event_first(void)
{
    MPI_Pcontrol(0, "before all");
    barriers(1);
    MPI_Pcontrol(1, "solve");
    barriers(2);
    MPI_Pcontrol(-1, "solve");
    MPI_Pcontrol(0, "between");
    barriers(4);
}

static void events_alone(void)
{
    MPI_Pcontrol(0, "one");
    barriers(1);
    MPI_Pcontrol(0, "two");
    barriers(2);
    MPI_Pcontrol(0, "three");
    barriers(4);
}

/* A text that was left over by an earlier call in this program: strcmp(argument, "detailed"). */
static void left_over(void)
{
    MPI_Pcontrol(0, "detailed");
    barriers(1);
    MPI_Pcontrol(1, "detailed");
    barriers(2);
    MPI_Pcontrol(0, "detailed");
    barriers(4);
    MPI_Pcontrol(1, NULL);
    barriers(8);
    MPI_Pcontrol(0, (void *)1234);
    barriers(16);
}

/* It is left over where the call has no effect, so it begins a region; the next call without one
 * ends that. */
static void left_over_at_first(void)
{
    MPI_Pcontrol(1, "detailed");
    barriers(1);
    MPI_Pcontrol(0, NULL);
    barriers(2);
    MPI_Pcontrol(1, NULL);
    barriers(4);
}

static void no_words(void)
{
    static const char *const TEXTS[] = {"12",  "x",           "ab",       "2024-11-26",
                                        "a\n", "caf\xc3\xa9", "\x07ring", ""};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        MPI_Pcontrol(1, TEXTS[i]);
        barriers(1);
        MPI_Pcontrol(0, TEXTS[i]);
        barriers(100);
    }
}

/* After IPM's convention, calls that can only be meant for ours. */
static void both(void)
{
    regions();
    MPI_Pcontrol(0, NULL);
    barriers(1000);
    MPI_Pcontrol(1, NULL);
    barriers(10);
    MPI_Pcontrol(0, "detailed");
    MPI_Pcontrol(0, NULL);
    MPI_Pcontrol(0, "detailed");
    barriers(1000);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } CASES[] = {
        {"regions", regions},         {"nested", nested},
        {"event_first", event_first}, {"events_alone", events_alone},
        {"left_over", left_over},     {"left_over_at_first", left_over_at_first},
        {"no_words", no_words},       {"both", both},
    };
    CHECK(argc == 2);
    MPI_Init(&argc, &argv);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        if (strcmp(argv[1], CASES[i].name) == 0)
            CASES[i].run();
    MPI_Finalize();
    return 0;
}
