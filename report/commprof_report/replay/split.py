"""The parts of a row's time, by replays of one kit that differ in gaps, arrival and buffers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..base.errors import ReportError
from ..base.thresholds import threshold
from ..compare.columns import DIFFERENT
from ..compare.comparison import with_groups_of
from ..compare.figures import Figures, Key, Row
from ..compare.judge import Judge, median_known
from ..compare.replays import RECORDED, REPEAT, replay_of

LEVEL = threshold("compare.level")
KINDS = {  # by gaps, arrival, buffers
    (RECORDED, RECORDED, RECORDED): "recorded",
    (RECORDED, "together", RECORDED): "together",
    (RECORDED, "together", "hot"): "hot",
    ("none", RECORDED, RECORDED): "none",
    (RECORDED, "barrier", RECORDED): "barrier",
    ("none", "barrier", RECORDED): "barrier",
}
PARTS = {  # by how much the first kind takes longer than the second
    "arrival": ("recorded", "together"), "cache": ("together", "hot"),
    "pipelining": ("none", "together"),
}
STARTING = "MPI_I"

Runs = Mapping[str, Sequence[Figures]]  # by kind


# A row, with the mean time of a call in each kind of replay: recorded = library + cache + arrival.
# null: there is no such replay, or the call is no blocking collective, before which alone replays
# bring the ranks together. found: the parts that are beyond chance; null: too few runs.
SplitRow = namedtuple(
    "SplitRow",
    "call communicator bytes measure count share recorded_ns together_ns hot_ns none_ns "
    "barrier_ns library_ns cache_ns arrival_ns pipelining_ns found",
)


class Split(NamedTuple):
    """runs: how many there are of each kind. chance: parts that may be chance in all rows together;
    null: too few runs to tell."""

    rows: list[SplitRow]
    runs: dict[str, int]
    chance: list[str] | None

    def share(self, part: str) -> float | None:
        """The part of the time inside MPI in rows of which it is known."""
        known = [
            (row.share, value / row.recorded_ns) for row in self.rows
            if row.recorded_ns and (value := getattr(row, f"{part}_ns")) is not None
        ]
        return sum(share * part_of_row for share, part_of_row in known) if known else None

    @property
    def covered(self) -> float:
        """Share of the time inside MPI in rows that are split."""
        return sum(row.share for row in self.rows if row.library_ns is not None)


def is_possible(runs: Sequence[Figures]) -> bool:
    """Replays of one kit, as recorded and in another way."""
    found = [replay_of(run) for run in runs]
    is_one = None not in found and len({replay.kit for replay in found if replay}) == 1
    kinds = {kind_of(run) for run in runs} if is_one else set()
    return "recorded" in kinds and len(kinds - {None}) > 1


def by_kind(runs: Sequence[Figures]) -> dict[str, list[Figures]]:
    """The runs by what their profiles say of them, with communicators under one description."""
    kits = {replay.kit if (replay := replay_of(run)) else "" for run in runs}
    found: dict[str, list[Figures]] = {}
    for run in with_groups_of(runs[0], runs):
        kind = kind_of(run)
        if not kind:
            said = replay_of(run) or "its profile does not say that it is one"
            raise ReportError(run.path, f"is none of the replays that are compared: {said}")
        found.setdefault(kind, []).append(run)
    if len(kits) > 1:
        raise ReportError(runs[0].path, "and the others are no replays of one kit")
    if "recorded" not in found or len(found) < 2:
        raise ReportError(
            runs[0].path, "is not enough: there must be a replay as recorded, and one with other "
            "--arrival, --gaps or --buffers"
        )
    return found


def kind_of(run: Figures) -> str | None:
    """None: its profile says nothing of this."""
    replay = replay_of(run)
    if not replay:
        return None
    options = dict(replay.options)
    options.pop(REPEAT, None)
    asked = tuple(options.pop(name, RECORDED) for name in ("GAPS", "ARRIVAL", "BUFFERS"))
    return None if options else KINDS.get(asked)  # type: ignore[arg-type]


def split(runs: Runs) -> Split:
    first, numbers = runs["recorded"][0], {
        kind: len(runs[kind]) for kind in dict.fromkeys(KINDS.values()) if kind in runs
    }
    whole_ns = sum(row.total_ns for key, row in first.rows.items() if key.measure == "call")
    rows = [
        _split(key, row, runs, whole_ns) for key, row in first.rows.items()
        if row.family not in ("setup", "communicator") and key.measure == "call" and row.count
    ]
    split_keys = [key for key in first.rows if _is_split(key, first.rows[key])]
    found = _found({kind: _totals(own, first, split_keys) for kind, own in runs.items()})
    chance = None if found is None else [part for part in PARTS if part not in found]
    return Split(sorted(rows, key=lambda row: -row.share), numbers, chance)


def _is_split(key: Key, row: Row) -> bool:
    is_blocking = row.family == "collective" and not key.call.startswith(STARTING)
    return key.measure == "call" and is_blocking and bool(row.count)


def _totals(
    runs: Sequence[Figures], first: Figures, keys: Sequence[Key]
) -> list[float | None]:
    """Time of each run in these rows, as if it had made the calls of the first one."""
    return [
        sum((run.rows[key].value("time") or 0) * first.rows[key].count
            for key in keys if key in run.rows)
        for run in runs
    ]


def _found(values: Mapping[str, Sequence[float | None]]) -> list[str] | None:
    """The parts that are beyond chance; null: too few runs."""
    outcomes = {
        part: Judge(False, LEVEL, 0.0).contrast(values[other], values[kind]).outcome
        for part, (kind, other) in PARTS.items() if kind in values and other in values
    }
    if not outcomes or "none" in outcomes.values():
        return None
    return [part for part, outcome in outcomes.items() if outcome in DIFFERENT]


def _split(key: Key, row: Row, runs: Runs, whole_ns: int) -> SplitRow:
    values = {
        kind: [run.rows[key].value("time") if key in run.rows else None for run in own]
        for kind, own in runs.items()
    }
    means = {kind: median_known(own) for kind, own in values.items()}
    parts: dict[str, float | None] = dict.fromkeys(("library", *PARTS))
    found: list[str] | None = None
    if _is_split(key, row):
        for part, (kind, other) in PARTS.items():
            first, second = means.get(kind), means.get(other)
            parts[part] = None if first is None or second is None else first - second
        parts["library"] = means.get("hot") or means.get("together")
        found = _found(values)
    return SplitRow(
        key.call, runs["recorded"][0].labels.get(key.group, ""), key.bytes, key.measure, row.count,
        row.total_ns / (whole_ns or 1),
        **{f"{kind}_ns": means.get(kind) for kind in dict.fromkeys(KINDS.values())},
        **{f"{part}_ns": value for part, value in parts.items()},
        found=None if found is None else ", ".join(found),
    )
