"""The steps of a run: marked by the program, visits to a region, or loops in the calls.

    marks, visits to a region  ---------------------------------------------------->  Boundaries
    the loop that is the     ->  by the numbers of the     ->  when each rank left    Steps
    step of a rank               collectives that end it,      the last call of each
    (stepping.py)                those of other ranks

Ranks that end their steps with no common collective have steps of their own, matched by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high
from typing import NamedTuple

from ..base import (
    Columns,
    Connection,
    Flags,
    Floats,
    Ints,
    NONE,
    Row,
    Texts,
    agree,
    around_median,
    by_rank,
    each_from,
    gathered,
    grouped,
    joined,
    matched,
    np,
    present,
    query,
    summarize,
    table,
    threshold,
    units,
    warm_up,
)
from ..calls import (
    is_call,
    region_spans,
)
from ..late.marks import HANDED
from ..run import Alignment, Cells, cells_of, communicators
from .lines import (
    OwnCalls,
    SampledCalls,
    about_calls,
    collectives,
    own_calls,
    threads_of,
)
from .stepping import Found, VISITS, numbered_steps, steps_of

FAR_OUT, OUTLIER = threshold("steps.far-out"), threshold("steps.outlier")
MOST_ANALYSED = 64  # different sequences of calls: those of further ranks are not read


class Detection(NamedTuple):
    """How the steps of a run were found."""

    by: str  # 'marks', 'region', 'negotiation', 'calls'; '': no steps
    why: str = ""  # there are no steps, or which ranks are left out
    total: int | None = None  # estimated number of steps in the run; None: all were found
    # by rank, the thread that marks steps or visits the region; default: the main thread
    driving: dict[int, int] = {}
    period: str = ""  # what a step has, in words: 5 bulk MPI_Allreduce, 102 MB; 31 tensors
    found: Found = Found()  # of most ranks, by calls; without steps, that of which most repeats
    identity: str = ""  # of the communicator that determines these
    apart: Sequence[str] = ()  # ranks whose steps come at other times, in words


@dataclass(frozen=True)
class Bounds(Columns):
    """When each step of each rank begins and ends, in the rank's own time."""

    step: Ints  # from 1; for marked steps, the program's own number
    world_rank: Ints
    begin_ns: Ints
    end_ns: Ints


@dataclass(frozen=True)
class Boundaries(Bounds):
    """By rank, in order of time."""

    is_warm_up: Flags
    is_outlier: Flags
    is_complete: Flags  # no samples are missing in it

    @property
    def step_ns(self) -> Ints:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Steps:
    detection: Detection
    rows: Boundaries

    def aligned(
        self, alignment: Alignment, wanted: Container[int]
    ) -> dict[int, dict[int, tuple[int, int]]]:
        """When the wanted steps begin and end on the run's time axis, by step and rank."""
        rows = self.rows
        begins, ends = (
            alignment.aligned(rows.world_rank, times).tolist()
            for times in (rows.begin_ns, rows.end_ns)
        )
        found: dict[int, dict[int, tuple[int, int]]] = {}
        for step, rank, *times in zip(rows.step.tolist(), rows.world_rank.tolist(), begins, ends):
            if step in wanted:
                found.setdefault(step, {})[rank] = (times[0], times[1])
        return found

    def whole(self) -> Boundaries:
        """The complete steps of each rank after the warm-up."""
        return self.rows.take(self.rows.is_complete & ~self.rows.is_warm_up)


Unjudged = tuple[Detection, Bounds]


def none(why: str, found: Found = Found()) -> Unjudged:
    return Detection("", why, found=found), table(Bounds, [], Texts())


def marked(rows: Sequence[query.Row]) -> Unjudged:
    if not rows:
        return none("the program marked none")
    steps = [(row.step, row.world_rank, row.begin_ns, row.end_ns) for row in rows]
    return Detection(
        "marks",
        total=_beyond(rows, max(row.step for row in rows)),
        driving={row.world_rank: row.thread for row in rows},
        found=Found(evidence=("marks",)),
    ), table(Bounds, steps, Texts())


def _beyond(rows: Sequence[query.Row], total: int) -> int | None:
    """The number of all steps, if that is more than are known."""
    return total if total > len({row.step for row in rows}) else None


def negotiated(rows: Sequence[query.Row], total: int) -> Unjudged:
    """total: how often most tensors were agreed on."""
    steps = [(row.step, row.world_rank, row.begin_ns, row.done_ns) for row in rows]
    return Detection(
        HANDED,
        total=_beyond(rows, total),
        period=units.counted(median_high(row.tensors for row in rows), "tensor"),
        found=Found(evidence=("each tensor is agreed on once a step",)),
    ), table(Bounds, steps, Texts())


def by_region(connection: Connection, alignment: Alignment, name: str) -> Unjudged:
    every = region_spans(connection)
    rows = every.columns.take(every.is_in("name", name) & (every.span_ns > 0))
    spans = [*rows.tuples("world_rank thread begin_ns end_ns")]
    often = Counter(span[:2] for span in spans)
    # the thread of each rank that visited it most often
    driving = dict(sorted(often, key=lambda each: (often[each], -each[1])))
    visits = gathered((rank, span) for rank, thread, *span in spans if thread == driving[rank])
    if not visits:
        names = ", ".join(
            name for (name,) in connection.execute("SELECT DISTINCT name FROM region ORDER BY name")
        )
        return none(
            f"no visit to region '{name}' was sampled; the program named: {names or 'none'}"
        )
    begins, ends = (
        {
            rank: [alignment.aligned_ns(rank, visit[at]) for visit in own]
            for rank, own in visits.items()
        }
        for at in (0, 1)
    )
    numbers = (
        {rank: list(range(1, len(own) + 1)) for rank, own in visits.items()}
        if agree(begins) or agree(ends)
        else matched(ends)
    )
    steps = [
        (number, rank, *visit)
        for rank, of_rank in numbers.items()
        for number, visit in zip(of_rank, visits[rank])
    ]
    left = sorted(visits.keys() - numbers.keys())
    their = units.agreeing("their", len(left))
    why = f"{units.rank_names(left)} left out: {their} steps are at other times" if left else ""
    return (
        Detection("region", why, driving=driving, found=Found(evidence=("region",))),
        table(Bounds, steps, Texts()),
    )


# Steps from calls.


class Group(NamedTuple):
    """Ranks whose steps are the same by the numbers of collectives, or a rank of its own."""

    identity: int  # of the communicator whose collectives end the steps; NONE: messages do
    ranks: list[int]
    found: Found
    times: Bounds  # the place of each step in the group in place of its number
    steps: Columns | None = None  # by the numbers of the collectives
    known: int = 0  # sampled collectives on the communicator


def by_calls(
    connection: Connection, alignment: Alignment, sampled: SampledCalls, loop: int | None = None
) -> Unjudged:
    """loop: the number of the loop that the user calls the step."""
    known = communicators(connection, sampled.texts)
    numbered = collectives(sampled, known)
    every = summarize(region_spans(connection), VISITS)
    visits = gathered((visit.rank, visit) for visit in every)
    commands = dict(
        connection.execute("SELECT world_rank, value FROM fact WHERE key = 'command_line'")
    )
    groups, refused = find_groups(sampled, numbered, len(alignment.ranks), visits, commands, loop)
    if not groups:
        return _why_none(connection, refused, len(numbered), len(sampled.starts))
    own = joined(Bounds, [group.times for group in groups])
    if not len(own):
        most_steps = max(len(present(group.found.spans)) for group in groups)
        return none(
            f"no rank has samples of both ends of any of {units.counted(most_steps, 'step')}"
        )
    # of as many ranks those with the most time in steps: the slow half of a job
    steps, *others = sorted(
        _together(own, groups, alignment),
        key=lambda each: (len(np.unique(each.world_rank)), (each.end_ns - each.begin_ns).sum()),
        reverse=True,
    )
    stepping_ranks = {*np.unique(steps.world_rank).tolist()}
    group = max(groups, key=lambda each: len(stepping_ranks.intersection(each.ranks)))
    found = group.found
    total = _total(connection, sampled, group)
    return Detection(
        "calls",
        _without_text(refused, {*np.unique(own.world_rank).tolist()}),
        total,
        found=found,
        period=found.period,
        identity=sampled.texts.text(group.identity) or "",
        apart=[_apart(each, groups) for each in others],
    ), steps


def _together(own: Bounds, groups: Sequence[Group], alignment: Alignment) -> Iterator[Bounds]:
    """The steps of ranks that step together."""
    while len(own):
        steps = _numbered(own, groups, alignment)
        yield steps
        own = own.take(~np.isin(own.world_rank, steps.world_rank))


def _apart(steps: Bounds, groups: Sequence[Group]) -> str:
    """ranks 2-3: 60 steps of 1 bulk MPI_Allreduce, median 12.0 ms"""
    ranks = np.unique(steps.world_rank)
    found = next(group.found for group in groups if ranks[0] in group.ranks)
    times = np.sort(steps.end_ns - steps.begin_ns)
    return (
        f"{units.rank_names(ranks.tolist())}: "
        f"{units.counted(len(np.unique(steps.step)), 'step')} of {found.calls_text}, median "
        f"{units.duration(float(times[len(times) // 2]))}"
    )


def find_groups(
    sampled: SampledCalls,
    numbered: Columns,
    ranks: int,
    visits: Mapping[int, Sequence[Row]],
    commands: Mapping[int, str],
    loop: int | None,
) -> tuple[list[Group], dict[int, Found]]:
    """The steps of each rank that leads a communicator, or follows none; and the ranks without
    steps. Ranks whose calls are equal have equal steps."""
    about = about_calls(sampled)
    analysed: dict[bytes, Found] = {}
    groups: list[Group] = []
    refused: dict[int, Found] = {}
    done: set[int] = set()
    of_rank = dict(by_rank(numbered.world_rank))
    for rank, rows in threads_of(sampled, about):
        if rank in done:
            continue
        mine = numbered.take(of_rank[rank]) if rank in of_rank else numbered.take(slice(0, 0))
        own = own_calls(sampled, about, mine, rows, ranks)
        is_negotiated = bool(sampled.of_threads.is_negotiating[rows[0]])
        own = own.take(own.is_bulk | (not is_negotiated))
        sizes = np.where(own.sequence == NONE, 0, own.bytes)
        key = b"".join(column.tobytes() for column in (own.token, sizes, own.stretch))
        if key not in analysed and len(analysed) < MOST_ANALYSED:
            analysed[key] = steps_of(
                own,
                about,
                sampled.texts,
                is_negotiated,
                visits.get(rank, ()),
                commands.get(rank, ""),
                loop,
            )
        found = analysed.get(key)
        if found is None or not found.evidence:
            refused |= {rank: found} if found else {}
            continue
        steps = numbered_steps(own, found)
        if steps is None:
            groups.append(Group(NONE, [rank], found, _own_times(own, found, rank)))
        else:
            identity, in_order = steps
            members = numbered.take(numbered.identity == identity)
            following = sorted({*members.world_rank.tolist()} - done)
            times = _times(members.take(np.isin(members.world_rank, following)), in_order)
            known = int((mine.identity == identity).sum())
            groups.append(Group(identity, following, found, times, in_order, known))
        done.update(groups[-1].ranks)
    return groups, refused


def _without_text(refused: Mapping[int, Found], stepping: Container[int]) -> str:
    """Ranks that have no steps, and why the calls of the first of them show none."""
    left = [rank for rank in refused if rank not in stepping]
    if not left:
        return ""
    of_first = "" if len(left) == 1 else f" (rank {left[0]})"
    have = units.agreeing("have", len(left))
    return f"{units.rank_names(left)} {have} none: {refused[left[0]].why}{of_first}"


def _why_none(
    connection: Connection, refused: Mapping[int, Found], own: int, starts: int
) -> Unjudged:
    """The answer for the rank of which most repeats. own: sampled collectives between ranks;
    starts: of persistent ones."""
    if not refused:
        return none(_unsampled_text(cells_of(connection).whole, own, starts))
    best = max(refused, key=lambda rank: (refused[rank].confidence, -rank))
    return none(f"in the calls of rank {best}: {refused[best].why}", refused[best])


def _unsampled_text(cells: Cells, own: int, starts: int) -> str:
    is_between = (cells.size != 1) & ~cells.is_in("identity", "none", "other", "unknown")
    is_sought = cells.is_in("family", "collective", "neighborhood") & is_call(cells)
    is_sought &= is_between & ~cells.is_in("form", "persistent")
    counted = int(cells.count[is_sought].sum())
    if own:
        return f"none of {units.counted(own, 'sampled collective')} is sampled on all ranks"
    persistent = " but persistent ones, which delimit no steps" if starts else ""
    if not counted:
        return f"no collective between ranks was counted{persistent}"
    return f"none of {units.counted(counted, 'collective')} between ranks was sampled{persistent}"


def _own_times(own: OwnCalls, found: Found, rank: int) -> Bounds:
    """A step begins with the last call of the step before, and ends with its own."""
    upto_ns, spans = np.maximum.accumulate(own.end_ns), present(found.spans)
    first, end_ns = spans.first, upto_ns[spans.end - 1]
    is_after = (first > 0) & (own.stretch[first - 1] == own.stretch[first])
    begin_ns = np.where(is_after, upto_ns[first - 1], own.start_ns[first])
    bounds = Bounds(np.arange(len(spans)), np.full(len(spans), rank), begin_ns, end_ns)
    return bounds.take(end_ns > begin_ns)


def _times(own: Columns, steps: Columns) -> Bounds:
    """The steps of each rank, as far as the samples that bound them exist on all ranks."""
    own = own.take(np.lexsort((own.sequence, own.world_rank)))
    parts = [
        _times_of_rank(rank, steps, own.sequence[rows], own.done_ns[rows])
        for rank, rows in by_rank(own.world_rank)
    ]
    bounds = joined(Bounds, parts)
    return bounds.take(np.bincount(bounds.step, minlength=1)[bounds.step] == len(parts))


def _times_of_rank(rank: int, steps: Columns, sequence: Ints, done_ns: Ints) -> Bounds:
    def at(wanted: Ints) -> Ints:
        """-1: it was not sampled."""
        place = np.minimum(np.searchsorted(sequence, wanted), len(sequence) - 1)
        return np.where(sequence[place] == wanted, place, -1)

    place = np.flatnonzero((at(steps.last) >= 0) & ((steps.before == 0) | (at(steps.before) >= 0)))
    steps = steps.take(place)
    inside = np.stack(
        [np.searchsorted(sequence, steps.first), np.searchsorted(sequence, steps.last, "right")], 1
    ).ravel()
    end_ns = np.maximum.reduceat(np.append(done_ns, 0), inside)[::2] if len(steps) else steps.last
    # a step begins no earlier than the step directly before it ends
    is_next = steps.before == np.append(-1, steps.last[:-1])
    latest_ns = np.where(is_next, np.append(0, end_ns[:-1]), 0)
    upto_ns = np.append(0, np.maximum.accumulate(done_ns))
    begin_ns = np.where(
        steps.before > 0,
        np.maximum(done_ns[at(steps.before)], latest_ns),
        upto_ns[np.searchsorted(sequence, steps.first)],
    )
    found = Bounds(place, np.full(len(place), rank), begin_ns, end_ns)
    return found.take(end_ns > begin_ns)


def _numbered(own: Bounds, groups: Sequence[Group], alignment: Alignment) -> Bounds:
    """Numbers the steps of the whole run. Within a group the index identifies the step; groups are
    matched by the rank of which most steps are known."""
    rows_of = dict(by_rank(own.world_rank))
    speakers = {
        max(known, key=lambda rank: len(rows_of[rank])): group
        for group in groups
        if (known := [rank for rank in group.ranks if rank in rows_of])
    }
    ends = alignment.aligned(own.world_rank, own.end_ns)
    numbers = matched({rank: ends[rows_of[rank]].tolist() for rank in speakers})
    number = np.zeros(len(own), np.int64)
    for speaker, group in speakers.items():
        of_place = np.zeros(len(present(group.found.spans)), np.int64)
        of_place[own.step[rows_of[speaker]]] = numbers.get(speaker, 0)
        for rank in group.ranks:
            rows = rows_of.get(rank, np.empty(0, np.int64))
            number[rows] = of_place[own.step[rows]]
    return replace(own, step=number).take(number > 0)


def _total(connection: Connection, sampled: SampledCalls, group: Group) -> int | None:
    if group.steps is None:
        return None
    identity = sampled.texts.text(group.identity)
    (possible,) = query.run(connection, "steps/sampled_collectives", identity=identity).fetchone()
    of_steps = int((group.steps.last - group.steps.before).sum())
    known = group.known
    return None if possible <= known else round(len(group.steps) * possible / of_steps)


# Warm-up, outliers, and steps with missing samples.


def judged(times: Bounds, missing: Mapping[int, Sequence[query.Row]]) -> Boundaries:
    times = times.take(np.lexsort((times.begin_ns, times.world_rank)))
    of_step = dict(zip(np.unique(times.step).tolist(), means_of_steps(times).tolist()))
    first = set(warm_up(of_step))
    limit = outlier_limit([time for number, time in of_step.items() if number not in first])
    is_first = np.isin(times.step, [*first])
    is_long = np.isin(times.step, [number for number, time in of_step.items() if time > limit])
    return Boundaries(
        times.step,
        times.world_rank,
        times.begin_ns,
        times.end_ns,
        is_first,
        is_long & ~is_first,
        _is_complete(times, missing),
    )


def means_of_steps(times: Bounds) -> Floats:
    """The duration of each step, in order of their numbers: means over its ranks."""
    order, groups = grouped(times.step)
    return groups.sum((times.end_ns - times.begin_ns)[order]) / groups.counts


def _is_complete(times: Bounds, missing: Mapping[int, Sequence[query.Row]]) -> Flags:
    is_complete = np.ones(len(times), bool)
    for rank, own in by_rank(times.world_rank):
        holes = np.array([hole[2:] for hole in missing.get(rank, ())], np.int64).reshape(-1, 2)
        spans = times.begin_ns[own], times.end_ns[own]
        _, place, *_ = overlapping(holes[:, 0], holes[:, 1], *spans)
        is_complete[own[place]] = False
    return is_complete


def overlapping(
    begin_ns: Ints, end_ns: Ints, begins: Ints, ends: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Each row of the times with each of the spans, in order of their begins, that it overlaps (of
    spans that end within one before them, also with these): the row, the span, and when what they
    have in common begins and ends."""
    first = np.searchsorted(np.maximum.accumulate(ends), begin_ns, "right")
    row, span = each_from(first, np.maximum(np.searchsorted(begins, end_ns) - first, 0))
    return row, span, np.maximum(begin_ns[row], begins[span]), np.minimum(end_ns[row], ends[span])


def outlier_limit(times: Sequence[float]) -> float:
    if not times:
        return 0.0
    usual, deviation = around_median(times)
    return max(usual + FAR_OUT * deviation, OUTLIER * usual)
