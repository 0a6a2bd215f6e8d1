"""The runs of each side of a comparison, and which of them belong to one block.

A block holds one run of each side, made next to each other in time. Runs of an experiment have
their blocks from its folder; other runs are in blocks if they alternate: in order of time, each
next group of as many runs as there are sides has one of each.

Runs may be replays (commprof-replay(1)) of a kit, with options; a check of that kit has found for
which share of the job's time they stand.

The rows that all runs of a comparison have, and each side against the first in them.

A framework may cut its messages anew in every run: how gradients are fused depends on a setting,
and on when each of them is ready.

Two such runs do the same work if they have the same steps and a step carries the same bytes; how
many messages carry them is what is compared. Their rows have no sizes in common, so collectives
whose sizes differ from run to run become one row for each call, in nanoseconds per step. So does
negotiation: the number of its rounds depends on the time.
"""

from __future__ import annotations

import json
import re
from collections import Counter, namedtuple
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, takewhile
from operator import attrgetter
from os.path import commonprefix
from pathlib import Path
from string import ascii_uppercase
from ..base import (
    ReportError,
    Row,
    UsageError,
    benjamini_hochberg,
    by,
    gathered,
    format_read,
    list_in,
    number_in,
    text_in,
    threshold,
    units,
    whole,
    whole_in,
    written_whole,
)
from ..experiment import plan as plans
from .figures import Figures, Group, Key, NO_GROUP, PERCENTILES, Part
from statistics import fmean, median
from .judge import Compared, DIFFERENT, MIXED, OTHER, Rules, contrast, SizeRow, known, median_known


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
    names = [[path.name or path.resolve().name for path in side] for side in paths]
    found = [re.sub(r"[-_.\d\s]+$", "", commonprefix(own)) if own[1:] else own[0] for own in names]
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
    failed = Counter(run.arm for run in runs if run.status == plans.FAILED)
    elapsed_ns = {
        arm.name: [done[arm.name, block].seconds * 1e9 for block in blocks] for arm in plan.arms
    }
    bare_ns = {arm.of: elapsed_ns[arm.name] for arm in plan.arms if arm.is_bare}
    return [
        Side(
            arm.name,
            [],
            blocks,
            failed[arm.name],
            arm.of,
            elapsed_ns[arm.name],
            bare_ns.get(arm.name),
            [folder / done[arm.name, block].folder for block in blocks],
        )
        for arm in profiled
    ]


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
    return [
        side._replace(runs=[first for first, *_ in by(side.runs, attrgetter("identity")).values()])
        for side in sides
    ]


def in_blocks(sides: Sequence[Side]) -> list[Side] | None:
    """The sides with their runs in order of blocks; None: there are no blocks."""
    if all(side.blocks is not None for side in sides):
        return list(sides)
    if len({len(side.runs) for side in sides}) > 1:
        return None
    ordered = [sorted(side.runs, key=attrgetter("start_unix_ns")) for side in sides]
    begins_ns = [[run.start_unix_ns for run in block] for block in zip(*ordered)]
    if any(max(block) >= min(later) for block, later in zip(begins_ns, begins_ns[1:])):
        return None
    numbers = [*range(1, len(begins_ns) + 1)]
    return [side._replace(runs=runs, blocks=numbers) for side, runs in zip(sides, ordered)]


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
    return format_read(
        path,
        FORMAT,
        VERSION,
        lambda values: Checked(
            text_in(values, "kit"),
            number_in(values, "share", 0, 1.001),
            number_in(values, "tested_share", 0, 1.001),
            whole_in(values, "jobs", 1, MOST_RUNS),
            whole_in(values, "replays", 1, MOST_RUNS),
            text_in(values, "library"),
            number_in(values, "margin", 0, 1e9),
            tuple(str(name) for name in list_in(values, "failing")),
        ),
    )


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


def keys_of(sides: Sequence[Side]) -> list[Key]:
    """The rows that any run has."""
    return list(dict.fromkeys(key for side in sides for run in side.runs for key in run.rows))


class RowTable:
    """keys: in order of their share of the time; unmatched: rows that some run lacks."""

    def __init__(self, sides: Sequence[Side], keys: Sequence[Key], metric: str) -> None:
        self.sides = sides
        self.runs = [run for side in sides for run in side.runs]
        self.labels = labels_of(sides)
        matched = [key for key in keys if all(key in run.rows for run in self.runs)]
        self.unmatched = len(keys) - len(matched)
        wholes = [sum(row.total_ns for row in run.rows.values()) or 1 for run in self.runs]
        self.share = {  # of the time of all rows, mean over the runs
            key: fmean(run.rows[key].total_ns / whole for run, whole in zip(self.runs, wholes))
            for key in matched
        }
        self.keys = sorted(matched, key=lambda key: -self.share[key])
        self.metrics = {key: _metric_of_row(self.runs, key, metric) for key in self.keys}

    def values(self, key: Key, side: Side) -> list[float | None]:
        return [run.rows[key].value(self.metrics[key]) for run in side.runs]

    def sums(self, keys: Sequence[Key], side: Side) -> list[float]:
        """Per rank, as if each call took its row's value."""
        return [
            sum(run.rows[key].time_ns(self.metrics[key]) for key in keys) / len(run.ranks)
            for run in side.runs
        ]

    def as_called(self, side: Side) -> list[float | None]:
        """Per rank, as if each run made the reference's calls, in the rows that all runs have."""
        calls = {
            key: fmean(run.rows[key].values / len(run.ranks) for run in self.sides[0].runs)
            for key in self.keys
        }
        values = [
            [run.rows[key].value(self.metrics[key]) for key in self.keys] for run in side.runs
        ]
        return [
            None
            if None in own or not own
            else sum(value * calls[key] for key, value in zip(self.keys, known(own)))
            for own in values
        ]

    def tested(self, rules: Rules, side: Side, shows_all: bool, is_found: bool) -> list[Compared]:
        """The rows of a side, small ones added up. is_found: the verdict shows a difference, which
        rows are then confirmed to explain, in order, up to the first that differs by chance."""
        least = 0 if shows_all else threshold("compare.small")
        small = [key for key in self.keys if self.share[key] < least]
        shown = self.keys[: len(self.keys) - len(small)] if len(small) > 1 else self.keys
        rows = [
            self._row(rules, side, [key], partial(self.values, key))._replace(
                **self._named(key),
                reference_algorithm=_algorithm(self.sides[0], key),
                algorithm=_algorithm(side, key),
            )
            for key in shown
        ]
        # those that differ, before the first that does not
        differ = takewhile(lambda row: row.outcome in DIFFERENT, rows if is_found else ())
        confirmed = len([*differ])
        if len(small) > 1:
            metrics = {self.metrics[key] for key in small}
            rows.append(
                self._row(rules, side, small, partial(self.sums, small))._replace(
                    **dict.fromkeys(("communicator", "memory_kind", "measure"), ""),
                    call=OTHER,
                    per="rank",
                    metric=metrics.pop() if len(metrics) == 1 else MIXED,
                )
            )
        rows = rows[:confirmed] + _explored(rules, rows[confirmed:])
        whole_ns = self._change_ns(self.keys, side)
        return [
            row._replace(
                is_confirmed=int(place < confirmed),
                part_of_change=row.change_ns / whole_ns if is_found and whole_ns else None,
            )
            for place, row in enumerate(rows)
        ]

    def _row(
        self,
        rules: Rules,
        side: Side,
        keys: Sequence[Key],
        values: Callable[[Side], Sequence[float | None]],
    ) -> Compared:
        return contrast(*map(values, (self.sides[0], side)), rules=rules)._replace(
            side=side.name,
            reference=self.sides[0].name,
            rows=len(keys),
            count=self._count(keys),
            share=sum(self.share[key] for key in keys),
            change_ns=self._change_ns(keys, side),
        )

    def _named(self, key: Key) -> dict[str, object]:
        return {
            "call": key.call,
            "communicator": self.labels.get(key.group, ""),
            "bytes": key.bytes,
            "memory_kind": key.memory_kind,
            "measure": key.measure,
            "metric": self.metrics[key],
            "per": key.per,
        }

    def _count(self, keys: Sequence[Key]) -> int:
        """Calls in a run of the reference."""
        return round(fmean(sum(run.rows[key].count for key in keys) for run in self.sides[0].runs))

    def _change_ns(self, keys: Sequence[Key], side: Side) -> float:
        return median(self.sums(keys, side)) - median(self.sums(keys, self.sides[0]))

    def sizes(self, rules: Rules, are_judged: bool) -> list[Row]:
        """Without controls, unless there is nothing else."""
        own = [side for side in self.sides if not side.of]
        sides = own if len(own) > 1 else self.sides
        keys = sorted(
            self.keys,
            key=lambda key: (
                key.call,
                self.labels.get(key.group, ""),
                key.bytes or 0,
                key.memory_kind,
            ),
        )
        values = [[self.values(key, side) for side in sides] for key in keys]
        found = [_best(rules, own) for own in values]
        adjusted = benjamini_hochberg([p for _, p in found])
        marked = [are_judged and p <= 1 - rules.level for p in adjusted]
        return [
            SizeRow(
                **self._named(key),
                count=self._count([key]),
                sides=tuple(side.name for side in sides),
                values_ns=tuple(map(median_known, own)),
                best=None if best is None or not is_marked else sides[best].name,
            )
            for key, own, (best, _), is_marked in zip(keys, values, found, marked)
        ]


def _algorithm(side: Side, key: Key) -> str:
    """Empty: not known, or not the same in all runs."""
    found = {run.algorithm(key) for run in side.runs}
    return found.pop() if len(found) == 1 else ""


def _metric_of_row(runs: Sequence[Figures], key: Key, metric: str) -> str:
    """Transfer, if it is known in all runs; the figures of the run are not made of rows, which
    then have their time."""
    if metric in PERCENTILES:
        return metric
    is_split = all(run.rows[key].is_split for run in runs)
    return "transfer" if metric == "transfer" and is_split else "time"


def _explored(rules: Rules, rows: Sequence[Compared]) -> list[Compared]:
    """Unconfirmed rows, which show a difference only if their adjusted p does."""
    adjusted = iter(benjamini_hochberg([row.p for row in rows if row.p is not None]))
    ps = [None if row.p is None else next(adjusted) for row in rows]
    return [
        row._replace(
            adjusted_p=p,
            outcome="unknown"
            if row.outcome in DIFFERENT and p is not None and p > 1 - rules.level
            else row.outcome,
        )
        for row, p in zip(rows, ps)
    ]


def _best(rules: Rules, values: Sequence[Sequence[float | None]]) -> tuple[int | None, float]:
    """The place of the smallest value, and the p that it is less than each other one; null and 1:
    it is not, beyond chance in this row alone."""
    medians = known(list(map(median_known, values)))
    if len(medians) < max(2, len(values)):
        return None, 1.0
    best = medians.index(min(medians))
    others = [
        contrast(own, values[best], rules=rules)
        for place, own in enumerate(values)
        if place != best
    ]
    if any(found.outcome != "less" for found in others):
        return None, 1.0
    return best, max(found.p or 0.0 for found in others)


NEGOTIATION = Key("negotiation", NO_GROUP, None, "host", "call", "step")


def rows_per_step(sides: Sequence[Side], uneven: Sequence[Key]) -> list[Side]:
    """The sides with rows per step in place of uneven collectives; unchanged if the runs have not
    the same steps. uneven: rows whose calls or bytes differ between any two runs."""
    runs = [run for side in sides for run in side.runs]
    are_alike = all(run.steps is not None for run in runs) and not step_difference(sides)
    joined = _joined(runs, uneven) if are_alike else {}
    return [
        side._replace(runs=[run._replace(joined=joined) for run in side.runs]) for side in sides
    ]


def _joined(runs: Sequence[Figures], uneven: Sequence[Key]) -> dict[Part, Key]:
    """The row per step that takes each part of a row."""
    negotiates = any(run.negotiates for run in runs)
    joined: dict[Part, Key] = {}
    for call, keys in _sizes_of_calls(uneven, runs).items():
        # without negotiation small gradients count as control, by their size: they are joined with
        # the others if the bytes of both together are the same in all runs to the byte
        are_alike = not negotiates and len({_bytes(run, keys) for run in runs}) == 1
        kinds = ("bulk", "control") if are_alike else ("bulk",)
        joined.update({(key, kind): call._replace(per="step") for key in keys for kind in kinds})
    if negotiates:
        parts = [each for run in runs for each in run.parts.items()]
        joined.update(
            (part, NEGOTIATION)
            for part, row in parts
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
        call: keys
        for call, keys in found.items()
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


def step_difference(sides: Sequence[Side]) -> str:
    """In what the steps of some side differ from those of the first; empty: in nothing, or they are
    not known in all runs."""
    works = [[run.steps for run in side.runs if run.steps is not None] for side in sides]
    if any(len(own) < len(side.runs) for own, side in zip(works, sides)):
        return ""
    for side, own in zip(sides[1:], works[1:]):
        both = works[0], own
        sizes = [[work.bytes for work in each if work.bytes is not None] for each in both]
        if all(sizes) and not alike(*map(median, sizes)):
            first, second = (units.size(median(each)) for each in sizes)
            return f"steps of {first} in {sides[0].name}, of {second} in {side.name}"
        counts = [median(work.count for work in each) for each in both]
        if not alike(*counts) and abs(counts[1] - counts[0]) > whole("compare.lost-steps"):
            first, second = map(units.count, counts)
            return f"{first} steps in {sides[0].name}, {second} in {side.name}"
    return ""


def alike(first: float, second: float) -> bool:
    """Numbers of steps, of bytes of a step, and what follows from them."""
    return abs(second - first) <= threshold("compare.same-steps") * max(first, second)
