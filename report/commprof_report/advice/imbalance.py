"""Late ranks that hvprof-report late names: what all ranks would gain if these arrived with the
next. Of ranks that are late because of a slow link, rule slow_link says it."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..late.late_ranks import Late
from ..late.reasons import Reason, reason_text, remedy
from ..late.sentences import (
    PROGRESS,
    basis_text,
    few_of_named,
    held_up_text,
    is_held_up,
    is_mostly,
    is_through_link,
    is_unknown,
    mostly_text,
    outside_text,
    unknown_cause_text,
    verdict,
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
    elif row.verdict == "by-call":
        for cause in inputs.late.blame.calls:
            why = inputs.late.call_reasons.get(cause.named.ranks)
            yield crowded(_of_call(cause, inputs, why), inputs, why and why.kind)
    elif row.verdict == "transfer" and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    elif row.verdict != "marks":
        yield from late_unknown(inputs, "unknown: ", "no rank is late beyond", "no rank is named")


def _of_run(ranks: str, inputs: Inputs) -> Finding:
    late, row = inputs.late, inputs.late.run
    evidence = verdict(late) if row.verdict == "marks" else _share_text(ranks, late)
    gain_ns = (row.late_gain_ns or 0) * row.ranks
    certainty = POSSIBLE if is_mostly(row) else LIKELY
    change = None if row.verdict == "marks" else changes.without(inputs, inputs.late_ranks)
    return Finding(
        waited_for(ranks), evidence, _balance(ranks, late), certainty, gain_ns, change=change,
        is_played=row.late_gain_ns is not None,
    )


def _share_text(ranks: str, late: Late) -> str:
    """61.2 % of the waiting is for it (analysed: 98.2 % of the time inside MPI)"""
    row, few = late.run, few_of_named(late)
    them = "it" if units.is_one(ranks) else "them"
    part = (
        mostly_text(row) if is_mostly(row)
        else f"{units.share(row.late_share)} of the waiting is for {them}"
    )
    few_text = few and f", nearly all of it in {few}"
    return f"{part}{few_text}{outside_text(late)} (analysed: {basis_text(row)}){why_text(late)}"


def _balance(ranks: str, late: Late) -> str:
    if is_held_up(late.run):
        return f"{held_up_text(late)}: {PROGRESS}"
    if late.reason:
        return remedy(late.reason.kind, ranks)
    if not few_of_named(late):
        return (
            "balance the work, or look at the host: other jobs, throttled cores, where threads run"
        )
    they, do = ("it", "does") if units.is_one(ranks) else ("they", "do")
    what = "a checkpoint, an evaluation, reading data"
    return f"look at what {they} {do} before these arrivals and not otherwise: {what}"


def _of_call(cause: CallCause, inputs: Inputs, why: Reason | None) -> Finding:
    ranks, share = cause.named.ranks, cause.named.share
    who, are, them = units.rank_list(ranks), *(("is", "it") if len(ranks) == 1 else ("are", "them"))
    others = len(inputs.late.participants.members[cause.identity]) - len(ranks)
    each_ns = cause.cost_ns * share / max(1, others)
    evidence = (
        f"{units.share(share)} of the waiting in this call; each other rank waits "
        f"{units.duration(each_ns)} for {them}, on average"
    )
    return Finding(
        f"{units.rank_names(ranks)} {are} waited for in {cause.call} on "
        f"{inputs.where([cause.identity])}",
        f"{evidence}; {reason_text(why, who)}" if why else evidence,
        remedy(why.kind, who) if why else "look at what these ranks do before that call",
        POSSIBLE if cause.named.is_mostly else LIKELY, cause.cost_ns * share, cause.call,
        [cause.identity],
        change=changes.without(
            inputs, ranks, changes.chosen(inputs, [cause.call], [cause.identity])
        ),
    )
