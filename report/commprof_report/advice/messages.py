"""Rules about calls: those that cost time could be fused, fewer, overlapped, or left out. Waiting
for late ranks is no part of what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..base.gather import gathered
from ..base.thresholds import threshold, whole
from ..base.query import Row
from ..calls.views import POLLS, operation
from ..run.cells import view_rows
from . import changes
from .curves import FEWEST, Curve, Knee, Point, waiting
from .findings import (
    LIKELY, MANY, POSSIBLE, Finding, Unknown, background, calls_take, is_notable,
    is_notable_time, ran_once, size_range, waiting_text,
)
from .inputs import HOROVOD, PYTORCH, Inputs

TINY_BYTES = whole("advice.tiny")
MOST_OF_TIME = threshold("advice.likely")
LITTLE = threshold("advice.overlap")
FUSION_OFF = "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
LEAVE_OUT = "leave HOROVOD_FUSION_THRESHOLD out"
MIB = 1 << 20
BARRIERS = ("MPI_Barrier", "MPI_Ibarrier", "MPI_Barrier_init")


def allreduces(inputs: Inputs) -> list[Curve]:
    return [curve for curve in inputs.curves if operation(curve.call) == "allreduce"]


def fusible(inputs: Inputs) -> list[Curve]:
    """Without calls on a thread beside the main one: these compete with the computation, whatever
    their size. Where a framework negotiates, it is known which of them were ready together."""
    return [
        curve for curve in allreduces(inputs)
        if inputs.negotiation or not inputs.is_beside_main(curve.call, curve.identities)
    ]


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the
    knee's rate."""
    any_found = False
    for curve in fusible(inputs):
        knee = curve.knee
        if knee:
            share, small = _fusible_share(curve, inputs), _small(curve, knee, inputs)
            if is_many(share * sum(point.count for point in small) / curve.ranks, inputs):
                found = _by_setting(_fusing(curve, knee, small, share, inputs), knee, inputs)
                any_found |= isinstance(found, Finding)
                yield found
        elif not curve.is_blocked:
            yield Unknown(
                f"{curve.call} on {inputs.where(curve.identities)} has no two sizes to compare: a "
                f"factor of two apart, with {FEWEST} calls each"
            )
    if _threshold(inputs) == "0" and not any_found:
        yield from _fusion_off(inputs)


def is_many(calls: float, inputs: Inputs) -> bool:
    """Calls of a rank that could be sent together: at least two a step, if steps are known."""
    per_step = inputs.per_step(calls)
    return calls >= MANY and (per_step is None or per_step >= 2)


def is_tiny(point: Point) -> bool:
    """An Allreduce of a value, not of a tensor, unless a framework's negotiation is known."""
    return point.bytes <= TINY_BYTES


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
    curve: Curve, knee: Knee, small: Sequence[Point], share: float, inputs: Inputs
) -> Finding:
    """All small calls are described, and the share of them judged that could be sent with others.
    """
    carried = sum(point.count * point.bytes for point in small)
    fused_ns, total_ns = share * carried * knee.ns_per_byte, share * _total_ns(small)
    waits = _waiting(small, curve, inputs)
    they = (
        "They" if share == 1 else f"The {units.share(share)} of them that could be sent with others"
    )
    where = inputs.where(curve.identities)
    return Finding(
        FUSION_OFF if _threshold(inputs) == "0" else f"fuse small {curve.call} on {where}",
        f"{_calls_text(small, curve.ranks, inputs)} carry {units.volume(carried / curve.ranks)}. "
        f"{they} {_take(curve)} {inputs.per_rank(total_ns)}{waiting_text(waits)}. At the rate that "
        f"{units.size(knee.bytes)} reaches their bytes {_take(curve)} {inputs.per_rank(fused_ns)}",
        _how_to_fuse(curve, knee.bytes, inputs), certainty(small),
        total_ns * (1 - (waits or 0)) - fused_ns, curve.call, curve.identities, _largest(small),
        changes.no_longer(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, _sizes(small)),
            knee.ns_per_byte,
        ),
    )


def _total_ns(points: Sequence[Point]) -> float:
    return sum(point.total_ns for point in points)


def _sizes(points: Sequence[Point]) -> list[int]:
    return [point.bytes for point in points]


def _largest(points: Sequence[Point]) -> int:
    return max(points, key=lambda point: point.total_ns).bytes


def _take(curve: Curve) -> str:
    return "are waited for" if curve.is_blocked else "take"


def _waiting(points: Sequence[Point], curve: Curve, inputs: Inputs) -> float | None:
    if curve.is_blocked:
        return inputs.waiting([curve.call], _total_ns(curve.points), curve.identities)
    return waiting(points)


def certainty(points: Sequence[Point]) -> str:
    """Certainty of the saving: if it is not known how much is waiting, or most of the time is that
    of a few very long calls, other messages may last as long."""
    typical_ns = sum(point.count * point.p50_ns for point in points)
    is_likely = all(point.sampled for point in points) and (
        typical_ns >= MOST_OF_TIME * _total_ns(points) * (1 - (waiting(points) or 0))
    )
    return LIKELY if is_likely else POSSIBLE


def _calls_text(points: Sequence[Point], ranks: int, inputs: Inputs) -> str:
    """16,100 calls a rank of 64 B to 288 KiB (161 a step)"""
    calls = sum(point.count for point in points) / ranks
    per_step = inputs.per_step(calls) or 0
    often = f" ({units.three_digits(per_step)} a step)" if per_step >= 1 else ""
    sizes = size_range(points[0].bytes, points[-1].bytes)
    return f"{units.count(round(calls))} calls a rank of {sizes}{often}"


def _threshold(inputs: Inputs) -> str:
    return inputs.setting("HOROVOD_FUSION_THRESHOLD")


def _is_threshold_below(knee_bytes: int, inputs: Inputs) -> bool:
    return _threshold(inputs).isdigit() and int(_threshold(inputs)) < knee_bytes


def _by_setting(found: Finding, knee: Knee, inputs: Inputs) -> Finding | Unknown:
    """Horovod has fused what was ready together, as far as the threshold lets it."""
    is_below = _is_threshold_below(knee.bytes, inputs)
    if not inputs.negotiation or is_below or not is_notable(found, inputs):
        return found
    return Unknown(
        "what was ready together is fused; a longer cycle fuses more and delays it, and what that "
        "saves is not known"
    )


def _fusion_off(inputs: Inputs) -> Iterator[Finding]:
    """Many Allreduces without fusion, of which nothing is known that fusion would save."""
    for curve in allreduces(inputs):
        total_ns = _total_ns(curve.points)
        calls = sum(point.count for point in curve.points) / curve.ranks
        if calls >= MANY and is_notable_time(total_ns, inputs):
            yield Finding(
                FUSION_OFF,
                f"{_calls_text(curve.points, curve.ranks, inputs)} {_take(curve)} "
                f"{inputs.per_rank(total_ns)}",
                f"{LEAVE_OUT}, and compare the step times", POSSIBLE, None, curve.call,
                curve.identities,
            )


def _how_to_fuse(curve: Curve, knee_bytes: int, inputs: Inputs) -> str:
    """For the framework that was seen."""
    size, bucket_cap = units.size(knee_bytes), f"{knee_bytes / MIB:.3g} or more (MiB)"
    if inputs.framework == HOROVOD:
        return _how_in_horovod(knee_bytes, inputs)
    if inputs.framework == PYTORCH:
        return f"raise bucket_cap_mb of DistributedDataParallel to {bucket_cap}"
    return f"send them together, {size} or more at once"


def _how_in_horovod(knee_bytes: int, inputs: Inputs) -> str:
    size, threshold, cycle = (
        units.size(knee_bytes), _threshold(inputs), inputs.setting("HOROVOD_CYCLE_TIME"),
    )
    if threshold == "0":
        return f"{LEAVE_OUT}, or set it to {size} or more"
    if _is_threshold_below(knee_bytes, inputs):
        return f"raise HOROVOD_FUSION_THRESHOLD, which is {threshold}, above {size}"
    return (
        f"raise HOROVOD_CYCLE_TIME{cycle and f', which is {cycle}'}, so that more tensors are "
        "ready to be fused, and compare the step times"
    )


def tiny_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A background thread that has nothing else to do may make many."""
    if inputs.negotiation:
        return
    if inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for curve in allreduces(inputs):
        tiny = list(filter(is_tiny, curve.points))
        if sum(point.count for point in tiny) >= MANY * curve.ranks:
            yield _fewer(curve, tiny, inputs)


def _fewer(curve: Curve, tiny: Sequence[Point], inputs: Inputs) -> Finding:
    waits, total_ns = _waiting(tiny, curve, inputs), _total_ns(tiny)
    how = "put several values into one message, or sum them less often"
    if inputs.framework == HOROVOD and curve.call == "MPI_Allreduce":
        how = "these are negotiation: raise HOROVOD_CYCLE_TIME, and leave HOROVOD_CACHE_CAPACITY on"
    return Finding(
        f"make fewer tiny {curve.call} on {inputs.where(curve.identities)}",
        f"{_calls_text(tiny, curve.ranks, inputs)} {_take(curve)} {inputs.per_rank(total_ns)}"
        f"{waiting_text(waits)}",
        how, certainty(tiny), total_ns * (1 - (waits or 0)), curve.call, curve.identities,
        _largest(tiny),
        changes.shorter(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, _sizes(tiny)), 0.0
        ),
    )


def polling(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """The saving from fewer polls is unknown: the program may only be waiting in them."""
    rows = view_rows(inputs.run.connection, POLLS)
    if rows and inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for row in rows:
        if row.polls >= MANY * inputs.ranks and is_notable_time(row.poll_ns, inputs):
            yield _polls(row, inputs)


def _polls(row: Row, inputs: Inputs) -> Finding:
    often = "finds nothing most of the time" if row.polls > row.found else "often finds nothing"
    return Finding(
        f"{row.call} {often}",
        f"{units.count(row.polls)} of {units.count(row.polls + row.found)} calls found nothing and "
        f"took {inputs.per_rank(row.poll_ns)}",
        "look less often where there is other work to do; where there is none, MPI_Wait or "
        "MPI_Probe takes as long. Polling makes progress too, so measure before and after",
        POSSIBLE, call=row.call,
    )


def overlap(inputs: Inputs) -> Iterator[Finding]:
    """Nonblocking operations that are waited for nearly all the time. Messages of a family of
    communicators are mostly waited for together: they are one."""
    alike: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in inputs.completed:
        what = row.family if row.family == "point-to-point" else row.call
        calls = alike.setdefault((what, row.communicator), {})
        calls.setdefault(row.call, []).append(row)
    for calls in alike.values():
        blocked = [row for rows in calls.values() if _are_blocked(rows) for row in rows]
        if blocked and not ran_once(sum(row.count for row in blocked), inputs):
            yield _overlaps_with_nothing(blocked, inputs)


def _are_blocked(rows: Sequence[Row]) -> bool:
    completion_ns = sum(row.total_ns for row in rows)
    return completion_ns > 0 and is_blocked(sum(row.blocked_ns for row in rows), completion_ns)


def is_blocked(blocked_ns: int, completion_ns: int) -> bool:
    return blocked_ns >= (1 - LITTLE) * completion_ns


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
    spent_ns = min(blocked_ns, max(0, waits_ns - others_ns))
    waits = inputs.waiting(calls, spent_ns, identities)
    share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
    outside_ns = max(0, inputs.counted_ns - inputs.late.run.total_ns)
    return Finding(
        f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on "
        f"{inputs.where(identities)}",
        f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of the "
        "time from start to completion is spent in the calls that start them and wait for them, "
        f"{inputs.per_rank(spent_ns)}{waiting_text(waits)}; {inputs.per_rank(outside_ns)} outside "
        "MPI could hide it",
        "compute between the call and its Wait; if the program does, the library makes no progress "
        "meanwhile: call MPI_Test now and then, or use its progress thread",
        POSSIBLE, min(spent_ns * (1 - (waits or 0)), outside_ns),
        max(rows, key=lambda row: row.blocked_ns).call, identities,
        change=changes.shorter(
            inputs, changes.chosen(inputs, calls, identities, which=changes.is_completed), 0.0
        ),
    )


def is_message(row: Row) -> bool:
    """A blocking call that sends or receives, of MPI."""
    is_blocking = row.form == "blocking" and row.bandwidth != "silent" and row.library == "mpi"
    return is_blocking and row.family == "point-to-point"


def waiting_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Blocking point-to-point calls: what they wait, if that is known."""
    calls = gathered((row.call, row) for row in inputs.sizes if is_message(row))
    for call, rows in calls.items():
        total_ns = sum(row.total_ns for row in rows)
        if inputs.late_share(call):
            yield Unknown(waited_for(inputs.late_ranks))
        if waits := inputs.waiting([call], total_ns):
            yield _waits_for_the_other_side(call, rows, waits, inputs)
        elif waits is None and is_notable_time(total_ns, inputs):
            yield Unknown(f"how much {call} waits is not known")


def waited_for(ranks: Sequence[int], width: int | None = None) -> str:
    return f"{units.rank_names(ranks, width)} {units.agreeing('are', len(ranks))} waited for"


def _waits_for_the_other_side(
    call: str, rows: Sequence[Row], waits: float, inputs: Inputs
) -> Finding:
    total_ns, late_share = sum(row.total_ns for row in rows), inputs.late_share(call)
    spent = f"{units.share(waits)} of it is waiting for the other side"
    if late_share:
        because = units.rank_names(inputs.late_ranks)
        spent += f", {units.share(late_share)} of that because of {because}"
    worst = max(rows, key=lambda row: row.total_ns - row.count * row.min_ns)
    return Finding(
        f"{call} waits for the other side",
        f"{calls_take(sum(row.count for row in rows))} {inputs.per_rank(total_ns)}; {spent}. Most "
        f"of it at {units.size(worst.bytes)}, {units.duration(worst.p50_ns)} in the median, "
        f"{units.duration(worst.min_ns)} at least",
        "if there is other work to do meanwhile, post receives early (MPI_Irecv) and wait late; "
        "`pipeline` and `peers` show who sends to whom",
        POSSIBLE, total_ns * waits * (1 - late_share), call, inputs.family(worst), worst.bytes,
        changes.waiting_for_none(
            inputs, changes.chosen(inputs, [call], which=changes.is_message)
        ),
    )


def barriers(inputs: Inputs) -> Iterator[Finding]:
    for row in inputs.answers.calls:
        if row.call in BARRIERS and not ran_once(row.count, inputs):
            time_ns = max(row.total_ns, row.blocked_ns or 0)  # nonblocking ones are waited for
            waits = inputs.waiting([row.call], time_ns)
            yield Finding(
                f"{row.call} costs time",
                f"{calls_take(row.count)} {inputs.per_rank(time_ns)}{waiting_text(waits)}",
                "leave out those that nothing needs: collectives and messages order themselves; "
                "what ranks wait here for a late one they may then wait elsewhere",
                POSSIBLE, time_ns * (1 - (waits or 0)), row.call,
                change=changes.shorter(inputs, changes.chosen(inputs, [row.call]), 0.0),
            )
