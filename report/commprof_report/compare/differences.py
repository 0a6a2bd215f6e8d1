"""Settings, software and hosts that differ between the sides of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from .figures import settings
from .sides import Side

MOST_SETTINGS = 6

Values = tuple[str, ...]  # of the ranks of a run; empty: not set
Found = dict[str, tuple[Values, Values]]  # by name: of the reference, and of the other side


class Difference(NamedTuple):
    """A setting or a software of the reference and of the other side; no values: not set."""

    name: str
    first: Values
    second: Values
    side: str

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


def _that_differ(reference: Side, side: Side) -> Found:
    """Settings of the environment and of the library come last."""
    own = [[settings(run.facts) for run in each.runs] for each in (reference, side)]
    found: Found = {}
    for key in sorted({key for runs in own for facts in runs for key in facts}, key=_order):
        first, second = ({facts.get(key, ()) for facts in runs} for runs in own)
        if len(first) == len(second) == 1 and first != second:
            found[key] = next(iter(first)), next(iter(second))
    return found


def _order(key: str) -> tuple[bool, bool, str]:
    return key.startswith("cvar."), key.startswith("env."), key


def _of_the_library(found: Found) -> Found:
    """Another library has other files; two builds of one version have long names."""
    if "mpi_version" not in found:
        return found
    kept = {
        key: values for key, values in found.items()
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
        key: values for key, values in kept.items()
        if f"cvar.{key.removeprefix('env.').removeprefix('OMPI_MCA_')}" not in kept
    }


def differences_text(found: Sequence[Difference]) -> str:
    more = (
        f"; and {len(found) - MOST_SETTINGS} more (compare --by verdict --json)"
        if len(found) > MOST_SETTINGS else ""
    )
    return "; ".join(map(str, found[:MOST_SETTINGS])) + more


def value_text(values: Sequence[str], width: int) -> str:
    return units.shortened(", ".join(values), width) or "not set"
