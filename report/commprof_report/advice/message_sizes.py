"""Rules about the sizes of messages: fuse, pad, keep below a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ..base import units
from ..calls.calls import operation
from . import basis, curves
from .basis import PADDED
from .curves import AFTER_PAUSES, PLACES, Curve, Point
from .findings import (
    LIKELY, MANY, MOSTLY, POSSIBLE, Finding, Unknown, background, is_notable, is_notable_time,
)
from .findings import on, size_range, waiting_text
from .inputs import HOROVOD, PYTORCH, Inputs

# an Allreduce up to this is a value, not a tensor, unless a framework's negotiation is known
TINY_BYTES = 64
FUSION_OFF = "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
MIB = 1 << 20
JUMP = 1.5  # times as much longer as the message is larger
# times as long as smaller ones in bursts: the least that all calls of a size after pauses take, if
# size and not the pause is to make the difference. The fastest first bucket of training steps took
# up to 2 times as long as the same bytes in bursts.
CLEAR = 4


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the
    knee's rate."""
    found = list(_small_messages(inputs))
    yield from found
    if is_fusion_off(inputs) and not any(isinstance(each, Finding) for each in found):
        yield from _fusion_off(inputs)


class Part(NamedTuple):
    """The small messages of a curve that could be sent with others: counts and times are of those
    alone."""

    curve: Curve
    small: list[Point]


def _small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    for alike in _by_key(basis.fusible(inputs)):
        curve = alike[0]
        if not any(each.knee for each in alike):
            yield Unknown(
                f"no two sizes of {curve.call} on {inputs.where(curve.identities)} that are a "
                "factor of two apart have"
                f" {curves.FEWEST} calls each{' at like places' * curve.is_split}"
            )
            continue
        parts = [part for each in alike if each.knee and (part := _part(each, inputs)).small]
        calls = sum(point.count for part in parts for point in part.small)
        per_step = inputs.per_step(calls / curve.ranks)
        if calls >= MANY * curve.ranks and (per_step is None or per_step >= 1):
            yield _by_setting(_fusing(parts, alike, inputs), parts, inputs)


def _by_key(some: Sequence[Curve]) -> list[list[Curve]]:
    by_key: dict[tuple, list[Curve]] = {}
    for curve in some:
        by_key.setdefault(curve.key, []).append(curve)
    return list(by_key.values())


def _part(curve: Curve, inputs: Inputs) -> Part:
    share = _fusible_share(curve, inputs)
    small = [
        point._replace(
            count=point.count * share, total_ns=point.total_ns * share,
            least_total_ns=point.least_total_ns * share,
        )
        for point in _small(curve, curve.knee.bytes, inputs)
    ]
    return Part(curve, small if share else [])


def _fusible_share(curve: Curve, inputs: Inputs) -> float:
    """Each round that sends has a first message, which follows a pause; the others could have been
    sent with it."""
    if curve.place != AFTER_PAUSES or not inputs.is_beside_main(curve.call, curve.identities):
        return 1.0
    sending = inputs.negotiation.rounds * (1 - inputs.negotiation.idle_share)
    calls = sum(point.wait.calls for point in curve.points) / curve.ranks
    return max(0.0, 1 - sending / calls)


def _small(curve: Curve, knee_bytes: int, inputs: Inputs) -> list[Point]:
    return [point for point in curve.points if _least(inputs) < point.bytes < knee_bytes]


def _fusion_off(inputs: Inputs) -> Iterator[Finding]:
    """Many Allreduces without fusion, of which nothing is known that fusion would save."""
    for alike in _by_key(basis.allreduces(inputs)):
        points = _together([point for curve in alike for point in curve.points])
        total_ns = sum(point.total_ns for curve in alike for point in curve.points)
        if sum(point.count for point in points) >= MANY * alike[0].ranks and is_notable_time(
            total_ns, inputs
        ):
            yield Finding(
                FUSION_OFF,
                f"{_calls_text(points, alike[0].ranks, inputs)} take {inputs.per_rank(total_ns)}",
                "leave HOROVOD_FUSION_THRESHOLD out, and compare the step times",
                POSSIBLE,
                None,
                alike[0].call,
                alike[0].identities,
            )


def _least(inputs: Inputs) -> int:
    """Bytes above which an Allreduce carries a tensor. Curves are without the negotiation that is
    known."""
    return 0 if inputs.negotiation else TINY_BYTES


def _fusing(parts: Sequence[Part], alike: Sequence[Curve], inputs: Inputs) -> Finding:
    """All small calls are described, and those judged that could be sent with others."""
    curve, small = parts[0].curve, [point for part in parts for point in part.small]
    knee_bytes = max(part.curve.knee.bytes for part in parts)
    everywhere = _together([point for each in alike for point in _small(each, knee_bytes, inputs)])
    calls, judged = (sum(point.count for point in points) for points in (everywhere, small))
    total_ns, waiting = sum(point.total_ns for point in small), curves.waiting(small)
    fused_ns = sum(_bytes(part.small) * part.curve.knee.ns_per_byte for part in parts)
    they = (
        "They" if judged == calls
        else f"The {units.share(judged / calls)} of them that could be sent with others"
    )
    rate = (
        f"rate that {units.size(knee_bytes)} reaches" if len(parts) == 1
        else "rates of larger messages"
    )
    return Finding(
        FUSION_OFF
        if is_fusion_off(inputs)
        else f"fuse small {curve.call} on {inputs.where(curve.identities)}",
        f"{_calls_text(everywhere, curve.ranks, inputs)} carry "
        f"{units.volume(_bytes(everywhere) / curve.ranks)}."
        f" {they} take {inputs.per_rank(total_ns)}{waiting_text(waiting)}."
        f" At the {rate} their bytes take {inputs.per_rank(fused_ns)}",
        _how_to_fuse(curve, knee_bytes, inputs),
        _certainty(curve, small, total_ns),
        total_ns * (1 - (waiting or 0)) - fused_ns,
        curve.call,
        curve.identities,
        max(small, key=lambda point: point.total_ns).bytes,
    )


def _by_setting(found: Finding, parts: Sequence[Part], inputs: Inputs) -> Finding | Unknown:
    """Horovod has fused what was ready together, as far as the threshold lets it."""
    knee_bytes = max(part.curve.knee.bytes for part in parts)
    if (
        not inputs.negotiation or _is_threshold_below(knee_bytes, inputs)
        or not is_notable(found, inputs)
    ):
        return found
    return Unknown(
        "what was ready together is fused; a longer cycle fuses more and delays it, and what that "
        "saves is not known"
    )


def _is_threshold_below(knee_bytes: int, inputs: Inputs) -> bool:
    threshold = inputs.setting("HOROVOD_FUSION_THRESHOLD").strip()
    return threshold.isdigit() and int(threshold) < knee_bytes


def _bytes(points: Sequence[Point]) -> float:
    return sum(point.count * point.bytes for point in points)


def _together(points: Sequence[Point]) -> list[Point]:
    """One for each size."""
    counts: dict[int, int] = {}
    for point in points:
        counts[point.bytes] = counts.get(point.bytes, 0) + point.count
    by_size = {point.bytes: point for point in points}
    return [by_size[size]._replace(count=count) for size, count in sorted(counts.items())]


def _calls_text(points: Sequence[Point], ranks: int, inputs: Inputs) -> str:
    """16,100 calls a rank of 64 B to 288 KiB (161 a step, two thirds of them of at most 1 KiB)"""
    calls = sum(point.count for point in points) / ranks
    per_step = inputs.per_step(calls)
    most = (
        f"two thirds of them of at most {units.size(_two_thirds(points))}" if len(points) > 2
        else ""
    )
    more = ", ".join(
        filter(None, (f"{_number(per_step)} a step" if per_step and per_step >= 1 else "", most))
    )
    return (
        f"{units.count(round(calls))} calls a rank of {_sizes_text(points)}{more and f' ({more})'}"
    )


def _number(number: float) -> str:
    return f"{number:.1f}" if number < 10 else units.count(round(number))


def _two_thirds(points: Sequence[Point]) -> int:
    """The size up to which two thirds of the calls are."""
    left = 2 / 3 * sum(point.count for point in points)
    for point in points:
        left -= point.count
        if left <= 0:
            break
    return point.bytes


def _how_to_fuse(curve: Curve, knee_bytes: int, inputs: Inputs) -> str:
    size, bucket_cap = units.size(knee_bytes), f"{knee_bytes / MIB:.3g} or more (MiB)"
    if inputs.framework == HOROVOD and is_fusion_off(inputs):
        return f"leave HOROVOD_FUSION_THRESHOLD out, or set it to {size} or more"
    if inputs.framework == HOROVOD:
        cycle, threshold = (
            inputs.setting(f"HOROVOD_{name}") for name in ("CYCLE_TIME", "FUSION_THRESHOLD")
        )
        if _is_threshold_below(knee_bytes, inputs):
            return f"raise HOROVOD_FUSION_THRESHOLD, which is {threshold}, above {size}"
        return (
            f"raise HOROVOD_CYCLE_TIME{cycle and f', which is {cycle}'}, so that more tensors "
            "are ready to be fused, and compare the step times"
        )
    if inputs.framework == PYTORCH:
        return f"raise bucket_cap_mb of DistributedDataParallel to {bucket_cap}"
    if inputs.is_beside_main(curve.call, curve.identities):
        return (
            f"send them together, {size} or more at once; if the thread is that of PyTorch's "
            "DistributedDataParallel, raise" f" bucket_cap_mb to {bucket_cap}"
        )
    return (
        f"send them together, {size} or more at once (Horovod: HOROVOD_FUSION_THRESHOLD, "
        "HOROVOD_CYCLE_TIME;" " PyTorch's DistributedDataParallel: bucket_cap_mb)"
    )


def is_fusion_off(inputs: Inputs) -> bool:
    return inputs.setting("HOROVOD_FUSION_THRESHOLD").strip() == "0"


def _certainty(curve: Curve, points: Sequence[Point], total_ns: float) -> str:
    """Certainty of the saving: if most of the time is waiting for a late rank, or that of a few
    very long calls, other messages may wait as long."""
    least_ns = sum(point.least_total_ns for point in points) * curve.ranks
    typical_ns = sum(point.count * point.p50_ns for point in points)
    return LIKELY if min(least_ns, typical_ns) >= MOSTLY * total_ns else POSSIBLE


def _sizes_text(points: Sequence[Point]) -> str:
    return size_range(points[0].bytes, points[-1].bytes)


def tiny_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Allreduces of a few values: the time in them that is not waiting. A background thread that
    has nothing else to do may make many."""
    if inputs.negotiation:
        return
    if inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for curve in basis.allreduces(inputs):
        tiny = [point for point in curve.points if point.bytes <= TINY_BYTES]
        if sum(point.count for point in tiny) >= MANY * curve.ranks:
            total_ns, waiting = sum(point.total_ns for point in tiny), curves.waiting(tiny)
            yield Finding(
                f"make fewer tiny {curve.call} on {on(inputs, curve)}",
                f"{_calls_text(tiny, curve.ranks, inputs)} take "
                f"{inputs.per_rank(total_ns)}{waiting_text(waiting)}",
                "these are negotiation: raise HOROVOD_CYCLE_TIME, and leave "
                "HOROVOD_CACHE_CAPACITY on"
                if inputs.framework == HOROVOD and curve.call == "MPI_Allreduce"
                else "put several values into one message, or sum them less often"
                + (
                    " (Horovod negotiates like this: HOROVOD_CYCLE_TIME)"
                    if curve.call == "MPI_Allreduce" else ""
                ),
                _certainty(curve, tiny, total_ns),
                total_ns * (1 - (waiting or 0)),
                curve.call,
                curve.identities,
                max(tiny, key=lambda point: point.total_ns).bytes,
            )


def padding(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A size that is slower than a larger one at like places."""
    for curve in basis.comparable(inputs):
        judged = [point for point in curve.points if point.is_judged]
        for point in judged:
            larger = [other for other in judged if _is_faster(other, point)]
            if larger:
                best = min(larger, key=lambda other: other.p50_ns)
                yield Finding(
                    f"pad {curve.call} of {units.size(point.bytes)} to {units.size(best.bytes)} on "
                    f"{on(inputs, curve)}",
                    f"{_quartiles_text(point)}; {_quartiles_text(best)}, both {curve.place} and "
                    "without waiting",
                    f"send the larger size, or let {_library(curve)} use for this size the "
                    "algorithm that it uses for the larger one",
                    LIKELY,
                    point.count * (point.p50_ns - best.p50_ns),
                    curve.call,
                    curve.identities,
                    point.bytes,
                )
    yield from _unknown_pairs(inputs, lambda below, above: _is_faster(above, below))


def _is_faster(other: Point, point: Point) -> bool:
    """A larger size, by no more than padding may add, of which three quarters are faster than three
    quarters of the smaller one."""
    is_near = point.bytes < other.bytes <= PADDED * point.bytes
    return is_near and other.wait.transfer_p75_ns < point.wait.transfer_p25_ns


def _quartiles_text(point: Point) -> str:
    """2,000 calls of 65 KiB take 900 us in the median (half of them 880 us to 950 us)"""
    low, high = (
        units.duration(point.wait.transfer_p25_ns), units.duration(point.wait.transfer_p75_ns),
    )
    calls = f"{units.counted(point.count, 'call')} of {units.size(point.bytes)}"
    return (
        f"{calls} take {units.duration(point.p50_ns)} in the median (half of them {low} to {high})"
    )


def jumps(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Between two sizes close to each other the time grows much more than the size: what it grows
    more."""
    for curve in basis.comparable(inputs):
        for below, above in curve.neighbours(PADDED):
            larger = above.bytes / below.bytes
            if _is_jump(below, above):
                yield Finding(
                    f"{curve.call} jumps between {units.size(below.bytes)} and "
                    f"{units.size(above.bytes)} on {on(inputs, curve)}",
                    f"{_quartiles_text(below)}; {_quartiles_text(above)}, both {curve.place} and "
                    "without waiting."
                    f" That is {above.p50_ns / below.p50_ns:.1f} times as long for {larger:.2f} "
                    "times the bytes: the"
                    " library seems to change its protocol or algorithm there",
                    f"keep messages at or below {units.size(below.bytes)}, or move the limit "
                    f"({_limits(curve)})",
                    LIKELY,
                    above.count * (above.p50_ns - below.p50_ns * larger),
                    curve.call,
                    curve.identities,
                    above.bytes,
                )
    for below, above, curve in _at_other_places(inputs):
        if curve.place == AFTER_PAUSES and _is_clear(below, above):
            yield _clear_jump(below, above, curve, inputs)
    yield from _unknown_pairs(inputs, _is_jump)


def _is_jump(below: Point, above: Point) -> bool:
    """Three quarters of the larger take longer than three quarters of the smaller, by more than the
    size."""
    larger = above.bytes / below.bytes
    is_apart = above.wait.transfer_p25_ns > larger * below.wait.transfer_p75_ns
    return larger <= PADDED and is_apart and above.p50_ns > JUMP * larger * below.p50_ns


def _clear_jump(below: Point, above: Point, curve: Curve, inputs: Inputs) -> Finding:
    larger = above.bytes / below.bytes
    return Finding(
        f"{curve.call} jumps between {units.size(below.bytes)} and {units.size(above.bytes)} on "
        f"{inputs.where(curve.identities)}",
        f"{_quartiles_text(below)}, in bursts and without waiting. Calls of "
        f"{units.size(above.bytes)} all follow pauses, which"
        f" may be a part of it, but even the fastest of {units.count(above.count)} takes"
        f" {units.duration(above.wait.transfer_min_ns)}",
        f"compare both sizes without pauses (osu_{operation(curve.call)}); keep messages at or "
        "below"
        f" {units.size(below.bytes)}, or move the limit ({_limits(curve)})",
        POSSIBLE,
        above.count * (above.wait.transfer_min_ns - below.p50_ns * larger),
        curve.call,
        curve.identities,
        above.bytes,
    )


def _is_clear(below: Point, above: Point) -> bool:
    return above.wait.transfer_min_ns > CLEAR * above.bytes / below.bytes * below.p50_ns


def _unknown_pairs(inputs: Inputs, is_found: Callable[[Point, Point], bool]) -> Iterator[Unknown]:
    """Sizes that look as the rule looks for, though they are at unlike places, or something is
    computed beside them."""
    for curve in inputs.curves:
        if not curve.is_split and curve.neighbours(PADDED):
            yield Unknown(
                f"how much of {curve.call} on {on(inputs, curve)} is waiting for other ranks is "
                "not known"
            )
        elif curve not in basis.comparable(inputs) and any(
            is_found(*pair) for pair in curve.neighbours(PADDED)
        ):
            yield Unknown(
                f"a background thread calls {curve.call}: how long that takes depends on what is "
                "computed meanwhile"
            )
    for below, above, curve in _at_other_places(inputs):
        if is_found(below, above):
            there = next(place for place in PLACES if place != curve.place)
            yield Unknown(
                f"{curve.call} of {units.size(below.bytes)} is only seen {there}, and of "
                f"{units.size(above.bytes)}"
                f" {curve.place}: which of both makes the difference is not known"
            )


def _at_other_places(inputs: Inputs) -> Iterator[tuple[Point, Point, Curve]]:
    """Sizes next to each other, at most a factor of two apart, of which no place has both; the
    curve is that of the larger one."""
    comparable = basis.comparable(inputs)
    for curve, other in product(comparable, comparable):
        if curve.place != other.place and curve.key == other.key:
            here, there = (
                {point.bytes: point for point in each.points if point.is_judged}
                for each in (curve, other)
            )
            sizes = sorted({*here, *there})
            for low, high in zip(sizes, sizes[1:]):
                if (
                    high in here and low not in here and low in there and high not in there
                    and high <= PADDED * low
                ):
                    yield there[low], here[high], curve


def _library(curve: Curve) -> str:
    return "NCCL" if curve.call.startswith("nccl") else "the MPI library"


def _limits(curve: Curve) -> str:
    """The settings of the library that has these limits."""
    if curve.call.startswith("nccl"):
        return "NCCL: NCCL_ALGO, NCCL_PROTO, or a tuner plugin"
    return (
        "Open MPI: btl_..._eager_limit, coll_tuned_...; MPICH: MPIR_CVAR_..._EAGER_..., "
        "MPIR_CVAR_..._MSG_SIZE"
    )
