"""How the time of steps is spent: communication, files and the rest, on the thread that drives the
steps; means over the ranks of each step. A step with missing samples has a duration, but its
communication is unknown.

    timelines     --> spent_in_states  the time of a step in each state: its parts
    sampled calls --> in_steps         those of each rank in each of its steps          CallTimes
                  --> step_costs       a row for each step                              Costs
                  --> call_rows        how often, with how many bytes, and for how long a mean step
                                       makes each call

A call is counted in the step in which it starts; its time is split over the steps that it overlaps.
An NCCL call only enqueues an operation. The operation is counted in the step in which its kernel
starts, with the kernel's time, if the device was traced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..base import (
    Columns,
    Connection,
    Field,
    Flags,
    Floats,
    Ints,
    NONE,
    NO_VALUE,
    Row,
    TextInts,
    Texts,
    View,
    by_rank,
    duration,
    found_in,
    gathered,
    grouped,
    joined,
    np,
    query,
    read,
    row_type,
    share,
    size,
    summarize,
    table,
    text,
    three_digits,
    total,
    units,
)
from ..calls.views import is_completion, is_in_mpi, is_poll
from ..late import (
    CallInfo,
    FILES,
    Late,
    OUTSIDE,
    TRANSFER,
    UNSEEN,
    UNSPLIT,
    WAITING,
    Waits,
    called,
    is_on,
    timelines,
)
from ..run import Alignment, Calls, Cells, cells_of
from .boundaries import Boundaries, Steps, overlapping
from .columns import Costs, step_row
from .lines import SampledCalls
from .long_steps import explained

StepRow = Row  # columns.py
GROUP = "ncclGroup"  # the name of a kernel that did several operations
COMMUNICATING, NOT_INSIDE = [WAITING, TRANSFER, UNSPLIT], [OUTSIDE, UNSEEN]  # states


@dataclass(frozen=True)
class CallTimes(Columns):
    """The calls of one name on one communicator and thread in a step."""

    row: Ints  # of Boundaries
    name: TextInts
    is_control: Flags  # negotiation
    is_data: Flags  # bulk collectives
    communicator: Ints
    thread: Ints  # NONE: the device
    is_driving: Flags  # it is the thread that drives the step
    calls: Ints
    bytes: Ints
    total_ns: Ints


def step_costs(
    connection: Connection,
    alignment: Alignment,
    sampled: SampledCalls,
    steps: Steps,
    late: Late | None,
) -> Costs:
    """`late`: the run's analysis of waiting, if the caller has made it."""
    rows = steps.rows
    main = sampled.threads.take(sampled.threads.is_main)
    driving = dict(zip(main.world_rank.tolist(), main.thread.tolist())) | steps.detection.driving
    found, queued_ns, device_ns = in_steps(sampled, rows, driving)
    split_ns, is_split = spent_in_states(connection, alignment, sampled, rows, driving, late)
    communicates = split_ns[:, COMMUNICATING].max(axis=1) > 0
    ranks = [own for _, own in by_rank(rows.world_rank)]
    is_driven = 2 * sum(bool(communicates[own].any()) for own in ranks) >= len(ranks)
    by_thread = _sums(found.take(found.thread != NONE), "row", "thread")
    beside = by_thread.take(~by_thread.is_driving)
    background_ns = np.zeros(len(rows), np.int64)
    np.maximum.at(background_ns, beside.row, beside.total_ns)
    outside_ns = split_ns[:, NOT_INSIDE].sum(1) if is_driven else rows.step_ns - background_ns
    is_theirs = found.is_driving | (found.thread == NONE) | (not is_driven)
    by_call = _sums(found.take(is_theirs & (found.total_ns > 0)), "row", "name")
    why = explained(rows, outside_ns, by_call, is_driven, sampled.texts)
    thread, is_main = _busiest(
        sampled, rows, by_thread.take(by_thread.is_driving) if is_driven else beside
    )
    data = found.take(found.is_data)
    on_host_ns = data.total_ns * (data.thread != NONE)
    in_data = [
        np.bincount(data.row, values, len(rows)) for values in (data.calls, data.bytes, on_host_ns)
    ]
    return Costs(
        _step_rows(
            rows,
            alignment,
            split_ns,
            is_split,
            is_driven,
            (background_ns, queued_ns, device_ns, *in_data),
            why,
        ),
        found,
        is_driven,
        thread,
        is_main,
        *_poll_shares(cells_of(connection).whole),
    )


def _poll_shares(cells: Cells) -> Iterator[float]:
    """How much of the time inside MPI is spent in polls, which are never sampled? Of all threads,
    and of the main ones."""
    polls_ns, inside_ns = (
        cells.total_ns * flags.astype(float) for flags in (is_poll(cells), is_in_mpi(cells))
    )
    for own in (slice(None), cells.is_main):
        yield float(polls_ns[own].sum() / (inside_ns[own].sum() or 1.0))


def spent_in_states(
    connection: Connection,
    alignment: Alignment,
    sampled: SampledCalls,
    rows: Boundaries,
    driving: Mapping[int, int],
    late: Late | None,
) -> tuple[np.ndarray, bool]:
    """The time of each rank's steps in each state of its timeline, of the thread that drives them:
    they add up to the step. And whether waiting is known: of the timelines of late."""
    if late and is_on(late.split.of_all.called.calls, driving).all():
        lines = late.lines
    else:
        calls, texts, known = sampled.calls, sampled.texts, sampled.known
        is_own = ~known.which(calls.call, texts, lambda one: one.family == "setup")
        calls, late = calls.take(is_own & is_on(calls, driving)), None
        found = called(connection, alignment, calls, known, texts)
        lines = timelines(
            found, table(Waits, [], texts, "world_rank start_ns wait_ns last_rank".split()), texts
        )
    begins_ns = alignment.aligned(rows.world_rank, rows.begin_ns)
    split_ns = lines.spent_between(rows.world_rank, begins_ns, begins_ns + rows.step_ns)
    return split_ns, late is not None


def _sums(times: CallTimes, *keys: str) -> CallTimes:
    """The calls with these keys equal are one row."""
    order, groups = grouped(*(getattr(times, key) for key in keys))
    sums = {
        name: groups.sum(getattr(times, name)[order]) for name in ("calls", "bytes", "total_ns")
    }
    return times.take(order[groups.first]).changed(**sums)


def _busiest(sampled: SampledCalls, rows: Boundaries, times: CallTimes) -> tuple[str, bool]:
    """The thread with most of this time: its name, and whether it is the main one."""
    if not len(times):
        return "", False
    rank = rows.world_rank[times.row]
    order, groups = grouped(rank, times.thread)
    most = order[groups.first[groups.sum(times.total_ns[order]).argmax()]]
    threads = sampled.threads
    own = threads.take((threads.world_rank == rank[most]) & (threads.thread == times.thread[most]))
    return (sampled.texts.text(own.name[0]) or "" if len(own) else ""), bool(own.is_main.any())


def _step_rows(
    rows: Boundaries,
    alignment: Alignment,
    split_ns: np.ndarray,
    is_split: bool,
    is_driven: bool,
    others: tuple[Ints, ...],
    why: dict[int, str],
) -> list[StepRow]:
    """others: background_ns, queued_ns, device_ns; messages, their bytes and time."""
    order, groups = grouped(rows.step)
    first = rows.take(order[groups.first])

    def mean(values: Ints) -> Floats:
        return groups.sum(values[order]) / groups.counts

    def known(values: Ints, is_known: bool | np.ndarray = True) -> list[float | None]:
        """Means; None: not known."""
        flags = np.broadcast_to(is_known, len(groups)).tolist()
        return [value if flag else None for value, flag in zip(mean(values).tolist(), flags)]

    background_ns, queued_ns, device_ns, *in_data = others
    queued, on_device = queued_ns != NONE, device_ns != NONE
    has_nccl = bool((queued | (device_ns > 0)).any())  # steps without any have zero
    states = (COMMUNICATING, [FILES], NOT_INSIDE)
    columns = (
        first.step.tolist(),
        groups.min(alignment.aligned(rows.world_rank, rows.begin_ns)[order]).tolist(),
        known(rows.step_ns),
        *(known(split_ns[:, state].sum(axis=1), is_driven) for state in states),
        known(background_ns),
        groups.counts.tolist(),
        [None] * len(groups),
        [None] * len(groups),
        groups.min(rows.is_complete[order]).astype(int).tolist(),
        first.is_warm_up.astype(int).tolist(),
        first.is_outlier.astype(int).tolist(),
        [why.get(step, "") for step in first.step.tolist()],
        known(np.where(queued, queued_ns, 0), has_nccl),
        known(np.where(on_device, device_ns, 0), has_nccl & groups.min(on_device[order])),
        *(known(split_ns[:, state], is_split and is_driven) for state in COMMUNICATING),
        *map(known, in_data),
    )
    return list(map(step_row, *columns))


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
) -> tuple[CallTimes, Ints, Ints]:
    """The calls in each step. And by row the time in NCCL's calls on the host (NONE: there are
    none), and that in which an operation of NCCL ran (NONE: some device times are missing).
    driving: by rank the thread that drives its steps."""
    calls = sampled.calls

    def which(is_wanted: Callable[[CallInfo], bool]) -> Flags:
        return sampled.known.which(calls.call, sampled.texts, is_wanted)

    def total(of: Parts, values: Ints) -> Ints:
        return np.bincount(of.row, values, len(rows)).astype(np.int64)

    is_nccl = which(lambda one: one.library == "nccl")
    is_setup = which(lambda one: one.family == "setup")
    every = parts_of(np.arange(len(calls)), calls.world_rank, calls.start_ns, calls.end_ns, rows)
    every = every.take(~is_setup[every.call])
    queued, blocking = every.take(is_nccl[every.call]), every.take(~is_nccl[every.call])
    is_untimed = (calls.device_start_ns == NONE) & which(
        lambda one: one.family in ("collective", "point-to-point")
    )
    untimed = queued.take(queued.is_counted & is_untimed[queued.call])
    operations, kernels = _on_device(calls, rows)
    threads = np.array([driving.get(rank, NONE) for rank in rows.world_rank.tolist()], np.int64)
    is_data = sampled.is_large & which(lambda one: one.family in ("collective", "neighborhood"))
    call_bytes = np.maximum(_bytes(sampled), 0)

    def times(of: Parts, number: Flags, total_ns: Ints, thread: Ints) -> CallTimes:
        return CallTimes(
            of.row,
            calls.call[of.call],
            sampled.is_control[of.call] == 1,
            is_data[of.call],
            calls.communicator[of.call],
            thread,
            (thread == threads[of.row]) & (thread != NONE),
            number.astype(np.int64),
            number * call_bytes[of.call],
            total_ns,
        )

    is_shared = calls.is_shared[kernels.call] == 1
    found = joined(
        CallTimes,
        [
            times(blocking, blocking.is_counted, blocking.spent_ns, calls.thread[blocking.call]),
            *(
                times(of, of.is_counted, of.row * 0, np.full(len(of), NONE))
                for of in (untimed, operations)
            ),
            times(
                kernels,
                kernels.is_counted & is_shared,
                kernels.spent_ns,
                np.full(len(kernels), NONE),
            ).changed(
                bytes=kernels.row * 0,
                is_data=is_data[kernels.call] & ~is_shared,
                name=np.where(is_shared, sampled.texts.number(GROUP), calls.call[kernels.call]),
            ),
        ],
    )
    keys = ("row", "name", "is_control", "is_data", "communicator", "thread")
    return (
        _sums(found, *keys),
        np.where(total(queued, queued.row >= 0) > 0, total(queued, queued.spent_ns), NONE),
        np.where(
            total(untimed, untimed.row >= 0) > 0, NONE, total(kernels, _alone_ns(kernels, rows))
        ),
    )


def parts_of(
    call: Ints, world_ranks: Ints, begin_ns: Ints, end_ns: Ints, steps: Boundaries
) -> Parts:
    """Calls are sorted by rank."""
    found = [np.empty((4, 0), np.int64)]
    for rank, own in by_rank(steps.world_rank):
        mine = slice(*np.searchsorted(world_ranks, (rank, rank + 1)))
        edges = steps.begin_ns[own], steps.end_ns[own]
        part, step, *times = overlapping(begin_ns[mine], end_ns[mine], *edges)
        found.append(np.stack([mine.start + part, own[step], *times]))
    own, row, since_ns, until_ns = np.concatenate(found, axis=1)
    return Parts(call[own], row, since_ns, until_ns, steps.begin_ns[row] <= begin_ns[own])


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


NEGOTIATION = "negotiation"  # in place of a call's family: control of a thread that negotiates
CALL = (
    Field(
        "call",
        "sorted by time; family `negotiation`: control collectives of a thread that "
        "[negotiates](METHODS.md#negotiation)",
        "In one step",
        is_number=False,
        of_row=lambda row: row.call + ", negotiation" * (row.family == NEGOTIATION),
    ),
    text("communicator", "", "communicator", 40),
    Field("family", ""),
    Field(
        "count",
        "calls, sum of sizes and time in a step: means over complete steps after the warm-up and "
        "these ranks",
        "calls",
        three_digits,
    ),
    Field("bytes", "", "bytes", lambda value: size(value or None)),
    Field(
        "total_ns",
        "",
        "time",
        of_row=lambda row: (
            duration(row.total_ns) if row.total_ns or row.library == "mpi" else NO_VALUE
        ),
    ),
    Field(
        "exposed_ns",
        "the part of total_ns on the driving thread; null: not `is_driven`, or NCCL's",
        "exposed",
    ),
    Field(
        "share_of_step",
        "the sum of its time over all ranks / the sum of their steps",
        "of step",
        share,
    ),
    Field(
        "overlap",
        "1 - blocked / completion time of nonblocking operations, of the whole run",
        "overlap",
        share,
    ),
    Field(
        "library",
        "`mpi`; `nccl`: total_ns is on the device",
        "timed on",
        is_number=False,
        of_row=lambda row: (
            "host" if row.library == "mpi" else "device" if row.total_ns else NO_VALUE
        ),
    ),
    Field("ranks", "ranks that make the call", "ranks"),
)
StepCallRow = row_type("StepCallRow", CALL)
OVERLAP = View(  # of nonblocking operations, over the whole run
    "OverlapRow",
    ("call", "label"),
    {
        "call": "call",
        "communicator": "label",
        "completion_ns": total("total_ns"),
        "blocked_ns": total("blocked_ns"),
    },
    lambda groups: (groups.place("call"), groups.place("label")),
    where=is_completion,
)


def call_rows(
    connection: Connection,
    sampled: SampledCalls,
    rows: Boundaries,
    costs: Costs,
    families: Mapping[str, str] | None = None,
) -> list[Row]:
    """The time that complete steps after the warm-up spend in each call on each communicator.
    families: names of communicators, by label; those of one name share rows."""
    names, texts = families or {}, sampled.texts
    is_whole = rows.is_complete & ~rows.is_warm_up
    times, whole = costs.calls.take(is_whole[costs.calls.row]), rows.take(is_whole)
    rank, steps_of = rows.world_rank[times.row], Counter(whole.world_rank.tolist())
    label = labels_of(connection, texts, rank, times.communicator)
    overlaps = gathered(
        ((one.call, names.get(one.communicator, one.communicator)), one)
        for one in summarize(cells_of(connection).whole, OVERLAP)
    )
    named = texts.all([names.get(text, text) for text in texts.texts])[label]
    order, groups = grouped(times.name, named, times.is_control)
    found = []
    for own_rows in np.split(order, groups.first[1:]) if len(order) else ():
        own, first = times.take(own_rows), own_rows[0]
        call, name = texts.texts[own.name[0]], texts.texts[named[first]]
        family, library = _family(sampled, call, bool(own.is_control[0]))
        makers = {*rank[own_rows].tolist()}
        steps = sum(steps_of[each] for each in makers)
        count, message_bytes, total_ns, driving_ns = (
            int(column.sum())
            for column in (own.calls, own.bytes, own.total_ns, own.total_ns * own.is_driving)
        )
        nonblocking = overlaps.get((call, name), [])
        completion_ns = sum(one.completion_ns for one in nonblocking)
        blocked_ns = sum(one.blocked_ns for one in nonblocking)
        labelled = {texts.texts[each] for each in label[own_rows].tolist()}
        found.append(
            StepCallRow(
                call,
                _shown(labelled, name, names),
                family,
                count / steps,
                message_bytes / steps,
                total_ns / steps,
                driving_ns / steps if costs.is_driven and library == "mpi" else None,
                total_ns / (int(whole.step_ns.sum()) or 1),
                max(0.0, 1 - blocked_ns / completion_ns) if completion_ns else None,
                library,
                len(makers),
            )
        )
    return sorted(found, key=lambda row: (-row.share_of_step, row.call, row.communicator))


def labels_of(connection: Connection, texts: Texts, rank: Ints, communicator: Ints) -> TextInts:
    """The labels of communicators by their ranks' numbers; NO_VALUE: it has none."""
    known = read(Columns, query.run(connection, "steps/step_labels"), texts)
    place = found_in((rank, communicator), (known.world_rank, known.communicator))
    return np.append(known.label, texts.number(units.NO_VALUE))[place]


def _shown(labels: set[str], name: str, names: Mapping[str, str]) -> str:
    """The label of the communicator, or the name of several, and how many of them there are."""
    if len(labels) >= sum(each == name for each in names.values()):
        return name
    return next(iter(labels)) if len(labels) == 1 else f"{len(labels)} of {name}"


def _family(sampled: SampledCalls, call: str, is_control: bool) -> tuple[str, str]:
    """The family and the library."""
    if call == GROUP:
        return "group", "nccl"
    about = sampled.known.calls.get(call)
    family, library = (about.family, about.library) if about else ("unknown", "mpi")
    return NEGOTIATION if is_control else family, library
