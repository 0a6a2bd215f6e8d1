"""Rules about ranks that others wait for. `late` and `steps` decide who is named."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..late.late_ranks import Late
from ..late.sentences import (
    few_of_named, is_unknown, part_text, unfinished_text, unknown_cause_text, verdict,
)
from ..steps.steps_summary import slowest_text
from .findings import LIKELY, POSSIBLE, SURE, Finding, Unknown
from .inputs import Inputs

MARK = "a mark where the main thread begins to wait for its gradients (commprof_step(3))"
MUCH_WAITING = 0.1  # of the counted time


def imbalance(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Late ranks that hvprof-report late names: what all ranks would gain if these arrived with the
    next. If ranks share cores, a late rank may merely not have been scheduled."""
    crowding = inputs.answers.summary.crowding
    for found in _late_ranks(inputs):
        yield crowded(found, crowding) if crowding and isinstance(found, Finding) else found


def crowded(found: Finding, crowding: str) -> Finding:
    return found._replace(
        title=f"{found.title}, but ranks share cores", evidence=f"{found.evidence}; {crowding}",
        suggestion="give each rank a core of its own (fewer ranks, other binding, a larger quota) "
        "before looking for the cause in a rank", certainty=POSSIBLE,
    )


def _late_ranks(inputs: Inputs) -> Iterator[Finding | Unknown]:
    row = inputs.late.run
    if row.verdict == "marks":
        if row.late_ranks is not None:
            gain_ns = row.late_gain_ns * row.ranks
            yield Finding(
                waited_for(row.late_ranks), verdict(inputs.late), _balance(inputs.late), LIKELY,
                gain_ns,
            )
    elif row.late_ranks is not None:
        few = few_of_named(inputs.late)
        yield Finding(
            waited_for(row.late_ranks),
            f"{units.share(row.late_share)} of the waiting is for "
            f"{'it' if units.is_one(row.late_ranks) else 'them'}"
            f"{few and f', nearly all of it in {few}'} ({units.share(row.coverage)} of the time "
            "inside MPI was analysed)",
            _balance(inputs.late),
            LIKELY,
            row.late_gain_ns * row.ranks,
        )
    elif row.verdict == "by-call":
        for cause in inputs.late.blame.calls:
            others = len(inputs.late.participants.members[cause.identity]) - len(cause.named.ranks)
            each_ns = cause.cost_ns * cause.named.share / max(1, others)
            yield Finding(
                f"{units.rank_names(cause.named.ranks)} "
                f"{'is' if len(cause.named.ranks) == 1 else 'are'} waited for in {cause.call}"
                f" on {inputs.where([cause.identity])}",
                f"{units.share(cause.named.share)} of the waiting in this call; each other rank "
                f"waits {units.duration(each_ns)} for"
                f" {'it' if len(cause.named.ranks) == 1 else 'them'}, on average",
                "look at what these ranks do before that call",
                LIKELY,
                cause.cost_ns * cause.named.share,
                cause.call,
                [cause.identity],
            )
    elif row.verdict == "transfer" and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    else:
        yield from late_unknown(inputs, "unknown: ", "nobody is late", "no rank is named")


def waited_for(ranks: str) -> str:
    return f"rank {ranks} is waited for" if units.is_one(ranks) else f"ranks {ranks} are waited for"


def _balance(late: Late) -> str:
    if not few_of_named(late):
        return (
            "balance the work, or look at the host: other jobs, throttled cores, where threads run"
        )
    they, do = ("it", "does") if units.is_one(late.run.late_ranks) else ("they", "do")
    what = "a checkpoint, an evaluation, reading data"
    return f"look at what {they} {do} before these arrivals and not otherwise: {what}"


def late_unknown(inputs: Inputs, *beginnings: str) -> Iterator[Unknown]:
    """The verdict of hvprof-report late as unknown, if it begins so: then nothing is denied."""
    if inputs.late.unfinished:
        yield Unknown(unfinished_text(inputs.late))
    elif (text := verdict(inputs.late)).startswith(beginnings):
        yield _unknown(text)


def _unknown(text: str, needs_mark: bool = False) -> Unknown:
    return Unknown(
        text.removeprefix("unknown: "), MARK if needs_mark or "commprof_step" in text else ""
    )


def waiting(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Ranks wait for each other, and hvprof-report late names nobody: what is known of it."""
    row, crowding = inputs.late.run, inputs.answers.summary.crowding
    is_named = row.late_ranks is not None or row.verdict == "by-call"
    if (
        not is_named and not inputs.late.is_negotiated
        and row.wait_ns >= MUCH_WAITING * inputs.counted_ns > 0
    ):
        most = max(inputs.late.calls, key=lambda call: call.wait_ns or 0)
        found = Finding(
            f"ranks wait for each other for {units.share(row.wait_ns / inputs.counted_ns)} of "
            "the time",
            f"{inputs.per_rank(row.wait_ns)}, {units.share(most.wait_ns / row.wait_ns)} of it in "
            f"{most.call} on {inputs.where([most.identity])}"
            f" ({part_text(row)} of the time inside MPI was analysed); {verdict(inputs.late)}",
            "`late` says what each rank waited and caused, the timeline of `html` when: look at "
            "what ranks do before the longest waits",
            SURE,
            call=most.call,
            identities=[most.identity],
        )
        yield crowded(found, crowding) if crowding else found
    else:
        yield from late_unknown(inputs, "unknown: ")


def slowest_rank(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """The ranks that hvprof-report steps names, unless hvprof-report late names the same."""
    steps, crowding = inputs.steps, inputs.answers.summary.crowding
    if steps.slowest_ranks is not None and steps.slowest_ranks == inputs.late.run.late_ranks:
        yield Unknown(waited_for(steps.slowest_ranks))
    elif steps.slowest_ranks is not None:
        is_one = units.is_one(steps.slowest_ranks)
        found = Finding(
            f"{'rank' if is_one else 'ranks'} {steps.slowest_ranks} {'is' if is_one else 'are'} "
            "the slowest in steps",
            slowest_text(steps),
            "balance the work, or look at the host; `steps` shows what each step does",
            POSSIBLE,
            steps.slowest_lead_ns * steps.slowest_steps * inputs.ranks,
        )
        yield crowded(found, crowding) if crowding else found
    elif not steps.delimited_by and not inputs.is_alone:
        yield Unknown(f"steps found none: {steps.why}")
    elif steps.slowest_why.startswith("unknown: ") and not inputs.is_alone:
        yield _unknown(steps.slowest_why, inputs.late.is_negotiated)
