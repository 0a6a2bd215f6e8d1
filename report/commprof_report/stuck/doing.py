"""The doings of ranks, now or at their last sign of life: in words, as sums of their calls up to
now, and which of them have not handed over tensors that others offer in a negotiation.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection

from ..base import Row, by, gathered, present, query, units
from ..base.summarize import View, summarize, total
from ..calls.parts import rank_rows
from ..calls.views import is_call, is_device, is_in_mpi, is_working
from ..run import cells_of
from ..run.ledger_format import PEER_ANY, PEER_OUTSIDE
from ..run.process import CUT_OFF

ENDS = {  # by state
    "finalize": "reached MPI_Finalize",
    "end": "ended",
    "killed": CUT_OFF,
    "exit": "left without MPI_Finalize",
    "abort": "called MPI_Abort",
    "snapshot": "left a snapshot",
}
# in these states the last call lasted until the last known time
SURE_OF_TIME = ("running", "snapshot", "exit", "abort")


# Ranks with the same description. place: the call that they are in or returned from, without times.
Group = namedtuple("Group", "state ranks place names")


def groups(ranks: Sequence[Row], states: Sequence[str]) -> list[Group]:
    """Groups of ranks, in the order of the states, then of the lowest rank."""
    found = by(ranks, lambda rank: (rank.state, rank.abort_code, place_text(rank)))
    made = [
        Group(state, own, place, units.rank_names([rank.rank for rank in own]))
        for (state, _, place), own in found.items()
        if state in states
    ]
    return sorted(made, key=lambda group: (states.index(group.state), group.ranks[0].rank))


def place_text(rank: Row) -> str:
    """in MPI_Recv (4 KiB from rank 1, tag 7) on MPI_COMM_WORLD; outside MPI since MPI_Bcast."""
    if rank.doing_call is None:
        return "before its first call of MPI"
    if not rank.doing_is_inside:
        return (
            f"outside {'NCCL' if rank.doing_call.startswith('nccl') else 'MPI'} after "
            f"{rank.doing_call}"
        )
    return "in " + call_text(rank)


def call_text(rank: Row) -> str:
    """MPI_Wait for MPI_Irecv (4 KiB from rank 1) on MPI_COMM_WORLD. The rank is in a call."""
    call = present(rank.doing_call)
    name = call + (f" for {rank.doing_request_call}" if rank.doing_request_call else "")
    what = [units.size(rank.doing_bytes)] if rank.doing_bytes else []
    what += (
        [peer_text(rank.doing_request_call or call, rank.doing_peer)]
        if rank.doing_peer is not None
        else []
    )
    details = [" ".join(what)] if what else []
    details += (
        [f"tag {rank.doing_tag}"] if rank.doing_tag is not None and rank.doing_tag >= 0 else []
    )
    where = f" on {units.shortened(rank.doing_communicator, 32)}" if rank.doing_communicator else ""
    return name + (f" ({', '.join(details)})" if details else "") + where


def peer_text(call: str, peer: int) -> str:
    name = {PEER_ANY: "any rank", PEER_OUTSIDE: "another job"}.get(peer, f"rank {peer}")
    short = call.lower()
    if "sendrecv" in short:
        return f"with {name}"
    return f"{'from' if 'recv' in short or 'probe' in short else 'to'} {name}"


def span_text(ranks: Sequence[Row], spans_ns: Sequence[int | None] | None = None) -> str:
    """How long they have been there (or another duration): 12.3 s; 3.10 s to 12.3 s. For killed
    ranks a lower bound, if anything is known."""
    known_ns = [
        span
        for span in ([rank.doing_ns for rank in ranks] if spans_ns is None else spans_ns)
        if span is not None
    ]
    is_sure = all(rank.state in SURE_OF_TIME for rank in ranks)
    if not known_ns or not (is_sure or any(known_ns)):
        return ""
    least, most = units.duration(min(known_ns)), units.duration(max(known_ns))
    span = least if least == most else f"{least} to {most}"
    return f", for {span}" + ("" if is_sure else " or more")


SQL = query.beside(__file__)


class Unhanded(
    namedtuple("Unhanded", "communicator identity behind waiting tensors since_unix_ns waited_ns")
):
    """Ranks `waiting` have handed over tensors that `behind` have not; if all ranks wait, for other
    tensors each, none is behind. tensors: the most that one of them waits for; since then, and for
    so long, all of them do."""

    @property
    def text(self) -> str:
        """ranks 0,2 have waited 3.2 s for 28 tensors that rank 1 has not handed over"""
        waits, hands = (units.agreeing("have", len(ranks)) for ranks in (self.waiting, self.behind))
        what = units.counted(self.tensors, "tensor") if self.tensors else "tensors"
        whom = units.rank_names(self.behind) if self.behind else "others"
        return (
            f"{units.rank_names(self.waiting)} {waits} waited {units.duration(self.waited_ns)} for "
            f"{what} that {whom} {hands} not handed over"
        )


def negotiating_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "negotiating"))


def unhanded(connection: Connection, after_ns: int) -> list[Unhanded]:
    """On each communicator where a rank has waited for at least so long."""
    found = []
    open_rows = [row for row in negotiating_rows(connection) if row.is_open]
    for identity, rows in groupby(open_rows, attrgetter("identity")):
        ranks = list(rows)
        waiting = [row for row in ranks if row.waited_ns is not None]
        if not waiting or max(present(row.waited_ns) for row in waiting) < after_ns:
            continue
        found.append(
            Unhanded(
                ranks[0].communicator,
                identity,
                sorted({row.rank for row in ranks} - {row.rank for row in waiting}),
                sorted({row.rank for row in waiting}),
                max(row.tensors for row in waiting),
                min(present(row.since_unix_ns) for row in waiting),
                max(present(row.waited_ns) for row in waiting),
            )
        )
    return found


# Sums over the threads of a rank; time in MPI, and in collectives, is that of the thread with the
# most, with the call that it is in. NCCL's operations have the time on the device. GPUs: the time
# that is summed up, and the part of it in which something ran, over the rank's devices.
Amounts = namedtuple(
    "Amounts", "wall_ns count volume_bytes device_ns mpi_ns collective_ns traced_ns busy_ns"
)
THREADS = View(
    "LiveRow",
    ("world_rank", "thread"),
    {
        "rank": "world_rank",
        "thread": "thread",
        "count": total("count", is_call),
        "volume_bytes": total("volume_bytes", is_call),
        "device_ns": total("total_ns", is_device),
        "mpi_ns": total("total_ns", is_in_mpi),
        "collective_ns": total(
            "total_ns", lambda cells: is_in_mpi(cells) & cells.is_in("family", "collective")
        ),
    },
    lambda groups: (groups.world_rank, groups.thread),
    where=is_working,
)


def live_rows(connection: Connection) -> list[tuple[Row, Amounts]]:
    """Ranks, as in rank_rows."""
    threads = {row[:2]: [*row[2:]] for row in summarize(cells_of(connection), THREADS)}
    for rank, thread, is_collective, ns in SQL.run(connection, "live"):
        own = threads.setdefault((rank, thread), [0] * 5)
        own[3:] = own[3] + ns, own[4] + ns * is_collective
    of_ranks = gathered((rank, own) for (rank, _), own in threads.items())
    gpus = {rank: times for rank, *times in SQL.run(connection, "live_gpus")}
    found = []
    for row in rank_rows(connection):
        *sums, mpi_ns, collective_ns = zip(*of_ranks.get(row.rank, [[0] * 5]))
        in_mpi = max(mpi_ns), max(collective_ns)
        amounts = row.wall_ns or 0, *map(sum, sums), *in_mpi, *gpus.get(row.rank, (0, 0))
        found.append((row, Amounts(*amounts)))
    return found
