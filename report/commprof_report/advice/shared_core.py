"""Ranks bound to one core, where the thread that communicates then stops the one that computes."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..run.crowding import core_uses, cores_of
from .findings import POSSIBLE, Finding
from .inputs import Inputs


def find(inputs: Inputs) -> Iterator[Finding]:
    ranks = bound(inputs)
    if not ranks or not inputs.is_beside_main_mostly:
        return
    switches = [n for row in ranks if (n := row.involuntary_switches) is not None]
    often = (
        f", with {units.counted(sum(switches), 'involuntary switch')} over all of them"
        if len(switches) == len(ranks) else ""
    )
    yield Finding(
        "the thread that communicates and the one that computes share a core",
        f"{units.count(len(ranks))} of {units.counted(len(_known(inputs)), 'rank')} may run on one "
        f"core only{often}. {units.share(inputs.late.run.background_share)} of the time inside MPI "
        "is on threads beside the main one, so communication stops the computation that it should "
        "overlap with",
        "bind ranks to two cores or more each (Open MPI: mpirun --bind-to none, or --map-by "
        "slot:PE=2; Slurm: --cpus-per-task)",
        POSSIBLE,
    )


def bound(inputs: Inputs) -> list:
    """The ranks that may run on one core only."""
    return [row for row in _known(inputs) if bin(cores_of(row.affinity)).count("1") == 1]


def _known(inputs: Inputs) -> list:
    return [row for row in core_uses(inputs.run.connection) if cores_of(row.affinity)]
