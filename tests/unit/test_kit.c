/* The subject belongs to commprof-replay, not to the library. */
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/kit.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/arrival.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/buffers.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/player.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/race.c"
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/replay/watch.c"

#include "unit.h"

/* A library that has all functions; none is called. */
void *library_function(const char *name)
{
    return strcmp(name, "MPI_Ibarrier") == 0 ? NULL : (void *)name;
}

mpi_handle objects_op(const struct objects *objects, const char *name, int type)
{
    (void)objects, (void)name, (void)type;
    return 0;
}

enum { DAMAGED_KITS = UNIT_SANITIZED ? 3000 : 10000 };

#define HEAD "commprof-kit 1\nsha256 "
static const char KIT[] = HEAD "0000000000000000000000000000000000000000000000000000000000000000\n"
                               "library Open MPI 4.1.4\n"
                               "ranks 4\n"
                               "window 12345\n"
                               "left-out 2 MPI_Put is none of the calls that can be made again\n"
                               "late 1 MPI_Isend\n"
                               "comm 0 0 0 world 0,1,2,3\n"
                               "comm 1 1 0 self -\n"
                               "comm 2 0 2 split 0,2\n"
                               "comm 3 0 2 split 1,3\n"
                               "type 0 MPI_FLOAT 4 4 1\n"
                               "type 1 vector 8 -16 2\n"
                               "vector 0 10 20 30 40\n"
                               "call 0 MPI_Allreduce 2 0 250 MPI_SUM - - - 0 - - - - - - - - -\n"
                               "call 1 MPI_Isend 0 1 7 - - 1 99 0 - - - - - - - - -\n"
                               "call 2 MPI_Wait - - - - - - - - - - - - - - - - -\n"
                               "call 3 MPI_Allgatherv 0 0 10 - - - - 0 0 - - - - - - - -\n"
                               "call 4 MPI_Send_init 0 0 10 - - 1 5 0 - - - - - - - - -\n"
                               "call 5 MPI_Startall - - - - - - - - - - - - - - - - -\n"
                               "call 6 MPI_Request_free - - - - - - - - - - - - - - - - -\n"
                               "call 7 MPI_Mprobe 0 - - - - 1 3 0 - - - - - - - - -\n"
                               "call 8 MPI_Imrecv 0 0 10 - - 1 3 0 - - - - - - - - -\n"
                               "program 0 0 1\n"
                               "0 4 1\n"
                               "0 0\n"
                               "~12 1 0\n"
                               "5 2 0\n"
                               "7 3\n"
                               "1 5 1\n"
                               "1 7 0\n"
                               "1 8 0\n"
                               "1 2 0 1\n"
                               "1 6 1\n"
                               "program 0 3 0\n"
                               "9 0\n"
                               "program 1 0 0\n"
                               "3 3\n";

/* With the sum that the lines after it have, whatever is said. */
static void sign(char *text, size_t bytes)
{
    struct sha256 sum;
    char digest[65], *lines = bytes > sizeof HEAD
                                  ? memchr(text + sizeof HEAD - 1, '\n', bytes - sizeof HEAD + 1)
                                  : NULL;
    if (!lines || lines - (text + sizeof HEAD - 1) != 64)
        return;
    sha256_begin(&sum);
    sha256_add(&sum, lines + 1, bytes - (size_t)(lines + 1 - text));
    sha256_end(&sum, digest);
    memcpy(lines - 64, digest, 64);
}

static bool read_text(struct kit *kit, const char *text, size_t bytes, int rank, char why[256])
{
    char path[] = "/tmp/commprof-kit-XXXXXX", own[sizeof KIT + 256];
    int file = mkstemp(path);
    CHECK(bytes <= sizeof own);
    memcpy(own, text, bytes);
    sign(own, bytes);
    CHECK(file >= 0 && write(file, own, bytes) == (ssize_t)bytes);
    close(file);
    bool is_read = kit_read(kit, path, rank, why, 256);
    unlink(path);
    return is_read;
}

TEST(a_kit_has_the_programs_of_one_rank)
{
    struct kit kit;
    char why[256];
    CHECK(read_text(&kit, KIT, sizeof KIT - 1, 0, why));
    CHECK_EQUAL(kit.ranks, 4);
    CHECK_EQUAL(kit.window_ns, 12345);
    CHECK(kit.has_threads);
    CHECK_EQUAL(kit.comms, 4);
    CHECK_EQUAL(kit.comm[3].size, 2);
    CHECK_EQUAL(kit.comm[3].members[1], 3);
    CHECK_EQUAL(kit.type[1].extent, -16);
    CHECK_EQUAL(kit.vector[0].counts[3], 40);
    CHECK_EQUAL(kit.call[1].tag, 99);
    CHECK_EQUAL(kit.call[0].peer, KIT_NONE);
    CHECK_EQUAL(kit.programs, 2);
    CHECK_EQUAL(kit.program[0].count, 10);
    CHECK_EQUAL(kit.program[0].before, 1);
    CHECK_EQUAL(kit.program[0].requests, 2);
    CHECK_EQUAL(kit.program[1].first, 10);
    CHECK_EQUAL(kit.program[1].line, 36);
    CHECK_EQUAL(kit.gaps_ns, 29);
    CHECK_EQUAL(kit.made[2].gap_ns, 12);
    CHECK(kit.made[2].is_asleep && !kit.made[3].is_asleep);
    CHECK_EQUAL(kit_requests(&kit.made[2]), 1);
}

TEST(a_rank_may_have_no_program)
{
    struct kit kit;
    char why[256];
    CHECK(read_text(&kit, KIT, sizeof KIT - 1, 3, why));
    CHECK_EQUAL(kit.programs, 0);
}

TEST(a_program_has_room_for_its_highest_request)
{
    static const struct {
        const char *made;
        int requests;
    } ROWS[] = {{"0 4 1\n", 2}, {"0 4 0\n", 1}, {"0 4\n", 0}, {"0 4 2 0\n", 3}};
    for (size_t row = 0; row < sizeof ROWS / sizeof *ROWS; row++) {
        char text[sizeof KIT], why[256];
        struct kit kit;
        int head = (int)(strstr(KIT, "0 4 1\n") - KIT);
        int bytes = snprintf(text, sizeof text, "%.*s%s", head, KIT, ROWS[row].made);
        CHECK(read_text(&kit, text, (size_t)bytes, 0, why));
        CHECK_EQUAL(kit.program[0].requests, ROWS[row].requests);
    }
}

TEST(what_is_no_kit_is_refused)
{
    struct kit kit;
    char why[256];
    CHECK(!kit_read(&kit, "/nowhere/job.kit", 0, why, sizeof why));
    CHECK(!read_text(&kit, "", 0, 0, why));
    CHECK(!read_text(&kit, "commprof-kit 2\n", 15, 0, why));
    CHECK(!read_text(&kit, KIT, 40, 0, why));
}

/* `text` with its first `old` replaced. */
static bool text_with(const char *old, const char *new, struct kit *kit, char why[256])
{
    char text[sizeof KIT + 128];
    const char *at = strstr(KIT, old);
    int before = (int)(at - KIT);
    int bytes = snprintf(text, sizeof text, "%.*s%s%s", before, KIT, new, at + strlen(old));
    return read_text(kit, text, (size_t)bytes, 0, why);
}

static bool reads_with(const char *old, const char *new)
{
    char why[256];
    struct kit kit;
    return text_with(old, new, &kit, why);
}

TEST(a_line_has_so_many_words_and_no_more)
{
    static const char *const LINES[] = {
        "ranks 4",           "window 12345",           "late 1 MPI_Isend",
        "comm 1 1 0 self -", "type 0 MPI_FLOAT 4 4 1", "program 0 3 0"};
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        char more[64], less[64];
        snprintf(more, sizeof more, "%s 1", LINES[i]);
        snprintf(less, sizeof less, "%.*s", (int)(strrchr(LINES[i], ' ') - LINES[i]), LINES[i]);
        CHECK(reads_with(LINES[i], LINES[i]));
        CHECK(!reads_with(LINES[i], more));
        CHECK(!reads_with(LINES[i], less));
    }
}

/* Else a library would write beyond buffers that are laid out for fewer ranks. */
TEST(communicators_that_no_library_can_make_are_refused)
{
    static const char LATE_RANKS[] =
        HEAD "0000000000000000000000000000000000000000000000000000000000000000\n"
             "comm 0 0 0 world -\ncomm 1 1 0 self -\nranks 4\n";
    struct kit kit;
    char why[256];
    CHECK(reads_with("split 1,3", "split 3,1"));
    CHECK(!reads_with("world 0,1,2,3", "world 0,1,2"));
    CHECK(!reads_with("world 0,1,2,3", "world 0,1,3,2"));
    CHECK(!reads_with("world 0,1,2,3", "world 0,1,2,3,3"));
    CHECK(!reads_with("self -", "self 0"));
    CHECK(!reads_with("split 0,2", "split 0,0"));
    CHECK(!reads_with("split 1,3", "split 2,3"));
    CHECK(!reads_with("comm 3 0 2 split 1,3", "comm 3 2 2 split 0"));
    CHECK(!reads_with("comm 3 0 2 split 1,3", "comm 3 0 0 split 1,3"));
    CHECK(!reads_with("comm 3 0 2 split 1,3", "comm 3 0 3 dup 1,3"));
    CHECK(reads_with("comm 3 0 2 split 1,3", "comm 3 2 3 dup 0,2"));
    CHECK(!reads_with("comm 3 0 2 split 1,3", "comm 3 1 3 dup -"));
    CHECK(!reads_with("ranks 4", "ranks 4\nranks 5"));
    CHECK(!read_text(&kit, LATE_RANKS, sizeof LATE_RANKS - 1, 0, why));
    CHECK(!reads_with("program 0 3 0", "program 0 0 0"));
    CHECK(!reads_with("vector 0 10 20 30 40", "vector 0 10 20 30"));
    CHECK(!reads_with("vector 0 10 20 30 40", "vector 0 2147483647 20 30 40"));
}

static bool plays_with(const char *old, const char *new, char why[256])
{
    struct kit kit;
    return text_with(old, new, &kit, why) && player_begin(&kit, why, 256) &&
           player_begin_programs(&kit, why, 256);
}

/* Else buffers would be too small, or a handle be used that is none. */
TEST(calls_that_do_not_fit_their_requests_are_refused)
{
    char why[256];
    CHECK(plays_with("7 3", "8 3", why));
    CHECK(!plays_with("1 5 1\n", "1 5 0\n", why)); /* no persistent one */
    CHECK_TEXT(why, "its requests are not in order");
    CHECK(!plays_with("0 4 1\n", "0 0\n", why)); /* before the program only set-ups */
    CHECK(!plays_with("1 8 0\n", "7 3\n", why)); /* what is found is received */
    CHECK(!plays_with("1 6 1\n", "1 6 0\n", why));
    CHECK(!plays_with("1 5 1\n", "1 5 1\n1 5 1\n", why)); /* it is active */
    CHECK(!plays_with("1 5 1\n", "1 5 1 1\n", why));
    CHECK(!plays_with("1 5 1\n", "1 5 1\n1 6 1\n", why));
    CHECK(!plays_with("1 6 1\n", "1 2 1\n", why)); /* it is not */
    CHECK(plays_with("1 6 1\n", "1 5 1\n1 2 1\n1 6 1\n", why));
    CHECK(!plays_with("call 1 MPI_Isend", "call 1 MPI_Isendrecv", why));
    CHECK_TEXT(why, "no replay can make MPI_Isendrecv");
    CHECK(!plays_with("call 1 MPI_Isend", "call 1 MPI_Ibarrier", why));
    CHECK_TEXT(why, "the library has no MPI_Ibarrier");
    CHECK(!plays_with("12 1 0\n", "12 1\n", why));
    CHECK(!plays_with("12 1 0\n", "12 1 1\n", why));
    CHECK(!plays_with("7 3\n", "7 3 3\n", why));
    CHECK(!plays_with("type 1 vector 8 -16 2\n"
                      "vector 0 10 20 30 40\n"
                      "call 0 MPI_Allreduce 2 0 250 MPI_SUM - - - 0 - - - - - - - - -\n",
                      "type 1 vector 8 -2147483647 2\n"
                      "vector 0 10 20 30 40\n"
                      "call 0 MPI_Bcast 0 1 2147483647 - 0 - - - - - - - - - - - -\n",
                      why));
    CHECK_TEXT(why, "no memory has room for a message of MPI_Bcast");
}

/* Kits come from anybody: each number that stands for a row does, whatever a file holds. */
TEST(numbers_of_a_damaged_kit_stay_in_range)
{
    unsigned state = 1, played = 0;
    for (int i = 0; i < DAMAGED_KITS; i++) {
        char text[sizeof KIT], why[256];
        struct kit kit;
        memcpy(text, KIT, sizeof text);
        for (int j = 0; j < 1 + i % 3; j++) {
            state = state * 1103515245u + 12345u;
            text[sizeof HEAD + 64 + (state >> 8) % (sizeof KIT - sizeof HEAD - 65)] =
                "0123456789 -\nx"[(state >> 4) % 14];
        }
        if (!read_text(&kit, text, sizeof KIT - 1, 0, why))
            continue;
        for (size_t made = 0; made < kit.made_count; made++) {
            CHECK((int)kit.made[made].call < kit.calls);
            CHECK(kit.made[made].first_request <= kit.made[made + 1].first_request);
            CHECK(kit.made[made + 1].first_request <= kit.request_count);
        }
        for (int call = 0; call < kit.calls; call++) {
            CHECK(kit.call[call].comm < kit.comms && kit.call[call].type < kit.types);
            CHECK(kit.call[call].vector < kit.vectors);
        }
        if (player_begin(&kit, why, sizeof why) && player_begin_programs(&kit, why, sizeof why))
            played++;
        free(functions);
    }
    CHECK(played > DAMAGED_KITS / 10 && played < DAMAGED_KITS);
}
