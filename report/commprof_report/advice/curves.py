"""Latency curves: how long one call on the communicators of one family takes, by exact message
size, and how well that is known.

The root of a rooted collective and the other ranks have separate curves. If single calls are split
into waiting and transfer, a curve is fitted to the transfer, and calls that follow a pause have
another curve than those in a burst: two sizes are compared only at like places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import pow2
from ..calls.sizes import SizeRow, size_rows
from ..late.late_ranks import Late
from ..roles.roles import Kin
from .curve_waits import CurveWaitRow, curve_waits

SQL = query.beside(__file__)

KNEE = 1.5  # times the best time per byte
FEWEST = 20  # observations of a size that is judged
# the duration of such a call depends on when the other side made its own
WITHOUT_CURVE = ("sender", "peer")
ROOTED = ("root-first", "root-last")
AFTER_PAUSES = "after pauses"
PLACES = ("in bursts", AFTER_PAUSES)  # by follows_pause


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


class SideRow(NamedTuple):
    world_rank: int
    identity: str
    call: str
    side: str


class Point(NamedTuple):
    """One size. At one place of a split curve, counts and times are those of all calls, divided as
    in the samples."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: int  # over all ranks
    observations: int  # collectives, or messages; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    least_total_ns: float  # of a rank
    wait: CurveWaitRow | None  # None: no call is split

    @property
    def is_judged(self) -> bool:
        return self.observations >= FEWEST


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
    place: str  # of PLACES; empty: no call is split
    is_only: bool  # no other curve has sizes of the same calls that are judged
    identities: tuple[str, ...]
    memory_kind: str
    ranks: int
    points: list[Point]  # by size

    @property
    def is_split(self) -> bool:
        return bool(self.place)

    @property
    def key(self) -> tuple:
        """Fields that are the same on the curves of one call at two places."""
        return (self.call, self.side, self.identities, self.memory_kind)

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is within 1.5x of the best seen. Sizes of one
        power of two (a framework's fused messages have many) are taken together; null: no two bins
        have observations enough."""
        bins = self._bins()
        judged = [each for each in bins if each.observations >= FEWEST]
        if len(judged) < 2:
            return None
        best = min(each.ns_per_byte for each in judged)
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

    def neighbours(self, most: float) -> list[tuple[Point, Point]]:
        """Pairs of sizes with observations enough, the second one the next, at most `most` times as
        large."""
        known = [point for point in self.points if point.is_judged]
        return [
            (below, above) for below, above in zip(known, known[1:])
            if above.bytes <= most * below.bytes
        ]

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
    if not total_ns or any(point.wait is None for point in points):
        return None
    return (
        sum(point.total_ns * point.wait.wait_ns / (point.wait.ns or 1) for point in points)
        / total_ns
    )


def curves(connection: Connection, late: Late, kin: Mapping[str, Kin]) -> list[Curve]:
    """Curves of the blocking calls whose size all ranks agree on, and of NCCL's operations on the
    device."""
    families = _families(connection, kin)
    sides = {row[:3]: row.side for row in SQL.ask(connection, "curve_sides", SideRow)}
    buckets: dict[tuple, list[CurveBucketRow]] = {}
    for bucket in SQL.ask(connection, "curve_buckets", CurveBucketRow):
        buckets.setdefault(bucket[:5], []).append(bucket)
    waits: dict[tuple, list[CurveWaitRow]] = {}
    for wait in curve_waits(late.stages.sums.chosen, late.stages.sums.texts, families, sides):
        waits.setdefault(wait[:4], []).append(wait)
    by_size: dict[tuple, list[SizeRow]] = {}
    for row in size_rows(connection, per_rank=True):
        side = sides.get((row.rank, row.identity, row.call), "")
        if has_curve(row, side):
            by_size.setdefault(
                (row.call, families[row.identity], side, row.memory_kind, row.bytes_high), []
            ).append(row)
    by_curve: dict[tuple, list[tuple]] = {}
    # a file may claim calls of MPI on the device, which have no histogram
    for key in sorted(by_size.keys() & buckets.keys()):
        by_curve.setdefault(key[:4], []).append(key)
    return [
        curve
        for key, keys in by_curve.items()
        for curve in _curves(
            key,
            [(by_size[each], buckets[each], waits.get((*each[:3], each[4]), [])) for each in keys],
        )
    ]


def _families(connection: Connection, kin: Mapping[str, Kin]) -> dict[str, int]:
    """Fills the table curve_family. Cells may name communicators that no file describes; each is
    its own family."""
    SQL.run(connection, "curve_tables")
    identities = [
        identity
        for (identity,) in connection.execute(
            "SELECT DISTINCT identity FROM chosen_cell ORDER BY identity"
        )
    ]
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


Size = tuple[Sequence[SizeRow], Sequence[CurveBucketRow], Sequence[CurveWaitRow]]


def _curves(key: tuple, sizes: Sequence[Size]) -> list[Curve]:
    """One for each place, without the sizes of which no call is split; or one of all calls, if none
    is."""
    call, _, side, memory_kind = key
    all_rows = [row for rows, _, _ in sizes for row in rows]
    identities = tuple(sorted({row.identity for row in all_rows}))
    ranks = len({(row.identity, row.rank) for row in all_rows})
    points: dict[str, list[Point]] = {}
    for rows, buckets, waits in sizes:
        point = _point(rows, buckets)
        for wait in waits:
            points.setdefault(PLACES[wait.follows_pause], []).append(_at_place(point, wait, waits))
    if not points:
        points[""] = [_point(rows, buckets) for rows, buckets, _ in sizes]
    is_only = sum(any(point.is_judged for point in at_place) for at_place in points.values()) <= 1
    return [
        Curve(call, side, place, is_only, identities, memory_kind, ranks, points[place])
        for place in sorted(points)
    ]


def _point(rows: Sequence[SizeRow], buckets: Sequence[CurveBucketRow]) -> Point:
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    observations = _collectives(rows) if rows[0].family == "collective" else count
    least_ns, most_ns = min(row.min_ns for row in rows), max(row.max_ns for row in rows)
    middle = median(buckets)
    return Point(
        rows[0].bytes_high, rows[0].bandwidth_bytes, count, observations, total_ns,
        min(max((middle.low_ns + (middle.high_ns or most_ns)) / 2, least_ns), most_ns),
        min(row.total_ns for row in rows), None,
    )


def _at_place(point: Point, wait: CurveWaitRow, waits: Sequence[CurveWaitRow]) -> Point:
    of_time = wait.ns / (sum(each.ns for each in waits) or 1)
    return point._replace(
        count=round(point.count * wait.calls / sum(each.calls for each in waits)),
        observations=wait.collectives, total_ns=point.total_ns * of_time,
        p50_ns=wait.transfer_p50_ns, least_total_ns=point.least_total_ns * of_time, wait=wait,
    )


def _collectives(rows: Sequence[SizeRow]) -> int:
    """A collective is one observation, however many ranks took part: they wait for each other."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.identity] = max(most.get(row.identity, 0), row.count)
    return sum(most.values())


def median(buckets: Iterable[CurveBucketRow]) -> CurveBucketRow:
    """The first bucket at which half of all calls is reached."""
    buckets = list(buckets)
    wanted = sum(bucket.count for bucket in buckets) / 2
    upto = 0
    for bucket in buckets:
        upto += bucket.count
        if upto >= wanted:
            break
    return bucket
