"""The questions that group counters by something, as views (base/summarize.py): calls, sizes,
ranks, traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import (
    AS_EVERYWHERE,
    Connection,
    Field,
    Flags,
    Floats,
    Groups,
    Ints,
    NONE,
    Row,
    Sums,
    View,
    Where,
    among,
    any_total,
    durations,
    measures,
    np,
    number,
    own,
    ratio,
    text,
    total,
    units,
)
from ..run import Cells, view_rows

is_completion, is_poll = among("measure", "completion"), among("measure", "poll")
is_call = among("measure", "call", "poll", "captured")
is_device, is_host = among("timed", "device"), among("timed", "call", "captured")


def is_made(cells: Cells) -> Flags:
    return ~is_completion(cells)


def is_in_mpi(cells: Cells) -> Flags:
    """Calls that are time inside MPI: NCCL's only put operations into a stream's queue."""
    return is_working(cells) & is_mpi_call(cells)


def is_inside(cells: Cells) -> Flags:
    """The same, and NCCL's operations on the device."""
    return is_in_mpi(cells) | (is_working(cells) & is_device(cells))


def is_working(cells: Cells) -> Flags:
    """Without MPI_Init and MPI_Finalize, which are no communication."""
    return is_made(cells) & ~cells.is_in("family", "setup")


def overlap(groups: Sums) -> Floats:
    """The part of the time from start to completion in no call for it."""
    spent = (groups.sum(name, is_completion) for name in ("blocked_ns", "total_ns"))
    return np.maximum(0, 1 - ratio(*spent))


def of_wall(groups: Sums) -> Floats:
    """The share of the time of all ranks; null: not of the host."""
    share = ratio(groups.sum("total_ns", is_made), groups.counters.counted_ns)
    return np.where(groups.has(is_host), share, np.nan)


def dominating(groups: Sums) -> tuple[Ints, Floats]:
    """The size with the most time, and its share."""
    sizes = groups.within("bytes", where=is_made)
    most = groups.first_of(sizes, -sizes.sum("total_ns"), -sizes.bytes)
    size, total_ns = (np.append(each, NONE)[most] for each in (sizes.bytes, sizes.sum("total_ns")))
    return size, ratio(total_ns, groups.sum("total_ns", is_made))


OF_MADE = durations(50, 95, 99, where=is_made)
DURATIONS = (
    Field("total_ns", AS_EVERYWHERE, "total"),
    Field("mean_ns", "", "mean"),
    Field("min_ns", "", "min"),
    Field("p50_ns", "", "p50"),
    Field("p95_ns", "", "p95"),
    Field("p99_ns", "", "p99"),
    Field("max_ns", "", "max"),
)
LIBRARY = (Field("library", AS_EVERYWHERE), Field("measure", "", of="timed"))
CALL = (
    text("call", AS_EVERYWHERE, "call"),
    Field("family", ""),
    Field("count", "", "count", of=total("count", is_made)),
    Field(
        "polls", "unsuccessful polls among the calls", "found nothing", of=total("count", is_poll)
    ),
    Field(
        "ranks",
        AS_EVERYWHERE,
        of=lambda groups: groups.distinct("world_rank", is_made),
    ),
    Field(
        "volume_bytes",
        "also of calls that complete operations ([not counted again](#completed-bytes)) and of "
        "receives",
        "volume",
        # a persistent operation moves its bytes each time it completes
        of=total("volume_bytes", lambda cells: is_made(cells) | cells.is_in("form", "persistent")),
    ),
    *(field._replace(of=OF_MADE[field.key]) for field in DURATIONS),
    Field(
        "share_of_wall",
        "with several threads it may exceed 1; null: `device` rows",
        "of wall",
        units.share,
        of=of_wall,
    ),
    Field(
        "dominating_bytes",
        "the size with the most time, and its part of total_ns",
        of=lambda groups: dominating(groups)[0],
    ),
    Field("dominating_share", "", of=lambda groups: dominating(groups)[1]),
    Field(
        "completions",
        "of operations that this call started",
        "completed",
        of=any_total("count", is_completion),
    ),
    Field("completion_ns", "", "start to completion", of=any_total("total_ns", is_completion)),
    Field("blocked_ns", "", "of that blocked", of=any_total("blocked_ns", is_completion)),
    Field("overlap", "", "overlap", units.share, of=overlap),
    LIBRARY[0],
    LIBRARY[1]._replace(of=lambda groups: groups.texts(groups.keys[1])),
)
CALLS = View(
    "CallRow",
    (  # completions belong to the calls that start the operations
        "call",
        lambda cells: np.where(is_completion(cells), cells.texts.number("call"), cells.timed),
    ),
    CALL,
    lambda groups: (
        groups.is_in("family", "setup"),
        -groups.sum("total_ns", is_made),
        groups.place("call"),
        groups.place(groups.keys[1]),
    ),
    having=lambda groups: groups.has(is_made),
)


# how bandwidth is computed (schema.sql): how often the bytes pass the slowest link, in parts of
# 2(n-1)/n (2), (n-1)/n (1) or 1 (0); whether S is n times `bytes`
PASSES = {
    "one-way": 0,
    "allreduce": 2,
    "reduce-scatter": 1,
    "allgather": 1,
    "prefix": None,
    "own-size": None,
}


def bandwidth_bytes(groups: Sums) -> Floats:
    """S of a mean message; null: its time is not that of the message."""
    is_timed = np.where(
        groups.is_in("library", "nccl"),
        groups.is_in("timed", "device"),
        groups.is_in("form", "blocking") | groups.is_in("timed", "completion"),
    )
    size = groups.min("size")
    known_size = np.where(size == NONE, np.nan, size)
    blocks = np.where(groups.is_in("bandwidth", "allgather"), known_size, 1)
    is_rated = groups.is_in("bandwidth", *PASSES)
    mean = groups.sum("message_bytes") * 1.0 / groups.sum("count")
    return np.where(is_timed & is_rated, mean * blocks, np.nan)


def algbw(groups: Sums) -> Floats:
    return ratio(bandwidth_bytes(groups) * 1e9, ratio(groups.sum("total_ns"), groups.sum("count")))


def busbw(groups: Sums) -> Floats:
    size, of_algorithm = groups.min("size"), algbw(groups)
    found = np.where(groups.is_in("bandwidth", "one-way"), of_algorithm, np.nan)
    for rule, passes in PASSES.items():
        if passes:
            passed = ratio(of_algorithm * passes * (size - 1), np.where(size == NONE, 0, size))
            found = np.where(groups.is_in("bandwidth", rule), passed, found)
    return found


def timed_on(row: Row) -> str:
    return {"device": "device", "captured": "host, into a graph"}.get(row.measure, "host")


MARKS = {
    "!": "no power of two",
    "~": "several sizes that were counted together",
    "*": "a size that each rank has of its own",
}


def marks(row: Row) -> str:
    is_odd = row.bytes_low and row.bytes_low == row.bytes_high and not row.power_of_two
    mark = "~" if row.is_folded else "!" if is_odd else ""
    return mark + ("*" if row.is_own else "")


SIZE = (
    text("call", AS_EVERYWHERE, "call"),
    text("communicator", "", "communicator", 40),
    Field(
        "bytes",
        "message size; with `--bins` the upper bound of the bin (null: open)",
        "bytes",
        of_row=lambda row: units.size_range(row.bytes_low, row.bytes_high) + marks(row),
        of="bytes_high",
    ),
    Field("count", AS_EVERYWHERE, "count"),
    Field("volume_bytes", "", "volume"),
    *(field._replace(head=field.head if field.key != "min_ns" else "") for field in DURATIONS),
    Field(
        "algbw_bytes_per_s",
        "[Words](#words); in a bin, from the sum of the sizes of its calls",
        "algbw",
        of=algbw,
    ),
    Field("busbw_bytes_per_s", "", "busbw", of=busbw),
    number("rank", "only with `--per-rank`", "rank"),
    Field(
        "family",
        AS_EVERYWHERE,
    ),
    Field("identity", ""),
    text("memory_kind", "", "memory kind"),
    Field("bytes_low", "bounds of the bin, both included; equal for exact sizes"),
    Field("bytes_high", ""),
    Field(
        "is_folded",
        "1: the library had merged several sizes",
        of=lambda groups: groups.max("is_folded"),
    ),
    Field(
        "is_own",
        "1: bytes is what each rank sends (v- and w-variants)",
        of=lambda groups: groups.is_in("bandwidth", "own-size"),
    ),
    Field(
        "power_of_two",
        "1: an exact power of two",
        of=lambda groups: (
            (groups.bytes_low == groups.bytes_high)
            & (groups.bytes_low > 0)
            & (groups.bytes_low & (groups.bytes_low - 1) == 0)
        ),
    ),
    Field(
        "bandwidth_bytes",
        "S of the bandwidths, a mean in a bin; null if they are null",
        "S",
        units.size,
        of=bandwidth_bytes,
    ),
    Field(
        "blocked_ns",
        "of measure `completion`: time inside the calls that start and complete them; 1 -"
        " blocked_ns / total_ns",
    ),
    Field("overlap", "", "overlap", units.share, of=overlap),
    LIBRARY[0],
    LIBRARY[1]._replace(head="timed on", of_row=timed_on, is_number=False),
    Field("form", ""),
    Field("bandwidth", AS_EVERYWHERE),
    Field("waits_for", ""),
    Field(
        "share_of_wall",
        "of all ranks also with `--per-rank`; null: `device` and `completion` rows",
        "of wall",
        units.share,
        of=of_wall,
    ),
)


def one_rank(per_rank: bool) -> Callable[[Sums], Ints]:
    """The rank of each group, if they are by rank; else none."""
    return lambda groups: groups.world_rank if per_rank else np.full(len(groups), NONE)


def size_view(per_rank: bool = False, families: Mapping[str, str] | None = None) -> View:
    """One row per call, communicator, memory kind and size (or bin of sizes), and per measure.
    families: names of communicators, by identity; those of one name share rows."""

    def named(name: str) -> Where:
        def names(cells: Cells) -> Ints:
            if not families:
                return getattr(cells, name)
            of_text = cells.texts.all([families.get(each, "") for each in cells.texts.texts])
            known = of_text != cells.texts.number("")
            of_cell = cells.identity
            return np.where(known[of_cell], of_text[of_cell], getattr(cells, name))

        return names

    def label(groups: Sums) -> Ints:
        return named("label")(groups.counters)[groups.rows[groups.groups.first]]

    def identity(groups: Sums) -> Ints:
        each = groups.within("identity")
        return each.identity[groups.first_of(each, each.place("identity"))]

    rank = one_rank(per_rank)
    known = {
        "communicator": lambda groups: groups.texts(label(groups)),
        "rank": rank,
        "identity": lambda groups: groups.texts(identity(groups)),
    }
    return View(
        "SizeRow",
        (
            "call",
            "timed",
            named("identity"),
            "memory_kind",
            "bytes_low",
            "bytes_high",
            *(["world_rank"] if per_rank else []),
        ),
        tuple(field._replace(of=known.get(field.key, field.of)) for field in SIZE),
        lambda groups: (
            -groups.spread(groups.sum("total_ns"), "call"),
            groups.place("call"),
            -groups.min("size"),
            groups.place(label(groups)),
            groups.bytes_low,
            groups.place("memory_kind"),
            ~groups.is_in("timed", "device"),
            groups.place("timed"),
            rank(groups),
        ),
    )


def size_rows(
    connection: Connection, per_rank: bool = False, families: Mapping[str, str] | None = None
) -> list[Row]:
    return view_rows(connection, size_view(per_rank, families))


def of_nccl(calls: Sequence[Row], measure: str) -> list[Row]:
    """NCCL's rows with this measure. 'call': on the host; 'captured': into a graph; 'device':
    operations as timed on the device."""
    return [call for call in calls if call.library == "nccl" and call.measure == measure]


def best_timed(rows: Sequence[Row]) -> list[Row]:
    """Without calls that only start operations whose own times are known: from start to completion,
    or NCCL's on the device."""

    def operation(row: Row) -> tuple:
        where = getattr(row, "identity", None), getattr(row, "fusion", None)
        return row.call, *where, row.bytes_low if row.library.lower() == "nccl" else None

    timed = {operation(row) for row in rows if row.measure in ("completion", "device")}
    return [row for row in rows if row.measure != "call" or operation(row) not in timed]


def over_ranks(groups: Sums, find: str, name: str) -> np.ndarray:
    """The least or the most that a rank has."""
    ranks = groups.within("world_rank")
    return getattr(Groups(ranks.of), find)(ranks.sum(name))


def rank_with(groups: Sums, sign: int) -> Ints:
    """With the least time (1) or the most (-1)."""
    ranks = groups.within("world_rank")
    place = groups.first_of(ranks, sign * ranks.sum("total_ns"), ranks.world_rank)
    return ranks.world_rank[place]


def mean_of_ranks(groups: Sums) -> Floats:
    return groups.sum("total_ns") / groups.distinct("world_rank")


RANK_CALL = (
    text("call", AS_EVERYWHERE, "call"),
    Field("family", ""),
    Field("ranks", "", "ranks"),
    Field("count", "", "count"),
    Field(
        "min_count",
        "the fewest and the most calls of one rank",
        of=lambda groups: over_ranks(groups, "min", "count"),
    ),
    Field("max_count", "", of=lambda groups: over_ranks(groups, "max", "count")),
    Field("total_ns", AS_EVERYWHERE),
    Field(
        "min_total_ns",
        "least time that one rank spent in it, and that rank",
        "least",
        of=lambda groups: over_ranks(groups, "min", "total_ns"),
    ),
    number("min_rank", "", "least rank")._replace(of=lambda groups: rank_with(groups, 1)),
    Field("mean_total_ns", "mean over the ranks that made it", "mean", of=mean_of_ranks),
    Field(
        "max_total_ns",
        "most time that one rank spent in it, and that rank",
        "most",
        of=lambda groups: over_ranks(groups, "max", "total_ns"),
    ),
    number("max_rank", "", "most rank")._replace(of=lambda groups: rank_with(groups, -1)),
    Field(
        "imbalance",
        "max_total_ns / mean_total_ns",
        "most/mean",
        lambda value: f"{value or 0:.2f}",
        of=lambda groups: ratio(over_ranks(groups, "max", "total_ns"), mean_of_ranks(groups)),
    ),
    *LIBRARY,
)
RANK_CALLS = View(  # how evenly the time of a call is spread over the ranks that make it
    "RankCallRow",
    ("call", "timed"),
    RANK_CALL,
    lambda groups: (  # set-up last, and what took most first
        groups.is_in("family", "setup"),
        -groups.sum("total_ns"),
        groups.place("call"),
        groups.place("timed"),
    ),
    where=is_made,
)
RANK_TIMES = View(  # of the picture of `ranks`
    "RankTimeRow",
    ("world_rank", "call"),
    {
        "rank": "world_rank",
        "call": "call",
        **measures("count", "total_ns"),
        "library": "library",
        "measure": "timed",
    },
    lambda groups: (
        -groups.spread(groups.sum("total_ns"), "call"),
        groups.place("call"),
        groups.world_rank,
    ),
    where=lambda cells: is_working(cells) & is_drawn(cells),
)


def is_drawn(cells: Cells) -> Flags:
    """MPI's calls; if there are none, NCCL's operations, or its calls where nobody timed these."""
    kinds = ("mpi", "call"), ("nccl", "device"), ("nccl", "call")
    each = [cells.is_in("library", library) & cells.is_in("timed", kind) for library, kind in kinds]
    return next((flags for flags in each if (flags & is_working(cells)).any()), each[0])


def is_nccl(cells: Cells) -> Flags:
    return cells.is_in("library", "nccl") & ~cells.is_in("family", "communicator")


def is_nccl_call(cells: Cells) -> Flags:
    return is_nccl(cells) & is_call(cells)


def is_mpi_call(cells: Cells) -> Flags:
    return cells.is_in("library", "mpi") & cells.is_in("timed", "call")


RANK_SUMS = View(
    "RankSums",
    ("world_rank",),
    {
        "rank": "world_rank",
        "setup_ns": total("total_ns", lambda cells: cells.is_in("family", "setup")),
        "count": total("count", is_mpi_call),
        "volume_bytes": total(
            "volume_bytes",
            lambda cells: (
                is_mpi_call(cells) | (is_completion(cells) & cells.is_in("form", "persistent"))
            ),
        ),
        "nccl_count": total("count", is_nccl_call),
        "nccl_volume_bytes": total("volume_bytes", is_nccl_call),
        "nccl_host_ns": total("total_ns", is_nccl_call),
        "nccl_device_ns": any_total("total_ns", lambda cells: is_nccl(cells) & is_device(cells)),
    },
    lambda groups: (groups.world_rank,),
)
THREADS = View(  # with the most time inside MPI first
    "ThreadRow",
    ("world_rank", "thread"),
    {"rank": "world_rank", "thread": "thread", "mpi_ns": total("total_ns")},
    lambda groups: (groups.world_rank, -groups.sum("total_ns"), groups.thread),
    where=is_in_mpi,
)


def busiest_threads(connection: Connection) -> dict[int, Row]:
    """The thread of each rank with the most time inside MPI."""
    return {row.rank: row for row in view_rows(connection, THREADS)[::-1]}


TRAFFIC_HEADS = {
    "bulk": "Bulk",
    "control": "Control",
    "completion": "Start and wait",
    "file": "Files",
    "group": "NCCL groups",
    "alone": "One rank alone",
}


def sizes_text(row: Row) -> str:
    if not row.most_bytes:
        return units.NO_VALUE
    return " - ".join(map(units.size, dict.fromkeys((row.least_bytes, row.most_bytes))))


OF_TRAFFIC = (
    Field(
        "traffic",
        "`bulk`, `control`; `completion`: Wait, Test, Start and Pready; `file`; `group`: NCCL's "
        "groups; `alone`: collectives on communicators of one rank",
        "traffic",
        TRAFFIC_HEADS.__getitem__,
        False,
    ),
    text(
        "call",
        AS_EVERYWHERE,
        "call",
    ),
    Field("family", ""),
    Field("count", "", "calls", of=total("count", is_call)),
    Field(
        "least_bytes",
        "smallest and largest size of these calls",
        "sizes",
        of_row=sizes_text,
        of=lambda groups: groups.min("bytes"),
    ),
    Field("most_bytes", "", of=lambda groups: groups.max("bytes")),
    Field(
        "volume_bytes",
        AS_EVERYWHERE,
        "volume",
        of=total("volume_bytes", is_call),
    ),
    Field("total_ns", "", "time", of=total("total_ns", is_call)),
    Field(
        "share_of_time",
        "total_ns / time of all chosen calls of MPI; null for NCCL's",
        "of time in MPI",
        units.share,
        of=lambda groups: of_mpi(groups),
    ),
    Field(
        "threshold_bytes",
        "the largest size of the call that is control; 0: none; null: the rule does not apply",
        "control up to",
        lambda most: units.size(most) if most else units.NO_VALUE,
        of=lambda groups: of_control(groups)[0],
    ),
    Field(
        "control_share",
        "share of the run's bytes under the rule that messages up to the thresholds carry",
        of=lambda groups: of_control(groups)[1],
    ),
    Field(
        "library",
        AS_EVERYWHERE,
    ),
    Field("device_ns", "", "on device", of=any_total("total_ns", is_device)),
    Field(
        "told_count",
        "calls told by what they are, on a thread that negotiates",
        of=total("count", lambda cells: is_call(cells) & (cells.is_told == 1)),
    ),
)


def moves(cells: Cells) -> Flags:
    return is_made(cells) & ~cells.is_in("traffic", "setup")


def place_of_kind(groups: Sums) -> Ints:
    return np.argmax([groups.is_in("traffic", kind) for kind in TRAFFIC_HEADS], 0)


TRAFFIC = View(
    "TrafficRow",
    ("traffic", "call"),
    OF_TRAFFIC,
    lambda groups: (place_of_kind(groups), -groups.sum("total_ns"), groups.place("call")),
    where=moves,
)


def moved_bytes(groups: Sums) -> np.ndarray:
    """Collectives of one rank move nothing."""
    return np.where(groups.is_in("traffic", "alone"), 0, groups.sum("volume_bytes", is_call))


def of_kinds(find: Any) -> Callable[[Sums], Floats]:
    """The shares that kinds of traffic have in the sum."""
    return lambda groups: ratio(find(groups), find(groups).sum())


OF_KIND = (
    Field("traffic", "", "kind", TRAFFIC_HEADS.__getitem__, False),
    Field("count", "", "calls", of=total("count", is_call)),
    Field("count_share", "", "of calls", of=of_kinds(total("count", is_call))),
    Field("volume_bytes", "", "volume", of=moved_bytes),
    Field("volume_share", "", "of volume", of=of_kinds(moved_bytes)),
    Field("mpi_ns", "", "time in MPI", of=total("total_ns", is_in_mpi)),
    Field("mpi_share", "", "of it", of=of_kinds(total("total_ns", is_in_mpi))),
    Field("nccl_ns", "", "NCCL on host", of=total("total_ns", lambda cells: is_nccl_call(cells))),
    Field("device_ns", "", "on device", of=total("total_ns", is_device)),
)
KINDS = View(  # of traffic
    "KindRow", ("traffic",), OF_KIND, lambda groups: (place_of_kind(groups),), where=moves
)


def of_mpi(groups: Sums) -> Floats:
    """The share of the time inside MPI."""
    cells = groups.counters
    whole_ns = cells.total_ns[is_in_mpi(cells)].sum(dtype=float)
    share = ratio(groups.sum("total_ns"), whole_ns)
    return np.where(groups.is_in("library", "mpi"), share, np.nan)


def of_control(groups: Sums) -> tuple[Ints, Floats | float]:
    """The largest size of a call that is control, and the share of all sizes up to these in the
    bytes of the run."""
    connection = groups.counters.connection
    limits = dict(connection.execute("SELECT call, threshold_bytes FROM control_size"))
    control_bytes, moved_bytes = (
        connection.execute(f"SELECT total(volume_bytes) FROM {table}").fetchone()[0]
        for table in ("control_size", "moved_size")
    )
    calls = groups.texts(groups.call).tolist()
    of_call = np.array([limits.get(call, NONE) for call in calls], np.int64)
    return of_call, control_bytes / moved_bytes if moved_bytes else np.nan


TOTALS, DEVICE_TOTALS = (
    View(
        "TotalRow",
        ("world_rank", "call", "label"),
        {
            "rank": "world_rank",
            "call": "call",
            "communicator": lambda groups: np.where(
                groups.texts(groups.label) == "-", "", groups.texts(groups.label)
            ),
            **measures("count", "volume_bytes", "total_ns"),
            "library": "library",
        },
        lambda groups: (groups.world_rank, groups.place("call"), groups.place("label")),
        where=where,
    )
    for where in (is_call, is_device)
)
DOMINATING = View(  # what took most time: a call, and a size of messages
    "DominatingRow",
    ("call", "bytes_low", "bytes_high", "timed"),
    {**own("call", "bytes_low", "bytes_high"), "measure": "timed"},
    lambda groups: (
        groups.is_in("family", "setup"),
        groups.is_in("timed", "captured"),
        groups.is_in("library", "nccl") & groups.is_in("timed", "call"),
        groups.is_in("family", "completion", "probe"),
        -groups.sum("total_ns"),
        groups.place("call"),
        groups.bytes_low,
    ),
    where=lambda cells: (
        ~(  # the times from start to completion of the call are known
            cells.is_in("timed", "call") & np.isin(cells.call, cells.call[is_completion(cells)])
        )
    ),
)


def dominating_size(connection: Connection) -> Row | None:
    return next(iter(view_rows(connection, DOMINATING)), None)


MEMORY_KINDS = View(  # of messages, by calls as they were made
    "MemoryKindRow",
    ("library", "memory_kind"),
    {
        **own("library", "memory_kind"),
        **measures("count", "volume_bytes"),
    },
    lambda groups: (
        groups.place("library"),
        -groups.sum("volume_bytes"),
        groups.place("memory_kind"),
    ),
    where=lambda cells: (
        cells.is_in("timed", "call") & (cells.volume_bytes > 0) & ~cells.is_in("family", "io")
    ),
)
CONTROL = View(  # what threads spend in control collectives
    "ControlRow",
    ("world_rank", "thread", "call"),
    {
        "rank": "world_rank",
        "thread": "thread",
        "call": "call",
        "negotiation_ns": total("total_ns"),
    },
    lambda groups: (groups.world_rank, groups.place("call")),
    where=lambda cells: (
        is_in_mpi(cells)
        & cells.is_in("traffic", "control")
        & cells.is_in("family", "collective", "neighborhood")
    ),
)


def longest_call(groups: Sums) -> np.ndarray:
    """The call with most time, on the device first."""
    calls = groups.within("call", "timed")
    most = groups.first_of(
        calls, ~calls.is_in("timed", "device"), -calls.sum("total_ns"), calls.place("call")
    )
    return groups.texts(calls.call[most])


COMMUNICATOR_USE = View(
    "UseRow",
    ("identity",),
    {
        "identity": "identity",
        "count": total("count", is_call),
        "volume_bytes": total("volume_bytes", is_call),
        "total_ns": total("total_ns", is_call),
        "top_call": longest_call,
        "device_ns": any_total("total_ns", is_device),
    },
    lambda groups: (groups.identity,),
    where=is_made,
)
