"""Which rank comes last to a point of each step: for jobs whose MPI calls do not show it.

A framework such as Horovod makes all MPI calls on a thread that negotiates, which joins every call
in time whatever the main thread does. The main thread shows a slow rank where it has handed its
gradients over and begins to wait: the slow rank comes last. The thread's rounds say when that was,
by what each rank offers and what all agree on. Else programs mark that place by commprof_step, or
by a region around the wait.

    rank 0  | forward, backward |M  waits for gradients  | update | ...
    rank 1  | forward, backward, longer   |M  waits      | update | ...  last, by what it is behind

A wait region is known by its name, and by what happens in it (docs/METHODS.md): the thread calls no
MPI there, while another one communicates. The time from a hand-over to the end of the step's sums
is one, too.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Callable, Tuple

from ..base import (
    Connection,
    Ints,
    NONE,
    Row,
    gathered,
    matched,
    np,
    query,
    sums,
    threshold,
    warm_up,
)
from ..calls import (
    around,
    is_mpi_call,
    region_spans,
)
from ..run import cells_of
from ..run.sampled import sampled
from .reading import Known, told
from .verdict import FEWEST_BLOCKS, NOTABLE, Participants, blame, block_count, costs_of

NOTABLE_LEAD = threshold("late.mark-lead")
HANDED = "negotiation"  # in place of a region's name
DATA = ("collective", "neighborhood", "point-to-point", "completion")

# (world_rank, time_ns): converts a rank's own time to aligned_ns
AlignedNs = Callable[[int, int], int]
Span = tuple[int, int]  # begin, end
Times = dict[int, dict[int, int]]  # by step, aligned times of ranks
Open = Mapping[tuple[int, int], int]  # by step and rank, by how much a time may be off


# A region in which the program waits for a thread that communicates. visits: by rank, Spans in its
# own time, in order. Sums over ranks: time_ns, and of it communicating_ns, while another thread is
# in a data operation.
WaitRegion = namedtuple("WaitRegion", "name visits time_ns communicating_ns")


class Last(
    namedtuple(
        "Last",
        "region judged by_step behind_ns waits_ns named blocks open_share",
        defaults=[None, 0, 0.0],
    )
):
    """Which ranks come last to a point of a step.

    region      the wait region at whose begin ranks are compared; HANDED: where they hand their
                tensors over; "": a mark
    judged      steps, or visits to the region, after the warm-up
    by_step     the last rank and its distance, if it is sure
    behind_ns   the sum of what the last ranks of all judged ones, sure or not, are behind
    waits_ns    by rank: from its arrivals, if known, to the last ones
    named       Named: the ranks that are last beyond chance, by a test in so many `blocks`
    open_share  of steps, in which no two ranks are known to have come when
    """

    @property
    def is_known(self) -> bool:
        return self.judged >= FEWEST_BLOCKS and (bool(self.named) or not self.is_open)

    @property
    def is_open(self) -> bool:
        return self.open_share >= threshold("late.concentrated")

    @property
    def leader(self) -> int | None:
        """The rank that is behind the most; None: none is last surely."""
        ranks, leads_ns = np.array([*self.by_step.values(), (0, 0)]).T
        return int(np.bincount(ranks.astype(int), leads_ns).argmax()) if self.by_step else None

    @property
    def leads_ns(self) -> list[float]:
        """Distances from the mean of the others, of these ranks, or the leader."""
        ranks = self.named.ranks if self.named else (self.leader,)
        return [lead_ns for rank, lead_ns in self.by_step.values() if rank in ranks]

    @property
    def times(self) -> int:
        """In how many of the judged ones they are last."""
        return len(self.leads_ns)

    @property
    def lead_ns(self) -> float | None:
        return median(self.leads_ns) if self.by_step else None

    @property
    def share(self) -> float:
        return sum(self.leads_ns) / self.behind_ns if self.by_step else 0.0


def marked_steps(connection: Connection) -> list[Row]:
    return list(query.rows(connection, "late/marked_steps"))


# Rows of handed_steps.sql, and how many steps each one stands for.
Handed = namedtuple("Handed", "rows thinned")


def handed_steps(connection: Connection) -> Handed | None:
    """On the communicator, and in steps of the number of tensors, that have most of them: a metric
    summed alone is no step."""
    rows, tensors = list(query.rows(connection, "late/handed_steps")), Counter[Tuple[str, int]]()
    for row in rows:
        tensors[row.identity, row.tensors] += row.tensors
    if not rows:
        return None
    identity, usual = min(tensors, key=lambda kind: (-tensors[kind], kind[1]))
    rows = [row for row in rows if row.identity == identity]
    steps = {row.step for row in rows}
    return Handed([row for row in rows if 2 * row.tensors > usual], max(steps) / len(steps))


def steps_agreed_on(connection: Connection) -> int:
    """How often most tensors were: once a step, whatever is sent together; one with a name of its
    own in each step once in all."""
    rows = connection.execute("SELECT world_rank, communicator, agreed FROM negotiated_place")
    places = gathered(((rank, communicator), agreed) for rank, communicator, agreed in rows)
    often = Counter(max(places.values(), key=sum, default=()))
    return max(often, key=lambda agreed: (agreed > 1, often[agreed], agreed), default=0)


def is_wait(region: str) -> bool:
    """Its name, the last part of a path, begins with "wait" or "sync"."""
    return region.rsplit("/", 1)[-1].lower().startswith(("wait", "sync"))


def wait_region(connection: Connection, known: Known) -> WaitRegion | None:
    """The one with most time."""
    visits = _wait_visits(connection)
    visits += (
        (HANDED, row.world_rank, NONE, row.waits_ns, row.done_ns)
        for row in query.rows(connection, "late/handed_steps")
        if row.waits_ns is not None
    )
    if not visits:
        return None
    waiting = gathered((rank, thread) for _, rank, thread, *_ in visits)
    operations = _data_operations(connection, known, waiting)
    spans = gathered((name, (rank, (begin, end))) for name, rank, _, begin, end in visits)
    regions = (region_of(name, gathered(own), operations) for name, own in spans.items())
    # the program knows better when it waits
    return max(
        filter(None, regions), key=lambda each: (each.name != HANDED, each.time_ns), default=None
    )


def _wait_visits(connection: Connection) -> list[tuple[str, int, int, int, int]]:
    """Region, rank, thread, begin and end: on the thread that visited it most often, if that calls
    no MPI in it."""
    spans, cells = region_spans(connection), cells_of(connection).whole
    is_own = spans.is_in("name", *filter(is_wait, spans.texts.texts)) & (spans.span_ns > 0)
    names = spans.texts.texts
    visits = [
        (names[name], *visit)
        for name, *visit in spans.columns.take(is_own).tuples(
            "name world_rank thread begin_ns end_ns"
        )
    ]
    often = Counter(visit[:3] for visit in visits)
    most = {each[:2]: each for each in sorted(often, key=lambda each: (often[each], -each[2]))}
    calls = sums(cells, ["region", "world_rank", "thread"], is_mpi_call)
    places = zip(calls.texts(calls.region), calls.world_rank.tolist(), calls.thread.tolist())
    calling = {(outer, *place) for region, *place in places for outer in around(region)}
    return [visit for visit in visits if visit[:3] == most[visit[:2]] and visit[:3] not in calling]


def _data_operations(
    connection: Connection, known: Known, waiting: Mapping[int, Sequence[int]]
) -> dict[int, list[Span]]:
    """When did threads of a rank other than one that waits move data? Not control, which a thread
    that negotiates is in all the time. NCCL's operations by their time on the device, if known.
    waiting: threads, by rank."""
    texts, calls, _, _ = sampled(connection)
    _, is_large = told(connection, calls, texts)
    is_large |= known.which(  # whatever the size
        calls.call, texts, lambda call: call.library == "nccl" or call.family == "completion"
    )
    is_data = is_large & known.which(calls.call, texts, lambda call: call.family in DATA)
    calls = calls.take(is_data & np.isin(calls.world_rank, [*waiting]))
    is_timed = calls.device_start_ns != NONE
    calls = calls.changed(
        begin_ns=np.where(is_timed, calls.device_start_ns, calls.start_ns),
        end_ns=np.where(is_timed, calls.device_end_ns, calls.end_ns),
    )
    return gathered(
        (rank, (begin, end))
        for rank, begin, end, thread in sorted(calls.tuples("world_rank begin_ns end_ns thread"))
        if {*waiting[rank]} - {thread}
    )


def covered_ns(intervals: Sequence[Span], times: Sequence[Span] | Ints) -> Ints:
    """How much of each time is in any of the intervals, which are in order of their begin."""
    begins, ends = np.array(intervals, np.int64).reshape(-1, 2).T
    bounds, latest = np.asarray(times, np.int64), np.maximum.accumulate(ends)
    more = np.maximum(0, ends - np.maximum(begins, np.append(begins[:1], latest[:-1])))
    place = np.searchsorted(begins, bounds)
    beyond = np.where(place > 0, np.maximum(0, np.append(0, latest)[place] - bounds), 0)
    return np.diff(np.append(0, np.cumsum(more))[place] - beyond)[:, 0]


def region_of(
    name: str, visits: dict[int, list[Span]], busy: Mapping[int, Sequence[Span]]
) -> WaitRegion | None:
    """None: in most of the time in its visits nobody communicates at all."""
    of_ranks = [
        (np.diff(own)[:, 0], covered_ns(busy.get(rank, ()), own)) for rank, own in visits.items()
    ]
    own_ns, spent_ns = (np.concatenate(part) for part in zip(*of_ranks))
    is_own = own_ns[spent_ns > 0].sum() >= threshold("late.communicated") * own_ns.sum() > 0
    return WaitRegion(name, visits, int(own_ns.sum()), int(spent_ns.sum())) if is_own else None


def last_at_marks(
    connection: Connection, aligned_ns: AlignedNs, region: WaitRegion | None, error_ns: float
) -> Last | None:
    """At handing over, if ranks negotiate. Else at the begin of the wait region, or, if nobody
    is last there beyond chance, at the marks. None: there is nothing of these."""
    found = []
    if handed := handed_steps(connection):
        found.append(last_to_hand_over(*handed, aligned_ns))
        if found[0].is_known:
            return found[0]
    if region and region.name != HANDED:
        found.append(_judged(region.name, _visited(region, aligned_ns), error_ns))
    if not any(each.named for each in found) and (marked := marked_steps(connection)):
        steps = (
            (
                row.step,
                row.world_rank,
                aligned_ns(row.world_rank, row.begin_ns),
                row.end_ns - row.begin_ns,
            )
            for row in marked
        )
        found.append(_judged("", steps, error_ns))
    return next((each for each in found if each.named), found[-1] if found else None)


def last_to_hand_over(rows: Sequence[Row], thinned: float, aligned_ns: AlignedNs) -> Last:
    """All ranks agree in the same round, so each one's clock says how long before that it had
    handed over: the clocks of ranks are not compared."""
    agreed_ns = {row.step: aligned_ns(row.world_rank, row.agreed_ns) for row in reversed(rows)}
    steps = (
        (
            row.step,
            row.world_rank,
            agreed_ns[row.step] - row.agreed_ns + row.handed_ns,
            row.done_ns - row.begin_ns,
        )
        for row in rows
    )
    open_ns = {(row.step, row.world_rank): row.open_ns for row in rows}
    last = _judged(HANDED, steps, 0.0, thinned, open_ns)
    known = Counter(row.step for row in rows if not row.is_open)
    unknown = Counter(row.world_rank for row in rows if row.is_open)
    return last._replace(
        open_share=fmean(known[step] < 2 for step in agreed_ns),
        waits_ns={
            rank: ns
            for rank, ns in last.waits_ns.items()
            if unknown[rank] < threshold("late.concentrated") * len(agreed_ns)
        },
    )


def _visited(region: WaitRegion, aligned_ns: AlignedNs) -> Iterator[tuple[int, int, int, int]]:
    """Steps (number, rank, aligned time, length) from each visit of a rank to its next one. Ranks
    leave the region together, so visits are matched by their ends."""
    numbers = matched(
        {
            rank: [aligned_ns(rank, end_ns) for _, end_ns in own]
            for rank, own in region.visits.items()
        }
    )
    for rank, steps in numbers.items():
        begins = [begin_ns for begin_ns, _ in region.visits[rank]]
        usual_ns = round(
            median([later - earlier for earlier, later in zip(begins, begins[1:])] or [0])
        )
        for step, begin_ns, next_ns in zip(steps, begins, [*begins[1:], begins[-1] + usual_ns]):
            yield step, rank, aligned_ns(rank, begin_ns), next_ns - begin_ns


def _judged(
    region: str,
    arrivals: Iterable[tuple[int, int, int, int]],
    error_ns: float,
    thinned: float = 1.0,
    open_ns: Open = {},
) -> Last:
    """The test of verdict.py with steps in place of late arrivals, and what the last rank is behind
    in place of waiting. arrivals: step, rank, aligned time, length. thinned: how many steps each
    one stands for."""
    steps = gathered((step, own) for step, *own in sorted(arrivals))
    lengths_ns = {step: fmean(length_ns for *_, length_ns in own) for step, own in steps.items()}
    first = set(warm_up(lengths_ns))
    times = {
        step: {rank: time_ns for rank, time_ns, _ in own}
        for step, own in steps.items()
        if len(own) > 1 and step not in first
    }
    last = last_ranks(times, lengths_ns, error_ns, open_ns)
    behind_ns = sum(max(distances(of_step).values()) for of_step in times.values())
    ranks = sorted({rank for of_step in times.values() for rank in of_step})
    waits_ns = {
        rank: sum(max(own.values()) - own[rank] for own in times.values() if rank in own)
        for rank in ranks
    }
    found = Last(region, len(times), last, behind_ns, waits_ns)
    if len(times) < FEWEST_BLOCKS or not last:
        return found
    late, leads_ns = zip(*(last.get(step, (None, 0.0)) for step in times))
    costs = costs_of(range(len(times)), late, leads_ns)
    least_ns = NOTABLE * thinned * sum(lengths_ns[step] for step in times)
    named = blame(
        costs, Participants(ranks), lambda own: round(thinned * sooner_ns(times, own)), least_ns
    ).named
    is_notable = named and named.gain_ns >= least_ns
    found = found._replace(named=named if is_notable else None, blocks=block_count(costs))
    return found._replace(named=found.named and found.named._replace(share=found.share))


def sooner_ns(times: Times, named: Container[int]) -> int:
    """By how much the others would wait less, had these ranks come with the last of the others."""
    of_steps = (
        [
            [ns for rank, ns in own.items() if (rank in named) == is_late]
            for is_late in (True, False)
        ]
        for own in times.values()
    )
    return sum(max(0, max(late) - max(rest)) for late, rest in of_steps if late and rest)


def distances(times: Mapping[int, int]) -> dict[int, float]:
    """By rank, its arrival less the mean of the others'."""
    total = sum(times.values())
    return {rank: time - (total - time) / (len(times) - 1) for rank, time in times.items()}


def last_ranks(
    times: Times, lengths_ns: Mapping[int, float], error_ns: float, open_ns: Open = {}
) -> Mapping[int, tuple[int, float]]:
    """By step the last rank and its distance, if both are sure and notable. lengths_ns: of the
    steps."""
    last = {}
    for step, times_ns in times.items():
        of_step = distances(times_ns)
        bounds = {rank: open_ns.get((step, rank), 0) for rank in of_step}
        sure_ns, rank = max(
            (lead_ns - own + (own - sum(bounds.values())) / (len(of_step) - 1), rank)
            for (rank, lead_ns), own in zip(of_step.items(), bounds.values())
        )
        if sure_ns > max(NOTABLE_LEAD * lengths_ns[step], threshold("late.mark-errors") * error_ns):
            last[step] = rank, of_step[rank]
    return last
