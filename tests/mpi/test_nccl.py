"""NCCL's calls beside MPI's: what is counted, and that the library gets and returns what it would
without us. NCCL is a double of ours."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from . import reporter
from .doubles import SETTINGS as GPU_SETTINGS
from .doubles import build
from .doubles import compiled as gpu_program
from .harness import (
    CLOCK_ERROR,
    COMMPROF_RUN,
    Outcome,
    Run,
    calls_in_ledger,
    unprofiled_environment,
)
from .nccl import PLUGIN, compiled, doubles, with_nccl_inside

pytestmark = pytest.mark.one_mpi

RANKS = 4
BYTES = 400


@pytest.fixture
def nccl(mpi, profile):
    """nccl("operations"): a part of programs/nccl.c under the profiler."""
    return lambda part, **arguments: profile(
        str(compiled(mpi.mpicc, "nccl")), RANKS, part, **arguments
    )


def answer(command: str, run: Run, *words: str) -> list[dict]:
    return reporter.rows(command, run.folder, *words)


def nccl_communicators(run: Run, rank: int) -> list[tuple]:
    """Communicators of NCCL that something was counted on: constructor, identity, parent_identity,
    size, comm_rank, is_freed."""
    sql = """
        SELECT constructor, identity, parent_identity, size, comm_rank, is_freed FROM communicator
        WHERE library = 'nccl' ORDER BY communicator"""
    return run.query(rank, sql)


COLLECTIVES = "SELECT collectives FROM communicator WHERE library = 'nccl'"

# Counted calls


def of_all(size: int, volume: int, count: int = 1) -> list[dict[int, tuple[int, int]]]:
    return [{size: (count, count * volume)}] * RANKS


def of_root(root: int, volume: int) -> list[dict[int, tuple[int, int]]]:
    return [{BYTES: (1, volume if rank == root else 0)} for rank in range(RANKS)]


OPERATIONS = {
    "ncclAllReduce": of_all(BYTES, BYTES, 2),  # once with a configuration of its own
    "ncclReduce": of_all(BYTES, BYTES),
    "ncclAllGather": of_all(BYTES, BYTES),
    "ncclReduceScatter": of_all(RANKS * BYTES, RANKS * BYTES),
    "ncclAlltoAll": of_all(BYTES, RANKS * BYTES),
    "ncclGather": of_all(BYTES, BYTES),
    "ncclSend": of_all(BYTES, BYTES),
    "ncclRecv": of_all(BYTES, 0),
    "ncclBroadcast": of_root(1, BYTES),
    "ncclBcast": of_root(1, BYTES),
    "ncclScatter": of_root(0, RANKS * BYTES),
}


def test_operations_count_with_their_bytes(nccl):
    made = nccl("operations").table()
    assert {call: made[call] for call in OPERATIONS} == OPERATIONS


def test_nccl_inside_the_program_is_counted_by_its_profiler_plugin(mpi, profile):
    """The short form of test_nccl_plugin."""
    run = profile(with_nccl_inside(mpi.mpicc), RANKS, "6", "operations", env=PLUGIN)
    assert run.sizes("ncclReduceScatter") == OPERATIONS["ncclReduceScatter"]
    assert run.sizes("ncclBroadcast") == OPERATIONS["ncclBroadcast"]
    assert run.sizes("ncclAllReduce", measure="captured") == [{72: (1, 72)}] * RANKS


def test_messages_are_counted_by_their_partner(nccl):
    """As NCCL numbers it in the database; by world rank, which is the other way round, in the
    report."""
    run = nccl("messages")
    own = (
        "SELECT call, direction, comm_rank, peer, count, bytes FROM peer JOIN communicator "
        "USING (world_rank, communicator)"
    )
    for rank in range(RANKS):
        place, sizes = RANKS - 1 - rank, (4 * BYTES, 4 * BYTES // 2)
        near = [(place + 1, sizes), (place - 1, sizes[::-1])]
        assert set(run.query(rank, own)) == {
            message
            for peer, (sent, received) in near
            if 0 <= peer < RANKS
            for message in (
                ("ncclSend", "sent", place, peer, 4, sent),
                ("ncclRecv", "received", place, peer, 4, received),
            )
        }
    down = {(rank + 1, rank): (4, 4 * BYTES) for rank in range(RANKS - 1)}
    planned = down | {(rank, rank + 1): (4, 4 * BYTES // 2) for rank in range(RANKS - 1)}
    for words in ((), ("--received",)):
        rows = answer("peers", run, *words)
        assert planned == {
            (row["sender"], row["receiver"]): (row["count"], row["bytes"]) for row in rows
        }
    stages = [(row["stage"], row["rank"], row["has_nccl"]) for row in answer("pipeline", run)]
    assert stages == [(3 - rank, rank, 1) for rank in (3, 2, 1, 0)]


def test_one_sided_operations_count_with_the_rank_that_they_go_to_and_are_no_collectives(nccl):
    run = nccl("signals")
    assert run.sizes("ncclPutSignal") == [{BYTES: (1, BYTES)}] * RANKS
    assert run.sizes("ncclSignal") == run.sizes("ncclWaitSignal") == [{0: (1, 0)}] * RANKS
    for rank in range(RANKS):
        sql = (
            "SELECT call, direction, peer, count, bytes FROM peer WHERE communicator > 0 ORDER BY 1"
        )
        assert run.query(rank, sql) == [
            ("ncclPutSignal", "sent", (rank + 1) % RANKS, 1, BYTES),
            ("ncclSignal", "sent", (rank + 1) % RANKS, 1, 0),
        ]
        assert run.query(rank, COLLECTIVES) == [(1,)]


def test_calls_without_bytes_count_too_and_collectives_are_numbered(nccl):
    run = nccl("operations")
    for call in ("CommInitRank", "GroupStart", "GroupEnd", "CommFinalize", "CommDestroy"):
        assert run.sizes(f"nccl{call}") == [{0: (1, 0)}] * RANKS
    assert [run.query(rank, COLLECTIVES) for rank in range(RANKS)] == [[(10,)]] * RANKS


def test_elements_of_every_type_have_their_size_and_those_of_an_unknown_one_none(nccl):
    run = nccl("datatypes")
    type_bytes = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 0]
    sizes = [(1000 + number) * size for number, size in enumerate(type_bytes)]
    assert run.sizes("ncclAllReduce") == [{size: (1, size) for size in sizes}] * RANKS
    assert run.facts(0)["nccl.unknown_datatype"] == "12"


# A failed call counts as a call without bytes; nothing counts while counting is switched off.
@pytest.mark.parametrize(("part", "sizes"), [("mistakes", (0, 5)), ("switched", (3, 5))])
def test_what_fails_has_no_bytes_and_what_is_switched_off_no_call(nccl, part, sizes):
    assert nccl(part).sizes("ncclAllReduce") == [{size: (1, size) for size in sizes}] * RANKS


def test_calls_can_be_left_out_and_nccl_altogether(nccl):
    run = nccl("operations", env={"COMMPROF_EXCLUDE": "ncclAllReduce,ncclSend"})
    assert {call for call in run.calls(0) if call.startswith("nccl")} >= {"ncclReduce", "ncclRecv"}
    assert not run.calls(0) & {"ncclAllReduce", "ncclSend"}
    run = nccl("operations", env={"COMMPROF_NCCL": "off"})
    assert not [call for call in run.calls(0) if call.startswith("nccl")]


def test_the_program_gets_what_it_gets_without_the_profiler(mpi, nccl, plain):
    for part in ("operations", "signals", "grown", "communicators", "nonblocking", "mistakes"):
        without = plain(str(compiled(mpi.mpicc, "nccl")), RANKS, part)
        assert sorted(nccl(part).outcome.stdout.split()) == sorted(without.stdout.split())


# Communicators


def test_all_ranks_agree_on_who_a_communicator_is(nccl):
    """ncclAllReduce of 1 and 2 bytes on two; halves gather 10 and 20, one from several ids 40, and
    one that shrank 30."""
    run = nccl("communicators")
    identities = {1: set(), 2: set()}
    for rank in range(RANKS):
        sql = (
            "SELECT bytes, identity, count FROM cell JOIN communicator USING (communicator) WHERE "
            "call = 'ncclAllReduce' AND bytes <= 2"
        )
        for size, identity, count in run.query(rank, sql):
            assert count == (3 if (size == 1) == (rank % 2 == 1) else 1)
            identities[size].add(identity)
    assert [len(identity) for identity in identities.values()] == [1, 1]
    assert identities[1] != identities[2]
    for size in (10, 20):
        check_halves(run, size)
    assert len({identity_of(run, rank, 40) for rank in range(RANKS)}) == 1
    assert len({identity_of(run, rank, 30) for rank in range(1, RANKS)}) == 1


def identity_of(run: Run, rank: int, size: int) -> str:
    """Identity of the communicator of the AllGather of so many bytes."""
    sql = (
        "SELECT identity FROM cell JOIN communicator USING (communicator) WHERE call = "
        "'ncclAllGather' AND bytes = :bytes"
    )
    ((identity,),) = run.query(rank, sql, bytes=size)
    return identity


def check_halves(run: Run, size: int) -> None:
    """Even and odd ranks have a communicator each."""
    even, odd = (
        {identity_of(run, rank, size) for rank in range(first, RANKS, 2)} for first in (0, 1)
    )
    assert len(even) == len(odd) == 1 and even != odd


def merged(run: Run) -> sqlite3.Connection:
    database = run.folder / "merged.db"
    reporter.text("merge", run.folder, database)
    return sqlite3.connect(database)


def test_all_agree_on_a_communicator_that_has_grown_and_on_its_children(nccl):
    """Old and new ranks."""
    database = merged(nccl("grown"))
    sql = """
        SELECT bytes, identity, group_concat(world_rank) FROM (
            SELECT cell.world_rank, bytes, identity FROM cell JOIN communicator
                USING (world_rank, communicator)
            WHERE call = 'ncclAllGather' ORDER BY cell.world_rank)
        GROUP BY bytes, identity ORDER BY 1, 3"""
    rows = database.execute(sql).fetchall()
    ranks = [(10, "0,1,2,3"), (20, "0,2"), (20, "1,3"), *((30, str(rank)) for rank in range(RANKS))]
    assert [(size, members) for size, _, members in rows] == ranks
    assert len({identity for _, identity, _ in rows}) == len(ranks)
    sql = """
        SELECT count(DISTINCT parent.identity), count(*) FROM communicator AS child
        JOIN communicator AS parent ON parent.world_rank = child.world_rank
            AND parent.identity = child.parent_identity
        WHERE child.constructor = 'ncclCommSplit' AND parent.constructor = 'ncclCommGrow'"""
    assert database.execute(sql).fetchall() == [(1, RANKS)]


def test_a_communicator_says_what_made_it_its_size_rank_and_end(nccl):
    """All devices of a process are ranks of one (ncclCommInitAll)."""
    run = nccl("communicators")
    of_processes = set()
    for rank in range(RANKS):
        made = nccl_communicators(run, rank)
        pair = [row for row in made if row[0] == "ncclCommInitAll"]
        assert [row[4] for row in pair] == [0, 1] and pair[0][1] == pair[1][1]
        of_processes.add(pair[0][1])
        if rank:
            rows = {constructor: rest for constructor, *rest in made}
            first = next(row for row in made if row[5])
            assert first[0] == "ncclCommInitRank" and first[3:5] == (RANKS, rank)
            assert rows["ncclCommSplit"][1:] == [first[1], RANKS // 2, rank // 2, 0]
            assert rows["ncclCommShrink"][1:] == [first[1], RANKS - 1, rank - 1, 0]
    assert len(of_processes) == RANKS


def test_communicators_have_the_names_of_their_configurations(nccl):
    run = nccl("names")
    sql = (
        "SELECT bytes, name FROM cell JOIN communicator USING (communicator) WHERE call = "
        "'ncclAllReduce' AND measure = 'call'"
    )
    for rank in range(RANKS):
        assert dict(run.query(rank, sql)) == {1: "data parallel", 2: "tensor parallel", 3: ""}


def test_communicators_that_are_not_ready_yet_are_known(nccl):
    run = nccl("nonblocking")
    assert run.sizes("ncclAllReduce") == [{7: (1, 7), 9: (1, 9)}] * RANKS
    rows = [nccl_communicators(run, rank) for rank in range(RANKS)]
    assert len({whole[1] for whole, _ in rows}) == 1
    assert rows[0][1][1] == rows[2][1][1] != rows[1][1][1] == rows[3][1][1]
    assert all(
        half[2:5] == (whole[1], RANKS // 2, rank // 2) for rank, (whole, half) in enumerate(rows)
    )


def test_communicators_that_were_not_ready_for_long_are_told_apart(nccl):
    run = nccl("nonblocking_children")
    for size in (10, 20, 30):
        check_halves(run, size)
    assert len({identity_of(run, 0, size) for size in (10, 20, 30)}) == 3


# Without MPI


def alone(folder: Path, ranks: int, **environment: str) -> Run:
    program = compiled("cc", "nccl_alone")
    env = unprofiled_environment() | {"COMMPROF_OUTPUT": str(folder / "run")} | environment
    jobs = [
        subprocess.Popen(
            [str(COMMPROF_RUN), str(program), str(rank), str(ranks), str(rank + 1)],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = "".join(job.communicate(timeout=600)[1] for job in jobs)
    assert [job.returncode for job in jobs] == [0] * ranks, said
    return Run(ranks, folder / "run", Outcome(0, "", said))


def test_a_job_without_mpi_is_profiled_from_its_first_communicator_on(tmp_path):
    run = alone(tmp_path, 2)
    counts = [calls_in_ledger(run.ledger(rank)) for rank in range(2)]
    assert [(each["ncclAllReduce"], each["ncclCommInitRank"]) for each in counts] == [
        (1, 1),
        (2, 1),
    ]
    assert "profile of 2 ranks" in run.outcome.stderr


def test_a_job_without_mpi_is_left_alone_where_nccl_is_left_out(tmp_path):
    assert alone(tmp_path, 2, COMMPROF_NCCL="off").files() == []


# Whose NCCL


# The last one lacks pncclX.
def test_every_copy_of_nccl_gets_the_calls_that_are_meant_for_it(tmp_path):
    shared = ("-shared", "-fPIC")
    callers = [
        compiled("cc", "nccl_caller", *shared, library=f"{name}.so.2", output=f"{name}_caller.so")
        for name in ("libnccl", "libnccl_other", "libnccl_plain")
    ]
    program = compiled("cc", "nccl_copies", "-ldl", library=None)
    env = unprofiled_environment() | {"COMMPROF_OUTPUT": str(tmp_path / "run")}
    for prefix in ([], [str(COMMPROF_RUN)]):
        command = [*prefix, str(program), *map(str, callers)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    counts = calls_in_ledger(tmp_path / "run/rank-0.ledger")
    assert (counts["ncclBcast"], counts["ncclBroadcast"]) == (6, 0)


def test_a_program_without_nccl_gets_an_error_from_a_function_that_only_the_profiler_has():
    program = compiled("cc", "nccl_none", "-Wl,-z,dynamic-undefined-weak", library=None)
    env = unprofiled_environment() | {"COMMPROF_OUTPUT": os.devnull}
    done = subprocess.run(
        [str(COMMPROF_RUN), str(program)], env=env, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


# Time on the device, of doubles


@pytest.fixture
def train(mpi, profile):
    """train(), train("streams"), ...: doubles/nccl_training.c, or another program on one rank."""

    def run(*words, name="nccl_training", ranks=2, **env):
        libraries = (str(build() / "libcuda.so.1"), str(doubles() / "libnccl.so.2"))
        program = gpu_program(mpi.name, mpi.mpicc, name, libraries)
        return profile(program, ranks, *words, env=GPU_SETTINGS | env)

    return run


def truths(run: Run) -> dict[tuple[str, int], tuple[int, int]]:
    """Truths of all ranks together: (call, bytes) -> count, nanoseconds."""
    told: dict[tuple[str, int], tuple[int, int]] = {}
    for _, call, size, duration_ns in (
        line.split() for line in run.outcome.stdout.splitlines() if line.startswith("truth ")
    ):
        count, total_ns = told.get((call, int(size)), (0, 0))
        told[call, int(size)] = (count + 1, total_ns + int(duration_ns))
    return told


@pytest.mark.parametrize("words", [(), ("streams",)], ids=["operations", "streams"])
def test_operations_have_the_time_of_their_kernels_on_the_device(train, words):
    """Also on streams that are destroyed at once, whose handles are the same."""
    run, seen = train(*words), {}
    for rank in range(2):
        for cell in run.cells(rank, measure="device"):
            count, total_ns = seen.get((cell.call, cell.bytes), (0, 0))
            seen[cell.call, cell.bytes] = (count + cell.count, total_ns + cell.total_ns)
    planted = truths(run)
    assert {key: count for key, (count, _) in seen.items()} == {
        key: count for key, (count, _) in planted.items()
    }
    for key, (count, total_ns) in planted.items():
        # two clocks, read at each launch
        assert abs(seen[key][1] - total_ns) <= 1000 * count, (key, seen[key], total_ns)
    assert [run.rank_row(rank)["gpu_unmatched_operations"] for rank in range(2)] == [0, 0]


def test_what_copy_engines_do_takes_no_kernel_of_its_neighbours(train):
    run = train("windows")
    assert run.sizes("ncclAllGather") == [{99: (1, 99)}] * 2
    assert run.sizes("ncclAllGather", "device") == [{}] * 2
    assert [600 in size for size in run.sizes("ncclGroup", "device")] == [False] * 2
    # At least, for a rank that other work holds up may leave no gap before its last operations.
    assert [run.rank_row(rank)["gpu_unmatched_operations"] >= 2 for rank in range(2)] == [True] * 2


def test_operations_of_one_process_on_several_devices_have_their_time_on_each(train):
    run = train(name="nccl_devices", ranks=1, DOUBLE_DEVICES="2")
    assert run.sizes("ncclAllReduce", "device") == [{100: (1, 100), 101: (1, 101)}]


def test_a_captured_operation_has_no_time_on_the_device_and_samples_have_it(train):
    run = train()
    assert run.sizes("ncclAllReduce", "captured") == [{77: (2, 2 * 77)}] * 2
    assert all(77 not in size for size in run.sizes("ncclAllReduce", "device"))
    sql = """
        SELECT bytes, device_end_ns - device_start_ns, device_start_ns >= start_ns FROM sample
        WHERE call = 'ncclAllReduce' AND bytes != 77 ORDER BY sequence"""
    for rank in range(2):
        for size, duration_ns, is_later in run.query(rank, sql):
            planted_ns = 300000 + 10000 * (size - 1000)
            assert abs(duration_ns - planted_ns) <= 32 + planted_ns * CLOCK_ERROR and is_later
