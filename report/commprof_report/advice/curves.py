"""Latency curves: how long one Allreduce on the communicators of a family takes, by exact message
size. If single calls are split into waiting and transfer, a curve is that of the transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..base.columns import NONE, Groups, grouped, np
from ..base.bins import pow2
from ..base.gather import gathered
from ..base.thresholds import threshold, whole
from ..base.query import Row
from ..calls.views import operation
from ..late.sums import Sums
from .gain import Spans

KNEE = threshold("advice.knee")
FEWEST = whole("advice.observations")
Split = tuple[int, float, float]


class Point(NamedTuple):
    """One size."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: float  # collectives; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    sampled: int  # calls that were split
    waiting: float | None  # the share of it in their time; None: no call is split


class Knee(NamedTuple):
    """The size from which on a byte costs little more than at best."""

    bytes: int
    ns_per_byte: float


class Curve(NamedTuple):
    """ranks: of all communicators of the family."""

    call: str
    identities: Sequence[str]
    ranks: int
    points: list[Point]  # by size

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is at most KNEE times the best seen. Sizes of
        one power of two (a framework's fused messages have many) are taken together; null: no two
        bins have observations enough, or the clock does not resolve them."""
        bins = gathered((pow2(point.bytes, False), point) for point in self.points)
        judged = [
            Knee(points[0].bytes, _ns_per_byte(points)) for points in bins.values()
            if sum(point.observations for point in points) >= FEWEST
        ]
        best = min((each.ns_per_byte for each in judged), default=0.0)
        if len(judged) < 2 or not best:
            return None
        return next(each for each in judged if each.ns_per_byte <= KNEE * best)


def _ns_per_byte(points: Sequence[Point]) -> float:
    ns = sum(point.count * point.p50_ns for point in points)
    return ns / sum(point.count * point.moved_bytes for point in points)


def spans_of(points: Sequence[Point], share: float = 1.0) -> Spans:
    """This share of the calls of some sizes of a curve."""
    total_ns = sum(point.total_ns for point in points)
    waits_ns = [point.total_ns * point.waiting for point in points if point.waiting is not None]
    is_known = total_ns > 0 and len(waits_ns) == len(points)
    return Spans(
        share * total_ns, sum(waits_ns) / total_ns if is_known else None,
        share * sum(point.count * point.p50_ns for point in points),
    )


def has_curve(row: Row) -> bool:
    """All ranks agree on its size."""
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    return is_one_size and row.bandwidth_bytes is not None and operation(row.call) == "allreduce"


def splits_of(sums: Sums, families: Mapping[str, int]) -> dict[tuple[str, int, int], Split]:
    """By call, number of the family, and bytes: the sampled calls, the median of their transfer,
    and the share of waiting. Waits on other communicators are left out."""
    waits, texts = sums.waits, sums.texts.texts
    family = np.array([*(families.get(text, NONE) for text in texts), NONE])[waits.identity]
    own = (waits.completion == NONE) & (family != NONE)
    waits, family = waits.take(own), family[own]
    order, _ = grouped(waits.call, family, waits.bytes, waits.transfer_ns)
    waits, family = waits.take(order), family[order]
    groups = Groups(waits.call, family, waits.bytes)
    first, all_ns = groups.first, groups.sum(waits.wait_ns + waits.transfer_ns)
    columns = (
        waits.call[first], family[first], waits.bytes[first], groups.counts,
        waits.transfer_ns[first + (groups.counts - 1) // 2],
        groups.sum(waits.wait_ns) / np.maximum(1, all_ns),
    )
    return {
        (texts[call], number, size): tuple(rest)
        for call, number, size, *rest in zip(*(column.tolist() for column in columns))
    }


def curve(
    rows: Sequence[Row], splits: Mapping[int, Split], identities: Sequence[str], ranks: int
) -> Curve:
    """rows: sizes of one call. Without the sizes of which no call is split, if some are."""
    ranks_of_each, points = ranks / len(identities), []
    for row in rows:
        sampled, p50_ns, share = splits.get(row.bytes_low, (0, row.p50_ns, None))
        points.append(
            Point(
                row.bytes_low, row.bandwidth_bytes or 0.0, row.count,
                (sampled or row.count) / ranks_of_each, row.total_ns, p50_ns, sampled, share,
            )
        )
    return Curve(rows[0].call, identities, ranks, [p for p in points if p.sampled] or points)
