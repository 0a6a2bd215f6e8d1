"""Rules about calls: those that cost time could be fused, fewer, overlapped, or left out. Waiting
for late ranks is no part of what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import Row, Unknown, gathered, threshold, units, whole
from .inputs import (
    BACKGROUND, FEWEST, HOROVOD, LIKELY, MANY, POSSIBLE, PYTORCH, Curve, Finding, Inputs, Knee,
    Point, gain_ns, is_notable, is_notable_time, ran_once, size_range, spans_of, waiting_text,
)

LEAVE_OUT = "leave HOROVOD_FUSION_THRESHOLD out"
BARRIER = "MPI_Barrier"


def fusible(inputs: Inputs) -> list[Curve]:
    """Without calls on a thread beside the main one: these compete with the computation, whatever
    their size. Where a framework negotiates, it is known which of them were ready together."""
    return [
        curve for curve in inputs.curves
        if inputs.negotiation or not inputs.is_beside_main(curve.call, curve.identities)
    ]


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the
    knee's rate. Horovod has fused what was ready together, as far as its threshold lets it."""
    for curve in fusible(inputs):
        if curve.knee:
            yield from _below(curve.knee, curve, inputs)
        elif (
            _is_off(inputs) and _count(curve.points) >= MANY * curve.ranks
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
        point for point in curve.points
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
        "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)" if _is_off(inputs)
        else f"fuse small {curve.call} on {inputs.where(curve.identities)}",
        f"{_calls_text(small, curve.ranks, inputs)} carry {units.volume(carried / curve.ranks)}. "
        f"{they} take {inputs.per_rank(spans.total_ns)}{waiting_text(spans.waiting)}{rate}",
        how, LIKELY if spans.waiting is not None else POSSIBLE,
        gain_ns(spans, fused_ns) if knee else None, curve.call, curve.identities, _largest(small),
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
                LIKELY if spans.waiting is not None else POSSIBLE, gain_ns(spans), curve.call,
                curve.identities, _largest(tiny),
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
        blocked = [row for own in by_call if _are_blocked(own) for row in own]
        if blocked and not ran_once(sum(row.count for row in blocked), inputs):
            yield _overlaps_with_nothing(blocked, inputs)


def _are_blocked(rows: Sequence[Row]) -> bool:
    completion_ns = sum(row.total_ns for row in rows)
    return completion_ns > 0 and is_blocked(sum(row.blocked_ns for row in rows), completion_ns)


def is_blocked(blocked_ns: int, completion_ns: int) -> bool:
    return blocked_ns >= (1 - threshold("advice.overlap")) * completion_ns


def _overlaps_with_nothing(rows: Sequence[Row], inputs: Inputs) -> Finding:
    """They cost no more than all completing calls last, less what these are known to wait for other
    operations, and no more is hidden than there is time outside MPI."""
    calls = sorted({row.call for row in rows})
    identities = sorted({each for row in rows for each in inputs.family(row)})
    nonblocking = {row.call for row in inputs.completed}
    blocked_ns = sum(row.blocked_ns for row in rows)
    others_ns = sum(
        (row.wait_ns or 0) + (row.transfer_ns or 0) for row in inputs.late.calls
        if row.call in nonblocking and not (row.call in calls and row.identity in identities)
    )
    waits_ns = sum(call.total_ns for call in inputs.answers.calls if call.family == "completion")
    spans = inputs.spans(calls, min(blocked_ns, max(0, waits_ns - others_ns)), identities)
    share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
    outside_ns = max(0, inputs.counted_ns - inputs.late.run.total_ns)
    return Finding(
        f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on "
        f"{inputs.where(identities)}",
        f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of the "
        "time from start to completion is spent in the calls that start them and wait for them, "
        f"{inputs.per_rank(spans.total_ns)}{waiting_text(spans.waiting)}; "
        f"{inputs.per_rank(outside_ns)} outside MPI could hide it",
        "compute between the call and its Wait; if the program does, the library makes no progress "
        "meanwhile: call MPI_Test now and then, or use its progress thread",
        POSSIBLE, gain_ns(spans, hidden_ns=outside_ns),
        max(rows, key=lambda row: row.blocked_ns).call, identities,
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
                POSSIBLE, gain_ns(spans), row.call,
            )
