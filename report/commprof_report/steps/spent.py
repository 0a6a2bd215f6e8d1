"""What each rank did in each of its steps: its sampled calls, divided among the steps.

A call is counted in the step in which it starts; its time is split over the steps that it overlaps.
An NCCL call only enqueues an operation. The operation is counted in the step in which its kernel
starts, with the kernel's time, if the device was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, TextInts, by_rank, found_in, grouped, joined,
)
from ..late.known import CallInfo
from .boundaries import Boundaries
from .sampled_calls import Called, Sampled

GROUP = "ncclGroup"  # the name of a kernel that did several operations


@dataclass(frozen=True)
class Begun(Columns):
    """started.sql"""

    world_rank: Ints
    thread: Ints
    start_ns: Ints
    completed_ns: Ints
    bytes: Ints
    is_persistent: Flags


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
    call: TextInts
    is_control: Flags  # negotiation
    communicator: Ints
    count: Ints
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
class Overlaps(Columns):
    """A call, or an operation on the device, in a step that it overlaps."""

    call: Ints  # its row
    row: Ints  # of Boundaries
    begin_ns: Ints  # its part in the step
    end_ns: Ints
    begins: Flags  # in this step: it is counted here

    @property
    def spent_ns(self) -> Ints:
        return self.end_ns - self.begin_ns


def in_steps(
    sampled: Sampled, begun: Begun, rows: Boundaries, driving: Mapping[int, int]
) -> InSteps:
    """driving: by rank the thread that drives its steps."""
    calls, texts = sampled.calls, sampled.texts

    def which(is_wanted: Callable[[CallInfo], bool]) -> Flags:
        return sampled.known.which(calls.call, texts, is_wanted)

    is_nccl = which(lambda one: one.library == "nccl")
    every = overlaps(calls.world_rank, calls.start_ns, calls.end_ns, rows)
    every = every.take(~which(lambda one: one.family == "setup")[every.call])
    queued, blocking = every.take(is_nccl[every.call]), every.take(~is_nccl[every.call])
    is_untimed = (calls.device_start_ns == NONE) & which(
        lambda one: one.family in ("collective", "point-to-point")
    )
    untimed = queued.take(queued.begins & is_untimed[queued.call])
    operations, is_first = _operations(calls)
    on_device = _on_device(calls, operations, rows)
    kernels = on_device.take(is_first[on_device.call])
    on_device, kernels = (
        replace(part, call=operations[part.call]) for part in (on_device, kernels)
    )
    threads = np.array([driving.get(rank, NONE) for rank in rows.world_rank.tolist()], np.int64)
    is_driving = calls.thread[blocking.call] == threads[blocking.row]
    call_bytes = np.maximum(_bytes(sampled, begun), 0)
    is_shared = calls.is_shared[kernels.call] == 1
    times = joined(
        CallTimes,
        [
            _times(sampled, blocking, blocking.begins, call_bytes, blocking.spent_ns, is_driving),
            *(_times(sampled, part, part.begins, call_bytes) for part in (untimed, on_device)),
            replace(
                _times(
                    sampled, kernels, kernels.begins & is_shared, np.zeros_like(call_bytes),
                    kernels.spent_ns,
                ),
                call=np.where(is_shared, texts.number(GROUP), calls.call[kernels.call]),
            ),
        ],
    )
    beside = _beside(calls, blocking.take(~is_driving))
    is_file = which(lambda one: one.family == "io")[blocking.call]
    is_data = sampled.is_large & which(lambda one: one.family in ("collective", "neighborhood"))
    messages = [part.take(part.begins) for part in (blocking, untimed, on_device)]
    data = joined(Overlaps, [part.take(is_data[part.call]) for part in messages])
    moving = blocking.take(is_data[blocking.call])

    def total(rows_of: Ints, values: np.ndarray | None = None) -> Ints:
        return np.bincount(rows_of, values, len(rows)).astype(np.int64)

    spent = Spent(
        total(blocking.row, blocking.spent_ns * (is_driving & ~is_file)),
        total(blocking.row, blocking.spent_ns * (is_driving & is_file)),
        _most(beside, len(rows)),
        np.where(total(queued.row) > 0, total(queued.row, queued.spent_ns), NONE),
        np.where(total(untimed.row) > 0, NONE, total(*_busy(kernels, rows))),
        total(data.row),
        total(data.row, call_bytes[data.call]),
        total(moving.row, moving.spent_ns),
    )
    return InSteps(spent, _summed(times), beside)


def overlaps(world_ranks: Ints, begin_ns: Ints, end_ns: Ints, steps: Boundaries) -> Overlaps:
    """Of intervals that are sorted by rank."""
    parts = []
    for rank, own in by_rank(steps.world_rank):
        least, most = np.searchsorted(world_ranks, (rank, rank + 1)).tolist()
        begins, ends = steps.begin_ns[own], np.maximum.accumulate(steps.end_ns[own])
        first = np.searchsorted(ends, begin_ns[least:most], "right")
        number = np.maximum(np.searchsorted(begins, end_ns[least:most]) - first, 0)
        call = np.repeat(np.arange(least, most), number)
        place = np.arange(len(call)) - np.repeat(np.cumsum(number) - number, number)
        parts.append((call, own[0] + np.repeat(first, number) + place))
    call, row = (np.concatenate([np.empty(0, np.int64), *both]) for both in zip(*parts, ([], [])))
    call, row = call.astype(np.int64), row.astype(np.int64)
    return Overlaps(
        call, row, np.maximum(begin_ns[call], steps.begin_ns[row]),
        np.minimum(end_ns[call], steps.end_ns[row]), steps.begin_ns[row] <= begin_ns[call],
    )


def _operations(calls: Called) -> tuple[Ints, Flags]:
    """The calls whose operations have device times, by the begin of these. Which of them stands for
    its kernel? The first of those that share one."""
    rows = np.flatnonzero((calls.device_start_ns != NONE) & (calls.device_end_ns != NONE))
    kernel = (
        calls.world_rank[rows], calls.device_start_ns[rows], calls.communicator[rows],
        calls.device_end_ns[rows],
    )
    order, groups = grouped(*kernel)
    return rows[order], (groups.place() == 0) | (calls.is_shared[rows[order]] != 1)


def _on_device(calls: Called, rows: Ints, steps: Boundaries) -> Overlaps:
    return overlaps(
        calls.world_rank[rows], calls.device_start_ns[rows], calls.device_end_ns[rows], steps
    )


def _bytes(sampled: Sampled, begun: Begun) -> Ints:
    """Of a call that starts persistent operations, or that completes operations, those of all these
    operations."""
    calls, known, texts = sampled.calls, sampled.known, sampled.texts
    found = calls.bytes.copy()
    sent = np.flatnonzero(calls.completed_ns != NONE)
    done = begun.take(begun.completed_ns != NONE)
    completing = known.which(calls.call, texts, lambda one: one.family == "completion")
    starting = texts.among(calls.call, ("MPI_Start", "MPI_Startall")) & ~completing
    begun = begun.take(begun.is_persistent)
    for chosen, keys, known_keys, known_bytes in (
        (
            completing, (calls.world_rank, calls.end_ns),
            (
                np.append(calls.world_rank[sent], done.world_rank),
                np.append(calls.completed_ns[sent], done.completed_ns),
            ),
            np.append(calls.bytes[sent], done.bytes),
        ),
        (
            starting, (calls.world_rank, calls.thread, calls.start_ns),
            (begun.world_rank, begun.thread, begun.start_ns), begun.bytes,
        ),
    ):
        rows = np.flatnonzero(chosen)
        order, groups = grouped(*known_keys)
        sums = groups.sum(np.maximum(known_bytes, 0)[order])
        place = found_in(
            [key[rows] for key in keys], [key[order[groups.first]] for key in known_keys]
        )
        found[rows] = np.append(sums, 0)[place]
    return found


def _times(
    sampled: Sampled, part: Overlaps, is_counted: Flags, call_bytes: Ints,
    total_ns: Ints | None = None, is_driving: Flags | None = None,
) -> CallTimes:
    nothing = np.zeros(len(part), np.int64)
    total_ns = nothing if total_ns is None else total_ns
    return CallTimes(
        part.row, sampled.calls.call[part.call], sampled.is_control[part.call] == 1,
        sampled.calls.communicator[part.call], is_counted.astype(np.int64),
        np.where(is_counted, call_bytes[part.call], 0), total_ns,
        nothing if is_driving is None else total_ns * is_driving,
    )


def _summed(times: CallTimes) -> CallTimes:
    order, groups = grouped(times.row, times.call, times.is_control, times.communicator)
    first = times.take(order[groups.first])
    return replace(
        first,
        **{
            name: groups.sum(getattr(times, name)[order])
            for name in ("count", "bytes", "total_ns", "driving_ns")
        },
    )


def _beside(calls: Called, found: Overlaps) -> Beside:
    thread = calls.thread[found.call]
    order, groups = grouped(found.row, thread)
    first = order[groups.first]
    return Beside(found.row[first], thread[first], groups.sum(found.spent_ns[order]))


def _most(beside: Beside, count: int) -> Ints:
    groups, most = Groups(beside.row), np.zeros(count, np.int64)
    most[beside.row[groups.first]] = groups.max(beside.total_ns)
    return most


def _busy(kernels: Overlaps, steps: Boundaries) -> tuple[Ints, Ints]:
    """For each kernel in a step the time in which no kernel before it runs. Steps of a rank are
    disjoint."""
    kernels = kernels.take(np.lexsort((kernels.begin_ns, kernels.row)))
    before = np.full(len(kernels), NONE)
    for _, own in by_rank(steps.world_rank[kernels.row]):
        before[own[1:]] = np.maximum.accumulate(kernels.end_ns[own])[:-1]
    begin_ns = np.maximum(kernels.begin_ns, before)
    return kernels.row, np.maximum(0, kernels.end_ns - begin_ns)
