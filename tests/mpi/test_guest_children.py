"""Processes that a rank starts: programs without MPI (programs/children.calls,
programs/mpi4py_children.py), MPI programs of their own that inherit the rank's environment, and
spawned ones (programs/spawning.calls). The rank's own files are its own. And processes that meet
anew (programs/connecting.calls)."""

import shlex

import pytest

from . import reporter
from .harness import LIBRARY, Peer, Run, command_for, compile_program, launch
from .libraries import OPEN_MPI

# An MPI library refuses a second process under a rank's name, so its launcher's variables go; those
# of the profiler stay.
AS_A_RUN_OF_ITS_OWN = (
    "unset $(env | grep -o "
    "'^\\(OMPI\\|PMIX\\|PMI\\|ORTE\\|HYD\\|MPIR\\|MPIEXEC\\|MPI_LOCAL\\)[^=]*'); "
)
ALLOW_ROOT = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "


def lines_of(outcome):
    return sorted(outcome.stdout.splitlines())


def test_children_of_all_kinds_leave_the_rank_s_counts_alone(profile, plain):
    run = profile("children", 2)
    for outcome in (run.outcome, plain("children", 2)):
        # lines of two ranks may run together
        assert outcome.stdout.count("all children have ended") == 2
        assert outcome.stdout.replace("all children have ended", "").strip() == ""
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [2005, 2005]
    assert run.rank_row(0)["ended"] == "finalize"


def test_an_mpi_program_that_a_rank_starts_has_a_folder_of_its_own(profile, mpi):
    program = compile_program(mpi, "pcontrol")
    run = profile("children", 2, f"{AS_A_RUN_OF_ITS_OWN} {ALLOW_ROOT} exec {program} > /dev/null")
    assert run.counts("MPI_Allreduce") == [2005, 2005]
    started = sorted(run.folder.glob("job-*"))
    own = ["rank-0.db", "rank-1.db", *(folder.name for folder in started)]
    assert sorted(run.files()) == sorted(own)
    assert len(started) == 2 * 3  # by fork, by vfork, by posix_spawn
    for folder in started:
        job = Run(1, folder, run.outcome)
        assert (job.files(), job.counts("MPI_Allreduce")) == (["rank-0.db"], [8])


def test_a_launcher_that_a_rank_starts_gives_all_its_ranks_one_folder(profile, mpi):
    launcher = " ".join([*mpi.mpirun, "-n", "2", str(compile_program(mpi, "pcontrol"))])
    inner = f"{AS_A_RUN_OF_ITS_OWN} {ALLOW_ROOT} {launcher} > /dev/null"
    starting = shlex.join(command_for(mpi, "children"))
    run = profile("/bin/sh", 1, "-c", f'{starting} "$0"', inner, preload=(LIBRARY,))
    assert run.counts("MPI_Allreduce") == [2005]
    started = sorted(run.folder.glob("job-*"))
    assert len(started) == 3
    for folder in started:
        assert Run(2, folder, run.outcome).files() == ["rank-0.db", "rank-1.db"]


def test_python_s_subprocesses_and_workers_are_no_ranks(profile, plain, mpi):
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    run = profile("mpi4py_children", 2)
    assert lines_of(run.outcome) == lines_of(plain("mpi4py_children", 2))
    assert len(lines_of(run.outcome)) == 2
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Barrier") == [4, 4]


def run_over_tcp(tmp_path_factory, program, *arguments, everywhere=True):
    """Shared memory reaches only processes that were started together. everywhere: the profiler's
    variables are in the environment of the launcher, which starts spawned processes; else the first
    ranks alone have them."""
    if OPEN_MPI.missing:
        missing = f"Open MPI is not installed: no {OPEN_MPI.missing}"
        pytest.skip(f"{missing}; Debian's MPICH can neither spawn nor connect")
    folder = tmp_path_factory.mktemp(program)
    over_tcp = ("--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "lo")
    mpi = OPEN_MPI._replace(mpirun=("mpirun.openmpi", "--oversubscribe", *over_tcp))
    variables = {"LD_PRELOAD": str(LIBRARY), "COMMPROF_OUTPUT": str(folder / "run")}
    of_ranks = ["env", *(f"{name}={value}" for name, value in variables.items())]
    command = [*of_ranks * (not everywhere), *command_for(mpi, program), *arguments]
    outcome = launch(mpi, 2, command, folder, variables if everywhere else {})
    assert outcome.exit_status == 0, outcome
    return Run(2, folder / "run", outcome)


@pytest.fixture(scope="module")
def spawning(tmp_path_factory):
    """Two ranks that spawn two processes, twice."""
    return run_over_tcp(tmp_path_factory, "spawning")


def test_spawned_processes_have_a_folder_for_each_job(spawning):
    spawned = sorted(path for path in spawning.folder.iterdir() if path.name.startswith("spawned-"))
    assert spawning.files() == ["rank-0.db", "rank-1.db", *(path.name for path in spawned)]
    assert len(spawned) == 2
    for folder in spawned:
        job = Run(2, folder, spawning.outcome)
        assert job.files() == ["rank-0.db", "rank-1.db"]
        assert job.sizes("MPI_Recv") == [{4: (3, 0)}] * 2
        assert job.sizes("MPI_Allreduce") == [{4: (1, 4)}] * 2
        assert job.communicator(1, "MPI_COMM_WORLD").world_ranks == [0, 1]


def test_spawned_processes_without_a_profile_are_counted_and_others_are_not(
    spawning, tmp_path_factory
):
    assert reporter.rows("seen", spawning.folder) == []
    run = run_over_tcp(tmp_path_factory, "spawning", everywhere=False)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    (row,) = reporter.rows("seen", run.folder)
    assert (row["reason"], row["amount"], row["unit"]) == ("spawned", 4, "process")


def test_messages_to_spawned_processes_go_to_another_world(spawning):
    """Both ranks agree on what they spawned."""
    assert spawning.peers(0) == {Peer("MPI_Send", "sent", -1, 12, 48)}
    merged = spawning.communicators(0, "MPI_Intercomm_merge")
    assert [made.members for made in merged] == ["0-1,-1,-1"] * 2
    for call in ("MPI_Comm_spawn", "MPI_Comm_disconnect"):
        assert spawning.counts(call) == [2, 2]
    identities = [
        [made.identity for made in spawning.communicators(rank, "MPI_Comm_spawn")]
        for rank in range(2)
    ]
    assert identities[0] == identities[1] and len(set(identities[0])) == 2


def met_again(run, how):
    """On each rank what it made so; both ranks, each alone on its side, have exchanged messages on
    it."""
    made = [run.communicators(rank, how) for rank in range(2)]
    kinds = {(each.is_inter, each.size, each.remote_size) for each in made[0] + made[1]}
    assert kinds == {(1, 1, 1)}
    return [[each.identity for each in of_rank] for of_rank in made]


def test_both_sides_of_a_connection_are_one_communicator(tmp_path_factory):
    run = run_over_tcp(tmp_path_factory, "connecting", "by port and socket")
    joined = met_again(run, "MPI_Comm_join")
    assert joined[0] == joined[1] and len(joined[0]) == 1
    accepted, connected = (
        run.communicator(rank, f"MPI_Comm_{how}") for rank, how in enumerate(("accept", "connect"))
    )
    assert accepted.identity == connected.identity
    assert Peer("MPI_Sendrecv", "sent", 1, 2, 8) in run.peers(0)
    assert Peer("MPI_Sendrecv", "received", 0, 2, 8) in run.peers(1)


def test_inter_communicators_from_groups_are_told_apart_by_their_tags(profile, plain, mpi):
    mpi.require("MPI_Intercomm_create_from_groups")
    run = profile("connecting", 2)
    assert plain("connecting", 2).exit_status == 0
    identities = met_again(run, "MPI_Intercomm_create_from_groups")
    assert identities[0] == identities[1] and len(set(identities[0])) == 2
    assert run.counts("MPI_Intercomm_create_from_groups") == [2, 2]
    assert Peer("MPI_Sendrecv", "sent", 1, 2, 8) in run.peers(0)
