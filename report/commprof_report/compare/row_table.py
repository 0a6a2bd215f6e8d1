"""The rows that all runs of a comparison have, and each side against the first in them.

A framework may cut its messages anew in every run: how gradients are fused depends on a setting,
and on when each of them is ready.

Two such runs do the same work if they have the same steps and a step carries the same bytes; how
many messages carry them is what is compared. Their rows have no sizes in common, so collectives
whose sizes differ from run to run become one row for each call, in nanoseconds per step. So does
negotiation: the number of its rounds depends on the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from statistics import fmean, median

from ..base import Row, benjamini_hochberg, gathered, threshold, units, whole
from .judge import (
    Compared,
    DIFFERENT,
    Judge,
    MIXED,
    OTHER,
    SizeRow,
    known,
    median_known,
)
from .figures import NO_GROUP, PERCENTILES, Figures, Key, Part
from .sides import Side, labels_of


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

    def tested(self, judge: Judge, side: Side, shows_all: bool, is_found: bool) -> list[Compared]:
        """The rows of a side, small ones added up. is_found: the verdict shows a difference, which
        rows are then confirmed to explain, in order, up to the first that differs by chance."""
        least = 0 if shows_all else threshold("compare.small")
        small = [key for key in self.keys if self.share[key] < least]
        shown = self.keys[: len(self.keys) - len(small)] if len(small) > 1 else self.keys
        rows = [self._row(judge, key, side) for key in shown]
        # those that differ, before the first that does not
        differ = takewhile(lambda row: row.outcome in DIFFERENT, rows if is_found else ())
        confirmed = len([*differ])
        if len(small) > 1:
            rows.append(self._other(judge, small, side))
        rows = rows[:confirmed] + _explored(judge, rows[confirmed:])
        whole_ns = self._change_ns(self.keys, side)
        return [
            row._replace(
                is_confirmed=int(place < confirmed),
                part_of_change=row.change_ns / whole_ns if is_found and whole_ns else None,
            )
            for place, row in enumerate(rows)
        ]

    def _row(self, judge: Judge, key: Key, side: Side) -> Compared:
        values = [self.values(key, each) for each in (self.sides[0], side)]
        return self._compared(judge, [key], side, *values)._replace(
            **self._named(key),
            reference_algorithm=_algorithm(self.sides[0], key),
            algorithm=_algorithm(side, key),
        )

    def _compared(
        self,
        judge: Judge,
        keys: Sequence[Key],
        side: Side,
        first: Sequence[float | None],
        second: Sequence[float | None],
    ) -> Compared:
        return judge.contrast(first, second)._replace(
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

    def _other(self, judge: Judge, keys: Sequence[Key], side: Side) -> Compared:
        metrics = {self.metrics[key] for key in keys}
        values = [self.sums(keys, each) for each in (self.sides[0], side)]
        return self._compared(judge, keys, side, *values)._replace(
            call=OTHER,
            communicator="",
            memory_kind="",
            measure="",
            per="rank",
            metric=metrics.pop() if len(metrics) == 1 else MIXED,
        )

    def _count(self, keys: Sequence[Key]) -> int:
        """Calls in a run of the reference."""
        return round(fmean(sum(run.rows[key].count for key in keys) for run in self.sides[0].runs))

    def _change_ns(self, keys: Sequence[Key], side: Side) -> float:
        return median(self.sums(keys, side)) - median(self.sums(keys, self.sides[0]))

    def sizes(self, judge: Judge, are_judged: bool) -> list[Row]:
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
        found = [_best(judge, own) for own in values]
        adjusted = benjamini_hochberg([p for _, p in found])
        marked = [are_judged and p <= 1 - judge.level for p in adjusted]
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


def _explored(judge: Judge, rows: Sequence[Compared]) -> list[Compared]:
    """Unconfirmed rows, which show a difference only if their adjusted p does."""
    adjusted = iter(benjamini_hochberg([row.p for row in rows if row.p is not None]))
    explored = []
    for row in rows:
        p = None if row.p is None else next(adjusted)
        is_lost = row.outcome in DIFFERENT and p is not None and p > 1 - judge.level
        explored.append(row._replace(adjusted_p=p, outcome="unknown" if is_lost else row.outcome))
    return explored


def _best(judge: Judge, values: Sequence[Sequence[float | None]]) -> tuple[int | None, float]:
    """The place of the smallest value, and the p that it is less than each other one; null and 1:
    it is not, beyond chance in this row alone."""
    medians = known(list(map(median_known, values)))
    if len(medians) < max(2, len(values)):
        return None, 1.0
    best = medians.index(min(medians))
    others = [
        judge.contrast(own, values[best]) for place, own in enumerate(values) if place != best
    ]
    if any(found.outcome != "less" for found in others):
        return None, 1.0
    return best, max(found.p or 0.0 for found in others)


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
