"""Input of the rules of advice: a run's sums, curves and steps, and the framework that made it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.thresholds import threshold
from ..calls.by_size import SizeRow, size_rows
from ..calls.negotiation import Negotiation
from ..late.late_ranks import Late
from ..late.retimed import Part
from ..late.verdict import COVERED
from ..roles.roles import Kin, family_name, kin
from ..roles.world import World
from ..run.run import Run
from ..steps.steps_summary import StepsRow
from ..summary.run_summary import RunSummary
from . import curves
from .curves import Curve

SQL = query.beside(__file__)

BACKGROUND = threshold("advice.background")
HOROVOD, PYTORCH = "Horovod", "PyTorch"
PYTORCH_THREAD = re.compile(r"pt_(mpi|.*ProcessGroup)")


class Inputs(NamedTuple):
    """Input of the rules."""

    run: Run
    answers: RunSummary
    late: Late
    steps: StepsRow
    curves: list[Curve]
    sizes: list[SizeRow]
    completed: list[SizeRow]  # nonblocking operations
    labels: dict[str, str]
    kin: dict[str, Kin]
    framework: str
    ranks: int
    counted_ns: int  # of all ranks
    background: dict[tuple[str, str], float]  # the share of each call's time, by communicator

    def per_rank(self, ns: float) -> str:
        return f"{units.duration(ns / self.ranks)} a rank"

    @property
    def negotiation(self) -> Negotiation | None:
        return self.late.negotiation

    @property
    def played(self) -> Part | None:
        """The recorded calls to be played again, if they are those that the program waits for."""
        is_known = self.late.run.parallel_efficiency is not None
        return self.late.stages.retimed.host if is_known else None

    @property
    def is_alone(self) -> bool:
        """No other rank can be waited for."""
        return self.late.processes == 1

    @property
    def uses_gpu(self) -> bool:
        return self.run.connection.execute("SELECT 1 FROM gpu_device").fetchone() is not None

    @property
    def is_beside_main_mostly(self) -> bool:
        """Most time inside MPI is on threads other than the main one."""
        return self.late.run.background_share >= BACKGROUND

    def is_beside_main(self, call: str, identities: Iterable[str] = ()) -> bool:
        """Threads other than the main one make these calls; without identities, on any
        communicator."""
        return is_mostly_beside_main(
            share for (each, identity), share in self.background.items()
            if each == call and (not identities or identity in identities)
        )

    def setting(self, name: str) -> str:
        """The value of an environment variable; empty: it is not set, or not known."""
        facts = self.answers.facts
        return next((fact.value for fact in facts if fact.key == f"env.{name}"), "")

    def per_step(self, calls_per_rank: float) -> float | None:
        """None: the number of steps is not known."""
        number = self.steps.total_steps or self.steps.steps
        return calls_per_rank / number if self.steps.delimited_by and number else None

    def family(self, identity: str) -> object:
        return self.kin[identity].family if identity in self.kin else identity

    def where(self, identities: Sequence[str]) -> str:
        return family_name(
            self.kin.get(identities[0]), len(identities), self.labels.get(identities[0], "-")
        )

    def named(self, identities: Sequence[str]) -> tuple[str | None, str | None]:
        """The label of one communicator, and the role of it or of several of a family."""
        label = self.labels.get(identities[0]) if len(identities) == 1 else None
        known = self.kin.get(identities[0]) if identities else None
        return label, known.role if known else None

    def waiting(
        self, calls: Collection[str], total_ns: int, identities: Collection[str] | None = None
    ) -> float | None:
        """The share of waiting in the total time of calls on some or all communicators; null: known
        of less than half of it."""
        rows = [
            row for row in self.late.calls
            if row.call in calls and (identities is None or row.identity in identities)
        ]
        wait_ns = sum(row.wait_ns or 0 for row in rows)
        split_ns = wait_ns + sum(row.transfer_ns or 0 for row in rows)
        return wait_ns / split_ns if split_ns and split_ns >= COVERED * total_ns else None

    @property
    def late_ranks(self) -> tuple[int, ...]:
        named = self.late.blame.named
        return named.ranks if named and self.late.run.late_ranks is not None else ()

    def late_share(self, call: str) -> float:
        """The share of the waiting in a call that the ranks cause that are named as late: it is not
        saved twice."""
        causes = [cause for cause in self.late.causes if cause.call == call]
        whole_ns = sum(cause.cost_ns for cause in causes)
        named_ns = sum(cause.cost_ns for cause in causes if cause.cause_rank in self.late_ranks)
        return named_ns / whole_ns if whole_ns else 0.0


def is_mostly_beside_main(shares: Iterable[float]) -> bool:
    return max(shares, default=0.0) >= BACKGROUND


def inputs_of(
    run: Run, answers: RunSummary, late: Late, steps: StepsRow, world: World
) -> Inputs:
    all_sizes = size_rows(run.connection)
    sizes = [row for row in all_sizes if row.measure != "completion"]
    completed = [row for row in all_sizes if row.measure == "completion"]
    known = kin(world)
    families = curves.families_of(run.connection, known)
    negotiates = late.negotiation
    background = SQL.run(run.connection, "background_calls")
    return Inputs(
        run,
        answers,
        late,
        steps,
        _without_control(
            curves.curves(run.connection, late, families), negotiates, run.connection
        ),
        sizes,
        completed,
        {row.identity: row.communicator for row in sizes},
        known,
        HOROVOD if negotiates else framework(run, answers),
        len(answers.ranks),
        sum(rank.counted_ns for rank in answers.ranks),
        {(call, identity): share or 0.0 for call, identity, share in background},
    )


def _without_control(
    found: list[Curve], negotiates: Negotiation | None, connection: Connection
) -> list[Curve]:
    """A framework's negotiation is no message that could be fused."""
    if negotiates is None:
        return found
    control = set(SQL.run(connection, "control_sizes"))
    kept = [
        curve._replace(
            points=[point for point in curve.points if (curve.call, point.bytes) not in control]
        )
        for curve in found
    ]
    return [curve for curve in kept if curve.points]


def framework(run: Run, answers: RunSummary) -> str:
    """As far as the environment, the command line and the names of threads tell."""
    facts = answers.facts
    if any(
        fact.key.startswith("env.HOROVOD_")
        or (fact.key == "command_line" and "horovod" in fact.value) for fact in facts
    ):
        return HOROVOD
    threads = run.connection.execute("SELECT DISTINCT name FROM thread")
    return PYTORCH if any(PYTORCH_THREAD.match(name) for (name,) in threads) else ""
