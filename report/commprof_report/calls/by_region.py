"""Regions that the program has named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from sqlite3 import Connection

from ..base import query, units
from ..base.columns import Flags
from ..base.field import Field, Row, number, row_type, text
from ..base.summarize import View, among, own, summarize, total
from ..run.selection import Cells, cells_of
from .views import is_call, is_device, is_working

SQL = query.beside(__file__)
OUTSIDE = "(outside all regions)"


def if_visited(key: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    return lambda row: show(getattr(row, key)) if row.visits else units.NO_VALUE


REGION = (
    text(
        "region", "path, `epoch/forward`; empty: the program outside all regions", "region", 60
    )._replace(form=lambda name: units.shortened(name or OUTSIDE, 60)),
    Field("ranks", "chosen ranks that made a call in it, or visited it"),
    Field(
        "count",
        "sums over all calls in it and in the regions within it, over all chosen ranks", "calls",
    ),
    Field("volume_bytes", "", "volume"),
    Field("total_ns", ""),
    Field("mean_ns", "`total_ns` / number of chosen ranks", "in MPI per rank"),
    Field(
        "max_ns",
        "the most time inside MPI that a rank spent in it, and which rank (the lowest of several); "
        "null: no call was made in it",
        "most",
    ),
    number("max_rank", "", "most rank"),
    Field(
        "share_of_wall", "`total_ns` / sum of the chosen ranks' `counted_ns`", "of wall",
        units.share,
    ),
    text("top_call", "the call with the most time in it", "mostly"),
    Field("own_count", "the same for its own calls, without the regions within it"),
    Field("own_ns", ""),
    Field("own_mean_ns", "", "by itself"),
    Field("own_share_of_wall", ""),
    Field(
        "folded_count",
        "calls of folded sizes: their region is not known, they are counted outside all regions",
    ),
    Field(
        "nccl_count",
        "NCCL's calls, their time on the host, and that of its operations on the device; all other "
        "keys are MPI's",
        "NCCL calls",
    ),
    Field("nccl_host_ns", "", "on host"),
    Field("nccl_device_ns", "", "on device", lambda ns: units.duration(ns or None)),
    Field(
        "visits",
        "how often threads were in it, and for how long (table `region_span`), all chosen ranks; "
        "over their number. Only of the time in which calls are sampled",
        "visits per rank",
        of_row=lambda row: units.count(round(row.visits / row.ranks)) if row.visits
        else units.NO_VALUE,
    ),
    Field("span_ns", ""),
    Field(
        "span_mean_ns", "", "in it per rank", of_row=if_visited("span_mean_ns", units.duration)
    ),
    Field(
        "span_max_ns",
        "the longest that a rank was in it, all visits together, and which rank (the lowest of "
        "several); null: it was not visited",
        "longest", of_row=if_visited("span_max_ns", units.duration),
    ),
    number("span_max_rank", "", "longest rank"),
)
RegionRow = row_type("RegionRow", REGION)  # own_: without the regions inside it


of_mpi = among("library", "mpi")


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
