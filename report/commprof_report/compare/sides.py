"""The runs of each side of a comparison, and which of them belong to one block.

A block holds one run of each side, made next to each other in time. Runs of an experiment have their blocks from its folder; other runs
are in blocks if they alternate: in order of time, each next group of as many runs as there are sides has one of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError, UsageError
from ..experiment import plan as plans
from .figures import Figures

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Chosen(NamedTuple):
    """What the user named: the folders of a side, and the block of each run, if an experiment says it. of: the side whose command this one
    runs once more."""

    name: str
    paths: list[Path]
    blocks: list[int] | None = None
    failed: int = 0
    of: str = ""

    def read(self, figures: Callable[[Path], Figures]) -> Side:
        return Side(self.name, [figures(path) for path in self.paths], self.blocks, self.failed, self.of)


class Side(NamedTuple):
    name: str
    runs: list[Figures]
    blocks: list[int] | None
    failed: int
    of: str = ""


def sides_named(paths: Sequence[Sequence[Path]]) -> list[Chosen]:
    """Sides of run folders. A side has the name that its folders share, without numbers; without a name of its own it has a letter."""
    found = [_common_name([path.name or path.resolve().name for path in side]) for side in paths]
    names = [name if name and found.count(name) == 1 else LETTERS[place] for place, name in enumerate(found)]
    return [Chosen(name, list(side)) for name, side in zip(names, paths)]


def _common_name(names: Sequence[str]) -> str:
    shared = names[0]
    for name in names[1:]:
        shared = next((shared[:end] for end in range(len(shared), 0, -1) if name.startswith(shared[:end])), "")
    return re.sub(r"[-_.\d]+$", "", shared) if len(names) > 1 else shared


def experiment_read(folder: Path) -> list[Chosen]:
    """The arms of an experiment, in order; the first is the reference. Only blocks with a run of every arm are compared."""
    plan, runs = plans.plan_read(folder), plans.runs_read(folder)
    blocks = plans.complete_blocks(plan, runs)
    if len(plan.arms) < 2 or not blocks:
        raise ReportError(folder, "has no block yet in which each arm has run")
    found = []
    for arm in plan.arms:
        own = {run.block: folder / run.folder for run in runs if run.arm == arm.name and run.status == plans.OK}
        failed = sum(run.arm == arm.name and run.status == plans.FAILED for run in runs)
        found.append(Chosen(arm.name, [own[block] for block in blocks], blocks, failed, arm.of))
    return found


def in_blocks(sides: Sequence[Side]) -> list[Side] | None:
    """The sides with their runs in order of blocks; None: there are no blocks."""
    if all(side.blocks is not None for side in sides):
        return list(sides)
    if len({len(side.runs) for side in sides}) > 1:
        return None
    ordered = [side._replace(runs=sorted(side.runs, key=lambda run: run.start_unix_ns)) for side in sides]
    begins = sorted((run.start_unix_ns, place) for place, side in enumerate(ordered) for run in side.runs)
    for first in range(0, len(begins), len(sides)):
        if len({place for _, place in begins[first : first + len(sides)]}) < len(sides):
            return None
    return [side._replace(blocks=list(range(1, len(side.runs) + 1))) for side in ordered]


def paths_split(words: Sequence[Path], separator: Path) -> list[list[Path]]:
    """A... -- B...; two runs need no separator."""
    if separator not in words and len(words) == 2:
        return [[word] for word in words]
    sides: list[list[Path]] = [[]]
    for word in words:
        if word == separator:
            sides.append([])
        else:
            sides[-1].append(word)
    if len(sides) < 2 or not all(sides):
        raise UsageError("compare", "name the runs of each side: A... -- B..., or the folder of an experiment")
    return sides
