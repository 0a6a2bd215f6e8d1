"""The runs of each side of a comparison, and which of them belong to one block.

A block holds one run of each side, made next to each other in time. Runs of an experiment have their blocks from its folder; other runs
are in blocks if they alternate: in order of time, each next group of as many runs as there are sides has one of each.

An experiment is a folder with two files. experiment.json, written once, is an object with `format` (commprof-experiment), `version` (1)
and `arms`, a list of objects with `name` and `command`. runs.jsonl has one object in each line, added when a run has ended: `block` (from 1),
`arm`, `folder` (relative), `status` (ok, failed, warm-up). Runs that are not ok are counted, and not compared. A line that a killed
experiment left unfinished is skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError, UsageError
from .figures import Figures

EXPERIMENT, RUNS = "experiment.json", "runs.jsonl"
FORMAT, VERSION = "commprof-experiment", 1
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Chosen(NamedTuple):
    """What the user named: the folders of a side, and the block of each run, if an experiment says it."""

    name: str
    paths: list[Path]
    blocks: list[int] | None = None
    failed: int = 0


class Side(NamedTuple):
    name: str
    runs: list[Figures]
    blocks: list[int] | None
    failed: int


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


def is_experiment(path: Path) -> bool:
    return (path / EXPERIMENT).is_file()


def experiment_read(folder: Path) -> list[Chosen]:
    """The arms of an experiment, in order; the first is the reference. Only blocks with a run of every arm are compared."""
    arms = [str(arm["name"]) for arm in _plan(folder)["arms"]]
    runs = _runs(folder / RUNS)
    by_arm = {arm: {run["block"]: folder / run["folder"] for run in runs if run["arm"] == arm and run["status"] == "ok"} for arm in arms}
    blocks = sorted(set.intersection(*(set(of_arm) for of_arm in by_arm.values()))) if arms else []
    if len(arms) < 2 or not blocks:
        raise ReportError(folder, "has no block yet in which each arm has run")
    failed = {arm: sum(run["arm"] == arm and run["status"] == "failed" for run in runs) for arm in arms}
    return [Chosen(arm, [of_arm[block] for block in blocks], blocks, failed[arm]) for arm, of_arm in by_arm.items()]


def _plan(folder: Path) -> dict:
    try:
        plan = json.loads((folder / EXPERIMENT).read_text(encoding="utf-8"))
        known = plan["format"] == FORMAT and plan["version"] == VERSION and all(isinstance(arm["name"], str) for arm in plan["arms"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReportError(folder / EXPERIMENT, f"is not an experiment: {error}") from None
    if not known:
        raise ReportError(folder / EXPERIMENT, f"is not version {VERSION} of {FORMAT}")
    return plan


def _runs(path: Path) -> list[dict]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            run = json.loads(line)
            found.append({"block": int(run["block"]), **{key: str(run[key]) for key in ("arm", "folder", "status")}})
        except (ValueError, KeyError, TypeError):
            continue
    return found


def in_blocks(sides: Sequence[Side]) -> list[Side] | None:
    """The sides with their runs in order of blocks; None: there are no blocks."""
    if all(side.blocks is not None for side in sides):
        return list(sides)
    if len({len(side.runs) for side in sides}) > 1:
        return None
    ordered = [Side(side.name, sorted(side.runs, key=lambda run: run.start_unix_ns), None, side.failed) for side in sides]
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
