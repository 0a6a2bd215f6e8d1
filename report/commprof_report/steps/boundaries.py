"""The steps of a run: marked by the program, visits to a region, or found in the sequence of bulk
collectives.

    sampled collectives    ->  its period   ->  the communicator     ->  when each rank left
    of each communicator,      (period.py)      that determines          the last bulk collective
    from one of its ranks                       a rank's steps           of each step

All ranks of a communicator call the same collectives in the same order, so the boundaries found on
one rank hold for all, by sequence number. If different communicators determine the steps of
different ranks (one for each replica group), the steps are matched by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from sqlite3 import Connection
from statistics import median
from typing import Callable, NamedTuple

from ..base import query, units
from ..base.same_steps import agree, matched, warm_up
from ..calls.calls import operation
from ..calls.traffic import traffic_classify
from ..late.marks import AlignedNs, MarkedRow, marked_rows
from ..run.selection import Selection
from ..run.unsampled import no_log_text
from .period import FEWEST_CALLS, MANY_STEPS, Calls, Period, find_period, free_times, is_steady

SQL = query.beside(__file__)

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "reducescatter")
FAR_OUT = 5  # median absolute deviations
OUTLIER = 1.1  # x median, at least
FROM_THE_START = 0  # number of the stretch that begins with the first collective
# least confidence in steps found from small collectives; how many kinds are tried
FEWEST_SMALL, KINDS_TRIED = 0.9, 8
MOST_REFUSED = 2  # kinds of small collectives of which it is said why they are no steps


class Detection(NamedTuple):
    """How the steps of a run were found."""

    by: str  # 'marks', 'region', 'calls'; '': no steps
    how: str  # 'sizes', 'bytes', 'gaps', 'small', if by is 'calls'
    identity: str  # of the communicator that determines the steps of most ranks
    functions: dict[str, float]  # the collectives of a step by name, on average
    bytes: int | None  # of these collectives, per step; None: ranks have sizes of their own
    confidence: float
    total: int | None  # estimated number of steps in the whole run; None: all were found
    # why there are no steps, or that they were found from small collectives; which ranks have steps
    # of their own
    why: str
    # by rank, the thread that marks steps or visits the region; default: the main thread
    driving: dict[int, int] = {}
    # steps of one number are the same step on all ranks: by the program's count, not by time
    is_counted: bool = False


class RankStep(NamedTuple):
    """A step of one rank, in the rank's own time: a row of run_step."""

    step: int
    world_rank: int
    begin_ns: int
    end_ns: int
    is_warm_up: int
    is_outlier: int


class Steps(NamedTuple):
    """The steps of a run. Owns the TEMP TABLE run_step; the next search for steps replaces it."""

    connection: Connection
    detection: Detection

    def by_rank(self) -> dict[int, list[RankStep]]:
        """The steps of each rank, in order of time."""
        rows = map(
            RankStep._make,
            self.connection.execute("SELECT * FROM run_step ORDER BY world_rank, begin_ns"),
        )
        return {
            rank: list(of_rank) for rank, of_rank in groupby(rows, key=attrgetter("world_rank"))
        }

    def aligned(
        self, aligned_ns: AlignedNs, wanted: Container[int]
    ) -> dict[int, dict[int, tuple[int, int]]]:
        """When the wanted steps begin and end on the run's time axis, by step and rank."""
        found: dict[int, dict[int, tuple[int, int]]] = {}
        for rank, of_rank in self.by_rank().items():
            for own in of_rank:
                if own.step in wanted:
                    found.setdefault(own.step, {})[rank] = (
                        aligned_ns(rank, own.begin_ns), aligned_ns(rank, own.end_ns),
                    )
        return found


class StepOfRank(NamedTuple):
    step: int
    world_rank: int
    begin_ns: int
    end_ns: int


class CallRow(NamedTuple):
    """stepping_calls.sql"""

    identity: str
    sequence: int
    call: str
    bytes: int
    start_ns: int
    end_ns: int
    is_bulk: int
    is_small: int  # a collective of the main thread that is too small to be bulk
    is_negotiated: int  # the thread negotiates with the other ranks on what to send


class Refused(NamedTuple):
    """Collectives on a communicator that delimit no steps, and why."""

    calls: int
    what: str
    identity: str
    why: str
    confidence: float


class Numbered(NamedTuple):
    """A step as a range of sequence numbers; before: that of the last bulk collective before the
    step, 0 for the first step of the run."""

    before: int
    first: int
    last: int


class Group(NamedTuple):
    """A communicator whose collectives are periodic."""

    identity: str
    period: Period
    steps: list[Numbered]
    functions: dict[str, float]
    sampled: int  # collectives that were analysed

    @property
    def rating(self) -> tuple[bool, int]:
        """Prefers reductions, because gradients are reduced and are most of what a step sends."""
        return any(
            operation(function) in REDUCTIONS for function in self.functions
        ), self.period.bytes


def steps_find(
    run: Selection, aligned_ns: AlignedNs, by: str | None = None, region: str | None = None
) -> Steps:
    """The run must have been opened with samples. By default marked steps are used if there are
    any; otherwise steps are detected."""
    connection = run.connection
    SQL.run(connection, "run_step")
    if why := no_log_text(connection):
        detection, steps = _none(why), []
    elif region is not None:
        detection, steps = _by_region(connection, aligned_ns, region)
    else:
        marked = marked_rows(connection) if by != "calls" else []
        detection, steps = (
            _marked(marked) if marked or by == "marks" else _by_calls(connection, aligned_ns)
        )
    connection.executemany("INSERT INTO run_step VALUES (?, ?, ?, ?, ?, ?)", _judged(steps))
    return Steps(connection, detection)


def _marked(rows: Sequence[MarkedRow]) -> tuple[Detection, list[StepOfRank]]:
    if not rows:
        return _none("the program marked none"), []
    total = max(row.step for row in rows)
    is_whole = total == len({row.step for row in rows})
    detection = Detection(
        "marks", "", "", {}, 0, 1.0, None if is_whole else total, "",
        {row.world_rank: row.thread for row in rows}, True,
    )
    return detection, [StepOfRank(*row[:4]) for row in rows]


def _none(why: str, confidence: float = 0.0) -> Detection:
    return Detection("", "", "", {}, 0, confidence, None, why)


def _by_region(
    connection: Connection, aligned_ns: AlignedNs, name: str
) -> tuple[Detection, list[StepOfRank]]:
    visits: dict[int, list[tuple[int, int]]] = {}
    driving = {}
    for world_rank, begin_ns, end_ns, thread in SQL.run(
        connection, "region_steps", region_name=name
    ):
        driving[world_rank] = thread
        visits.setdefault(world_rank, []).append((begin_ns, end_ns))
    if not visits:
        names = ", ".join(
            name for (name,) in connection.execute("SELECT DISTINCT name FROM region ORDER BY name")
        )
        return _none(
            f"no visit to region '{name}' was sampled; the program named: {names or 'none'}"
        ), []
    begins, ends = (
        {rank: [aligned_ns(rank, visit[at]) for visit in own] for rank, own in visits.items()}
        for at in (0, 1)
    )
    is_counted = agree(begins) or agree(ends)
    numbers = (
        {rank: list(range(1, len(own) + 1)) for rank, own in visits.items()} if is_counted
        else matched(ends)
    )
    steps = [
        StepOfRank(number, rank, *visit) for rank, of_rank in numbers.items()
        for number, visit in zip(of_rank, visits[rank])
    ]
    why = _others_text(sorted(visits.keys() - numbers.keys()))
    return Detection("region", "", "", {}, 0, 1.0, None, why, driving, is_counted), steps


# Steps from calls.


def _by_calls(connection: Connection, aligned_ns: AlignedNs) -> tuple[Detection, list[StepOfRank]]:
    traffic_classify(connection)
    groups, refused = [], []
    rows = map(CallRow._make, SQL.run(connection, "stepping_calls"))
    calls_of = {
        identity: list(of_communicator)
        for identity, of_communicator in groupby(rows, key=attrgetter("identity"))
    }
    for identity, of_communicator in calls_of.items():
        group, calls = _group(identity, of_communicator, attrgetter("is_bulk"))
        if group.steps:
            groups.append(group)
        elif calls:
            why = group.period.why or "no step was sampled whole"
            bulk = units.counted(calls, "bulk collective")
            refused.append(Refused(calls, bulk, identity, why, group.period.confidence))
    small: list[Refused] = []
    if not groups:
        groups, small = _small_groups(calls_of)
    followed = _follow(connection, groups)
    if not followed:
        return _why_none(connection, sum(map(len, calls_of.values())), refused, small), []
    times = {rank: list(own) for rank, own in _times(connection, followed)}
    steps = _numbered(times, followed, aligned_ns)
    if not steps:
        found = max(len(group.steps) for group in followed.values())
        return _none(
            f"no rank has samples of both ends of any of {units.counted(found, 'step')}"
        ), []
    stepping = {step.world_rank for step in steps}
    most = Counter(followed[rank].identity for rank in stepping).most_common(1)[0][0]
    group = next(group for group in groups if group.identity == most)
    total, period = _total(connection, group), group.period
    why = "; ".join(
        filter(
            None,
            [
                period.why,
                _others_text([rank for rank, own in times.items() if own and rank not in stepping]),
            ],
        )
    )
    has_own_sizes = connection.execute("SELECT call FROM rated_call WHERE is_own").fetchall()
    step_bytes = (
        None if group.functions.keys() & {call for (call,) in has_own_sizes} else period.bytes
    )
    return Detection(
        "calls", period.how, most, group.functions, step_bytes, period.confidence, total, why
    ), steps


def _others_text(ranks: list[int]) -> str:
    return (
        f"{units.rank_names(ranks)} left out: {'its' if len(ranks) == 1 else 'their'} steps are at "
        "other times" if ranks else ""
    )


def _why_none(
    connection: Connection, sampled: int, bulk: list[Refused], small: list[Refused]
) -> Detection:
    """sampled: collectives between ranks. The ones of which most were tried are named."""
    if not sampled:
        return _none(_unsampled_text(connection))
    most = sorted(bulk, key=attrgetter("calls"))[-1:]
    tried = [*most, *sorted(small, key=lambda each: -each.calls)[:MOST_REFUSED]]
    labels = dict(connection.execute("SELECT identity, label FROM run_communicator"))
    said = [f"{each.what} on {labels.get(each.identity, '-')}: {each.why}" for each in tried]
    if not bulk:
        said.insert(0, f"none of {units.counted(sampled, 'sampled collective')} is bulk")
    if not bulk and not small:
        said.append("none of them is a small reduction of the main thread")
    if len(small) > MOST_REFUSED:
        said.append(f"nor do {units.counted(len(small) - MOST_REFUSED, 'more kind')} of small ones")
    return _none("; ".join(said), max((each.confidence for each in most), default=0.0))


def _unsampled_text(connection: Connection) -> str:
    counted, own, starts = SQL.run(connection, "counted_collectives").fetchone()
    if own:
        return f"none of {units.counted(own, 'sampled collective')} is sampled on all ranks"
    persistent = " but persistent ones, which delimit no steps" if starts else ""
    if not counted:
        return f"no collective between ranks was counted{persistent}"
    return f"none of {units.counted(counted, 'collective')} between ranks was sampled{persistent}"


def _small_groups(calls_of: dict[str, list[CallRow]]) -> tuple[list[Group], list[Refused]]:
    """A solver may reduce only its time step or residual in each step. Not used if there are bulk
    reductions: small collectives serve those."""
    reductions = (row for rows in calls_of.values() for row in rows if _is_reduction(row.call))
    if sum(row.is_bulk for row in reductions) >= FEWEST_CALLS:
        return [], []
    groups, refused = [], []
    for identity, rows in calls_of.items():
        group, others = _small_group(identity, rows)
        groups += [group] if group else []
        refused += others
    return groups, refused


def _is_reduction(call: str) -> bool:
    return operation(call) in REDUCTIONS


def _small_group(identity: str, rows: list[CallRow]) -> tuple[Group | None, list[Refused]]:
    """The most frequent reduction of one small size that recurs at regular intervals."""
    small = Counter(
        (row.call, row.bytes) for row in rows if row.is_small and _is_reduction(row.call)
    )
    regular, refused = {}, []
    for kind, calls in small.most_common(KINDS_TRIED):
        group, _ = _group(
            identity, rows, lambda row, kind=kind: row.is_small and (row.call, row.bytes) == kind
        )
        why = _irregular_text(group.period, _intervals(rows, group.steps))
        if why:
            what = f"{units.count(calls)} {_kind_text(*kind)}"
            refused.append(Refused(calls, what, identity, why, group.period.confidence))
        else:
            regular[kind] = group
    if not regular:
        return None, refused
    kind, group = next(iter(regular.items()))
    which = (
        "the only regular collective" if len(regular) == 1
        else "the most frequent of the regular collectives"
    )
    why = f"no bulk collective has a period: steps taken from {_kind_text(*kind)}, {which}"
    return group._replace(period=group.period._replace(how="small", why=why)), refused


def _kind_text(call: str, call_bytes: int) -> str:
    return f"{call} of {units.size(call_bytes)}"


def _irregular_text(period: Period, intervals: Sequence[int]) -> str:
    """Why a small collective delimits no steps; "": it does."""
    if period.why:
        return period.why
    if period.confidence < FEWEST_SMALL:
        share, needed = units.share(period.confidence), units.share(FEWEST_SMALL)
        return f"{share} of them are in steps, {needed} are needed"
    if not intervals:
        return "no step was sampled whole"
    if len(intervals) < MANY_STEPS:
        return f"{units.counted(len(intervals), 'interval')} are too few, {MANY_STEPS} are needed"
    return (
        "" if is_steady(intervals)
        else f"they come at irregular times ({len(intervals):,} intervals)"
    )


def _intervals(rows: Sequence[CallRow], steps: Sequence[Numbered]) -> list[int]:
    ends = {row.sequence: row.end_ns for row in rows}
    return [ends[step.last] - ends[step.before] for step in steps if step.before]


def _group(
    identity: str, rows: list[CallRow], is_counted: Callable[[CallRow], object]
) -> tuple[Group, int]:
    """The steps found from the calls that `is_counted` accepts, and the number of these calls."""
    bulk: list[CallRow] = []
    stretches: list[int] = []
    free: list[int] = []
    stretch, last = FROM_THE_START, 0
    for row, free_ns in zip(
        rows, free_times([row.start_ns for row in rows], [row.end_ns for row in rows])
    ):
        stretch += row.sequence != last + 1
        last = row.sequence
        if is_counted(row):
            bulk.append(row)
            stretches.append(stretch)
            free.append(free_ns)
    tokens = _numbers((row.call, row.bytes) for row in bulk)
    functions = _numbers(row.call for row in bulk)
    calls = Calls(
        tokens, functions, [row.bytes for row in bulk], free, [row.end_ns for row in bulk],
        stretches,
    )
    found = find_period(calls, any(row.is_negotiated for row in bulk))
    counts = Counter(bulk[place].call for span in found.spans for place in range(*span))
    own = {
        call: count / len(found.spans) for call, count in counts.items()
        if count >= len(found.spans) / 2
    }
    steps = [
        Numbered(
            _before(bulk, stretches, span.first, own), bulk[span.first].sequence,
            bulk[span.end - 1].sequence,
        )
        for span in found.spans
    ]
    return Group(
        identity, found, [step for step in steps if step.before is not None], own, len(rows)
    ), len(bulk)


def _numbers(keys: Iterable[object]) -> list[int]:
    """A number for each key; equal keys have equal numbers."""
    known: dict[object, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def _before(
    bulk: Sequence[CallRow], stretches: Sequence[int], first: int, own: Container[str]
) -> int | None:
    """Sequence number of the last call of the step's functions before the step; a checkpoint
    between two steps belongs to the second. 0: the step begins with the run. None: samples before
    the step are missing."""
    for place in range(first - 1, -1, -1):
        if stretches[place] != stretches[first]:
            return None
        if bulk[place].call in own:
            return bulk[place].sequence
    return 0 if stretches[first] == FROM_THE_START else None


def _follow(connection: Connection, groups: Sequence[Group]) -> dict[int, Group]:
    """By rank, the communicator that determines its steps. All ranks take the same of equal ones:
    threads may number theirs otherwise."""
    by_identity = {group.identity: group for group in groups}
    followed: dict[int, Group] = {}
    places: dict[str, int] = {}
    for world_rank, identity in connection.execute(
        "SELECT world_rank, identity FROM communicator ORDER BY world_rank, communicator"
    ):
        group, place = by_identity.get(identity), places.setdefault(identity, len(places))
        best = followed.get(world_rank)
        if group and (
            best is None or (group.rating, -place) > (best.rating, -places[best.identity])
        ):
            followed[world_rank] = group
    connection.executemany(
        "INSERT INTO followed VALUES (?, ?)",
        [(rank, group.identity) for rank, group in followed.items()],
    )
    return followed


def _times(
    connection: Connection, followed: dict[int, Group]
) -> Iterator[tuple[int, Iterator[tuple[int, int, int]]]]:
    """For each rank (index of the step in its group, begin, end), where the samples that bound the
    step exist."""
    rows = SQL.run(connection, "followed_samples")
    for world_rank, samples in groupby(rows, key=itemgetter(0)):
        yield (
            world_rank,
            _times_of_rank(
                followed[world_rank].steps, {sequence: end_ns for _, sequence, end_ns in samples}
            ),
        )


def _times_of_rank(
    steps: Sequence[Numbered], ends: dict[int, int]
) -> Iterator[tuple[int, int, int]]:
    latest, previous = 0, 0
    for place, step in enumerate(steps):
        if step.last not in ends or (step.before and step.before not in ends):
            continue
        if step.before:
            begin_ns = max(ends[step.before], latest if previous == step.before else 0)
        else:
            begin_ns = max(
                (ends[sequence] for sequence in range(1, step.first) if sequence in ends), default=0
            )
        end_ns = max(
            ends[sequence] for sequence in range(step.first, step.last + 1) if sequence in ends
        )
        latest, previous = end_ns, step.last
        if end_ns > begin_ns:
            yield place, begin_ns, end_ns


def _numbered(
    times: dict[int, list[tuple[int, int, int]]], followed: dict[int, Group], aligned_ns: AlignedNs
) -> list[StepOfRank]:
    """Numbers the steps of the whole run. Within a group the index identifies the step; groups are
    matched by their first ranks."""
    speakers: dict[str, int] = {}
    for rank, own in times.items():
        best = speakers.get(followed[rank].identity)
        if best is None or len(own) > len(times[best]):
            speakers[followed[rank].identity] = rank
    numbers = matched(
        {
            rank: [aligned_ns(rank, end_ns) for _, _, end_ns in times[rank]]
            for rank in speakers.values() if times[rank]
        }
    )
    of_place = {
        identity: {
            place: number for (place, _, _), number in zip(times[rank], numbers.get(rank, ()))
        }
        for identity, rank in speakers.items()
    }
    return [
        StepOfRank(of_place[followed[rank].identity][place], rank, begin_ns, end_ns)
        for rank, own in times.items() for place, begin_ns, end_ns in own
        if place in of_place[followed[rank].identity]
    ]


def _total(connection: Connection, group: Group) -> int | None:
    (collectives,) = SQL.run(connection, "sampled_collectives", identity=group.identity).fetchone()
    of_steps = sum(step.last - step.before for step in group.steps)
    return (
        None if collectives <= group.sampled else round(len(group.steps) * collectives / of_steps)
    )


# Warm-up and outliers.


def _judged(steps: Sequence[StepOfRank]) -> Iterator[tuple[int, int, int, int, int, int]]:
    sums: dict[int, list[int]] = {}
    for step in steps:
        sums.setdefault(step.step, []).append(step.end_ns - step.begin_ns)
    times = {number: sum(own) / len(own) for number, own in sorted(sums.items())}
    first = set(warm_up(times))
    steady = {number: time for number, time in times.items() if number not in first}
    limit = outlier_limit(list(steady.values()))
    for step in steps:
        yield (*step, step.step in first, step.step not in first and times[step.step] > limit)


def outlier_limit(times: Sequence[float]) -> float:
    if not times:
        return 0.0
    usual = median(times)
    deviation = median(abs(time - usual) for time in times)
    return max(usual + FAR_OUT * deviation, OUTLIER * usual)
