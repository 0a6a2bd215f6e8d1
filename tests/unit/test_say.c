#include "base/say.h"

#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>

enum { READ, WRITE };

static int stderr_was;

/* Makes `file` descriptor 2. */
static void begin_with(int file)
{
    stderr_was = dup(STDERR_FILENO);
    CHECK(dup2(file, STDERR_FILENO) == STDERR_FILENO);
    close(file);
    say_begin();
}

/* Restores descriptor 2, so that failed checks are printed. */
static void end(void)
{
    dup2(stderr_was, STDERR_FILENO);
}

/* Descriptor 2 is a pipe; returns its other end. */
static int begin_with_pipe(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    begin_with(ends[WRITE]);
    return ends[READ];
}

static const char *read_from(int file)
{
    static char text[2 * PIPE_BUF];
    fcntl(file, F_SETFL, O_NONBLOCK);
    ssize_t got = read(file, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static bool is_pending(int raised)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, raised);
}

TEST(a_line_has_our_name_before_it_and_a_newline_after)
{
    int reader = begin_with_pipe();
    say_line("rank %d of %s", 3, "job");
    end();
    CHECK_TEXT(read_from(reader), "commprof: rank 3 of job\n");
}

TEST(control_characters_are_made_visible_and_other_letters_stay)
{
    int reader = begin_with_pipe();
    say_text("run\nfolder \x1b[2J\x7f\t \xc2\x9b \xc3\xa9\xc4\x9b 100%s");
    end();
    CHECK_TEXT(read_from(reader),
               "commprof: run\\nfolder \\x1b[2J\\x7f\\x09 \xc2\\x9b \xc3\xa9\xc4\x9b 100%s\n");
}

TEST(a_long_line_loses_its_middle_and_a_pipe_takes_it_as_a_whole)
{
    enum { BREAKS = 2 * PIPE_BUF };
    static char breaks[BREAKS + 1], text[BREAKS + 16];
    memset(breaks, '\n', BREAKS);
    snprintf(text, sizeof text, "cannot%sthere", breaks);
    int reader = begin_with_pipe();
    say_text(text);
    end();
    const char *line = read_from(reader);
    CHECK_EQUAL(strlen(line), PIPE_BUF);
    CHECK(strncmp(line, "commprof: cannot\\n", 18) == 0 && strstr(line, "...") != NULL);
    CHECK_TEXT(line + PIPE_BUF - 8, "\\nthere\n");
}

TEST(a_reader_that_has_gone_leaves_no_trace)
{
    close(begin_with_pipe());
    errno = 17;
    say_text("nobody hears it");
    int after = errno;
    end();
    CHECK_EQUAL(after, 17);
    CHECK(!is_pending(SIGPIPE));
}

TEST(a_signal_that_was_pending_before_still_is)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGPIPE);
    close(begin_with_pipe());
    say_text("nobody hears it");
    end();
    CHECK(is_pending(SIGPIPE));
}

static void fill(int file)
{
    static const char PAGE[4096];
    int flags = fcntl(file, F_GETFL);
    fcntl(file, F_SETFL, flags | O_NONBLOCK);
    while (write(file, PAGE, sizeof PAGE) > 0)
        ;
    fcntl(file, F_SETFL, flags);
}

TEST(a_full_pipe_is_not_waited_for_and_keeps_its_mode)
{
    begin_with_pipe();
    fill(STDERR_FILENO);
    say_text("there is no room for it");
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    end();
    CHECK(!(flags & O_NONBLOCK));
}

/* All descriptors are taken, so that the pipe cannot be opened again. */
static void take_all_descriptors(void)
{
    struct rlimit few = {64, 64};
    setrlimit(RLIMIT_NOFILE, &few);
    while (dup(STDIN_FILENO) >= 0)
        ;
}

TEST(without_descriptors_a_full_pipe_is_not_waited_for_either)
{
    begin_with_pipe();
    take_all_descriptors();
    fill(STDERR_FILENO);
    say_text("there is no room for it");
    end();
}

TEST(without_descriptors_a_line_is_still_said)
{
    int reader = begin_with_pipe();
    take_all_descriptors();
    say_text("there is room for it");
    end();
    CHECK_TEXT(read_from(reader), "commprof: there is room for it\n");
}

static int open_terminal(int *leader)
{
    *leader = posix_openpt(O_RDWR | O_NOCTTY);
    if (*leader < 0 || grantpt(*leader) != 0 || unlockpt(*leader) != 0)
        unit_skip("no terminals here");
    return open(ptsname(*leader), O_RDWR | O_NOCTTY);
}

TEST(a_stopped_terminal_is_not_waited_for)
{
    int leader, terminal = open_terminal(&leader);
    tcflow(terminal, TCOOFF);
    begin_with(terminal);
    say_text("there is no room for it");
    end();
}

TEST(nothing_is_written_to_what_has_become_descriptor_2_since)
{
    begin_with_pipe();
    close(STDERR_FILENO);
    say_text("there is no stderr");
    int data = open("data", O_RDWR | O_CREAT, 0600);
    say_text("this is no stderr");
    struct stat written;
    fstat(data, &written);
    end();
    CHECK_EQUAL(data, STDERR_FILENO);
    CHECK_EQUAL(written.st_size, 0);
}
