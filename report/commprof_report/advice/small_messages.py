"""Many Allreduces below the knee. They cost at least what the same bytes would take at the knee's
rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base import units
from . import basis, changes, curves
from .allreduces import calls_text, certainty, is_tiny
from .curves import Curve, Knee, Point
from .findings import MANY, POSSIBLE, Finding, Unknown, is_notable, is_notable_time, waiting_text
from .inputs import HOROVOD, PYTORCH, Inputs

FUSION_OFF = "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
MIB = 1 << 20


class Part(NamedTuple):
    """The small messages of a curve that could be sent with others: counts and times are of those
    alone."""

    curve: Curve
    knee: Knee
    small: list[Point]

    @property
    def fused_ns(self) -> float:
        return _bytes(self.small) * self.knee.ns_per_byte


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    found = [*_small_messages(inputs), *_small_operations(inputs)]
    yield from found
    if _is_fusion_off(inputs) and not any(isinstance(each, Finding) for each in found):
        yield from _fusion_off(inputs)


def _small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    for curve in basis.fusible(inputs):
        knee = curve.knee
        if not knee:
            yield Unknown(
                f"{curve.call} on {inputs.where(curve.identities)} has no two sizes to compare: a "
                f"factor of two apart, with {curves.FEWEST} calls each"
            )
            continue
        part = _part(curve, knee, inputs)
        if is_many(sum(point.count for point in part.small) / curve.ranks, inputs):
            yield _by_setting(_fusing(part, inputs), part, inputs)


def is_many(calls: float, inputs: Inputs) -> bool:
    """Calls of a rank that could be sent together: at least two a step, if steps are known."""
    per_step = inputs.per_step(calls)
    return calls >= MANY and (per_step is None or per_step >= 2)


def _small_operations(inputs: Inputs) -> Iterator[Finding]:
    """Nonblocking and persistent ones: instead of their own times, which other operations and the
    program's work share, those that the ranks are blocked by them."""
    for curve in basis.blocked_allreduces(inputs):
        knee = curve.knee
        small = [point for point in curve.points if knee and point.bytes < knee.bytes]
        waiting = inputs.waiting(
            [curve.call], round(sum(point.total_ns for point in curve.points)), curve.identities
        )
        if knee and is_many(sum(point.count for point in small) / curve.ranks, inputs):
            yield _fusing_operations(Part(curve, knee, small), waiting, inputs)


def _fusing_operations(part: Part, waiting: float | None, inputs: Inputs) -> Finding:
    curve, small = part.curve, part.small
    blocked_ns = sum(point.total_ns for point in small)
    sizes = [point.bytes for point in small]
    return Finding(
        f"fuse small {curve.call} on {inputs.where(curve.identities)}",
        f"{calls_text(small, curve.ranks, inputs)} are waited for {inputs.per_rank(blocked_ns)}"
        f"{waiting_text(waiting)}. At the rate that {units.size(part.knee.bytes)} reaches their "
        f"bytes are waited for {inputs.per_rank(part.fused_ns)}",
        _how_to_fuse(curve, part.knee.bytes, inputs), POSSIBLE,
        blocked_ns * (1 - (waiting or 0)) - part.fused_ns, curve.call, curve.identities,
        max(small, key=lambda point: point.total_ns).bytes,
        changes.no_longer(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, sizes),
            part.knee.ns_per_byte,
        ),
    )


def _part(curve: Curve, knee: Knee, inputs: Inputs) -> Part:
    share = _fusible_share(curve, inputs)
    small = [
        point._replace(
            count=point.count * share, total_ns=point.total_ns * share,
            least_total_ns=point.least_total_ns * share,
        )
        for point in _small(curve, knee.bytes, inputs)
    ]
    return Part(curve, knee, small if share else [])


def _fusible_share(curve: Curve, inputs: Inputs) -> float:
    """Each round that sends has a first message; the others could have been sent with it. Nothing
    is known of jobs whose rounds are not counted."""
    sampled = sum(point.wait.calls for point in curve.points if point.wait) / curve.ranks
    if not inputs.negotiation or not sampled:
        return 1.0
    sending = inputs.negotiation.sending
    return max(0.0, 1 - sending / sampled) if sending else 0.0


def _small(curve: Curve, knee_bytes: int, inputs: Inputs) -> list[Point]:
    """Curves are without the negotiation that is known."""
    return [
        point for point in curve.points
        if point.bytes < knee_bytes and (inputs.negotiation or not is_tiny(point))
    ]


def _fusion_off(inputs: Inputs) -> Iterator[Finding]:
    """Many Allreduces without fusion, of which nothing is known that fusion would save."""
    for curve in basis.allreduces(inputs):
        total_ns = sum(point.total_ns for point in curve.points)
        calls = sum(point.count for point in curve.points) / curve.ranks
        if calls >= MANY and is_notable_time(total_ns, inputs):
            yield Finding(
                FUSION_OFF,
                f"{calls_text(curve.points, curve.ranks, inputs)} take {inputs.per_rank(total_ns)}",
                "leave HOROVOD_FUSION_THRESHOLD out, and compare the step times",
                POSSIBLE, None, curve.call, curve.identities,
            )


def _fusing(part: Part, inputs: Inputs) -> Finding:
    """All small calls are described, and those judged that could be sent with others."""
    curve, small, knee = part.curve, part.small, part.knee
    everywhere = _small(curve, knee.bytes, inputs)
    calls, judged = (sum(point.count for point in points) for points in (everywhere, small))
    total_ns, waiting = sum(point.total_ns for point in small), curves.waiting(small)
    they = (
        "They" if judged == calls
        else f"The {units.share(judged / calls)} of them that could be sent with others"
    )
    return Finding(
        FUSION_OFF if _is_fusion_off(inputs)
        else f"fuse small {curve.call} on {inputs.where(curve.identities)}",
        f"{calls_text(everywhere, curve.ranks, inputs)} carry "
        f"{units.volume(_bytes(everywhere) / curve.ranks)}. {they} take "
        f"{inputs.per_rank(total_ns)}{waiting_text(waiting)}. At the rate that "
        f"{units.size(knee.bytes)} reaches their bytes take {inputs.per_rank(part.fused_ns)}",
        _how_to_fuse(curve, knee.bytes, inputs),
        certainty(curve.ranks, small, total_ns), total_ns * (1 - (waiting or 0)) - part.fused_ns,
        curve.call, curve.identities, max(small, key=lambda point: point.total_ns).bytes,
        changes.no_longer(
            inputs,
            changes.chosen(
                inputs, [curve.call], curve.identities, [point.bytes for point in small]
            ),
            knee.ns_per_byte,
        ),
    )


def _by_setting(found: Finding, part: Part, inputs: Inputs) -> Finding | Unknown:
    """Horovod has fused what was ready together, as far as the threshold lets it."""
    is_below = _is_threshold_below(part.knee.bytes, inputs)
    if not inputs.negotiation or is_below or not is_notable(found, inputs):
        return found
    return Unknown(
        "what was ready together is fused; a longer cycle fuses more and delays it, and what that "
        "saves is not known"
    )


def _is_fusion_off(inputs: Inputs) -> bool:
    return inputs.setting("HOROVOD_FUSION_THRESHOLD").strip() == "0"


def _is_threshold_below(knee_bytes: int, inputs: Inputs) -> bool:
    threshold = inputs.setting("HOROVOD_FUSION_THRESHOLD").strip()
    return threshold.isdigit() and int(threshold) < knee_bytes


def _bytes(points: Sequence[Point]) -> float:
    return sum(point.count * point.bytes for point in points)


def _how_to_fuse(curve: Curve, knee_bytes: int, inputs: Inputs) -> str:
    size, bucket_cap = units.size(knee_bytes), f"{knee_bytes / MIB:.3g} or more (MiB)"
    if inputs.framework == HOROVOD:
        return _how_in_horovod(knee_bytes, inputs)
    if inputs.framework == PYTORCH:
        return f"raise bucket_cap_mb of DistributedDataParallel to {bucket_cap}"
    if inputs.is_beside_main(curve.call, curve.identities):
        return (
            f"send them together, {size} or more at once; if the thread is that of PyTorch's "
            f"DistributedDataParallel, raise bucket_cap_mb to {bucket_cap}"
        )
    return (
        f"send them together, {size} or more at once (Horovod: HOROVOD_FUSION_THRESHOLD, "
        "HOROVOD_CYCLE_TIME; PyTorch's DistributedDataParallel: bucket_cap_mb)"
    )


def _how_in_horovod(knee_bytes: int, inputs: Inputs) -> str:
    size = units.size(knee_bytes)
    if _is_fusion_off(inputs):
        return f"leave HOROVOD_FUSION_THRESHOLD out, or set it to {size} or more"
    if _is_threshold_below(knee_bytes, inputs):
        threshold = inputs.setting("HOROVOD_FUSION_THRESHOLD")
        return f"raise HOROVOD_FUSION_THRESHOLD, which is {threshold}, above {size}"
    cycle = inputs.setting("HOROVOD_CYCLE_TIME")
    return (
        f"raise HOROVOD_CYCLE_TIME{cycle and f', which is {cycle}'}, so that more tensors are "
        "ready to be fused, and compare the step times"
    )
