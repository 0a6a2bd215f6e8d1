"""Regions that the program has named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from sqlite3 import Connection

from ..base import query
from ..base.columns import Flags
from ..base.summarize import Row, View, own, row_type, summarize, total
from ..run.cells import Cells, cells_of
from .views import is_call, is_device, is_working

SQL = query.beside(__file__)

# A region including all regions inside it; own_: without these. span_: how long threads were in it,
# whatever they did.
RegionRow = row_type(
    "RegionRow",
    (
        "region", "ranks", "count", "volume_bytes", "total_ns", "mean_ns", "max_ns", "max_rank",
        "share_of_wall", "top_call", "own_count", "own_ns", "own_mean_ns", "own_share_of_wall",
        "folded_count", "nccl_count", "nccl_host_ns", "nccl_device_ns", "visits", "span_ns",
        "span_mean_ns", "span_max_ns", "span_max_rank",
    ),
)


def of_mpi(cells: Cells) -> Flags:
    return cells.is_in("library", "mpi")


def of_nccl(cells: Cells) -> Flags:
    return cells.is_in("library", "nccl") & is_call(cells)


SUMS = {
    "count": total("count", of_mpi),
    "volume_bytes": total("volume_bytes", of_mpi),
    "total_ns": total("total_ns", of_mpi),
    "folded_count": total("count", lambda cells: (cells.is_folded == 1) & is_call(cells)),
    "nccl_count": total("count", of_nccl),
    "nccl_host_ns": total("total_ns", of_nccl),
    "nccl_device_ns": total("total_ns", is_device),
}
OWN = View(
    "OwnRow", ("region", "world_rank"), {**own("region", "world_rank"), **SUMS},
    lambda groups: (groups.world_rank,), where=is_working,
)
CALLED = View(
    "CalledRow", ("region", "call", "timed"),
    {**own("region", "library", "timed", "call"), "total_ns": total("total_ns")},
    lambda groups: (groups.place("call"),), where=is_working,
)


def around(region: str) -> Iterator[str]:
    """The region, and those that it is in."""
    yield region
    while "/" in region[1:]:
        region = region[: region.rindex("/")]
        yield region


def region_rows(connection: Connection) -> list[Row]:
    """The one with the most time first, and what is outside all regions last."""
    cells = cells_of(connection)
    visits = {
        (region, rank): (times, ns)
        for region, rank, times, ns in SQL.run(connection, "visits")
        if cells.chosen.has("region", region) and rank in cells.counted
    }
    alone: dict[tuple[str, int], tuple] = dict.fromkeys(visits, (0,) * len(SUMS))
    alone.update({row[:2]: row[2:] for row in summarize(cells, OWN)})
    within: dict[str, dict[int, Counter]] = {}
    for (region, rank), values in alone.items():
        for outer in around(region):
            of_rank = within.setdefault(outer, {}).setdefault(rank, Counter(dict.fromkeys(SUMS, 0)))
            of_rank.update(dict(zip(SUMS, values)))
    calls: dict[str, Counter[tuple]] = {}
    for row in summarize(cells, CALLED):
        for outer in around(row.region):
            calls.setdefault(outer, Counter())[row[1:4]] += row.total_ns
    rows = [
        _row(cells, region, of_ranks, calls.get(region, Counter()), alone, visits)
        for region, of_ranks in within.items()
    ]
    return sorted(
        rows,
        key=lambda row: (
            row.region == "", -row.total_ns, -row.nccl_device_ns, -row.span_ns, row.region,
        ),
    )


def _row(
    cells: Cells, region: str, of_ranks: dict[int, Counter], calls: Counter[tuple],
    alone: dict[tuple[str, int], tuple], visits: dict[tuple[str, int], tuple[int, int]],
) -> Row:
    ranks = sorted(of_ranks)
    sums = {name: sum(own[name] for own in of_ranks.values()) for name in SUMS}
    own_count, _, own_ns = (
        sum(alone[region, rank][place] for rank in ranks if (region, rank) in alone)
        for place in range(3)
    )
    most = max(ranks, key=lambda rank: of_ranks[rank]["total_ns"])
    spans = {rank: visits.get((region, rank), (0, 0)) for rank in ranks}
    longest = max(ranks, key=lambda rank: spans[rank][1])
    span_ns = sum(ns for _, ns in spans.values())
    top = min(
        calls, default=None,
        key=lambda key: (key[0] != "mpi", key[1] != "device", -calls[key], key[2]),
    )
    counted_ns, number = cells.counted_ns, len(cells.counted)
    return RegionRow(
        region=region,
        ranks=len(ranks),
        **sums,
        mean_ns=sums["total_ns"] / number,
        max_ns=of_ranks[most]["total_ns"],
        max_rank=most if of_ranks[most]["count"] + of_ranks[most]["nccl_count"] else None,
        share_of_wall=sums["total_ns"] / counted_ns if counted_ns else None,
        top_call=top and top[2],
        own_count=own_count,
        own_ns=own_ns,
        own_mean_ns=own_ns / number,
        own_share_of_wall=own_ns / counted_ns if counted_ns else None,
        visits=sum(times for times, _ in spans.values()),
        span_ns=span_ns,
        span_mean_ns=span_ns / number,
        span_max_ns=spans[longest][1],
        span_max_rank=longest if spans[longest][1] else None,
    )
