#include "output/archive.h"

#include "base/settings.h"
#include "stepping.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

UNIT_ALONE;

enum { BLOCK = 512, RANKS = 16, MOST_BYTES = 60000 };

/* Waiting takes no time here, and a file system may refuse locks. */

static int refusal; /* errno; 0: none */

int nanosleep(const struct timespec *wanted, struct timespec *rest)
{
    (void)wanted, (void)rest;
    sched_yield();
    return 0;
}

int flock(int file, int operation)
{
    errno = refusal;
    return refusal ? -1 : (int)syscall(SYS_flock, file, operation);
}

/* A rank's database: as long as nothing else, and full of its number. */

static size_t bytes_of(int rank)
{
    return 1 + (size_t)(rank * 3711 % MOST_BYTES);
}

static int append(const char *archive, int rank)
{
    static char data[MOST_BYTES];
    char path[64];
    snprintf(path, sizeof path, "database-%d", rank);
    memset(data, 'a' + rank, sizeof data);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(write(file, data, bytes_of(rank)) == (ssize_t)bytes_of(rank));
    int error = archive_append(archive, rank, file);
    close(file);
    unlink(path);
    return error;
}

/* Another reader of archives: how many members there are, all of which must be whole, and which
 * ranks they are of. */

static char all[RANKS * (MOST_BYTES + 2 * BLOCK)];

static size_t read_all(const char *archive)
{
    int file = open(archive, O_RDONLY);
    ssize_t bytes = file < 0 ? 0 : read(file, all, sizeof all);
    close(file);
    return (size_t)bytes;
}

static unsigned ranks_in(const char *archive)
{
    unsigned ranks = 0;
    int rank;
    size_t there = read_all(archive), bytes;
    for (size_t at = 0; at + BLOCK <= there && sscanf(all + at, "rank-%d.db", &rank) == 1;) {
        CHECK(sscanf(all + at + 124, "%zo", &bytes) == 1);
        if (at + BLOCK + bytes > there)
            break;
        CHECK_EQUAL(bytes, bytes_of(rank));
        for (size_t i = 0; i < bytes; i++)
            CHECK(all[at + BLOCK + i] == 'a' + rank);
        CHECK(!(ranks & 1u << rank));
        ranks |= 1u << rank;
        at += BLOCK + (bytes + BLOCK - 1) / BLOCK * BLOCK;
    }
    return ranks;
}

static void tail(const char *archive, const void *data, size_t bytes)
{
    int file = open(archive, O_WRONLY | O_APPEND);
    CHECK(write(file, data, bytes) == (ssize_t)bytes);
    close(file);
}

static off_t length(const char *archive)
{
    struct stat there;
    CHECK(stat(archive, &there) == 0);
    return there.st_size;
}

TEST(each_rank_s_database_is_a_member)
{
    settings.umask = 077;
    for (int rank = 0; rank < RANKS; rank++)
        CHECK_EQUAL(append("node.tar", rank), 0);
    CHECK_EQUAL(ranks_in("node.tar"), (1 << RANKS) - 1);
    CHECK(archive_has("node.tar", 0) && archive_has("node.tar", RANKS - 1) &&
          !archive_has("node.tar", RANKS));
    CHECK(!archive_has("nothing", 0));
    CHECK_EQUAL(system("tar tf node.tar 2>&1 | grep --count --line-regexp 'rank-[0-9]*\\.db' | "
                       "grep --quiet --line-regexp 16"),
                0);
    struct stat there;
    CHECK(stat("node.tar", &there) == 0);
    CHECK_EQUAL(there.st_mode & 0777, 0600);
}

/* A header whose data is not there, the first half of a header, and anything at all. */
TEST(what_a_crash_has_left_behind_the_last_member_is_cut_off)
{
    char header[BLOCK];
    CHECK_EQUAL(append("node.tar", 2), 0);
    CHECK(read_all("node.tar") > BLOCK);
    memcpy(header, all, BLOCK);
    off_t end = BLOCK + (off_t)(bytes_of(2) + BLOCK - 1) / BLOCK * BLOCK;
    CHECK(truncate("node.tar", end) == 0);
    tail("node.tar", header, BLOCK);
    CHECK_EQUAL(append("node.tar", 3), 0);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 2 | 1 << 3);
    CHECK(truncate("node.tar", end) == 0);
    tail("node.tar", header, BLOCK / 2);
    CHECK_EQUAL(append("node.tar", 4), 0);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 2 | 1 << 4);
    header[0] = 'R'; /* the checksum is wrong now */
    CHECK(truncate("node.tar", end) == 0);
    tail("node.tar", header, BLOCK);
    tail("node.tar", all, MOST_BYTES);
    CHECK_EQUAL(append("node.tar", 5), 0);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 2 | 1 << 5);
}

static void hold_the_lock(void)
{
    CHECK(flock(open("node.tar", O_RDWR), LOCK_EX) == 0);
    pause();
}

TEST(a_lock_that_is_held_for_too_long_is_given_up)
{
    CHECK_EQUAL(append("node.tar", 1), 0);
    pid_t holder = fork();
    if (holder == 0)
        hold_the_lock();
    for (int file = open("node.tar", O_RDWR); flock(file, LOCK_EX | LOCK_NB) == 0;)
        flock(file, LOCK_UN);
    CHECK_EQUAL(append("node.tar", 2), ETIMEDOUT);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    CHECK_EQUAL(append("node.tar", 2), 0);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 1 | 1 << 2);
}

TEST(without_locks_nothing_is_appended)
{
    CHECK_EQUAL(append("node.tar", 1), 0);
    refusal = ENOLCK;
    CHECK_EQUAL(append("node.tar", 2), ENOLCK);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 1);
}

TEST(what_has_no_room_is_not_appended_and_the_others_stay)
{
    if (unit_is_emulated())
        unit_skip("an emulator does not pass the limit on");
    CHECK_EQUAL(append("node.tar", 15), 0);
    off_t before = length("node.tar");
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)before + 100, RLIM_INFINITY}) == 0);
    CHECK_EQUAL(append("node.tar", 2), EFBIG);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 15);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0);
    CHECK_EQUAL(append("node.tar", 2), 0);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 15 | 1 << 2);
}

TEST(a_link_or_a_pipe_of_its_name_is_not_used)
{
    CHECK_EQUAL(append("target.tar", 1), 0);
    CHECK(symlink("target.tar", "link.tar") == 0 && mkfifo("pipe.tar", 0600) == 0);
    CHECK_EQUAL(append("link.tar", 2), ELOOP);
    CHECK_EQUAL(append("pipe.tar", 2), EPERM);
    CHECK(!archive_has("link.tar", 1) && !archive_has("pipe.tar", 1));
    CHECK_EQUAL(ranks_in("target.tar"), 1 << 1);
}

/* On a slow disk the patience of a rank may end: then it tries again. */
static int append_at_last(int rank)
{
    int error = append("node.tar", rank);
    while (error == ETIMEDOUT)
        error = append("node.tar", rank);
    return error;
}

TEST(ranks_that_append_at_the_same_time_are_all_in_it)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (fork() == 0)
            _exit(append_at_last(rank));
    for (int rank = 0, status; rank < RANKS; rank++) {
        CHECK(wait(&status) > 0);
        CHECK_EQUAL(status, 0);
    }
    CHECK_EQUAL(ranks_in("node.tar"), (1 << RANKS) - 1);
}

/* A kill at any system call. The files at that point are copied, because the child has the lock. */

static unsigned states; /* which numbers of members were seen */

static void append_another(void)
{
    CHECK_EQUAL(append("node.tar", 7), 0);
}

static void the_next_rank_finds_an_archive(pid_t child)
{
    (void)child;
    unsigned before = ranks_in("node.tar");
    CHECK(before == 1 << 6 || before == (1 << 6 | 1 << 7));
    states |= before;
    CHECK_EQUAL(system("cp node.tar killed.tar"), 0);
    CHECK_EQUAL(append("killed.tar", 8), 0);
    CHECK_EQUAL(ranks_in("killed.tar"), before | 1 << 8);
}

TEST(a_kill_at_any_system_call_costs_no_other_rank_its_database)
{
    CHECK_EQUAL(append("node.tar", 6), 0);
    off_t end = length("node.tar") - 2 * BLOCK;
    CHECK_EQUAL(append("node.tar", 1), 0);
    CHECK(truncate("node.tar", end + BLOCK) == 0); /* a crash has left a header without its data */
    CHECK(stepping(PTRACE_SYSCALL, append_another, the_next_rank_finds_an_archive) > 20);
    CHECK_EQUAL(states, 1 << 6 | 1 << 7);
    CHECK_EQUAL(ranks_in("node.tar"), 1 << 6 | 1 << 7);
}
