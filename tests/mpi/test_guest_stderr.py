"""A stderr that nobody reads, that takes no more, or that has become a file of the program: the job
goes on, and nothing is lost."""

import pytest

from .harness import COMMPROF_RUN, Run, command_for, launch
from .libraries import SYSTEM_PYTHON

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

# Before the program, in the same process: Python ignores what a write may raise, a job does not.
PROLOGUE = """
import os, resource, signal, sys, termios
for raised in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(raised, signal.SIG_DFL)
"""
EPILOGUE = "os.execvp(sys.argv[1], sys.argv[1:])"

STDERR = {
    "whose reader has gone": """
read, write = os.pipe()
os.dup2(write, 2)
""",
    "that is a full pipe": """
read, write = os.pipe()
os.set_inheritable(read, True)
os.set_blocking(write, False)
try:
    while os.write(write, bytes(4096)):
        pass
except BlockingIOError:
    os.set_blocking(write, True)
os.dup2(write, 2)
""",
    "that is a stopped terminal": """
leader, terminal = os.openpty()
os.set_inheritable(leader, True)
termios.tcflow(terminal, termios.TCOOFF)
os.dup2(terminal, 2)
""",
    "that is as large as a file may be": """
limit = 40000 << 10
os.dup2(os.open(f"stderr-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
os.ftruncate(2, limit)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
""",
}


def run_with(stderr, mpi, program, folder):
    around = [SYSTEM_PYTHON, "-c", PROLOGUE + STDERR[stderr] + EPILOGUE]
    command = [*around, str(COMMPROF_RUN), *command_for(mpi, program)]
    return Run(
        2, folder / "run", launch(mpi, 2, command, folder, {"COMMPROF_OUTPUT": str(folder / "run")})
    )


@pytest.mark.parametrize("stderr", STDERR)
def test_the_closing_line_neither_ends_nor_stops_a_job_with_a_stderr(mpi, tmp_path, stderr):
    run = run_with(stderr, mpi, "pcontrol", tmp_path)
    assert run.outcome.exit_status == 0, run.outcome
    assert run.counts("MPI_Allreduce") == [8, 8]


@pytest.mark.parametrize("stderr", STDERR)
def test_a_line_in_the_middle_neither_ends_nor_stops_a_job_with_a_stderr(mpi, tmp_path, stderr):
    # "cannot grow": there are no descriptors left
    run = run_with(stderr, mpi, "exhausted", tmp_path)
    assert run.outcome.exit_status == 0, run.outcome
    assert run.counts("MPI_Bcast") == [2000, 2000]


def test_a_program_that_opens_its_data_as_descriptor_2_finds_nothing_of_ours_there(profile):
    run = profile("detached", 2)
    assert (run.folder.parent / "data-0-2").read_text() == "data"
    assert run.counts("MPI_Barrier") == [1, 1]
