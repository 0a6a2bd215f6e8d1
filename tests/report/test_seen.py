"""Gaps of a run's profile are named, with their size and the way out; for a run that was seen whole
nothing is said."""

from __future__ import annotations


import planted
import pytest
from cases import of
from planted import Communicator

SECOND = planted.SECOND


def ranks_with(**fields: object) -> list[planted.Rank]:
    """The planted run; rank 0 has these fields, or facts."""
    ranks = planted.training_run()
    for name, value in fields.items():
        if name == "facts":
            ranks[0].facts = {**ranks[0].facts, **value}
        elif name == "communicator":
            ranks[0].communicators = [*ranks[0].communicators, value]
        else:
            setattr(ranks[0], name, value)
    return ranks


def inter(constructor: str, processes: int) -> Communicator:
    return Communicator(
        9, 0x99, "0", 1, 0, constructor=constructor, remote_size=processes, is_inter=1
    )


UNSEEN = {
    "dropped": (
        dict(dropped_calls=1_234),
        "1,234 calls dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)",
    ),
    "dropped-messages": (
        dict(dropped_messages=2),
        "2 messages missing in the table of peers: the ledger was full, on rank 0"
        " (commprof-run --memory 256M)",
    ),
    "dropped-completions": (
        dict(dropped_completions=1),
        "1 completion dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)",
    ),
    "untracked": (
        dict(untracked_requests=1),
        "1 request not followed to completion: there was no memory, on rank 0",
    ),
    "off": (
        dict(counted_ns=4 * SECOND, facts={"unseen.off": "MPI_Pcontrol(0)"}),
        "60.0 % of the time not recorded: MPI_Pcontrol(0), on rank 0 (leave recording on)",
    ),
    "reset": (
        dict(reset_unix_ns=planted.START_UNIX_NS + 2 * SECOND, counted_ns=8 * SECOND),
        "20.0 % of the time set to zero by MPI_Pcontrol(2), on rank 0 (leave that call out)",
    ),
    "excluded": (
        dict(facts={"settings.COMMPROF_EXCLUDE": "MPI_Test,MPI_Iprobe"}),
        "calls that COMMPROF_EXCLUDE names: MPI_Test,MPI_Iprobe, on rank 0 (leave it unset)",
    ),
    "spawned": (
        dict(communicator=inter("MPI_Comm_spawn", 2)),
        "2 processes spawned without a profile beside this one",
    ),
    "spawned_multiple": (
        dict(communicator=inter("MPI_Comm_spawn_multiple", 1)),
        "1 process spawned without a profile beside this one",
    ),
    "sizes": (
        dict(facts={"mpi_abi": "unknown"}),
        "sizes of messages: the ABI of this MPI library is not known, on rank 0",
    ),
    "gpu": (
        dict(gpu_state="refused", facts={"gpu.reason": "no libcupti for CUDA 13.0"}),
        "GPUs not traced: no libcupti for CUDA 13.0, on rank 0",
    ),
    "interrupted": (
        dict(interrupted_calls=12),
        "12 calls of signal handlers that interrupted the profiler's own code, on rank 0",
    ),
    "bypass": (
        dict(facts={"unseen.bypass": "/opt/libx.so"}),
        "calls that reach MPI past the profiler, from: /opt/libx.so, on rank 0",
    ),
    "lookups": (
        dict(facts={"unseen.dlsym": "7"}),
        "7 look-ups of MPI functions not answered, as COMMPROF_DLSYM=off, on rank 0 (commprof-run "
        "--dlsym)",
    ),
    "library": (
        dict(facts={"unseen.library": "/opt/libmpi.so.12"}),
        "calls to a second MPI library: /opt/libmpi.so.12, on rank 0",
    ),
    "gloo": (
        dict(facts={"unseen.gloo": "PyTorch"}),
        "communication over gloo, by: PyTorch, on rank 0 (the backends MPI or NCCL)",
    ),
    "tool": (
        dict(facts={"unseen.tool": "/opt/libmpiP.so"}),
        "calls that a tool before the profiler makes itself count as the job's: /opt/libmpiP.so, "
        "on rank 0",
    ),
    "nccl": (
        dict(facts={"nccl.unknown_operation": "ncclFoo"}),
        "an NCCL operation that this version does not know: ncclFoo, on rank 0 (a newer commprof)",
    ),
    "graphs": (
        dict(facts={"gpu.unseen_graph_launches": "3"}),
        "3 graph launches of CUDA left no record, on rank 0",
    ),
}


@pytest.fixture
def seen(report, tmp_path):
    """The line Seen of summary, in one piece."""

    def ask(ranks: list[planted.Rank], form=planted.write_databases) -> str:
        lines = report(
            "summary", form(tmp_path / f"run-{len(list(tmp_path.iterdir()))}", ranks)
        ).out.splitlines()
        (first,) = [place for place, line in enumerate(lines) if line.startswith("Seen ")]
        last = next(
            (place for place in range(first + 1, len(lines)) if not lines[place].startswith(" ")),
            len(lines),
        )
        return " ".join(" ".join(lines[first:last]).split())[len("Seen ") :]

    return ask


@pytest.mark.parametrize("reason", UNSEEN)
def test_each_reason_is_named_with_its_size_and_the_way_out(seen, reason):
    fields, said = UNSEEN[reason]
    assert seen(ranks_with(**fields)).startswith(f"not all: {said}")


@pytest.mark.parametrize("form", (planted.write_databases, planted.write_ledgers))
def test_of_a_run_that_was_seen_whole_nothing_is_said(seen, form):
    assert seen(planted.training_run(), form) == "all calls"


def test_a_running_job_has_been_seen_so_far(seen):
    ranks = planted.training_run()
    ranks[2].ended, ranks[2].end_unix_ns = "running", 0
    assert seen(ranks, planted.write_ledgers) == "all calls so far"


def test_what_is_counted_but_not_apart_is_no_loss(seen, report, tmp_path):
    ranks = ranks_with(folded_cells=2, facts={"region_refused": "epoch/4096"})
    assert seen(ranks) == "all calls"
    rows = report("seen", planted.write_databases(tmp_path / "folded", ranks), "--json").rows
    assert [of(row, "reason effect amount detail") for row in rows] == [
        ("cells", "merged", 2, ""),
        ("regions", "merged", None, "epoch/4096"),
    ]


def test_ranks_that_are_not_there_are_counted(seen):
    assert seen(planted.training_run()[:3]).startswith("not all: 1 rank not read or not profiled")
    chosen = planted.training_run()[:2]
    for rank in chosen:
        rank.facts = {**rank.facts, "settings.COMMPROF_RANKS": "0-1"}
    assert (
        seen(chosen)
        == "not all: 2 ranks not profiled: COMMPROF_RANKS=0-1 (run without COMMPROF_RANKS)"
    )


def test_spawned_processes_with_a_profile_beside_the_run_are_seen(report, tmp_path):
    run = planted.write_databases(
        tmp_path / "run", ranks_with(communicator=inter("MPI_Comm_spawn", 4))
    )
    assert report("seen", run, "--json").rows[0]["amount"] == 4
    planted.write_databases(run / "spawned-1-of-4", planted.training_run())
    assert report("seen", run, "--json").rows == []
    assert report("merge", run, tmp_path / "all.db").status == 0  # which has no folder beside it
    assert report("seen", tmp_path / "all.db").out == "Seen            all calls\n"


def test_of_a_damaged_ledger_not_all_was_seen(report, ledger_folder):
    path = ledger_folder / "rank-0.ledger"
    path.write_bytes(path.read_bytes()[:-100_000])
    (row,) = report("seen", ledger_folder, "--json").rows
    assert (row["reason"], row["ranks"]) == ("damaged", "0")


def test_summary_json_says_the_same(report, tmp_path):
    run = planted.write_databases(tmp_path / "run", ranks_with(dropped_calls=3))
    (row,) = report("summary", run, "--json").rows
    assert of(row, "is_all_seen seen") == (
        0,
        "not all: 3 calls dropped: the ledger was full, on rank 0 (commprof-run --memory 256M)",
    )
    assert (
        report(
            "summary", planted.write_databases(tmp_path / "whole", planted.training_run()), "--json"
        ).rows[0]["is_all_seen"]
        == 1
    )


def test_one_rank_that_waits_for_processes_without_a_profile_is_not_called_alone(report, tmp_path):
    rank = planted.Rank(0, 1, facts=planted.facts_of(0), communicators=[inter("MPI_Comm_spawn", 2)])
    rank.cells = [planted.Cell("MPI_Bcast", 400, [7 * SECOND], communicator=9)]
    out = " ".join(report("summary", planted.write_databases(tmp_path / "run", [rank])).out.split())
    assert "Who is late is not known: 1 of 3 processes that communicate was read." in out
    alone = planted.Rank(
        0,
        1,
        facts=planted.facts_of(0),
        cells=[planted.Cell("MPI_Bcast", 400, [7 * SECOND], communicator=0)],
    )
    assert (
        "One rank: there is nobody to wait for."
        in report("summary", planted.write_databases(tmp_path / "alone", [alone])).out
    )
