"""Curves of nonblocking and persistent collectives in which all ranks wait for all.

Operations in flight together share their time, and the program computes beside them: how long they
last says nothing about their size. But those that ranks are blocked by nearly all the time, one
after the other, last as blocking calls do, from their start to their completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.arrays import np
from ..base.columns import NONE, Flags, Groups
from ..base.thresholds import threshold
from ..calls.by_size import SizeRow
from ..late.collectives import ALL, as_blocking
from ..late.late_ranks import Late
from ..late.waits import Waits
from .curve_waits import CurveWaitRow, curve_waits
from .curves import Curve, Point, curves_by_place

LITTLE = threshold("advice.overlap")


def is_blocked(blocked_ns: int, completion_ns: int) -> bool:
    return blocked_ns >= (1 - LITTLE) * completion_ns


def operation_curves(
    late: Late, completed: Sequence[SizeRow], families: Mapping[str, int]
) -> list[Curve]:
    """families: as for curves()."""
    found: dict[tuple, list[CurveWaitRow]] = {}
    sums = late.stages.sums
    for wait in curve_waits(_one_by_one(late), sums.texts, families, {}, sums.chosen):
        found.setdefault((wait.call, wait.family, wait.bytes), []).append(wait)
    kinds: dict[tuple, dict[int | None, list[SizeRow]]] = {}
    for row in completed:
        kind = (row.call, families[row.identity], row.memory_kind)
        kinds.setdefault(kind, {}).setdefault(row.bytes_high, []).append(row)
    return [
        curve
        for (call, family, memory_kind), sizes in kinds.items()
        for curve in _curves(
            call, memory_kind,
            [(rows, found.get((call, family, size), [])) for size, rows in sizes.items()],
        )
    ]


def _curves(
    call: str, memory_kind: str, sizes: Sequence[tuple[list[SizeRow], list[CurveWaitRow]]]
) -> list[Curve]:
    points = [
        (blocked_point(rows, 1), waits) for rows, waits in sizes
        if waits and is_blocked(
            sum(row.blocked_ns for row in rows), sum(row.total_ns for row in rows)
        )
    ]
    points.sort(key=lambda each: each[0].bytes)
    identities = tuple(sorted({row.identity for rows, _ in sizes for row in rows}))
    ranks = len({rank for _, waits in sizes for wait in waits for rank in wait.ranks})
    curve = Curve(call, "", "", True, identities, memory_kind, ranks, [], is_completion=True)
    return curves_by_place(curve, points)


def blocked_point(rows: Sequence[SizeRow], ranks: int) -> Point:
    """How long ranks are blocked by operations of one size."""
    size, count = rows[0].bytes_high or 0, sum(row.count for row in rows)
    blocked_ns = sum(row.blocked_ns for row in rows)
    return Point(
        size, size, count, count // ranks, blocked_ns, blocked_ns / max(1, count), 0.0, None
    )


def _one_by_one(late: Late) -> Waits:
    """The operations in which all wait for all, without those during which their rank had others in
    flight."""
    split = late.stages.split.of_all
    rows, start_ns = split.recorded.collectives, split.recorded.start_ns
    groups = Groups(rows.identity, rows.sequence)
    is_whole = groups.spread(groups.min(rows.completed_ns) != NONE)
    own = is_whole & ~rows.is_blocking & ~rows.is_nccl & (rows.kind == split.texts.number(ALL))
    waits = as_blocking(rows.take(own), start_ns[own])
    return waits.take(_is_alone(waits))


def _is_alone(waits: Waits) -> Flags:
    order = np.lexsort((waits.start_ns, waits.world_rank))
    rank, start_ns = waits.world_rank[order], waits.start_ns[order]
    ranks = Groups(rank)
    found = np.empty(len(waits), bool)
    for first, end in zip(ranks.first.tolist(), (ranks.first + ranks.counts).tolist()):
        begins, ends = start_ns[first:end], waits.end_ns[order[first:end]]
        latest = np.maximum.accumulate(ends)
        is_after = np.append(True, begins[1:] >= latest[:-1])
        found[order[first:end]] = is_after & np.append(is_after[1:], True)
    return found
