"""Rules about ranks that others wait for (`late` decides who is named), and about what surrounds a
job: its cores, its framework's cycle, its GPUs, and what the profile lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import Unknown, present, threshold, units
from ..base.units import Ranks
from ..gpu.gpu_activity import TO_AND_FROM, activity_rows
from ..late.judgement import Kind, remedy
from ..late.late_ranks import Late
from ..late.messages import Link
from ..late.sentences import (
    LINK, PROGRESS, basis_text, call_text, details, held_up_text, is_held_up, is_mostly,
    is_through_link, is_unknown, links_text, not_known, unfinished_text,
    unknown_cause_text, when_text,
)
from ..late.verdict import COVERED, FEWEST_BLOCKS, CallCause
from ..run.crowding import core_uses, cores_of, scheduling_text
from ..run.unseen import merged, missing, reason_text
from .inputs import LIKELY, POSSIBLE, SURE, Finding, Inputs
from .messages import is_message, waited_for


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
        yield _of_run(row.late_ranks, inputs)
    elif row.verdict is Kind.BY_CALL:
        for cause in late.blame.calls:
            yield _of_call(cause, inputs)
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


def _of_call(cause: CallCause, inputs: Inputs) -> Finding:
    ranks, share = cause.named.ranks, cause.named.share
    why = inputs.late.call_reasons.get(ranks)
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
    # few late arrivals stand for most of the waiting, because most of the time was not sampled
    is_scaled = row.blocks < FEWEST_BLOCKS and present(row.sampled_share) < COVERED
    yield Finding(
        f"ranks wait for each other for {units.share(row.wait_ns / inputs.counted_ns)} of the time",
        f"{inputs.per_rank(row.wait_ns)}, {share} of it in {most.call} on "
        f"{inputs.where([most.identity])} (analysed: {basis_text(row)})",
        "`late` says what each rank waited and caused, the timeline of `html` when: look at what "
        "ranks do before the longest waits",
        POSSIBLE if is_scaled else SURE, call=most.call, identities=[most.identity],
    )


def is_much_waiting(wait_ns: int, counted_ns: int) -> bool:
    return wait_ns >= threshold("advice.waiting") * counted_ns > 0


def progress(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Waiting for ranks that are outside MPI while an operation that they have begun needs them,
    where no late rank explains it. If the named ranks are those, rule imbalance says it."""
    text = held_up_text(inputs.late)
    if not text:
        yield from _late_unknown(inputs)
    elif not is_held_up(inputs.late.run):
        yield Finding(
            "nonblocking operations make no progress while ranks compute", text, PROGRESS, LIKELY,
            sum(inputs.late.held_up.values()),
        )


def slow_link(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A pair of ranks whose messages take longer than those between others."""
    if not inputs.late.links:
        if not inputs.late.run.message_calls and any(map(is_message, inputs.sizes)):
            yield Unknown("no message was split into waiting and transfer")
        return
    link, row = inputs.late.links[0], inputs.late.run
    gain_ns = (row.late_gain_ns or 0) * row.ranks if is_through_link(inputs.late) else 0
    yield Finding(
        _slow_text(link), links_text(inputs.late), LINK, LIKELY, max(link.excess_ns, gain_ns),
        link.call,
    )


def _slow_text(link: Link) -> str:
    return f"the link {link.route} is slow"




def cores(inputs: Inputs) -> Iterator[Finding]:
    """Before it is so, no other time can be trusted."""
    if inputs.late.crowding:
        yield Finding(
            f"give each rank a core: ranks {scheduling_text(inputs.late.crowding)}",
            f"{inputs.answers.summary.crowding}. Until each has one, the times of calls may be the "
            "scheduler's: nothing is said of what could be saved in them",
            "start fewer ranks, bind them otherwise, or ask for a larger quota or a machine of "
            "their own; then look again",
            SURE,
        )


def cycle(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A cycle of a framework's negotiation that is long beside a step."""
    found, step_ns = inputs.negotiation, inputs.steps.p50_ns
    if found is None or found.cycle_ns is None:
        return
    if step_ns is None:
        yield Unknown(f"steps found none: {inputs.steps.why}")
    elif is_long(found.cycle_ns, step_ns):
        yield _long_cycle(found.cycle_ns, step_ns, found.call, inputs)


def is_long(cycle_ns: float, step_ns: float) -> bool:
    return cycle_ns >= threshold("advice.cycle") * step_ns


def _long_cycle(cycle_ns: float, step_ns: float, call: str, inputs: Inputs) -> Finding | Unknown:
    numbers = [bin(cores_of(row.affinity)).count("1") for row in with_cores(inputs)]
    if 1 in numbers or inputs.late.crowding:
        return Unknown(
            "threads share cores, where fewer rounds may save as much time as earlier ones"
        )
    period, half = units.duration(cycle_ns), units.duration(cycle_ns / 2)
    value = inputs.setting("HOROVOD_CYCLE_TIME")
    return Finding(
        f"a cycle of {period} is long beside steps of {units.duration(step_ns)}",
        f"A round of negotiation begins every {period}"
        f"{value and f' (HOROVOD_CYCLE_TIME is {value})'}. The last gradients of a step wait for "
        f"the next one, {half} on average, {units.share(cycle_ns / 2 / step_ns)} of the step",
        "lower HOROVOD_CYCLE_TIME step by step (its default is 1, in ms), and compare the step "
        "times: a shorter cycle sends sooner, but fuses less and negotiates more often",
        POSSIBLE, call=call,
    )


def with_cores(inputs: Inputs) -> list:
    """The ranks whose cores are known."""
    return [row for row in core_uses(inputs.run.connection) if cores_of(row.affinity)]


def staging(inputs: Inputs) -> Iterator[Finding]:
    """MPI has host buffers only, and GPUs copy about as much to the host and back."""
    summary = inputs.answers.summary
    copied = activity_rows(inputs.run.connection, TO_AND_FROM)
    volumes = [row.volume_bytes for row in copied]
    if summary.device_volume_share or not is_staged(volumes, summary.volume_bytes):
        return
    # 1.20 GB to host (0.31 s) and 1.20 GB to device (0.29 s)
    copies = " and ".join(
        f"{units.volume(row.volume_bytes)} {row.copy} ({units.duration(row.total_ns)})"
        for row in reversed(copied)
    )
    yield Finding(
        "hand GPU buffers to MPI",
        f"MPI calls have host buffers only ({units.volume(summary.volume_bytes)}), and GPUs copied "
        f"{copies} while they were traced: it looks staged, though what was copied "
        "for MPI is not known",
        "if the MPI library is CUDA-aware, pass it device pointers; or let NCCL move what lies on "
        "GPUs",
        POSSIBLE,
    )


def is_staged(copied_bytes: Sequence[int], mpi_bytes: int) -> bool:
    """copied_bytes: to the host and to the device. Copies that come to little (a batch of data, a
    loss) say nothing."""
    return (
        len(copied_bytes) == 2
        and min(copied_bytes) >= threshold("advice.copies-alike") * max(copied_bytes)
        and max(copied_bytes) >= threshold("advice.staged") * mpi_bytes > 0
    )


def gaps(inputs: Inputs) -> Iterator[Finding]:
    """Questions that the profile cannot answer, or only in part."""
    if inputs.late.unfinished:
        yield Finding(
            unfinished_text(inputs.late),
            "all figures cover finished calls; what ranks wait in these is not counted",
            "`stuck` says who waits for whom", SURE,
        )
    lacking, together = missing(inputs.answers.seen), merged(inputs.answers.seen)
    if lacking or together:
        ways_out = dict.fromkeys(row.way_out for row in [*lacking, *together] if row.way_out)
        yield Finding(
            "this profile is not complete" if lacking
            else "this profile counts some things together",
            "; ".join(map(reason_text, [*lacking, *together])),
            "; ".join(ways_out) or "`seen` lists what is missing", SURE,
        )
