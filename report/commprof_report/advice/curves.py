"""Latency curves: how long one call on the communicators of one family takes, by exact message
size, and how well that is known.

The root of a rooted collective and the other ranks have separate curves. If single calls are split
into waiting and transfer, a curve is fitted to the transfer, and calls that follow a pause have
another curve than those in a burst: two sizes are compared only at like places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.bins import pow2
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
IN_BURSTS, AFTER_PAUSES = PLACES = ("in bursts", "after pauses")  # by follows_pause


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
    """One size. At one place of a split curve, counts and times are those of all calls, divided as
    in the samples."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: int  # collectives, or messages; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    least_total_ns: float  # of a rank
    wait: CurveWaitRow | None  # None: no call is split

    @property
    def is_judged(self) -> bool:
        return self.observations >= FEWEST

    def is_of_ranks_of(self, other: Point) -> bool:
        """Most ranks that use one of these sizes use the other, too; on a split curve."""
        ranks, others = self.split.ranks, other.split.ranks
        return 2 * len(ranks & others) >= max(len(ranks), len(others))

    @property
    def split(self) -> CurveWaitRow:
        """On a split curve."""
        assert self.wait is not None
        return self.wait


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
    is_completion: bool = False  # of operations, from their start to their completion

    @property
    def is_split(self) -> bool:
        return bool(self.place)

    @property
    def timed(self) -> str:
        """How the calls of a split curve are timed."""
        between = ", from start to completion" * self.is_completion
        return f"{self.place}{between} and without waiting"

    @property
    def key(self) -> tuple:
        """Fields that are the same on the curves of one call at two places."""
        return (self.call, self.side, self.identities, self.memory_kind)

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is at most KNEE times the best seen. Sizes of
        one power of two (a framework's fused messages have many) are taken together; null: no two
        bins have observations enough."""
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

    @property
    def judged(self) -> dict[int, Point]:
        """Sizes with observations enough."""
        return {point.bytes: point for point in self.points if point.is_judged}

    def neighbours(self, most: float) -> list[tuple[Point, Point]]:
        """Pairs of sizes with observations enough, the second one the next, at most `most` times as
        large, of the same ranks."""
        known = list(self.judged.values())
        return [
            (below, above) for below, above in zip(known, known[1:])
            if above.bytes <= most * below.bytes
            and not (self.is_split and not below.is_of_ranks_of(above))
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
    waits: dict[tuple, list[CurveWaitRow]] = {}
    for wait in curve_waits(late.stages.sums.chosen, late.stages.sums.texts, families, sides):
        waits.setdefault(wait[:4], []).append(wait)
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
        curve
        for keys in by_curve.values()
        for curve in _curves(
            [(key, by_size[key], buckets[key], waits.get((*key[:3], key[4]), [])) for key in keys]
        )
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


Size = tuple[Key, Sequence[SizeRow], Buckets, Sequence[CurveWaitRow]]


def _curves(sizes: Sequence[Size]) -> list[Curve]:
    """One for each place, without the sizes of which no call is split; or one of all calls, if none
    is."""
    (call, _, side, memory_kind, _), *_ = sizes[0]
    all_rows = [row for _, rows, _, _ in sizes for row in rows]
    identities = tuple(sorted({row.identity for row in all_rows}))
    ranks = len({(row.identity, row.rank) for row in all_rows})
    points = [(_point(key[4], rows, buckets), waits) for key, rows, buckets, waits in sizes]
    all_calls = [point for point, _ in points]
    return curves_by_place(
        Curve(call, side, "", True, identities, memory_kind, ranks, all_calls), points
    )


def curves_by_place(
    curve: Curve, sizes: Sequence[tuple[Point, Sequence[CurveWaitRow]]]
) -> list[Curve]:
    """curve: of all calls; it is the only one if none is split."""
    points: dict[str, list[Point]] = {}
    for point, waits in sizes:
        for wait in waits:
            points.setdefault(PLACES[wait.follows_pause], []).append(_at_place(point, wait, waits))
    is_only = sum(any(point.is_judged for point in at_place) for at_place in points.values()) <= 1
    at_places = [
        curve._replace(place=place, is_only=is_only, points=points[place])
        for place in sorted(points)
    ]
    return at_places or ([curve] if curve.points else [])


def _point(size: int, rows: Sequence[SizeRow], buckets: Buckets) -> Point:
    count, total_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    observations = _collectives(rows) if rows[0].family == "collective" else count
    least_ns, most_ns = min(row.min_ns for row in rows), max(row.max_ns for row in rows)
    low_ns, high_ns = median(buckets)
    return Point(
        size, rows[0].bandwidth_bytes or 0.0, count, observations, total_ns,
        min(max((low_ns + (high_ns or most_ns)) / 2, least_ns), most_ns),
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


def median(buckets: Buckets) -> tuple[int, int | None]:
    """The bounds of the first bucket at which half of all calls is reached."""
    wanted = sum(buckets.values()) / 2
    upto = 0
    for bounds in sorted(buckets, key=lambda bounds: bounds[0]):
        upto += buckets[bounds]
        if upto >= wanted:
            break
    return bounds
