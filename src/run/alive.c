#include "alive.h"

#include "base/filesystems.h"
#include "base/host.h"
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct process {
    char boot_id[64], pid_namespace[64], start[24];
    int pid;
};

static void find_self(struct process *self)
{
    host_boot_id(self->boot_id, sizeof self->boot_id);
    host_link("/proc/self/ns/pid", self->pid_namespace, sizeof self->pid_namespace);
    self->pid = getpid();
    host_start_of(self->pid, self->start);
}

void alive_name_self(char name[ALIVE_NAME_BYTES])
{
    struct process self;
    find_self(&self);
    snprintf(name, ALIVE_NAME_BYTES, "%s %s %s %d %s", host_name(),
             *self.boot_id ? self.boot_id : "-", *self.pid_namespace ? self.pid_namespace : "-",
             self.pid, *self.start ? self.start : "-");
}

/* The process id may have been reused; the start time then differs. */
static enum alive look_for(const struct process *process)
{
    char start[24];
    if (kill(process->pid, 0) != 0 && errno == ESRCH)
        return ALIVE_NO;
    if (!host_start_of(process->pid, start))
        return ALIVE_UNKNOWN; /* /proc may hide it (hidepid) */
    return strcmp(start, process->start) == 0 ? ALIVE_YES : ALIVE_NO;
}

static enum alive is_alive(const struct process *process, bool is_local)
{
    struct process self;
    find_self(&self);
    if (!*self.boot_id || process->pid <= 0)
        return ALIVE_UNKNOWN;
    if (strcmp(process->boot_id, self.boot_id) != 0)
        return is_local ? ALIVE_NO : ALIVE_UNKNOWN;
    return strcmp(process->pid_namespace, self.pid_namespace) == 0 ? look_for(process)
                                                                   : ALIVE_UNKNOWN;
}

enum alive alive_process(const char *name, bool is_local)
{
    struct process process;
    if (sscanf(name, "%*s %63s %63s %d %23s", process.boot_id, process.pid_namespace, &process.pid,
               process.start) != 4)
        return ALIVE_UNKNOWN;
    return is_alive(&process, is_local);
}

/* Ledgers: untrusted input */

static bool read_at(int file, size_t at, void *to, size_t bytes)
{
    return pread(file, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static void take_fact(struct process *process, const char *key, size_t key_bytes, const char *value,
                      size_t value_bytes)
{
    const struct {
        const char *key;
        char *value;
        size_t bytes;
    } WANTED[] = {
        {"boot_id", process->boot_id, sizeof process->boot_id},
        {"pid_namespace", process->pid_namespace, sizeof process->pid_namespace},
        {"process_start", process->start, sizeof process->start},
    };
    for (size_t i = 0; i < sizeof WANTED / sizeof WANTED[0]; i++)
        if (strlen(WANTED[i].key) == key_bytes && memcmp(WANTED[i].key, key, key_bytes) == 0)
            snprintf(WANTED[i].value, WANTED[i].bytes, "%.*s",
                     (int)(value_bytes < 64 ? value_bytes : 64), value);
}

static void take_facts(struct process *process, const char *facts, size_t bytes)
{
    struct ledger_fact fact;
    for (size_t at = 0; at + sizeof fact <= bytes;
         at += (sizeof fact + (size_t)fact.key_bytes + fact.value_bytes + 7) & ~(size_t)7) {
        memcpy(&fact, facts + at, sizeof fact);
        const char *key = facts + at + sizeof fact;
        if ((size_t)fact.key_bytes + fact.value_bytes > bytes - at - sizeof fact)
            return;
        take_fact(process, key, fact.key_bytes, key + fact.key_bytes, fact.value_bytes);
    }
}

/* Facts are written at the start, so they are in one of the first chunks. */
static void read_process(int file, const struct ledger_header *header, struct process *process)
{
    enum { CAPACITY = LEDGER_CHUNK_BYTES - LEDGER_CHUNK_HEADER_BYTES, FIRST_CHUNKS = 16 };
    static char facts[CAPACITY]; /* large; used only during MPI_Init */
    *process = (struct process){.pid = (int)header->pid};
    for (uint32_t i = 0; i < header->chunk_count && i < FIRST_CHUNKS; i++) {
        struct ledger_chunk chunk;
        size_t at = LEDGER_HEADER_BYTES + (size_t)i * LEDGER_CHUNK_BYTES;
        if (read_at(file, at, &chunk, sizeof chunk) && chunk.kind == LEDGER_FACTS &&
            chunk.used <= CAPACITY &&
            read_at(file, at + LEDGER_CHUNK_HEADER_BYTES, facts, chunk.used))
            take_facts(process, facts, chunk.used);
    }
}

/* An empty file has just been created and is about to be locked. */
static enum alive ask_lock(int file)
{
    struct stat about;
    if (flock(file, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? ALIVE_YES : ALIVE_UNKNOWN;
    return fstat(file, &about) == 0 && about.st_size == 0 ? ALIVE_YES : ALIVE_NO;
}

/* The process that a stub names. */
static bool read_stub(int file, char *process, size_t bytes)
{
    enum { STUB_BYTES = sizeof LEDGER_STUB - 1 };
    char text[STUB_BYTES + ALIVE_NAME_BYTES];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length < STUB_BYTES || memcmp(text, LEDGER_STUB, STUB_BYTES) != 0)
        return false;
    snprintf(process, bytes, "%.*s", (int)length - STUB_BYTES, text + STUB_BYTES);
    return true;
}

static enum alive ask(int file, bool is_local)
{
    struct ledger_header header;
    struct process process;
    char named[ALIVE_NAME_BYTES];
    if (read_stub(file, named, sizeof named))
        return alive_process(named, is_local);
    bool is_ledger = read_at(file, 0, &header, sizeof header) &&
                     memcmp(header.magic, LEDGER_MAGIC, sizeof header.magic) == 0;
    bool is_copy = is_ledger && header.copied_unix_ns;
    if (is_copy && header.ended != LEDGER_RUNNING)
        return ALIVE_NO; /* the last copy */
    if (is_local && !is_copy)
        return ask_lock(file);
    if (!is_ledger)
        return ALIVE_UNKNOWN;
    read_process(file, &header, &process);
    return is_alive(&process, is_local);
}

enum alive alive_ledger(const char *path)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT || errno == ELOOP ? ALIVE_NO : ALIVE_UNKNOWN;
    enum alive alive = ask(file, filesystems_are_safe(path));
    close(file);
    return alive;
}
