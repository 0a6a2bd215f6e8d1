"""Input of the rules of advice: a run's sums, latency curves and steps, and the framework that made
it; and their output, findings with a gain.

A latency curve says how long one Allreduce on the communicators of a family takes, by exact message
size. If single calls are split into waiting and transfer, a curve is that of the transfer. A gain
is made from the time of the calls that a change names, without their waiting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..base import (
    Flags,
    NONE,
    Row,
    View,
    gathered,
    grouped,
    measures,
    np,
    of_groups,
    own,
    ratio,
    summarize,
    threshold,
    units,
    whole,
)
from ..calls import (
    Negotiation,
    is_call,
    size_rows,
)
from ..late import (
    COVERED,
    Late,
    Sums,
)
from ..roles.roles import Kin, family_name, kin
from ..roles.world import World
from ..run import Cells, Run, cells_of, view_rows
from ..steps.steps_summary import StepsRow
from ..summary.run_summary import RunSummary

USES = View(  # which share of the time of a call is on threads other than the main one?
    "UseRow",
    ("call", "identity"),
    {
        **own("call", "identity", "label"),
        **measures("ranks"),
        "beside_main": lambda groups: ratio(
            groups.sum("total_ns", lambda cells: is_call(cells) & ~cells.is_main),
            groups.sum("total_ns", is_call),
        ),
    },
    lambda groups: (groups.place("call"), groups.place("identity")),
)
CONTROL_SIZES = View(  # with which a framework's thread only negotiates
    "ControlSizeRow",
    ("call", "bytes"),
    own("call", "bytes"),
    lambda groups: (groups.place("call"), groups.bytes),
    having=lambda groups: 2 * groups.groups.sum(groups.flags(is_told) * 1) > groups.groups.counts,
)


def is_told(cells: Cells) -> Flags:
    return cells.is_told & cells.is_in("traffic", "control")


BACKGROUND = threshold("advice.background")
HOROVOD, PYTORCH = "Horovod", "PyTorch"


class Inputs(NamedTuple):
    """Input of the rules. families: the identities of each; `communicator` of a row of sizes is a
    place in them."""

    run: Run
    answers: RunSummary
    late: Late
    steps: StepsRow
    families: list[list[str]]
    uses: list[Row]  # calls on communicators
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
    def outside_ns(self) -> int:
        """The time outside MPI, behind which calls can be hidden."""
        return max(0, self.counted_ns - self.late.run.total_ns)

    def is_beside_main(self, call: str, identities: Collection[str] = ()) -> bool:
        """Threads other than the main one make these calls; without identities, on any
        communicator."""
        return is_mostly_beside_main(
            use.beside_main or 0.0
            for use in self.uses
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
            row
            for row in self.late.calls
            if row.call in calls and (identities is None or row.identity in identities)
        ]
        wait_ns = sum(row.wait_ns or 0 for row in rows)
        split_ns = wait_ns + sum(row.transfer_ns or 0 for row in rows)
        is_known = split_ns > 0 and split_ns >= COVERED * total_ns
        return Spans(total_ns, wait_ns / split_ns if is_known else None)


def is_mostly_beside_main(shares: Iterable[float]) -> bool:
    return max(shares, default=0.0) >= BACKGROUND


def inputs_of(run: Run, answers: RunSummary, late: Late, steps: StepsRow, world: World) -> Inputs:
    known, uses = kin(world), view_rows(run.connection, USES)
    families = _families(uses, known)
    numbers = {identity: n for n, family in enumerate(families) for identity in family}
    rows = size_rows(run.connection, families={each: str(n) for each, n in numbers.items()})
    found = Inputs(
        run,
        answers,
        late,
        steps,
        families,
        uses,
        [row for row in rows if row.measure != "completion"],
        [row for row in rows if row.measure == "completion"],
        [],
        known,
        HOROVOD if late.negotiation else framework(run, answers),
        len(answers.ranks),
        sum(rank.counted_ns for rank in answers.ranks),
    )
    return found._replace(curves=_curves(found, numbers))


def _families(uses: Sequence[Row], known: Mapping[str, Kin]) -> list[list[str]]:
    """Calls may name communicators that no file describes; each is its own family."""
    members = gathered(
        (known[identity].family if identity in known else identity, identity)
        for identity in sorted({use.identity for use in uses})
    )
    return list(members.values())


def _curves(inputs: Inputs, numbers: Mapping[str, int]) -> list[Curve]:
    """Curves of blocking Allreduces, and NCCL's on the device, without the sizes with which a
    framework negotiates."""
    cells = cells_of(inputs.run.connection).whole
    control = {*summarize(cells, CONTROL_SIZES)} if inputs.negotiation else ()
    sizes = gathered(
        ((row.call, row.communicator, row.memory_kind), row)
        for row in inputs.sizes
        if units.operation(row.call) == "allreduce" and row.bandwidth_bytes is not None
        if row.bytes_high and not (row.is_own or row.is_folded)  # all ranks agree on its size
        if (row.call, row.bytes_high) not in control
    )
    splits = splits_of(inputs.late.sums, numbers)
    return [_curve(rows, splits, inputs) for rows in sizes.values()]


def framework(run: Run, answers: RunSummary) -> str:
    """As far as the command line and the names of threads tell; a site may set variables of a
    framework for any program."""
    facts = answers.facts
    if any(fact.key == "command_line" and "horovod" in fact.value for fact in facts):
        return HOROVOD
    threads = run.connection.execute("SELECT DISTINCT name FROM thread")
    return (
        PYTORCH
        if any(re.compile(r"pt_(mpi|.*ProcessGroup)").match(name) for (name,) in threads)
        else ""
    )


class Spans(NamedTuple):
    """The time in some calls of all ranks. waiting: the share in which they wait for late ranks,
    which no change of these calls saves; None: not known. most_ns: what the calls typically
    take, if a few are much longer: another call would be, too."""

    total_ns: float
    waiting: float | None = None
    most_ns: float = float("inf")


def gain_ns(spans: Spans, needed_ns: float = 0.0, hidden_ns: float = float("inf")) -> float:
    """needed_ns: what is left of the calls. hidden_ns: time outside MPI, behind which they go."""
    cost_ns = min(spans.most_ns, spans.total_ns * (1 - (spans.waiting or 0.0)))
    return max(0.0, min(cost_ns - needed_ns, hidden_ns))


FEWEST = whole("advice.observations")
Split = tuple[int, float, float]


class Point(NamedTuple):
    """One size."""

    bytes: int
    moved_bytes: float  # S, from which bandwidths are computed
    count: float  # type: ignore[assignment]  # hides tuple.count; over all ranks
    observations: float  # collectives; on a split curve the sampled ones
    total_ns: float
    p50_ns: float  # without waiting, if that is known
    sampled: int  # calls that were split
    waiting: float | None  # the share of it in their time; None: no call is split


class Knee(NamedTuple):
    """The size from which on a byte costs little more than at best."""

    bytes: int
    ns_per_byte: float


class Curve(NamedTuple):
    """ranks: of all communicators of the family."""

    call: str
    identities: Sequence[str]
    ranks: int
    points: list[Point]  # by size

    @property
    def knee(self) -> Knee | None:
        """The least bin of sizes whose time per byte is at most KNEE times the best seen. Sizes of
        one power of two (a framework's fused messages have many) are taken together; null: no two
        bins have observations enough, or the clock does not resolve them."""
        bins = gathered(
            ((point.bytes - 1).bit_length() if point.bytes else -1, point) for point in self.points
        )
        judged = [
            Knee(
                points[0].bytes,
                sum(point.count * point.p50_ns for point in points)
                / sum(point.count * point.moved_bytes for point in points),
            )
            for points in bins.values()
            if sum(point.observations for point in points) >= FEWEST
        ]
        best = min((each.ns_per_byte for each in judged), default=0.0)
        if len(judged) < 2 or not best:
            return None
        return next(each for each in judged if each.ns_per_byte <= threshold("advice.knee") * best)


def spans_of(points: Sequence[Point], share: float = 1.0) -> Spans:
    """This share of the calls of some sizes of a curve."""
    total_ns = sum(point.total_ns for point in points)
    waits_ns = [point.total_ns * point.waiting for point in points if point.waiting is not None]
    is_known = total_ns > 0 and len(waits_ns) == len(points)
    return Spans(
        share * total_ns,
        sum(waits_ns) / total_ns if is_known else None,
        share * sum(point.count * point.p50_ns for point in points),
    )


def splits_of(sums: Sums, families: Mapping[str, int]) -> dict[tuple[str, int, int], Split]:
    """By call, number of the family, and bytes: the sampled calls, the median of their transfer,
    and the share of waiting. Waits on other communicators are left out."""
    waits, texts = sums.waits, sums.texts.texts
    family = np.array([*(families.get(text, NONE) for text in texts), NONE])[waits.identity]
    own = (waits.completion == NONE) & (family != NONE)
    waits, family = waits.take(own), family[own]
    order, groups = grouped(waits.call, family, waits.bytes)
    waits, family = waits.take(order), family[order]
    first, all_ns = groups.first, groups.sum(waits.wait_ns + waits.transfer_ns)
    columns = (
        waits.call[first],
        family[first],
        waits.bytes[first],
        groups.counts,
        of_groups(waits.transfer_ns, groups, 50),
        groups.sum(waits.wait_ns) / np.maximum(1, all_ns),
    )
    return {
        (texts[call], number, size): tuple(rest)
        for call, number, size, *rest in zip(*(column.tolist() for column in columns))
    }


def _curve(
    rows: Sequence[Row], splits: Mapping[tuple[str, int, int], Split], inputs: Inputs
) -> Curve:
    """rows: sizes of one call. Without the sizes of which no call is split, if some are."""
    call, identities = rows[0].call, inputs.family(rows[0])
    uses = (use for use in inputs.uses if use.call == call and use.identity in identities)
    ranks = sum(use.ranks for use in uses)
    unsplit: Any = (0, None, None)
    points = [
        Point(
            row.bytes_low,
            row.bandwidth_bytes or 0.0,
            row.count,
            (sampled or row.count) / (ranks / len(identities)),
            row.total_ns,
            p50_ns if sampled else row.p50_ns,
            sampled,
            share,
        )
        for row in rows
        for sampled, p50_ns, share in [
            splits.get((call, int(row.communicator), row.bytes_low), unsplit)
        ]
    ]
    return Curve(call, identities, ranks, [p for p in points if p.sampled] or points)


NOTABLE = threshold("advice.notable")
MANY = whole("advice.many")
SURE, LIKELY, POSSIBLE = "sure", "likely", "possible"


class Finding(NamedTuple):
    """saving_ns: over all ranks."""

    title: str
    evidence: str
    suggestion: str
    certainty: str
    saving_ns: float | None = None
    call: str | None = None
    identities: Sequence[str] = ()
    bytes: int | None = None


def is_notable(finding: Finding, inputs: Inputs) -> bool:
    return finding.saving_ns is None or is_notable_time(finding.saving_ns, inputs)


def is_notable_time(ns: float, inputs: Inputs) -> bool:
    return ns > 0 and ns >= NOTABLE * inputs.counted_ns


def ran_once(calls: float, inputs: Inputs) -> bool:
    """No rank made such a call twice, if all made as many: nothing to be learned from."""
    return calls <= inputs.ranks


def size_range(low_bytes: int, high_bytes: int) -> str:
    low, high = units.size(low_bytes), units.size(high_bytes)
    return low if low == high else f"{low} to {high}"


def waiting_text(waiting: float | None) -> str:
    """Messages cost nothing while their senders are late."""
    if waiting is None:
        return "; how much of it is waiting for late ranks is not known"
    return (
        f", {units.share(waiting)} of it waiting for late ranks (not counted as saved)"
        if waiting
        else ""
    )
