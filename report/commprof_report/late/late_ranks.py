"""Late ranks: sums the wait splits of collectives by rank, host, call and run, and derives the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..run.alignment import Alignment
from ..run.selection import Selection
from .wait_split import WaitSplit, wait_split

SQL = query.beside(__file__)

MOST_OF_IT = 2 / 3  # share of the waiting that the late ranks cause together
FEW = 4  # at most one rank in FEW may be late


class LateRankRow(NamedTuple):
    """A rank's sums over the synchronizing collectives."""

    rank: int
    host: str | None
    collectives: int
    last_count: int
    last_share: float | None
    cost_ns: int
    alone_ns: int
    wait_ns: int
    transfer_ns: int
    wait_share: float | None
    nonblocking_last: int


class LateCallRow(NamedTuple):
    call: str
    communicator: str
    identity: str
    ranks: int
    total_ns: int
    collectives: int
    wait_ns: int | None
    transfer_ns: int | None
    wait_share: float | None
    estimate_share: float | None
    top_rank: int | None
    top_cost_ns: int | None
    library: str


class LateRunRow(NamedTuple):
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
    split: WaitSplit  # only the selected sizes and regions

    @property
    def is_known(self) -> bool:
        return self.run.verdict != "none"

    @property
    def awaited(self) -> LateRankRow:
        """The rank whose own lateness costs the others most."""
        return max(self.ranks, key=lambda row: row.alone_ns)


def late(run: Selection, alignment: Alignment) -> Late:
    """The run must have been opened with samples. The rank filter restricts the rows; the verdict considers all ranks."""
    connection, split = run.connection, wait_split(run, alignment)
    SQL.run(connection, "late_factors")
    ranks = late_rank_rows(connection)
    counted = late_run_row(connection)
    selected = {rank for (rank,) in connection.execute("SELECT world_rank FROM selected_rank")}
    chosen = [row for row in ranks if row.rank in selected]
    of_run = LateRow(
        *counted,
        unsure=split.unsure,
        clocks=len(alignment.clocks),
        unconnected_clocks=alignment.islands - 1,
        error_ns=math.ceil(split.error_ns),
        **_verdict(counted, ranks),
        unjudged=SQL.run(connection, "late_unjudged").fetchone()[0],
    )
    return Late(of_run, chosen, _hosts(chosen), late_call_rows(connection), split)


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


def _verdict(counted: LateRunRow, ranks: list[LateRankRow]) -> dict:
    """imbalance: a few ranks, or one host, cause most of the waiting; jitter: many ranks cause it; transfer: waiting is less than half."""
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
    """The few ranks that cause most of the waiting, or else the ranks of the few hosts that do; empty if there are none."""
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


def late_rank_rows(connection: Connection) -> list[LateRankRow]:
    return SQL.ask(connection, "late_ranks", LateRankRow)


def late_call_rows(connection: Connection) -> list[LateCallRow]:
    return SQL.ask(connection, "late_calls", LateCallRow)


def late_run_row(connection: Connection) -> LateRunRow:
    return SQL.ask(connection, "late_run", LateRunRow)[0]
