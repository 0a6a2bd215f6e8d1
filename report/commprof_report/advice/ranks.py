"""Rules about ranks that others wait for. `late` decides who is named."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.present import Unknown, present
from ..base.thresholds import threshold
from ..base.units import Ranks
from ..late.judgement import Kind
from ..late.late_ranks import Late, LateRow
from ..late.links import Link
from ..late.reasons import LOST_CORE, OWN, Reason, remedy
from ..late.sentences import (
    LINK, PROGRESS, basis_text, call_text, details, held_up_text, is_held_up, is_mostly,
    is_through_link, is_unknown, links_text, not_known, unfinished_text, unknown_cause_text,
    when_text,
)
from ..late.verdict import COVERED, FEWEST_BLOCKS, CallCause
from ..run.crowding import waited_ns
from .findings import LIKELY, POSSIBLE, SURE, Finding, is_notable
from .inputs import Inputs
from .messages import is_message, waited_for

MUCH = threshold("advice.waiting")


def _crowded(found: Finding, inputs: Inputs, why: str | None = None) -> Finding:
    """If ranks wait for cores for as long, a late rank may merely not have been scheduled. why: the
    kind of the reason, if it is known."""
    if why in OWN or (found.saving_ns or 0) >= waited_ns(inputs.late.crowding):
        return found
    if why == LOST_CORE:
        return found._replace(
            evidence=f"{found.evidence}; {inputs.answers.summary.crowding}"
        )
    do = "wait for" if any(each.lost for each in inputs.late.crowding) else "share"
    return found._replace(
        title=f"{found.title}, but ranks {do} cores",
        suggestion="give each rank a core of its own before looking for the cause in a rank",
        certainty=POSSIBLE, saving_ns=None if is_notable(found, inputs) else found.saving_ns,
    )


def _late_unknown(inputs: Inputs) -> Iterator[Unknown]:
    """If it is not known who is late, nothing is denied."""
    if inputs.late.unfinished:
        yield Unknown(unfinished_text(inputs.late))
    elif why := not_known(inputs.late):
        yield why


def imbalance(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Late ranks: what all would gain if these arrived with the next. Of ranks that are late
    because of a slow link, rule slow_link says it."""
    late, row = inputs.late, inputs.late.run
    if is_through_link(late):
        yield Unknown(_slow_text(late.links[0]))
    elif row.late_ranks is not None:
        yield _crowded(_of_run(row.late_ranks, inputs), inputs, row.late_reason)
    elif row.verdict is Kind.BY_CALL:
        for cause in late.blame.calls:
            why = late.call_reasons.get(cause.named.ranks)
            yield _crowded(_of_call(cause, inputs, why), inputs, why and why.kind)
    elif row.verdict is Kind.TRANSFER and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    elif row.verdict is not Kind.MARKS:
        yield from _late_unknown(inputs)


def _of_run(ranks: Ranks, inputs: Inputs) -> Finding:
    late, row = inputs.late, inputs.late.run
    is_at_marks = row.verdict is Kind.MARKS
    basis = "" if is_at_marks else f" (analysed: {basis_text(row)})"
    said = "; ".join(text for _, text in details(late))
    return Finding(
        waited_for(ranks), f"{said}{basis}", _balance(ranks, late),
        POSSIBLE if is_mostly(row) else LIKELY, (row.late_gain_ns or 0) * row.ranks,
    )


def _balance(ranks: Ranks, late: Late) -> str:
    if is_held_up(late.run):
        return f"{held_up_text(late)}: {PROGRESS}"
    if late.reason:
        return remedy(late.reason.kind, ranks)
    if not late.blame.named or not when_text(late):
        return (
            "balance the work, or look at the host: other jobs, throttled cores, where threads run"
        )
    return (
        f"look at what {units.agreeing('they do', len(ranks))} before these arrivals and not "
        "otherwise: a checkpoint, an evaluation, reading data"
    )


def _of_call(cause: CallCause, inputs: Inputs, why: Reason | None) -> Finding:
    ranks, share = cause.named.ranks, cause.named.share
    return Finding(
        f"{waited_for(ranks, 40)} in {cause.call} on {inputs.where([cause.identity])}",
        call_text(inputs.late, cause),
        remedy(why.kind, ranks) if why else "look at what these ranks do before that call",
        POSSIBLE if cause.named.is_mostly else LIKELY, cause.cost_ns * share, cause.call,
        [cause.identity],
    )


def waiting(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Ranks wait for each other, and hvprof-report late names nobody: what is known of it."""
    row = inputs.late.run
    is_named = row.late_ranks is not None and not is_mostly(row) or (
        row.verdict is Kind.BY_CALL
        and not any(each.named.is_mostly for each in inputs.late.blame.calls)
    )
    is_much = is_much_waiting(row.wait_ns, inputs.counted_ns)
    if is_named or inputs.late.is_negotiated or not is_much:
        yield from _late_unknown(inputs)
        return
    most = max(inputs.late.calls, key=lambda call: call.wait_ns or 0)
    share = units.share((most.wait_ns or 0) / row.wait_ns)
    found = Finding(
        f"ranks wait for each other for {units.share(row.wait_ns / inputs.counted_ns)} of the time",
        f"{inputs.per_rank(row.wait_ns)}, {share} of it in {most.call} on "
        f"{inputs.where([most.identity])} (analysed: {basis_text(row)})",
        "`late` says what each rank waited and caused, the timeline of `html` when: look at what "
        "ranks do before the longest waits",
        POSSIBLE if _is_scaled_from_few(row) else SURE, call=most.call, identities=[most.identity],
    )
    yield _crowded(found, inputs)


def is_much_waiting(wait_ns: int, counted_ns: int) -> bool:
    return wait_ns >= MUCH * counted_ns > 0


def _is_scaled_from_few(row: LateRow) -> bool:
    """Few late arrivals stand for most of the waiting, because most of the time was not sampled."""
    return row.blocks < FEWEST_BLOCKS and present(row.sampled_share) < COVERED


def progress(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Waiting for ranks that are outside MPI while an operation that they have begun needs them,
    where no late rank explains it. If the named ranks are those, rule imbalance says it."""
    text = held_up_text(inputs.late)
    if not text:
        yield from _late_unknown(inputs)
    elif not is_held_up(inputs.late.run):
        found = Finding(
            "nonblocking operations make no progress while ranks compute", text, PROGRESS, LIKELY,
            sum(inputs.late.held_up.values()),
        )
        yield _crowded(found, inputs)


def slow_link(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A pair of ranks whose messages take longer than those between others."""
    if not inputs.late.links:
        if not inputs.late.run.message_calls and any(map(is_message, inputs.sizes)):
            yield Unknown("no message was split into waiting and transfer")
        return
    link, row = inputs.late.links[0], inputs.late.run
    gain_ns = (row.late_gain_ns or 0) * row.ranks if is_through_link(inputs.late) else 0
    found = Finding(
        _slow_text(link), links_text(inputs.late), LINK, LIKELY, max(link.excess_ns, gain_ns),
        link.call,
    )
    yield _crowded(found, inputs)


def _slow_text(link: Link) -> str:
    return f"the link from rank {link.sender} to rank {link.receiver} is slow"
