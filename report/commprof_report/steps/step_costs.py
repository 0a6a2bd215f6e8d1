"""How the time of steps is spent: communication, files and the rest, on the thread that drives the
steps.

One pass over the samples of each rank, in order of time. A call is counted in the step in which it
starts; its time is split over the steps that it overlaps. A step with missing samples has a
duration, but its communication is unknown.

An NCCL call only enqueues an operation. The operation is counted in the step in which its kernel
starts, with the kernel's time, if the device was traced.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection
from statistics import fmean, median
from typing import NamedTuple

from ..base import query, units
from ..calls.traffic import traffic_classify
from ..late.late_ranks import Late
from ..late.timelines import TRANSFER, WAITING
from ..run.holes import Hole, holes
from .boundaries import AlignedNs, RankStep, Steps

SQL = query.beside(__file__)

COMMON = 0.1  # share of the steps: a call in fewer is foreign to them
EXPLAINS = 0.5  # share of the excess of an outlier over the median

CallKey = tuple[str, str, str, str]  # call, label of the communicator, family of calls, library


class StepRow(NamedTuple):
    """A step of the run; times are means over the ranks."""

    step: int
    begin_ns: int
    step_ns: float
    communication_ns: float | None
    file_ns: float | None
    outside_ns: float | None
    background_ns: float
    ranks: int
    slowest_rank: int | None
    lead_ns: float | None
    is_complete: int
    is_warm_up: int
    is_outlier: int
    why: str
    nccl_host_ns: float | None = None
    nccl_device_ns: float | None = None
    wait_ns: float | None = None
    transfer_ns: float | None = None
    unsplit_ns: float | None = None
    messages: float = 0.0
    message_bytes: float = 0.0
    data_ns: float = 0.0


class StepCallRow(NamedTuple):
    """A call on a communicator, in one step; means over steps and the ranks that make it."""

    call: str
    communicator: str
    family: str
    count: float
    bytes: float  # of a completing call: those of the operations that it completes
    total_ns: float
    exposed_ns: float | None
    share_of_step: float
    overlap: float | None
    library: str
    ranks: int


class SampleRow(NamedTuple):
    """step_samples.sql"""

    world_rank: int
    thread: int
    call: str
    communicator: int
    sequence: int | None
    start_ns: int
    end_ns: int
    bytes: int | None
    family: str
    library: str
    device_start_ns: int | None
    device_end_ns: int | None
    is_shared: int | None
    is_data: int | None

    @property
    def kernel(self) -> tuple[int, int, int]:
        """A key that is equal for operations that share a kernel."""
        return self.communicator, self.device_start_ns, self.device_end_ns


class Spent:
    """The sums of one step of one rank, accumulated from samples."""

    __slots__ = (
        "rank_step", "driving_ns", "file_ns", "others_ns", "by_call", "is_complete", "waited_ns",
        "transfer_ns",
    )
    __slots__ += ("queued_ns", "device_ns", "busy_until_ns", "messages", "message_bytes", "data_ns")

    def __init__(self, rank_step: RankStep) -> None:
        self.rank_step = rank_step
        self.driving_ns = 0  # in communication, on the thread that drives the step
        self.file_ns = 0  # in files, on the same thread
        self.others_ns: dict[int, int] = {}  # in communication, by thread
        # first (call, communicator, family, library): [count, bytes, time, of it driving]; then
        # time by call
        self.by_call: dict = {}
        self.is_complete = 1
        self.waited_ns: int | None = None  # for other ranks, on the driving thread; None: unknown
        self.transfer_ns = 0  # of what was split
        self.queued_ns: int | None = None  # in NCCL's calls on the host; None: no calls
        # in which an NCCL operation ran; None: some device times are missing
        self.device_ns: int | None = 0
        self.busy_until_ns = 0
        self.messages = 0  # bulk collectives of all threads, and their bytes
        self.message_bytes = 0
        self.data_ns = 0  # in those of MPI

    @property
    def step_ns(self) -> int:
        return self.rank_step.end_ns - self.rank_step.begin_ns

    @property
    def background_ns(self) -> int:
        """Communication time of the thread, other than the driving one, that communicates most."""
        return max(self.others_ns.values(), default=0)

    def add(self, sample: SampleRow, is_driving: bool) -> None:
        _, _, begin_ns, end_ns, _, _ = self.rank_step
        spent_ns = min(sample.end_ns, end_ns) - max(sample.start_ns, begin_ns)
        if sample.library == "nccl":
            self._queue(sample, spent_ns)
            return
        if is_driving and sample.family == "io":
            self.file_ns += spent_ns
        elif is_driving:
            self.driving_ns += spent_ns
        else:
            self.others_ns[sample.thread] = self.others_ns.get(sample.thread, 0) + spent_ns
        sums = self._sums(sample, sample.call)
        if begin_ns <= sample.start_ns:
            self._count(sample, sums)
        if sample.is_data:
            self.data_ns += spent_ns
        sums[2] += spent_ns
        sums[3] += spent_ns if is_driving else 0

    def _sums(self, sample: SampleRow, call: str) -> list[int]:
        return self.by_call.setdefault(
            (call, sample.communicator, sample.family, sample.library), [0, 0, 0, 0]
        )

    def _count(self, sample: SampleRow, sums: list[int]) -> None:
        """A call, or an operation on the device, that begins in the step."""
        sums[0] += 1
        sums[1] += sample.bytes or 0
        if sample.is_data:
            self.messages += 1
            self.message_bytes += sample.bytes or 0

    def _queue(self, sample: SampleRow, spent_ns: int) -> None:
        self.queued_ns = (self.queued_ns or 0) + spent_ns
        is_operation = sample.family in ("collective", "point-to-point")
        if (
            is_operation and sample.device_start_ns is None
            and self.rank_step.begin_ns <= sample.start_ns
        ):
            self.device_ns = None
            self._count(sample, self._sums(sample, sample.call))

    def run(self, sample: SampleRow, is_first: bool) -> None:
        """Adds an operation on the device. Operations are sorted by begin; the first one of a
        kernel adds the kernel's time."""
        _, _, begin_ns, end_ns, _, _ = self.rank_step
        start_ns, stop_ns = max(sample.device_start_ns, begin_ns), min(sample.device_end_ns, end_ns)
        if begin_ns <= sample.device_start_ns:
            self._count(sample, self._sums(sample, sample.call))
        if not is_first:
            return
        timed = (
            self._sums(sample._replace(family="group"), "ncclGroup") if sample.is_shared
            else self._sums(sample, sample.call)
        )
        timed[0] += 1 if sample.is_shared and begin_ns <= sample.device_start_ns else 0
        timed[2] += stop_ns - start_ns
        if self.device_ns is not None:
            self.device_ns += max(0, stop_ns - max(start_ns, self.busy_until_ns))
        self.busy_until_ns = max(self.busy_until_ns, stop_ns)


class CallSums:
    """Time that complete steps spend in each call on each communicator."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sums: dict[CallKey, list[int]] = {}
        self.makers: dict[CallKey, set[int]] = {}  # ranks that make the call
        self.steps: Counter[int] = Counter()  # by rank
        self.step_ns = 0

    def add(self, rank: int, spent: Spent, labels: Mapping[tuple[int, int], str]) -> None:
        self.steps[rank] += 1
        self.step_ns += spent.step_ns
        for (call, communicator, family, library), added in spent.by_call.items():
            key = (call, labels.get((rank, communicator), units.NO_VALUE), family, library)
            self.makers.setdefault(key, set()).add(rank)
            self.sums[key] = [
                old + new for old, new in zip(self.sums.get(key, (0, 0, 0, 0)), added)
            ]

    def rows(self, is_driven: bool, families: Mapping[str, str] | None = None) -> list[StepCallRow]:
        """families: names of communicators, by label; those of one name share rows."""
        names = families or {}
        sharing: dict[CallKey, list[CallKey]] = {}
        for call, label, family, library in self.sums:
            sharing.setdefault((call, names.get(label, label), family, library), []).append(
                (call, label, family, library)
            )
        completion_ns: Counter[tuple[str, str]] = Counter()
        blocked_ns: Counter[tuple[str, str]] = Counter()
        for call, label, *times in SQL.run(self.connection, "step_overlap"):
            completion_ns[call, names.get(label, label)] += times[0]
            blocked_ns[call, names.get(label, label)] += times[1]
        rows = []
        for key, own in sharing.items():
            call, label, family, library = key
            sums = [sum(parts) for parts in zip(*(self.sums[one] for one in own))]
            makers = {rank for one in own for rank in self.makers[one]}
            steps = sum(self.steps[rank] for rank in makers)
            count, message_bytes, total_ns, driving_ns = (total / steps for total in sums)
            exposed_ns = driving_ns if is_driven and library == "mpi" else None
            whole_ns = completion_ns[call, label]
            of_family, known = (
                sum(name == label for name in names.values()), len({one[1] for one in own}),
            )
            shown = (
                own[0][1] if known == 1 < of_family else f"{known} of {label}" if known < of_family
                else label
            )
            overlap = max(0.0, 1 - blocked_ns[call, label] / whole_ns) if whole_ns else None
            share = sums[2] / (self.step_ns or 1)
            rows.append(
                StepCallRow(
                    call, shown, family, count, message_bytes, total_ns, exposed_ns, share, overlap,
                    library, len(makers),
                )
            )
        return sorted(rows, key=lambda row: (-row.share_of_step, row.call, row.communicator))


class Costs(NamedTuple):
    steps: list[StepRow]
    by_call: CallSums
    # the driving threads communicate; otherwise only other threads do, and the waits of the driving
    # threads are unknown
    is_driven: bool
    thread: str  # the one that communicates most in steps, by name
    thread_is_main: bool
    poll_share: float  # share of polls, which have no samples, in the time in MPI
    main_poll_share: float  # on main threads


def step_costs(steps: Steps, aligned_ns: AlignedNs, late: Late | None) -> Costs:
    """The costs of a run's steps. `late`: the run's analysis of waiting, if the caller
    has made it."""
    reading = Reading(steps)
    ranks = list(reading.ranks())
    spent = [one for of_rank in ranks for one in of_rank]
    if late:
        _waits_add(late, aligned_ns, ranks)
    communicating = [of_rank for of_rank in ranks if any(one.driving_ns for one in of_rank)]
    is_driven = 2 * len(communicating) >= len(ranks)
    thread, is_main = reading.busiest(spent, is_driven)
    for one in spent:
        one.by_call = _time_by_call(one, is_driven)
    rows = _step_rows(spent, is_driven, aligned_ns)
    return Costs(
        rows, reading.by_call, is_driven, thread, is_main, reading.poll_share,
        reading.main_poll_share,
    )


class Reading:
    """The pass over the samples, and the data that it needs beforehand."""

    def __init__(self, steps: Steps) -> None:
        self.steps, connection = steps, steps.connection
        self.connection = connection
        self.driving = {
            **dict(connection.execute("SELECT world_rank, thread FROM thread WHERE is_main")),
            **steps.detection.driving,
        }
        self.names = {
            (rank, thread): (name, is_main)
            for rank, thread, name, is_main in SQL.run(connection, "step_threads")
        }
        self.labels = {
            (rank, number): label for rank, number, label in SQL.run(connection, "step_labels")
        }
        self.missing = holes(connection)
        self.poll_share, self.main_poll_share = SQL.run(connection, "step_polls").fetchone()
        self.by_call = CallSums(connection)
        traffic_classify(connection)

    def ranks(self) -> Iterator[list[Spent]]:
        steps = {
            rank: [Spent(step) for step in of_rank]
            for rank, of_rank in self.steps.by_rank().items()
        }
        samples = map(SampleRow._make, SQL.run(self.connection, "step_samples"))
        for rank, of_rank in groupby(samples, key=attrgetter("world_rank")):
            self._fill(rank, steps[rank], of_rank)
            _holes_mark(steps[rank], self.missing.get(rank, ()))
            self._sum(rank, steps[rank])
        yield from steps.values()

    def _fill(self, rank: int, steps: list[Spent], samples: Iterator[SampleRow]) -> None:
        driving = self.driving.get(rank)
        place = 0
        on_device: list[SampleRow] = []
        for sample in samples:
            if sample.device_start_ns is not None and sample.device_end_ns is not None:
                on_device.append(sample)
            while place < len(steps) and steps[place].rank_step.end_ns <= sample.start_ns:
                place += 1
            touched = place
            while touched < len(steps) and steps[touched].rank_step.begin_ns < sample.end_ns:
                steps[touched].add(sample, sample.thread == driving)
                touched += 1
        _run(steps, on_device)

    def _sum(self, rank: int, steps: Sequence[Spent]) -> None:
        for spent in steps:
            if spent.is_complete and not spent.rank_step.is_warm_up:
                self.by_call.add(rank, spent, self.labels)

    def busiest(self, spent: Sequence[Spent], is_driven: bool) -> tuple[str, bool]:
        """The thread that communicates most in steps: its name, and whether it is the main one."""
        totals: Counter[tuple[int, int]] = Counter()
        for one in spent:
            rank = one.rank_step.world_rank
            if is_driven and rank in self.driving:
                totals[rank, self.driving[rank]] += one.driving_ns
            elif not is_driven:
                totals.update({(rank, thread): ns for thread, ns in one.others_ns.items()})
        ((key, _),) = totals.most_common(1) or [((0, 0), 0)]
        name, is_main = self.names.get(key, ("", 0))
        return name, bool(is_main)


def _time_by_call(spent: Spent, is_driven: bool) -> Counter[str]:
    """Time by call on all threads, or on the driving one and on the device."""
    times: Counter[str] = Counter()
    for (call, _, _, library), (_, _, total_ns, driving_ns) in spent.by_call.items():
        times[call] += driving_ns if is_driven and library == "mpi" else total_ns
    return +times


def _run(steps: Sequence[Spent], on_device: list[SampleRow]) -> None:
    """Adds NCCL's operations to the steps, by the times of their kernels."""
    place, kernel = 0, None
    for sample in sorted(on_device, key=lambda sample: (sample.device_start_ns, sample.kernel)):
        is_first = not sample.is_shared or sample.kernel != kernel
        kernel = sample.kernel
        while place < len(steps) and steps[place].rank_step.end_ns <= sample.device_start_ns:
            place += 1
        touched = place
        while touched < len(steps) and steps[touched].rank_step.begin_ns < sample.device_end_ns:
            steps[touched].run(sample, is_first)
            touched += 1


def whole_steps(steps: Steps) -> list[RankStep]:
    """The complete steps of each rank after the warm-up."""
    missing, found = holes(steps.connection), []
    for rank, of_rank in steps.by_rank().items():
        spent = [Spent(step) for step in of_rank if not step.is_warm_up]
        _holes_mark(spent, missing.get(rank, ()))
        found += [one.rank_step for one in spent if one.is_complete]
    return found


def _holes_mark(steps: Sequence[Spent], missing: Iterable[Hole]) -> None:
    ends = [spent.rank_step.end_ns for spent in steps]
    for _, _, begin_ns, end_ns in missing:
        place = bisect_right(ends, begin_ns)
        while place < len(steps) and steps[place].rank_step.begin_ns < end_ns:
            steps[place].is_complete = 0
            place += 1


def _waits_add(late: Late, aligned_ns: AlignedNs, ranks: Sequence[Sequence[Spent]]) -> None:
    """Adds each rank's waits for others, and transfer."""
    for steps in ranks:
        rank = steps[0].rank_step.world_rank
        for spent in steps:
            parts = late.timelines[rank].between(
                aligned_ns(rank, spent.rank_step.begin_ns), aligned_ns(rank, spent.rank_step.end_ns)
            )
            spent.waited_ns, spent.transfer_ns = parts[WAITING], parts[TRANSFER]


# Rows of steps.


def _step_rows(spent: Sequence[Spent], is_driven: bool, aligned_ns: AlignedNs) -> list[StepRow]:
    by_step: dict[int, list[Spent]] = {}
    for one in spent:
        by_step.setdefault(one.rank_step.step, []).append(one)
    explain = Explanation(by_step, is_driven)
    return [
        _step_row(step, ranks, is_driven, aligned_ns, explain)
        for step, ranks in sorted(by_step.items())
    ]


def _step_row(
    step: int, ranks: Sequence[Spent], is_driven: bool, aligned_ns: AlignedNs, explain: Explanation
) -> StepRow:
    begin_ns = min(aligned_ns(one.rank_step.world_rank, one.rank_step.begin_ns) for one in ranks)
    step_ns = fmean(one.step_ns for one in ranks)
    parts: tuple = (None, None, None)
    if is_driven:
        communication_ns, file_ns = (
            fmean(one.driving_ns for one in ranks), fmean(one.file_ns for one in ranks),
        )
        parts = (communication_ns, file_ns, step_ns - communication_ns - file_ns)
    background_ns = fmean(one.background_ns for one in ranks)
    nccl = _nccl(ranks)
    own = ranks[0].rank_step
    is_complete = int(all(one.is_complete for one in ranks))
    why = explain.outlier(step, ranks) if own.is_outlier else ""
    split = _split(ranks) if is_driven else (None, None, None)
    judged = (is_complete, own.is_warm_up, own.is_outlier, why)
    times = (step, begin_ns, step_ns, *parts, background_ns)
    row = StepRow(*times, len(ranks), None, None, *judged, *nccl, *split)
    data = ("messages", "message_bytes", "data_ns")
    return row._replace(**{key: fmean(getattr(one, key) for one in ranks) for key in data})


def _split(ranks: Sequence[Spent]) -> tuple[float | None, float | None, float | None]:
    """Means of waiting, transfer, and what was not split: together the communication. None: waits
    are not known."""
    if any(one.waited_ns is None for one in ranks):
        return None, None, None
    wait_ns, transfer_ns = (
        fmean(one.waited_ns for one in ranks), fmean(one.transfer_ns for one in ranks),
    )
    return (
        wait_ns, transfer_ns,
        max(0.0, fmean(one.driving_ns for one in ranks) - wait_ns - transfer_ns),
    )


def _nccl(ranks: Sequence[Spent]) -> tuple[float | None, float | None]:
    """Mean times in NCCL calls on the host and in NCCL operations on the device; None if there are
    none."""
    if all(one.queued_ns is None and not one.device_ns for one in ranks):
        return None, None
    is_known = all(one.device_ns is not None for one in ranks)
    device_ns = fmean(one.device_ns for one in ranks) if is_known else None
    return fmean(one.queued_ns or 0 for one in ranks), device_ns


class Explanation:
    """The usual step, with which outliers are compared."""

    def __init__(self, by_step: dict[int, list[Spent]], is_driven: bool) -> None:
        self.is_driven = is_driven
        usual = [
            ranks for ranks in by_step.values()
            if not ranks[0].rank_step.is_outlier and not ranks[0].rank_step.is_warm_up
        ]
        self.step_ns = (
            median(fmean(one.step_ns for one in ranks) for ranks in usual) if usual else 0
        )
        outside: dict[int, list[int]] = {}
        calls: dict[int, Counter[str]] = {}
        for one in (one for ranks in usual for one in ranks):
            outside.setdefault(one.rank_step.world_rank, []).append(self._outside_ns(one))
            calls.setdefault(one.rank_step.world_rank, Counter()).update(one.by_call)
        self.outside_ns = {rank: median(times) for rank, times in outside.items()}
        self.call_ns = {
            rank: {call: total_ns / len(outside[rank]) for call, total_ns in times.items()}
            for rank, times in calls.items()
        }
        met = Counter(
            call for ranks in by_step.values()
            for call in {call for one in ranks for call in one.by_call}
        )
        self.foreign = {call for call, steps in met.items() if steps < COMMON * len(by_step)}

    def _outside_ns(self, one: Spent) -> int:
        return one.step_ns - (one.driving_ns + one.file_ns if self.is_driven else one.background_ns)

    def outlier(self, step: int, ranks: Sequence[Spent]) -> str:
        """Which calls only this step has, and which calls took longer on which ranks."""
        excess_ns = fmean(one.step_ns for one in ranks) - self.step_ns
        foreign = sorted({call for one in ranks for call in one.by_call if call in self.foreign})
        said = [f"{' and '.join(foreign)} in it"] if foreign else []
        where = "outside MPI" if self.is_driven else "between its calls"
        more = {
            one.rank_step.world_rank: self._outside_ns(one)
            - self.outside_ns.get(one.rank_step.world_rank, 0) for one in ranks
        }
        least_ns = max(EXPLAINS * excess_ns, 1)
        if max(more.values()) >= least_ns:
            said.append(_on_ranks(f"more {where}", more, least_ns))
        else:
            said += self._longest_call(ranks)
        nothing = f"no rank spent half of the excess {where}, and no call took longer on average"
        return "; ".join(said) or nothing

    def _longest_call(self, ranks: Sequence[Spent]) -> Iterator[str]:
        longer: dict[str, dict[int, float]] = {}
        for one in ranks:
            rank = one.rank_step.world_rank
            for call, spent_ns in one.by_call.items():
                longer.setdefault(call, {})[rank] = spent_ns - self.call_ns.get(rank, {}).get(
                    call, 0
                )
        call = max(longer, key=lambda call: sum(longer[call].values()), default="")
        most_ns = max(longer[call].values()) if call else 0
        if most_ns > 0:
            yield _on_ranks(f"more in {call}", longer[call], EXPLAINS * most_ns)


def _on_ranks(what: str, more: dict[int, float], least_ns: float) -> str:
    """12 ms more in MPI_Allreduce on ranks 1-3: a mean over these."""
    ranks = [rank for rank, ns in more.items() if ns >= least_ns]
    named = "all ranks" if len(ranks) == len(more) and len(more) > 1 else units.rank_names(ranks)
    return f"{units.duration(fmean(more[rank] for rank in ranks))} {what} on {named}"
