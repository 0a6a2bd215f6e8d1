"""GPU activity in each step: overlap sums of the fully sampled steps, and step times with tracing
on and off.

A step counts on a device if the device was traced throughout the step and all activities of each of
its streams were sampled. On a device that several ranks share, each of them has its own step, with
what all of them did during it; the device counts once, with the mean of these.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from sqlite3 import Connection
from statistics import fmean, median
from typing import NamedTuple

from ..base.columns import Columns
from ..base.field import Field
from ..base.gather import gathered
from ..base.percentiles import DEVIATION, around_median
from ..base.query import Row, row_type
from ..base.thresholds import whole
from ..gpu.gpu_activity import device_facts, selected_groups
from ..gpu.overlap import Busy, Spans, busy, joined, time_by_states
from ..gpu.sampled import intervals, known_spans, on_device
from ..gpu.sharing import Group, active_moved, moved, together
from .boundaries import RankStep, Steps

FOREVER = 1 << 62
FEWEST_STEPS = whole("steps.tracing-steps")  # with tracing and without it
MEDIAN_ERROR = 1.2533  # standard error of a median / of a mean


STEP = (  # times are means over the devices on which the step is fully sampled
    Field("step", "number of the step, as in [steps](#steps)", "step"),
    Field(
        "devices",
        "number of devices on which the whole step is known: it lies in one tracing window, and "
        "every activity of each stream of the device is sampled (`gpu_sample_window`). A shared "
        "device counts once: each of its ranks has its own step, with what all of them ran during "
        "it, and the device's times are the means of these",
        "GPUs",
    ),
    Field("step_ns", "means over these devices of the same overlap sums as above", "time"),
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
    Field("is_warm_up", "see [steps](#steps)"),
)
GpuStepRow = row_type("GpuStepRow", STEP)


class TracingCost(NamedTuple):
    """Step times with tracing and without: medians and median absolute deviations."""

    traced_steps: int
    traced_step_ns: float | None
    traced_deviation_ns: float | None
    untraced_steps: int
    untraced_step_ns: float | None
    untraced_deviation_ns: float | None
    tracing_cost_share: float | None
    tracing_cost_error_share: float | None


class StepTimes(NamedTuple):
    """Medians over the steps of gpu_steps(), without the warm-up."""

    steps: int
    step_ns: float | None
    step_exposed_ns: float | None
    step_exposed_share: float | None


def gpu_steps(
    connection: Connection, of_run: Steps, complete: Collection[int]
) -> list[Row]:
    """`complete`: numbers of the steps whose MPI calls are all sampled."""
    steps = of_run.by_rank()
    found: dict[int, list[list[tuple[RankStep, Busy]]]] = {}  # by step: for each device its ranks
    for of_device in chain(_alone(connection, steps), _shared(connection, steps)):
        by_step = gathered((step.step, (step, times)) for step, times in of_device)
        for number, of_ranks in by_step.items():
            found.setdefault(number, []).append(of_ranks)
    return [_row(step, found[step], step in complete) for step in sorted(found)]


def _alone(
    connection: Connection, steps: dict[int, list[RankStep]]
) -> Iterator[Iterator[tuple[RankStep, Busy]]]:
    """For each device of one rank, its steps."""
    shared = {(own.rank, own.device) for group in _shared_groups(connection) for own in group}
    known = known_spans(connection)
    active = intervals(connection) if known else Columns()
    for rank in sorted(known.keys() & steps.keys()):
        for device, spans in known[rank].items():
            if (rank, device) not in shared:
                yield _device_steps(steps[rank], spans, on_device(active, rank, device))


def _shared(
    connection: Connection, steps: dict[int, list[RankStep]]
) -> Iterator[Iterator[tuple[RankStep, Busy]]]:
    """For each shared device, the steps of its ranks."""
    shared = _shared_groups(connection)
    for group, both in zip(shared, together(connection, shared)):
        yield chain.from_iterable(
            _device_steps(
                steps.get(own.rank, []), moved(both.known, -own.start_monotonic_ns),
                active_moved(both.active, -own.start_monotonic_ns),
            )
            for own in group
        )


def _shared_groups(connection: Connection) -> list[Group]:
    return [group for group in selected_groups(device_facts(connection)) if len(group) > 1]


def _device_steps(
    steps: Sequence[RankStep], known: Spans, active: Columns
) -> Iterator[tuple[RankStep, Busy]]:
    whole = []
    latest_ns = -FOREVER
    for step in steps:
        if latest_ns <= step.begin_ns < step.end_ns and is_within(
            step.begin_ns, step.end_ns, known
        ):
            whole.append(step)
            latest_ns = step.end_ns
    spans = [(step.begin_ns, step.end_ns) for step in whole]
    for step, state_ns in zip(whole, time_by_states(active, spans).tolist()):
        yield step, busy(state_ns)


def is_within(begin_ns: int, end_ns: int, spans: Spans) -> bool:
    """Whether the interval lies entirely in one of the spans."""
    place = bisect_right(spans, (begin_ns, FOREVER)) - 1
    return place >= 0 and end_ns <= spans[place][1]


def _row(
    number: int, found: Sequence[Sequence[tuple[RankStep, Busy]]], is_complete: bool
) -> Row:
    mean = {
        key: fmean(fmean(getattr(times, key) for _, times in of_ranks) for of_ranks in found)
        for key in Busy._fields
    }
    row = GpuStepRow(
        step=number, devices=len(found), step_ns=mean["traced_ns"],
        exposed_share=mean["exposed_ns"] / mean["traced_ns"],
        is_warm_up=int(found[0][0][0].is_warm_up),
        **{key: mean[key] for key in GpuStepRow._fields if key in mean},
    )
    return row if is_complete else row._replace(exposed_mpi_ns=None, starved_ns=None)


def step_times(rows: Sequence[Row]) -> StepTimes:
    steady = [row for row in rows if not row.is_warm_up]
    keys = ("step_ns", "exposed_ns", "exposed_share")
    return StepTimes(
        len(steady),
        *(median(getattr(row, key) for row in steady) if steady else None for key in keys),
    )


# Cost of tracing.


def tracing_cost(windows: Sequence[Row], steps: Steps | None) -> TracingCost:
    """Compares steps in which all tracing ranks traced with steps in which all of them paused.
    Pauses in which another tool traced do not count. Steps with both, and the warm-up, are left
    out."""
    traced, paused = {}, {}
    for rank, rows in groupby(windows, key=attrgetter("rank")):
        own = list(rows)
        traced[rank] = joined((row.begin_ns, row.end_ns) for row in own)
        ends = [row.begin_ns for row in own[1:]] + [FOREVER]
        paused[rank] = joined(
            (row.end_ns, end_ns) for row, end_ns in zip(own, ends) if row.ended == "duty"
        )
    of_ranks = steps.by_rank().values() if windows and steps else ()
    by_step = gathered(
        (step.step, step) for step in chain.from_iterable(of_ranks) if not step.is_warm_up
    )
    sides: dict[str, list[float]] = {"traced": [], "untraced": []}
    for ranks in by_step.values():
        for side, spans in (("traced", traced), ("untraced", paused)):
            looked = [step for step in ranks if step.world_rank in spans]
            if looked and all(
                is_within(step.begin_ns, step.end_ns, spans[step.world_rank]) for step in looked
            ):
                sides[side].append(fmean(step.end_ns - step.begin_ns for step in ranks))
    on, off = sides["traced"], sides["untraced"]
    return TracingCost(len(on), *spread(on), len(off), *spread(off), *cost_of(on, off))


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
