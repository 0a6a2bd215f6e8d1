"""The runs of each side of a comparison, and which of them belong to one block.

A block holds one run of each side, made next to each other in time. Runs of an experiment have
their blocks from its folder; other runs are in blocks if they alternate: in order of time, each
next group of as many runs as there are sides has one of each.

Runs may be replays (commprof-replay(1)) of a kit, with options; a check of that kit has found for
which share of the job's time they stand.
"""

from __future__ import annotations

import json
import re
from collections import namedtuple
from collections.abc import Sequence
from itertools import groupby
from os.path import commonprefix
from pathlib import Path
from string import ascii_uppercase

from ..base import (
    ReportError,
    UsageError,
    json_read,
    list_in,
    number_in,
    text_in,
    units,
    whole_in,
    written_whole,
)
from ..experiment import plan as plans
from .figures import Figures, Group


# The runs of a side, read from the folders that the user chose, and the block of each, if an
# experiment says it. failed: runs of an experiment whose blocks were repeated. of: the side whose
# command this one runs once more. elapsed_ns, bare_ns: how long the commands of an experiment took,
# launch to end, with the profiler and without.
Side = namedtuple(
    "Side",
    "name runs blocks failed of elapsed_ns bare_ns paths",
    defaults=[None, 0, "", None, None, ()],
)


def labels_of(sides: Sequence[Side]) -> dict[Group, str]:
    """Each communicator's label in the first run that has it."""
    runs = [run for side in sides for run in side.runs]
    return {group: label for run in reversed(runs) for group, label in run.labels.items()}


def sides_named(paths: Sequence[Sequence[Path]]) -> list[Side]:
    """Sides of run folders. A side has the name that its folders share, without numbers; without a
    name of its own it has a letter."""
    found = []
    for side in paths:
        names = [path.name or path.resolve().name for path in side]
        found.append(re.sub(r"[-_.\d\s]+$", "", commonprefix(names)) if names[1:] else names[0])
    return [
        Side(
            name if name and found.count(name) == 1 else ascii_uppercase[place],
            [],
            paths=side,
        )
        for place, (name, side) in enumerate(zip(found, paths))
    ]


def experiment_read(folder: Path) -> list[Side]:
    """The arms of an experiment, in order; the first is the reference. Only blocks with a run of
    every arm are compared."""
    plan = plans.plan_read(folder)
    runs = plans.runs_of(folder, plan)
    blocks = plans.complete_blocks(plan, runs)
    profiled = [arm for arm in plan.arms if not arm.is_bare]
    if len(profiled) < 2 or not blocks:
        raise ReportError(folder, "has no block yet in which each arm has run")
    done = {(run.arm, run.block): run for run in runs if run.status == plans.OK}

    def elapsed_ns(name: str) -> list[float]:
        return [done[name, block].seconds * 1e9 for block in blocks]

    found = []
    for arm in profiled:
        paths = [folder / done[arm.name, block].folder for block in blocks]
        bare = next(
            (elapsed_ns(each.name) for each in plan.arms if each.is_bare and each.of == arm.name),
            None,
        )
        failed = sum((run.arm, run.status) == (arm.name, plans.FAILED) for run in runs)
        found.append(Side(arm.name, [], blocks, failed, arm.of, elapsed_ns(arm.name), bare, paths))
    return found


def each_run_once(sides: Sequence[Side]) -> list[Side]:
    """The sides without runs that they have twice, under whatever names. A run of two sides is
    refused: its values would be compared with themselves."""
    side_of: dict[tuple[str, int, int], str] = {}
    for side, run in ((side, run) for side in sides for run in side.runs):
        first = side_of.setdefault(run.identity, side.name)
        if first != side.name:
            raise UsageError(
                run.path, f"is a run of {first} and of {side.name}: name it on one side"
            )
    once = {run.identity: run for side in sides for run in side.runs[::-1]}  # the first of each
    return [
        side._replace(runs=[run for run in side.runs if once[run.identity] is run])
        for side in sides
    ]


def in_blocks(sides: Sequence[Side]) -> list[Side] | None:
    """The sides with their runs in order of blocks; None: there are no blocks."""
    if all(side.blocks is not None for side in sides):
        return list(sides)
    if len({len(side.runs) for side in sides}) > 1:
        return None
    ordered = [
        side._replace(runs=sorted(side.runs, key=lambda run: run.start_unix_ns)) for side in sides
    ]
    begins = sorted(
        (run.start_unix_ns, place) for place, side in enumerate(ordered) for run in side.runs
    )
    places = [place for _, place in begins]
    firsts = range(0, len(places), len(sides))
    if any(len({*places[first : first + len(sides)]}) < len(sides) for first in firsts):
        return None
    return [side._replace(blocks=list(range(1, len(side.runs) + 1))) for side in ordered]


def paths_split(words: Sequence[Path], separator: Path) -> list[list[Path]]:
    """A... -- B...; two runs need no separator."""
    if separator not in words and len(words) == 2:
        return [[word] for word in words]
    sides = [list(own) for is_end, own in groupby(words, separator.__eq__) if not is_end]
    if not 1 < len(sides) == words.count(separator) + 1:
        raise UsageError(
            "sides", "name the runs of each side: A... -- B..., or the folder of an experiment"
        )
    return sides


# facts by which a run of commprof-replay says what it replayed, and the options it was given
FACT = "env.COMMPROF_REPLAY_"
FORMAT, VERSION = "commprof-replay-check", 1
MOST_RUNS, MOST_NAMED = 10**6, 3
DIGITS = 12  # of a SHA-256 that is shown


# Result of `replay check`: shares of the job's time inside MPI, the numbers of runs, the replays'
# library, within what the means of rows agree, and the largest rows for which they do not stand.
Checked = namedtuple("Checked", "kit share tested_share jobs replays library margin failing")


def kit_replayed(run: Figures) -> str:
    """The SHA-256 of the kit that it replays; empty: it is no replay."""
    return run.fact(f"{FACT}KIT")


def altered(run: Figures) -> str:
    """gaps none, arrival together: the options by which it makes the calls otherwise than the
    job."""
    return ", ".join(
        f"{key[len(FACT) :].lower()} {value}"
        for key, (value, *_) in sorted(run.facts.items())
        if key.startswith(FACT)
        and key[len(FACT) :] not in ("KIT", "REPEAT")
        and value != "recorded"
    )


def kit_of(sides: Sequence[Side]) -> str:
    """Empty: not all runs are replays of one kit."""
    kits = {kit_replayed(run) for side in sides for run in side.runs}
    return kits.pop() if len(kits) == 1 else ""


def checked_write(path: Path, checked: Checked, mode: int) -> None:
    with written_whole(path, mode) as file:
        json.dump({"format": FORMAT, "version": VERSION, **checked._asdict()}, file, indent=1)
        file.write("\n")


def checked_read(path: Path) -> Checked:
    values = json_read(path)
    try:
        if text_in(values, "format") != FORMAT or whole_in(values, "version", 0, 99) != VERSION:
            raise ValueError(f"it is not version {VERSION} of {FORMAT}")
        return Checked(
            text_in(values, "kit"),
            number_in(values, "share", 0, 1.001),
            number_in(values, "tested_share", 0, 1.001),
            whole_in(values, "jobs", 1, MOST_RUNS),
            whole_in(values, "replays", 1, MOST_RUNS),
            text_in(values, "library"),
            number_in(values, "margin", 0, 1e9),
            tuple(str(name) for name in list_in(values, "failing")),
        )
    except ValueError as error:
        raise ReportError(path, f"is not the result of a check: {error}") from None


def stands_for(sides: Sequence[Side], checked: Checked | None) -> float | None:
    is_known = checked is not None and checked.kit == kit_of(sides) and not _altered(sides)
    return checked.share if checked and is_known else None


def _altered(sides: Sequence[Side]) -> str:
    return next(filter(None, (altered(run) for side in sides for run in side.runs)), "")


def stands_text(sides: Sequence[Side], checked: Checked | None) -> str:
    """For how much of the job the compared replays stand; empty: they are no replays of one kit."""
    kit = kit_of(sides)
    if not kit:
        return ""
    if otherwise := _altered(sides):
        return f"not the job as it ran: {otherwise}"
    if checked is None:
        return (
            "an unknown share of the job: no check of the kit is at hand (hvprof-report replay "
            "check JOB... -- REPLAY... -o FILE; then --check FILE)"
        )
    if checked.kit != kit:
        return f"an unknown share of the job: the check is of kit {checked.kit[:DIGITS]}"
    failing = f"; not for {', '.join(checked.failing)}" if checked.failing else ""
    tested = checked.tested_share
    return (
        f"{units.share(checked.share)} of the job's time inside MPI, "
        f"{f'{units.share(tested)} by a test' if tested else 'as an estimate'}, within "
        f"{units.share(checked.margin)}: "
        f"{units.counted(checked.replays, 'replay')} against {units.counted(checked.jobs, 'run')} "
        f"of the job under {checked.library}{failing}"
    )
