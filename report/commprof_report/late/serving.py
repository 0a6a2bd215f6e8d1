"""Ranks that serve the others: they gather results, or answer requests. The others wait for them
while they move data, which is no lateness; they are late only if they are outside MPI for longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean

from ..base.field import Row
from ..base.thresholds import threshold
from .timelines import FILES, OUTSIDE, TRANSFER, Lines
from .verdict import Blame, Named

MORE = threshold("late.serving")


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
    """Whether these ranks make far more calls with others than the rest, and are later than the
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
    if not own_calls or own_calls < MORE * others_calls:
        return False
    transfer_ns, outside_ns = (
        fmean(sum(spent_ns[rank][state] for state in states) for rank in own)
        - fmean(sum(spent_ns[rank][state] for state in states) for rank in others)
        for states in ((TRANSFER,), (OUTSIDE, FILES))
    )
    return transfer_ns > max(0.0, outside_ns)
