"""Latency curves: how long one call on the communicators of one family takes, by exact message
size, and how well that is known.

The root of a rooted collective and the other ranks have separate curves. If single calls are split
into waiting and transfer, a curve is fitted to the transfer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import pow2
from ..base.percentiles import of_buckets
from ..base.thresholds import threshold, whole
from ..calls.by_size import SizeRow, size_rows
from ..late.late_ranks import Late
from ..roles.roles import Kin
from .curve_waits import CurveWaitRow, curve_waits

SQL = query.beside(__file__)

KNEE = threshold("advice.knee")
FEWEST = whole("advice.observations")
# the duration of such a call depends on when the other side made its own
WITHOUT_CURVE = ("sender", "peer")
ROOTED = ("root-first", "root-last")


class CurveBucketRow(NamedTuple):
    """A bucket of the histogram of one exact size."""

    call: str
    identity: str
    side: str
    memory_kind: str
    bytes: int
    low_ns: int
    high_ns: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count


Buckets = Counter[tuple[int, "int | None"]]  # calls by the bounds of their bucket, low_ns, high_ns


class SideRow(NamedTuple):
    world_rank: int
    identity: str
    call: str
    side: str


class Point(NamedTuple):
    """One size."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: int  # collectives, or messages; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    least_total_ns: float  # of a rank
    wait: CurveWaitRow | None  # None: no call is split


class Bin(NamedTuple):
    """The sizes within a power of two that have observations."""

    points: list[Point]
    observations: int
    ns_per_byte: float


class Knee(NamedTuple):
    """Range in which messages are large enough: from `bytes` to `upto_bytes` a byte costs little
    more than at best. Seen in low_bytes to high_bytes."""

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
        """Waiting is known, and no part of the times."""
        return all(point.wait is not None for point in self.points)

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is at most KNEE times the best seen. Sizes of
        one power of two (a framework's fused messages have many) are taken together; null: no two
        bins have observations enough, or the clock does not resolve them."""
        bins = self._bins()
        judged = [each for each in bins if each.observations >= FEWEST]
        if len(judged) < 2:
            return None
        best = min(each.ns_per_byte for each in judged)
        if not best:
            return None
        at = next(
            place for place, each in enumerate(bins)
            if each in judged and each.ns_per_byte <= KNEE * best
        )
        fast = list(
            takewhile(lambda each: each in judged and each.ns_per_byte <= KNEE * best, bins[at:])
        )
        few = [point for each in bins if each not in judged for point in each.points]
        return Knee(
            fast[0].points[0].bytes, fast[-1].points[-1].bytes, fast[0].ns_per_byte, best,
            judged[0].points[0].bytes, judged[-1].points[-1].bytes,
            any(point.p50_ns < best * point.moved_bytes for point in few),
        )

    def _bins(self) -> list[Bin]:
        by_bin: dict[int, list[Point]] = {}
        for point in self.points:
            by_bin.setdefault(pow2(point.bytes, False)[0], []).append(point)
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
    split = [(point, point.wait) for point in points if point.wait is not None]
    if not total_ns or len(split) < len(points):
        return None
    return sum(point.total_ns * wait.wait_ns / (wait.ns or 1) for point, wait in split) / total_ns


Key = tuple[str, int, str, str, int]  # call, family, side, memory kind, bytes


def curves(connection: Connection, late: Late, families: Mapping[str, int]) -> list[Curve]:
    """Curves of the blocking calls whose size all ranks agree on, and of NCCL's operations on the
    device. families: numbers of them, by identity."""
    sides: dict[tuple[int | None, str, str], str] = {
        row[:3]: row.side for row in SQL.ask(connection, "curve_sides", SideRow)
    }
    buckets: dict[Key, Buckets] = {}
    for bucket in SQL.ask(connection, "curve_buckets", CurveBucketRow):
        key = (
            bucket.call, families[bucket.identity], bucket.side, bucket.memory_kind, bucket.bytes
        )
        buckets.setdefault(key, Counter())[bucket.low_ns, bucket.high_ns] += bucket.count
    split = curve_waits(late.stages.sums.chosen, late.stages.sums.texts, families, sides)
    waits = {wait[:4]: wait for wait in split}
    by_size: dict[Key, list[SizeRow]] = {}
    for row in size_rows(connection, per_rank=True):
        side = sides.get((row.rank, row.identity, row.call), "")
        if row.measure != "completion" and has_curve(row, side):
            key = (row.call, families[row.identity], side, row.memory_kind, row.bytes_high or 0)
            by_size.setdefault(key, []).append(row)
    by_curve: dict[tuple, list[Key]] = {}
    # a file may claim calls of MPI on the device, which have no histogram
    for key in sorted(by_size.keys() & buckets.keys()):
        by_curve.setdefault(key[:4], []).append(key)
    return [
        _curve(
            [(key, by_size[key], buckets[key], waits.get((*key[:3], key[4]))) for key in keys]
        )
        for keys in by_curve.values()
    ]


def families_of(connection: Connection, kin: Mapping[str, Kin]) -> dict[str, int]:
    """A number for the family of each communicator. Cells may name communicators that no file
    describes; each is its own family."""
    used = connection.execute("SELECT DISTINCT identity FROM chosen_cell ORDER BY identity")
    numbers: dict[object, int] = {}
    families = {}
    for (identity,) in used:
        family = kin[identity].family if identity in kin else identity
        families[identity] = numbers.setdefault(family, len(numbers))
    return families


def has_curve(row: SizeRow, side: str) -> bool:
    is_one_size = not row.is_own and not row.is_folded and bool(row.bytes_high)
    depends = row.waits_for in WITHOUT_CURVE or (row.waits_for in ROOTED and not side)
    return is_one_size and row.bandwidth_bytes is not None and not depends


Size = tuple[Key, Sequence[SizeRow], Buckets, "CurveWaitRow | None"]


def _curve(sizes: Sequence[Size]) -> Curve:
    """Without the sizes of which no call is split, if some are."""
    (call, _, side, memory_kind, _), *_ = sizes[0]
    all_rows = [row for _, rows, _, _ in sizes for row in rows]
    identities = tuple(sorted({row.identity for row in all_rows}))
    ranks = len({(row.identity, row.rank) for row in all_rows})
    points = [_point(key[4], rows, buckets, wait) for key, rows, buckets, wait in sizes]
    split = [point for point in points if point.wait is not None]
    return Curve(call, side, identities, memory_kind, ranks, split or points)


def _point(
    size: int, rows: Sequence[SizeRow], buckets: Buckets, wait: CurveWaitRow | None
) -> Point:
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    observations = _collectives(rows) if rows[0].family == "collective" else count
    least_ns, most_ns = min(row.min_ns for row in rows), max(row.max_ns for row in rows)
    own = ((low_ns, high_ns or most_ns, calls) for (low_ns, high_ns), calls in buckets.items())
    p50_ns = of_buckets(own, 50, least_ns, most_ns)
    return Point(
        size, rows[0].bandwidth_bytes or 0.0, count, wait.collectives if wait else observations,
        total_ns, wait.transfer_p50_ns if wait else p50_ns, min(row.total_ns for row in rows), wait,
    )


def _collectives(rows: Sequence[SizeRow]) -> int:
    """A collective is one observation, however many ranks took part: they wait for each other."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.identity] = max(most.get(row.identity, 0), row.count)
    return sum(most.values())
