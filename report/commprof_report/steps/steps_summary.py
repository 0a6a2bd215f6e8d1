"""The analysis of steps, stage by stage. Each is a function of what the stages before it gave; only
reading asks the run.

    sampled calls --> own_calls       the calls of a rank's thread as a sequence          OwnCalls
                  --> steps_of        the loop in it that is the step (loops/)            Found
                  --> by_calls        when each step of each rank begins and ends, or     Bounds
                                      marked(), negotiated(), by_region()
                  --> judged          the warm-up, outliers, steps that lack samples      Boundaries
    timelines     --> step_costs      the parts of each step, means over the ranks        Costs
                  --> slowest         who makes the others wait                           Slowest
                  --> critical_paths  which rank, doing what, made a step as long         PathRow
    activities    --> gpu_steps       what the GPUs did in each step                      GpuStepRow

The run summary, in one row, adds them up: the first lines of `steps`, and its part of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..base import (
    Connection,
    Row,
    attempt,
    by_rank,
    grouped,
    np,
    of_values,
    threshold,
    units,
)
from ..calls.parts import Negotiation, negotiation
from ..late import (
    HANDED,
    Late,
    WaitRegion,
    covered_ns,
    handed_steps,
    inside_text,
    is_mostly,
    marked_steps,
    steps_agreed_on,
)
from ..retime.graph import Efficiency
from ..run import Alignment, Selection, cells_of, holes, no_log_text
from .boundaries import (
    Detection,
    Steps,
    by_calls,
    by_region,
    judged,
    marked,
    negotiated,
    none,
    outlier_limit,
)
from .columns import Costs, steps_row
from .long_steps import critical_paths, slowest, trend
from .gpu_steps import gpu_steps, step_times
from .lines import SampledCalls, sampled_calls
from .step_costs import StepRow, step_costs
from .stepping import CHOSEN, Found

StepsRow = Row  # columns.py

GPU_TIMES = ("gpu_steps", "gpu_step_ns", "gpu_exposed_ns", "gpu_exposed_share")
SHOWN, NOTABLE_POLLS = threshold("steps.shown"), threshold("steps.polls")
LOOPS_SHOWN = " (hvprof-report steps shows the loops)"


@dataclass(frozen=True)
class StepsSummary:
    sampled: SampledCalls
    steps: Steps
    costs: Costs
    gpu: list[Row]
    # none if waits were not analysed, or other threads than the driving one communicate
    paths: list[Row]
    summary: StepsRow


def steps_find(
    run: Selection,
    alignment: Alignment,
    by: str | None = None,
    region: str | None = None,
    sampled: SampledCalls | None = None,
    loop: int | None = None,
) -> Steps:
    """The run must have been opened with samples. By default marked steps are used if there are
    any, else what ranks agreed on; otherwise steps are detected; by "none" there are none.
    `sampled`: where the caller has it."""
    connection, is_known = run.connection, region is loop is None and by in (None, "marks")
    rows = marked_steps(connection) if is_known else []
    if why := no_log_text(connection) or ("they were not analysed" if by == "none" else ""):
        detection, times = none(why)
    elif region is not None:
        detection, times = by_region(connection, alignment, region)
    elif rows or by == "marks":
        detection, times = marked(rows)
    elif is_known and (handed := handed_steps(connection)):
        detection, times = negotiated(handed.rows, steps_agreed_on(connection))
    else:
        detection, times = by_calls(
            connection, alignment, sampled or sampled_calls(connection), loop
        )
    return Steps(detection, judged(times, holes(connection)))


def steps_summary(
    run: Selection,
    alignment: Alignment,
    by: str | None = None,
    region: str | None = None,
    late: Late | None = None,
    loop: int | None = None,
) -> StepsSummary:
    """The run must have been opened with samples. `late`: the run's analysis of waiting, if the
    caller has made it."""
    connection = run.connection
    sampled = sampled_calls(connection, late.split.known if late else None)
    steps = steps_find(run, alignment, by, region, sampled, loop)
    costs, slowest_fields = slowest(
        steps, step_costs(connection, alignment, sampled, steps, late), alignment, late
    )
    on_gpus = gpu_steps(connection, steps, {row.step for row in costs.steps if row.is_complete})
    paths = critical_paths(steps, costs.steps, alignment, late) if late and costs.is_driven else []
    steady = [row for row in costs.steps if not row.is_warm_up]
    whole = [row for row in steady if row.is_complete] or steady
    negotiating = None
    if not costs.is_driven:
        negotiating = late.negotiation if late else negotiation(connection)
    fields = {
        **_detection(sampled, steps.detection, costs),
        "time_share": _time_share(connection, steps, steady),
        **_times(steady),
        **_parts(whole),
        **_efficiency(late, steps, alignment)._asdict(),
        **_in_wait_region(late.wait_region if late else None, steps, whole),
        **slowest_fields,
        **_negotiation(negotiating),
        **trend([row.step_ns for row in steady])._asdict(),
        **dict(zip(GPU_TIMES, step_times(on_gpus))),
    }
    return StepsSummary(sampled, steps, costs, on_gpus, paths, steps_row(**fields))


def steps_or_none(run: Selection, alignment: Alignment, late: Late | None = None) -> StepsSummary:
    """There are none if their analysis fails."""
    found = attempt("Steps", steps_summary, run, alignment, late=late)
    return found or steps_summary(run, alignment, "none", late=late)


def _detection(sampled: SampledCalls, detection: Detection, costs: Costs) -> dict:
    communicator = sampled.known.communicators.get(detection.identity)
    by_calls, loop = detection.by == "calls", detection.found
    return {
        "steps": len(costs.steps),
        "total_steps": detection.total,
        "delimited_by": detection.by,
        "evidence": "; ".join(loop.evidence),
        "why": detection.why,
        "communicator": communicator.label if communicator else None,
        "period": detection.period,
        "calls_per_step": sum(loop.functions.values()) if by_calls else None,
        "bytes_per_step": loop.bytes if by_calls else None,
        "certainty": certainty(detection),
        "loops": loop.text or "; ".join(level_texts(loop.levels)),
        "apart": "; ".join(detection.apart),
        "warm_up_steps": sum(row.is_warm_up for row in costs.steps),
        "complete_steps": sum(row.is_complete and not row.is_warm_up for row in costs.steps),
        "is_driven": int(costs.is_driven),
        "thread": costs.thread,
        "thread_is_main": int(costs.thread_is_main),
        "poll_share": costs.poll_share,
        "main_poll_share": costs.main_poll_share,
    }


def _efficiency(late: Late | None, steps: Steps, alignment: Alignment) -> Efficiency:
    """Efficiency of the complete steps after the warm-up, on their main thread."""
    work = late.working if late else None
    if work is None:
        return Efficiency()
    rows = steps.whole()
    bounds = np.stack(
        [alignment.aligned(rows.world_rank, times) for times in (rows.begin_ns, rows.end_ns)], 1
    )
    return work.efficiency_within({rank: bounds[own] for rank, own in by_rank(rows.world_rank)})


def _time_share(connection: Connection, steps: Steps, steady: Sequence[StepRow]) -> float | None:
    """None: there are none, or not all are known."""
    cells, ranks = cells_of(connection).whole, {*steps.rows.world_rank.tolist()}
    is_own = cells.is_in("family", "setup") & np.isin(cells.world_rank, [*ranks])
    setup_ns = cells.total_ns[is_own & cells.is_in("measure", "call")].sum(dtype=float)
    whole_ns = sum(ns or 0 for rank, ns in cells.counted.items() if rank in ranks) - setup_ns
    steady_ns = sum(row.step_ns * row.ranks for row in steady)
    return (
        min(1.0, steady_ns / whole_ns)
        if whole_ns > 0 and steady and steps.detection.total is None
        else None
    )


def certainty(detection: Detection) -> str:
    """One kind of evidence that the calls give, without the program's own word, may mislead."""
    if not detection.by:
        return "none"
    evidence = detection.found.evidence
    is_alone = detection.by == "calls" and len(evidence) == 1 and evidence != (CHOSEN,)
    return "probably" if is_alone else "known"


def level_texts(levels: Sequence[Found]) -> list[str]:
    """loop 1: 10 x (95 x (Allreduce of 8 B), Allreduce of 16 B), 1.20 s each"""
    return [
        f"loop {number}: {level.text}, {units.duration(level.median_ns)} each"
        for number, level in enumerate(levels, 1)
    ]


def _times(steady: Sequence[StepRow]) -> dict:
    times = sorted(row.step_ns for row in steady)
    return {
        **{
            f"p{percent}_ns": of_values(times, percent) if times else None
            for percent in (5, 50, 95)
        },
        "outliers": sum(row.is_outlier for row in steady),
        "outlier_limit_ns": outlier_limit(times) if times else None,
    }


def _parts(rows: Sequence[StepRow]) -> dict:
    means = {
        key: mean(rows, key)
        for key in (
            "step_ns",
            "wait_ns",
            "transfer_ns",
            "unsplit_ns",
            "communication_ns",
            "file_ns",
            "outside_ns",
            "background_ns",
            "nccl_host_ns",
            "nccl_device_ns",
            "messages",
            "message_bytes",
            "data_ns",
        )
    }
    step_ns = means["step_ns"]
    shares = {
        f"{name}_share": own_ns / step_ns if own_ns is not None and step_ns else None
        for name in ("communication", "background", "nccl_device", "data")
        for own_ns in [means[f"{name}_ns"]]
    }
    return {**means, "steps_per_s": 1e9 / step_ns if step_ns else None, **shares}


def _in_wait_region(region: WaitRegion | None, steps: Steps, whole: Sequence[StepRow]) -> dict:
    """The time of a step in the region in which the program waits for a thread that communicates:
    exposed communication."""
    own = steps.rows.take(np.isin(steps.rows.step, [row.step for row in whole]))
    if not region or not len(own):
        return {
            "wait_region": "",
            "wait_region_ns": None,
            "wait_region_share": None,
            "wait_region_overlap": None,
        }
    times = np.stack([own.begin_ns, own.end_ns], 1)
    of_rows_ns = np.concatenate(
        [
            covered_ns(region.visits.get(rank, ()), times[rows])
            for rank, rows in by_rank(own.world_rank)
        ]
    )
    if region.name == HANDED and of_rows_ns.any():  # of a long run, not each step is known
        own, of_rows_ns = own.take(of_rows_ns > 0), of_rows_ns[of_rows_ns > 0]
    order, groups = grouped(own.step)
    inside_ns, step_ns = (
        float((groups.sum(values[order]) / groups.counts).mean())
        for values in (of_rows_ns, own.step_ns)
    )
    return {
        "wait_region": region.name,
        "wait_region_ns": inside_ns,
        "wait_region_share": inside_ns / (step_ns or 1.0),
        "wait_region_overlap": region.communicating_ns / region.time_ns,
    }


def mean(rows: Sequence[StepRow], key: str) -> float | None:
    values = [getattr(row, key) for row in rows]
    return fmean(values) if values and None not in values else None


def slowest_text(steps: StepsRow) -> str:
    """rank 2 in 15 of 15 steps: the others wait 40.0 ms for it in each"""
    if steps.slowest_ranks is None:
        return str(steps.slowest_why)
    return (
        f"{units.rank_names(steps.slowest_ranks, None)} in {steps.slowest_steps:,} of "
        f"{steps.judged_steps:,} steps: the others wait about "
        f"{units.duration(steps.slowest_lead_ns)} for "
        f"{units.agreeing('them', len(steps.slowest_ranks))} in each"
    )


def _negotiation(found: Negotiation | None) -> dict:
    """A framework's background thread, if it negotiates."""
    return {
        "negotiation": found.call if found else "",
        "cycle_ns": found and found.cycle_ns,
        "rounds_per_step": found and found.rounds_per_step,
        "idle_rounds_share": found and found.idle_share,
        "background_bulk_bytes": found and found.bulk_bytes,
        "background_bulk_ns": found and found.bulk_ns,
        "background_control_ns": found and found.control_ns,
    }


def headline(steps: StepsRow, late: Row | None) -> str:
    """72.6 ms = 57.9 outside MPI + 8.0 transfer + 6.7 waiting (mostly for rank 2, in backward): a
    mean step. Or that none is known, and why. Empty if it is not known what the driving thread
    does. `late`: the verdict on all calls of the run, if there is one."""
    if not steps.delimited_by:
        return f"no step is known: {steps.why}{LOOPS_SHOWN * bool(steps.loops)}"
    if steps.step_ns is None:
        return ""
    if not steps.is_driven:
        return _exposed_text(steps) if steps.wait_region else ""
    outside = outside_text(steps)
    parts = [(steps.outside_ns, outside), (steps.file_ns, "files")]
    if steps.wait_ns is None:
        parts.append((steps.communication_ns, "in MPI"))
    else:
        mostly = ""
        if late is not None and steps.slowest_ranks is not None:
            part = units.share(late.late_share) if is_mostly(late) else "mostly"
            mostly = f" ({part} for {_named(steps.slowest_ranks, late)})"
        parts += [
            (steps.transfer_ns, "transfer"),
            (steps.wait_ns, f"waiting{mostly}"),
            (steps.unsplit_ns, "in MPI, not split"),
        ]
    shown = [
        (ns, what)
        for ns, what in parts
        if ns is not None and (ns >= SHOWN * steps.step_ns or what == outside)
    ]
    return units.sum_text(shown)


def _exposed_text(steps: StepsRow) -> str:
    """104 ms = 69.0 outside region 'wait' + 35.6 in it, exposed communication (34.1 %)"""
    inside_ns, (before, after) = steps.wait_region_ns or 0.0, inside_text(steps.wait_region)
    terms = (
        ((steps.step_ns or 0.0) - inside_ns, before),
        (inside_ns, f"{after}, exposed communication"),
    )
    return f"{units.sum_text(terms)} ({waited_text(steps)})"


def waited_text(steps: StepsRow) -> str:
    """After the last sum, a program that has handed its gradients over waits for a core, too."""
    least = "at least " if steps.wait_region == HANDED else ""
    return least + units.share(steps.wait_region_share)


def outside_text(steps: StepsRow) -> str:
    """Polls have no samples."""
    return "outside MPI or in polls" if steps.main_poll_share > NOTABLE_POLLS else "outside MPI"


def _named(ranks: units.Ranks, late: Row) -> str:
    region = late.late_region if ranks == late.late_ranks else None
    return units.rank_names(ranks, 24) + (f", in {units.shortened(region, 32)}" if region else "")
