"""How the time of steps is spent: communication, files and the rest, on the thread that drives the
steps; means over the ranks of each step. A step with missing samples has a duration, but its
communication is unknown."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.columns import NONE, Floats, Ints, by_rank, grouped, np
from ..base.field import Row
from ..late.late_ranks import Late
from ..late.timelines import TRANSFER, WAITING
from ..run.alignment import Alignment
from .boundaries import Boundaries, Steps
from .columns import step_row
from .outliers import TimeByCall, explained
from .sampled_calls import SampledCalls
from .spent import GROUP, CallTimes, InSteps, Spent, in_steps
from .step_calls import CallSums, call_sums

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


class Parts(NamedTuple):
    """The time of each rank's steps: files, communication and the rest add up to it, and the last
    three to the communication."""

    file_ns: Ints
    communication_ns: Ints
    outside_ns: Ints
    wait_ns: Ints
    transfer_ns: Ints
    unsplit_ns: Ints


def _parts(step_ns: Ints, spent: Spent, split_ns: tuple[Ints, Ints] | None) -> Parts:
    """Each takes at most what those before it leave. Unsuccessful polls count as if they followed
    one another, and may then reach beyond a step."""
    file_ns = np.minimum(spent.file_ns, step_ns)
    communication_ns = np.minimum(spent.driving_ns, step_ns - file_ns)
    wait_ns, transfer_ns = split_ns or (spent.data_ns, spent.data_ns)
    wait_ns = np.minimum(wait_ns, communication_ns)
    transfer_ns = np.minimum(transfer_ns, communication_ns - wait_ns)
    return Parts(
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
    rows: Boundaries, alignment: Alignment, spent: Spent, parts: Parts, is_split: bool,
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
