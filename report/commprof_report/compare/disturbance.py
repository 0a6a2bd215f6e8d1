"""Whether other work on the cores of the ranks decides the comparison.

What disturbs both sides alike makes the interval wider, and is in it already. So it is a reason
against a verdict only if it differs between the sides, or if most blocks have it: then the host's
scheduler was measured. Otherwise a note has its size. A run is as disturbed as its ranks waited for
cores on average. The sides are compared by the rank that waited most, which holds up the others: of
more ranks one waits longer, but so it does on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from ..base import units
from ..base.thresholds import threshold
from .figures import Figures
from .judge import Judge, known
from .refusals import Refusal
from .sides import Side

WAY_OUT = "run on nodes of its own with a core for each rank; or --allow disturbed"
DIFFERS = "other work on the cores of the ranks differs between the sides"


def is_disturbed(run: Figures) -> bool:
    """Waiting for cores, but not for other threads of the same ranks."""
    is_waiting = (run.core_wait or 0) >= threshold("compare.disturbed")
    return not run.crowds_itself and (is_waiting or (run.core_wait is None and bool(run.crowding)))


def size_text(run: Figures) -> str:
    """Of a run that is disturbed."""
    return run.crowding or "" if run.core_wait is None else run.core_wait_text


def refused(judge: Judge, reference: Side, sides: Sequence[Side]) -> Iterator[Refusal]:
    """judge: of the verdict."""
    all_sides = [reference, *sides]
    blocks = _blocks(all_sides, judge.is_paired)
    bad = _disturbed(blocks)
    if len(bad) > threshold("compare.disturbed-blocks") * len(blocks):
        yield Refusal("disturbed", _said(blocks, bad, judge.is_paired), WAY_OUT)
        return
    for side in sides:
        if what := _wait_differs(judge, reference, side):
            yield Refusal("disturbed", f"{DIFFERS}: {what}", WAY_OUT)
            return


def notes(sides: Sequence[Side], is_paired: bool) -> Iterator[str]:
    blocks = _blocks(sides, is_paired)
    if bad := _disturbed(blocks):
        yield f"{_said(blocks, bad, is_paired)}; it makes intervals wider"


def _blocks(sides: Sequence[Side], is_paired: bool) -> list[list[Figures]]:
    if is_paired:
        return [list(block) for block in zip(*(side.runs for side in sides))]
    return [[run] for side in sides for run in side.runs]


def _disturbed(blocks: Iterable[list[Figures]]) -> list[Figures]:
    """The run of each disturbed block that is disturbed most."""
    found = (list(filter(is_disturbed, block)) for block in blocks)
    return [max(runs, key=lambda run: run.core_wait or 0) for runs in found if runs]


def _said(blocks: Sequence[object], bad: Sequence[Figures], is_paired: bool) -> str:
    of_all = f"{len(bad)} of {units.counted(len(blocks), 'block' if is_paired else 'run')}"
    worst = max(bad, key=lambda run: run.core_wait or 0)
    return (
        f"other work had cores of the ranks in {of_all}, most in {worst.path}: {size_text(worst)}"
    )


def _wait_differs(judge: Judge, reference: Side, side: Side) -> str:
    """Beyond chance, and twice as much or more; empty: not known, or it does not."""
    shares = [[run.longest_core_wait for run in each.runs] for each in (reference, side)]
    runs = [*reference.runs, *side.runs]
    if any(run.core_wait is None or run.crowds_itself for run in runs):
        return ""
    few, times = threshold("compare.few-waits"), threshold("compare.times-the-waits")
    found = judge.contrast(*([max(share, few) for share in known(own)] for own in shares))
    if found.difference is None or abs(math.log1p(found.difference)) < math.log(times):
        return ""
    first, second = (units.share(median(known(own))) for own in shares)
    return (
        f"a rank waited for a core {first} of the time in {reference.name}, {second} in "
        f"{side.name} (medians of the runs)"
    )
