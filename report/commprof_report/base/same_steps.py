"""Steps of different ranks: which are the same, by the times at which they end; which are the
warm-up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from statistics import median

from . import threshold, whole

MOST_MISSED = whole("base.missed-steps")
SAME_STEP = threshold("base.same-step")


def agree(times: dict[int, list[int]]) -> bool:
    """True if all ranks have equally many times, and those with equal numbers lie close
    together."""
    first, *others = times.values()
    apart = _apart(first)
    return all(len(own) == len(first) and _is_close(own, first, apart) for own in others)


def matched(ends: dict[int, list[int]]) -> dict[int, list[int]]:
    """By key, step numbers from the times at which steps end: steps of different keys that end
    together share a number. Keys whose steps do not go with the others' are left out: nobody makes
    as many steps as all of them together, or one step is several of another."""
    if not ends:
        return {}
    first, *others = sorted(ends, key=lambda key: -len(ends[key]))
    apart = _apart(ends[first])
    known = sorted(ends[first])
    matches = {first: list(ends[first])}
    for key in others:
        if _apart(ends[key]) > threshold("base.several-steps") * apart:
            continue
        if len(ends[first]) - len(ends[key]) <= MOST_MISSED:
            in_order = _in_order(ends[first], ends[key])
            if _is_close(ends[key], in_order, apart):
                matches[key] = list(in_order)
            continue
        nearest = [_nearest(known, end_ns, SAME_STEP * apart) for end_ns in ends[key]]
        if len({*known, *nearest}) <= len(ends[first]) + MOST_MISSED:
            matches[key], known = nearest, sorted({*known, *nearest})
    number = {end_ns: place for place, end_ns in enumerate(known, 1)}
    return {key: _unique([number[end_ns] for end_ns in own]) for key, own in matches.items()}


def _apart(ends: Sequence[int]) -> float:
    return median([later - earlier for earlier, later in zip(ends, ends[1:])] or [0])


def _in_order(known: Sequence[int], ends: Sequence[int]) -> Sequence[int]:
    """As many of the known ends, of which there are at least as many: those after each other with
    the least total distance. So steps were missed at the begin or at the end."""
    missed = range(len(known) - len(ends) + 1)
    return min(
        (known[first : first + len(ends)] for first in missed),
        key=lambda chosen: sum(abs(end_ns - own_ns) for end_ns, own_ns in zip(chosen, ends)),
    )


def _is_close(ends: Sequence[int], others: Sequence[int], apart: float) -> bool:
    return median(abs(end_ns - other_ns) for end_ns, other_ns in zip(ends, others)) < max(
        SAME_STEP * apart, 1
    )


def _nearest(known: Sequence[int], end_ns: int, within: float) -> int:
    place = bisect_left(known, end_ns)
    nearest = min(known[max(0, place - 1) : place + 1], key=lambda other: abs(other - end_ns))
    return nearest if abs(nearest - end_ns) <= within else end_ns


def _unique(numbers: list[int]) -> list[int]:
    """Two steps of a rank never share a number."""
    for place in range(1, len(numbers)):
        numbers[place] = max(numbers[place], numbers[place - 1] + 1)
    return numbers


def warm_up(times: dict[int, float]) -> Iterator[int]:
    """The first step, and the steps directly after it that last much longer than usual."""
    if 1 not in times or len(times) < 2:
        return
    usual = median(times.values())
    for place, (number, time) in enumerate(times.items()):
        is_slow = time > threshold("base.slow-start") * usual
        if place and (not is_slow or place >= threshold("base.warm-up") * len(times)):
            return
        yield number
