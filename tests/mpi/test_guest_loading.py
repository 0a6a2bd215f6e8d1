"""MPI libraries that are loaded at run time: two of them in one process (programs/two_libraries.c),
and plugins that call one."""

import os
import shutil
import subprocess

import pytest

from .harness import LIBRARY, Run, compile_program, unprofiled_environment
from .libraries import MPICH, OPEN_MPI, SYSTEM_PYTHON

# the compiler of an MPI library names it, but nothing of it is called
LINKED_WITH_NO_MPI = "-Wl,--as-needed"


def run_alone(folder, *command, **more):
    """Without a launcher: a world of one."""
    environment = unprofiled_environment() | OPEN_MPI.environment | more
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=600
    )


@pytest.mark.parametrize(
    "order", [(OPEN_MPI, MPICH), (MPICH, OPEN_MPI)], ids=lambda order: order[0].name + " first"
)
def test_of_two_libraries_in_one_process_the_first_is_profiled_and_both_work(order, tmp_path):
    for mpi in order:
        if mpi.missing:
            pytest.skip(f"{mpi.name} is not installed: no {mpi.missing}")
    plugins = [compile_program(mpi, "plugin", "-shared", "-fPIC") for mpi in order]
    command = [compile_program(order[0], "two_libraries", LINKED_WITH_NO_MPI), *plugins]
    ours = {"LD_PRELOAD": str(LIBRARY), "COMMPROF_OUTPUT": str(tmp_path / "run")}
    without, within = run_alone(tmp_path, *command), run_alone(tmp_path, *command, **ours)
    assert (within.returncode, within.stdout) == (without.returncode, without.stdout)
    assert without.returncode == 0 and without.stdout.count("a world of 1") == 6
    run = Run(1, tmp_path / "run", within)
    # of the first alone: the second's were 60
    assert run.sizes("MPI_Allreduce") == [{4: (30, 120)}]
    assert run.sizes("MPI_Irecv", "completion") == [{4: (3, 0)}]
    assert run.counts("MPI_Finalize") == [1]
    facts = run.facts(0)
    assert order[0].soname in facts["mpi_library"] and order[1].soname in facts["unseen.library"]


def test_plugins_whose_constructors_call_mpi_are_loaded_beside_first_calls(profile, mpi, tmp_path):
    """Each of the two threads needs the loader, and what the profiler knows of call sites."""
    plugin = compile_program(mpi, "constructing", "-DPLUGIN", "-shared", "-fPIC", suffix="-plugin")
    sites = compile_program(mpi, "constructing", "-DSITES", "-shared", "-fPIC", suffix="-sites")
    plugins = [shutil.copy(plugin, tmp_path / f"plugin-{number}.so") for number in range(40)]
    run = profile("constructing", 1, str(sites), *map(str, plugins))
    assert run.query(0, "SELECT sum(count) FROM cell WHERE call = 'MPI_Iprobe'") == [(512 + 40,)]


LOOKS_UP = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *mpi = dlopen(argv[1], RTLD_NOW), *receive = dlsym(mpi, "MPI_Recv");
    dlerror();
    void *send = dlsym(mpi, "MPI_Send");
    char *error = dlerror();
    return printf("%d %s", send && receive, error ? error : "none") < 0;
}
"""


def test_no_error_of_ours_is_left_behind_a_look_up(mpi, tmp_path):
    """The profiler looks at the caller, whose name may be no path from here."""
    mpi.require_soname_in_search_path()
    source = tmp_path / "looks_up.c"
    source.write_text(LOOKS_UP)
    subprocess.run(["gcc", "-w", source, "-o", tmp_path / "looks_up", "-ldl"], check=True)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "PATH": path}
    command = ["looks_up", mpi.soname]
    assert subprocess.check_output(command, env=environment, cwd="/", text=True) == "1 none"


COUNTS_LOOK_UPS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int count;
void *dlsym(void *restrict handle, const char *restrict name)
{
    static void *(*next)(void *, const char *);
    if (!next)
        next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    count += __builtin_strcmp(name, "MPI_Send") == 0;
    return next(handle, name);
}
__attribute__((destructor)) static void tell(void) { fprintf(stderr, "%d", count); }
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the symbol version is that of x86-64")
def test_another_interposer_of_dlsym_behind_us_sees_the_look_ups(tmp_path):
    (tmp_path / "counts.c").write_text(COUNTS_LOOK_UPS)
    build = ["gcc", "-w", "-shared", "-fPIC", "counts.c", "-o", "libcounts.so", "-ldl"]
    subprocess.run(build, check=True, cwd=tmp_path)
    code = "import ctypes; hasattr(ctypes.CDLL(None), 'MPI_Send')"
    environment = {**os.environ, "LD_PRELOAD": f"{LIBRARY}:{tmp_path}/libcounts.so"}
    command = [SYSTEM_PYTHON, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert int(done.stderr) >= 1
