"""Why runs are not the same experiment: reasons to give no verdict, each with the way out. Among
them are other work on the cores of the ranks, and a machine that was slower for one side, by what
was measured on its hosts before each run.

What disturbs both sides alike makes the interval wider, and is in it already. So it is a reason
against a verdict only if it differs between the sides, or if most blocks have it: then the host's
scheduler was measured. Otherwise a note has its size. A run is as disturbed as its ranks waited for
cores on average. The sides are compared by the rank that waited most, which holds up the others: of
more ranks one waits longer, but so it does on both sides.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import fmean, median
from typing import Any

from ..base import threshold, units, whole
from .figures import Figures, Key, Row, cores_in, row_name
from .judge import Judge, known
from .row_table import NEGOTIATION, alike, calls_aside, step_difference
from .sides import DIGITS, Side, kit_replayed, labels_of

MOST_SAID = 3  # rows that are named


FEWEST_SETS = whole("compare.host-sets")
WAYS_OUT = {  # by kind
    "work": "compare the same ranks, input and number of steps, marked where a framework "
    "negotiates (man commprof_step)",
    "filter": "record both alike",
    "placement": "run all with the same ranks on each host",
    "program": "compare one program with the same arguments",
    "binding": "bind all alike (Open MPI: --bind-to core, MPICH: -bind-to core, Intel MPI: "
    "I_MPI_PIN_DOMAIN=core, srun: --cpu-bind=cores)",
    "partial": "repeat such a run (in an experiment: remove its folder, then resume) or leave it "
    "out",
    "disturbed": "run on nodes of its own with a core for each rank",
    "order": "alternate the sides (A B B A ...)",
    "hosts": f"run all on the same nodes, or each side on {FEWEST_SETS} sets of nodes",
    "machine": "run more blocks on a machine that nothing else uses",
}
KINDS = tuple(WAYS_OUT)


class Refusal(namedtuple("Refusal", "kind what")):
    @property
    def way_out(self) -> str:
        per_call = ", which compares the rows of both per call" if self.kind == "work" else ""
        return f"{WAYS_OUT[self.kind]}; or --allow {self.kind}{per_call}"


# Rows with equal calls and bytes on every rank of every run, and the others: without set-up, polls
# and calls that only wait. Rows per step are equal by their bytes; negotiation, and beside such
# rows calls that are aside from steps, are no work.
Work = namedtuple("Work", "same uneven")


def work_of(sides: Sequence[Side], keys: Sequence[Key]) -> Work:
    """`keys`: rows that any run has."""
    work = Work([], [])
    runs = [run for side in sides for run in side.runs]
    ignored = (
        {NEGOTIATION, *calls_aside(runs, keys)} if any(key.per == "step" for key in keys) else set()
    )
    for key in keys:
        rows = [run.rows.get(key) for run in runs]
        known = next(filter(None, rows))
        varies = known.family in ("completion", "probe")  # with the time
        if key.measure == "call" and not varies and key not in ignored:
            is_same = all(row is not None and _is_same(row, known) for row in rows)
            (work.same if is_same else work.uneven).append(key)
    return work


def _is_same(row: Row, known: Row) -> bool:
    if not row.steps or row.bytes.keys() != known.bytes.keys():
        return _work_counted(row) == _work_counted(known)
    return all(alike(own, known.bytes[rank]) for rank, own in row.bytes.items())


def refusals(sides: Sequence[Side], work: Work, are_paired: bool) -> list[Refusal]:
    runs = [run for side in sides for run in side.runs]
    filtered, unlike = (
        [refusal for row in table for refusal in _unlike(sides, *row)] for table in (RECORDED, RUN)
    )
    # with one run a side there is no verdict anyway
    are_several = max(len(side.runs) for side in sides) > 1
    # what was not recorded on one side is no other work, placement or binding
    of_all = [] if filtered else [*_work(sides, work.uneven), *unlike]
    return [
        *of_all,
        *filtered,
        *_unlike(sides, *PROGRAM),
        *_partial(runs),
        *(_order(sides) if are_several and not are_paired else ()),
        *(_hosts(sides) if are_several else ()),
    ]


def _unlike(
    sides: Sequence[Side],
    kind: str,
    head: str,
    of: Callable[[Figures], Any],
    text: Callable[[Figures], str],
) -> Iterator[Refusal]:
    """If runs differ in this, or in that of it which is known: what each side has."""
    known = {side.name: [run for run in side.runs if of(run) is not None] for side in sides}
    if len({of(run) for runs in known.values() for run in runs}) > 1:
        said = [f"{one_of(set(map(text, runs)))} in {name}" for name, runs in known.items() if runs]
        yield Refusal(kind, f"{head}: {'; '.join(said)}")


def _work(sides: Sequence[Side], uneven: Sequence[Key]) -> Iterator[Refusal]:
    """Numbers that vary within a side by as much as between the sides are the program's nature."""
    shared = [*_unlike(sides, "work", *OF_RANKS)]
    if shared:
        yield from shared
        return
    said, labels = [], labels_of(sides)
    for key in uneven:
        rows = [[run.rows.get(key) for run in side.runs] for side in sides]
        for side, own in zip(sides[1:], rows[1:]):
            what = _other_work(rows[0], own)
            if what:
                name = units.call_name(key.call, key.memory_kind, key.measure)
                said.append(
                    f"{row_name(name, key.bytes, labels.get(key.group, ''))}: {what} in {side.name}"
                )
    if said:
        more = f"; and {len(said) - MOST_SAID} more rows" if len(said) > MOST_SAID else ""
        what = "; ".join(filter(None, [step_difference(sides), *said[:MOST_SAID]])) + more
        yield Refusal("work", what)


def _other_work(reference: Sequence[Row | None], own: Sequence[Row | None]) -> str:
    """In a row per step only bytes are work."""
    is_per_step = any(row and row.steps for row in (*reference, *own))
    calls = "" if is_per_step else _other_number(reference, own, "count", "calls")
    return (
        calls
        or _other_number(reference, own, "volume_bytes", "bytes")
        or ("other ranks make the calls" if _are_of_other_ranks(reference, own) else "")
    )


def _other_number(
    reference: Sequence[Row | None], own: Sequence[Row | None], name: str, noun: str
) -> str:
    """The reference's number and the side's, means of the runs; empty: they are not apart."""
    first, second = ([getattr(row, name, 0) for row in rows] for rows in (reference, own))
    is_apart = min(second) > max(first) or max(second) < min(first)
    both = fmean(first), fmean(second)
    if not is_apart or abs(both[1] - both[0]) <= threshold("compare.work") * max(both):
        return ""
    return f"{' -> '.join(units.count(round(each)) for each in both)} {noun}"


def _are_of_other_ranks(reference: Sequence[Row | None], own: Sequence[Row | None]) -> bool:
    works = [[_work_counted(row) for row in rows if row] for rows in (reference, own)]
    sums = [[[sum(counted.values()) for counted in work] for work in each] for each in works]
    is_constant = all(work == each[0] for each in works for work in each)
    return is_constant and works[0][:1] != works[1][:1] and sums[0][:1] == sums[1][:1]


def _work_counted(row: Row) -> list[dict[int, int]]:
    """By rank: bytes, and calls, which do not count in a row per step."""
    return [row.bytes] if row.steps else [row.bytes, row.calls]


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
    library needs a program of its own. A replay is the kit, wherever that lies."""
    if kit_replayed(run):
        return f"replay of kit {kit_replayed(run)[:DIGITS]}"
    program, _, arguments = run.fact("command_line").partition(" ")
    name = (program or run.fact("program")).rpartition("/")[2]
    return f"{name.partition('.')[0]} {arguments}".strip()


def _cores(run: Figures) -> tuple | None:
    """How many cores each rank may use, and how many they use together on each host; null: not
    known."""
    return (
        None
        if run.missing or not all(run.masks)
        else (
            tuple(map(cores_in, run.masks)),
            tuple(map(cores_in, run.masks_of_hosts.values())),
        )
    )


def binding(run: Figures) -> str:
    """1 (of 4 in use): how many cores each rank may use, and all together."""
    if not all(run.masks):
        return "unknown"
    together = sum(map(cores_in, run.masks_of_hosts.values()))
    return f"{units.rank_list(set(map(cores_in, run.masks)))} (of {together} in use)"


def _partial(runs: Sequence[Figures]) -> Iterator[Refusal]:
    said = [f"{run.path}: {what}" for run in runs for what in _faults(run)]
    parts = [
        fmean(row.counted_ns / row.wall_ns for row in run.ranks if row.wall_ns)
        for run in runs
        if any(row.wall_ns for row in run.ranks) and not kit_replayed(run)
    ]
    if parts and max(parts) - min(parts) > threshold("compare.counted"):
        said.append(
            f"between {units.share(min(parts))} and {units.share(max(parts))} of the wall time was "
            "counted"
        )
    if said:
        more = f"; and {len(said) - MOST_SAID} more" if len(said) > MOST_SAID else ""
        yield Refusal("partial", "; ".join(said[:MOST_SAID]) + more)


def _faults(run: Figures) -> list[str]:
    early = [row.rank for row in run.ranks if row.state not in ("finalize", "end")]
    unrecorded = sum(row.unrecorded_calls for row in run.ranks)
    faults = {
        f"{units.rank_names(early)} did not reach MPI_Finalize": early,
        f"{units.counted(run.missing, 'rank')} missing": run.missing,
        f"{units.counted(unrecorded, 'call')} not recorded": unrecorded,
    }
    return [text for text, is_found in faults.items() if is_found]


def _order(sides: Sequence[Side]) -> list[Refusal]:
    times = sorted(
        (
            min(run.start_unix_ns for run in side.runs),
            max(run.start_unix_ns for run in side.runs),
            side.name,
        )
        for side in sides
    )
    said = (
        f"all runs of {before} were made before all of {after}: a change of the machine would look "
        "the same as a difference"
        for (_, last, before), (first, _, after) in zip(times, times[1:])
        if last < first
    )
    return [Refusal("order", what) for what in islice(said, 1)]


def _hosts(sides: Sequence[Side]) -> list[Refusal]:
    sets = [{frozenset(row.host or "" for row in run.ranks) for run in side.runs} for side in sides]
    ran = [f"on {units.shortened(', '.join(sorted(set().union(*own))), 40)}" for own in sets]
    said = (
        f"{sides[0].name} ran {ran[0]}, {side.name} {on}: a difference of the nodes would look the "
        "same"
        for side, own, on in zip(sides[1:], sets[1:], ran[1:])
        if not own & sets[0] and min(len(own), len(sets[0])) < FEWEST_SETS
    )
    return [Refusal("hosts", what) for what in islice(said, 1)]


# in what all runs must be alike: kind, what is said, what must be equal, in words
OF_RANKS = (
    "numbers of ranks differ",
    lambda run: run.world_size,
    lambda run: units.counted(run.world_size, "rank"),
)
RECORDED = (
    (
        "filter",
        "recorded ranks differ",
        lambda run: run.fact("settings.COMMPROF_RANKS"),
        lambda run: f"COMMPROF_RANKS {run.fact('settings.COMMPROF_RANKS') or 'not set'}",
    ),
    (
        "filter",
        "recorded calls differ",
        lambda run: run.fact("settings.COMMPROF_EXCLUDE"),
        lambda run: f"COMMPROF_EXCLUDE {run.fact('settings.COMMPROF_EXCLUDE') or 'not set'}",
    ),
)
RUN = (
    (
        "placement",
        "ranks are placed differently",
        # where missing ranks ran is not known; such runs are refused as partial
        lambda run: None if run.missing else (run.world_size, run.placement),
        layout,
    ),
    (
        "binding",
        "numbers of cores that a rank may use differ",
        _cores,
        binding,
    ),
)
PROGRAM = (
    "program",
    "programs differ",
    program_of,
    lambda run: units.shortened(program_of(run), 100),
)


def is_disturbed(run: Figures) -> bool:
    """Waiting for cores, but not for other threads of the same ranks."""
    is_waiting = (run.core_wait or 0) >= threshold("compare.disturbed")
    return not run.crowds_itself and (is_waiting or (run.core_wait is None and bool(run.crowding)))


def disturbances(judge: Judge, sides: Sequence[Side]) -> tuple[list[Refusal], list[str]]:
    """Reasons against a verdict by this judge, or else what is noted."""
    blocks = (
        [*zip(*(side.runs for side in sides))]
        if judge.is_paired
        else [(run,) for side in sides for run in side.runs]
    )
    # the run of each disturbed block that is disturbed most
    disturbed = (list(filter(is_disturbed, block)) for block in blocks)
    bad = [max(runs, key=lambda run: run.core_wait or 0) for runs in disturbed if runs]
    noted = []
    if bad:
        noun = "block" if judge.is_paired else "run"
        of_all = f"{len(bad)} of {units.counted(len(blocks), noun)}"
        worst = max(bad, key=lambda run: run.core_wait or 0)
        how = worst.crowding if worst.core_wait is None else worst.core_wait_text
        noted = [f"other work had cores of the ranks in {of_all}, most in {worst.path}: {how}"]
    if len(bad) > threshold("compare.disturbed-blocks") * len(blocks):
        return [Refusal("disturbed", noted[0])], []
    for what in filter(None, (_wait_differs(judge, sides[0], side) for side in sides[1:])):
        differs = f"other work on the cores of the ranks differs between the sides: {what}"
        return [Refusal("disturbed", differs)], []
    return [], [f"{what}; it makes intervals wider" for what in noted]


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


NAMES = {"arithmetic_ns": "arithmetic", "memory_ns": "copies in memory"}


def weighed(
    judge: Judge, reference: Side, sides: Sequence[Side], metric: str
) -> tuple[list[Refusal], list[str]]:
    """A difference of the machine is a reason against a verdict if it is as large as that of the
    metric; else it is noted."""
    refused, noted = [], []
    for side in sides:
        of_metric = judge.contrast(
            *([run.of_run(metric) for run in each.runs] for each in (reference, side))
        )
        for what, change in drifts(judge, reference, side):
            if of_metric.change is None or _size(change) >= _size(of_metric.change):
                what = f"{what}: as much as the sides differ in {metric}"
                refused.append(Refusal("machine", what))
            else:
                noted.append(
                    f"the machine was not the same: {what}; the sides differ by more in {metric}"
                )
    return refused, noted


def _size(change: float) -> float:
    return abs(math.log1p(change))


def drifts(judge: Judge, reference: Side, side: Side) -> Iterator[tuple[str, float]]:
    """Differences beyond chance that matter, ratios - 1. On each run the slowest host counts."""
    strict = judge._replace(level=1 - (1 - judge.level) / len(NAMES))
    for name, noun in NAMES.items():
        change = strict.contrast(
            *([run.canary_ns(name) for run in each.runs] for each in (reference, side))
        ).difference
        if change is not None and _size(change) > judge.margin:
            took = f"{units.share(abs(change))} {'more' if change > 0 else 'less'} time"
            than = f"before the runs of {side.name} than before those of {reference.name}"
            yield f"{noun} took {took} {than}", change
