"""The guest's promise where no table of calls shows it (test_calls.py has the counts, and compares
outputs): what MPI says stays MPI's, whatever handlers, threads, signals, tools and a stderr do."""

import re

import pytest

from .harness import (
    COMMPROF_RUN,
    LIBRARY,
    Run,
    abort_code_in_ledger,
    calls_in_ledger,
    command_for,
    compile_program,
    ended_in_ledger,
    launch,
)
from .libraries import SYSTEM_PYTHON


def test_the_first_calls_of_a_program_ask_the_dynamic_linker_nothing(mpi, profile):
    """MPI_Init has looked up the rest."""
    program = compile_program(mpi, "first_calls", "-rdynamic", "-D_GNU_SOURCE", "-ldl")
    said = profile(str(program), 2).outcome.stdout
    assert said == "asked in MPI_Init, 0 times in the first calls\n"


# Functions that an MPI may lack, and communicators without end


def test_a_function_that_the_library_lacks_fails_without_harm(profile, plain, mpi):
    """Our library exports all: they work, or say MPI_ERR_OTHER, and the program goes on."""
    has, run, without = mpi.has("MPI_Session_init"), profile("probing", 2), plain("probing", 2)
    assert run.outcome.exit_status == without.exit_status == 0
    # lines of two ranks may run together
    bare, ours = "there are no sessions", "a session: no such thing"
    assert without.stdout.count("a session: opened" if has else bare) == 2
    assert run.outcome.stdout.count("a session: opened" if has else ours) == 2
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [6, 6]


def test_a_job_that_only_opens_a_session_is_recorded_where_there_are_sessions(profile, plain, mpi):
    run = profile("probing", 2, "session")
    without = plain("probing", 2, "session")
    assert without.exit_status == 0
    if not mpi.has("MPI_Session_init"):
        assert not run.folder.exists()
        pytest.skip(f"{mpi.name} has no sessions: the program was told so")
    assert run.outcome.stdout == without.stdout
    assert run.calls(0) == {"MPI_Session_init", "MPI_Session_finalize"}
    assert (run.rank_row(1)["world_rank"], run.rank_row(1)["world_size"]) == (1, 2)


@pytest.mark.slow
def test_memory_stays_bounded_while_communicators_come_and_go(profile, plain):
    """4,094 of them are told apart, with 2.4 kB each; the last of those fall into the time that is
    measured, and so may all of the sample log."""
    grown = [
        int(min(outcome.stdout.splitlines()).split()[-2])
        for outcome in (
            profile("endless_communicators", 1, "99000").outcome,
            plain("endless_communicators", 1, "99000"),
        )
    ]
    assert grown[0] < grown[1] + 2 * 4096


def test_ranks_agree_on_communicators_that_live_one_after_the_other(profile):
    run = profile("endless_communicators", 2, "9000")
    sql = "SELECT identity, constructor, ordinal FROM communicator ORDER BY communicator"
    identities = [run.query(rank, sql) for rank in range(2)]
    assert len({row[0] for row in identities[0]}) == len(identities[0]) > 4000
    assert identities[0] == identities[1]


# Error handlers that leave the failed call, by longjmp or by a C++ exception, or end the job

# Hydra ors the statuses of all ranks, and kills those that still run when the first one aborts
KILLED = 9


def test_each_thread_jumps_for_itself(profile, mpi):
    if mpi.family != "openmpi":
        pytest.skip(
            "MPICH aborts when a handler leaves a call of many threads, with and without us"
        )
    run = profile("jumping_deeper", 2, "threads")
    assert run.counts("MPI_Allreduce") == [4 * 900, 4 * 900]
    assert run.rank_row(0)["dropped_calls"] == 0


def test_calls_in_callbacks_count_with_their_sizes_and_no_time_counts_twice(profile):
    run = profile("calling_back", 2)
    in_mpi = "SELECT SUM(total_ns) FROM cell WHERE measure <> 'completion'"
    for rank in range(2):
        sizes = run.sizes("MPI_Allreduce")[rank]
        assert {size: count for size, (count, _) in sizes.items()} == {16: 1, 24: 2, 32: 1, 40: 1}
        assert run.sizes("MPI_File_write")[rank] == {1 << 16: (1, 1 << 16)}
        assert run.query(rank, in_mpi)[0][0] <= run.rank_row(rank)["wall_ns"]
        assert run.rank_row(rank)["interrupted_calls"] == 0


@pytest.mark.parametrize("handler", [(), ("mpi",)], ids=["the job's", "MPI_ERRORS_ABORT"])
def test_a_handler_that_aborts_ends_the_job_as_without_the_profiler(profile, plain, mpi, handler):
    run = profile("aborting_handler", 2, *handler, exit_status=None)
    without = plain("aborting_handler", 2, *handler)
    assert run.outcome.exit_status | KILLED == without.exit_status | KILLED
    if mpi.abi == "MPI standard ABI" and mpi.family == "impi" and handler:
        pytest.skip(f"{mpi.name}: MPI_ERRORS_ABORT has no effect")
    assert run.outcome.exit_status != 0  # MPICH 5 returns from MPI_Abort, and is killed soon after
    assert calls_in_ledger(run.ledger(0))["MPI_Allreduce"] == 3
    if not handler:
        aborted = [rank for rank in range(2) if ended_in_ledger(run.ledger(rank)) == 3]
        assert abort_code_in_ledger(run.ledger(aborted[0])) == 7


# Signals that interrupt MPI calls and the job's own system calls


def test_a_storm_of_signals_changes_neither_the_program_nor_the_counts(profile, plain):
    run = profile("interrupted", 1)
    assert run.outcome.stdout == plain("interrupted", 1).stdout == "done\n"
    for call in ("MPI_Allreduce", "MPI_Send", "MPI_Irecv", "MPI_Wait"):
        assert run.counts(call) == [100000]
    assert run.sizes("MPI_Irecv", "completion") == [{4: (100000, 0)}]
    row = run.rank_row(0)
    assert (row["dropped_calls"], row["interrupted_calls"]) == (0, 0)  # no handler calls MPI


def test_calls_count_on_after_a_signal_handler_has_left_a_receive(profile, plain, mpi):
    if mpi.family != "openmpi":
        pytest.skip("MPICH's transport ends the job when a handler leaves it, also without us")
    run = profile("interrupted", 1, "leaving a receive")
    assert run.outcome.stdout == plain("interrupted", 1, "leaving a receive").stdout == "done\n"
    counts = [run.counts(f"MPI_{call}") for call in ("Allreduce", "Send", "Recv")]
    assert counts == [[100010], [100001], [0]]
    assert run.rank_row(0)["interrupted_calls"] == 1


@pytest.mark.parametrize("samples", ["0", "64M"])
def test_calls_of_a_signal_handler_are_recorded_or_listed(profile, samples):
    run = profile("interrupting", 2, env={"COMMPROF_SAMPLES": samples})
    said = re.findall(r"rank (\d): (\d+) interrupted (\d+)", run.outcome.stdout)
    assert len(said) == 2
    for rank, interruptions, calls in (map(int, each) for each in said):
        listed = run.rank_row(rank)["interrupted_calls"]
        assert run.counts("MPI_Bcast")[rank] == calls
        assert run.counts("MPI_Allreduce")[rank] + listed == interruptions
        assert run.rank_row(rank)["dropped_calls"] == 0


@pytest.mark.parametrize("what", ["watched", "allocates", "cancelled"])
def test_calls_take_no_lock_that_a_handler_or_an_ended_thread_may_hold(profile, mpi, what):
    if what == "cancelled" and mpi.family != "openmpi":
        pytest.skip("MPICH is in no state for it in the middle of a call, with and without us")
    run = profile("guest_memory", 1, what)
    assert run.outcome.stdout == "done\n"
    assert run.rank_row(0)["dropped_calls"] == 0


# Another profiler that makes MPI calls (programs/busy_tool.c): they count where it stands
# between the program and us, for nothing tells them from the program's; where we come first they
# are inside a call

SAID = "busy tool: 14 MPI_Allreduce on all ranks, 5 MPI_Wait here\n"
OWN = {f"MPI_{call}" for call in "Init Allreduce Irecv Isend Wait Waitall Finalize".split()}


@pytest.mark.parametrize("where", ["before ours", "after ours", "linked into the program"])
def test_a_busy_tool_beside_ours_sees_all_calls_and_so_do_we(profile, plain, mpi, where):
    tool = compile_program(mpi, "busy_tool", "-shared", "-fPIC")
    if where == "linked into the program":
        run = profile("with_a_tool_inside", 2)
        assert plain("with_a_tool_inside", 2).stdout == SAID
    else:
        order = (tool, LIBRARY) if where == "before ours" else (LIBRARY, tool)
        run = profile("for_tools", 2, preload=order)
    assert run.outcome.stdout == SAID
    assert run.sizes("MPI_Allreduce") == [{4: (7, 28)}] * 2
    assert run.sizes("MPI_Irecv", "completion") == [{4: (5, 0)}] * 2
    if where == "after ours":
        assert run.calls(0) == OWN and run.counts("MPI_Wait") == [5, 5]
        return
    made = [run.counts(f"MPI_{call}") for call in ("Barrier", "Test", "Wait", "Finalize")]
    assert made == [[14, 14], [5, 5], [0, 0], [1, 1]]
    assert run.sizes("MPI_Reduce") == [{4: (1, 4)}] * 2


# A stderr that nobody reads, that takes no more, or that has become a file of the program

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


# "exhausted" has no descriptors left: a line "cannot grow" in the middle, beside the closing line
@pytest.mark.slow
@pytest.mark.one_mpi
@pytest.mark.parametrize(
    ("program", "call", "count"),
    [("pcontrol", "MPI_Allreduce", 8), ("exhausted", "MPI_Bcast", 2000)],
)
@pytest.mark.parametrize("stderr", STDERR)
def test_a_line_neither_ends_nor_stops_a_job_with_a_stderr(
    mpi, tmp_path, stderr, program, call, count
):
    around = [SYSTEM_PYTHON, "-c", PROLOGUE + STDERR[stderr] + EPILOGUE]
    command = [*around, str(COMMPROF_RUN), *command_for(mpi, program)]
    outcome = launch(mpi, 2, command, tmp_path, {"COMMPROF_OUTPUT": str(tmp_path / "run")})
    assert outcome.exit_status == 0, outcome
    assert Run(2, tmp_path / "run", outcome).counts(call) == [count, count]


@pytest.mark.one_mpi
def test_a_program_that_opens_its_data_as_descriptor_2_finds_nothing_of_ours_there(profile):
    run = profile("detached", 2)
    assert (run.folder.parent / "data-0-2").read_text() == "data"
    assert run.counts("MPI_Barrier") == [1, 1]
