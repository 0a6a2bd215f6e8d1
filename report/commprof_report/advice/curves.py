"""Latency curves: how long one call on one communicator takes, by exact message size, and how well that is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from sqlite3 import Connection
from typing import NamedTuple

from ..base.bins import pow2
from ..calls.sizes import SizeBucketRow, SizeRow, size_bucket_rows, size_rows

KNEE = 1.5  # times the best time per byte
FEWEST = 20  # observations of a size that is judged
CONFIDENCE = 2.576  # standard deviations: 99 %
WITHOUT_CURVE = ("sender", "peer")  # the duration of such a call depends on when the other side made its own


class Point(NamedTuple):
    """One size. low_ns and high_ns enclose the median with a confidence of 99 %; null: too few calls to say."""

    bytes: int
    count: int  # over all ranks
    observations: int  # collectives, or messages
    total_ns: int
    mean_ns: float
    p50_ns: float
    low_ns: int | None
    high_ns: float | None
    least_p50_ns: float  # of a rank: the one that came last, where ranks wait for each other
    least_total_ns: int  # of a rank


class Knee(NamedTuple):
    """Where messages are large enough: from this size on a byte costs little more than at best."""

    bytes: int
    ns_per_byte: float


class Curve(NamedTuple):
    call: str
    communicator: str
    identity: str
    memory_kind: str
    ranks: int
    points: list[Point]  # by size

    @property
    def knee(self) -> Knee | None:
        """The least size whose time per byte is within 1.5x of the best seen. Sizes of one power-of-two bin (a framework's fused messages
        have many) are taken together, by their medians; null: no two bins have calls enough."""
        by_bin: dict[int, list[Point]] = {}
        for point in self.points:
            by_bin.setdefault(pow2(point.bytes, False)[0], []).append(point)
        judged = [points for points in by_bin.values() if sum(point.observations for point in points) >= FEWEST]
        knees = [Knee(points[0].bytes, _ns_per_byte(points)) for points in judged]
        best = min((knee.ns_per_byte for knee in knees), default=0)
        return next((knee for knee in knees if knee.ns_per_byte <= KNEE * best), None) if len(knees) > 1 else None


def _ns_per_byte(points: Sequence[Point]) -> float:
    return sum(point.count * point.p50_ns for point in points) / sum(point.count * point.bytes for point in points)


def curves(connection: Connection) -> list[Curve]:
    """Of the blocking calls whose size all ranks agree on, and of NCCL's operations on the device."""
    histograms: dict[tuple, list[SizeBucketRow]] = {}
    for row in size_bucket_rows(connection):
        histograms.setdefault((row.call, row.identity, row.memory_kind, row.bytes), []).append(row)
    by_size: dict[tuple, list[SizeRow]] = {}
    for row in size_rows(connection, per_rank=True):
        if has_curve(row):
            by_size.setdefault((row.call, row.identity, row.memory_kind, row.bytes_high), []).append(row)
    by_curve: dict[tuple, list[tuple]] = {}
    for key in sorted(by_size.keys() & histograms.keys()):  # a file may claim calls of MPI on the device, which have no histogram
        by_curve.setdefault(key[:3], []).append(key)
    return [_curve([by_size[key] for key in keys], [histograms[key] for key in keys]) for keys in by_curve.values()]


def has_curve(row: SizeRow) -> bool:
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    return is_one_size and row.bandwidth_bytes is not None and row.waits_for not in WITHOUT_CURVE


def _curve(sizes: Sequence[Sequence[SizeRow]], histograms: Sequence[Sequence[SizeBucketRow]]) -> Curve:
    one = sizes[0][0]
    ranks = len({row.rank for rows in sizes for row in rows})
    points = [_point(rows, buckets) for rows, buckets in zip(sizes, histograms)]
    return Curve(one.call, one.communicator, one.identity, one.memory_kind, ranks, points)


def _point(rows: Sequence[SizeRow], buckets: Sequence[SizeBucketRow]) -> Point:
    """A collective is one observation, however many ranks took part: they wait for each other."""
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    observations = max(row.count for row in rows) if rows[0].family == "collective" else count
    least_ns, most_ns = min(row.min_ns for row in rows), max(row.max_ns for row in rows)
    middle = quantile(buckets, 0.5)
    p50_ns = min(max((middle.low_ns + (middle.high_ns or most_ns)) / 2, least_ns), most_ns)
    low_ns, high_ns = median_bounds(buckets, observations)
    least_p50_ns, least_total_ns = min(row.p50_ns for row in rows), min(row.total_ns for row in rows)
    mean_ns = total_ns / count
    return Point(rows[0].bytes_high, count, observations, total_ns, mean_ns, p50_ns, low_ns, high_ns, least_p50_ns, least_total_ns)


def quantile(buckets: Iterable[SizeBucketRow], share: float) -> SizeBucketRow:
    """The first bucket at which the share of all calls is reached."""
    buckets = list(buckets)
    wanted = share * sum(bucket.count for bucket in buckets)
    upto = 0
    for bucket in buckets:
        upto += bucket.count
        if upto >= wanted:
            break
    return bucket


def median_bounds(buckets: Sequence[SizeBucketRow], observations: int) -> tuple[int | None, float | None]:
    """The bounds of the buckets in which the order statistics lie that enclose the median: n / 2 -+ 2.576 sqrt(n) / 2."""
    half = CONFIDENCE / 2 / sqrt(observations)
    if observations < FEWEST or half >= 0.5:
        return None, None
    high_ns = quantile(buckets, 0.5 + half).high_ns
    return quantile(buckets, 0.5 - half).low_ns, float("inf") if high_ns is None else high_ns
