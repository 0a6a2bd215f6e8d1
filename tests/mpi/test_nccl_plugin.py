"""NCCL that cannot be intercepted tells of its operations itself, as its profiler plugin: a program
with NCCL inside, and a library whose functions are looked up. Both are doubles of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, Outcome, Run, calls_in_ledger, unprofiled_environment
from .reporter import rows, text
from .nccl import PLUGIN, PLUGIN_SOURCES, compiled, with_nccl_inside

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

RANKS = 4
BYTES = 400
VERSIONS = ["4", "5", "6"]


@pytest.fixture
def inside(mpi, profile):
    """inside("5", "operations"): a part of programs/nccl_static.c, with NCCL inside that knows so
    much of the interface."""
    return lambda version, part, env=PLUGIN, **arguments: profile(
        with_nccl_inside(mpi.mpicc), RANKS, version, part, env=env, **arguments
    )


@pytest.fixture
def intercepted(mpi, profile):
    """A part of programs/nccl.c: its NCCL is a library, and tells a plugin as well."""
    return lambda version, part, **env: profile(
        str(compiled(mpi.mpicc, "nccl")),
        RANKS,
        part,
        env=PLUGIN | {"DOUBLE_NCCL_PLUGIN": version} | env,
    )


def nccl_communicators(run: Run, rank: int) -> list[tuple]:
    return run.query(
        rank,
        "SELECT name, identity, size, comm_rank, is_freed, collectives FROM communicator WHERE "
        "library = 'nccl'",
    )


OPERATIONS = {
    "ncclAllReduce": [{BYTES: (2, 2 * BYTES), 7: (1, 7), 0: (1, 0)}] * RANKS,
    "ncclReduce": [{BYTES: (1, BYTES)}] * RANKS,
    "ncclAllGather": [{BYTES: (1, BYTES)}] * RANKS,
    "ncclReduceScatter": [{RANKS * BYTES: (1, RANKS * BYTES)}] * RANKS,
    "ncclSend": [{200: (1, 200)}] * RANKS,
    "ncclRecv": [{200: (1, 0)}] * RANKS,
    # only the root hands something over
    "ncclBroadcast": [{BYTES: (1, BYTES if rank == 1 else 0)} for rank in range(RANKS)],
}


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_count_with_their_bytes(inside, version):
    """Version 4 does not say what is captured, and alone says the partner of a message. There is a
    time on the host, and none on the device."""
    run, is_old = inside(version, "operations"), version == "4"
    captured = {72: (1, 72)}
    expected = OPERATIONS | {
        "ncclAllReduce": [
            sizes | (captured if is_old else {}) for sizes in OPERATIONS["ncclAllReduce"]
        ]
    }
    made = run.table()
    assert {call: made[call] for call in expected} == expected
    apart = run.sizes("ncclAllReduce", measure="captured")
    assert apart == [{} if is_old else captured] * RANKS
    for rank in range(RANKS):
        sql = "SELECT call, direction, peer, count, bytes FROM peer WHERE communicator > 0"
        told = {
            ("ncclSend", "sent", (rank + 1) % RANKS, 1, 200),
            ("ncclRecv", "received", (rank - 1) % RANKS, 1, 200),
        }
        assert {*run.query(rank, sql)} == (told if is_old else set())
        cells = [cell for cell in run.cells(rank) if cell.call.startswith("nccl")]
        assert cells and all(cell.min_ns > 0 for cell in cells)
        assert run.query(rank, "SELECT COUNT(*) FROM cell WHERE measure = 'device'") == [(0,)]
    facts = run.facts(0)
    unknown = (facts["nccl.unknown_operation"], facts["nccl.unknown_datatype"])
    assert unknown == ("Teleport", "ncclFloat4")


TIMES = PLUGIN | {"COMMPROF_NCCL_TIMES": "on"}


@pytest.mark.parametrize("version", VERSIONS)
def test_operations_have_the_times_that_nccls_kernels_stamp_where_these_are_asked_for(
    inside, version
):
    """As the double plants them: 1000 ns an element, the second of two channels 10 ns later; those
    of a launch together."""
    run = inside(version, "operations", env=TIMES)
    for rank in range(RANKS):
        cells = {
            (cell.call, cell.bytes): (cell.count, cell.total_ns)
            for cell in run.cells(rank, measure="device")
        }
        assert cells.pop(("ncclAllReduce", BYTES)) == (1, 100 * 1000 + 10)
        assert sorted(cells.values()) == [(1, 11 * 1000), (1, 400 * 1000 + 10)]
        assert {call for call, _ in cells} == {"ncclGroup"}
        assert run.rank_row(rank)["gpu_unmatched_operations"] == 0
        assert run.facts(rank)["nccl.device_times"] == "kernelCh"
    assert run.sizes("ncclReduce") == [{BYTES: (1, BYTES)}] * RANKS
    stamped = "on the device by its own time stamps (kernelCh), not by CUPTI"
    assert stamped in text("gpu", run.folder)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_intercepted_has_these_times_on_its_communicator(intercepted, version):
    run = intercepted(version, "operations", COMMPROF_NCCL_TIMES="on")
    for rank in range(RANKS):
        on, called = (
            run.query(
                rank,
                "SELECT DISTINCT communicator FROM cell WHERE call = 'ncclAllReduce' "
                "AND measure = :measure",
                measure=measure,
            )
            for measure in ("device", "call")
        )
        assert on == called and len(called) == 1
        (reduce,) = run.cells(rank, "ncclReduce", measure="device")
        assert reduce.total_ns == 100 * 1000 + 10


OF_ALGORITHMS = "SELECT count(DISTINCT communicator) FROM nccl_algorithm"
ALGORITHMS = (
    "SELECT call, bytes, algorithm, protocol, channels, count FROM nccl_algorithm ORDER "
    "BY call, bytes"
)


@pytest.mark.parametrize("version", VERSIONS)
def test_how_a_collective_was_carried_out_is_counted_by_size(inside, version):
    run = inside(version, "operations")
    small, large = ("RING", "LL", 1), ("RING", "SIMPLE", 2)
    told = {
        *(("ncclAllReduce", size, *small, 1) for size in (0, 7, 72)),
        ("ncclAllReduce", BYTES, *large, 2),
        *((f"nccl{call}", BYTES, *large, 1) for call in ("Broadcast", "Reduce", "AllGather")),
        ("ncclReduceScatter", RANKS * BYTES, *large, 1),
    }
    for rank in range(RANKS):
        assert {*run.query(rank, ALGORITHMS)} == told
    shown = text("gpu", run.folder)
    assert "ncclAllReduce everyone 400 B 8 ring, simple, 2 channels" in squeezed(shown)
    assert "copy engine" not in shown
    (row,) = (
        row for row in rows("gpu", run.folder, "--by", "algorithm") if row["call"] == "ncclReduce"
    )
    found = tuple(row[key] for key in ("algorithm", "protocol", "channels", "ranks", "count"))
    assert found == ("RING", "SIMPLE", 2, RANKS, RANKS)


def squeezed(shown: str) -> list[str]:
    return [" ".join(line.split()) for line in shown.splitlines()]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_intercepted_is_carried_out_on_the_communicator_that_it_was_called_with(
    intercepted, version
):
    run = intercepted(version, "operations")
    sql = """
        SELECT DISTINCT comm_rank, size, cell.communicator FROM nccl_algorithm
        JOIN communicator USING (world_rank, communicator) JOIN cell
            USING (world_rank, communicator)
        WHERE cell.call = 'ncclAllReduce'"""
    for rank in range(RANKS):
        assert [row[:2] for row in run.query(rank, sql)] == [(rank, RANKS)]
        assert run.query(rank, OF_ALGORITHMS) == [(1,)]


@pytest.mark.parametrize("version", ["5", "6"])
def test_collectives_by_copy_engines_count_once_and_version_6_names_them(inside, version):
    run = inside(version, "copy_engines")
    assert run.sizes("ncclAllGather") == [{BYTES: (3, 3 * BYTES)}] * RANKS
    root = {BYTES: (1, RANKS * BYTES)}
    assert run.sizes("ncclScatter") == [
        root if rank == 1 else {BYTES: (1, 0)} for rank in range(RANKS)
    ]
    kernels = {
        ("ncclAllReduce", BYTES, "RING", "SIMPLE", 2, 1),
        ("ncclAllGather", BYTES, "RING", "SIMPLE", 2, 1),
    }
    copies = {
        ("ncclAllGather", BYTES, "COPY_ENGINE", "", 0, 2),
        ("ncclScatter", BYTES, "COPY_ENGINE", "", 0, 1),
    }
    for rank in range(RANKS):
        assert set(run.query(rank, ALGORITHMS)) == (kernels | copies if version == "6" else kernels)


def test_copy_engines_have_no_time_by_nccls_stamps_and_are_reported(inside):
    run = inside("6", "copy_engines", env=TIMES)
    for rank in range(RANKS):
        cells = run.cells(rank, measure="device")
        found = [(cell.call, cell.bytes, cell.count) for cell in cells]
        assert found == [("ncclGroup", 2 * BYTES, 1)]
        assert run.rank_row(rank)["gpu_unmatched_operations"] == 0
    shown = text("gpu", run.folder)
    assert "ncclAllGather everyone 400 B 8 copy engine" in squeezed(shown)
    assert "0 channels" not in shown


def test_what_is_intercepted_is_by_copy_engines_where_nccl_says_so(intercepted):
    run = intercepted("6", "copy_engines")
    assert run.sizes("ncclAllGather") == [{BYTES: (2, 2 * BYTES)}] * RANKS
    for rank in range(RANKS):
        told = run.query(rank, "SELECT algorithm, count FROM nccl_algorithm ORDER BY 1")
        assert told == [("COPY_ENGINE", 1), ("RING", 1)]
        assert run.query(rank, OF_ALGORITHMS) == [(1,)]


@pytest.mark.parametrize("version", VERSIONS)
def test_ranks_agree_on_who_a_communicator_is(inside, version):
    run = inside(version, "halves")
    rows = [
        sorted(nccl_communicators(run, rank), key=lambda row: row[0], reverse=True)
        for rank in range(RANKS)
    ]
    assert [everyone[:1] + everyone[2:] for everyone, _ in rows] == [
        ("everyone", RANKS, rank, 1, 1) for rank in range(RANKS)
    ]
    assert [half[:1] + half[2:] for _, half in rows] == [
        ("", RANKS // 2, rank // 2, 1, 1) for rank in range(RANKS)
    ]
    assert len({everyone[1] for everyone, _ in rows}) == 1
    assert rows[0][1][1] == rows[2][1][1] != rows[1][1][1] == rows[3][1][1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_group_larger_than_the_plugin_has_room_for_is_counted_whole(inside, version):
    assert inside(version, "many").sizes("ncclAllReduce") == [{4: (1500, 6000)}] * RANKS


def test_calls_can_be_left_out_and_nccl_altogether_and_is_not_asked_by_itself(inside):
    run = inside("5", "operations", env=PLUGIN | {"COMMPROF_NCCL": "off"})
    unasked = inside("5", "operations", env={})
    assert "version 0" in unasked.outcome.stdout
    for each in (run, unasked):
        assert not [call for call in each.calls(0) if call.startswith("nccl")]
    calls = inside("5", "operations", env=PLUGIN | {"COMMPROF_EXCLUDE": "ncclAllReduce"}).calls(0)
    assert "ncclReduce" in calls and "ncclAllReduce" not in calls


# Beside the wrappers


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_intercepted_is_not_counted_again(intercepted, version):
    told, alone = intercepted(version, "operations"), intercepted("0", "operations")
    calls = {call for call in alone.calls(0) if call.startswith("nccl")}
    assert calls == {call for call in told.calls(0) if call.startswith("nccl")}
    assert [told.sizes(call) for call in sorted(calls)] == [
        alone.sizes(call) for call in sorted(calls)
    ]
    assert [len(nccl_communicators(told, rank)) for rank in range(RANKS)] == [1] * RANKS


def test_a_call_that_went_past_the_wrapper_is_counted_beside_one_that_did_not(intercepted):
    """An older NCCL that is intercepted tells nothing."""
    looked_up = {2: (1, 2), 4: (1, 4)}
    for version, found in (("5", looked_up), ("4", {})):
        sizes = intercepted(version, "looked_up").sizes("ncclAllReduce")
        assert sizes == [found | {200: (1, 200)}] * RANKS


# Without MPI, and commprof-run


def alone(folder: Path, *options: str, **environment: str) -> list[subprocess.CompletedProcess]:
    program = compiled("cc", "nccl_static", *PLUGIN_SOURCES, "-DWITHOUT_MPI", library=None)
    command = [str(COMMPROF_RUN), *options, str(program), "6", "operations"]
    env = unprofiled_environment() | {"COMMPROF_OUTPUT": str(folder / "run")} | environment
    return [
        subprocess.run(
            [*command, str(rank), "2"],
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        for rank in range(2)
    ]


def test_a_job_without_mpi_begins_with_its_first_communicator(tmp_path):
    jobs = alone(tmp_path, "--nccl-plugin")
    run = Run(2, tmp_path / "run", Outcome(0, "", jobs[0].stderr))
    assert [job.stdout for job in jobs] == ["version 6\n"] * 2
    assert [calls_in_ledger(run.ledger(rank))["ncclReduce"] for rank in range(2)] == [1, 1]
    assert "profile of 2 ranks" in run.outcome.stderr


def test_another_plugin_that_was_asked_for_stays_and_none_is_asked_for_by_itself(tmp_path):
    jobs = alone(tmp_path, "--nccl-plugin", "--verbose", "1", NCCL_PROFILER_PLUGIN="none")
    stays = "NCCL_PROFILER_PLUGIN is set to none: NCCL does not report"
    assert all(stays in job.stderr for job in jobs)
    assert {job.stdout for job in [*jobs, *alone(tmp_path)]} == {"version 0\n"}
