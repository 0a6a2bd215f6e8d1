"""MPI finalized on the way out of the process, in any exit handler or destructor.

programs/finalized_late.c and finalized_by_objects.cpp make six Barriers in main, and then an
Allreduce of 16 bytes and MPI_Finalize."""

import pytest

from .harness import C_FLAGS, LIBRARY, PROGRAMS, Run, compile_program, compile_to
from .harness import calls_in_ledger, ended_in_ledger
from .reporter import text

pytestmark = pytest.mark.slow

WAYS = [
    "atexit_before_init", "atexit_after_init", "on_exit", "at_quick_exit", "exit_of_another_thread",
    "linked", "opened", "closed", "preloaded_before", "preloaded_after",
    "object_of_program", "object_of_thread", "object_of_library",
]  # fmt: skip
ELSEWHERE = {"COMMPROF_LEDGER": "/dev/shm"}
IN_ARCHIVE = {"COMMPROF_OUTPUT_PER": "node"}
NO_CPP = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]


def build(mpi, folder, source):
    """The program alone; it as a library; the program linked with that library."""
    alone, library, linked = (folder / f"{source.stem}{end}" for end in ("", ".so", "_linked"))
    libraries = ["-Wl,--no-as-needed", "-ldl", "-lstdc++"]
    command = [mpi.mpicc, *C_FLAGS, *NO_CPP, str(source), *libraries]
    compile_to(alone, command)
    compile_to(library, [*command, "-DLIBRARY", "-shared", "-fPIC"])
    compile_to(linked, [*command, str(library), f"-Wl,-rpath,{folder}"])
    return str(alone), library, str(linked)


@pytest.fixture(scope="module")
def profile_late(mpi, profile, tmp_path_factory):
    """profile_late(way, ranks=2, env={...}): ranks that finalize MPI in this way. Launchers kill
    the other ranks of one that ends without, so such a job has one rank."""
    folder = tmp_path_factory.mktemp("late")
    alone, library, linked = build(mpi, folder, PROGRAMS / "finalized_late.c")
    objects_alone, _, objects_linked = build(mpi, folder, PROGRAMS / "finalized_by_objects.cpp")

    def profiled(way, ranks=2, **more):
        if way.startswith("object_of_"):
            what = way.removeprefix("object_of_")
            program = objects_linked if what == "library" else objects_alone
            return profile(program, ranks, what, **more)
        if way.startswith("preloaded_"):
            order = (library, LIBRARY) if way == "preloaded_before" else (LIBRARY, library)
            return profile(alone, ranks, way, preload=order, **more)
        return profile(linked if way == "linked" else alone, ranks, way, str(library), **more)

    return profiled


@pytest.mark.parametrize("way", WAYS)
def test_all_calls_are_counted_and_a_database_is_written(profile_late, way):
    run = profile_late(way)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Barrier") == [6, 6]
    assert run.sizes("MPI_Allreduce") == [{16: (1, 16)}] * 2
    assert run.counts("MPI_Finalize") == [1, 1]
    assert [run.rank_row(rank)["ended"] for rank in range(2)] == ["finalize"] * 2
    assert run.outcome.stderr.count("profile of 2 ranks in") == 1


@pytest.mark.parametrize("env", [{}, ELSEWHERE], ids=["ledger here", "ledger elsewhere"])
def test_a_profiler_that_is_opened_wakes_up_for_an_older_handler(mpi, plain, tmp_path, env):
    library = tmp_path / "plugin.so"
    profiler = ["-Wl,--no-as-needed", str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"]
    source = str(PROGRAMS / "plugin.c")
    compile_to(library, [mpi.mpicc, *C_FLAGS, source, *profiler, "-shared", "-fPIC"])
    program = str(compile_program(mpi, "finalized_by_opened", "-Wl,--as-needed", "-ldl"))
    output = {"COMMPROF_OUTPUT": str(tmp_path / "run")}
    run = Run(1, tmp_path / "run", plain(program, 1, str(library), env={**output, **env}))
    assert run.files() == ["rank-0.db"]
    assert (run.sizes("MPI_Allreduce"), run.counts("MPI_Finalize")) == ([{4: (6, 24)}], [1])
    assert run.outcome.stderr.count("profile of 1 rank in") == 1


@pytest.mark.parametrize("env", [ELSEWHERE, IN_ARCHIVE], ids=["ledger elsewhere", "archive"])
def test_the_last_calls_are_counted_wherever_the_files_are(profile_late, env):
    run = profile_late("linked", env=env)
    assert not [name for name in run.files() if name.endswith(".ledger")]
    assert "MPI_Allreduce" in text("calls", run.folder)
    assert "finalize" in text("ranks", run.folder)


def test_a_run_that_is_too_short_leaves_nothing(profile_late):
    run = profile_late("linked", env={"COMMPROF_SHORTEST_S": "3600"})
    assert not run.folder.exists()
    assert run.outcome.stderr.count("nothing is kept of a run shorter than") == 1


@pytest.mark.parametrize("way", ["linked", "atexit_before_init"])
def test_a_kill_in_the_last_handler_loses_no_call(profile_late, way):
    run = profile_late(way, 1, env={"KILLED_LATE": "1"}, exit_status=None)
    counted = calls_in_ledger(run.ledger(0))
    assert (counted["MPI_Barrier"], counted["MPI_Allreduce"]) == (6, 1)
    assert ended_in_ledger(run.ledger(0)) == 0


@pytest.mark.parametrize("way", ["without_finalize", "quick_exit"])
def test_a_program_that_never_finalizes_is_said_to_have_exited_without(profile_late, way):
    run = profile_late(way, 1, exit_status=None)
    assert calls_in_ledger(run.ledger(0))["MPI_Barrier"] == 6
    assert ended_in_ledger(run.ledger(0)) == 2
    assert "exit without MPI_Finalize" in text("ranks", run.folder)
    assert run.outcome.stderr.count("profile of 1 rank in") == 1
