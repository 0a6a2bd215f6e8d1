#include "ask.h"

#include "mpi/mpi_abi.h"
#include "tools/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 30, ANSWER_BYTES = 1 << 20, VERSION_BYTES = 16384 };

static char *read_all(int from)
{
    char *answer = calloc(1, ANSWER_BYTES);
    size_t used = 0;
    while (answer && used < ANSWER_BYTES - 1) {
        ssize_t got = read(from, answer + used, ANSWER_BYTES - 1 - used);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    return answer;
}

/* Runs `work` in a child process; its standard output is the answer. */
static char *ask(void (*work)(const char *const *words), const char *const *words, bool with_stderr)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        dup2(with_stderr ? ends[1] : nothing, STDERR_FILENO);
        alarm(SECONDS);
        work(words);
        _exit(1);
    }
    close(ends[1]);
    char *answer = child > 0 ? read_all(ends[0]) : NULL;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return answer;
}

static void trace(const char *const *words)
{
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    char *list = preload_first(getenv("LD_PRELOAD"), words[2]);
    if (list)
        setenv("LD_PRELOAD", list, 1);
    execl(words[0], words[0], words[1], (char *)NULL);
}

char *ask_loader(const char *loader, const char *program, const char *library)
{
    return ask(trace, (const char *const[]){loader, program, library}, true);
}

static void load_mpi(const char *const *words)
{
    static char version[VERSION_BYTES];
    int length = 0;
    void *library = dlopen(words[0], RTLD_LAZY | RTLD_GLOBAL);
    if (!library) {
        printf("\n%s\n", dlerror());
    } else {
        mpi_abi_detect(library, words[0]);
        int (*ask_version)(char *, int *) =
            (int (*)(char *, int *))dlsym(library, "PMPI_Get_library_version");
        bool is_said = ask_version && ask_version(version, &length) == MPI_SUCCESS;
        printf("%s\n%s\n", mpi_abi.name, is_said ? version : "");
    }
    fflush(stdout);
    _exit(0); /* without the library's exit handlers */
}

char *ask_mpi(const char *library)
{
    return ask(load_mpi, (const char *const[]){library}, false);
}

static void print_version(const char *const *words)
{
    execl(words[0], words[0], "--version", (char *)NULL);
}

char *ask_launcher(const char *launcher)
{
    return ask(print_version, (const char *const[]){launcher}, true);
}

static const char IMPORT_MPI4PY[] =
    "import sys\n"
    "try:\n"
    "    import mpi4py\n"
    "    mpi4py.rc.initialize = mpi4py.rc.finalize = False\n"
    "    from mpi4py import MPI\n"
    "except Exception as error:\n"
    "    print('error', ' '.join(str(error).split()))\n"
    "    sys.exit()\n"
    "print('version', MPI.Get_library_version().strip('\\0 \\n').split('\\n')[0])\n"
    "for path in dict.fromkeys(line.split(None, 5)[5].strip() for line in open('/proc/self/maps') "
    "if '/' in line):\n"
    "    print('file', path)\n";

static void import_mpi4py(const char *const *words)
{
    execl(words[0], words[0], "-c", IMPORT_MPI4PY, (char *)NULL);
}

static void import_numpy(const char *const *words)
{
    execlp("python3", "python3", "-c", words[0], (char *)NULL);
}

char *ask_reports(void)
{
    return ask(import_numpy, (const char *const[]){"import numpy; print(numpy.__version__)"},
               false);
}

char *ask_python(const char *python)
{
    return ask(import_mpi4py, (const char *const[]){python}, false);
}
