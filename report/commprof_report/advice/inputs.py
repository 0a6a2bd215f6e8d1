"""Input of the rules of advice: a run's sums, curves and steps, and the framework that made it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..base import query, units
from ..base.gather import gathered
from ..base.thresholds import threshold
from ..base.query import Row
from ..calls.views import size_rows
from ..calls.negotiation import Negotiation
from ..late.late_ranks import Late
from ..late.verdict import COVERED
from ..roles.roles import Kin, family_name, kin
from ..roles.world import World
from ..run.run import Run
from ..steps.steps_summary import StepsRow
from ..summary.run_summary import RunSummary
from .curves import Curve, curve, has_curve, splits_of
from .gain import Spans

SQL = query.beside(__file__)

BACKGROUND = threshold("advice.background")
HOROVOD, PYTORCH = "Horovod", "PyTorch"
PYTORCH_THREAD = re.compile(r"pt_(mpi|.*ProcessGroup)")


class Inputs(NamedTuple):
    """Input of the rules. families: the identities of each; `communicator` of a row of sizes is a
    place in them."""

    run: Run
    answers: RunSummary
    late: Late
    steps: StepsRow
    families: list[list[str]]
    uses: list[query.Row]  # calls on communicators
    sizes: list[Row]
    completed: list[Row]  # nonblocking operations
    curves: list[Curve]
    kin: dict[str, Kin]
    framework: str
    ranks: int
    counted_ns: int  # of all ranks

    def per_rank(self, ns: float) -> str:
        return f"{units.duration(ns / self.ranks)} a rank"

    @property
    def negotiation(self) -> Negotiation | None:
        return self.late.negotiation

    @property
    def exposed_ns(self) -> float:
        """The time inside MPI, and on devices in NCCL; for each rank that of the one with most."""
        most_ns = max((rank.mpi_ns or 0 for rank in self.answers.ranks), default=0)
        return max(self.ranks * most_ns, self.late.run.total_ns)

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

    def is_beside_main(self, call: str, identities: Collection[str] = ()) -> bool:
        """Threads other than the main one make these calls; without identities, on any
        communicator."""
        return is_mostly_beside_main(
            use.beside_main or 0.0 for use in self.uses
            if use.call == call and (not identities or use.identity in identities)
        )

    def setting(self, name: str) -> str:
        """The value of an environment variable; empty: it is not set, or not known."""
        facts = self.answers.facts
        return next((fact.value.strip() for fact in facts if fact.key == f"env.{name}"), "")

    def per_step(self, calls_per_rank: float) -> float | None:
        """None: the number of steps is not known."""
        number = self.steps.total_steps or self.steps.steps
        return calls_per_rank / number if self.steps.delimited_by and number else None

    def family(self, row: Row) -> list[str]:
        """The communicators of the row on which its call is made."""
        own = self.families[int(row.communicator)]
        return [use.identity for use in self.uses if use.call == row.call and use.identity in own]

    def _label(self, identity: str) -> str | None:
        return next((use.label for use in self.uses if use.identity == identity), None)

    def where(self, identities: Sequence[str]) -> str:
        label = self._label(identities[0]) or "-"
        return family_name(self.kin.get(identities[0]), len(identities), label)

    def named(self, identities: Sequence[str]) -> tuple[str | None, str | None]:
        """The label of one communicator, and the role of it or of several of a family."""
        label = self._label(identities[0]) if len(identities) == 1 else None
        known = self.kin.get(identities[0]) if identities else None
        return label, known.role if known else None

    def spans(
        self, calls: Collection[str], total_ns: float, identities: Collection[str] | None = None
    ) -> Spans:
        """The time in calls on some or all communicators; how much of it is waiting, if that is
        known of half of it or more."""
        rows = [
            row for row in self.late.calls
            if row.call in calls and (identities is None or row.identity in identities)
        ]
        wait_ns = sum(row.wait_ns or 0 for row in rows)
        split_ns = wait_ns + sum(row.transfer_ns or 0 for row in rows)
        is_known = split_ns > 0 and split_ns >= COVERED * total_ns
        return Spans(total_ns, wait_ns / split_ns if is_known else None)


def is_mostly_beside_main(shares: Iterable[float]) -> bool:
    return max(shares, default=0.0) >= BACKGROUND


def inputs_of(
    run: Run, answers: RunSummary, late: Late, steps: StepsRow, world: World
) -> Inputs:
    known, uses = kin(world), list(SQL.rows(run.connection, "uses"))
    families = _families(uses, known)
    numbers = {identity: n for n, family in enumerate(families) for identity in family}
    rows = size_rows(run.connection, families={each: str(n) for each, n in numbers.items()})
    found = Inputs(
        run, answers, late, steps, families, uses,
        [row for row in rows if row.measure != "completion"],
        [row for row in rows if row.measure == "completion"],
        [], known, HOROVOD if late.negotiation else framework(run, answers), len(answers.ranks),
        sum(rank.counted_ns for rank in answers.ranks),
    )
    return found._replace(curves=_curves(found, numbers))


def _families(uses: Sequence[query.Row], known: Mapping[str, Kin]) -> list[list[str]]:
    """Calls may name communicators that no file describes; each is its own family."""
    members = gathered(
        (known[identity].family if identity in known else identity, identity)
        for identity in sorted({use.identity for use in uses})
    )
    return list(members.values())


def _curves(inputs: Inputs, numbers: Mapping[str, int]) -> list[Curve]:
    """Curves of blocking Allreduces, and NCCL's on the device, without the sizes with which a
    framework negotiates."""
    negotiates = inputs.negotiation is not None
    control = set(SQL.run(inputs.run.connection, "control_sizes")) if negotiates else ()
    sizes = gathered(
        ((row.call, row.communicator, row.memory_kind), row) for row in inputs.sizes
        if has_curve(row) and (row.call, row.bytes_high) not in control
    )
    splits = splits_of(inputs.late.stages.sums, numbers)
    found = []
    for (call, number, _), rows in sizes.items():
        of_sizes = {
            row.bytes_low: split for row in rows
            if (split := splits.get((call, int(number), row.bytes_low)))
        }
        identities = inputs.family(rows[0])
        ranks = sum(
            use.ranks for use in inputs.uses if use.call == call and use.identity in identities
        )
        found.append(curve(rows, of_sizes, identities, ranks))
    return found


def framework(run: Run, answers: RunSummary) -> str:
    """As far as the command line and the names of threads tell; a site may set variables of a
    framework for any program."""
    facts = answers.facts
    if any(fact.key == "command_line" and "horovod" in fact.value for fact in facts):
        return HOROVOD
    threads = run.connection.execute("SELECT DISTINCT name FROM thread")
    return PYTORCH if any(PYTORCH_THREAD.match(name) for (name,) in threads) else ""
