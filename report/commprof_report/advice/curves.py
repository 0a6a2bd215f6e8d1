"""Latency curves: how long one call on the communicators of one family takes, by exact message size, and how well that is known.

The root of a rooted collective and the other ranks have separate curves. Where the waiting of single calls is known, a curve is fitted to
the durations without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from math import sqrt
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import pow2
from ..calls.sizes import SizeRow, size_rows
from ..roles.roles import Kin

SQL = query.beside(__file__)

KNEE = 1.5  # times the best time per byte
FEWEST = 20  # observations of a size that is judged
CONFIDENCE = 2.576  # standard deviations: 99 %
WITHOUT_CURVE = ("sender", "peer")  # the duration of such a call depends on when the other side made its own
ROOTED = ("root-first", "root-last")


class CurveBucketRow(NamedTuple):
    """A bucket of the histogram of one exact size."""

    call: str
    family: int
    side: str
    memory_kind: str
    bytes: int
    low_ns: int
    high_ns: int | None
    count: int


class CurveWaitRow(NamedTuple):
    """Sampled collectives of one size: the median duration without waiting, and the share of waiting."""

    call: str
    family: int
    side: str
    bytes: int | None
    collectives: int
    transfer_p50_ns: int
    wait_share: float | None


class SideRow(NamedTuple):
    world_rank: int
    identity: str
    call: str
    side: str


class Point(NamedTuple):
    """One size. low_ns and high_ns enclose the median with a confidence of 99 %; null: too few calls to say."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: int  # over all ranks
    observations: int  # collectives, or messages
    total_ns: int
    p50_ns: float
    low_ns: int | None
    high_ns: float | None
    least_p50_ns: float  # of a rank: the one that came last, where ranks wait for each other
    least_total_ns: int  # of a rank
    wait: CurveWaitRow | None  # null: no call is sampled, or its waiting is not known

    @property
    def own_p50_ns(self) -> float:
        """Without waiting; if that is not known, of the rank that waits least."""
        return self.wait.transfer_p50_ns if self.wait else self.least_p50_ns

    @property
    def mean_ns(self) -> float:
        """Without waiting, if that is known."""
        return self.total_ns * (1 - (self.wait.wait_share or 0 if self.wait else 0)) / self.count


class Bin(NamedTuple):
    """The sizes within a power of two that have observations."""

    points: list[Point]
    observations: int
    ns_per_byte: float


class Knee(NamedTuple):
    """Where messages are large enough: from `bytes` to `upto_bytes` a byte costs little more than at best. Seen in low_bytes to high_bytes."""

    bytes: int
    upto_bytes: int
    ns_per_byte: float
    best_ns_per_byte: float
    low_bytes: int
    high_bytes: int
    is_exceeded: bool  # a size with few observations was faster


class Curve(NamedTuple):
    call: str
    side: str  # of a rooted collective
    identities: tuple[str, ...]
    memory_kind: str
    ranks: int
    points: list[Point]  # by size

    @property
    def is_split(self) -> bool:
        return any(point.wait for point in self.points)

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is within 1.5x of the best seen. Sizes of one power of two (a framework's fused messages
        have many) are taken together; null: no two bins have observations enough."""
        bins = self._bins()
        judged = [each for each in bins if each.observations >= FEWEST]
        if len(judged) < 2:
            return None
        best = min(each.ns_per_byte for each in judged)
        at = next(place for place, each in enumerate(bins) if each in judged and each.ns_per_byte <= KNEE * best)
        fast = list(takewhile(lambda each: each in judged and each.ns_per_byte <= KNEE * best, bins[at:]))
        few = [point for each in bins if each not in judged for point in each.points]
        return Knee(
            fast[0].points[0].bytes,
            fast[-1].points[-1].bytes,
            fast[0].ns_per_byte,
            best,
            judged[0].points[0].bytes,
            judged[-1].points[-1].bytes,
            any(point.p50_ns < best * point.moved_bytes for point in few),
        )

    def neighbours(self, most: float) -> list[Point]:
        """The sizes with observations enough that have another one up to a factor of `most` away."""
        known = [point for point in self.points if point.low_ns is not None]
        near = {pair for pair in zip(known, known[1:]) if pair[1].bytes <= most * pair[0].bytes}
        return [point for point in known if any(point in pair for pair in near)]

    def _bins(self) -> list[Bin]:
        by_bin: dict[int, list[Point]] = {}
        for point in self.points:
            if point.wait or not self.is_split:
                by_bin.setdefault(pow2(point.bytes, False)[0], []).append(point)
        return [self._bin(points) for points in by_bin.values()]

    def _bin(self, points: list[Point]) -> Bin:
        own = [(point.wait.collectives, point.wait.transfer_p50_ns) if point.wait else (point.observations, point.p50_ns) for point in points]
        ns = sum(point.count * own_ns for point, (_, own_ns) in zip(points, own))
        return Bin(points, sum(number for number, _ in own), ns / sum(point.count * point.moved_bytes for point in points))


def waiting(points: Sequence[Point]) -> float | None:
    """The share of waiting in the time of some sizes; null: known of less than half of it."""
    known = [point for point in points if point.wait]
    known_ns = sum(point.total_ns for point in known)
    if 2 * known_ns < sum(point.total_ns for point in points) or not known_ns:
        return None
    return sum(point.total_ns * (point.wait.wait_share or 0) for point in known) / known_ns


def curves(connection: Connection, kin: Mapping[str, Kin]) -> list[Curve]:
    """Of the blocking calls whose size all ranks agree on, and of NCCL's operations on the device. `late` must have split the run."""
    families = _families(connection, kin)
    sides = {row[:3]: row.side for row in SQL.ask(connection, "curve_sides", SideRow)}
    buckets: dict[tuple, list[CurveBucketRow]] = {}
    for bucket in SQL.ask(connection, "curve_buckets", CurveBucketRow):
        buckets.setdefault(bucket[:5], []).append(bucket)
    waits = {row[:4]: row for row in SQL.ask(connection, "curve_waits", CurveWaitRow)}
    by_size: dict[tuple, list[SizeRow]] = {}
    for row in size_rows(connection, per_rank=True):
        side = sides.get((row.rank, row.identity, row.call), "")
        if has_curve(row, side):
            by_size.setdefault((row.call, families[row.identity], side, row.memory_kind, row.bytes_high), []).append(row)
    by_curve: dict[tuple, list[tuple]] = {}
    for key in sorted(by_size.keys() & buckets.keys()):  # a file may claim calls of MPI on the device, which have no histogram
        by_curve.setdefault(key[:4], []).append(key)
    return [
        _curve(key, [by_size[each] for each in keys], [_point(by_size[each], buckets[each], waits.get((*each[:3], each[4]))) for each in keys])
        for key, keys in by_curve.items()
    ]


def _families(connection: Connection, kin: Mapping[str, Kin]) -> dict[str, int]:
    """Fills the table curve_family. Cells may name communicators that no file describes; each is its own family."""
    SQL.run(connection, "curve_tables")
    identities = [identity for (identity,) in connection.execute("SELECT DISTINCT identity FROM chosen_cell ORDER BY identity")]
    numbers: dict[object, int] = {}
    families = {}
    for identity in identities:
        family = kin[identity].family if identity in kin else identity
        families[identity] = numbers.setdefault(family, len(numbers))
    connection.executemany("INSERT INTO curve_family VALUES (?, ?)", families.items())
    return families


def has_curve(row: SizeRow, side: str) -> bool:
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    depends = row.waits_for in WITHOUT_CURVE or (row.waits_for in ROOTED and not side)
    return is_one_size and row.bandwidth_bytes is not None and not depends


def _curve(key: tuple, sizes: Sequence[Sequence[SizeRow]], points: list[Point]) -> Curve:
    call, _, side, memory_kind = key
    rows = [row for own in sizes for row in own]
    identities = tuple(sorted({row.identity for row in rows}))
    return Curve(call, side, identities, memory_kind, len({(row.identity, row.rank) for row in rows}), points)


def _point(rows: Sequence[SizeRow], buckets: Sequence[CurveBucketRow], wait: CurveWaitRow | None) -> Point:
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    observations = _collectives(rows) if rows[0].family == "collective" else count
    least_ns, most_ns = min(row.min_ns for row in rows), max(row.max_ns for row in rows)
    middle = quantile(buckets, 0.5)
    low_ns, high_ns = median_bounds(buckets, observations)
    return Point(
        rows[0].bytes_high,
        rows[0].bandwidth_bytes,
        count,
        observations,
        total_ns,
        min(max((middle.low_ns + (middle.high_ns or most_ns)) / 2, least_ns), most_ns),
        low_ns,
        high_ns,
        min(row.p50_ns for row in rows),
        min(row.total_ns for row in rows),
        wait,
    )


def _collectives(rows: Sequence[SizeRow]) -> int:
    """A collective is one observation, however many ranks took part: they wait for each other."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.identity] = max(most.get(row.identity, 0), row.count)
    return sum(most.values())


def quantile(buckets: Iterable[CurveBucketRow], share: float) -> CurveBucketRow:
    """The first bucket at which the share of all calls is reached."""
    buckets = list(buckets)
    wanted = share * sum(bucket.count for bucket in buckets)
    upto = 0
    for bucket in buckets:
        upto += bucket.count
        if upto >= wanted:
            break
    return bucket


def median_bounds(buckets: Sequence[CurveBucketRow], observations: int) -> tuple[int | None, float | None]:
    """The bounds of the buckets in which the order statistics lie that enclose the median: n / 2 -+ 2.576 sqrt(n) / 2."""
    half = CONFIDENCE / 2 / sqrt(observations)
    if observations < FEWEST or half >= 0.5:
        return None, None
    high_ns = quantile(buckets, 0.5 + half).high_ns
    return quantile(buckets, 0.5 - half).low_ns, float("inf") if high_ns is None else high_ns
