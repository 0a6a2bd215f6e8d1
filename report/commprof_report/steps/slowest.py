"""The slowest ranks of steps: those that cause most of the waiting in them, as hvprof-report late
judges it.

    late arrivals within complete  ->  of each step: the rank that causes half of its waiting
    steps, with their root causes  ->  of all: what hvprof-report late found in the run, if steps
                                       have most of its waiting; else its test, of these arrivals
                                       alone

Arrival at the calls of a thread that negotiates shows nobody; steps that the program counts are
then compared at their marks (arrivals.py), and the same test is made with what the last rank is
behind in place of waiting. So are visits to a region that the user chose, if another thread makes
the calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from statistics import fmean, median
from typing import NamedTuple

from ..base import units
from ..base.arrays import np
from ..base.columns import NONE, by_rank
from ..base.present import Unknown
from ..base.thresholds import threshold
from ..late import verdict
from ..late.late_ranks import Late
from ..late.marks import HANDED, NOTABLE_LEAD, Last
from ..late.sentences import (
    judged_text, mark_text, marks_text, serving_text, short_text, unknown,
)
from ..late.verdict import (
    COVERED, FEWEST_BLOCKS, MAJORITY, MOSTLY, Blame, Costs as Waited, Gains,
)
from ..run.alignment import Alignment, storable
from .boundaries import Detection, Steps
from .last_at_points import Arrivals, arrivals, point_text
from .outliers import with_blame
from .step_costs import Costs, StepRow

Caused = Counter["int | None"]  # waiting in a step by the rank that causes it; None: not known


class Slowest(NamedTuple):
    """Slowest ranks of a run. slowest_why: why no rank is named, in words."""

    slowest_ranks: units.Ranks | None = None
    slowest_steps: int = 0
    slowest_lead_ns: float | None = None
    slowest_p: float | None = None
    slowest_share: float | None = None
    slowest_others_share: float | None = None
    slowest_at: str = ""
    slowest_region: str = ""
    slowest_why: str | Unknown = ""
    slowest_reason: str | None = None  # why they are, if that is known
    slowest_reason_ns: float | None = None
    slowest_reason_others_ns: float | None = None
    judged_steps: int = 0


def slowest(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[list[StepRow], Slowest]:
    """The steps with their slowest ranks, and the run's. `late`: the run's analysis of waiting, if
    the caller has made it."""
    rows, found = _slowest_ranks(steps, costs, alignment, late)
    usual_ns = median(
        [row.step_ns for row in rows if not (row.is_outlier or row.is_warm_up)] or [0]
    )
    return [
        row._replace(
            why=with_blame(row.why, row.slowest_rank, row.lead_ns, row.step_ns - usual_ns)
        ) if row.is_outlier else row
        for row in rows
    ], found


def _slowest_ranks(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[list[StepRow], Slowest]:
    if late is None:
        return costs.steps, Slowest(slowest_why=Unknown("waiting was not analysed"))
    is_beside = not costs.is_driven and not any(row.nccl_device_ns for row in costs.steps)
    arriving = arrivals(steps, alignment, late) if is_beside or late.is_negotiated else None
    if late.last and late.last.region and steps.detection.by != "region":
        at_steps = late.last if steps.detection.by == HANDED else arriving and arriving.judged
        return _with_last(costs.steps, at_steps), _slowest(
            late.last, "begin", mark_text(late.last.region)
        )
    if arriving and (late.is_negotiated or steps.detection.by == "region"):
        return _by_arrival(costs.steps, arriving, steps.detection)
    rows, found = _by_calls(steps, costs, alignment, late)
    if arriving and isinstance(found.slowest_why, Unknown):
        return _by_arrival(costs.steps, arriving, steps.detection)
    return rows, found


def _by_calls(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late
) -> tuple[list[StepRow], Slowest]:
    whole = [row for row in costs.steps if row.is_complete and not row.is_warm_up and row.ranks > 1]
    if unjudged := _why_unjudged(whole, costs, late):
        return costs.steps, Slowest(slowest_why=unjudged)
    judged = {row.step: row for row in whole if is_split(row, costs.is_driven, late)}
    times = steps.aligned(alignment, judged)
    spans = spans_of(times)
    waited, caused = costs_in(
        spans, late, {rank for of_step in times.values() for rank in of_step}
    )
    rows = [
        row if row.step not in judged else _with_slowest(row, caused[row.step])
        for row in costs.steps
    ]
    if 2 * len(judged) < len(whole):
        why = (
            f"in {len(whole) - len(judged):,} of {len(whole):,} steps less than half of the time "
            "inside MPI is split"
        )
        return rows, Slowest(slowest_why=Unknown(why), judged_steps=len(judged))
    notable_ns = NOTABLE_LEAD * sum(row.step_ns for row in judged.values())

    @lru_cache(maxsize=None)
    def gains(ranks: tuple[int, ...]) -> bool:
        """These steps would be notably shorter without them, as far as that can be played."""
        retimed = late.stages.retimed
        return not retimed.parts or (
            retimed.gain_within_ns(ranks, list(spans.values())) >= notable_ns
        )

    if late.serving and are_most_of(waited, late.costs):
        why = f"none: {serving_text(late.serving)}"
        return rows, Slowest(slowest_why=why, judged_steps=len(judged))
    found = (
        late.blame if are_most_of(waited, late.costs)
        else verdict.blame(waited, late.participants, gains, is_part=True)
    )
    return rows, _judged(list(judged.values()), waited, caused, found, gains)


def _why_unjudged(whole: Sequence[StepRow], costs: Costs, late: Late) -> Unknown | None:
    if late.is_negotiated:
        return unknown(late)
    if not whole:
        return Unknown("no step of several ranks was sampled whole")
    if not (costs.is_driven and costs.main_poll_share >= COVERED):
        return None
    polls = units.share(costs.main_poll_share)
    return Unknown(f"{polls} of the time inside MPI is in polls, between which a rank may work")


def are_most_of(waited: Waited, of_run: Waited) -> bool:
    """Who is late in the run is then late in steps."""
    return waited.whole_ns >= threshold("steps.most-of-run") * of_run.whole_ns


def is_split(row: StepRow, is_driven: bool, late: Late) -> bool:
    """Whether at least half of the time in which ranks may wait was split into waiting and
    transfer; in the run, if another thread than the driving one calls MPI."""
    if is_driven:
        return row.unsplit_ns is not None and row.unsplit_ns <= (1 - COVERED) * (
            row.communication_ns or 0
        )
    return (
        (late.run.coverage or 0.0) >= COVERED if row.nccl_host_ns is None
        else row.nccl_device_ns is not None
    )


def spans_of(times: Mapping[int, Mapping[int, tuple[int, int]]]) -> dict[int, tuple[int, int]]:
    """On the run's time axis, in order of time, where these steps begin and end on their last rank:
    an arrival that all ranks wait for lies in the step in which they wait. Where steps overlap, the
    one that began last counts."""
    spans = {
        step: (storable(max(begins)), storable(max(ends))) for step, of_step in times.items()
        for begins, ends in [zip(*of_step.values())]
    }
    return dict(sorted(spans.items(), key=itemgetter(1)))


def costs_in(
    spans: dict[int, tuple[int, int]], late: Late, ranks: Collection[int]
) -> tuple[Waited, dict[int, Caused]]:
    """The costs within these steps, on communicators of ranks that have steps, and of each step
    what each rank causes."""
    costs, order = late.costs, list(spans)
    begins_ns, ends_ns = np.array([*spans.values(), (NONE, NONE)], np.int64).T
    theirs = [
        identity for identity, members in late.participants.members.items()
        if not set(members).isdisjoint(ranks)
    ]
    place = np.searchsorted(begins_ns[:-1], costs.arrival_ns, "right") - 1
    is_in = (costs.arrival_ns <= ends_ns[place]) & np.isin(costs.identity, theirs)
    costs, place = costs.take(is_in), place[is_in]
    caused: dict[int, Caused] = {step: Counter() for step in spans}
    for at, own in by_rank(place):
        caused[order[at]].update(verdict.sums_of(costs.cause_rank[own], costs.sampled_ns[own]))
    return costs, caused


def lead_ns(
    row: StepRow, caused: Caused, ranks: Sequence[int], least: float = MAJORITY
) -> float | None:
    """Waiting that these ranks cause each other rank in a step, if that is notable and this share
    of all waiting; None: it is not."""
    own_ns = sum(caused[rank] for rank in ranks)
    lead = own_ns / max(1, row.ranks - len(ranks))
    return (
        lead if own_ns >= least * sum(caused.values()) and lead >= NOTABLE_LEAD * row.step_ns
        else None
    )


def _with_slowest(row: StepRow, caused: Caused) -> StepRow:
    known = [rank for rank in caused if rank is not None]
    most = max(known, key=lambda rank: (caused[rank], -rank), default=None)
    lead = None if most is None else lead_ns(row, caused, [most])
    return row if lead is None else row._replace(slowest_rank=most, lead_ns=lead)


def _judged(
    rows: Sequence[StepRow], waited: Waited, caused: dict[int, Caused], found: Blame,
    gains: Gains,
) -> Slowest:
    named, ranks = found.named, found.named.ranks if found.named else ()
    least = MOSTLY if named and named.is_mostly else MAJORITY
    found_in_steps = (lead_ns(row, caused[row.step], ranks, least) for row in rows if ranks)
    leads = [lead for lead in found_in_steps if lead is not None]
    if named and len(leads) >= _fewest(rows) and named.is_measurable and gains(ranks):
        return Slowest(
            units.Ranks(ranks), len(leads), fmean(leads), named.p, named.share,
            named.others_share, judged_steps=len(rows),
        )
    return Slowest(
        slowest_why=_why_none(rows, waited, caused, found, len(leads)), judged_steps=len(rows)
    )


def _fewest(rows: Sequence[StepRow]) -> float:
    """The least number of steps in which a rank that is named must be the slowest."""
    return max(1, min(FEWEST_BLOCKS, MAJORITY * len(rows)))


def _why_none(
    rows: Sequence[StepRow], waited: Waited, caused: dict[int, Caused], found: Blame,
    slow_steps: int,
) -> str | Unknown:
    by_rank = sum(caused.values(), Counter())
    whole_ns = sum(by_rank.values())
    if whole_ns < NOTABLE_LEAD * sum((row.ranks - 1) * row.step_ns for row in rows):
        return (
            f"none: ranks wait for each other for less than {units.share(NOTABLE_LEAD)} of "
            "these steps"
        )
    if found.named:
        names = units.rank_names(found.named.ranks)
        if slow_steps < _fewest(rows):
            part, number = units.share(NOTABLE_LEAD), units.counted(len(rows), "step")
            return (
                f"none: {names} {units.agreeing('make', len(found.named.ranks))} the others wait "
                f"for {part} of a step or more in {slow_steps} of {number} only"
            )
        shorter = f"{units.share(NOTABLE_LEAD)} shorter{short_text(found.named)}"
        return f"none: steps would be less than {shorter} if {names} arrived with the next rank"
    if found.calls:
        return "none: different ranks are late in different calls"
    if (blocks := verdict.block_count(waited)) < FEWEST_BLOCKS:
        return Unknown(
            f"in these steps {units.are(blocks, 'late arrival')} too few to tell a cause from "
            "chance"
        )
    if by_rank[None] >= COVERED * whole_ns:
        return Unknown(
            f"the cause of {units.share(by_rank[None] / whole_ns)} of the waiting in "
            "these steps is not known"
        )
    return "none: no rank causes half of the waiting in these steps beyond chance"


def _by_arrival(
    rows: Sequence[StepRow], arriving: Arrivals, detection: Detection
) -> tuple[list[StepRow], Slowest]:
    return _with_last(rows, arriving.judged), _slowest(
        arriving.judged, arriving.point, point_text(detection.by, arriving.point)
    )


def _with_last(rows: Sequence[StepRow], judged: Last | None) -> list[StepRow]:
    last = judged.by_step if judged else {}
    return [
        row._replace(slowest_rank=rank, lead_ns=lead) for row in rows
        for rank, lead in [last.get(row.step, (None, None))]
    ]


def _slowest(judged: Last, at: str, point: str) -> Slowest:
    if judged.ranks:
        return Slowest(
            units.Ranks(judged.ranks), judged.times, judged.lead_ns, judged.p, judged.share,
            1 - judged.share, slowest_at=at, slowest_region=judged.region,
            judged_steps=judged.judged,
        )
    why: str | Unknown = f"none: {marks_text(judged, point)}"
    if judged.judged < FEWEST_BLOCKS:
        why = Unknown(f"{judged_text(judged, units.are)} too few to tell a cause from chance")
    return Slowest(
        slowest_at=at, slowest_region=judged.region, slowest_why=why, judged_steps=judged.judged
    )
