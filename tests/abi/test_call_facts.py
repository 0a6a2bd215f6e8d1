"""Bandwidth and waiting in calls.def and nccl_calls.def, against nccl-tests' PERFORMANCE.md and
MPI-4.1, function by function.

A nonblocking or persistent operation has the rule of the blocking one: what it does from start to
completion is the same. Nonblocking and persistent messages wait for nobody.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
from known_calls import CALLS, SOURCES

BANDWIDTH = {
    "allreduce": "Allreduce AllReduce",
    "reduce-scatter": "Reduce_scatter Reduce_scatter_block ReduceScatter",
    "allgather": "Allgather AllGather Alltoall AlltoAll Gather Scatter",
    "one-way": "Bcast Broadcast Reduce Send Bsend Ssend Rsend Recv Mrecv Sendrecv Sendrecv_replace "
    "Psend Precv",
    "prefix": "Scan Exscan",
    "own-size": "Allgatherv Alltoallv Alltoallw Gatherv Scatterv"
    " Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv "
    "Neighbor_alltoallw"
    " File_read File_read_all File_read_at File_read_at_all File_read_shared File_read_ordered"
    " File_write File_write_all File_write_at File_write_at_all File_write_shared "
    "File_write_ordered",
    "unrated": "Barrier Group PutSignal Put Get Accumulate Get_accumulate Fetch_and_op "
    "Compare_and_swap Rput Rget Raccumulate Rget_accumulate"
    " File_read_all_begin File_read_at_all_begin File_read_ordered_begin"
    " File_write_all_begin File_write_at_all_begin File_write_ordered_begin",
}
WAITS_FOR = {
    "all": "Barrier Allreduce AllReduce Allgather AllGather Allgatherv Alltoall AlltoAll "
    "Reduce_scatter_block ReduceScatter Group"
    " Win_create Win_allocate Win_allocate_shared Win_create_dynamic Win_free Win_set_info "
    "Win_fence"
    " File_open File_close File_set_view File_set_info File_set_size File_preallocate "
    "File_set_atomicity File_seek_shared File_sync",
    "all-unless-empty": "Reduce_scatter Alltoallv Alltoallw"
    " File_read_all File_read_at_all File_read_ordered File_write_all File_write_at_all "
    "File_write_ordered"
    " File_read_all_begin File_read_at_all_begin File_read_ordered_begin File_write_all_begin "
    "File_write_at_all_begin File_write_ordered_begin"
    " File_read_all_end File_read_at_all_end File_read_ordered_end File_write_all_end "
    "File_write_at_all_end File_write_ordered_end",
    "neighbors": "Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv "
    "Neighbor_alltoallw",
    "root-first": "Bcast Broadcast Scatter Scatterv",
    "root-last": "Reduce Gather Gatherv",
    "lower": "Scan Exscan",
    "sender": "Recv Mrecv Sendrecv Sendrecv_replace Probe Mprobe WaitSignal",
    "receiver": "Ssend",
    "targets": "Win_start Win_complete",
    "origins": "Win_wait Win_test",
}
NCCL_WAITS_FOR = {"Send": "peer", "Recv": "peer"}
POLLS = ("MPI_Iprobe", "MPI_Improbe")


def operation(name: str) -> str:
    """MPI_Iallreduce, MPI_Allreduce_init: Allreduce; MPI_File_iread: File_read."""
    name = re.sub("^(MPI_|nccl)", "", name)
    name = re.sub("^File_i(read|write)", r"File_\1", name).removesuffix("_init")
    return re.sub("^I([a-z])", lambda found: found[1].upper(), name)


def listed(table: dict[str, str], name: str, otherwise: str) -> str:
    return next(
        (value for value, names in table.items() if operation(name) in names.split()), otherwise
    )


def waits_for(name: str) -> str:
    call = CALLS[name]
    if call.library == "nccl" and operation(name) in NCCL_WAITS_FOR:
        return NCCL_WAITS_FOR[operation(name)]
    is_over_at_once = (
        call.form in ("nonblocking", "persistent") and call.family == "point-to-point"
    ) or name in POLLS
    return "nobody" if is_over_at_once else listed(WAITS_FOR, name, "nobody")


def test_every_line_and_every_listed_operation_is_compared():
    lines = sum(
        (SOURCES / table).read_text().count("CALL(")
        for table in ("wrappers/calls.def", "nccl/nccl_calls.def")
    )
    assert len(CALLS) == lines - 2  # the comments have the form of a line
    listed_names = " ".join([*BANDWIDTH.values(), *WAITS_FOR.values()]).split()
    assert set(listed_names) <= {operation(name) for name in CALLS}


def test_bandwidth_follows_the_rules_of_nccl_tests():
    assert {name: call.bandwidth for name, call in CALLS.items()} == {
        name: listed(BANDWIDTH, name, "silent") for name in CALLS
    }


def test_calls_wait_for_whom_mpi_says():
    assert {name: call.waits_for for name, call in CALLS.items()} == {
        name: waits_for(name) for name in CALLS
    }


def test_nonblocking_calls_are_named_so():
    odd = {"MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate", "MPI_Grequest_start"}
    named = {
        name for name in CALLS if re.search(r"^MPI_(File_|Comm_|Session_|Buffer_)?[iI][a-z]", name)
    }
    intercomms = {f"MPI_Intercomm_{what}" for what in ("create", "create_from_groups", "merge")}
    set_up = {"MPI_Init", "MPI_Init_thread", "MPI_Session_init"}
    immediate = named - intercomms - set_up - {"MPI_Iprobe", "MPI_Improbe"}
    assert {name for name, call in CALLS.items() if call.form == "nonblocking"} == immediate | odd
    assert {name for name, call in CALLS.items() if call.form == "persistent"} == {
        name for name in CALLS if name.endswith("_init") and name != "MPI_Session_init"
    }
