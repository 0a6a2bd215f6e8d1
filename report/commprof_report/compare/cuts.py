"""Messages that a framework cuts anew in every run: how gradients are fused depends on a setting,
and on when each of them is ready.

Two such runs do the same work if they have the same steps and a step carries the same bytes; how
many messages carry them is what is compared. Their rows have no sizes in common, so collectives
whose sizes differ from run to run become one row for each call, in nanoseconds per step. So does
negotiation: the number of its rounds depends on the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from ..base import units
from ..base.gather import gathered
from ..base.thresholds import threshold, whole
from .figures import Figures, Key, Part
from .groups import NO_GROUP
from .sides import Side

NEGOTIATION = Key("negotiation", NO_GROUP, None, "host", "call", "step")


def rows_per_step(sides: Sequence[Side], uneven: Sequence[Key]) -> list[Side]:
    """The sides with rows per step in place of uneven collectives; unchanged if the runs have not
    the same steps. uneven: rows whose calls or bytes differ between any two runs."""
    runs = [run for side in sides for run in side.runs]
    if any(run.steps is None for run in runs) or step_difference(sides):
        return list(sides)
    joined = _joined(runs, uneven)
    if not joined:
        return list(sides)
    return [
        side._replace(runs=[replace(run, joined=joined) for run in side.runs]) for side in sides
    ]


def _joined(runs: Sequence[Figures], uneven: Sequence[Key]) -> dict[Part, Key]:
    """The row per step that takes each part of a row."""
    negotiates = any(run.negotiates for run in runs)
    joined: dict[Part, Key] = {}
    for call, keys in _sizes_of_calls(uneven, runs).items():
        kinds = _kinds_of_one_call(runs, keys, negotiates)
        joined.update({(key, kind): call._replace(per="step") for key in keys for kind in kinds})
    if negotiates:
        parts = [each for run in runs for each in run.parts.items()]
        joined.update(
            (part, NEGOTIATION) for part, row in parts
            if part[1] == "control" and row.family == "collective"
        )
    return joined


def _sizes_of_calls(uneven: Sequence[Key], runs: Sequence[Figures]) -> dict[Key, list[Key]]:
    """The uneven collectives of steps by call and communicator, where these have several sizes."""
    found = gathered(
        (key._replace(bytes=None), key)
        for key in sorted(set(uneven) - calls_aside(runs, uneven), key=uneven.index)
        if next(run.rows[key] for run in runs if key in run.rows).family == "collective"
    )
    return {
        call: keys for call, keys in found.items()
        if len(keys) > 1 and all(_bytes(run, keys) for run in runs)
    }


def _bytes(run: Figures, keys: Sequence[Key]) -> int:
    return sum(run.rows[key].volume_bytes for key in keys if key in run.rows)


def calls_aside(runs: Sequence[Figures], keys: Sequence[Key]) -> set[Key]:
    """Keys of a call that most steps lack and that carries hardly any bytes, as when bucket sizes
    are agreed on at the start."""
    by_call = gathered((key._replace(bytes=None), key) for key in keys)
    return {
        key for own in by_call.values() if all(_is_aside(run, own) for run in runs) for key in own
    }


def _is_aside(run: Figures, keys: Sequence[Key]) -> bool:
    calls = sum(run.rows[key].count for key in keys if key in run.rows)
    if run.steps is None:
        return False
    most_calls = threshold("compare.aside-calls") * run.steps.count * len(run.ranks)
    most_bytes = threshold("compare.aside-bytes") * _bytes(run, list(run.rows))
    return calls < most_calls and _bytes(run, keys) < most_bytes


def _kinds_of_one_call(
    runs: Sequence[Figures], keys: Sequence[Key], negotiates: bool
) -> tuple[str, ...]:
    """Without negotiation small gradients count as control, by their size. They are joined with the
    others if the bytes of both together are the same in all runs to the byte."""
    sums = {_bytes(run, keys) for run in runs}
    return ("bulk", "control") if len(sums) == 1 and not negotiates else ("bulk",)


def step_difference(sides: Sequence[Side]) -> str:
    """In what the steps of some side differ from those of the first; empty: in nothing, or they are
    not known in all runs."""
    works = [[run.steps for run in side.runs if run.steps is not None] for side in sides]
    if any(len(own) < len(side.runs) for own, side in zip(works, sides)):
        return ""
    for side, own in zip(sides[1:], works[1:]):
        names = sides[0].name, side.name
        both = works[0], own
        sizes = [[work.bytes for work in each if work.bytes is not None] for each in both]
        if all(sizes) and not alike(median(sizes[0]), median(sizes[1])):
            first, second = (units.size(median(each)) for each in sizes)
            return f"steps of {first} in {names[0]}, of {second} in {names[1]}"
        before, after = (median(work.count for work in each) for each in both)
        if not alike(before, after) and abs(after - before) > whole("compare.lost-steps"):
            first, second = units.count(before), units.count(after)
            return f"{first} steps in {names[0]}, {second} in {names[1]}"
    return ""


def alike(first: float, second: float) -> bool:
    """Numbers of steps, of bytes of a step, and what follows from them."""
    return abs(second - first) <= threshold("compare.same-steps") * max(first, second)
