"""Latency curves: how long one call on the communicators of one family takes, by exact message
size, and how well that is known. If single calls are split into waiting and transfer, a curve is
that of the transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..base.arrays import np
from ..base.bins import pow2
from ..base.columns import NONE, Groups, grouped
from ..base.gather import gathered
from ..base.thresholds import threshold, whole
from ..base.query import Row
from ..late.sums import Sums

KNEE = threshold("advice.knee")
FEWEST = whole("advice.observations")
# how long such a call lasts depends on when another rank made its own
WITHOUT_CURVE = ("sender", "peer", "root-first", "root-last")
Split = tuple[int, float, float]


class Point(NamedTuple):
    """One size."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: float  # collectives, or messages; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    sampled: int  # calls that were split
    waiting: float | None  # the share of it in their time; None: no call is split


class Knee(NamedTuple):
    """The size from which on a byte costs little more than at best."""

    bytes: int
    ns_per_byte: float


class Curve(NamedTuple):
    """ranks: of all communicators of the family. is_blocked: its times are those for which ranks
    are blocked by operations in flight."""

    call: str
    is_blocked: bool
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


def waiting(points: Sequence[Point]) -> float | None:
    """The share of waiting in the time of some sizes of a curve; None: it is not known."""
    total_ns = sum(point.total_ns for point in points)
    spent_ns = [point.total_ns * point.waiting for point in points if point.waiting is not None]
    return sum(spent_ns) / total_ns if total_ns and len(spent_ns) == len(points) else None


def has_curve(row: Row) -> bool:
    """All ranks agree on its size, and nothing but the size decides how long it takes."""
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    return is_one_size and row.bandwidth_bytes is not None and row.waits_for not in WITHOUT_CURVE


def splits_of(sums: Sums, families: Mapping[str, int]) -> dict[tuple[str, int, int], Split]:
    """By call, number of the family, and bytes: the sampled calls, the median of their transfer,
    and the share of waiting. Waits on other communicators are left out."""
    waits, texts = sums.chosen, sums.texts.texts
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
    first = rows[0]
    ranks_of_each = ranks / len(identities) if first.family == "collective" else 1
    points = []
    for row in rows:
        sampled, p50_ns, share = splits.get(row.bytes_low, (0, row.p50_ns, None))
        points.append(
            Point(
                row.bytes_low, row.bandwidth_bytes or 0.0, row.count,
                (sampled or row.count) / ranks_of_each, row.total_ns, p50_ns, sampled, share,
            )
        )
    own = [each for each in points if each.sampled] or points
    return Curve(first.call, first.measure == "completion", identities, ranks, own)
