#include "run/ledger_copier.h"

#include "base/settings.h"
#include "ledger/ledger.h"
#include "record/call.h"
#include "record/recording.h"
#include "ledger_reader.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

UNIT_ALONE;

static char said[PATH_MAX * 2];
static unsigned lines;

static void hear(const char *line)
{
    snprintf(said, sizeof said, "%s", line);
    lines++;
}

static void begin(const char *copy_s, const char *begin_s, const char *end_s)
{
    setenv("COMMPROF_COPY_S", copy_s, 1);
    setenv("COMMPROF_BEGIN_S", begin_s, 1);
    setenv("COMMPROF_END_S", end_s, 1);
    settings_read(NULL);
    CHECK_EQUAL(ledger_open("ledger", 1 << 20), 0);
}

/* Each copy is a new file. */
static ino_t inode_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

static void wait_for_another(ino_t before)
{
    while (inode_of("copy") == before || inode_of("copy") == 0)
        sched_yield();
}

TEST(where_there_is_nothing_to_do_there_is_no_thread)
{
    unsigned before = unit_threads(NULL);
    begin("60", "0", "0");
    ledger_copier_begin(NULL, 0, hear);
    CHECK_EQUAL(unit_threads(NULL), before);
    CHECK(!ledger_copier_end(true));
    CHECK(inode_of("copy") == 0);
}

TEST(the_first_copy_is_made_at_once_and_the_last_on_demand)
{
    begin("0", "0", "0");
    ledger_copier_begin("copy", 0, hear);
    wait_for_another(0);
    CHECK_EQUAL(unit_threads("commprof\n"), 1);
    ino_t first = inode_of("copy");
    int kept = open("copy", O_RDONLY); /* so that the inode is not reused */
    CHECK(ledger_copier_end(true));
    CHECK(inode_of("copy") != first);
    while (unit_threads("commprof\n")) /* it ends shortly after it has reported its end */
        sched_yield();
    close(kept);
}

TEST(without_demand_there_is_no_last_copy)
{
    begin("0", "0", "0");
    ledger_copier_begin("copy", 0, hear);
    wait_for_another(0);
    ino_t first = inode_of("copy");
    CHECK(!ledger_copier_end(false));
    CHECK_EQUAL(inode_of("copy"), first);
}

TEST(copies_go_on_at_their_times)
{
    begin("1", "0", "0");
    ledger_copier_begin("copy", 1, hear);
    for (int i = 0; i < 3; i++) {
        int kept = open("copy", O_RDONLY);
        wait_for_another(inode_of("copy"));
        close(kept);
    }
    ledger_copier_end(false);
    CHECK_EQUAL(lines, 0);
}

TEST(a_copy_that_fails_is_said_once)
{
    begin("1", "0", "0");
    ledger_copier_begin("missing/copy", 0, hear);
    CHECK(!ledger_copier_end(true));
    CHECK_EQUAL(lines, 1);
    CHECK_TEXT(said, "cannot copy the ledger to missing/copy: the folder was renamed or removed; "
                     "what is measured is in ledger alone");
}

TEST(a_folder_that_takes_the_place_of_ours_gets_no_copy)
{
    char path[PATH_MAX];
    CHECK(mkdir("run", 0700) == 0 && realpath("run", path));
    begin("0", "0", "0");
    ledger_copier_begin(strcat(path, "/rank-0.ledger"), 0, hear);
    while (access("run/rank-0.ledger", F_OK) != 0)
        sched_yield();
    CHECK(rename("run", "run-1") == 0 && mkdir("run", 0700) == 0);
    CHECK(!ledger_copier_end(true));
    CHECK(access("run/rank-0.ledger", F_OK) != 0 && access("run-1/rank-0.ledger", F_OK) == 0);
    CHECK(strstr(said, "run/rank-0.ledger: another folder has taken its place; what is measured is "
                       "in ledger alone"));
}

static bool is_counted(void)
{
    return __atomic_load_n(&call_counted[CALL_Send], __ATOMIC_RELAXED);
}

static void record(void)
{
    recording_begin();
    CHECK(is_counted());
}

TEST(calls_are_counted_within_the_time_window_alone)
{
    begin("60", "1", "2");
    record();
    ledger_copier_begin(NULL, 0, hear);
    CHECK(!is_counted());
    while (!is_counted())
        sched_yield();
    while (is_counted())
        sched_yield();
    ledger_copier_end(false);
    CHECK(!is_counted());
    CHECK_TEXT(reader_fact(the_ledger.header, "unseen.off"),
               "COMMPROF_BEGIN_S=1, COMMPROF_END_S=2");
}

TEST(a_window_that_has_not_begun_at_the_end_never_does)
{
    begin("60", "18446744073709551615", "0");
    record();
    ledger_copier_begin(NULL, 0, hear);
    ledger_copier_end(false);
    CHECK(!is_counted());
}

static uint64_t blocked_signals(const char *task)
{
    char path[512], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "SigBlk: %llx", &blocked);
    if (file)
        fclose(file);
    return blocked;
}

TEST(the_thread_has_a_name_and_takes_no_signal)
{
    if (unit_is_emulated())
        unit_skip("the kernel does not have the masks of emulated threads");
    sigset_t before = {0}, after = {0};
    begin("0", "0", "0");
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    ledger_copier_begin("copy", 0, hear);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    wait_for_another(0); /* the thread has its name by then */
    DIR *tasks = opendir("/proc/self/task");
    bool found = false;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[512], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file || !fgets(name, sizeof name, file))
            continue;
        fclose(file);
        if (strcmp(name, "commprof\n") == 0) {
            found = true;
            for (int number = 1; number < 32; number++)
                if (number != SIGKILL && number != SIGSTOP)
                    CHECK(blocked_signals(entry->d_name) >> (number - 1) & 1);
        }
    }
    closedir(tasks);
    CHECK(found);
    ledger_copier_end(false);
}

TEST(without_a_thread_it_is_said_and_copied_at_the_beginning_and_the_end)
{
    struct rlimit none = {0, 0};
    begin("1", "0", "0");
    if (geteuid() == 0)
        CHECK(chmod(".", 0777) == 0 &&
              setresuid(65531, 65531, 65531) == 0); /* limits do not apply to root */
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    ledger_copier_begin("copy", 0, hear);
    if (lines == 0)
        unit_skip("threads cannot be refused here");
    CHECK_TEXT(said, "cannot start a thread: Resource temporarily unavailable; the ledger is "
                     "copied at the beginning and the end alone");
    ino_t first = inode_of("copy");
    CHECK(first != 0);
    int kept = open("copy", O_RDONLY);
    CHECK(ledger_copier_end(true));
    CHECK(inode_of("copy") != first);
    close(kept);
}

static bool hangs;

int fsync(int file)
{
    (void)file;
    while (__atomic_load_n(&hangs, __ATOMIC_RELAXED))
        pause();
    return 0;
}

TEST(a_file_system_that_hangs_does_not_keep_the_job)
{
    hangs = true;
    begin("0", "0", "0");
    ledger_copier_begin("copy", 0, hear);
    CHECK(!ledger_copier_end(true));
    CHECK(inode_of("copy") == 0);
}

TEST(a_forked_child_has_no_ledger_copier)
{
    begin("0", "0", "0");
    ledger_copier_begin("copy", 0, hear);
    pid_t child = fork();
    if (child == 0)
        _exit(unit_threads("commprof\n") == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
    CHECK(ledger_copier_end(true));
}
