"""Rules about calls: those that cost time could be fused, fewer, overlapped, or left out. Waiting
for late ranks is no part of what they cost.

Rules about ranks that others wait for (`late` decides who is named), and about what surrounds a
job: its cores, its framework's cycle, its GPUs, and what the profile lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import Row, Unknown, gathered, present, threshold, units, whole
from ..late import (
    COVERED,
    CallCause,
    FEWEST_BLOCKS,
    Kind,
    LINK,
    Late,
    Link,
    PROGRESS,
    basis_text,
    call_text,
    details,
    held_up_text,
    is_held_up,
    is_mostly,
    is_through_link,
    is_unknown,
    links_text,
    not_known,
    remedy,
    slow_size_text,
    unfinished_text,
    unknown_cause_text,
    when_text,
)
from ..run.crowding import core_uses, cores_of
from .inputs import (
    BACKGROUND,
    FEWEST,
    HOROVOD,
    LIKELY,
    MANY,
    POSSIBLE,
    PYTORCH,
    SURE,
    Curve,
    Finding,
    Inputs,
    Knee,
    Point,
    gain_ns,
    is_notable,
    is_notable_time,
    ran_once,
    size_range,
    spans_of,
    waiting_text,
)

LEAVE_OUT = "leave HOROVOD_FUSION_THRESHOLD out"
BARRIER = "MPI_Barrier"


def fusible(inputs: Inputs) -> list[Curve]:
    """Without calls on a thread beside the main one: these compete with the computation, whatever
    their size. Where a framework negotiates, it is known which of them were ready together."""
    return [
        curve
        for curve in inputs.curves
        if inputs.negotiation or not inputs.is_beside_main(curve.call, curve.identities)
    ]


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the
    knee's rate. Horovod has fused what was ready together, as far as its threshold lets it."""
    for curve in fusible(inputs):
        if curve.knee:
            yield from _below(curve.knee, curve, inputs)
        elif (
            _is_off(inputs)
            and _count(curve.points) >= MANY * curve.ranks
            and is_notable_time(spans_of(curve.points).total_ns, inputs)
        ):
            yield _fusing(curve, None, curve.points, 1.0, inputs)
        else:
            yield Unknown(
                f"{curve.call} on {inputs.where(curve.identities)} has no two sizes to compare: a "
                f"factor of two apart, with {FEWEST} calls each"
            )


def _below(knee: Knee, curve: Curve, inputs: Inputs) -> Iterator[Finding | Unknown]:
    share, small = _fusible_share(curve, inputs), _small(curve, knee, inputs)
    if not is_many(share * _count(small) / curve.ranks, inputs):
        return
    found = _fusing(curve, knee, small, share, inputs)
    if inputs.negotiation and not _is_below(knee.bytes, inputs) and is_notable(found, inputs):
        yield Unknown(
            "what was ready together is fused; a longer cycle fuses more and delays it, and what "
            "that saves is not known"
        )
    else:
        yield found


def _count(points: Sequence[Point]) -> float:
    return sum(point.count for point in points)


def is_many(calls: float, inputs: Inputs) -> bool:
    """Calls of a rank that could be sent together: at least two a step, if steps are known."""
    per_step = inputs.per_step(calls)
    return calls >= MANY and (per_step is None or per_step >= 2)


def is_tiny(point: Point) -> bool:
    """An Allreduce of a value, not of a tensor, unless a framework's negotiation is known."""
    return point.bytes <= whole("advice.tiny")


def _small(curve: Curve, knee: Knee, inputs: Inputs) -> list[Point]:
    """Curves are without the negotiation that is known."""
    return [
        point
        for point in curve.points
        if point.bytes < knee.bytes and (inputs.negotiation or not is_tiny(point))
    ]


def _fusible_share(curve: Curve, inputs: Inputs) -> float:
    """Each round that sends has a first message; the others could have been sent with it. Nothing
    is known of jobs whose rounds are not counted."""
    sampled = sum(point.sampled for point in curve.points) / curve.ranks
    if not inputs.negotiation or not sampled:
        return 1.0
    sending = inputs.negotiation.sending
    return max(0.0, 1 - sending / sampled) if sending else 0.0


def _fusing(
    curve: Curve, knee: Knee | None, small: Sequence[Point], share: float, inputs: Inputs
) -> Finding:
    """All small calls are described, and the share of them judged that could be sent with others;
    without a knee no gain is known."""
    carried = sum(point.count * point.bytes for point in small)
    spans, fused_ns = spans_of(small, share), 0.0
    how, rate = f"{LEAVE_OUT}, and compare the step times", ""
    if knee:
        fused_ns, how = share * carried * knee.ns_per_byte, _how_to_fuse(knee.bytes, inputs)
        rate = (
            f". At the rate that {units.size(knee.bytes)} reaches their bytes take "
            f"{inputs.per_rank(fused_ns)}"
        )
    they = (
        "They" if share == 1 else f"The {units.share(share)} of them that could be sent with others"
    )
    return Finding(
        "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
        if _is_off(inputs)
        else f"fuse small {curve.call} on {inputs.where(curve.identities)}",
        f"{_calls_text(small, curve.ranks, inputs)} carry {units.volume(carried / curve.ranks)}. "
        f"{they} take {inputs.per_rank(spans.total_ns)}{waiting_text(spans.waiting)}{rate}",
        how,
        LIKELY if spans.waiting is not None else POSSIBLE,
        gain_ns(spans, fused_ns) if knee else None,
        curve.call,
        curve.identities,
        _largest(small),
    )


def _largest(points: Sequence[Point]) -> int:
    return max(points, key=lambda point: point.total_ns).bytes


def _calls_text(points: Sequence[Point], ranks: int, inputs: Inputs) -> str:
    """16,100 calls a rank of 64 B to 288 KiB (161 a step)"""
    calls = _count(points) / ranks
    per_step = inputs.per_step(calls) or 0
    often = f" ({units.three_digits(per_step)} a step)" if per_step >= 1 else ""
    sizes = size_range(points[0].bytes, points[-1].bytes)
    return f"{units.count(round(calls))} calls a rank of {sizes}{often}"


def _threshold(inputs: Inputs) -> str:
    """Empty for programs of another framework, whatever their environment has."""
    is_horovod = inputs.framework == HOROVOD
    return inputs.setting("HOROVOD_FUSION_THRESHOLD") if is_horovod else ""


def _is_off(inputs: Inputs) -> bool:
    return _threshold(inputs) == "0"


def _is_below(knee_bytes: int, inputs: Inputs) -> bool:
    return _threshold(inputs).isdigit() and int(_threshold(inputs)) < knee_bytes


def _how_to_fuse(knee_bytes: int, inputs: Inputs) -> str:
    """For the framework that was seen."""
    size, bytes_now = units.size(knee_bytes), _threshold(inputs)
    if _is_off(inputs):
        return f"{LEAVE_OUT}, or set it to {size} or more"
    if _is_below(knee_bytes, inputs):
        return f"raise HOROVOD_FUSION_THRESHOLD, which is {bytes_now}, above {size}"
    cycle = inputs.setting("HOROVOD_CYCLE_TIME")
    return {
        HOROVOD: f"raise HOROVOD_CYCLE_TIME{cycle and f', which is {cycle}'}, so that more tensors "
        "are ready to be fused, and compare the step times",
        PYTORCH: "raise bucket_cap_mb of DistributedDataParallel to "
        f"{knee_bytes / (1 << 20):.3g} or more (MiB)",
    }.get(inputs.framework, f"send them together, {size} or more at once")


def tiny_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A background thread that has nothing else to do may make many."""
    if inputs.negotiation:
        return
    if inputs.late.run.background_share >= BACKGROUND:
        yield Unknown(
            f"{units.share(inputs.late.run.background_share)} of the time inside MPI is on "
            "background threads, which may have been idle"
        )
        return
    for curve in inputs.curves:
        tiny = list(filter(is_tiny, curve.points))
        if _count(tiny) >= MANY * curve.ranks:
            spans = spans_of(tiny)
            yield Finding(
                f"make fewer tiny {curve.call} on {inputs.where(curve.identities)}",
                f"{_calls_text(tiny, curve.ranks, inputs)} take {inputs.per_rank(spans.total_ns)}"
                f"{waiting_text(spans.waiting)}",
                "put several values into one message, or sum them less often",
                LIKELY if spans.waiting is not None else POSSIBLE,
                gain_ns(spans),
                curve.call,
                curve.identities,
                _largest(tiny),
            )


def overlap(inputs: Inputs) -> Iterator[Finding]:
    """Nonblocking operations that are waited for nearly all the time. Messages of a family of
    communicators are mostly waited for together: they are one."""
    alike = gathered(
        ((row.family == "point-to-point" or row.call, row.communicator), row)
        for row in inputs.completed
    )
    for rows in alike.values():
        by_call = gathered((row.call, row) for row in rows).values()
        blocked = [
            row
            for own in by_call
            for row in own
            if is_blocked(sum(each.blocked_ns for each in own), sum(each.total_ns for each in own))
        ]
        if blocked and not ran_once(sum(row.count for row in blocked), inputs):
            yield _overlaps_with_nothing(blocked, inputs)


def is_blocked(blocked_ns: int, completion_ns: int) -> bool:
    return blocked_ns >= (1 - threshold("advice.overlap")) * completion_ns > 0


def _overlaps_with_nothing(rows: Sequence[Row], inputs: Inputs) -> Finding:
    """They cost no more than all completing calls last, less what these are known to wait for other
    operations, and no more is hidden than there is time outside MPI."""
    calls = sorted({row.call for row in rows})
    identities = sorted({each for row in rows for each in inputs.family(row)})
    nonblocking = {row.call for row in inputs.completed}
    blocked_ns = sum(row.blocked_ns for row in rows)
    others_ns = sum(
        (row.wait_ns or 0) + (row.transfer_ns or 0)
        for row in inputs.late.calls
        if row.call in nonblocking and not (row.call in calls and row.identity in identities)
    )
    waits_ns = sum(call.total_ns for call in inputs.answers.calls if call.family == "completion")
    spans = inputs.spans(calls, min(blocked_ns, max(0, waits_ns - others_ns)), identities)
    share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
    return Finding(
        f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on "
        f"{inputs.where(identities)}",
        f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of the "
        "time from start to completion is spent in the calls that start them and wait for them, "
        f"{inputs.per_rank(spans.total_ns)}{waiting_text(spans.waiting)}; "
        f"{inputs.per_rank(inputs.outside_ns)} outside MPI could hide it",
        "compute between the call and its Wait; if the program does, the library makes no progress "
        "meanwhile: call MPI_Test now and then, or use its progress thread",
        POSSIBLE,
        gain_ns(spans, hidden_ns=inputs.outside_ns),
        max(rows, key=lambda row: row.blocked_ns).call,
        identities,
    )


def is_message(row: Row) -> bool:
    """A blocking call that sends or receives, of MPI."""
    is_blocking = row.form == "blocking" and row.bandwidth != "silent" and row.library == "mpi"
    return is_blocking and row.family == "point-to-point"


def waited_for(ranks: Sequence[int], width: int | None = None) -> str:
    return f"{units.rank_names(ranks, width)} {units.agreeing('are', len(ranks))} waited for"


def barriers(inputs: Inputs) -> Iterator[Finding]:
    for row in inputs.answers.calls:
        if row.call == BARRIER and not ran_once(row.count, inputs):
            spans = inputs.spans([row.call], row.total_ns)
            yield Finding(
                f"{row.call} costs time",
                f"{units.counted(row.count, 'call')} take {inputs.per_rank(spans.total_ns)}"
                f"{waiting_text(spans.waiting)}",
                "leave out those that nothing needs: collectives and messages order themselves; "
                "what ranks wait here for a late one they may then wait elsewhere",
                POSSIBLE,
                gain_ns(spans),
                row.call,
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
        yield _of_run(row.late_ranks, inputs)
    elif row.verdict is Kind.BY_CALL:
        for cause in late.blame.calls:
            yield _of_call(cause, inputs)
    elif row.verdict is Kind.TRANSFER and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    elif row.verdict is not Kind.MARKS:
        yield from _late_unknown(inputs)


def _of_run(ranks: units.Ranks, inputs: Inputs) -> Finding:
    late, row = inputs.late, inputs.late.run
    is_at_marks = row.verdict is Kind.MARKS
    basis = "" if is_at_marks else f" (analysed: {basis_text(row)})"
    said = "; ".join(text for _, text in details(late))
    return Finding(
        waited_for(ranks),
        f"{said}{basis}",
        _balance(ranks, late),
        POSSIBLE if is_mostly(row) else LIKELY,
        (row.late_gain_ns or 0) * row.ranks,
    )


def _balance(ranks: units.Ranks, late: Late) -> str:
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
        POSSIBLE if cause.named.is_mostly else LIKELY,
        cause.cost_ns * share,
        cause.call,
        [cause.identity],
    )


def waiting(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Ranks wait for each other, and hvprof-report late names nobody: what is known of it."""
    row = inputs.late.run
    is_named = (
        row.late_ranks is not None
        and not is_mostly(row)
        or (
            row.verdict is Kind.BY_CALL
            and not any(each.named.is_mostly for each in inputs.late.blame.calls)
        )
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
        POSSIBLE if is_scaled else SURE,
        call=most.call,
        identities=[most.identity],
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
            "nonblocking operations make no progress while ranks compute",
            text,
            PROGRESS,
            LIKELY,
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
        _slow_text(link),
        links_text(inputs.late),
        LINK,
        LIKELY,
        max(link.excess_ns, gain_ns),
        link.call,
    )


def slow_size(inputs: Inputs) -> Iterator[Finding | Unknown]:
    row = inputs.late.run
    if row.slow_size_call:
        yield Finding(
            f"one size of {row.slow_size_call} is slow",
            slow_size_text(row),
            "look at the algorithm that the library takes for this size, or send other sizes",
            LIKELY,
            row.slow_size_excess_ns * row.ranks,
            row.slow_size_call,
        )
    else:
        yield from _late_unknown(inputs)


def _slow_text(link: Link) -> str:
    return f"the link {link.route} is slow"


def cores(inputs: Inputs) -> Iterator[Finding]:
    """Before it is so, no other time can be trusted."""
    if inputs.late.crowding:
        yield Finding(
            "give each rank a core of its own",
            f"{inputs.answers.summary.crowding}. Until each has one, the times of calls may be the "
            "scheduler's",
            "start fewer ranks, bind them otherwise, or ask for a larger quota or a machine of "
            "their own; then look again",
            SURE,
        )


def cycle(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A cycle of a framework's negotiation that is long beside a step."""
    found, step_ns = inputs.negotiation, inputs.steps.p50_ns
    if found is None or found.cycle_ns is None:
        return
    numbers = [bin(cores_of(row.affinity)).count("1") for row in with_cores(inputs)]
    if step_ns is None:
        yield Unknown(f"steps found none: {inputs.steps.why}")
    elif is_long(found.cycle_ns, step_ns) and (1 in numbers or inputs.late.crowding):
        yield Unknown(
            "threads share cores, where fewer rounds may save as much time as earlier ones"
        )
    elif is_long(found.cycle_ns, step_ns):
        yield _long_cycle(found.cycle_ns, step_ns, found.call, inputs)


def is_long(cycle_ns: float, step_ns: float) -> bool:
    return cycle_ns >= threshold("advice.cycle") * step_ns


def _long_cycle(cycle_ns: float, step_ns: float, call: str, inputs: Inputs) -> Finding:
    period, half = units.duration(cycle_ns), units.duration(cycle_ns / 2)
    value = inputs.setting("HOROVOD_CYCLE_TIME")
    return Finding(
        f"a cycle of {period} is long beside steps of {units.duration(step_ns)}",
        f"A round of negotiation begins every {period}"
        f"{value and f' (HOROVOD_CYCLE_TIME is {value})'}. The last gradients of a step wait for "
        f"the next one, {half} on average, {units.share(cycle_ns / 2 / step_ns)} of the step",
        "lower HOROVOD_CYCLE_TIME step by step (its default is 1, in ms), and compare the step "
        "times: a shorter cycle sends sooner, but fuses less and negotiates more often",
        POSSIBLE,
        call=call,
    )


def with_cores(inputs: Inputs) -> list:
    """The ranks whose cores are known."""
    return [row for row in core_uses(inputs.run.connection) if cores_of(row.affinity)]
