"""Why named ranks are late: they compute longer, lose their core, sleep longer, wait for a disk or
for other threads of their own, compared with the other ranks, outside MPI.

One function gives the reason to all commands. It gives none where the readings do not show that
most of the time by which the ranks are longer outside MPI is of one kind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from sqlite3 import Connection
from statistics import fmean
from typing import NamedTuple

from ..base import units
from ..base.thresholds import threshold
from ..run.cpu_time import CpuTimeRow, Use, cpu_times, use_of
from ..run.crowding import core_uses
from .marks import Last
from .verdict import NOTABLE, CallCause

SHARE = threshold("late.reason")
BEFORE = "before the wait"
COMPUTES, LOST_CORE, READY, ASLEEP, DISK = "computes", "core", "ready", "asleep", "disk"
THREADS = "threads"
OWN = COMPUTES, ASLEEP, DISK, THREADS  # no matter of cores


class Words(NamedTuple):
    do: str
    longer: str
    how: str
    remedy: str


WORDS = {
    COMPUTES: Words("compute", "{} longer", "on a core", "balance the work"),
    LOST_CORE: Words(
        "lack", "a core {} longer", "ready without one",
        "give {them} a core of {their} own: other binding, fewer ranks or threads, no other jobs",
    ),
    READY: Words(
        "are", "ready to run {} longer", "on a core or waiting for one",
        "balance the work, and give each rank a core of its own",
    ),
    ASLEEP: Words(
        "sleep", "{} longer", "asleep",
        "look at what {do} outside MPI without a core: a sleep, a lock, input from elsewhere",
    ),
    THREADS: Words(
        "wait", "{} longer for other threads", "of CPU time of other threads",
        "balance the work of {their} threads, or give them cores",
    ),
    DISK: Words(
        "wait", "{} longer for a disk", "waiting for it",
        "look at what {do} with files outside MPI, and on which file system",
    ),
}


class Reason(NamedTuple):
    """own_ns, others_ns: mean time of this kind outside MPI, or before the wait at marks, of the
    named ranks, and the others."""

    kind: str
    own_ns: float
    others_ns: float
    where: str = "outside MPI"

    @property
    def longer_ns(self) -> float:
        return self.own_ns - self.others_ns


def reason(
    connection: Connection, ranks: Collection[int], also_late: Collection[int] = (),
    last: Last | None = None,
) -> Reason | None:
    """It considers the whole run, whatever was selected. also_late: ranks that are late elsewhere,
    with which these are not compared. last: they are last at marks; then the main thread is taken
    to wait, blocked, from its mark to the last one of the step; what the readings found it doing
    there and elsewhere is not known."""
    times = cpu_times(connection)
    if last:
        times = {
            rank: _waiting(row, last.waits_ns[rank]) for rank, row in times.items()
            if row.is_of_main and rank in last.waits_ns
        }
    own = [row for rank, row in times.items() if rank in ranks]
    others = [row for rank, row in times.items() if rank not in ranks and rank not in also_late]
    if len(own) < len(ranks) or not own or not others:
        return None
    unread_share = 0.0 if last else None
    found = compared(
        *(use_of(rows)._replace(unread_share=unread_share) for rows in (own, others))
    )
    is_on_gpu = connection.execute("SELECT 1 FROM gpu_device").fetchone() is not None
    # a rank that waits for its GPU spins on a core or sleeps
    if found is None or is_on_gpu and found.kind != LOST_CORE:
        return None
    beside_ns, others_ns = (_beside_ns(connection, rows) for rows in (own, others))
    if found.kind == ASLEEP and beside_ns - others_ns >= SHARE * found.longer_ns:
        return Reason(THREADS, beside_ns, others_ns, "in the whole run")
    return found._replace(where=BEFORE) if last else found


def _beside_ns(connection: Connection, rows: Sequence[CpuTimeRow]) -> float:
    """The mean CPU time of the other threads of these ranks' processes."""
    used_ns = {row.rank: row.cpu_ns for row in core_uses(connection)}
    return fmean(max(0, (used_ns.get(row.rank) or 0) - row.core_ns) for row in rows)


def call_reasons(
    connection: Connection, calls: Sequence[CallCause]
) -> dict[tuple[int, ...], Reason]:
    """By the ranks that are late in single calls, as far as reasons are known."""
    all_late = {rank for each in calls for rank in each.named.ranks}
    found = {each.named.ranks: reason(connection, each.named.ranks, all_late) for each in calls}
    return {ranks: why for ranks, why in found.items() if why}


def _waiting(row: CpuTimeRow, wait_ns: int) -> CpuTimeRow:
    counted_ns = row.inside_ns + row.outside_ns
    wait_ns = min(wait_ns, counted_ns)
    readings = dict.fromkeys(
        (name for name in CpuTimeRow._fields if name.startswith(("outside_", "inside_"))), 0
    )
    return row._replace(**readings | {"inside_ns": wait_ns, "outside_ns": counted_ns - wait_ns})


def compared(own: Use, others: Use) -> Reason | None:
    """The kind that most of the excess is, by the bounds that are known and by the times that are
    said."""
    longer_ns = own.outside_ns - others.outside_ns
    if longer_ns < NOTABLE * own.counted_ns:
        return None
    core_ns, others_core_ns = (use.ready_ns - use.outside_wait_ns for use in (own, others))
    idle = DISK if own.outside_disk > SHARE * own.outside_blocked else ASLEEP
    by_bounds = (
        (
            own.blocked_bounds_ns[0] - others.blocked_bounds_ns[1],
            Reason(idle, own.blocked_ns, others.blocked_ns),
        ),
        (_computing_ns(own, others), Reason(COMPUTES, core_ns, others_core_ns)),
        (_lost_ns(own, others), Reason(LOST_CORE, own.outside_wait_ns, others.outside_wait_ns)),
        (
            own.ready_bounds_ns[0] - others.ready_bounds_ns[1],
            Reason(READY, own.ready_ns, others.ready_ns),
        ),
    )
    return next(
        (
            why for sure_ns, why in by_bounds
            if min(sure_ns, why.longer_ns) >= SHARE * longer_ns
        ),
        None,
    )


def _computing_ns(own: Use, others: Use) -> float:
    """At least so much longer on a core outside MPI: as if these ranks had waited for one only
    there, and the others never."""
    ready_ns = own.ready_bounds_ns[0]
    return ready_ns - min(ready_ns, own.core_wait_ns) - others.ready_bounds_ns[1]


def _lost_ns(own: Use, others: Use) -> float:
    """At least so much longer than the same computation takes a rank that waits for a core as often
    as the others do."""
    more = own.wait_rate - others.wait_rate
    return own.ready_bounds_ns[0] * more / (1 - others.wait_rate) if more > 0 else 0.0


def longer_text(found: Reason, number: int) -> str:
    """sleeps 2.48 s longer. number: of the ranks."""
    words, longer = WORDS[found.kind], units.duration(found.longer_ns)
    return f"{units.agreeing(words.do, number)} {words.longer.format(longer)}"


def reason_text(found: Reason) -> str:
    """2.60 s asleep outside MPI, the others 122 ms on average"""
    own, others = units.duration(found.own_ns), units.duration(found.others_ns)
    return f"{own} {WORDS[found.kind].how} {found.where}, the others {others} on average"


def remedy(kind: str, ranks: Sequence[int]) -> str:
    do, them, their = (units.agreeing(words, len(ranks)) for words in ("they do", "them", "their"))
    return WORDS[kind].remedy.format(do=do, them=them, their=their)
