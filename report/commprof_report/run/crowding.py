"""Crowding: more ranks than cores on which they may run.

It follows from affinity masks and cgroup quotas only, never from times, so another job on the host
never makes ranks crowded. Ranks are crowded if the masks of some of them together contain fewer
cores than these ranks, or if their cgroup's quota is smaller than their number. The smallest case
is two ranks bound to one core. docs/SCHEMA.md has the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.present import present

SQL = query.beside(__file__)

SPAN = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


class CoreUseRow(NamedTuple):
    rank: int
    host: str | None
    kernel: str | None
    affinity: str | None
    quota_cores: float | None
    quota_cgroup: str | None
    cpu_ns: int | None
    elapsed_ns: int | None
    involuntary_switches: int | None


class Crowding(NamedTuple):
    """The crowded ranks of a host, and the number of cores that they share, by mask or by quota."""

    host: str
    ranks: list[int]
    cores: float
    is_quota: bool
    involuntary_switches: int | None
    cpu_share: float | None

    @property
    def sentence(self) -> str:
        return sentence([self])


def core_uses(connection: Connection) -> list[CoreUseRow]:
    return SQL.ask(connection, "crowding", CoreUseRow)


def crowding(connection: Connection) -> list[Crowding]:
    """The hosts with crowded ranks, over the whole run; empty if there are none, or masks are
    unknown."""
    by_kernel: dict[str, list[CoreUseRow]] = {}
    for row in core_uses(connection):
        if row.kernel is not None:
            by_kernel.setdefault(row.kernel, []).append(row)
    return [found for rows in by_kernel.values() if (found := _of_host(rows))]


def sentence(found: Sequence[Crowding]) -> str:
    """One line for all hosts: 4 ranks share 2 cores on host x, 23,118 involuntary switches: part of
    the time in MPI here is scheduling."""
    ranks = sum(len(crowded.ranks) for crowded in found)
    cores = sum(crowded.cores for crowded in found)
    shared = f"{cores:g} core" + ("" if cores == 1 else "s")
    quota = " by cgroup quota" if any(crowded.is_quota for crowded in found) else ""
    hosts = units.shortened(", ".join(crowded.host for crowded in found), 36)
    place = f"host {hosts}" if len(found) == 1 else f"{len(found)} hosts ({hosts})"
    count = _sum(crowded.involuntary_switches for crowded in found)
    switches = (
        "" if count is None
        else f", {units.count(count)} involuntary switch{'' if count == 1 else 'es'}"
    )
    return (
        f"{units.counted(ranks, 'rank')} share {shared}{quota} on {place}{switches}: part of "
        "the time in MPI here is scheduling"
    )


def crowded_facts(found: Sequence[Crowding]) -> Iterator[tuple[str, str]]:
    if found:
        yield "Crowded", sentence(found)


def _of_host(rows: list[CoreUseRow]) -> Crowding | None:
    candidates = [*_by_mask(rows), *_by_quota(rows)]
    if not candidates:
        return None
    crowded, cores, is_quota = max(
        candidates, key=lambda candidate: (len(candidate[0]), -candidate[1])
    )
    return Crowding(
        ", ".join(sorted({row.host for row in crowded if row.host})), [row.rank for row in crowded],
        cores, is_quota, _sum(row.involuntary_switches for row in crowded), _share(crowded),
    )


def _by_mask(rows: list[CoreUseRow]) -> Iterator[tuple[list[CoreUseRow], float, bool]]:
    """The union of the groups of ranks with fewer cores than members, as long as this also holds
    for the union."""
    masks = {row.rank: mask for row in rows if (mask := cores_of(row.affinity))}
    crowded = 0
    for mask in _crowded_masks(Counter(masks.values())):
        if _inside(crowded | mask, masks.values()) > _size(crowded | mask):
            crowded |= mask
    if crowded:
        inside = [row for row in rows if row.rank in masks and not masks[row.rank] & ~crowded]
        yield inside, _size(crowded), False


def _crowded_masks(counts: Counter[int]) -> list[int]:
    """Masks with fewer cores than ranks that may run only there; those with the
    most ranks first."""
    whole = 0
    for mask in counts:
        whole |= mask
    # as after binding; then there may be many masks
    are_disjoint = sum(map(_size, counts)) == _size(whole)
    inside = (
        counts if are_disjoint
        else {mask: _inside(mask, counts.elements()) for mask in {*counts, whole}}
    )
    crowded = [mask for mask, ranks in inside.items() if ranks > _size(mask)]
    return sorted(crowded, key=lambda mask: (-inside[mask], _size(mask), mask))


def _size(mask: int) -> int:
    return bin(mask).count("1")


def _inside(whole: int, masks: Iterable[int]) -> int:
    return sum(not mask & ~whole for mask in masks)


def _by_quota(rows: list[CoreUseRow]) -> Iterator[tuple[list[CoreUseRow], float, bool]]:
    by_cgroup: dict[str, list[CoreUseRow]] = {}
    for row in rows:
        if row.quota_cores:
            by_cgroup.setdefault(row.quota_cgroup or "", []).append(row)
    for limited in by_cgroup.values():
        cores = min(present(row.quota_cores) for row in limited)
        if len(limited) > max(1, cores):
            yield limited, cores, True


def cores_of(affinity: str | None) -> int:
    """The mask of a list such as '0-3,8': bit 0 is core 0; 0 if the list is unknown or
    malformed."""
    mask = 0
    for part in (affinity or "").split(","):
        span = SPAN.fullmatch(part)
        if not span:
            return 0
        low, high = int(span[1]), int(span[2] or span[1])
        mask |= (2 << high) - (1 << low) if low <= high else 0
    return mask


def _sum(numbers: Iterable[int | None]) -> int | None:
    """None: not all are known."""
    all_numbers = list(numbers)
    known = [number for number in all_numbers if number is not None]
    return sum(known) if len(known) == len(all_numbers) else None


def _share(rows: list[CoreUseRow]) -> float | None:
    cpu_ns, elapsed_ns = _sum(row.cpu_ns for row in rows), _sum(row.elapsed_ns for row in rows)
    return cpu_ns / elapsed_ns if cpu_ns is not None and elapsed_ns else None
