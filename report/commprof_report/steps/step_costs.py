"""How the time of steps is spent: communication, files and the rest, on the thread that drives the
steps; means over the ranks of each step. A step with missing samples has a duration, but its
communication is unknown.

    sampled calls --> in_steps     those of each rank in each of its steps            InSteps
                  --> step_costs   a row for each step                                Costs
                  --> CallSums     how often, with how many bytes, and for how long a mean step makes
                                   each call

A call is counted in the step in which it starts; its time is split over the steps that it overlaps.
An NCCL call only enqueues an operation. The operation is counted in the step in which its kernel
starts, with the kernel's time, if the device was traced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.columns import (
    NONE, Columns, Flags, Floats, Groups, Ints, TextInts, by_rank, found_in, grouped, joined, np,
    read,
)
from ..base.field import Field, Row, row_type, text
from ..base.units import NO_VALUE, duration, share, size, three_digits
from ..late.reading import CallInfo
from ..late.late_ranks import Late
from ..late.timelines import TRANSFER, WAITING
from ..run.alignment import Alignment
from ..run.sampled import Calls
from .boundaries import Boundaries, Steps
from .columns import step_row
from .lines import SampledCalls
from .outliers import TimeByCall, explained

SQL = query.beside(__file__)
StepRow = Row  # columns.py


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


def step_costs(
    connection: Connection, alignment: Alignment, sampled: SampledCalls, steps: Steps,
    late: Late | None,
) -> Costs:
    """`late`: the run's analysis of waiting, if the caller has made it."""
    rows = steps.rows
    main = sampled.threads.take(sampled.threads.is_main)
    driving = dict(zip(main.world_rank.tolist(), main.thread.tolist())) | steps.detection.driving
    found = in_steps(sampled, rows, driving)
    spent = found.spent
    ranks = [own for _, own in by_rank(rows.world_rank)]
    is_driven = 2 * sum(bool(spent.driving_ns[own].any()) for own in ranks) >= len(ranks)
    by_call = _time_by_call(sampled, found.calls, is_driven)
    split_ns = _split(rows, alignment, late) if late and is_driven else None
    parts = _parts(rows.step_ns, spent, split_ns)
    outside_ns = parts.outside_ns if is_driven else rows.step_ns - spent.background_ns
    why = explained(rows, outside_ns, by_call, is_driven, sampled.texts)
    thread, is_main = _busiest(sampled, rows, found, driving, is_driven)
    polls = SQL.run(connection, "step_polls").fetchone()
    return Costs(
        _step_rows(rows, alignment, spent, parts, split_ns is not None, why, is_driven),
        call_sums(connection, sampled, rows, found.calls), is_driven, thread, is_main, *polls,
    )


class Split(NamedTuple):
    """The time of each rank's steps: files, communication and the rest add up to it, and the last
    three to the communication."""

    file_ns: Ints
    communication_ns: Ints
    outside_ns: Ints
    wait_ns: Ints
    transfer_ns: Ints
    unsplit_ns: Ints


def _parts(step_ns: Ints, spent: Spent, split_ns: tuple[Ints, Ints] | None) -> Split:
    """Each takes at most what those before it leave. Unsuccessful polls count as if they followed
    one another, and may then reach beyond a step."""
    file_ns = np.minimum(spent.file_ns, step_ns)
    communication_ns = np.minimum(spent.driving_ns, step_ns - file_ns)
    wait_ns, transfer_ns = split_ns or (spent.data_ns, spent.data_ns)
    wait_ns = np.minimum(wait_ns, communication_ns)
    transfer_ns = np.minimum(transfer_ns, communication_ns - wait_ns)
    return Split(
        file_ns, communication_ns, step_ns - file_ns - communication_ns, wait_ns, transfer_ns,
        communication_ns - wait_ns - transfer_ns,
    )


def _split(rows: Boundaries, alignment: Alignment, late: Late) -> tuple[Ints, Ints]:
    """Each rank's waits for others, and transfer."""
    begins, ends = (
        alignment.aligned(rows.world_rank, times) for times in (rows.begin_ns, rows.end_ns)
    )
    parts = late.timelines.spent_between(rows.world_rank, begins, ends)
    return parts[:, WAITING], parts[:, TRANSFER]


def _time_by_call(sampled: SampledCalls, times: CallTimes, is_driven: bool) -> TimeByCall:
    """On all threads, or on the driving one and on the device."""
    is_nccl = sampled.known.which(times.name, sampled.texts, lambda one: one.library == "nccl")
    is_nccl |= times.name == sampled.texts.number(GROUP)
    spent_ns = np.where(is_nccl, times.total_ns, times.driving_ns) if is_driven else times.total_ns
    order, groups = grouped(times.row, times.name)
    first = order[groups.first]
    found = TimeByCall(times.row[first], times.name[first], groups.sum(spent_ns[order]))
    return found.take(found.spent_ns > 0)


def _busiest(
    sampled: SampledCalls, rows: Boundaries, found: InSteps, driving: dict[int, int],
    is_driven: bool,
) -> tuple[str, bool]:
    """The thread that communicates most in steps: its name, and whether it is the main one."""
    if is_driven:
        rank, spent_ns = rows.world_rank, found.spent.driving_ns
        thread = np.array([driving.get(each, NONE) for each in rank.tolist()], np.int64)
    else:
        rank = rows.world_rank[found.beside.row]
        thread, spent_ns = found.beside.thread, found.beside.total_ns
    order, groups = grouped(rank, thread)
    if not len(groups):
        return "", False
    most = order[groups.first[groups.sum(spent_ns[order]).argmax()]]
    threads = sampled.threads
    place = np.flatnonzero((threads.world_rank == rank[most]) & (threads.thread == thread[most]))
    name = sampled.texts.text(threads.name[place[0]]) if len(place) else ""
    return name or "", bool(threads.is_main[place].any())


def _step_rows(
    rows: Boundaries, alignment: Alignment, spent: Spent, parts: Split, is_split: bool,
    why: dict[int, str], is_driven: bool,
) -> list[StepRow]:
    order, groups = grouped(rows.step)
    first = rows.take(order[groups.first])

    def mean(values: Ints) -> Floats:
        return groups.sum(values[order]) / groups.counts

    def known(values: Floats, is_known: bool | np.ndarray = True) -> list[float | None]:
        """None: not known."""
        flags = np.broadcast_to(is_known, len(values)).tolist()
        return [value if flag else None for value, flag in zip(values.tolist(), flags)]

    queued, on_device = spent.queued_ns != NONE, spent.device_ns != NONE
    has_nccl = groups.max((queued | (spent.device_ns > 0))[order])
    all_on_device = groups.min(on_device[order])
    file_ns, communication_ns, outside_ns, *split_ns = map(mean, parts)
    columns = (
        first.step.tolist(),
        groups.min(alignment.aligned(rows.world_rank, rows.begin_ns)[order]).tolist(),
        mean(rows.step_ns).tolist(),
        *(known(values, is_driven) for values in (communication_ns, file_ns, outside_ns)),
        mean(spent.background_ns).tolist(),
        groups.counts.tolist(), [None] * len(groups), [None] * len(groups),
        groups.min(rows.is_complete[order]).astype(int).tolist(),
        first.is_warm_up.astype(int).tolist(), first.is_outlier.astype(int).tolist(),
        [why.get(step, "") for step in first.step.tolist()],
        known(mean(np.where(queued, spent.queued_ns, 0)), has_nccl),
        known(mean(np.where(on_device, spent.device_ns, 0)), has_nccl & all_on_device),
        *(known(values, is_split) for values in split_ns),
        *(mean(values).tolist() for values in (spent.messages, spent.message_bytes, spent.data_ns)),
    )
    return list(map(step_row, *columns))


GROUP = "ncclGroup"  # the name of a kernel that did several operations


@dataclass(frozen=True)
class Spent(Columns):
    """A row for each row of Boundaries."""

    driving_ns: Ints  # in communication, on the thread that drives the step
    file_ns: Ints  # in files, on the same thread
    background_ns: Ints  # in communication, on the other thread that communicates most
    queued_ns: Ints  # in NCCL's calls on the host; NONE: no calls
    device_ns: Ints  # in which an NCCL operation ran; NONE: some device times are missing
    messages: Ints  # bulk collectives of all threads, and their bytes
    message_bytes: Ints
    data_ns: Ints  # in those of MPI


@dataclass(frozen=True)
class CallTimes(Columns):
    """The calls of one name on one communicator in a step."""

    row: Ints  # of Boundaries
    name: TextInts
    is_control: Flags  # negotiation
    communicator: Ints
    calls: Ints
    bytes: Ints
    total_ns: Ints
    driving_ns: Ints  # of it, on the thread that drives the step


@dataclass(frozen=True)
class Beside(Columns):
    """Communication of a thread that does not drive the step."""

    row: Ints  # of Boundaries
    thread: Ints
    total_ns: Ints


class InSteps(NamedTuple):
    spent: Spent
    calls: CallTimes
    beside: Beside


@dataclass(frozen=True)
class Parts(Columns):
    """Calls, operations on the device and kernels in the steps that they overlap."""

    call: Ints  # its row
    row: Ints  # of Boundaries
    begin_ns: Ints  # in the step
    end_ns: Ints
    is_counted: Flags  # it begins in the step

    @property
    def spent_ns(self) -> Ints:
        return self.end_ns - self.begin_ns


def in_steps(
    sampled: SampledCalls, rows: Boundaries, driving: Mapping[int, int]
) -> InSteps:
    """driving: by rank the thread that drives its steps."""
    calls = sampled.calls

    def which(is_wanted: Callable[[CallInfo], bool]) -> Flags:
        return sampled.known.which(calls.call, sampled.texts, is_wanted)

    def total(of: Parts, values: np.ndarray | None = None) -> Ints:
        return np.bincount(of.row, values, len(rows)).astype(np.int64)

    is_nccl = which(lambda one: one.library == "nccl")
    is_setup = which(lambda one: one.family == "setup")
    every = parts_of(np.arange(len(calls)), calls.world_rank, calls.start_ns, calls.end_ns, rows)
    every = every.take(~is_setup[every.call])
    queued, blocking = every.take(is_nccl[every.call]), every.take(~is_nccl[every.call])
    polls = _polls(calls, rows)
    is_untimed = (calls.device_start_ns == NONE) & which(
        lambda one: one.family in ("collective", "point-to-point")
    )
    untimed = queued.take(queued.is_counted & is_untimed[queued.call])
    operations, kernels = _on_device(calls, rows)
    threads = np.array([driving.get(rank, NONE) for rank in rows.world_rank.tolist()], np.int64)
    is_driving = calls.thread[blocking.call] == threads[blocking.row]
    is_polling = calls.thread[polls.call] == threads[polls.row]
    in_file = is_driving & which(lambda one: one.family == "io")[blocking.call]
    is_data = sampled.is_large & which(lambda one: one.family in ("collective", "neighborhood"))
    call_bytes = np.maximum(_bytes(sampled), 0)
    messages = joined(Parts, [blocking, untimed, operations])
    messages = messages.take(messages.is_counted & is_data[messages.call])
    beside = _beside(calls, blocking.take(~is_driving))
    spent = Spent(
        total(blocking, blocking.spent_ns * (is_driving & ~in_file))
        + total(polls, polls.spent_ns * is_polling),
        total(blocking, blocking.spent_ns * in_file),
        _most(beside, len(rows)),
        np.where(total(queued) > 0, total(queued, queued.spent_ns), NONE),
        np.where(total(untimed) > 0, NONE, total(kernels, _alone_ns(kernels, rows))),
        total(messages),
        total(messages, call_bytes[messages.call]),
        total(blocking, blocking.spent_ns * is_data[blocking.call]),
    )
    return InSteps(
        spent,
        _call_times(sampled, call_bytes, (blocking, is_driving), [untimed, operations], kernels),
        beside,
    )


def parts_of(
    call: Ints, world_ranks: Ints, begin_ns: Ints, end_ns: Ints, steps: Boundaries
) -> Parts:
    """Calls are sorted by rank."""
    found = [np.empty((2, 0), np.int64)]
    for rank, own in by_rank(steps.world_rank):
        least, most = np.searchsorted(world_ranks, (rank, rank + 1)).tolist()
        ends = np.maximum.accumulate(steps.end_ns[own])
        first = np.searchsorted(ends, begin_ns[least:most], "right")
        until = np.searchsorted(steps.begin_ns[own], end_ns[least:most])
        number = np.maximum(until - first, 0)
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        row = own[0] + np.repeat(first, number) + place
        found.append(np.stack([np.repeat(np.arange(least, most), number), row]))
    own, row = np.concatenate(found, axis=1)
    return Parts(
        call[own], row, np.maximum(begin_ns[own], steps.begin_ns[row]),
        np.minimum(end_ns[own], steps.end_ns[row]), steps.begin_ns[row] <= begin_ns[own],
    )


def _polls(calls: Calls, steps: Boundaries) -> Parts:
    """The unsuccessful polls before calls, as if they followed one another."""
    has = np.flatnonzero(calls.polled_ns > 0)
    own = calls.take(has)
    begin_ns = own.polled_since_ns
    return parts_of(has, own.world_rank, begin_ns, begin_ns + own.polled_ns, steps)


def _on_device(calls: Calls, steps: Boundaries) -> tuple[Parts, Parts]:
    """Operations that have device times; and of those that share a kernel only the first, which
    stands for it."""
    rows = np.flatnonzero((calls.device_start_ns != NONE) & (calls.device_end_ns != NONE))
    own = calls.take(rows)
    order, groups = grouped(
        own.world_rank, own.device_start_ns, own.communicator, own.device_end_ns
    )
    own, rows = own.take(order), rows[order]
    is_first = np.zeros(len(calls), bool)
    is_first[rows] = (groups.place() == 0) | (own.is_shared != 1)
    found = parts_of(rows, own.world_rank, own.device_start_ns, own.device_end_ns, steps)
    return found, found.take(is_first[found.call])


def _alone_ns(kernels: Parts, steps: Boundaries) -> Ints:
    """The time of each kernel in which no kernel before it runs; steps of a rank are disjoint."""
    order = np.lexsort((kernels.begin_ns, kernels.row))
    begin_ns, end_ns = kernels.begin_ns[order], kernels.end_ns[order]
    before_ns = np.full(len(kernels), NONE)
    for _, own in by_rank(steps.world_rank[kernels.row[order]]):
        before_ns[own[1:]] = np.maximum.accumulate(end_ns[own])[:-1]
    found = np.empty(len(kernels), np.int64)
    found[order] = np.maximum(0, end_ns - np.maximum(begin_ns, before_ns))
    return found


def _bytes(sampled: SampledCalls) -> Ints:
    """For a call that starts persistent operations, those of all these operations; none for one
    that completes operations: the calls that start them have them."""
    calls, messages, starts = sampled.calls, sampled.messages, sampled.starts
    known, texts = sampled.known, sampled.texts
    persistent = messages.take(
        known.which(messages.call, texts, lambda one: one.form == "persistent")
    )
    is_completing = known.which(calls.call, texts, lambda one: one.family == "completion")
    found = np.where(is_completing, 0, calls.bytes)
    started = joined(Columns, [persistent, starts])
    operations = (started.world_rank, started.thread, started.start_ns)
    rows = np.flatnonzero(texts.among(calls.call, ("MPI_Start", "MPI_Startall")))
    order, groups = grouped(*operations)
    sums = np.append(groups.sum(np.maximum(started.bytes, 0)[order]), 0)
    keys = [key[rows] for key in (calls.world_rank, calls.thread, calls.start_ns)]
    first = order[groups.first]
    found[rows] = sums[found_in(keys, [key[first] for key in operations])]
    return found


def _call_times(
    sampled: SampledCalls, call_bytes: Ints, driven: tuple[Parts, Flags], counted: list[Parts],
    kernels: Parts,
) -> CallTimes:
    """driven: calls, and which of them are on the driving thread. counted: operations without a
    time of their own."""
    calls, (blocking, is_driving) = sampled.calls, driven

    def times(of: Parts, number: np.ndarray, total_ns: Ints, driving_ns: Ints) -> CallTimes:
        return CallTimes(
            of.row, calls.call[of.call], sampled.is_control[of.call] == 1,
            calls.communicator[of.call], number.astype(np.int64), number * call_bytes[of.call],
            total_ns, driving_ns,
        )

    is_shared, nothing = calls.is_shared[kernels.call] == 1, [of.row * 0 for of in counted]
    of_kernels = times(kernels, kernels.is_counted & is_shared, kernels.spent_ns, kernels.row * 0)
    found = joined(
        CallTimes,
        [
            times(blocking, blocking.is_counted, blocking.spent_ns, blocking.spent_ns * is_driving),
            *(times(of, of.is_counted, none, none) for of, none in zip(counted, nothing)),
            replace(
                of_kernels, bytes=kernels.row * 0,
                name=np.where(is_shared, sampled.texts.number(GROUP), of_kernels.name),
            ),
        ],
    )
    order, groups = grouped(found.row, found.name, found.is_control, found.communicator)
    summed = ("calls", "bytes", "total_ns", "driving_ns")
    sums = {name: groups.sum(getattr(found, name)[order]) for name in summed}
    return replace(found.take(order[groups.first]), **sums)


def _beside(calls: Calls, found: Parts) -> Beside:
    thread = calls.thread[found.call]
    order, groups = grouped(found.row, thread)
    first = order[groups.first]
    return Beside(found.row[first], thread[first], groups.sum(found.spent_ns[order]))


def _most(beside: Beside, count: int) -> Ints:
    groups, most = Groups(beside.row), np.zeros(count, np.int64)
    most[beside.row[groups.first]] = groups.max(beside.total_ns)
    return most


NEGOTIATION = "negotiation"  # in place of a call's family: control of a thread that negotiates
CALL = (
    Field(
        "call",
        "sorted by time; family `negotiation`: control collectives of a thread that "
        "[negotiates](METHODS.md#negotiation)",
        "In one step", is_number=False,
        of_row=lambda row: row.call + ", negotiation" * (row.family == NEGOTIATION),
    ),
    text("communicator", "", "communicator", 40),
    Field("family", ""),
    Field(
        "count",
        "calls, sum of message sizes and time in a step: means "
        "over complete steps after the warm-up, and over the ranks that make the call",
        "calls", three_digits,
    ),
    Field("bytes", "", "bytes", lambda value: size(value or None)),
    Field(
        "total_ns", "", "time",
        of_row=lambda row: duration(row.total_ns) if row.total_ns or row.library == "mpi"
        else NO_VALUE,
    ),
    Field(
        "exposed_ns",
        "the part of total_ns on the driving thread; null: not `is_driven`, or NCCL's", "exposed",
    ),
    Field(
        "share_of_step", "the sum of its time over all ranks / the sum of their steps", "of step",
        share,
    ),
    Field(
        "overlap", "1 - blocked / completion time of nonblocking operations, of the whole run",
        "overlap", share,
    ),
    Field(
        "library", "`mpi`; `nccl`: total_ns is on the device", "timed on", is_number=False,
        of_row=lambda row: "host" if row.library == "mpi" else "device" if row.total_ns
        else NO_VALUE,
    ),
    Field("ranks", "the number of ranks that make the call", "ranks"),
)
StepCallRow = row_type("StepCallRow", CALL)


@dataclass(frozen=True)
class CallSums:
    """The time that complete steps after the warm-up spend in each call on each communicator."""

    sampled: SampledCalls
    times: CallTimes
    rank: Ints  # of each row of times
    label: TextInts
    steps: Counter[int]  # by rank
    step_ns: int
    overlaps: list[query.Row]

    def rows(self, is_driven: bool, families: Mapping[str, str] | None = None) -> list[Row]:
        """families: names of communicators, by label; those of one name share rows."""
        names, texts = families or {}, self.sampled.texts
        completion_ns: Counter[tuple[str, str]] = Counter()
        blocked_ns: Counter[tuple[str, str]] = Counter()
        for one in self.overlaps:
            key = one.call, names.get(one.communicator, one.communicator)
            completion_ns[key] += one.completion_ns
            blocked_ns[key] += one.blocked_ns
        named = texts.all([names.get(text, text) for text in texts.texts])[self.label]
        order, groups = grouped(self.times.name, named, self.times.is_control)
        rows = []
        for own_rows in np.split(order, groups.first[1:]) if len(order) else ():
            own, first = self.times.take(own_rows), own_rows[0]
            call, label = texts.texts[own.name[0]], texts.texts[named[first]]
            family, library = _family(self.sampled, call, bool(own.is_control[0]))
            makers = {*self.rank[own_rows].tolist()}
            steps = sum(self.steps[rank] for rank in makers)
            count, message_bytes, total_ns, driving_ns = (
                int(column.sum())
                for column in (own.calls, own.bytes, own.total_ns, own.driving_ns)
            )
            whole_ns = completion_ns[call, label]
            labels = {texts.texts[each] for each in self.label[own_rows].tolist()}
            rows.append(
                StepCallRow(
                    call, _shown(labels, label, names), family, count / steps,
                    message_bytes / steps, total_ns / steps,
                    driving_ns / steps if is_driven and library == "mpi" else None,
                    total_ns / (self.step_ns or 1),
                    max(0.0, 1 - blocked_ns[call, label] / whole_ns) if whole_ns else None,
                    library, len(makers),
                )
            )
        return sorted(rows, key=lambda row: (-row.share_of_step, row.call, row.communicator))


def _shown(labels: set[str], name: str, names: Mapping[str, str]) -> str:
    """The label of the communicator, or the name of several, and how many of them there are."""
    if len(labels) >= sum(each == name for each in names.values()):
        return name
    return next(iter(labels)) if len(labels) == 1 else f"{len(labels)} of {name}"


def call_sums(
    connection: Connection, sampled: SampledCalls, rows: Boundaries, times: CallTimes
) -> CallSums:
    texts = sampled.texts
    is_whole = rows.is_complete & ~rows.is_warm_up
    times, whole = times.take(is_whole[times.row]), rows.take(is_whole)
    rank = rows.world_rank[times.row]
    labels = read(Columns, SQL.run(connection, "step_labels"), texts)
    place = found_in((rank, times.communicator), (labels.world_rank, labels.communicator))
    label = np.append(labels.label, texts.number(units.NO_VALUE))[place]
    steps, overlaps = Counter(whole.world_rank.tolist()), list(SQL.rows(connection, "step_overlap"))
    return CallSums(sampled, times, rank, label, steps, int(whole.step_ns.sum()), overlaps)


def _family(sampled: SampledCalls, call: str, is_control: bool) -> tuple[str, str]:
    """The family and the library."""
    if call == GROUP:
        return "group", "nccl"
    about = sampled.known.calls.get(call)
    family, library = (about.family, about.library) if about else ("unknown", "mpi")
    return NEGOTIATION if is_control else family, library
