"""GPU activity in each step: overlap sums of the fully sampled steps, and step times with tracing
on and off.

A step counts on a device if the device was traced throughout the step and all activities of each of
its streams were sampled. On a device that several ranks share, each of them has its own step, with
what all of them did during it; the device counts once, with the mean of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from statistics import fmean, median
from typing import Tuple

from ..base import (
    Columns,
    Connection,
    DEVIATION,
    Field,
    Flags,
    NONE,
    Row,
    around_median,
    by_rank,
    gathered,
    grouped,
    np,
    row_type,
    whole,
)
from ..gpu.gpu_activity import device_facts, selected_groups
from ..gpu.overlap import (
    Busy,
    Spans,
    active_moved,
    busy,
    intervals,
    known_spans,
    on_device,
    spans_joined,
    time_by_states,
    together,
)
from .boundaries import Boundaries, Steps, means_of_steps

FOREVER = 1 << 62
FEWEST_STEPS = whole("steps.tracing-steps")  # with tracing and without it
MEDIAN_ERROR = 1.2533  # standard error of a median / of a mean


STEP = (  # times are means over the devices on which the step is fully sampled
    Field("step", "number of the step, as in [steps](#steps)", "step"),
    Field(
        "devices",
        "devices on which the whole step is known: in one tracing window, with all activities "
        "sampled. A shared one counts once",
        "GPUs",
    ),
    Field("step_ns", "means over these devices", "time"),
    Field("computing_ns", "", "computing"),
    Field("communicating_ns", "", "communicating"),
    Field("copying_ns", "", "copying"),
    Field("exposed_ns", "", "exposed"),
    Field("strictly_exposed_ns", ""),
    Field("hidden_ns", ""),
    Field("idle_ns", "", "idle"),
    Field("exposed_mpi_ns", "the same; null: not all MPI calls of the step are sampled"),
    Field("starved_ns", "", "idle in MPI"),
    Field("exposed_share", "exposed_ns / step_ns", "of step"),
    Field("is_warm_up", "[steps](#steps)"),
)
GpuStepRow = row_type("GpuStepRow", STEP)


TIMES = (  # medians over these steps, without the warm-up
    Field("steps", "steps of `--by step` without the warm-up: number; medians"),
    Field("step_ns", ""),
    Field("step_exposed_ns", ""),
    Field("step_exposed_share", ""),
)
StepTimes = row_type("StepTimes", TIMES)
TRACING = (
    Field(
        "traced_steps",
        "steps during which all ranks that have windows were in one: number, median, median "
        "absolute deviation",
    ),
    Field("traced_step_ns", ""),
    Field("traced_deviation_ns", ""),
    Field("untraced_steps", "the same in planned pauses"),
    Field("untraced_step_ns", ""),
    Field("untraced_deviation_ns", ""),
    Field(
        "tracing_cost_share",
        "traced_step_ns / untraced_step_ns - 1; null: fewer than 10 steps of either kind",
    ),
    Field(
        "tracing_cost_error_share",
        "twice its standard error: 2 x 1.2533 x 1.4826 x sqrt(dt^2 / nt + du^2 / nu) / "
        "untraced_step_ns",
    ),
)
TracingCost = row_type("TracingCost", TRACING)


def gpu_steps(connection: Connection, of_run: Steps, complete: Collection[int]) -> list[Row]:
    """`complete`: numbers of the steps whose MPI calls are all sampled."""
    rows = of_run.rows
    of_ranks = dict(by_rank(rows.world_rank))
    found: list[tuple[int, Busy]] = []  # of each device on which a step is known
    for device in _devices(connection, of_ranks):
        of_device: list[tuple[int, Busy]] = []
        for rank, known, active in device:
            own = rows.take(of_ranks.get(rank, np.empty(0, np.int64)))
            latest_ns = np.maximum.accumulate(np.append(NONE, own.end_ns))[:-1]
            own = own.take((own.begin_ns >= latest_ns) & is_within(own, known))
            spans = [*zip(own.begin_ns.tolist(), own.end_ns.tolist())]
            of_device += zip(own.step.tolist(), map(busy, time_by_states(active, spans).tolist()))
        found += ((step, _mean(ranks)) for step, ranks in gathered(of_device).items())
    warm_up = {*rows.step[rows.is_warm_up].tolist()}
    return [
        _row(step, devices, step in complete, step in warm_up)
        for step, devices in sorted(gathered(found).items())
    ]


OnRank = Tuple[int, Spans, Columns]  # rank; what is known and ran, in its own time


def _devices(connection: Connection, ranks: Collection[int]) -> Iterator[Iterable[OnRank]]:
    """For each device, the ranks that use it."""
    shared = [group for group in selected_groups(device_facts(connection)) if len(group) > 1]
    are_shared = {(own.rank, own.device) for group in shared for own in group}
    known = known_spans(connection)
    active = intervals(connection) if known else Columns()
    for rank in sorted(known.keys() & ranks):
        for device, spans in known[rank].items():
            if (rank, device) not in are_shared:
                yield [(rank, spans, on_device(active, rank, device))]
    for group, both in zip(shared, together(connection, shared)):
        yield (
            (
                own.rank,
                both.known - own.start_monotonic_ns,
                active_moved(both.active, -own.start_monotonic_ns),
            )
            for own in group
        )


def is_within(rows: Boundaries, spans: Spans) -> Flags:
    """Which steps lie entirely in one of the spans?"""
    begins, ends = spans.T
    place = np.searchsorted(begins, rows.begin_ns, "right") - 1
    is_short = (rows.begin_ns < rows.end_ns) & (rows.end_ns <= np.append(ends, 0)[place])
    return (place >= 0) & is_short


def _mean(times: Sequence[Busy]) -> Busy:
    return Busy(*map(fmean, zip(*times)))


def _row(step: int, devices: Sequence[Busy], is_complete: bool, is_warm_up: bool) -> Row:
    mean = _mean(devices)._asdict()
    row = GpuStepRow(
        step=step,
        devices=len(devices),
        step_ns=mean["traced_ns"],
        exposed_share=mean["exposed_ns"] / mean["traced_ns"],
        is_warm_up=int(is_warm_up),
        **{key: mean[key] for key in GpuStepRow._fields if key in mean},
    )
    return row if is_complete else row._replace(exposed_mpi_ns=None, starved_ns=None)


def step_times(rows: Sequence[Row]) -> Row:
    """TIMES."""
    steady = [row for row in rows if not row.is_warm_up]
    keys = ("step_ns", "exposed_ns", "exposed_share")
    return StepTimes(
        len(steady),
        *(median(getattr(row, key) for row in steady) if steady else None for key in keys),
    )


# Cost of tracing.


def tracing_cost(windows: Sequence[Row], steps: Steps | None) -> Row:
    """TRACING: compares steps in which all tracing ranks traced with those in which all paused.
    Pauses in which another tool traced do not count. Steps with both, and the warm-up, are left
    out."""
    traced, paused = {}, {}
    for rank, rows in groupby(windows, key=attrgetter("rank")):
        own = list(rows)
        traced[rank] = spans_joined((row.begin_ns, row.end_ns) for row in own)
        ends = [row.begin_ns for row in own[1:]] + [FOREVER]
        paused[rank] = spans_joined(
            (row.end_ns, end_ns) for row, end_ns in zip(own, ends) if row.ended == "duty"
        )
    on, off = (
        _means_within(spans, steps.rows) if windows and steps else [] for spans in (traced, paused)
    )
    return TracingCost(len(on), *spread(on), len(off), *spread(off), *cost_of(on, off))


def _means_within(spans: Mapping[int, Spans], rows: Boundaries) -> list[float]:
    """Mean times of the steps that lie in these spans on all ranks that have any."""
    rows = rows.take(~rows.is_warm_up)
    is_in, is_looked = np.ones(len(rows), bool), np.isin(rows.world_rank, [*spans])
    for rank, own in by_rank(rows.world_rank):
        if rank in spans:
            is_in[own] = is_within(rows.take(own), spans[rank])
    order, groups = grouped(rows.step)
    is_wanted = groups.max(is_looked[order]) & groups.min(is_in[order])
    return means_of_steps(rows)[is_wanted].tolist()


def spread(times: Sequence[float]) -> tuple[float | None, float | None]:
    """The median, and the median absolute deviation from it."""
    return around_median(times) if times else (None, None)


def cost_of(
    traced: Sequence[float], untraced: Sequence[float]
) -> tuple[float | None, float | None]:
    """The cost, and twice its standard error if step times are independent."""
    if min(len(traced), len(untraced)) < FEWEST_STEPS or not median(untraced):
        return None, None
    (on_ns, on_deviation), (off_ns, off_deviation) = around_median(traced), around_median(untraced)
    variance = on_deviation**2 / len(traced) + off_deviation**2 / len(untraced)
    return on_ns / off_ns - 1, 2 * MEDIAN_ERROR * DEVIATION * variance**0.5 / off_ns
