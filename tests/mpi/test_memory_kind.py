"""Memory kinds of the buffers of each call (tests/doubles/buffers.c): host, device, managed and
pinned memory of a GPU that does not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .doubles import SETTINGS, program
from .harness import Run

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

Profile = Callable[..., Run]

# For rank 0 and rank 1: bytes -> memory kind.
CALLS = {
    "MPI_Send": [{16: "device", 17: "pinned", 0: "host", 25: "host"}, {25: "host"}],
    "MPI_Ssend": [{20: "managed"}, {}],
    "MPI_Recv": [{}, {16: "managed", 17: "host", 0: "host"}],
    "MPI_Mrecv": [{}, {20: "device"}],
    "MPI_Isend": [{19: "device"}, {}],
    "MPI_Irecv": [{25: "device"}, {19: "pinned", 25: "device"}],
    "MPI_Send_init": [{21: "device"}, {}],
    "MPI_Recv_init": [{}, {21: "managed"}],
    "MPI_Sendrecv": [{22: "device>pinned"}] * 2,
    "MPI_Sendrecv_replace": [{23: "managed"}] * 2,
    "MPI_Bcast": [{24: "host", 32: "pinned"}] * 2,
    "MPI_Gather": [{33: "device>pinned", 34: "pinned"}, {33: "device", 34: "device"}],
    "MPI_Scatter": [{35: "device>pinned", 36: "device"}, {35: "pinned", 36: "pinned"}],
    "MPI_Reduce": [{37: "device>managed", 38: "pinned"}, {37: "device", 38: "device"}],
    "MPI_Alltoall": [{51: "device", 52: "managed"}] * 2,
    "MPI_Allgather": [{53: "device"}] * 2,
    "MPI_Reduce_scatter_block": [{54: "device>host"}] * 2,
    "MPI_Scan": [{55: "host>device"}] * 2,
    "MPI_Iallreduce": [{56: "device>pinned"}] * 2,
    "MPI_Allgatherv": [{57: "host>device"}, {0: "device"}],
    "MPI_Alltoallv": [{58: "managed>device"}, {0: "device"}],
    "MPI_Neighbor_alltoall": [{64: "device>managed"}] * 2,
    "MPI_Neighbor_allgather": [{65: "pinned"}] * 2,
    "MPI_Put": [{72: "device"}] * 2,
    "MPI_Get": [{73: "managed"}] * 2,
    "MPI_Accumulate": [{74: "pinned"}] * 2,
    "MPI_Get_accumulate": [{75: "device>host", 76: "device"}] * 2,
    "MPI_Fetch_and_op": [{8: "device>host"}] * 2,
    "MPI_Rput": [{77: "managed"}] * 2,
    "MPI_File_write_at": [{80: "device"}] * 2,
    "MPI_File_read_at": [{80: "managed"}] * 2,
    "MPI_File_iwrite_at": [{81: "pinned"}] * 2,
    "MPI_Wait": [{0: "host"}] * 2,
    "MPI_Barrier": [{0: "host"}] * 2,
}

COMPLETIONS = {
    "MPI_Isend": [{19: ("device", 1)}, {}],
    "MPI_Irecv": [{25: ("device", 1)}, {19: ("pinned", 1), 25: ("device", 1)}],
    "MPI_Send_init": [{21: ("device", 3)}, {}],
    "MPI_Recv_init": [{}, {21: ("managed", 3)}],
    "MPI_Iallreduce": [{56: ("device>pinned", 1)}] * 2,
    "MPI_Rput": [{77: ("managed", 1)}] * 2,
    "MPI_File_iwrite_at": [{81: ("pinned", 1)}] * 2,
}


@pytest.fixture
def buffers(mpi, profile):
    run = profile(program(mpi, "buffers", "libcuda.so.1"), 2, env=SETTINGS)
    assert "buffers:" not in run.outcome.stderr
    return run


def memory_kinds(run: Run, rank: int, call: str, measure: str = "call") -> list[tuple]:
    """bytes, memory kind, count"""
    return run.query(
        rank,
        "SELECT bytes, memory_kind, SUM(count) FROM cell WHERE call = :call AND measure = :measure "
        "GROUP BY 1, 2",
        call=call,
        measure=measure,
    )


def test_every_call_has_the_memory_kind_of_its_buffers(buffers):
    """A completion has that of the call that began it, a poll none."""
    assert {
        call: [dict(row[:2] for row in memory_kinds(buffers, rank, call)) for rank in range(2)]
        for call in CALLS
    } == CALLS
    assert {
        call: [
            {size: kind for size, *kind in memory_kinds(buffers, rank, call, "completion")}
            for rank in range(2)
        ]
        for call in COMPLETIONS
    } == {
        call: [{size: [*kind] for size, kind in sizes.items()} for sizes in by_rank]
        for call, by_rank in COMPLETIONS.items()
    }
    for rank in range(2):
        assert [row[1] for row in memory_kinds(buffers, rank, "MPI_Test", "poll")] == ["host"]
        assert [row[:2] for row in memory_kinds(buffers, rank, "MPI_Allreduce")][:4] == [
            (9, "host"),
            (48, "device>host"),
            (49, "managed"),
            (50, "host"),
        ]


def test_memory_that_became_another_kind_is_seen_within_64_calls(buffers):
    """The driver is asked once for a region or page, and now and then."""
    for rank in range(2):
        rows = memory_kinds(buffers, rank, "MPI_Allreduce")
        seen = {(size, kind): count for size, kind, count in rows if size >= 90}
        assert seen.keys() <= {(90, "host"), (91, "host"), (91, "pinned"), (92, "pinned")}
        assert (seen[90, "host"], seen[92, "pinned"]) == (65, 1)
        assert seen.get((91, "host"), 0) + seen[91, "pinned"] == 65
        row = buffers.rank_row(rank)
        assert row["gpu_memory_kind_changes"] == 1
        assert 5 <= int(row["gpu_memory_kind_queries"]) < 100


def test_where_gpus_are_not_looked_for_all_is_host(mpi, profile):
    run = profile(program(mpi, "no_gpu"), 2, env={"COMMPROF_GPU": "on"})
    for rank in range(2):
        assert run.query(rank, "SELECT DISTINCT memory_kind FROM cell") == [("host",)]
        assert run.rank_row(rank)["gpu_memory_kind_queries"] == 0
