"""Time on a core: how long each rank was on one, waited for one, or was blocked, outside MPI and
inside; and crowding: ranks that wait for a core. docs/METHODS.md has formulas and rules.

The kernel counts time on a core and time waiting for one exactly, outside MPI and inside together;
the rest of the time a thread is blocked. How much of that is outside is known from readings, some
ten a second, that find a thread blocked outside MPI or inside, and from how long it was there at
all. How often a thread is found blocked says less: on a crowded host the thread that reads gets a
core when others leave theirs.

If the kernel's count is known of a host, it decides who is crowded, whoever had the core: ranks,
their threads, another job, or the machine beneath. Else affinity masks and cgroup quotas decide:
ranks are crowded if the masks of some of them together contain fewer cores than these ranks, or if
their cgroup's quota is smaller than their number. The smallest case is two ranks bound to one core.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from math import sqrt
from operator import or_
from sqlite3 import Connection
from statistics import fmean

from ..base import Row, attempt, gathered, present, query, spans_in, threshold, units

WAITS, TAKEN = threshold("run.core-wait"), threshold("run.core-taken")

MOST_CORES = 10_000  # of a host; what names more is damaged


# Time that crowded ranks were ready, but had no core, in ns over all of them. outside_ns: the part
# of wait_ns outside MPI. throttled: share of the ranks' time that the cgroup's quota took; stolen:
# of the cores' that the machine beneath the host took; None: not known.
Lost = namedtuple("Lost", "time_ns wait_ns outside_ns throttled stolen")


# The crowded ranks of a host, and the number of cores that they share, by mask or by quota; 0:
# there are as many as ranks. lost: None if only masks and quotas are known.
Crowding = namedtuple("Crowding", "host ranks cores is_quota lost", defaults=(None,))


def core_uses(connection: Connection) -> list[Row]:
    return list(query.rows(connection, "run/crowding"))


def crowding(connection: Connection) -> list[Crowding]:
    """The hosts with crowded ranks, over the whole run; empty if there are none, it is not known,
    or their analysis fails."""
    return attempt("Crowded", _of_hosts, connection) or []


def _of_hosts(connection: Connection) -> list[Crowding]:
    by_kernel = gathered(
        (row.kernel, row) for row in core_uses(connection) if row.kernel is not None
    )
    times = cpu_times(connection)
    found = (
        _measured(rows, times)
        if any(row.rank in times for row in rows)
        else max(
            [*_by_mask(rows), *_by_quota(rows)],
            key=lambda crowded: (len(crowded.ranks), -crowded.cores),
            default=None,
        )
        for rows in by_kernel.values()
    )
    return list(filter(None, found))


def _crowding(
    rows: Sequence[Row], cores: float, is_quota: bool, lost: Lost | None = None
) -> Crowding:
    hosts = ", ".join(sorted({row.host for row in rows if row.host}))
    return Crowding(hosts, [row.rank for row in rows], cores, is_quota, lost)


def sentence(found: Sequence[Crowding]) -> str:
    """One line for all hosts: 4 ranks share 2 cores on host x: part of the time in MPI here is
    scheduling. Not if it was measured that they waited outside MPI."""
    ranks = [rank for crowded in found for rank in crowded.ranks]
    hosts = units.shortened(", ".join(crowded.host for crowded in found), 36)
    place = f"host {hosts}" if len(found) == 1 else f"{len(found)} hosts ({hosts})"
    lost = [crowded.lost for crowded in found if crowded.lost]
    outside = units.share(_share_of(lost, lambda each: each.outside_ns))
    cores = sum(crowded.cores for crowded in found)
    quota = " by cgroup quota" if any(crowded.is_quota for crowded in found) else ""
    what = (
        f"{units.rank_names(ranks)} {waits_text(found)} ({outside} outside MPI){taken_text(lost)}"
        if lost
        else f"{units.counted(len(ranks), 'rank')} share {cores:g} core{'s' * (cores != 1)}{quota}"
    )
    is_inside = not lost or _share_of(lost, lambda each: each.wait_ns - each.outside_ns) >= WAITS
    inside = ": part of the time in MPI here is scheduling" if is_inside else ""
    return f"{what} on {place}{inside}"


def waits_text(found: Sequence[Crowding]) -> str:
    """waited for a core 41.2 % of the time"""
    lost = [crowded.lost for crowded in found if crowded.lost]
    share = units.share(_share_of(lost, lambda each: each.wait_ns))
    return f"waited for a core {share} of the time"


def _share_of(lost: Sequence[Lost], of: Callable[[Lost], float]) -> float:
    return sum(map(of, lost)) / (sum(each.time_ns for each in lost) or 1)


def scheduling_text(found: Sequence[Crowding]) -> str:
    """Why the scheduler may be a cause."""
    return waits_text(found) if any(crowded.lost for crowded in found) else "share cores"


def taken_text(lost: Sequence[Lost]) -> str:
    """Who took the core, where it was no other thread of the host."""
    throttled = max((each.throttled or 0 for each in lost), default=0)
    stolen = max((each.stolen or 0 for each in lost), default=0)
    quota = f", throttled by a cgroup quota {units.share(throttled)} of it" * (throttled >= TAKEN)
    taken = f", with {units.share(stolen)} of the cores' time taken by the hypervisor"
    return quota + taken * (stolen >= TAKEN)


def crowded_facts(found: Sequence[Crowding]) -> list[tuple[str, str]]:
    return [("Crowded", sentence(found) if found else "")]


def _measured(rows: list[Row], times: Mapping[int, CpuTimeRow]) -> Crowding | None:
    """The ranks that waited for a core; all of the host if the machine beneath took cores."""
    known = [row for row in rows if row.rank in times]
    # the host's count is of all its cores: at least those of the masks, and one for each rank
    masks = reduce(or_, (cores_of(row.affinity) for row in rows), 0)
    cores = max(len(rows), _size(masks))
    taken = _taken_share(rows, "stolen_ns", lambda row: cores)
    crowded = [
        row for row in known if (taken or 0) >= TAKEN or is_crowded(use_of([times[row.rank]]))
    ]
    if not crowded:
        return None
    use = use_of([times[row.rank] for row in crowded])
    # the cgroup's count is of all cores together; no more than one for each rank is throttled
    quotas = Counter(row.quota_cgroup for row in crowded)
    throttled = _taken_share(crowded, "throttled_ns", lambda row: quotas[row.quota_cgroup])
    number = len(crowded)
    lost = Lost(
        number * use.counted_ns,
        number * use.core_wait_ns,
        number * use.outside_wait_ns,
        throttled,
        taken,
    )
    return _crowding(crowded, 0, False, lost)


def is_crowded(use: Use) -> bool:
    return use.core_wait_ns >= WAITS * use.counted_ns > 0


def _taken_share(rows: list[Row], taken: str, cores: Callable[[Row], int]) -> float | None:
    """The largest share of a rank's cores that was taken; None: it is not known."""
    shares = [
        getattr(row, taken) / row.elapsed_ns / cores(row)
        for row in rows
        if getattr(row, taken) is not None and row.elapsed_ns
    ]
    return max(shares, default=None)


def _by_mask(rows: list[Row]) -> Iterator[Crowding]:
    """The union of the masks with fewer cores than ranks that may run only there, as long as this
    also holds for the union."""
    masks = {row.rank: mask for row in rows if (mask := cores_of(row.affinity))}
    whole = reduce(or_, masks.values(), 0)
    crowded = 0
    for mask in sorted({*masks.values(), whole}, key=lambda mask: (_size(mask), mask)):
        if all(
            sum(not own & ~each for own in masks.values()) > _size(each)
            for each in (mask, crowded | mask)
        ):
            crowded |= mask
    if crowded:
        inside = [row for row in rows if row.rank in masks and not masks[row.rank] & ~crowded]
        yield _crowding(inside, _size(crowded), False)


def _size(mask: int) -> int:
    return bin(mask).count("1")


def _by_quota(rows: list[Row]) -> Iterator[Crowding]:
    by_cgroup = gathered((row.quota_cgroup or "", row) for row in rows if row.quota_cores)
    for limited in by_cgroup.values():
        cores = min(present(row.quota_cores) for row in limited)
        if len(limited) > max(1, cores):
            yield _crowding(limited, cores, True)


def cores_of(affinity: str | None) -> int:
    """The mask of a list such as '0-3,8': bit 0 is core 0; 0 if the list is unknown or
    malformed."""
    spans = spans_in(affinity or "") or []
    if any(span.stop > MOST_CORES for span in spans):
        return 0
    return sum(1 << core for core in {*chain(*spans)})


ERRORS = threshold("run.core-errors")


# A rank's main thread, or all its threads that call MPI if that does not; cpu_time.sql.
CpuTimeRow = namedtuple(
    "CpuTimeRow",
    "rank read_ns core_ns core_wait_ns outside_ready outside_asleep outside_disk "
    "inside_ready inside_asleep inside_disk inside_ns outside_ns is_of_main",
)


class Use(
    namedtuple(
        "Use",
        "outside_ns inside_ns core_ns core_wait_ns outside_blocked outside_disk inside_blocked "
        "unread_share",
        defaults=(None,),
    )
):
    """The use of cores by some ranks: means in ns over the counted time, and readings that found
    them blocked. outside_disk: of outside_blocked; unread_share: of the time blocked, outside MPI,
    if no reading finds any; None: as of all time."""

    @property
    def counted_ns(self) -> float:
        return self.outside_ns + self.inside_ns

    @property
    def wait_rate(self) -> float:
        """The share of the time ready in which they wait for a core, outside MPI as inside."""
        return self.core_wait_ns / ((self.core_ns + self.core_wait_ns) or 1)

    @property
    def blocked_ns(self) -> float:
        """Outside MPI."""
        if readings := self.outside_blocked + self.inside_blocked:
            return self._blocked_ns(self.outside_blocked / readings)
        share = self.outside_ns / (self.counted_ns or 1)
        return self._blocked_ns(share if self.unread_share is None else self.unread_share)

    @property
    def ready_ns(self) -> float:
        """Outside MPI, on a core or waiting for one."""
        return self.outside_ns - self.blocked_ns

    @property
    def outside_wait_ns(self) -> float:
        """Waiting for a core outside MPI."""
        return self.ready_ns * self.wait_rate

    @property
    def blocked_bounds_ns(self) -> tuple[float, float]:
        low, high = share_bounds(self.outside_blocked, self.outside_blocked + self.inside_blocked)
        return self._blocked_ns(low), self._blocked_ns(high)

    @property
    def ready_bounds_ns(self) -> tuple[float, float]:
        low, high = self.blocked_bounds_ns
        return self.outside_ns - high, self.outside_ns - low

    def _blocked_ns(self, share: float) -> float:
        """This share of the time blocked: no more than they were outside MPI, nor was more of it
        inside than they were there."""
        blocked_ns = max(0.0, self.counted_ns - self.core_ns - self.core_wait_ns)
        least_ns = max(0.0, blocked_ns - self.inside_ns)
        return max(least_ns, min(share * blocked_ns, self.outside_ns))


def share_bounds(found: float, readings: float) -> tuple[float, float]:
    """Wilson's interval of a share, ERRORS standard errors wide to both sides."""
    if not readings:
        return 0.0, 1.0
    share, square = found / readings, ERRORS * ERRORS / readings
    middle = share + square / 2
    reach = ERRORS * sqrt(share * (1 - share) / readings + square / readings / 4)
    return max(0.0, (middle - reach) / (1 + square)), min(1.0, (middle + reach) / (1 + square))


def cpu_times(connection: Connection) -> dict[int, CpuTimeRow]:
    """By rank: those of which time waiting for a core is known, over most of their time."""
    rows = query.ask(connection, "run/cpu_time", CpuTimeRow)
    return {row.rank: row for row in rows if row.core_wait_ns is not None and is_read(row)}


def is_read(row: CpuTimeRow) -> bool:
    return row.read_ns >= threshold("run.core-read") * (row.inside_ns + row.outside_ns)


def use_of(rows: Sequence[CpuTimeRow]) -> Use:
    """The readings are scaled to all counted time."""
    times = [
        (row.outside_ns, row.inside_ns, row.core_ns * scale, (row.core_wait_ns or 0) * scale)
        for row in rows
        for scale in [_scale(row)]
    ]
    outside_ns, inside_ns, core_ns, core_wait_ns = map(fmean, zip(*times or [(0, 0, 0, 0)]))
    return Use(
        outside_ns,
        inside_ns,
        core_ns,
        core_wait_ns,
        sum(row.outside_asleep + row.outside_disk for row in rows),
        sum(row.outside_disk for row in rows),
        sum(row.inside_asleep + row.inside_disk for row in rows),
    )


def _scale(row: CpuTimeRow) -> float:
    """The kernel counts a wait when it is over: one may have begun before the first reading."""
    ready_ns = row.core_ns + (row.core_wait_ns or 0)
    return (row.inside_ns + row.outside_ns) / (max(row.read_ns, ready_ns) or 1)
