"""The work of each rank in each of its steps: its sampled calls, divided among the steps.

A call is counted in the step in which it starts; its time is split over the steps that it overlaps.
An NCCL call only enqueues an operation. The operation is counted in the step in which its kernel
starts, with the kernel's time, if the device was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, TextInts, by_rank, found_in, grouped, joined, np,
)
from ..late.known import CallInfo
from ..run.sampled import Calls
from .boundaries import Boundaries
from .sampled_calls import SampledCalls

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
