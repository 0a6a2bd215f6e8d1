"""Why a step is longer than usual: calls that others do not have, or more time outside MPI or in a
call; and the rank that the others wait for. And whether steps became slower over the run: Kendall's
test on the medians of parts of it.

The steps are divided, in order of time, into up to 16 parts with the same number of steps, three or
more. A run has less than 1 % probability of showing a trend if all orders of their medians are
equally probable.

The critical path of a step: which rank, doing what, made the step as long as it was.

It is followed back from the end of the rank whose step ends last. Where a rank waited, the path
goes on at the rank that it waited for, at the time at which that rank arrived. The rest are the
parts of the ranks' timelines that no other rank held up.

    rank 0  |=== outside ===|- waits for 1 -|=transfer=|      path: rank 1 outside MPI, then
    rank 1  |======== outside =============>|transfer|              transfer on rank 0

The slowest ranks of steps: those that hvprof-report late names, as far as they make the others
wait in steps.

    late arrivals within complete  ->  of each step: the rank that causes half of its waiting; in
    steps, with their root causes      how many the named ranks do

Arrival at the calls of a thread that negotiates shows nobody; ranks are then compared, as by late,
where they hand their gradients over, at the begin of a region around the wait, or at the marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, List, Tuple

from ..base import (
    Columns,
    Field,
    Ints,
    NONE,
    Row,
    TextInts,
    Texts,
    Unknown,
    by_rank,
    chance,
    gathered,
    grouped,
    np,
    numbered,
    row_type,
    score,
    threshold,
    units,
    whole,
)
from ..late import (
    COVERED,
    FEWEST_BLOCKS,
    FILES,
    HANDED,
    Late,
    MAJORITY,
    MOSTLY,
    NOTABLE_LEAD,
    OUTSIDE,
    Piece,
    TRANSFER,
    Timeline,
    UNSEEN,
    UNSPLIT,
    WAITING,
    is_mostly,
    lacks_cores,
    not_known,
    spans,
    sums_of,
    verdict_text,
)
from ..run.alignment import Alignment, storable
from .boundaries import Boundaries, Steps, means_of_steps
from .columns import Costs


COMMON = threshold("steps.foreign")
EXPLAINS = threshold("steps.explains")


def explained(
    rows: Boundaries, outside_ns: Ints, calls: Columns, is_driven: bool, texts: Texts
) -> dict[int, str]:
    """For each outlier which calls only it has, and which calls took longer than usual on which
    ranks. outside_ns: of each row, time outside MPI, or between its calls. calls: by row and name,
    total_ns on all threads, or on the driving one and on the device."""
    outliers = np.unique(rows.step[rows.is_outlier]).tolist()
    if not outliers:
        return {}
    is_usual = ~rows.is_outlier & ~rows.is_warm_up
    usual, usual_outside_ns = rows.take(is_usual), np.zeros(len(rows))
    usual_ns = median(means_of_steps(usual).tolist() or [0.0])
    for rank, own in by_rank(usual.world_rank):
        usual_outside_ns[rows.world_rank == rank] = np.median(outside_ns[is_usual][own])
    more_outside_ns, rank = outside_ns - usual_outside_ns, rows.world_rank[calls.row]
    steps = np.maximum(1, np.bincount(usual.world_rank, minlength=rows.world_rank.max() + 1))[rank]
    kind = numbered(rank, calls.name)
    more_ns = calls.total_ns - np.bincount(kind, calls.total_ns * is_usual[calls.row])[kind] / steps
    foreign = foreign_calls(rows.step[calls.row], calls.name, len(np.unique(rows.step)))
    said = {}
    for step in outliers:
        is_own = rows.step == step
        is_in = is_own[calls.row]
        names = [texts.texts[call] for call in calls.name[is_in].tolist()]
        only_here = sorted({texts.texts[call] for call in foreign} & {*names})
        longer = gathered(zip(names, more_ns[is_in].tolist()))
        excess_ns = float(rows.step_ns[is_own].mean()) - usual_ns
        said[step] = why_longer(
            excess_ns, only_here, more_outside_ns[is_own].tolist(), longer, is_driven
        )
    return said


def foreign_calls(step: Ints, call: TextInts, steps: int) -> set[int]:
    """The calls that few of the steps have."""
    order, groups = grouped(call, step)
    met, count = np.unique(call[order[groups.first]], return_counts=True)
    return {*met[count < COMMON * steps].tolist()}


def why_longer(
    excess_ns: float,
    foreign: list[str],
    more: Sequence[float],
    longer: Mapping[str, Sequence[float]],
    is_driven: bool,
) -> str:
    """more: how much longer each rank was outside MPI; longer: in each call. No rank is named: whom
    the others wait for, the test of late says (_by_step)."""
    said = [f"{' and '.join(foreign)} in it"] if foreign else []
    least_ns = max(EXPLAINS * excess_ns, 1)
    call = max(longer, key=lambda call: sum(longer[call]), default="")
    most_ns = max(longer.get(call, [0]))
    if is_driven and max(more) >= least_ns:
        said.append(_on_ranks("more outside MPI", more, least_ns))
    elif most_ns > 0:
        said.append(_on_ranks(f"more in {call}", longer[call], EXPLAINS * most_ns))
    outside = (
        "no rank spent half of the excess outside MPI"
        if is_driven
        else "what the thread that drives the steps did is not known"
    )
    return "; ".join(said) or f"{outside}, and no call took longer on average"


def _on_ranks(what: str, more: Sequence[float], least_ns: float) -> str:
    """12 ms more in MPI_Allreduce on 3 of 4 ranks: a mean over these."""
    some = [ns for ns in more if ns >= least_ns]
    where = "" if len(some) == len(more) else f" on {len(some):,} of {len(more):,} ranks"
    return f"{units.duration(fmean(some))} {what}{where}"


FEWEST_STEPS = whole("steps.trend-steps")
MOST_PARTS, FEWEST_OF_A_PART = whole("steps.trend-parts"), whole("steps.trend-part")
TREND_LEVEL, NOTABLE = threshold("steps.trend-level"), threshold("steps.trend-notable")


Trend = row_type("Trend", "trend trend_p first_tenth_ns last_tenth_ns".split())  # columns.py


def trend(step_ns: Sequence[float]) -> Row:
    """Trend of the durations of steps in order of time."""
    if len(step_ns) < FEWEST_STEPS:
        return Trend("unknown", None, None, None)
    medians = [median(step_ns[begin:end]) for begin, end in parts(len(step_ns))]
    in_order = score(medians)
    tenth = len(step_ns) // 10
    first_ns, last_ns = median(step_ns[:tenth]), median(step_ns[-tenth:])
    change_ns, p = last_ns - first_ns, chance(len(medians), abs(in_order))
    is_notable = change_ns * in_order > 0 and abs(change_ns) >= NOTABLE * median(step_ns)
    seen = ("slower" if in_order > 0 else "faster") if p < TREND_LEVEL and is_notable else "none"
    return Trend(seen, p, first_ns, last_ns)


def parts(steps: int) -> list[tuple[int, int]]:
    return spans(steps, min(MOST_PARTS, steps // FEWEST_OF_A_PART))


def is_whole(row: Row) -> bool:
    """Whether it is known what its ranks did, and it is not of the warm-up."""
    return bool(row.is_complete and not row.is_warm_up and row.ranks > 1)


STATES = {
    OUTSIDE: "outside",
    TRANSFER: "transfer",
    FILES: "files",
    WAITING: "waiting",
    UNSPLIT: "not split",
}


def doing_text(state: str, call: str, outside: str = "outside MPI") -> str:
    if state == "outside":
        return outside
    remark = {"waiting": " (waiting, for whom is not known)", "not split": " (not split)"}.get(
        state, ""
    )
    return f"in {units.visible(call)}{remark}"


PATH = (
    Field(
        "step", "a part of the critical path of this step, on this rank; the longest first", "step"
    ),
    Field("rank", "", "rank"),
    Field(
        "state",
        "`outside` (MPI), `transfer`, `files`, `not split`, `waiting` (for whom is not known)",
        "doing",
        is_number=False,
        of_row=lambda row: doing_text(row.state, row.call),
    ),
    Field("call", ""),
    Field("time_ns", "sum over the path; over the whole path of the step", "time"),
    Field("share", "", "of path"),
)
PathRow = row_type("PathRow", PATH)


Path = List[Tuple[int, Piece]]  # ranks and what they did, the latest first


def critical_paths(
    steps: Steps, rows: Sequence[Row], alignment: Alignment, late: Late
) -> list[Row]:
    """Paths of the complete steps after the warm-up, the longest parts first; nothing of a step
    whose path was not seen, or was not split."""
    times = steps.aligned(alignment, {row.step for row in rows if is_whole(row)})
    return [
        row for step in sorted(times) for row in _rows(step, critical_path(late.lines, times[step]))
    ]


def _rows(step: int, path: Path) -> Iterator[Row]:
    parts: Counter = Counter()
    for rank, piece in path:
        parts[rank, piece.state, piece.call] += piece.end_ns - piece.begin_ns
    whole_ns = sum(parts.values())
    for (rank, state, call), time_ns in sorted(parts.items(), key=lambda part: (-part[1], part[0])):
        yield PathRow(step, rank, STATES[state], call, time_ns, time_ns / whole_ns)


def critical_path(lines: dict[int, Timeline], times: Mapping[int, tuple[int, int]]) -> Path:
    """Path of a step, by the times at which it begins and ends on each rank. Empty if it was not
    seen, or not split."""
    path = list(_followed(lines, times))
    return path if is_known(path) else []


def is_known(path: Path) -> bool:
    spent_ns: Counter[int] = Counter()  # in each state
    for _, piece in path:
        spent_ns[piece.state] += piece.end_ns - piece.begin_ns
    whole_ns = sum(spent_ns.values())
    known_ns = whole_ns - spent_ns[WAITING] - spent_ns[UNSPLIT]
    return UNSEEN not in spent_ns and known_ns >= threshold("steps.path") * whole_ns > 0


def _followed(
    lines: dict[int, Timeline], times: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[int, Piece]]:
    """A path ends where the step of the rank begins that it has led to."""
    rank: int | None = max(times, key=lambda one: (times[one][1], -one))
    time_ns, left = max(end_ns for _, end_ns in times.values()), set()
    while rank is not None:
        left.add((rank, time_ns))
        follows, step_begin_ns = None, times[rank][0]
        for piece in lines[rank].back_from(time_ns):
            if piece.end_ns <= step_begin_ns:
                break
            is_held_up = (
                piece.state == WAITING
                and piece.waits_for in times
                and (piece.waits_for, piece.end_ns) not in left
            )
            if is_held_up:
                follows, time_ns = piece.waits_for, piece.end_ns
                break
            yield rank, piece._replace(begin_ns=max(piece.begin_ns, step_begin_ns))
        rank = follows


Caused = Counter["int | None"]  # waiting in a step by the rank that causes it; None: not known


def answer(
    judged: int,
    why: Unknown | str = "",
    ranks: units.Ranks | None = None,
    steps: int = 0,
    lead_ns: float | None = None,
) -> dict[str, Any]:
    """The columns of steps that say who is slowest. why: nobody is named."""
    return {
        "slowest_ranks": ranks,
        "slowest_steps": steps,
        "slowest_lead_ns": lead_ns,
        "slowest_why": why,
        "judged_steps": judged,
    }


def _not_named(late: Late, judged: int) -> dict[str, Any]:
    return answer(judged, not_known(late) or f"none: {verdict_text(late)}")


def slowest(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[Costs, dict[str, Any]]:
    """The costs of the steps with their slowest ranks, and the run's. `late`: the run's analysis of
    waiting, if the caller has made it."""
    by_step, found = _by_step(steps, costs, alignment, late)
    usual_ns = median(
        [row.step_ns for row in costs.steps if not (row.is_outlier or row.is_warm_up)] or [0]
    )
    return costs._replace(
        steps=[
            _with_slowest(row, usual_ns, *by_step.get(row.step, (None, None)))
            for row in costs.steps
        ]
    ), found


def _with_slowest(row: Row, usual_ns: float, rank: int | None, lead: float | None) -> Row:
    """The rank explains an outlier if the others wait for it for half of the excess."""
    why, excess_ns = row.why, row.step_ns - usual_ns
    if row.is_outlier and lead is not None and lead >= EXPLAINS * excess_ns:
        why = f"{why}; the others wait {units.duration(lead)} because of rank {rank}"
    return row._replace(slowest_rank=rank, lead_ns=lead, why=why)


def _by_step(
    steps: Steps, costs: Costs, alignment: Alignment, late: Late | None
) -> tuple[Mapping[int, tuple[int, float]], dict[str, Any]]:
    """Also by step the slowest rank and its lead."""
    if late is None:
        return {}, answer(0, Unknown("waiting was not analysed"))
    if last := late.last:
        is_of_steps = (steps.detection.by, last.region) in (("marks", ""), (HANDED, HANDED))
        named = last.named and answer(
            last.judged, "", units.Ranks(last.named.ranks), last.times, last.lead_ns
        )
        return last.by_step if is_of_steps else {}, named or _not_named(late, last.judged)
    whole = [row for row in costs.steps if is_whole(row)]
    if unjudged := _why_unjudged(len(whole), costs, late):
        return {}, answer(0, unjudged)
    judged = [row for row in whole if is_split(row, costs.is_driven, late)]
    caused = costs_in(steps.aligned(alignment, {row.step for row in judged}), late)
    leaders = {row.step: _leader(row, caused[row.step]) for row in judged}
    by_step = {step: leader for step, leader in leaders.items() if leader}
    if 2 * len(judged) < len(whole):
        left = f"{len(whole) - len(judged):,} of {len(whole):,}"
        few = Unknown(f"in {left} steps less than half of the time inside MPI is split")
        return by_step, answer(len(judged), few)
    return by_step, _judged(judged, caused, late)


def _why_unjudged(whole: int, costs: Costs, late: Late) -> Unknown | None:
    if late.is_negotiated or lacks_cores(late):
        return not_known(late)
    if not whole:
        return Unknown("no step of several ranks was sampled whole")
    if costs.is_driven and costs.main_poll_share >= COVERED:
        polls = units.share(costs.main_poll_share)
        return Unknown(f"{polls} of the time inside MPI is in polls, between which a rank may work")
    return None


def is_split(row: Row, is_driven: bool, late: Late) -> bool:
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
        for identity, members in late.participants.members.items()
        if not ranks.isdisjoint(members)
    ]
    costs = late.costs
    place = np.searchsorted(begins_ns[:-1], costs.arrival_ns, "right") - 1
    is_in = (costs.arrival_ns <= ends_ns[place]) & np.isin(costs.identity, theirs)
    costs, place = costs.take(is_in), place[is_in]
    caused: dict[int, Caused] = {step: Counter() for step in times}
    for at, own in by_rank(place):
        caused[spans[at][2]].update(sums_of(costs.cause_rank[own], costs.sampled_ns[own]))
    return caused


def lead_ns(
    row: Row, caused: Caused, ranks: Sequence[int], least: float = MAJORITY
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


def _leader(row: Row, caused: Caused) -> tuple[int, float] | None:
    known = [rank for rank in caused if rank is not None]
    most = max(known, key=lambda rank: (caused[rank], -rank), default=NONE)
    lead = lead_ns(row, caused, [most])
    return None if most == NONE or lead is None else (most, lead)


def _judged(rows: Sequence[Row], caused: dict[int, Caused], late: Late) -> dict[str, Any]:
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
