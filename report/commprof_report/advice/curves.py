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


class Split(NamedTuple):
    """Sampled calls of one size. waiting: their share of it."""

    calls: int
    transfer_p50_ns: int
    waiting: float


class Point(NamedTuple):
    """One size."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: float  # collectives, or messages; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    split: Split | None  # None: no call is split


class Bin(NamedTuple):
    """The sizes within a power of two that have observations."""

    points: list[Point]
    observations: float
    ns_per_byte: float


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
    def is_split(self) -> bool:
        """Waiting is known, and no part of the times."""
        return all(point.split is not None for point in self.points)

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is at most KNEE times the best seen. Sizes of
        one power of two (a framework's fused messages have many) are taken together; null: no two
        bins have observations enough, or the clock does not resolve them."""
        judged = [each for each in self._bins() if each.observations >= FEWEST]
        best = min((each.ns_per_byte for each in judged), default=0.0)
        if len(judged) < 2 or not best:
            return None
        first = next(each for each in judged if each.ns_per_byte <= KNEE * best)
        return Knee(first.points[0].bytes, first.ns_per_byte)

    def _bins(self) -> list[Bin]:
        by_bin = gathered((pow2(point.bytes, False), point) for point in self.points)
        return [_bin(points) for points in by_bin.values()]


def _bin(points: list[Point]) -> Bin:
    ns = sum(point.count * point.p50_ns for point in points)
    return Bin(
        points, sum(point.observations for point in points),
        ns / sum(point.count * point.moved_bytes for point in points),
    )


def waiting(points: Sequence[Point]) -> float | None:
    """The share of waiting in the time of some sizes of a curve; None: it is not known."""
    total_ns = sum(point.total_ns for point in points)
    split = [(point.total_ns, point.split.waiting) for point in points if point.split]
    if not total_ns or len(split) < len(points):
        return None
    return sum(ns * share for ns, share in split) / total_ns


def has_curve(row: Row) -> bool:
    """All ranks agree on its size, and nothing but the size decides how long it takes."""
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    return is_one_size and row.bandwidth_bytes is not None and row.waits_for not in WITHOUT_CURVE


def splits_of(sums: Sums, families: Mapping[str, int]) -> dict[tuple[str, int, int], Split]:
    """By call, number of the family, and bytes. Waits on other communicators are left out."""
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
        (texts[call], number, size): Split(*rest)
        for call, number, size, *rest in zip(*(column.tolist() for column in columns))
    }


def curve(
    rows: Sequence[Row], splits: Mapping[int, Split], identities: Sequence[str], ranks: int
) -> Curve:
    """rows: sizes of one call. Without the sizes of which no call is split, if some are."""
    first = rows[0]
    ranks_of_each = ranks / len(identities) if first.family == "collective" else 1
    points = [
        Point(
            row.bytes_low, row.bandwidth_bytes or 0.0, row.count,
            (split.calls if split else row.count) / ranks_of_each, row.total_ns,
            split.transfer_p50_ns if split else row.p50_ns, split,
        )
        for row in rows for split in [splits.get(row.bytes_low)]
    ]
    own = [each for each in points if each.split] or points
    return Curve(first.call, first.measure == "completion", identities, ranks, own)
