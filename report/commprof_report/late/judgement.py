"""The verdict on a run's waiting in one row: what may be said of what verdict.py and marks.py
found. docs/SCHEMA.md defines the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from enum import Enum
from sqlite3 import Connection
from statistics import fmean
from typing import Any

from ..base import query, units
from ..base.field import Row
from ..base.gather import gathered
from ..base.present import present
from ..base.thresholds import threshold
from ..run.holes import holes
from .marks import Last
from .sums import HeldUp
from .timelines import FILES, OUTSIDE, TRANSFER, Lines
from .verdict import (
    COVERED,
    FEWEST_BLOCKS,
    FEWEST_TRANSFERS,
    MAJORITY,
    NEGOTIATED,
    NOTABLE,
    Blame,
    Named,
)

SQL = query.beside(__file__)


class Kind(Enum):
    """A verdict's; docs/SCHEMA.md defines them."""

    NONE = "none"
    UNKNOWN = "unknown"
    LITTLE = "little"
    TRANSFER = "transfer"
    IMBALANCE = "imbalance"
    MOSTLY = "mostly"
    BY_CALL = "by-call"
    SPREAD = "spread"
    MARKS = "marks"

    def __str__(self) -> str:
        return self.value


NAMING = Kind.IMBALANCE, Kind.MOSTLY
Chain = tuple[float, Sequence[int]]  # sums.chain
Judged = dict[str, Any]  # columns of late's answer (columns.py): those of late_* that are known


def notable_ns(counted: Row) -> float:
    return max(1.0, NOTABLE * counted.counted_ns / max(1, counted.ranks))


def is_notable(gain_ns: float, counted: Row) -> bool:
    return gain_ns >= notable_ns(counted)


def judged(
    counted: Row, negotiated_share: float, unknown_ns: int, found: Blame, blocks: int,
    sooner_ns: int,
) -> tuple[Kind, Named | None]:
    """The verdict, and the ranks that it names: only if another rank could be done notably
    sooner."""
    kind, named = verdict_of(counted, negotiated_share, unknown_ns, found, blocks), found.named
    if not (named and named.is_measurable and is_notable(sooner_ns, counted)):
        return Kind.SPREAD if kind in NAMING else kind, None
    return kind, named if kind in (Kind.TRANSFER, *NAMING) else None


def naming(
    named: Named, chain: Chain, gain_ns: int, played_share: float, progress: float
) -> Judged:
    """gain_ns: of the run, seen in played_share of it. progress: progress_share."""
    direct_share, through = chain
    return dict(
        late_ranks=units.Ranks(named.ranks),
        late_share=named.share,
        late_others_share=named.others_share,
        late_direct_share=direct_share,
        late_through=units.Ranks(through) if through else None,
        late_progress_share=progress,
        late_gain_ns=gain_ns if played_share else None,
        late_gain_share=played_share,
        late_p=named.p,
    )


def judged_at_marks(last: Last) -> Judged:
    """The verdict on threads that negotiate: who comes last to a mark of the main thread."""
    nobody = dict(
        verdict=Kind.MARKS,
        late_p=last.p,
        late_mark=last.region or "commprof_step",
        late_mark_steps=last.judged,
        late_mark_lead_ns=last.lead_ns,
        blocks=last.blocks,
    )
    if not last.ranks:
        return nobody
    return dict(
        nobody,
        late_ranks=units.Ranks(last.ranks),
        late_share=last.share,
        late_others_share=1 - last.share,
        late_gain_ns=last.gain_ns,
        late_mark_times=last.times,
    )


def progress_share(
    ranks: Container[int], held_up: HeldUp, rows: Sequence[Row]
) -> float:
    """The share of the waiting for these ranks that is for their progress in operations that they
    have begun."""
    whole_ns = sum(row.cost_ns for row in rows if row.rank in ranks)
    return sum(ns for (rank, _), ns in held_up.items() if rank in ranks) / (whole_ns or 1)


def late_region(connection: Connection, ranks: Container[int]) -> str | None:
    """The region in which these ranks are longer than the others, outside MPI; None if most of that
    is not in one region, or spans of regions may be missing."""
    rows = () if holes(connection) else SQL.run(connection, "late_regions")
    by_region = gathered((name, (rank in ranks, ns)) for rank, name, ns in rows)
    longer = {}
    for name, spent in by_region.items():
        others, own = ([ns for is_own, ns in spent if is_own == each] for each in (False, True))
        longer[name] = max(0.0, fmean(own or [0.0]) - fmean(others or [0.0]))
    longest = max(longer, key=longer.__getitem__, default="")
    return longest if longer.get(longest, 0.0) > MAJORITY * sum(longer.values()) else None


def without(
    found: Blame, are_excused: Callable[[Named], bool]
) -> tuple[Blame, Named | None]:
    """The rest of the blame, and the ranks of the run that would be named. One late rank
    in single calls is no different ranks in different calls."""
    if found.named and are_excused(found.named):
        return found._replace(named=None), found.named
    calls = [each for each in found.calls if not are_excused(each.named)]
    if len(calls) < len(found.calls) and len({each.named.ranks for each in calls}) < 2:
        calls = []
    return found._replace(calls=calls), None


def is_serving(
    rows: Sequence[Row], lines: Lines, ranks: Collection[int]
) -> bool:
    """Whether these ranks serve the others: they gather results, or answer requests. The others
    wait for them while they move data, which is no lateness; they are late only if they are outside
    MPI for longer. They make far more calls with others than the rest, and are later than the
    rest by the transfer of these, not by time outside MPI or in files."""
    calls = {row.rank: row.message_calls for row in rows}
    spent = {rank: line.sums[-1].tolist() for rank, line in lines.items()}
    return is_by_transfer(calls, spent, ranks)


def is_by_transfer(
    calls: Mapping[int, float], spent_ns: Mapping[int, Sequence[int]], ranks: Collection[int]
) -> bool:
    """calls: with messages. spent_ns: in each state."""
    others = [rank for rank in calls if rank not in ranks and rank in spent_ns]
    own = [rank for rank in calls if rank in ranks and rank in spent_ns]
    if not own or not others:
        return False
    own_calls, others_calls = (fmean(calls[rank] for rank in part) for part in (own, others))
    if not own_calls or own_calls < threshold("late.serving") * others_calls:
        return False
    transfer_ns, outside_ns = (
        fmean(sum(spent_ns[rank][state] for state in states) for rank in own)
        - fmean(sum(spent_ns[rank][state] for state in states) for rank in others)
        for states in ((TRANSFER,), (OUTSIDE, FILES))
    )
    return transfer_ns > max(0.0, outside_ns)


def is_few_transfers(calls: int, sampled_share: float | None) -> bool:
    """Few calls stand for most of the transfer, because most of the time was not sampled."""
    return (sampled_share or 0.0) < COVERED and calls < FEWEST_TRANSFERS


def verdict_of(
    counted: Row, negotiated_share: float, unknown_ns: int, found: Blame, blocks: int
) -> Kind:
    split_ns = counted.wait_ns + counted.transfer_ns
    if not split_ns:
        return Kind.NONE
    if negotiated_share >= NEGOTIATED or present(counted.coverage) < COVERED:
        return Kind.UNKNOWN
    if counted.wait_ns < NOTABLE * counted.counted_ns > counted.transfer_ns:
        return Kind.LITTLE
    if counted.wait_ns < max(counted.transfer_ns, NOTABLE * counted.counted_ns):
        is_few = is_few_transfers(counted.transfer_calls, counted.sampled_share)
        return Kind.UNKNOWN if is_few else Kind.TRANSFER
    if blocks < FEWEST_BLOCKS:
        return Kind.UNKNOWN
    if found.named:
        return Kind.MOSTLY if found.named.is_mostly else Kind.IMBALANCE
    if found.calls:
        return Kind.BY_CALL
    return Kind.SPREAD if unknown_ns < COVERED * counted.wait_ns else Kind.UNKNOWN
