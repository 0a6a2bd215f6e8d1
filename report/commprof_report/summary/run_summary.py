"""The run in one row: the figures of `summary` and of the top of the HTML page."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Sequence
from sqlite3 import Connection
from statistics import fmean
from types import SimpleNamespace

from ..base import Row, units
from ..calls import (
    CALLS,
    CONTROL,
    MEMORY_KINDS,
    busiest_threads,
    of_nccl,
    peer_rows,
    rank_rows,
)
from ..gpu.gpu_activity import TO_AND_FROM, activity_rows
from ..late.late_ranks import Late
from ..retime.graph import Efficiency
from ..run import (
    Run,
    fact_rows,
    missing,
    seen_rows,
    seen_text,
    sentence,
    traffic_classify,
    view_rows,
)
from ..run.crowding import crowding

STATES = {
    "running": "running",
    "killed": "killed",
    "running or killed": "running_or_killed",
    "exit": "exited",
    "abort": "aborted",
}


class SummaryRow(SimpleNamespace):
    """The figures of the run (docs/SCHEMA.md), in the order in which --csv has them."""

    @property
    def has_nccl(self) -> bool:
        return self.nccl_count > 0 or self.nccl_device_count > 0 or self.nccl_setup_ns > 0


# The summary and the answers from which it is computed. negotiated: empty if no thread negotiates.
RunSummary = namedtuple("RunSummary", "summary calls ranks peers facts seen negotiated late")


def run_summary(run: Run, late: Late | None = None) -> RunSummary:
    """`late`: the same run's analysis of waiting. Without it all else is known, and the fields
    about waiting are None."""
    calls = view_rows(run.connection, CALLS)
    ranks = rank_rows(run.connection)
    peers = peer_rows(run.connection)
    facts = fact_rows(run.connection)
    seen = seen_rows(run.connection)
    negotiated = negotiated_rows(run.connection, ranks)
    summary = SummaryRow(
        **_provenance(run, ranks, facts),
        **_shares(ranks),
        **_negotiated_shares(ranks, negotiated),
        **_calls(calls),
        **_waiting(late),
        **_peers(peers),
        **_own_account(ranks),
        is_all_seen=int(not missing(seen)),
        seen=seen_text(seen, not any(rank.state.startswith("running") for rank in ranks)),
        **_nccl(calls, ranks, facts),
        **_memory_kinds(run),
        **_cores(run, ranks),
    )
    return RunSummary(summary, calls, ranks, peers, facts, seen, negotiated, late)


def _provenance(run: Run, ranks: Sequence[Row], facts: Sequence) -> dict:
    first = {fact.key: fact.value for fact in reversed(facts)}

    def known(*keys: str) -> dict[str, str]:
        return {key: first.get(key, "") for key in keys}

    return {
        "run_id": run.run_id,
        "program": ", ".join(run.programs),
        **known("command_line"),
        "start_unix_ns": min(rank.start_unix_ns for rank in ranks),
        "hosts": units.Listed(sorted({rank.host for rank in ranks if rank.host})),
        "world_size": run.world_size,
        "ranks_read": len(ranks),
        "missing_ranks": sum(map(len, run.missing)),
        "profiled_ranks": run.profiled.setting if run.profiled else "",
        "early_ended_ranks": sum(
            rank.state not in ("finalize", "end", "running", "snapshot") for rank in ranks
        ),
        **{
            key: units.rank_list([rank.rank for rank in ranks if rank.state == state])
            for state, key in STATES.items()
        },
        **known("mpi_library", "mpi_version", "mpi_abi", "launcher", "launcher_size"),
        "thread_level": ranks[0].thread_level,
        **known("clock", "commprof_version"),
    }


def _shares(ranks: Sequence[Row]) -> dict:
    """Wall time is the longest rank's; shares are each rank's own, over the time during which its
    calls were counted."""
    timed = {rank.rank: rank.mpi_share for rank in ranks if rank.mpi_share is not None}
    least = min(timed, key=timed.__getitem__, default=None)
    most = max(timed, key=timed.__getitem__, default=None)
    longest = max(ranks, key=lambda rank: rank.wall_ns or 0, default=None)
    return {
        "wall_ns": longest and longest.wall_ns,
        "wall_is_estimate": longest.wall_is_estimate if longest else 0,
        "counted_ns": longest and longest.counted_ns,
        "mpi_share_min": None if least is None else timed[least],
        "mpi_share_min_rank": least,
        "mpi_share_mean": sum(timed.values()) / len(timed) if timed else None,
        "mpi_share_max": None if most is None else timed[most],
        "mpi_share_max_rank": most,
        "mpi_thread_is_main": int(all(rank.mpi_thread_is_main for rank in ranks)),
    }


def negotiated_rows(connection: Connection, ranks: Sequence[Row] = ()) -> list[Row]:
    """Main threads do not negotiate."""
    if all(rank.mpi_thread_is_main for rank in ranks or rank_rows(connection)):
        return []
    traffic_classify(connection)
    threads = set(connection.execute("SELECT world_rank, thread FROM negotiating"))
    busiest = busiest_threads(connection)
    return [
        row
        for row in view_rows(connection, CONTROL)
        if (row.rank, row.thread) in threads and busiest[row.rank].thread == row.thread
    ]


def negotiation_ns(negotiated: Sequence[Row], *keys: str) -> Counter:
    """By rank, or by call, or both."""
    spent_ns: Counter = Counter()
    for row in negotiated:
        spent_ns[tuple(getattr(row, key) for key in keys)] += row.negotiation_ns
    return spent_ns


def negotiation_shares(ranks: Sequence[Row], negotiated: Sequence[Row]) -> dict[int, float]:
    """By rank, of its counted time."""
    spent_ns = negotiation_ns(negotiated, "rank")
    timed = [rank for rank in ranks if rank.mpi_share is not None]
    return {rank.rank: spent_ns[rank.rank,] / rank.counted_ns for rank in timed}


def _negotiated_shares(ranks: Sequence[Row], negotiated: Sequence[Row]) -> dict:
    shares = negotiation_shares(ranks, negotiated) if negotiated else {}
    data = [rank.mpi_share - shares[rank.rank] for rank in ranks if rank.rank in shares]
    return {
        "data_share_mean": fmean(data) if data else None,
        "negotiation_share_mean": fmean(shares.values()) if shares else None,
    }


def communicating(calls: Sequence[Row]) -> list[Row]:
    """The calls that count as time in MPI: all except MPI_Init, MPI_Finalize and the like, and
    except NCCL's."""
    return [call for call in calls if call.library == "mpi" and call.family != "setup"]


def negotiation_apart(rows: Sequence[Row], negotiated: Sequence[Row], *keys: str) -> list[Row]:
    """Calls, of all ranks or each, by these keys, with their negotiation in rows of its own; those
    with most time first."""
    spent_ns = negotiation_ns(negotiated, *keys)

    def part(row: Row, name: str, total_ns: int) -> Row:
        share = getattr(row, "share_of_wall", None)
        known = {"share_of_wall": share * total_ns / row.total_ns} if share else {}
        return row._replace(call=name, total_ns=total_ns, **known)

    found = ((row, spent_ns[tuple(getattr(row, key) for key in keys)]) for row in rows)
    parts = [
        part(row, name, ns)
        for row, control_ns in found
        for name, ns in (
            (row.call, row.total_ns - control_ns),
            (f"{row.call}{units.NEGOTIATION}", control_ns),
        )
        if ns > 0 or name == row.call and not control_ns
    ]
    return sorted(parts, key=lambda row: -row.total_ns)


def _calls(calls: Sequence[Row]) -> dict:
    calls = [call for call in calls if call.library == "mpi"]
    counted = communicating(calls)
    top = counted[0] if counted else None
    completion_ns = sum(call.completion_ns or 0 for call in calls)
    blocked_ns = sum(call.blocked_ns or 0 for call in calls)
    awaited = max(calls, key=lambda call: call.blocked_ns or 0, default=None)
    return {
        "count": sum(call.count for call in calls),
        "volume_bytes": sum(call.volume_bytes for call in calls),
        "total_ns": sum(call.total_ns for call in counted),
        "setup_ns": sum(call.total_ns for call in calls if call.family == "setup"),
        "top_call": top and top.call,
        "top_call_ns": top and top.total_ns,
        "top_call_bytes": top and top.dominating_bytes,
        "completions": sum(call.completions or 0 for call in calls),
        "overlap": max(0.0, 1 - blocked_ns / completion_ns) if completion_ns else None,
        "awaited_call": awaited.call if awaited and awaited.blocked_ns else None,
    }


def _waiting(late: Late | None) -> dict:
    same = (
        "wait_share",
        "late_ranks",
        "late_gain_ns",
        "late_gain_share",
        *Efficiency._fields,
        "efficiency_share",
    )
    return {
        "wait_verdict": late and late.run.verdict,
        "wait_coverage": late and late.run.coverage,
        **{name: late and getattr(late.run, name) for name in same},
    }


def _peers(peers: Sequence[Row]) -> dict:
    top = max(peers, key=lambda pair: pair.bytes, default=None)
    return {
        "sent_count": sum(pair.count for pair in peers),
        "sent_rma_count": sum(pair.rma_count for pair in peers),
        "sent_bytes": sum(pair.bytes for pair in peers),
        "top_sender": top and top.sender,
        "top_receiver": top and top.receiver,
        "top_pair_bytes": top and top.bytes,
    }


def _own_account(ranks: Sequence[Row]) -> dict:
    """The profiler's overhead, over all ranks, and what it could not record."""
    cost_ns = sum(rank.cost_ns for rank in ranks)
    wall_ns = sum(rank.wall_ns or 0 for rank in ranks)
    losses = (
        "dropped_calls",
        "dropped_messages",
        "dropped_completions",
        "untracked_requests",
        "folded_cells",
        "folded_communicators",
    )
    return {
        "cost_ns": cost_ns,
        "cost_share": cost_ns / wall_ns if wall_ns else None,
        **{key: sum(getattr(rank, key) for rank in ranks) for key in losses},
    }


def _cores(run: Run, ranks: Sequence[Row]) -> dict:
    """Crowding is the whole run's; the rest is known if it is of all chosen ranks."""
    found = crowding(run.connection)
    cpu_shares = [rank.cpu_share for rank in ranks if rank.cpu_share is not None]
    switches = {
        key: [getattr(rank, key) for rank in ranks]
        for key in ("voluntary_switches", "involuntary_switches")
    }
    return {
        "crowding": sentence(found) if found else None,
        "crowded_ranks": units.rank_list([rank for crowded in found for rank in crowded.ranks]),
        "cpu_share": sum(cpu_shares) / len(cpu_shares) if cpu_shares else None,
        **{key: None if None in own else sum(own) for key, own in switches.items()},
    }


def _nccl(calls: Sequence[Row], ranks: Sequence[Row], facts: Sequence) -> dict:
    """The calls on the host, which only enqueue operations, and separately the time of the
    operations on the device."""
    captured, timed = of_nccl(calls, "captured"), of_nccl(calls, "device")
    called = of_nccl(calls, "call")
    made = [call for call in called if call.family != "communicator"] + captured
    top = max(timed or made, key=lambda call: call.total_ns, default=None)
    host_ns, counted_ns = (
        sum(call.total_ns for call in made),
        sum(rank.counted_ns for rank in ranks),
    )
    return {
        "nccl_version": next((fact.value for fact in facts if fact.key == "nccl.version"), ""),
        "nccl_count": sum(call.count for call in made),
        "nccl_captured": sum(call.count for call in captured),
        "nccl_volume_bytes": sum(call.volume_bytes for call in made),
        "nccl_host_ns": host_ns,
        "nccl_host_share": host_ns / counted_ns if counted_ns and made else None,
        "nccl_setup_ns": sum(call.total_ns for call in called if call.family == "communicator"),
        "nccl_device_count": sum(call.count for call in timed),
        "nccl_device_ns": sum(call.total_ns for call in timed) if timed else None,
        "top_nccl_call": top and top.call,
        "top_nccl_call_ns": top and top.total_ns,
    }


def _memory_kinds(run: Run) -> dict:
    """Shares of the bytes passed to MPI by memory kind, and the volumes that GPUs copied while they
    were traced."""
    rows = view_rows(run.connection, MEMORY_KINDS)
    volumes = {row.memory_kind: row.volume_bytes for row in rows if row.library == "mpi"}
    whole = sum(volumes.values())
    on_device = sum(
        volume for kind, volume in volumes.items() if kind.partition(">")[0] == "device"
    )
    copied = {row.copy: row.volume_bytes for row in activity_rows(run.connection, TO_AND_FROM)}
    return {
        "device_volume_share": on_device / whole if whole else None,
        "copied_to_host_bytes": copied.get("to host"),
        "copied_to_device_bytes": copied.get("to device"),
    }
