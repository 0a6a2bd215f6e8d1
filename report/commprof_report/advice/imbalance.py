"""Late ranks that hvprof-report late names: what all ranks would gain if these arrived with the
next. Of ranks that are late because of a slow link, rule slow_link says it."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.units import Ranks
from ..late.judgement import Kind
from ..late.late_ranks import Late
from ..late.reasons import Reason, reason_text, remedy
from ..late.sentences import (
    PROGRESS,
    basis_text,
    held_up_text,
    is_held_up,
    is_mostly,
    is_through_link,
    is_unknown,
    most_text,
    mostly_text,
    nearly_all_text,
    outside_text,
    unknown_cause_text,
    verdict,
    when_of_named,
    why_text,
)
from ..late.verdict import CallCause
from . import changes
from .findings import LIKELY, POSSIBLE, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, late_unknown, slow_text, waited_for


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    row = inputs.late.run
    if is_through_link(inputs.late):
        yield Unknown(slow_text(inputs.late.links[0]))
    elif row.late_ranks is not None:
        yield crowded(_of_run(row.late_ranks, inputs), inputs, row.late_reason)
    elif row.verdict is Kind.BY_CALL:
        for cause in inputs.late.blame.calls:
            why = inputs.late.call_reasons.get(cause.named.ranks)
            yield crowded(_of_call(cause, inputs, why), inputs, why and why.kind)
    elif row.verdict is Kind.TRANSFER and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    elif text := not inputs.late.unfinished and most_text(inputs.late):
        yield Unknown(text)
    elif row.verdict is not Kind.MARKS:
        yield from late_unknown(inputs)


def _of_run(ranks: Ranks, inputs: Inputs) -> Finding:
    late, row = inputs.late, inputs.late.run
    is_at_marks = row.verdict is Kind.MARKS
    evidence = verdict(late) if is_at_marks else _share_text(ranks, late)
    gain_ns = (row.late_gain_ns or 0) * row.ranks
    certainty = POSSIBLE if is_mostly(row) else LIKELY
    change = None if is_at_marks else changes.without(inputs, inputs.late_ranks)
    return Finding(
        waited_for(ranks), evidence, _balance(ranks, late), certainty, gain_ns, change=change,
        is_played=row.late_gain_ns is not None,
    )


def _share_text(ranks: Ranks, late: Late) -> str:
    """61.2 % of the waiting is for it (analysed: 98.2 % of the time inside MPI)"""
    row = late.run
    them = units.agreeing("them", len(ranks))
    part = (
        mostly_text(row) if is_mostly(row)
        else f"{units.share(row.late_share)} of the waiting is for {them}"
    )
    when = nearly_all_text(when_of_named(late))
    return f"{part}{when}{outside_text(late)} (analysed: {basis_text(row)}){why_text(late)}"


def _balance(ranks: Ranks, late: Late) -> str:
    if is_held_up(late.run):
        return f"{held_up_text(late)}: {PROGRESS}"
    if late.reason:
        return remedy(late.reason.kind, ranks)
    if not late.blame.named or not when_of_named(late).few:
        return (
            "balance the work, or look at the host: other jobs, throttled cores, where threads run"
        )
    return (
        f"look at what {units.agreeing('they do', len(ranks))} before these arrivals and not "
        "otherwise: a checkpoint, an evaluation, reading data"
    )


def _of_call(cause: CallCause, inputs: Inputs, why: Reason | None) -> Finding:
    ranks, share = cause.named.ranks, cause.named.share
    them = units.agreeing("them", len(ranks))
    others = len(inputs.late.participants.members[cause.identity]) - len(ranks)
    each_ns = cause.cost_ns * share / max(1, others)
    evidence = (
        f"{units.share(share)} of the waiting in this call; each other rank waits "
        f"{units.duration(each_ns)} for {them}, on average"
    )
    return Finding(
        f"{waited_for(ranks, 40)} in {cause.call} on {inputs.where([cause.identity])}",
        f"{evidence}; {reason_text(why, ranks)}" if why else evidence,
        remedy(why.kind, ranks) if why else "look at what these ranks do before that call",
        POSSIBLE if cause.named.is_mostly else LIKELY, cause.cost_ns * share, cause.call,
        [cause.identity],
        change=changes.without(
            inputs, ranks, changes.chosen(inputs, [cause.call], [cause.identity])
        ),
    )
