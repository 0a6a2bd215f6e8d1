"""Describes in words what ranks are doing, or were doing at their last sign of life."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from ..base.gather import gathered
from ..base.present import present
from ..base.query import Row
from ..run.ledger_format import PEER_ANY, PEER_OUTSIDE

# in these states the last call lasted until the last known time
SURE_OF_TIME = ("running", "snapshot", "exit", "abort")


class Group(NamedTuple):
    """Ranks with the same description."""

    state: str
    ranks: list[Row]
    place: str  # the call that they are in or returned from, without times

    @property
    def names(self) -> str:
        return units.rank_names([rank.rank for rank in self.ranks])


def groups(ranks: Sequence[Row], states: Sequence[str]) -> list[Group]:
    """Groups of ranks, in the order of the states, then of the lowest rank."""
    found = gathered(
        ((rank.state, rank.abort_code, place_text(rank)), rank) for rank in ranks
        if rank.state in states
    )
    made = [Group(state, members, place) for (state, _, place), members in found.items()]
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
        if rank.doing_peer is not None else []
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
        span for span in ([rank.doing_ns for rank in ranks] if spans_ns is None else spans_ns)
        if span is not None
    ]
    is_sure = all(rank.state in SURE_OF_TIME for rank in ranks)
    if not known_ns or not (is_sure or any(known_ns)):
        return ""
    least, most = units.duration(min(known_ns)), units.duration(max(known_ns))
    span = least if least == most else f"{least} to {most}"
    return f", for {span}" + ("" if is_sure else " or more")
