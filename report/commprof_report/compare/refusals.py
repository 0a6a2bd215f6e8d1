"""Why runs are not the same experiment: reasons to give no verdict, each with the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from ..base import units
from ..base.thresholds import threshold, whole
from .cuts import NEGOTIATION, alike, calls_aside, step_difference
from .figures import Figures, Key, Row, row_name
from .replays import replay_of
from .sides import Side

KINDS = (
    "work", "filter", "placement", "program", "binding", "partial", "disturbed", "order", "hosts",
    "machine",
)
FILTERS = {"COMMPROF_RANKS": "ranks", "COMMPROF_EXCLUDE": "calls"}
VARIES = ("completion", "probe")  # families whose number of calls depends on the time
MOST_SAID = 3  # rows that are named
ENDED = ("finalize", "end")
DYNAMIC_TUNING = re.compile(r"MVAPICH.?Plus", re.I)  # tunes itself unless told not to


class Refusal(NamedTuple):
    kind: str
    what: str
    way_out: str


class Work(NamedTuple):
    """Rows with equal calls and bytes on every rank of every run, and the others: without set-up,
    polls and calls that only wait. Rows per step are equal by their bytes; negotiation, and beside
    such rows calls that are aside from steps, are no work."""

    same: list[Key]
    uneven: list[Key]


def work_of(sides: Sequence[Side], keys: Sequence[Key]) -> Work:
    """`keys`: rows that any run has."""
    work = Work([], [])
    runs = [run for side in sides for run in side.runs]
    ignored = (
        {NEGOTIATION, *calls_aside(runs, keys)} if any(key.per == "step" for key in keys) else set()
    )
    for key in keys:
        rows = [run.rows.get(key) for run in runs]
        known = next(row for row in rows if row)
        if key.measure == "call" and known.family not in VARIES and key not in ignored:
            is_same = all(row is not None and _is_same(row, known) for row in rows)
            (work.same if is_same else work.uneven).append(key)
    return work


def _is_same(row: Row, known: Row) -> bool:
    own, other = _work_counted(row), _work_counted(known)
    if not row.steps or own.keys() != other.keys():
        return own == other
    return all(alike(own[rank][1], other[rank][1]) for rank in own)


def refusals(sides: Sequence[Side], work: Work, are_paired: bool) -> list[Refusal]:
    runs = [run for side in sides for run in side.runs]
    filtered = list(_filter(sides))
    # what was not recorded on one side is no other work, placement or binding
    of_all = [] if filtered else [
        *_work(sides, work.uneven), *_placement(sides), *_binding(sides),
    ]
    return [
        *of_all,
        *filtered,
        *_program(sides),
        *_partial(runs),
        *([] if are_paired else _order(sides)),
        *_hosts(sides),
    ]


def _filter(sides: Sequence[Side]) -> Iterator[Refusal]:
    """Ranks or calls that were recorded on one side only."""
    for setting, what in FILTERS.items():
        values = [{run.fact(f"settings.{setting}") for run in side.runs} for side in sides]
        if len(set.union(*values)) > 1:
            said = [
                f"{setting} is {one_of({value or 'not set' for value in own})} in {side.name}"
                for side, own in zip(sides, values)
            ]
            way_out = "record both alike; or --allow filter"
            yield Refusal("filter", f"other {what} were recorded: {', '.join(said)}", way_out)


def _work(sides: Sequence[Side], uneven: Sequence[Key]) -> Iterator[Refusal]:
    """Numbers that vary within a side by as much as between the sides are the program's nature."""
    if len({run.world_size for side in sides for run in side.runs}) > 1:
        yield _other_ranks(sides)
        return
    said = []
    for key in uneven:
        rows = [[run.rows.get(key) for run in side.runs] for side in sides]
        for side, own in zip(sides[1:], rows[1:]):
            what = _other_work(rows[0], own)
            if what:
                labels = {
                    group: label for each in sides for run in each.runs
                    for group, label in run.labels.items()
                }
                name = units.call_name(key.call, key.memory_kind, key.measure)
                said.append(
                    f"{row_name(name, key.bytes, labels.get(key.group, ''))}: {what} in {side.name}"
                )
    if said:
        more = f"; and {len(said) - MOST_SAID} more rows" if len(said) > MOST_SAID else ""
        way_out = (
            "compare the same input and number of steps; or --allow work, which "
            "compares the "
            "rows of both per call"
        )
        steps = step_difference(sides)
        what = "; ".join(filter(None, [steps, *said[:MOST_SAID]])) + more
        yield Refusal("work", what, _steps_way_out(sides, steps) + way_out)


def _other_ranks(sides: Sequence[Side]) -> Refusal:
    """Their communicators, and so their rows, are others."""
    said = [
        f"by {units.rank_list({run.world_size for run in side.runs})} ranks in {side.name}"
        for side in sides
    ]
    way_out = "compare runs with the same number of ranks; or --allow work"
    return Refusal("work", f"it is shared {', '.join(said)}", way_out)


def _steps_way_out(sides: Sequence[Side], difference: str) -> str:
    """A framework's messages differ from run to run; only steps show whether the work does."""
    runs = [run for side in sides for run in side.runs]
    if any(run.negotiates for run in runs) and (
        difference or any(run.steps is None for run in runs)
    ):
        return "if each run has the same steps, mark them (man commprof_step); else "
    return ""


def _other_work(reference: Sequence[Row | None], own: Sequence[Row | None]) -> str:
    """In a row per step only bytes are work."""
    is_per_step = any(row and row.steps for row in (*reference, *own))
    calls = "" if is_per_step else _other_number(_calls(reference), _calls(own), "calls")
    return (
        calls or _other_number(_bytes(reference), _bytes(own), "bytes")
        or ("other ranks make the calls" if _are_of_other_ranks(reference, own) else "")
    )


def _calls(rows: Sequence[Row | None]) -> list[int]:
    return [row.count if row else 0 for row in rows]


def _bytes(rows: Sequence[Row | None]) -> list[int]:
    return [row.volume_bytes if row else 0 for row in rows]


def _other_number(first: Sequence[int], second: Sequence[int], noun: str) -> str:
    """The second side's number against the first's; empty: it is not apart from it."""
    is_apart = min(second) > max(first) or max(second) < min(first)
    mean, other = fmean(first), fmean(second)
    if not is_apart or abs(other - mean) <= threshold("compare.work") * max(mean, other):
        return ""
    if not mean or not other:
        return f"{noun} only" if other else f"no {noun}"
    if other >= 2 * mean:
        return f"{other / mean:.3g} times the {noun}"
    return f"{units.share(abs(other / mean - 1))} {'more' if other > mean else 'fewer'} {noun}"


def _are_of_other_ranks(reference: Sequence[Row | None], own: Sequence[Row | None]) -> bool:
    first, second = (
        {tuple(sorted(_work_counted(row).items())) for row in rows if row}
        for rows in (reference, own)
    )
    is_constant = len(first) == len(second) == 1
    return is_constant and first != second and _sums(reference) == _sums(own)


def _sums(rows: Sequence[Row | None]) -> set[tuple[int, int]]:
    return {(0 if row.steps else row.count, row.volume_bytes) for row in rows if row}


def _work_counted(row: Row) -> dict[int, tuple[int, int]]:
    """By rank: calls, which do not count in a row per step, and bytes."""
    return (
        {rank: (0, volume_bytes) for rank, (_, volume_bytes) in row.work.items()} if row.steps
        else row.work
    )


def _whole(side: Side) -> list[Figures]:
    """The runs of which all ranks were read; where the missing ones ran is not known, and the runs
    are refused as partial."""
    return [run for run in side.runs if not run.missing]


def _placement(sides: Sequence[Side]) -> Iterator[Refusal]:
    if len({(run.world_size, run.placement) for side in sides for run in _whole(side)}) > 1:
        said = [
            f"{side.name} has {one_of({layout(run) for run in _whole(side)})}" for side in sides
            if _whole(side)
        ]
        yield Refusal(
            "placement",
            ", ".join(said),
            "run all with the same ranks on each host; or --allow placement",
        )


def layout(run: Figures) -> str:
    """4 ranks on 2 hosts (0-1; 2-3)"""
    hosts = sorted(set(run.placement))
    on_each = [
        units.rank_list(row.rank for row, own in zip(run.ranks, run.placement) if own == host)
        for host in hosts
    ]
    which = f" ({units.shortened('; '.join(on_each), 40)})" if len(hosts) > 1 else ""
    return f"{units.counted(run.world_size, 'rank')} on {units.counted(len(hosts), 'host')}{which}"


def one_of(values: set[str]) -> str:
    ordered = sorted(values)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} (others: {', '.join(ordered[1:])})"


def program_of(run: Figures) -> str:
    """The command line without the program's folder and whatever follows its first dot, since each
    library needs a program of its own. A replay is the kit with its options, wherever that lies."""
    replay = replay_of(run)
    if replay:
        return str(replay)
    program, _, arguments = run.fact("command_line").partition(" ")
    name = (program or run.fact("program")).rpartition("/")[2]
    return f"{name.partition('.')[0]} {arguments}".strip()


def _program(sides: Sequence[Side]) -> Iterator[Refusal]:
    programs = [{program_of(run) for run in side.runs} for side in sides]
    if len(set.union(*programs)) > 1:
        said = [
            f"{side.name} is {units.shortened(one_of(own), 100)}"
            for side, own in zip(sides, programs)
        ]
        yield Refusal(
            "program",
            "; ".join(said),
            "compare one program with the same arguments; or --allow program",
        )


def _binding(sides: Sequence[Side]) -> Iterator[Refusal]:
    if len({_widths(run) for side in sides for run in _whole(side) if all(run.masks)}) > 1:
        said = [
            f"{side.name}: {one_of({binding(run) for run in _whole(side)})}" for side in sides
            if _whole(side)
        ]
        options = (
            "Open MPI: --bind-to core, MPICH: -bind-to core, Intel MPI: "
            "I_MPI_PIN_DOMAIN=core, srun: --cpu-bind=cores"
        )
        way_out = f"bind all alike ({options}); or --allow binding"
        yield Refusal("binding", f"cores that a rank may use: {', '.join(said)}", way_out)


def _widths(run: Figures) -> tuple:
    """How many cores each rank may use, and how many they use together on each host."""
    together: dict[int, int] = {}
    for host, mask in zip(run.placement, run.masks):
        together[host] = together.get(host, 0) | mask
    return tuple(_width(mask) for mask in run.masks), tuple(
        _width(mask) for mask in together.values()
    )


def _width(mask: int) -> int:
    return bin(mask).count("1")


def binding(run: Figures) -> str:
    """1 (of 4 in use): how many cores each rank may use, and all together."""
    if not all(run.masks):
        return "unknown"
    own, together = _widths(run)
    return f"{units.rank_list(set(own))} (of {sum(together)} in use)"


def _partial(runs: Sequence[Figures]) -> Iterator[Refusal]:
    said = [f"{run.path}: {what}" for run in runs for what in _faults(run)]
    parts = [
        fmean(row.counted_ns / row.wall_ns for row in run.ranks if row.wall_ns) for run in runs
        if any(row.wall_ns for row in run.ranks) and not replay_of(run)
    ]
    if parts and max(parts) - min(parts) > threshold("compare.counted"):
        said.append(
            f"between {units.share(min(parts))} and {units.share(max(parts))} of the wall time was "
            "counted"
        )
    if said:
        more = f"; and {len(said) - MOST_SAID} more" if len(said) > MOST_SAID else ""
        way_out = (
            "repeat such a run (in an experiment: remove its folder, then resume) or leave "
            "it out; or --allow partial"
        )
        yield Refusal("partial", "; ".join(said[:MOST_SAID]) + more, way_out)


def _faults(run: Figures) -> Iterator[str]:
    early = [row.rank for row in run.ranks if row.state not in ENDED]
    if early:
        yield f"{units.rank_names(early)} did not reach MPI_Finalize"
    if run.missing:
        yield f"{units.counted(run.missing, 'rank')} missing"
    unrecorded = sum(row.unrecorded_calls for row in run.ranks)
    if unrecorded:
        yield f"{units.counted(unrecorded, 'call')} not recorded"


def _order(sides: Sequence[Side]) -> Iterator[Refusal]:
    """With one run a side there is no verdict anyway."""
    if max(len(side.runs) for side in sides) == 1:
        return
    times = sorted(
        (
            min(run.start_unix_ns for run in side.runs),
            max(run.start_unix_ns for run in side.runs), side.name,
        )
        for side in sides
    )
    for (_, last, before), (first, _, after) in zip(times, times[1:]):
        if last < first:
            what = (
                f"all runs of {before} were made before all of {after}: a change of the " "machine "
                "would look the same as a difference"
            )
            yield Refusal("order", what, "alternate the sides (A B B A ...); or --allow order")
            return


def _hosts(sides: Sequence[Side]) -> Iterator[Refusal]:
    """With one run a side there is no verdict anyway."""
    if max(len(side.runs) for side in sides) == 1:
        return
    sets = [{frozenset(row.host or "" for row in run.ranks) for run in side.runs} for side in sides]
    fewest = whole("compare.host-sets")
    for side, own in zip(sides[1:], sets[1:]):
        if not own & sets[0] and min(len(own), len(sets[0])) < fewest:
            on = [
                units.shortened(", ".join(sorted(set().union(*each))), 40)
                for each in (sets[0], own)
            ]
            what = (
                f"{sides[0].name} ran on {on[0]}, {side.name} on {on[1]}: a difference of the "
                "nodes would look the same"
            )
            way_out = (
                f"run all on the same nodes, or each side on {fewest} sets of "
                "nodes; or --allow hosts"
            )
            yield Refusal("hosts", what, way_out)
            return


def tunes_itself(run: Figures) -> bool:
    """The library changes its algorithms while it runs."""
    told = {
        value for name in ("MPIR_CVAR_ENABLE_DYNAMIC_TUNING", "MVP_ENABLE_DYNAMIC_TUNING")
        for value in run.facts.get(f"env.{name}", ())
    }
    is_dynamic = bool(DYNAMIC_TUNING.search(run.fact("mpi_version"))) and not told & {
        "0", "no", "false",
    }
    return is_dynamic or run.fact("env.I_MPI_TUNING_MODE").startswith("auto")
