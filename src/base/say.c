/* O_NONBLOCK is a flag of the open file, which other descriptors and processes share, so it is not
 * set on descriptor 2. Pipes and terminals are instead opened again through /proc with O_NONBLOCK.
 * A regular file would lose its offset that way, but never blocks. If the file cannot be opened (no
 * descriptor is left, another user's terminal), poll is asked first. It guarantees that a pipe has
 * room for PIPE_BUF bytes, the maximum length of a line; only another process that writes in
 * between could take that room. */
#include "say.h"

#include "quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner; /* 0: say_begin was not called, so nothing is printed */
static struct stat job_stderr;

void say_begin(void)
{
    owner = fstat(STDERR_FILENO, &job_stderr) == 0 ? getpid() : 0;
}

static bool is_job_stderr(int file)
{
    struct stat now;
    return fstat(file, &now) == 0 && now.st_dev == job_stderr.st_dev &&
           now.st_ino == job_stderr.st_ino && now.st_rdev == job_stderr.st_rdev;
}

/* -1 if it cannot be opened. */
static int open_without_blocking(void)
{
    int file = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0 || is_job_stderr(file)) /* another thread may have closed it meanwhile */
        return file;
    close(file);
    return -1;
}

static bool has_room(void)
{
    struct pollfd job = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&job, 1, 0) == 1 && job.revents == POLLOUT;
}

static ssize_t write_to_one_that_may_block(const char *line, size_t bytes)
{
    int file = open_without_blocking();
    if (file < 0)
        return has_room() ? write(STDERR_FILENO, line, bytes) : -1;
    ssize_t written = write(file, line, bytes);
    close(file);
    return written;
}

static ssize_t write_without_blocking(const char *line, size_t bytes)
{
    if (S_ISSOCK(job_stderr.st_mode))
        return send(STDERR_FILENO, line, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISFIFO(job_stderr.st_mode) || S_ISCHR(job_stderr.st_mode))
        return write_to_one_that_may_block(line, bytes);
    return write(STDERR_FILENO, line, bytes);
}

/* C1 controls are two bytes in UTF-8. */
static bool is_control(unsigned char before, unsigned char byte)
{
    return byte < ' ' || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
}

/* Copies as much of the text as fits, with control characters escaped; returns the length. */
static size_t make_visible(const char *text, char *line, size_t bytes)
{
    static const char DIGITS[] = "0123456789abcdef";
    size_t used = 0;
    for (unsigned char before = 0, byte; (byte = (unsigned char)*text) && used + 4 <= bytes;
         before = byte, text++)
        if (!is_control(before, byte))
            line[used++] = (char)byte;
        else if (byte == '\n')
            used += (size_t)(stpcpy(line + used, "\\n") - (line + used));
        else {
            const char shown[] = {'\\', 'x', DIGITS[byte >> 4], DIGITS[byte & 15]};
            memcpy(line + used, shown, sizeof shown);
            used += sizeof shown;
        }
    return used;
}

/* A line that is too long loses its middle: it begins with the cause and ends with the consequence.
 * Returns the length. */
static size_t shorten(char *text, size_t length, size_t room)
{
    enum { GAP_BYTES = 3 };
    if (length <= room)
        return length;
    size_t head = room / 2, tail = room - head - GAP_BYTES;
    memset(text + head, '.', GAP_BYTES);
    for (size_t i = 0; i < tail; i++)
        text[head + GAP_BYTES + i] = text[length - tail + i];
    return room;
}

/* The buffers are static: a thread of the job may have a stack of only 16 kB. */
static void say(const char *format, va_list values)
{
    static const char OURS[] = "commprof: ";
    enum { OURS_BYTES = sizeof OURS - 1, LONGEST = 3 * PATH_MAX };
    static char text[LONGEST], line[OURS_BYTES + 4 * LONGEST];
    vsnprintf(text, sizeof text, format, values);
    memcpy(line, OURS, OURS_BYTES);
    size_t used = make_visible(text, line + OURS_BYTES, sizeof line - OURS_BYTES);
    used = OURS_BYTES + shorten(line + OURS_BYTES, used, PIPE_BUF - OURS_BYTES - 1);
    line[used++] = '\n';
    ssize_t written = write_without_blocking(line, used);
    (void)written;
}

/* Discards the signals that our write raised (SIGPIPE: no reader; SIGXFSZ: beyond RLIMIT_FSIZE).
 * They are sent to the writing thread. One that was pending before stays pending. */
static void take_raised(const sigset_t *pending_before)
{
    static const int RAISED[] = {SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof RAISED / sizeof RAISED[0]; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, RAISED[i]);
        if (!sigismember(pending_before, RAISED[i]))
            sigtimedwait(&one, NULL, &(struct timespec){0});
    }
}

static void say_guarded(const char *format, va_list values)
{
    sigset_t pending;
    struct quiet before = quiet_lock(&saying);
    sigpending(&pending);
    say(format, values);
    take_raised(&pending);
    quiet_unlock(&saying, &before);
}

void say_line(const char *format, ...)
{
    int job_errno = errno;
    va_list values;
    va_start(values, format);
    if (owner == getpid() && is_job_stderr(STDERR_FILENO))
        say_guarded(format, values);
    va_end(values);
    errno = job_errno;
}

void say_text(const char *line)
{
    say_line("%s", line);
}
