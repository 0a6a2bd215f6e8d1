"""Calls by the parts of a run that make them: pairs of ranks, ranks, regions that the program has
named, and threads that negotiate.

A framework such as Horovod has a background thread that agrees with the other ranks, in every
cycle, on what to send. It is recognised by its calls, not by a name: a thread other than the main
one that reduces bits (MPI_BAND, MPI_BOR) or gathers bytes again and again (traffic_class.sql). Its
rounds are those that the library has counted; docs/METHODS.md has the definition.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Iterator

from ..base import (
    AS_EVERYWHERE,
    Columns,
    Connection,
    Field,
    Flags,
    Row,
    Table,
    Texts,
    View,
    among,
    keys,
    number,
    own,
    query,
    read,
    row_type,
    summarize,
    sums as grouped_by,
    text,
    total,
    units,
)
from ..run import Cells, cells_of, cpu_times, traffic_classify, view_rows
from .views import RANK_SUMS, busiest_threads, is_call, is_device, is_working


def peer_name(rank: int | None) -> str:
    if rank is None:
        return "unknown"
    return "outside" if rank < 0 else str(rank)


PEER = (
    Field(
        "sender",
        "world ranks; -1: outside the job; null: a peer in NCCL whose database was not read",
        "from",
        peer_name,
    ),
    Field("receiver", "", "to", peer_name),
    Field(
        "count",
        "as the sender counted them; with `--received` as the receiver did",
        "messages",
    ),
    Field("bytes", "", "volume", units.volume),
    Field("time_ns", "table `peer`"),
    Field("rma_count", "RMA calls among `count`"),
)
PeerRow = row_type("PeerRow", PEER)


def peer_rows(connection: Connection, received: bool = False) -> list[Row]:
    return query.ask(connection, "calls/peers", PeerRow, received=received)


RANK = (
    number("rank", AS_EVERYWHERE, "rank"),
    text("host", "", "host", 20),
    Field("pid", "as in `rank`"),
    Field(
        "wall_ns",
        "wall time; 1: an estimate",
        "wall",
        of_row=lambda row: ("~" if row.wall_is_estimate else "") + units.duration(row.wall_ns),
    ),
    Field("wall_is_estimate", ""),
    Field("counted_ns", "as in `rank`"),
    Field("reset_unix_ns", ""),
    Field("mpi_ns", "time in MPI of its busiest thread; the same over counted_ns", "in MPI"),
    Field("mpi_share", "", "MPI share"),
    Field(
        "mpi_thread",
        "that thread's name; 1: it is the main thread",
        "thread",
        is_number=False,
        of_row=lambda row: (
            "main" if row.mpi_thread_is_main else units.shortened(row.mpi_thread or "another", 15)
        ),
    ),
    Field("mpi_thread_is_main", ""),
    Field("setup_ns", "time inside `MPI_Init`, `MPI_Finalize` and the like"),
    Field("count", AS_EVERYWHERE, "calls"),
    Field("volume_bytes", "", "volume"),
    Field("sent_count", "point-to-point messages that it sent"),
    Field("sent_bytes", ""),
    Field("ended", "as in `rank`"),
    Field("abort_code", ""),
    Field(
        "state",
        "[Words](#words): `finalize`, `end`, `exit`, `abort`, `running`, `killed`, `running or "
        "killed`, `snapshot`",
    ),
    Field("is_copy", "1: read from a copy of its ledger, see [The ledger](#the-ledger)"),
    Field("last_unix_ns", "its end; without an end its last sign of life"),
    Field(
        "doing_call",
        "as in `thread`, of the one inside longest",
    ),
    *(
        Field(f"doing_{key}", "")
        for key in ("request_call", "communicator", "bytes", "peer", "tag")
    ),
    Field("doing_is_inside", "1: it is inside that call, or was when last seen"),
    Field(
        "doing_since_unix_ns",
        "when it entered (not inside: left) that call; from then to `last_unix_ns`",
    ),
    Field("doing_ns", ""),
    Field("dropped_calls", "as in `rank`"),
    *(
        Field(key, "")
        for key in (
            "dropped_messages",
            "dropped_completions",
            "interrupted_calls",
            "untracked_requests",
            "folded_cells",
            "folded_communicators",
        )
    ),
    Field("cost_ns", "cost_init_ns + cost_finalize_ns + its calls x cost_per_call_ps / 1000"),
    Field("start_unix_ns", "as in `rank`"),
    Field("end_unix_ns", ""),
    Field("thread_level", ""),
    Field(
        "nccl_count",
        AS_EVERYWHERE,
        "NCCL calls",
    ),
    Field("nccl_volume_bytes", ""),
    Field("nccl_host_ns", "", "on host"),
    Field(
        "nccl_device_ns",
        "",
        "on device",
    ),
    Field(
        "affinity",
        "the cores on which its main thread may run (fact `last.affinity`)",
    ),
    Field(
        "cpu_ns",
        "CPU time of all its threads between its two readings; over the time between them",
    ),
    Field("cpu_share", ""),
    Field("voluntary_switches", "between the two readings"),
    Field("involuntary_switches", ""),
    Field("involuntary_switches_per_cpu_s", "involuntary_switches / cpu_ns"),
    Field(
        "core_read_ns",
        "[Time on a core](METHODS.md#time-on-a-core)",
    ),
    Field("core_ns", ""),
    Field("core_wait_ns", ""),
    Field("core_share", "core_ns and core_wait_ns over core_read_ns", "on a core"),
    Field("core_wait_share", "", "waits for one"),
    Field(
        "outside_ready",
        "readings, as in `cpu_time`",
    ),
    *(
        Field(key, "")
        for key in (
            "outside_asleep",
            "outside_disk",
            "inside_ready",
            "inside_asleep",
            "inside_disk",
        )
    ),
)
RankRow = row_type("RankRow", RANK)
NO_CALL = dict.fromkeys(
    (
        "setup_ns",
        "count",
        "volume_bytes",
        "nccl_count",
        "nccl_volume_bytes",
        "nccl_host_ns",
        "mpi_ns",
    ),
    0,
)


def rank_rows(connection: Connection) -> list[Row]:
    cpu_times(connection)  # makes rank_core
    found = query.run(connection, "calls/ranks")
    names = [column[0] for column in found.description]
    sums = {own.rank: own._asdict() for own in view_rows(connection, RANK_SUMS)}
    threads = {
        tuple(place): (name, is_main)
        for *place, name, is_main in connection.execute(
            "SELECT world_rank, thread, name, is_main FROM thread"
        )
    }
    busiest = {
        rank: (most.mpi_ns, *threads.get((rank, most.thread), (None, 1)))
        for rank, most in busiest_threads(connection).items()
    }
    rows = []
    for values in found:
        known = {**NO_CALL, **dict(zip(names, values))}
        mpi_ns, name, is_main = busiest.get(known["rank"], (0, None, 1))
        known.update(
            sums.get(known["rank"], {}),
            mpi_ns=mpi_ns,
            mpi_thread=name,
            mpi_share=mpi_ns / known["counted_ns"] if known["counted_ns"] else None,
            mpi_thread_is_main=is_main,
        )
        rows.append(RankRow(*map(known.get, keys(RANK))))
    return rows


OUTSIDE = "(outside all regions)"


def if_visited(key: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    return lambda row: show(getattr(row, key)) if row.visits else units.NO_VALUE


REGION = (
    text("region", "path, `epoch/forward`; empty: outside all regions", "region", 60)._replace(
        form=lambda name: units.shortened(name or OUTSIDE, 60)
    ),
    Field("ranks", "chosen ranks that made a call in it or visited it"),
    Field(
        "count",
        "[as everywhere](#answers), in it and in the regions within it",
        "calls",
    ),
    Field("volume_bytes", "", "volume"),
    Field("total_ns", ""),
    Field("mean_ns", "`total_ns` / number of chosen ranks", "in MPI per rank"),
    Field(
        "max_ns",
        "the most time inside MPI of a rank in it, and the lowest such rank",
        "most",
    ),
    number("max_rank", "", "most rank"),
    Field(
        "share_of_wall",
        "[as everywhere](#answers), in it and in the regions within it",
        "of wall",
        units.share,
    ),
    text("top_call", "the call with the most time in it", "mostly"),
    Field("own_count", "without the regions within it"),
    Field("own_ns", ""),
    Field("own_mean_ns", "", "by itself"),
    Field("own_share_of_wall", ""),
    Field(
        "folded_count",
        "calls of folded sizes, whose region is not known (counted outside all regions)",
    ),
    Field(
        "nccl_count",
        "[as everywhere](#answers), in it and in the regions within it",
        "NCCL calls",
    ),
    Field("nccl_host_ns", "", "on host"),
    Field("nccl_device_ns", "", "on device", lambda ns: units.duration(ns or None)),
    Field(
        "visits",
        "how often threads of all chosen ranks were in it, while calls were sampled; how long; "
        "over these ranks",
        "visits per rank",
        of_row=lambda row: (
            units.count(round(row.visits / row.ranks)) if row.visits else units.NO_VALUE
        ),
    ),
    Field("span_ns", ""),
    Field("span_mean_ns", "", "in it per rank", of_row=if_visited("span_mean_ns", units.duration)),
    Field(
        "span_max_ns",
        "the longest sum of a rank's visits, and the lowest such rank",
        "longest",
        of_row=if_visited("span_max_ns", units.duration),
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
    "OwnRow",
    ("region", "world_rank"),
    {**own("region", "world_rank"), **SUMS},
    lambda groups: (groups.world_rank,),
    where=is_working,
)
CALLED = View(
    "CalledRow",
    ("region", "call", "timed"),
    {**own("region", "library", "timed", "call"), "total_ns": total("total_ns")},
    lambda groups: (groups.place("call"),),
    where=is_working,
)


def around(region: str) -> Iterator[str]:
    """The region, and those that it is in."""
    yield region
    while "/" in region[1:]:
        region = region[: region.rindex("/")]
        yield region


def region_spans(connection: Connection) -> Table:
    """When each thread was in each region, in the order of regions, ranks and time: name,
    world_rank, thread, is_main, begin_ns, end_ns, span_ns; whatever was selected."""
    texts = Texts()
    return Table(read(Columns, query.run(connection, "calls/visits"), texts), texts)


def region_rows(connection: Connection) -> list[Row]:
    """The one with the most time first, and what is outside all regions last."""
    cells, spans = (
        cells_of(connection),
        grouped_by(region_spans(connection), ["name", "world_rank"]),
    )
    columns = spans.world_rank.tolist(), spans.groups.counts.tolist(), spans.sum("span_ns").tolist()
    visits = {
        (region, rank): (times, ns)
        for region, rank, times, ns in zip(spans.texts(spans.name), *columns)
        if cells.has("region", region) and rank in cells.counted
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
            row.region == "",
            -row.total_ns,
            -row.nccl_device_ns,
            -row.span_ns,
            row.region,
        ),
    )


def _row(
    cells: Cells,
    region: str,
    of_ranks: dict[int, Counter],
    calls: Counter[tuple],
    alone: dict[tuple[str, int], tuple],
    visits: dict[tuple[str, int], tuple[int, int]],
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
        calls,
        default=None,
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


# The whole run's: means over the ranks that have such a thread. None: no rounds were counted,
# as without Horovod's cache.
Negotiation = namedtuple(
    "Negotiation",
    "call rounds cycle_ns idle_share rounds_per_step sending bulk_bytes bulk_ns control_ns",
)


def negotiation(connection: Connection) -> Negotiation | None:
    """The run must have been opened with samples."""
    traffic_classify(connection)
    return next(iter(query.ask(connection, "calls/negotiated_time", Negotiation)), None)
