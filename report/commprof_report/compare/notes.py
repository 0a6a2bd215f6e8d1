"""Notes beside the verdict: what the reader must know of the runs to trust it, and the settings,
software and hosts that differ between the sides.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator, Sequence
from statistics import median

from ..base import threshold, units
from .judge import Compared, Rules, known, median_known
from .figures import FIGURES, Figures
from .sides import Side


def of_sides(sides: Sequence[Side], metric: str, rules: Rules, unmatched: int) -> list[str]:
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
    most = max(own, key=lambda run: run.core_wait or 0, default=None)
    if most is not None and (most.core_wait or 0) >= threshold("compare.disturbed"):
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
    hosts = [
        {row.host or "" for run in each.runs for row in run.ranks} for each in (reference, side)
    ]
    if not hosts[0] & hosts[1]:
        found["hosts"] = tuple(sorted(hosts[0])), tuple(sorted(hosts[1]))
    return [
        Difference(key.partition(".")[2] or key, *values, side.name)
        for key, values in found.items()
    ]


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
    kept = {
        key: values
        for key, values in found.items()
        if not key.startswith("build_id.") and key != "mpi_library"
    }
    before, after = (tuple(map(units.library_name, each)) for each in found["mpi_version"])
    if before != after:
        kept["mpi_version"] = before, after
    return kept


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
