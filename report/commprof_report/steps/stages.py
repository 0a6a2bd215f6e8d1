"""The analysis of steps, stage by stage. Each is a function of what the stages before it gave; only
reading asks the run.

    sampled calls --> own_calls       the calls of a rank's thread as a sequence          OwnCalls
                  --> steps_of        the loop in it that is the step (loops/)            Found
                  --> by_calls        when each step of each rank begins and ends, or     Bounds
                                      marked(), negotiated(), by_region()
                  --> judged          the warm-up, outliers, steps that lack samples      Boundaries
                  --> in_steps        what each rank did in each of its steps             Spent
                  --> step_costs      means over the ranks, with the waits of late        Costs
                  --> slowest         who makes the others wait                           Slowest
                  --> critical_paths  which rank, doing what, made a step as long         PathRow
    activities    --> gpu_steps       what the GPUs did in each step                      GpuStepRow

steps_summary.py adds them up for the reports, with the trend of the step times (trend.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.query import Row
from ..late.late_ranks import Late
from ..late.marks import handed_rows, marked_rows, steps_agreed_on
from ..run.alignment import Alignment
from ..run.holes import holes
from ..run.selection import Selection
from ..run.unsampled import no_log_text
from .boundaries import Steps, by_calls, by_region, judged, marked, negotiated, none
from .critical_path import critical_paths
from .gpu_steps import gpu_steps
from .sampled_calls import SampledCalls, sampled_calls
from .slowest import Slowest, slowest
from .step_costs import Costs, step_costs


@dataclass(frozen=True)
class Stages:
    sampled: SampledCalls
    steps: Steps
    costs: Costs
    slowest: Slowest
    gpu: list[Row]
    # none if waits were not analysed, or other threads than the driving one communicate
    paths: list[Row]


def steps_find(
    run: Selection, alignment: Alignment, by: str | None = None, region: str | None = None,
    sampled: SampledCalls | None = None, loop: int | None = None,
) -> Steps:
    """The run must have been opened with samples. By default marked steps are used if there are
    any, else what ranks agreed on; otherwise steps are detected; by "none" there are none.
    `sampled`: where the caller has it."""
    connection, is_known = run.connection, region is loop is None and by in (None, "marks")
    rows = marked_rows(connection) if is_known else []
    if why := no_log_text(connection) or ("they were not analysed" if by == "none" else ""):
        detection, times = none(why)
    elif region is not None:
        detection, times = by_region(connection, alignment, region)
    elif rows or by == "marks":
        detection, times = marked(rows)
    elif is_known and (handed := handed_rows(connection)):
        detection, times = negotiated(handed, steps_agreed_on(connection))
    else:
        detection, times = by_calls(
            connection, alignment, sampled or sampled_calls(connection), loop
        )
    return Steps(detection, judged(times, holes(connection)))


def stages(
    run: Selection, alignment: Alignment, by: str | None, region: str | None, late: Late | None,
    loop: int | None = None,
) -> Stages:
    """`late`: the run's analysis of waiting, if the caller has made it."""
    connection = run.connection
    sampled = sampled_calls(connection, late.stages.split.known if late else None)
    steps = steps_find(run, alignment, by, region, sampled, loop)
    costs = step_costs(connection, alignment, sampled, steps, late)
    rows, found = slowest(steps, costs, alignment, late)
    costs = costs._replace(steps=rows)
    on_gpus = gpu_steps(connection, steps, {row.step for row in rows if row.is_complete})
    paths = critical_paths(steps, rows, alignment, late) if late and costs.is_driven else []
    return Stages(sampled, steps, costs, found, on_gpus, paths)
