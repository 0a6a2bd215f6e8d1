"""One time axis for all ranks of a run, and how far it may be off.

Ranks of one host read one clock. The clocks of different hosts are compared afterwards through the
job's own collectives: no rank returns from an Allreduce before all have arrived, so a return on one
host is later than every arrival on another. Such bounds from both sides enclose the difference of
two clocks; knots every ten seconds follow their drift. Clocks that no collective connects are
placed by the hosts' wall clocks, whose error is unknown.

While two clocks run at constant rates, their difference is a straight line. Between two knots it
is given by its values there, a point of a plane. Each bound is a half-plane, and the intersection
of all of them is a convex polygon. Its extent gives the range of the difference at the two knots;
in between, the difference lies between the lines that connect the extremes. So the bounds are exact
as long as rates are constant between knots.
"""

from __future__ import annotations

from collections import namedtuple
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from sqlite3 import Connection
from typing import Tuple

from ..base import (
    NONE,
    Columns,
    Groups,
    Ints,
    Texts,
    by_rank,
    gathered,
    grouped,
    joined,
    np,
    query,
    read,
)
from .sampled import communicators, sampled, synchronizing

SEGMENT_NS = 10_000_000_000  # between knots; clock rates are assumed constant in between
SLICE_NS = 100_000_000  # only the tightest bound in each slice of time is used
# up to so many clocks of a collective are compared pairwise; of more, each is compared with the
# first
MOST_ALL_PAIRS = 8
MOST_NS = 1 << 61  # largest time that is stored: 73 years
NEVER_NS = (1 << 63) - 1
MOST_ROUNDS = 8  # of tightening bounds via third clocks
# maximal drift of two clocks: 1e-4 for two crystals, and NTP may slew each by 5e-4
MOST_RATE = 1e-3
FAR_NS = 1e13  # more than clocks drift apart in a run
FIRST_SLACK_NS = 1_000  # by which contradictory bounds are relaxed; doubled until they agree


# At time `at_ns` the difference of two clocks is at most `difference_ns` (is_upper) or at least
# that.
Bound = namedtuple("Bound", "at_ns difference_ns is_upper")


Interval = Tuple[float, float]  # the lowest and the highest value
# of the difference of each pair; times are those of the first clock
Bounds = dict[tuple[int, int], list[Bound]]


# Error bounds on the common time axis: of one timestamp, and of the difference of two.
Error = namedtuple("Error", "timestamp_ns distance_ns")


UNKNOWN = Error(math.inf, math.inf)


class Clock:
    """Maps a host's clock to the axis, by straight lines between knots."""

    def __init__(self, clock: int, island: int, knots: Sequence[tuple[int, int, float]]) -> None:
        self.clock = clock  # its lowest rank
        self.island = island  # the lowest clock that calls connect it with
        self.readings, self.axis_times, self.errors = (list(column) for column in zip(*knots))
        self.violation_ns = 0  # the largest contradiction between two of its own ranks
        runs, rises = (
            [after - before for before, after in zip(times, times[1:])]
            for times in (self.readings, self.axis_times)
        )
        # before the first knot, from each one on, and behind the last: in each run, how much
        # longer it is on the axis
        self.runs = [1, *runs, 1]
        self.gains = [0, *(rise - run for rise, run in zip(rises, runs)), 0]

    def axis_ns(self, reading_ns: int) -> int:
        line = bisect_right(self.readings, reading_ns)
        knot = max(line - 1, 0)
        since_ns = reading_ns - self.readings[knot]
        return self.axis_times[knot] + since_ns + since_ns * self.gains[line] // self.runs[line]

    def axis_times_ns(self, readings_ns: np.ndarray) -> np.ndarray:
        """axis_ns of many readings."""
        readings, times, runs, gains = (
            np.array([storable(time_ns) for time_ns in column], np.int64)
            for column in (self.readings, self.axis_times, self.runs, self.gains)
        )
        line = np.searchsorted(readings, readings_ns, "right")
        knot = np.maximum(line - 1, 0)
        since_ns = readings_ns - readings[knot]
        is_small = float(runs.max()) * float(np.abs(gains).max()) < 1 << 62
        gained_ns = since_ns.astype(np.int64 if is_small else object) * gains[line] // runs[line]
        return times[knot] + since_ns + gained_ns.astype(np.int64)

    def error(self, reading_ns: int) -> float:
        """Error bound of the mapped time, relative to the first clock of its island."""
        first_ns, *_, last_ns = self.readings[0], *self.readings
        known_ns = min(max(reading_ns, first_ns), last_ns)
        since_ns = [knot_ns - first_ns for knot_ns in self.readings]
        at_knots_ns = float(np.interp(known_ns - first_ns, since_ns, self.errors))
        drift = 0 if self.clock == self.island else MOST_RATE
        return at_knots_ns + drift * abs(reading_ns - known_ns) + self.violation_ns


class Alignment:
    """Which clock each rank reads, and how each clock maps to the axis. The axis begins at the
    earliest start of a rank."""

    def __init__(self, ranks: Columns, clocks: dict[int, Clock]) -> None:
        self.clocks = clocks
        self.ranks, self.starts_ns, self.clock_numbers = (
            ranks.world_rank,
            np.minimum(ranks.start_monotonic_ns, MOST_NS),
            ranks.clock,
        )
        own = self.ranks.tolist()
        self.clock_of = {rank: clocks[clock] for rank, clock in zip(own, ranks.clock.tolist())}
        self.starts = dict(zip(own, ranks.start_monotonic_ns.tolist()))
        self.zero_ns = min(self.clock_of[rank].axis_ns(self.starts[rank]) for rank in own)

    def aligned_ns(self, world_rank: int, time_ns: int) -> int:
        """The time on the axis for a rank's own time, as in its samples."""
        return self.clock_of[world_rank].axis_ns(self.starts[world_rank] + time_ns) - self.zero_ns

    def aligned(self, world_ranks: np.ndarray, times_ns: np.ndarray) -> np.ndarray:
        """aligned_ns of many times, as they can be stored (int64)."""
        place = np.searchsorted(self.ranks, world_ranks)
        own_ns = self.starts_ns[place] + np.clip(times_ns, -MOST_NS, MOST_NS)
        found = np.empty(len(times_ns), np.int64)
        for clock, rows in by_rank(self.clock_numbers[place]):
            found[rows] = self.clocks[clock].axis_times_ns(own_ns[rows])
        return np.clip(found - storable(self.zero_ns), -MOST_NS, MOST_NS)

    def lines(self) -> Iterator[tuple[int, int, int, int, float]]:
        """The straight lines of each rank: its own times from and before which one holds, the first
        of them on the axis, and the rate at which the axis runs faster."""
        for rank, clock in self.clock_of.items():
            knots = [reading_ns - self.starts[rank] for reading_ns in clock.readings]
            drifts = [gain / run for gain, run in zip(clock.gains, clock.runs)]
            for since_ns, until_ns, drift in zip([0, *knots], [*knots, MOST_NS], drifts):
                since_ns, until_ns = max(since_ns, 0), storable(until_ns)
                if since_ns < until_ns:
                    yield rank, since_ns, until_ns, storable(self.aligned_ns(rank, since_ns)), drift

    def error(self, world_ranks: Sequence[int], time_ns: int) -> Error:
        """Error bounds of these ranks' times, near a time of the first of them."""
        clocks = {self.clock_of[world_rank] for world_rank in world_ranks}
        if len({clock.island for clock in clocks}) > 1:
            return UNKNOWN
        if len(clocks) == 1:
            violation_ns = self.clock_of[world_ranks[0]].violation_ns
            return Error(violation_ns, violation_ns)
        axis_ns = self.clock_of[world_ranks[0]].axis_ns(self.starts[world_ranks[0]] + time_ns)
        errors = sorted(
            clock.error(axis_ns - clock.axis_times[0] + clock.readings[0]) for clock in clocks
        )
        return Error(errors[-1], errors[-1] + errors[-2])

    @property
    def islands(self) -> int:
        return len({clock.island for clock in self.clocks.values()})

    @property
    def most_error_ns(self) -> int | None:
        """Bound of the error of all ranks' times; None: unknown."""
        errors = [max(clock.errors) + clock.violation_ns for clock in self.clocks.values()]
        return math.ceil(max(errors)) if self.islands == 1 else None


def align(connection: Connection) -> Alignment:
    """Aligns the clocks of a run that was read with samples."""
    ranks = read(Columns, query.run(connection, "run/clocks"), Texts())  # in order
    named = ranks.take(ranks.world_rank == ranks.clock)
    ahead_ns = named.start_unix_ns - named.start_monotonic_ns
    walls = dict(zip(named.clock.tolist(), ahead_ns.tolist()))
    meetings = _meetings(connection, ranks)
    alignment = Alignment(ranks, _clocks_lay(walls, _tightest(_of_meetings(meetings))))
    # by how much a return precedes an arrival that it depends on
    both = (meetings.first_gone_ns != NONE) & (meetings.last_come_ns != NONE)
    wrong = meetings.take(both & (meetings.last_come_ns > meetings.first_gone_ns))
    violations_ns = wrong.last_come_ns - wrong.first_gone_ns
    for clock, rows in by_rank(wrong.clock):
        alignment.clocks[clock].violation_ns = int(violations_ns[rows].max())
    return alignment


def storable(time_ns: int) -> int:
    """Limits a time so that SQLite can store it and add a duration: a damaged file may contain any
    time."""
    return max(-MOST_NS, min(MOST_NS, time_ns))


def _meetings(connection: Connection, ranks: Columns) -> Columns:
    """The collectives that relate clocks, in order, without those in which ranks called different
    functions or named different roots. A row is one clock in one collective: the first return on it
    that depends on other ranks' arrival, and the last arrival on which other ranks' returns depend;
    NONE: there is none. In real time no such return precedes any such arrival. Empty messages
    depend on nobody."""
    texts, calls, _, _ = sampled(connection)
    calls = calls.take(calls.sequence != NONE)
    known, kinds = communicators(connection, texts), synchronizing(connection, texts)
    known = known.take((known.communicator > 1) & ~known.is_inter & (known.size > 1))
    kinds = kinds.take(kinds.is_sure)
    member, kind = known.row(calls), kinds.row(calls.call)
    is_met = (member >= 0) & (kind >= 0)
    calls, member, kind = calls.take(is_met), member[is_met], kind[is_met]
    place = np.searchsorted(ranks.world_rank, calls.world_rank)
    clock, start_ns = ranks.clock[place], ranks.start_monotonic_ns[place]
    come_ns = start_ns + calls.start_ns
    returned_ns = np.where(kinds.is_blocking[kind], calls.end_ns, calls.completed_ns)
    comm_rank = known.comm_rank[member]
    is_root, is_other = (
        (calls.root != NONE) & which for which in (comm_rank == calls.root, comm_rank != calls.root)
    )
    is_full = (calls.bytes > 0) | kinds.is_full[kind]
    is_all, is_root_first, is_root_last = (
        kinds.kind[kind] == texts.number(name) for name in ("all", "root-first", "root-last")
    )
    depends = (
        (is_all & (is_full | kinds.is_own_size[kind]))
        | (is_root_first & is_full & is_other)
        | (is_root_last & is_root)
    )
    is_awaited = (
        (is_all & is_full) | (is_root_first & is_root) | (is_root_last & is_full & is_other)
    )
    gone_ns = np.where(depends & (returned_ns != NONE), start_ns + returned_ns, NEVER_NS)
    come_ns = np.where(is_awaited, come_ns, NONE)
    identity = known.identity[member]
    order, groups = grouped(texts.order()[identity], calls.sequence, clock)
    first, first_gone_ns = order[groups.first], groups.min(gone_ns[order])
    found = Columns(
        identity=identity[first],
        sequence=calls.sequence[first],
        clock=clock[first],
        first_gone_ns=np.where(first_gone_ns == NEVER_NS, NONE, first_gone_ns),
        last_come_ns=groups.max(come_ns[order]),
    )
    meetings = Groups(found.identity, found.sequence)
    of_row = meetings.of_row[groups.of_row]
    is_one = np.ones(len(meetings), bool)
    for values in (calls.call[order], calls.root[order]):
        is_one[of_row[values != values[groups.first[meetings.first]][of_row]]] = False
    return found.take(meetings.spread(is_one))


def _of_meetings(meetings: Columns) -> Columns:
    """Bounds of the difference first - second, which is added to the second clock's readings."""
    first, second = _pairs(Groups(meetings.identity, meetings.sequence))
    gone_ns, come_ns = meetings.first_gone_ns, meetings.last_come_ns
    sides = [(gone_ns, come_ns, True), (come_ns, gone_ns, False)]
    found = joined(
        Columns,
        [
            Columns(
                pair=np.arange(len(first)),
                first=meetings.clock[first],
                second=meetings.clock[second],
                at_ns=of_first[first],
                other_ns=of_second[second],
                is_upper=np.full(len(first), is_upper),
            ).take((of_first[first] != NONE) & (of_second[second] != NONE))
            for of_first, of_second, is_upper in sides
        ],
    )
    found = found.take(np.argsort(found.pair, kind="stable"))  # in the order of meetings
    return found.changed(difference_ns=found.at_ns - found.other_ns)


def _tightest(found: Columns) -> Bounds:
    """For each pair of clocks."""
    # the tightest bound in each slice of time, the first of several
    order, groups = grouped(found.first, found.second, found.at_ns // SLICE_NS, found.is_upper)
    sign = np.where(found.is_upper, -1, 1)
    tightest = order[groups.first_most((sign * found.difference_ns)[order])]
    kept = found.take(tightest[np.argsort(order[groups.first], kind="stable")])
    columns = kept.first, kept.second, kept.at_ns, kept.difference_ns, kept.is_upper
    return gathered(
        ((first, second), Bound(*bound))
        for first, second, *bound in zip(*(column.tolist() for column in columns))
    )


def _pairs(groups: Groups) -> tuple[Ints, Ints]:
    """Rows of the clocks of each collective that are compared."""
    place, count = groups.place(), groups.counts[groups.of_row]
    rows = np.arange(groups.rows)
    parts = [(groups.first[groups.of_row], rows, (count > MOST_ALL_PAIRS) & (place > 0))]
    for apart in range(1, MOST_ALL_PAIRS):
        parts.append((rows - apart, rows, (count <= MOST_ALL_PAIRS) & (place >= apart)))
    first, second = (np.concatenate([part[which][part[2]] for part in parts]) for which in (0, 1))
    order = np.lexsort((second, first))
    return first[order], second[order]


def _clocks_lay(walls: dict[int, int], bounds: Bounds) -> dict[int, Clock]:
    """Places the clocks of each island on the axis of its lowest clock; the islands' axes are
    related by their wall clocks, as if these were right. walls: by clock, how far its host's wall
    clock is ahead of it."""
    clocks: dict[int, Clock] = {}
    while len(clocks) < len(walls):
        first = min(walls.keys() - clocks.keys())
        left = {pair: of_pair for pair, of_pair in bounds.items() if not clocks.keys() & set(pair)}
        island = {
            clock: Clock(clock, first, [(0, walls[clock] - walls[first], 0)])
            for clock in sorted({first, *chain.from_iterable(left)})
        }
        connected = _connected(first, island, left)
        # possible only now that the times of their bounds are known
        if any(first not in pair for pair in left):
            connected = _connected(first, {**island, **connected}, left)
        for clock in connected.values():
            shift_ns = walls[first] - walls[min(walls)]
            clock.axis_times = [axis_ns + shift_ns for axis_ns in clock.axis_times]
        clocks.update(connected)
    return clocks


def _connected(first: int, rough: dict[int, Clock], bounds: Bounds) -> dict[int, Clock]:
    """The clocks that bounds connect with the first one, placed on its axis."""
    moved = {
        pair: [bound._replace(at_ns=rough[pair[0]].axis_ns(bound.at_ns)) for bound in of_pair]
        for pair, of_pair in bounds.items()
    }
    knots = _knots(sorted({bound.at_ns for of_pair in moved.values() for bound in of_pair}))
    intervals = {pair: at_knots(of_pair, knots) for pair, of_pair in moved.items()}
    by_knot = [
        _tighten(first, {pair: of_pair[knot] for pair, of_pair in intervals.items()})
        for knot in range(len(knots))
    ]
    return {first: Clock(first, first, [(0, 0, 0)])} | {
        clock: _clock(clock, first, knots, [at[clock] for at in by_knot])
        for clock in rough
        if clock != first
        and all(math.isfinite(limit) for at in by_knot for limit in at.get(clock, (math.inf,)))
    }


def _knots(times: Sequence[int]) -> list[int]:
    """Knots only near bounds: a knot without any would depend on distant bounds."""
    knots = list(times[:1])
    while knots and knots[-1] < times[-1]:
        within = times[bisect_right(times, knots[-1] + SEGMENT_NS) - 1]
        knots.append(within if within > knots[-1] else times[bisect_right(times, knots[-1])])
    if len(knots) == 1:
        knots.append(knots[0] + 1)
    return knots


def _tighten(first: int, intervals: dict[tuple[int, int], Interval]) -> dict[int, Interval]:
    """Intervals of the difference first - clock for each clock: shortest paths through the pairs'
    bounds, in both directions."""
    ways = [
        way
        for (here, there), (low, high) in intervals.items()
        for way in ((here, there, high, -low), (there, here, -low, high))
    ]
    most, least = (
        _shortest(first, [(here, there, lengths[side]) for here, there, *lengths in ways])
        for side in (0, 1)
    )
    return {clock: (-least.get(clock, math.inf), high) for clock, high in most.items()}


def _shortest(first: int, steps: Sequence[tuple[int, int, float]]) -> dict[int, float]:
    """The length of the shortest path to each clock that steps lead to."""
    found = {first: 0.0}
    for _ in range(MOST_ROUNDS):
        before = dict(found)
        for here, there, length in steps:
            found[there] = min(found.get(there, math.inf), found.get(here, math.inf) + length)
        if before == found:
            break
    return found


def _clock(clock: int, island: int, knots: Sequence[int], intervals: Sequence[Interval]) -> Clock:
    """Places the clock in the middle of the possible interval, limiting its rate to that of real
    clocks: knots may be close together."""
    lines: list[tuple[int, int, float]] = []
    for knot, (low, high) in zip(knots, intervals):
        offset = round(low + (high - low) / 2)
        if lines:
            before, farthest = lines[-1][1] - lines[-1][0], int(MOST_RATE * (knot - lines[-1][1]))
            offset = min(max(offset, before - farthest), before + farthest)
        lines.append((knot - offset, knot, max(high - offset, offset - low)))
    return Clock(clock, island, lines)


EVERYWHERE = (-FAR_NS, FAR_NS)


def at_knots(bounds: Sequence[Bound], knots: Sequence[int]) -> list[Interval]:
    """The range of the difference at each knot; infinite if nothing bounds it. Needs at least one
    bound and two knots."""
    base_ns = bounds[0].difference_ns  # after subtracting it, floats are exact enough
    lengths = [after - before for before, after in zip(knots, knots[1:])]
    # for each segment its half-planes: weight of its end, difference, 1 for upper bounds and -1
    # for lower ones
    segments: list[list[tuple[float, float, int]]] = [[] for _ in lengths]
    for at_ns, difference_ns, is_upper in sorted(bounds):
        segment = bisect_left(knots, at_ns, 1, len(lengths)) - 1
        weight = (at_ns - knots[segment]) / lengths[segment]
        segments[segment].append((weight, float(difference_ns - base_ns), 1 if is_upper else -1))
    left, right = [EVERYWHERE], []
    # forwards: each segment passes on the range at its end
    for cuts, length in zip(segments, lengths):
        left.append(_extent(cuts, length, left[-1], EVERYWHERE)[1])
    right.append(left[-1])
    for cuts, length, start in zip(segments[::-1], lengths[::-1], left[-2::-1]):  # and backwards
        right.append(_extent(cuts, length, start, right[-1])[0])
    # a limit near FAR_NS means that there is no bound
    return [
        (
            -math.inf if low < -FAR_NS / 2 else base_ns + math.floor(low),
            math.inf if high > FAR_NS / 2 else base_ns + math.ceil(high),
        )
        for low, high in right[::-1]
    ]


def _extent(
    cuts: Sequence[tuple[float, float, int]], length: int, start: Interval, end: Interval
) -> tuple[Interval, Interval]:
    """The range of the difference at the start and at the end of a segment. Contradictory bounds
    are relaxed by as little as necessary, and the ranges grow by as much."""
    slack, drift = 0.0, MOST_RATE * length
    while True:
        low, high = start[0] - slack, start[1] + slack
        polygon = [
            (low, low - drift),
            (high, high - drift),
            (high, high + drift),
            (low, low + drift),
        ]
        for weight, difference, sign in (*cuts, (1.0, end[1], 1), (1.0, end[0], -1)):
            polygon = _cut(polygon, weight, difference + sign * slack, sign)
        if polygon:
            at_start, at_end = ((min(side) - slack, max(side) + slack) for side in zip(*polygon))
            return at_start, at_end
        slack = 2 * slack or FIRST_SLACK_NS


def _cut(
    polygon: list[tuple[float, float]], weight: float, difference: float, sign: int
) -> list[tuple[float, float]]:
    """The part of the polygon in which sign x ((1 - weight) x start + weight x end - difference) <=
    0."""
    beyond = [sign * ((1 - weight) * start + weight * end - difference) for start, end in polygon]
    if not polygon or max(beyond) <= 0:
        return polygon
    clipped: list[tuple[float, float]] = []
    for here, point in enumerate(polygon):
        before = here - 1
        if (beyond[before] > 0) != (beyond[here] > 0):
            part = beyond[before] / (beyond[before] - beyond[here])
            start, end = (low + part * (high - low) for low, high in zip(polygon[before], point))
            clipped.append((start, end))
        if beyond[here] <= 0:
            clipped.append(point)
    return clipped
