"""The slowest ranks of steps: those that hvprof-report late names, as far as they make the others
wait in steps.

    late arrivals within complete  ->  of each step: the rank that causes half of its waiting; in
    steps, with their root causes      how many the named ranks do

Arrival at the calls of a thread that negotiates shows nobody; ranks are then compared, as by late,
where they hand their gradients over, at the begin of a region around the wait, or at the marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, Dict

from ..base import NONE, Unknown, by_rank, np, units
from ..late.late_ranks import Late
from ..late.marks import HANDED, NOTABLE_LEAD
from ..late.sentences import is_mostly, lacks_cores, not_known, verdict_text
from ..late.verdict import COVERED, FEWEST_BLOCKS, MAJORITY, MOSTLY, sums_of
from ..run.alignment import Alignment, storable
from .boundaries import Steps
from .long_steps import with_blame
from .step_costs import Costs, StepRow

Caused = Counter["int | None"]  # waiting in a step by the rank that causes it; None: not known


Slowest = Dict[str, Any]  # the columns of steps (columns.py) that say who is slowest


def answer(
    judged: int,
    why: Unknown | str = "",
    ranks: units.Ranks | None = None,
    steps: int = 0,
    lead_ns: float | None = None,
) -> Slowest:
    """why: nobody is named."""
    return {
        "slowest_ranks": ranks,
        "slowest_steps": steps,
        "slowest_lead_ns": lead_ns,
        "slowest_why": why,
        "judged_steps": judged,
    }


def _not_named(late: Late, judged: int) -> Slowest:
    return answer(judged, not_known(late) or f"none: {verdict_text(late)}")


def slowest(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[Costs, Slowest]:
    """The costs of the steps with their slowest ranks, and the run's. `late`: the run's analysis of
    waiting, if the caller has made it."""
    rows, found = _slowest_ranks(steps, costs, alignment, late)
    usual_ns = median(
        [row.step_ns for row in rows if not (row.is_outlier or row.is_warm_up)] or [0]
    )
    return costs._replace(
        steps=[
            row._replace(
                why=with_blame(row.why, row.slowest_rank, row.lead_ns, row.step_ns - usual_ns)
            )
            if row.is_outlier
            else row
            for row in rows
        ]
    ), found


def _slowest_ranks(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[list[StepRow], Slowest]:
    if late is None:
        return costs.steps, answer(0, Unknown("waiting was not analysed"))
    if (last := late.last) is None:
        return _by_calls(steps, costs, alignment, late)
    is_of_steps = (steps.detection.by, last.region) in (("marks", ""), (HANDED, HANDED))
    by_step = last.by_step if is_of_steps else {}
    rows = [
        row._replace(slowest_rank=rank, lead_ns=lead)
        for row in costs.steps
        for rank, lead in [by_step.get(row.step, (None, None))]
    ]
    if not last.named:
        return rows, _not_named(late, last.judged)
    return rows, answer(last.judged, "", units.Ranks(last.named.ranks), last.times, last.lead_ns)


def _by_calls(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late
) -> tuple[list[StepRow], Slowest]:
    whole = [row for row in costs.steps if row.is_complete and not row.is_warm_up and row.ranks > 1]
    if unjudged := _why_unjudged(len(whole), costs, late):
        return costs.steps, answer(0, unjudged)
    judged = {row.step: row for row in whole if is_split(row, costs.is_driven, late)}
    caused = costs_in(steps.aligned(alignment, judged), late)
    rows = [
        _with_slowest(row, caused[row.step]) if row.step in judged else row for row in costs.steps
    ]
    if 2 * len(judged) < len(whole):
        return rows, answer(
            len(judged),
            Unknown(
                f"in {len(whole) - len(judged):,} of {len(whole):,} steps less than half of the "
                "time inside MPI is split"
            ),
        )
    return rows, _judged(list(judged.values()), caused, late)


def _why_unjudged(whole: int, costs: Costs, late: Late) -> Unknown | None:
    if late.judge.is_negotiated or lacks_cores(late):
        return not_known(late)
    if not whole:
        return Unknown("no step of several ranks was sampled whole")
    if costs.is_driven and costs.main_poll_share >= COVERED:
        polls = units.share(costs.main_poll_share)
        return Unknown(f"{polls} of the time inside MPI is in polls, between which a rank may work")
    return None


def is_split(row: StepRow, is_driven: bool, late: Late) -> bool:
    """Whether at least half of the time in which ranks may wait was split into waiting and
    transfer; in the run, if another thread than the driving one calls MPI."""
    if is_driven:
        return row.unsplit_ns is not None and row.unsplit_ns <= (1 - COVERED) * (
            row.communication_ns or 0
        )
    return (
        (late.run.coverage or 0.0) >= COVERED
        if row.nccl_host_ns is None
        else row.nccl_device_ns is not None
    )


def costs_in(times: Mapping[int, Mapping[int, tuple[int, int]]], late: Late) -> dict[int, Caused]:
    """The waiting that each rank causes in each step, on communicators of ranks that have steps. On
    the run's time axis a step is where it begins and ends on its last rank: an arrival that all
    ranks wait for lies in the step in which they wait. Where steps overlap, the one that began last
    counts."""
    spans = sorted(
        (storable(max(begins)), storable(max(ends)), step)
        for step, of_step in times.items()
        for begins, ends in [zip(*of_step.values())]
    )
    begins_ns, ends_ns, _ = np.array([*spans, (NONE, NONE, NONE)], np.int64).T
    ranks = {rank for of_step in times.values() for rank in of_step}
    theirs = [
        identity
        for identity, members in late.judge.participants.members.items()
        if not ranks.isdisjoint(members)
    ]
    costs = late.judge.costs
    place = np.searchsorted(begins_ns[:-1], costs.arrival_ns, "right") - 1
    is_in = (costs.arrival_ns <= ends_ns[place]) & np.isin(costs.identity, theirs)
    costs, place = costs.take(is_in), place[is_in]
    caused: dict[int, Caused] = {step: Counter() for step in times}
    for at, own in by_rank(place):
        caused[spans[at][2]].update(sums_of(costs.cause_rank[own], costs.sampled_ns[own]))
    return caused


def lead_ns(
    row: StepRow, caused: Caused, ranks: Sequence[int], least: float = MAJORITY
) -> float | None:
    """Waiting that these ranks cause each other rank in a step, if that is notable and this share
    of all waiting; None: it is not."""
    own_ns = sum(caused[rank] for rank in ranks)
    lead = own_ns / max(1, row.ranks - len(ranks))
    return (
        lead
        if own_ns >= least * sum(caused.values()) and lead >= NOTABLE_LEAD * row.step_ns
        else None
    )


def _with_slowest(row: StepRow, caused: Caused) -> StepRow:
    known = [rank for rank in caused if rank is not None]
    most = max(known, key=lambda rank: (caused[rank], -rank), default=None)
    lead = None if most is None else lead_ns(row, caused, [most])
    return row if lead is None else row._replace(slowest_rank=most, lead_ns=lead)


def _judged(rows: Sequence[StepRow], caused: dict[int, Caused], late: Late) -> Slowest:
    """For the ranks that hvprof-report late names: in how many steps the others wait for them."""
    ranks = late.run.late_ranks
    if ranks is None:
        return _not_named(late, len(rows))
    least = MOSTLY if is_mostly(late.run) else MAJORITY
    found = [lead_ns(row, caused[row.step], ranks, least) for row in rows]
    leads = [lead for lead in found if lead is not None]
    if len(leads) < max(1, min(FEWEST_BLOCKS, MAJORITY * len(rows))):
        them = f"{units.rank_names(ranks)} {units.agreeing('make', len(ranks))}"
        often = f"{len(leads)} of {units.counted(len(rows), 'step')} only"
        why = f"{them} the others wait for {units.share(NOTABLE_LEAD)} of a step or more in {often}"
        return answer(len(rows), f"none: {why}")
    return answer(len(rows), "", ranks, len(leads), fmean(leads))
