"""Why runs are not the same experiment: reasons to give no verdict, each with the way out. Among
them are other work on the cores of the ranks, and a machine that was slower for one side, by what
was measured on its hosts before each run.

What disturbs both sides alike makes the interval wider, and is in it already. So it is a reason
against a verdict only if it differs between the sides, or if most blocks have it: then the host's
scheduler was measured. Otherwise a note has its size. A run is as disturbed as its ranks waited for
cores on average. The sides are compared by the rank that waited most, which holds up the others: of
more ranks one waits longer, but so it does on both sides.

Here are, too, the notes beside the verdict: what the reader must know of the runs to trust it, and
the settings, software and hosts that differ between the sides.
"""

from __future__ import annotations

import math
import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from statistics import fmean, median
from typing import Any

from ..base import gathered, threshold, units, whole
from .figures import FIGURES, Figures, Key, Row, cores_in, row_name
from .judge import Compared, Rules, contrast, known, median_known
from .sides import (
    DIGITS,
    NEGOTIATION,
    Side,
    alike,
    calls_aside,
    kit_replayed,
    labels_of,
    step_difference,
)


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
NOTED = ""  # the kind of what is said beside the verdict, and no reason against it


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
    runs = [run for side in sides for run in side.runs]
    ignored = (
        {NEGOTIATION, *calls_aside(runs, keys)} if any(key.per == "step" for key in keys) else set()
    )
    rows = {
        key: [run.rows.get(key) for run in runs]
        for key in keys
        if key.measure == "call" and key not in ignored
    }
    known = {key: next(filter(None, own)) for key, own in rows.items()}
    are_same = gathered(
        (all(row is not None and _is_same(row, known[key]) for row in own), key)
        for key, own in rows.items()
        if known[key].family not in ("completion", "probe")  # which vary with the time
    )
    return Work(are_same.get(True, []), are_same.get(False, []))


def _is_same(row: Row, known: Row) -> bool:
    is_per_step = row.steps and row.bytes.keys() == known.bytes.keys()
    are_alike = is_per_step and all(alike(own, known.bytes[at]) for at, own in row.bytes.items())
    return are_alike or _work_counted(row) == _work_counted(known)


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
    labels = labels_of(sides)
    rows = {key: [[run.rows.get(key) for run in side.runs] for side in sides] for key in uneven}
    said = [
        row_name(
            units.call_name(key.call, key.memory_kind, key.measure),
            key.bytes,
            labels.get(key.group, ""),
        )
        + f": {what} in {side.name}"
        for key, (reference, *others) in rows.items()
        for side, own in zip(sides[1:], others)
        if (what := _other_work(reference, own))
    ]
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
    is_apart &= abs(both[1] - both[0]) > threshold("compare.work") * max(both)
    return f"{' -> '.join(units.count(round(each)) for each in both)} {noun}" if is_apart else ""


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


def disturbances(rules: Rules, sides: Sequence[Side]) -> Iterator[Refusal]:
    """A reason against a verdict by these rules, or else what is noted."""
    blocks = (
        [*zip(*(side.runs for side in sides))]
        if rules.pairs
        else [(run,) for side in sides for run in side.runs]
    )
    # the run of each disturbed block that is disturbed most
    disturbed = ([run for run in block if run.is_disturbed] for block in blocks)
    bad = [max(runs, key=_core_wait) for runs in disturbed if runs]
    noted = ""
    if bad:
        noun = "block" if rules.pairs else "run"
        of_all = f"{len(bad)} of {units.counted(len(blocks), noun)}"
        worst = max(bad, key=_core_wait)
        how = worst.crowding if worst.core_wait is None else worst.core_wait_text
        noted = f"other work had cores of the ranks in {of_all}, most in {worst.path}: {how}"
    differs = filter(None, (_wait_differs(rules, sides[0], side) for side in sides[1:]))
    if len(bad) > threshold("compare.disturbed-blocks") * len(blocks):
        yield Refusal("disturbed", noted)
    elif what := next(differs, ""):
        yield Refusal(
            "disturbed", f"other work on the cores of the ranks differs between the sides: {what}"
        )
    elif noted:
        yield Refusal(NOTED, f"{noted}; it makes intervals wider")


def _core_wait(run: Figures) -> float:
    return run.core_wait or 0


def _wait_differs(rules: Rules, reference: Side, side: Side) -> str:
    """Beyond chance, and twice as much or more; empty: not known, or it does not."""
    shares = [[run.longest_core_wait for run in each.runs] for each in (reference, side)]
    if any(run.core_wait is None or run.crowds_itself for run in [*reference.runs, *side.runs]):
        return ""
    few, times = threshold("compare.few-waits"), threshold("compare.times-the-waits")
    found = contrast(*([max(share, few) for share in known(own)] for own in shares), rules=rules)
    if found.difference is None or abs(math.log1p(found.difference)) < math.log(times):
        return ""
    first, second = (units.share(median(known(own))) for own in shares)
    return (
        f"a rank waited for a core {first} of the time in {reference.name}, {second} in "
        f"{side.name} (medians of the runs)"
    )


NAMES = {"arithmetic_ns": "arithmetic", "memory_ns": "copies in memory"}


def weighed(rules: Rules, reference: Side, sides: Sequence[Side], metric: str) -> Iterator[Refusal]:
    """A difference of the machine is a reason against a verdict if it is as large as that of the
    metric; else it is noted."""
    for side in sides:
        of_metric = contrast(
            *([run.of_run(metric) for run in each.runs] for each in (reference, side)), rules=rules
        )
        for what, change in drifts(rules, reference, side):
            is_small = of_metric.change is not None and _size(change) < _size(of_metric.change)
            yield (
                Refusal(
                    NOTED,
                    f"the machine was not the same: {what}; the sides differ by more in {metric}",
                )
                if is_small
                else Refusal("machine", f"{what}: as much as the sides differ in {metric}")
            )


def _size(change: float) -> float:
    return abs(math.log1p(change))


def drifts(rules: Rules, reference: Side, side: Side) -> Iterator[tuple[str, float]]:
    """Differences beyond chance that matter, ratios - 1. On each run the slowest host counts."""
    strict = rules.of_one(len(NAMES))
    for name, noun in NAMES.items():
        change = contrast(
            *([run.canary_ns(name) for run in each.runs] for each in (reference, side)),
            rules=strict,
        ).difference
        if change is not None and _size(change) > math.log1p(rules.min_effect):
            took = f"{units.share(abs(change))} {'more' if change > 0 else 'less'} time"
            than = f"before the runs of {side.name} than before those of {reference.name}"
            yield f"{noun} took {took} {than}", change


def notes_of_sides(sides: Sequence[Side], metric: str, rules: Rules, unmatched: int) -> list[str]:
    """unmatched: rows that some run lacks."""
    runs, skipped = [run for side in sides for run in side.runs], rules.skipped
    least, most = min(run.coverage for run in runs), max(run.estimate_share for run in runs)
    is_covered = least >= threshold("compare.nearly-all") or not any(run.coverage for run in runs)
    found = {
        f"the first {units.share(skipped)} of the steps of each run are left out; calls and sizes "
        "are not shown: their sums have all steps": skipped,
        f"waiting and transfer are known for {units.share(least)} of the time inside MPI, in "
        "the run with "
        f"least{'; --metric time has all of it' if metric == 'transfer' else ''}": not is_covered,
        f"up to {units.share(most)} of waiting and transfer is estimated from durations: the "
        "clocks of the hosts are too coarse": metric in ("transfer", "wait")
        and most > threshold("compare.estimated"),
        **{text: True for figure in FIGURES for text in _lacking(sides, figure)},
        f"{units.counted(unmatched, 'row')} that not every run has left out": unmatched,
    }
    said = [text for text, is_so in found.items() if is_so]
    return [
        *said,
        *_own_threads(runs),
        *(note for side in sides for note in _settling(side, skipped)),
    ]


def _lacking(sides: Sequence[Side], figure: str) -> Iterator[str]:
    """A figure that some runs have."""
    values = [[run.of_run(figure) for run in side.runs] for side in sides]
    if any(known(own) for own in values) and any(None in own for own in values):
        lacks = ", ".join(
            f"{own.count(None)} of {units.counted(len(own), 'run')} of {side.name}"
            for side, own in zip(sides, values)
            if None in own
        )
        yield f"{figure} is not compared: {lacks} have none, and hardly at random"


def _own_threads(runs: Sequence[Figures]) -> Iterator[str]:
    """Waiting for cores is no sign of other processes where the job's own threads take turns."""
    own = [run for run in runs if run.crowds_itself]
    most = max(own, key=_core_wait, default=None)
    if most is not None and _core_wait(most) >= threshold("compare.disturbed"):
        yield (
            "ranks have fewer cores than threads that compute or communicate: most in "
            f"{most.path}, where {most.core_wait_text}; whether for other processes, too, is not "
            "known"
        )


def _settling(side: Side, skipped: float) -> Iterator[str]:
    """Whether the steps of most runs that count became slower or faster within the run."""
    for way in ("slower", "faster"):
        found = [run.step_trend for run in side.runs if run.step_trend.trend == way]
        if len(found) > threshold("compare.settling") * len(side.runs):
            first, last = (
                units.duration(median_known([getattr(each, key) for each in found]))
                for key in ("first_tenth_ns", "last_tenth_ns")
            )
            runs = f"{len(found)} of {units.counted(len(side.runs), 'run')}"
            which = (
                "these are the steps after those left out"
                if skipped
                else "all steps count, unless --skip-steps leaves out the first"
            )
            yield (
                f"{side.name}: steps became {way} within {runs}, {first} in the first tenth, "
                f"{last} in the last (a start-up, or a library that tunes itself); "
                f"{which}"
            )


def coarse_clocks(reference: Side, side: Side, figure: Compared, skipped: float) -> Iterator[str]:
    """figure: that of the verdict. Waiting and transfer cannot be separated better than the
    clocks of the hosts are known."""
    if figure.figure not in ("transfer", "wait") or figure.difference is None:
        return
    runs = [*reference.runs, *side.runs]
    calls = median(
        sum(row.count for row in run.rows.values() if row.is_split) / len(run.ranks) for run in runs
    ) * (1 - skipped)
    error_ns = max(run.error_ns for run in runs)
    change_ns = abs((figure.second_ns or 0) - (figure.first_ns or 0)) / max(calls, 1)
    if error_ns > threshold("compare.clock-error") * change_ns:
        yield (
            f"the clocks of the hosts are known to {units.duration(error_ns)}, and {side.name} "
            f"differs by {units.duration(change_ns)} a call in {figure.figure}; --metric time "
            "needs no clocks"
        )


MOST_SETTINGS = 6
# Settings that launchers and libraries make by themselves, as key=value: they differ between any
# two runs, or follow from a binding or placement, which is compared itself.
OF_THE_JOB = re.compile(
    r"cvar\.(ess_|mca_|orte_|hwloc_base_binding_policy|rmaps_|mpi_oversubscribe|pmix_server"
    r"|shmem_base_RUNTIME|\w+_version=)"
    r"|env\.(OMPI_(COMM_WORLD|WORLD_|LIBDIR_LOC|TOOL_NAME|VERSION|MCA_(PREFIXES|cpu_type|num_procs"
    r"|orte|ess|pmix|hwloc_base_binding_policy|rmaps_|mpi_oversubscribe|initial_wdir|shmem_RUNTIME)"
    r"|APP_|NUM_|FIRST_|FILE_|UNIVERSE|ALLOW_RUN)|PSM2_DEVICES=self,shm$|PMIX?_|PRTE_|PALS_|HYDRA_"
    r"|HYDI_|I_MPI_(ROOT|MPIRUN|HYDRA|INFO|JOB)|MPI_LOCAL|MPIEXEC|GFORTRAN"
    r"|MPIR_CVAR_CH3_INTERFACE_HOSTNAME|SLURM_(JOB|STEP|TASK|PROC|LOCAL|GTIDS|NODE|CPU|SRUN|LAUNCH"
    r"|SUBMIT|TOPOLOGY|STEPID|PTY)|PBS_|LSB_|FLUX_)"
)
COMPARED = re.compile(
    r"cvar\.|env\.|file\.|build_id\.|settings\.COMMPROF_|(mpi_version|mpi_library|commprof_version"
    r"|cpu_model|kernel|cpu_quota_cores|nccl\..*)$"
)
NOT_COMPARED = re.compile(
    r"settings\.COMMPROF_(OUTPUT|VERBOSE|QUIET|LEDGER)|env\.COMMPROF_REPLAY_KIT"
    r"|build_id\.libcommprof|nccl\.grown"
)

Values = tuple[str, ...]  # of the ranks of a run; empty: not set
Found = dict[str, tuple[Values, Values]]  # by name: of the reference, and of the other side


class Difference(namedtuple("Difference", "name first second side")):
    """A setting or a software of the reference and of the other side; no values: not set."""

    def __str__(self) -> str:
        """UCX_TLS (tcp; other: not set)"""
        return (
            f"{self.name} ({value_text(self.first, 40)}; {self.side}: "
            f"{value_text(self.second, 40)})"
        )


def differences(reference: Side, side: Side) -> list[Difference]:
    """Settings and software in which every run of one side differs from every run of the other."""
    found = _without_control_variables_that_explain_nothing(
        _of_the_library(_that_differ(reference, side))
    )
    hosts = [hosts_of(each) for each in (reference, side)]
    if not hosts[0] & hosts[1]:
        found["hosts"] = tuple(sorted(hosts[0])), tuple(sorted(hosts[1]))
    return [
        Difference(key.partition(".")[2] or key, *values, side.name)
        for key, values in found.items()
    ]


def hosts_of(side: Side) -> set[str]:
    return {row.host or "" for run in side.runs for row in run.ranks}


def settings(facts: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The facts that may explain a difference between runs."""
    chosen = {
        key: values
        for key, values in facts.items()
        if COMPARED.match(key) and not NOT_COMPARED.match(key)
    }
    return {
        key: values
        for key, values in chosen.items()
        if not OF_THE_JOB.match(f"{key}={', '.join(values)}")
    }


def _that_differ(reference: Side, side: Side) -> Found:
    """Settings of the environment and of the library come last."""
    own = [[settings(run.facts) for run in each.runs] for each in (reference, side)]
    found: Found = {}
    keys = sorted({key for runs in own for facts in runs for key in facts})
    for key in sorted(keys, key=lambda key: (key.startswith("cvar."), key.startswith("env."))):
        first, second = ({facts.get(key, ()) for facts in runs} for runs in own)
        if len(first) == len(second) == 1 and first != second:
            found[key] = next(iter(first)), next(iter(second))
    return found


def _of_the_library(found: Found) -> Found:
    """Another library has other files; two builds of one version have long names."""
    if "mpi_version" not in found:
        return found
    before, after = (tuple(map(units.library_name, each)) for each in found["mpi_version"])
    kept = found | ({"mpi_version": (before, after)} if before != after else {})
    aside = ("build_id.", "mpi_library")
    return {key: values for key, values in kept.items() if not key.startswith(aside)}


def _without_control_variables_that_explain_nothing(found: Found) -> Found:
    """A side on which they were not recorded, or another library, has no value. Where both have
    one, the environment's is the same again."""
    kept = {
        key: values for key, values in found.items() if not key.startswith("cvar.") or all(values)
    }
    return {
        key: values
        for key, values in kept.items()
        if f"cvar.{key.removeprefix('env.').removeprefix('OMPI_MCA_')}" not in kept
    }


def differences_text(found: Sequence[Difference]) -> str:
    more = (
        f"; and {len(found) - MOST_SETTINGS} more (compare --by verdict --json)"
        if len(found) > MOST_SETTINGS
        else ""
    )
    return "; ".join(map(str, found[:MOST_SETTINGS])) + more


def value_text(values: Sequence[str], width: int) -> str:
    return units.shortened(", ".join(values), width) or "not set"
