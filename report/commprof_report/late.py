"""Who is late: the split of collectives into waiting and transfer, summed up, and what it means in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from sqlite3 import Connection
from typing import NamedTuple

from . import query, questions, units
from .alignment import align
from .lateness import lateness
from .questions import LateCallRow, LateRankRow

MOST_OF_IT = 2 / 3  # of the waiting: whoever causes so much is who is late
FEW = 4  # a quarter of the ranks may share the blame and still be a few


class LateRow(NamedTuple):
    """The run in one row."""

    ranks: int
    collectives: int
    total_ns: int
    looked_ns: int
    coverage: float | None
    wait_ns: int
    transfer_ns: int
    wait_share: float | None
    share_of_wall: float | None
    estimate_share: float | None
    other_ns: int
    unsure: int
    clocks: int
    unconnected_clocks: int
    error_ns: int
    verdict: str
    late_ranks: str | None
    late_hosts: str | None
    late_share: float | None
    late_gain_ns: int | None
    unjudged: int


class LateHostRow(NamedTuple):
    """The ranks of a host, added up."""

    host: str
    ranks: int
    collectives: int
    last_count: int
    cost_ns: int
    alone_ns: int
    wait_ns: int
    transfer_ns: int
    wait_share: float | None


class Late(NamedTuple):
    run: LateRow
    ranks: list[LateRankRow]
    hosts: list[LateHostRow]
    calls: list[LateCallRow]

    @property
    def is_known(self) -> bool:
        return self.run.verdict != "none"

    @property
    def awaited(self) -> LateRankRow:
        """The rank that alone costs the others most."""
        return max(self.ranks, key=lambda row: row.alone_ns)


def late(connection: Connection) -> Late:
    """Of a run that was opened with samples and selected from. The filter of ranks applies to what is shown; who is late is asked of all."""
    alignment = align(connection)
    looked = lateness(connection, alignment)
    query.run_script(connection, "late_factors")
    ranks = questions.late_ranks(connection)
    counted = questions.late_run(connection)
    selected = {rank for (rank,) in connection.execute("SELECT world_rank FROM selected_rank")}
    chosen = [row for row in ranks if row.rank in selected]
    run = LateRow(
        *counted,
        unsure=looked.unsure,
        clocks=len(alignment.clocks),
        unconnected_clocks=alignment.islands - 1,
        error_ns=math.ceil(looked.error_ns),
        **_verdict(counted, ranks),
        unjudged=query.run_script(connection, "late_unjudged").fetchone()[0],
    )
    return Late(run, chosen, _hosts(chosen), questions.late_calls(connection))


def _hosts(ranks: Iterable[LateRankRow]) -> list[LateHostRow]:
    by_host: dict[str, list[LateRankRow]] = {}
    for row in ranks:
        by_host.setdefault(row.host or "", []).append(row)
    return [_host(host, rows) for host, rows in sorted(by_host.items())]


def _host(host: str, rows: list[LateRankRow]) -> LateHostRow:
    summed = {
        key: sum(getattr(row, key) for row in rows)
        for key in ("collectives", "last_count", "cost_ns", "alone_ns", "wait_ns", "transfer_ns")
    }
    split_ns = summed["wait_ns"] + summed["transfer_ns"]
    return LateHostRow(host, len(rows), **summed, wait_share=summed["wait_ns"] / split_ns if split_ns else None)


def _verdict(counted: questions.LateRunRow, ranks: list[LateRankRow]) -> dict:
    """imbalance: a few ranks, or a host, cause most of the waiting; jitter: they take turns; transfer: waiting is the lesser part."""
    late = _few(ranks)
    hosts = sorted({row.host or "" for row in ranks if row.rank in late})
    cost_ns = sum(row.cost_ns for row in ranks)
    blamed = [row for row in ranks if row.rank in late]
    is_split = counted.wait_ns + counted.transfer_ns > 0
    is_waiting = is_split and counted.wait_ns >= counted.transfer_ns
    return {
        "verdict": "none" if not is_split else "transfer" if not is_waiting else "imbalance" if late else "jitter",
        "late_ranks": units.rank_list(late) if late else None,
        "late_hosts": ",".join(hosts) if late else None,
        "late_share": sum(row.cost_ns for row in blamed) / cost_ns if late else None,
        "late_gain_ns": (blamed[0].alone_ns if len(blamed) == 1 else sum(row.cost_ns for row in blamed)) if late else None,
    }


def _few(ranks: list[LateRankRow]) -> list[int]:
    """The ranks that cause most of the waiting, if they are few: else those of the host that does."""
    by_rank = _fewest({(row.rank,): row.cost_ns for row in ranks})
    if by_rank:
        return by_rank
    by_host: dict[str, list[LateRankRow]] = {}
    for row in ranks:
        by_host.setdefault(row.host or "", []).append(row)
    return _fewest({tuple(row.rank for row in rows): sum(row.cost_ns for row in rows) for rows in by_host.values()})


def _fewest(costs: dict[tuple[int, ...], int]) -> list[int]:
    most_ns, blamed, blamed_ns = MOST_OF_IT * sum(costs.values()), [], 0
    for who in sorted(costs, key=lambda who: (-costs[who], who))[: max(1, len(costs) // FEW)]:
        blamed.append(who)
        blamed_ns += costs[who]
        if blamed_ns >= most_ns > 0 and len(costs) > 1:
            return sorted(rank for who in blamed for rank in who)
    return []
