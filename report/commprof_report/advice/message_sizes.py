"""Rules about the sizes of messages: fuse, pad, keep below a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from . import basis, curves
from .basis import PADDED
from .curves import Curve, Knee, Point
from .findings import LIKELY, MANY, MOSTLY, POSSIBLE, Finding, Unknown, background, on, size_range, waiting_text
from .inputs import HOROVOD, PYTORCH, Inputs

TINY_BYTES = 64  # an Allreduce up to this is a value or a framework's negotiation, not a tensor
JUMP = 1.5  # times as much longer as the message is larger


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the knee's rate."""
    for curve in basis.allreduces(inputs):
        knee = curve.knee
        if knee is None:
            yield Unknown(f"{curve.call} on {on(inputs, curve)} has no two sizes with {curves.FEWEST} calls each to compare")
            continue
        small = [point for point in curve.points if TINY_BYTES < point.bytes < knee.bytes]
        if sum(point.count for point in small) >= MANY * curve.ranks:
            yield _fusing(curve, small, knee, inputs)


def _fusing(curve: Curve, small: Sequence[Point], knee: Knee, inputs: Inputs) -> Finding:
    count, total_ns = sum(point.count for point in small), sum(point.total_ns for point in small)
    small_bytes = sum(point.count * point.bytes for point in small)
    fused_ns = small_bytes * knee.ns_per_byte
    waiting = curves.waiting(small)
    return Finding(
        f"fuse small {curve.call} on {on(inputs, curve)}",
        f"{units.count(round(count / curve.ranks))} calls a rank of {_sizes_text(small)} carry {units.volume(small_bytes / curve.ranks)}"
        f" and take {inputs.per_rank(total_ns)} ({inputs.per_rank(_typical_ns(small))} by their medians); at the rate that is reached"
        f" with {units.size(knee.bytes)} the same bytes take {inputs.per_rank(fused_ns)}{waiting_text(waiting)}"
        + ("; most of it is on background threads, so it may cost the program less" if inputs.is_background else ""),
        {
            HOROVOD: "raise HOROVOD_CYCLE_TIME, so that more tensors are ready to be fused, and HOROVOD_FUSION_THRESHOLD if that is below"
            f" {units.size(knee.bytes)}",
            PYTORCH: f"raise bucket_cap_mb of DistributedDataParallel to more than {units.size(knee.bytes)}",
        }.get(
            inputs.framework,
            f"send them together, {units.size(knee.bytes)} or more at once (Horovod: HOROVOD_FUSION_THRESHOLD, HOROVOD_CYCLE_TIME;"
            " PyTorch's DistributedDataParallel: bucket_cap_mb)",
        ),
        POSSIBLE if inputs.is_background else _certainty(curve, small, total_ns),
        total_ns * (1 - (waiting or 0)) - fused_ns,
        curve.call,
        curve.identities,
        max(small, key=lambda point: point.total_ns).bytes,
    )


def _certainty(curve: Curve, points: Sequence[Point], total_ns: int) -> str:
    """Where most of the time is waiting for a late rank, or that of a few very long calls, other messages may wait as long."""
    least_ns = sum(point.least_total_ns for point in points) * curve.ranks
    return LIKELY if min(least_ns, _typical_ns(points)) >= MOSTLY * total_ns else POSSIBLE


def _typical_ns(points: Sequence[Point]) -> float:
    return sum(point.count * point.p50_ns for point in points)


def _sizes_text(points: Sequence[Point]) -> str:
    return size_range(points[0].bytes, points[-1].bytes)


def tiny_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Allreduces of a few values: the time in them that is not waiting. A background thread that has nothing else to do may make many."""
    if inputs.is_background:
        yield background(inputs)
        return
    for curve in basis.allreduces(inputs):
        tiny = [point for point in curve.points if point.bytes <= TINY_BYTES]
        if sum(point.count for point in tiny) >= MANY * curve.ranks:
            count, total_ns = sum(point.count for point in tiny), sum(point.total_ns for point in tiny)
            waiting = curves.waiting(tiny)
            yield Finding(
                f"make fewer tiny {curve.call} on {on(inputs, curve)}",
                f"{units.count(round(count / curve.ranks))} calls a rank of {_sizes_text(tiny)} take {inputs.per_rank(total_ns)}"
                + waiting_text(waiting),
                "these are negotiation: raise HOROVOD_CYCLE_TIME, and leave HOROVOD_CACHE_CAPACITY on"
                if inputs.framework == HOROVOD and curve.call == "MPI_Allreduce"
                else "put several values into one message, or sum them less often"
                + (" (Horovod negotiates like this: HOROVOD_CYCLE_TIME)" if curve.call == "MPI_Allreduce" else ""),
                _certainty(curve, tiny, total_ns),
                total_ns * (1 - (waiting or 0)),
                curve.call,
                curve.identities,
                max(tiny, key=lambda point: point.total_ns).bytes,
            )


def padding(inputs: Inputs) -> Iterator[Finding]:
    """A size that is slower than a larger one: the difference of their means, for each call."""
    for curve in inputs.curves:
        for point in curve.points:
            larger = [other for other in curve.points if _is_faster(other, point)]
            if larger:
                best = min(larger, key=lambda other: other.mean_ns)
                yield Finding(
                    f"pad {curve.call} of {units.size(point.bytes)} to {units.size(best.bytes)} on {on(inputs, curve)}",
                    f"{units.count(point.count)} calls of {units.size(point.bytes)} take {units.duration(point.p50_ns)} in the median"
                    f" ({_bounds_text(point)}), {units.count(best.count)} of {units.size(best.bytes)} {units.duration(best.p50_ns)}"
                    f" ({_bounds_text(best)})",
                    f"send the larger size, or let {_library(curve)} use for this size the algorithm that it uses for the larger one",
                    LIKELY,
                    point.count * (point.mean_ns - best.mean_ns),
                    curve.call,
                    curve.identities,
                    point.bytes,
                )


def _is_faster(other: Point, point: Point) -> bool:
    """A larger size, by no more than padding may add, that is surely faster: also without waiting."""
    if not point.bytes < other.bytes <= PADDED * point.bytes or point.low_ns is None or other.high_ns is None:
        return False
    return other.high_ns < point.low_ns and other.own_p50_ns < point.own_p50_ns and other.mean_ns < point.mean_ns


def _bounds_text(point: Point) -> str:
    return f"surely between {units.duration(point.low_ns)} and {units.duration(point.high_ns)}"


def jumps(inputs: Inputs) -> Iterator[Finding]:
    """Between two sizes close to each other the time grows much more than the size: what it grows more."""
    for curve in inputs.curves:
        for below, above in zip(curve.points, curve.points[1:]):
            larger = above.bytes / below.bytes
            if _is_jump(below, above, larger):
                yield Finding(
                    f"{curve.call} jumps between {units.size(below.bytes)} and {units.size(above.bytes)} on {on(inputs, curve)}",
                    f"{units.duration(below.p50_ns)} becomes {units.duration(above.p50_ns)} in the median, {above.p50_ns / below.p50_ns:.1f}"
                    f" times as long for {larger:.2f} times the bytes: the library seems to change its protocol or algorithm there",
                    f"keep messages at or below {units.size(below.bytes)}, or move the limit ({_limits(curve)})",
                    LIKELY,
                    above.count * (above.mean_ns - below.mean_ns * larger),
                    curve.call,
                    curve.identities,
                    above.bytes,
                )


def _is_jump(below: Point, above: Point, larger: float) -> bool:
    if larger > PADDED or above.low_ns is None or below.high_ns is None:
        return False
    is_sure = above.low_ns > below.high_ns * larger
    return is_sure and above.p50_ns > JUMP * larger * below.p50_ns and above.own_p50_ns > larger * below.own_p50_ns


def _library(curve: Curve) -> str:
    return "NCCL" if curve.call.startswith("nccl") else "the MPI library"


def _limits(curve: Curve) -> str:
    """Where they are set."""
    if curve.call.startswith("nccl"):
        return "NCCL: NCCL_ALGO, NCCL_PROTO, or a tuner plugin"
    return "Open MPI: btl_..._eager_limit, coll_tuned_...; MPICH: MPIR_CVAR_..._EAGER_..., MPIR_CVAR_..._MSG_SIZE"
