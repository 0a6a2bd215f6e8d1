"""The commands that group counters by something and show the groups: calls, sizes, ranks, traffic,
peers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from ..base import BINS, Field, Row, UsageError, gathered, option, shown, telling, units
from ..calls import (
    CALL,
    CALLS,
    KINDS,
    LATENCY,
    MARKS,
    OF_KIND,
    OF_TRAFFIC,
    PEER,
    RANK,
    RANK_CALL,
    RANK_CALLS,
    RANK_TIMES,
    SIZE,
    TRAFFIC,
    best_timed,
    dominating_size,
    latency_rows,
    marks,
    merged,
    of_nccl,
    peer_rows,
    rank_rows,
    size_rows,
)
from ..plots import bars
from ..run import Selection, view_rows
from ..stuck import doing
from . import Command, common

OF_SINGLE = "mean_ns min_ns p50_ns p95_ns p99_ns max_ns"
KEYS = f"count volume_bytes total_ns share_of_wall {OF_SINGLE}"
RECEIVES = frozenset(
    f"{name}recv{end}"
    for name in ("MPI_", "MPI_I", "MPI_M", "MPI_Im", "nccl")
    for end in ("", "_init")
)
OF_RECEIVES = (
    "Bytes of messages count where they are sent: receives have no volume. `steps` has the sizes "
    "that they are posted for."
)
MOST_PAIRS, MOST_RANKS = 30, 64
BAR_WIDTH, MOST_BARS = 40, 24  # of histograms in text
ORDERS: dict[str, Callable[[Row], Any]] = {
    "total": attrgetter("total_ns"),
    "count": attrgetter("count"),
    "volume": attrgetter("volume_bytes"),
    "bytes": lambda row: math.inf if row.bytes is None else row.bytes,
    "mean": attrgetter("mean_ns"),
    "max": attrgetter("max_ns"),
}


def counted(rows: Iterable[Row], noun: str = "call") -> str:
    return units.counted(sum(row.count for row in rows), noun)


def parted(
    fields: Sequence[Field], parts: Iterable[tuple[str, str, Sequence[Row]]]
) -> list[common.Rows]:
    """The tables with something in them. parts: the head of the calls, keys of the columns, and
    rows."""
    found = ((head, shown(fields, f"call {keys}"), rows) for head, keys, rows in parts if rows)
    return [
        common.Rows([call._replace(head=head), *others], rows)
        for head, (call, *others), rows in found
    ]


def calls(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """One row per call, over all selected ranks: count, volume, total time, mean, percentiles, and
    its share of the wall time of all ranks. Nonblocking calls return at once; for them a second row
    shows the time from start to completion, and the overlap: the part of it that was spent neither
    in the call that started it nor in Wait or Test. The volume of an operation is that of the call
    that starts it; calls that complete operations have none ("-"). Unsuccessful polls (Test,
    Iprobe) are counted, and shown apart.

    NCCL's calls have tables of their own. On the host a call only puts an operation into a stream's
    queue; the time of the operation on the device is known where the GPU was traced; operations
    that share kernels are an ncclGroup; calls that went into CUDA graphs are counted apart."""
    rows = view_rows(known.connection, CALLS)
    negotiated = (known.negotiated if known.has_samples else None) or []
    timed = apart(known, drawn(rows), "call")
    has_receives = any(row.call in RECEIVES for row in rows)
    return common.Answer(
        rows,
        CALL,
        lambda: [*call_tables(rows, negotiated), OF_RECEIVES * has_receives],
        lambda: (bars.of_calls(timed), counted(timed)),
    )


def apart(known: common.Analysed, rows: list[Row], *keys: str) -> list[Row]:
    """Negotiation in rows of its own, where samples show it."""
    if not known.has_samples or not known.negotiated:
        return rows
    from ..summary.run_summary import negotiation_apart

    return negotiation_apart(rows, known.negotiated, *keys)


def call_tables(rows: Sequence[Row], negotiated: Sequence[Row]) -> list[common.Rows]:
    """MPI's calls, what they started, and NCCL's calls and operations."""
    captured = f"count total_ns share_of_wall {OF_SINGLE}"
    first, *others = parted(
        CALL,
        (
            ("call", KEYS, [row for row in rows if row.library == "mpi"]),
            (
                "nonblocking call",
                "completions completion_ns blocked_ns overlap",
                [row for row in rows if row.completions],
            ),
            ("NCCL call on the host", KEYS, of_nccl(rows, "call")),
            (
                "NCCL operation on the device",
                f"count volume_bytes total_ns {OF_SINGLE}",
                of_nccl(rows, "device"),
            ),
            ("NCCL call into a CUDA graph", captured, of_nccl(rows, "captured")),
            ("polling call", "count polls", [row for row in rows if row.polls]),
        ),
    )
    columns = [*first.columns, *negotiation_columns(negotiated)]
    return [first._replace(columns=columns), *others]


def negotiation_columns(negotiated: Sequence[Row]) -> list[Field]:
    """The part of a call's time that is negotiation; none where no thread negotiates."""

    def part(call: Row) -> str:
        spent_ns = sum(row.negotiation_ns for row in negotiated if row.call == call.call)
        return units.share(spent_ns / (call.total_ns or 1))

    return [Field("", "", "negotiation", of_row=part)] * bool(negotiated)


def drawn(rows: Sequence[Row]) -> list[Row]:
    """MPI's calls without set-up; where there are none, NCCL's operations, or its calls where
    nobody timed these; and where there is nothing else, set-up."""
    mpi = [row for row in rows if row.library == "mpi"]
    made = [row for row in mpi if row.family != "setup"]
    return made or of_nccl(rows, "device") or of_nccl(rows, "call") or mpi


def sizes(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """One row per call, communicator and message size: count, volume, total time and its share of
    the wall time of all ranks, mean, percentiles, algorithm bandwidth and bus bandwidth. The
    message size is that of the OSU micro-benchmarks, so rows can be compared with theirs;
    bandwidths are those of nccl-tests. In the text, `!` marks a size that is no power of two, `~`
    several sizes that were counted together, and `*` a size that each rank has of its own (v- and
    w-variants). A percentile that the number of calls does not support (p95 of fewer than 20, p99
    of fewer than 100) is shown as `-`.

    NCCL's operations stand beside MPI's calls, by the same definitions, with their time on the
    device. Where that is unknown, because the GPU was not traced, the time of the call on the host
    is shown, which says nothing about bandwidth. Nonblocking and persistent operations of MPI have
    their time from start to completion, with the means of what the calls take that start them and
    that wait for them; the rest is overlap."""
    if arguments.histogram:
        return histogram(known, arguments)
    found = [size_rows(known.connection, arguments.per_rank)]
    if known.has_samples:
        from ..roles import roles  # the analysis of waiting, which only the picture needs

        families = known.named(roles.families)
        found.append(size_rows(known.connection, arguments.per_rank, families))
    for rows in found if arguments.sort else ():
        rows.sort(key=ORDERS[arguments.sort], reverse=True)
    nothing = partial(common.nothing_text, known.run, "call with a message")
    timed = best_timed(found[-1])
    return common.Answer(
        found[0][: arguments.top],
        [field for field in SIZE if field.key != "rank" or arguments.per_rank],
        lambda: size_blocks(found[-1], timed, arguments) or [nothing()],
        lambda: (bars.lines_of(timed), counted(filter(bars.place_of, timed))),
        nothing,
    )


def size_blocks(rows: Sequence[Row], timed: Sequence[Row], arguments: argparse.Namespace) -> list:
    messages = [row for row in timed if arguments.call or row.bandwidth != "silent"]
    if not messages:
        return []
    columns = telling_columns(rows, messages, arguments.per_rank)
    used = {mark for row in messages for mark in marks(row)}
    explained = ", ".join(f"{mark} {MARKS[mark]}" for mark in MARKS if mark in used)
    return [
        common.Rows(columns, messages, arguments.top or len(messages), " rows."),
        f"Marks of sizes: {explained}." if explained else "",
        "Nonblocking operations last from their start to completion; start and wait are the times "
        "in the calls for these, overlap the rest."
        if any(row.measure == "completion" for row in rows)
        else "",
        "Calls that carry no message (MPI_Wait and such) are left out here; `calls` has them."
        if len(messages) < len(timed)
        else "",
    ]


def telling_columns(
    rows: Sequence[Row], messages: Sequence[Row], per_rank: bool = False
) -> list[Field]:
    """Without those that say the same of all messages: all on the host, all of MPI. rows: with the
    calls that start and complete nonblocking operations, whose times stand beside these."""
    starts = gathered((operation_of(row), row) for row in rows if row.measure == "call")

    def start_ns(row: Row) -> float | None:
        """Receives are posted with other sizes: of all sizes then."""
        all_sizes = starts.get(operation_of(row), [])
        own = [start for start in all_sizes if start.bytes_low == row.bytes_low] or all_sizes
        if not own or row.measure != "completion":
            return None
        return sum(start.total_ns for start in own) / sum(start.count for start in own)

    def wait_ns(row: Row) -> float | None:
        own_ns = start_ns(row)
        return None if own_ns is None else max(0.0, row.blocked_ns / row.count - own_ns)

    columns = shown(
        SIZE,
        "call communicator rank memory_kind measure bytes count volume_bytes total_ns "
        "share_of_wall mean_ns p50_ns p95_ns p99_ns max_ns bandwidth_bytes algbw_bytes_per_s "
        "busbw_bytes_per_s overlap",
    )
    more = [
        Field("start_ns", "", "start", of_row=lambda row: units.duration(start_ns(row))),
        Field("wait_ns", "", "wait", of_row=lambda row: units.duration(wait_ns(row))),
    ]
    completes = any(row.measure == "completion" for row in messages)
    is_told = {
        "rank": per_rank,
        "memory_kind": any(row.memory_kind != "host" for row in messages),
        "measure": any(row.library != "mpi" for row in messages),
        **dict.fromkeys(("overlap", "start_ns", "wait_ns"), completes),
    }
    return [column for column in [*columns, *more] if is_told.get(column.key, True)]


def operation_of(row: Row) -> tuple:
    return row.call, row.identity, row.rank, row.memory_kind


def histogram(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """The buckets of the call and size that were asked for, or that took the most time of what was
    asked for."""
    chosen, asked = dominating_size(known.connection), arguments.bytes
    low, high = (
        bound if bound is None else min(bound, (1 << 63) - 1)
        for bound in asked or (chosen and (chosen.bytes_low, chosen.bytes_high)) or (None, None)
    )
    rows = (
        latency_rows(known.connection, chosen.call, low or 0, high, chosen.measure)
        if chosen
        else []
    )
    return common.Answer(
        rows,
        LATENCY,
        lambda: histogram_blocks(rows),
        lambda: (bars.histogram_of(rows), counted(rows)),
    )


def histogram_blocks(buckets: Sequence[Row]) -> list:
    rows = merged(buckets, MOST_BARS)
    per_mark = max(row.density for row in rows) / BAR_WIDTH
    columns = Field(
        "density",
        "",
        "calls per octave",
        is_number=False,
        of_row=lambda row: "#" * max(1, round(row.density / per_mark)),
    )
    return [bars.histogram_title(rows), common.Rows([*shown(LATENCY), columns], rows)]


def ranks(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """For each call the least, mean and most time that a rank spent in it, and which rank. Then for
    each rank its wall time, the time inside MPI of its thread with the most, what it sent, how much
    of the time it was on a core and how much it waited for one, and how it ended. NCCL's calls on
    the host and its operations on the device are apart. How long ranks waited for each other is in
    hvprof-report late. --json and --csv give the table of calls, with --per-rank that of ranks."""
    rows, by_call = rank_rows(known.connection), view_rows(known.connection, RANK_CALLS)
    more = " ranks; --per-rank --csv has them all."

    def draw() -> tuple:
        times = view_rows(known.connection, RANK_TIMES)
        noun = "operation" if times and times[0].measure == "device" else "call"
        number = units.counted(len({row.rank for row in times}), "rank")
        drawn = bars.of_ranks(apart(known, times, "call", "rank"))
        return drawn, f"{counted(times, noun)} on {number}"

    return common.Answer(
        *((rows, RANK) if arguments.per_rank else (by_call, RANK_CALL)),
        lambda: [
            *([] if arguments.per_rank else rank_call_tables(by_call)),
            common.Rows(rank_columns(rows), rows, MOST_RANKS, more),
        ],
        draw,
        str,
        partial(common.nothing_text, known.run, "call but those that set MPI up"),
    )


def rank_call_tables(rows: Sequence[Row]) -> list[common.Rows]:
    """Operations that went into graphs are in --json."""
    keys = " ".join(field.key for field in shown(RANK_CALL)[1:])
    return parted(
        RANK_CALL,
        (
            ("call", keys, [row for row in rows if row.library == "mpi"]),
            ("NCCL call on the host", keys, of_nccl(rows, "call")),
            ("NCCL operation on the device", keys, of_nccl(rows, "device")),
        ),
    )


def rank_columns(rows: Sequence[Row]) -> list[Field]:
    fields = shown(
        RANK,
        "rank host wall_ns mpi_ns mpi_share mpi_thread count volume_bytes core_share "
        "core_wait_share nccl_count nccl_host_ns nccl_device_ns",
    )
    optional = "core_share core_wait_share", "nccl_count nccl_host_ns nccl_device_ns"
    end = Field("state", "", "end", is_number=False, of_row=how_ended)
    return [*telling(fields, rows, *optional), end]


def how_ended(row: Row) -> str:
    """And where, unless it came to its end."""
    if row.state in ("finalize", "end"):
        return row.state
    state = {
        "exit": "exit without MPI_Finalize",
        "killed": "killed or left",
        "running or killed": "alive or ended",
        "abort": f"MPI_Abort({row.abort_code})",
    }.get(row.state, row.state)
    return f"{state}, {units.shortened(doing.place_text(row), 64)}"


def traffic(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """Shows how much of the calls, bytes and time is bulk, which carries gradients, activations or
    data, and how much is control: the messages in which frameworks negotiate which gradients are
    ready, barriers, probes, and constructors of communicators. The rule is the same for MPI and
    NCCL; shares are of the time inside MPI.

    Control messages have small sizes that together carry at most 1 % of the bytes of the run, up to
    the first leap in the sizes of a call and none above 64 KiB. Thresholds are those of the whole
    run, whatever is selected. On a background thread that negotiates, as Horovod's does, control is
    instead reductions of bits, and bytes to or from a root; the smallest gradient is bulk there.
    Collectives on communicators of one rank move nothing, and have a line of their own."""
    kinds, rows = (view_rows(known.connection, view) for view in (KINDS, TRAFFIC))
    of_kinds = telling(
        shown(OF_KIND),
        kinds,
        "volume_bytes volume_share",
        "mpi_ns mpi_share",
        "nccl_ns device_ns",
    )
    of_calls = telling(shown(OF_TRAFFIC), rows, "share_of_time", "threshold_bytes", "device_ns")
    return common.Answer(
        rows,
        OF_TRAFFIC,
        lambda: [
            common.Rows(of_kinds, kinds),
            common.Facts(traffic_facts(rows)),
            common.Rows(of_calls, rows),
        ],
    )


def traffic_facts(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """(head, text) a line."""
    bulk, control = (
        sum(row.count for row in rows if row.traffic == kind) for kind in ("bulk", "control")
    )
    is_persistent = any(row.call.endswith("_init") for row in rows)
    is_told = any(row.told_count for row in rows)
    ratio = f"{units.three_digits(control / (bulk or 1))} for each bulk call"
    return [
        (
            "Persistent",
            "operations are counted once, where they are set up, however often they start"
            if is_persistent
            else "",
        ),
        ("Control calls", ratio if bulk and control and not is_persistent else ""),
        (
            "Negotiation",
            "control on the thread that negotiates is reductions of bits, and bytes "
            "to or from a root"
            if is_told
            else "",
        ),
    ]


def peers(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """One row per pair of ranks, the largest first, as the senders counted (with --received, as the
    receivers did); --plot draws the matrix of all. NCCL's messages are included, by the world ranks
    of both sides; a peer whose database was not read is "unknown". Messages are not counted by size
    or communicator here, so --bytes, --communicator and --region are refused."""
    if arguments.bytes or arguments.communicator or arguments.region:
        raise UsageError(
            "peers", "messages between peers are not counted by size, communicator or region"
        )
    rows = peer_rows(known.connection, arguments.received)
    quantity, size = ("count", "") if arguments.counts else ("bytes", "of a byte or more ")
    direction = "received" if arguments.received else "sent"

    ranks = range(known.run.world_size)  # others, and those not known, have no place in a map
    inside = [row for row in rows if row.sender in ranks and row.receiver in ranks]
    drawn = [row for row in inside if getattr(row, quantity)]
    pairs = sorted(rows, key=attrgetter(quantity), reverse=True)
    return common.Answer(
        rows,
        PEER,
        lambda: [common.Rows(shown(PEER), pairs, MOST_PAIRS, " pairs; --csv has them all.")],
        lambda: (bars.map_of(drawn, len(ranks), quantity), counted(drawn, "message")),
        partial(common.nothing_text, known.run, f"{direction} point-to-point message"),
        partial(
            common.nothing_text,
            known.run,
            f"point-to-point message {size}between two ranks of the job",
        ),
    )


def open_for_picture(arguments: argparse.Namespace, bins: str = "exact") -> Selection:
    """Families of communicators and negotiation, which pictures show, need samples."""
    return common.open_selected(arguments, bins=bins, with_samples=bool(arguments.plot))


COMMANDS = {
    "calls": Command(
        calls.__doc__,
        common.DRAWN_BY_MEMORY_KIND,
        common.View(calls, open_for_picture),
        (
            (
                "Only collectives of rank 0",
                "hvprof-report calls --rank 0 --call Allreduce,Bcast RUN",
            ),
            ("A picture of all", "hvprof-report calls --plot calls.svg RUN"),
        ),
        ("sizes", "summary"),
    ),
    "sizes": Command(
        sizes.__doc__,
        (
            *common.DRAWN_BY_MEMORY_KIND,
            option(
                "--bins",
                choices=BINS,
                default="exact",
                help="each size by itself (default); above 2^(k-1) up to 2^k; or hvprof's ranges: "
                "up to 128 KiB, 16, 32, 64 MiB, and above",
            ),
            option(
                "--sort",
                choices=ORDERS,
                help="by what, the largest first; default: calls by their time, then by size",
            ),
            option("--top", type=common.row_count, metavar="N", help="only the first N rows"),
            option("--per-rank", action="store_true", help="one row a rank"),
            option(
                "--histogram",
                action="store_true",
                help="the durations of one call at one size, of those with the most time",
            ),
        ),
        common.View(sizes, lambda arguments: open_for_picture(arguments, arguments.bins)),
        (
            (
                "Large Allreduces, rank by rank",
                "hvprof-report sizes --call Allreduce --bytes 1M: --per-rank RUN",
            ),
            ("The ten sizes with the most time", "hvprof-report sizes --sort total --top 10 RUN"),
            ("Latency over message size", "hvprof-report sizes --plot sizes.png RUN"),
            (
                "Durations of Allreduces of 4 MiB",
                "hvprof-report sizes --histogram --call Allreduce --bytes 4M RUN",
            ),
            (
                "Durations of broadcasts of all sizes together",
                "hvprof-report sizes --histogram --call Bcast --bytes : RUN",
            ),
        ),
        ("calls",),
    ),
    "ranks": Command(
        ranks.__doc__,
        (
            *common.DRAWN,
            option("--per-rank", action="store_true", help="only the table of ranks"),
        ),
        common.View(ranks, common.SUMS),
        (
            ("The time of each rank in Allreduce", "hvprof-report ranks --call Allreduce RUN"),
            ("All ranks for a spreadsheet", "hvprof-report ranks --per-rank --csv RUN"),
        ),
        ("late", "summary"),
    ),
    "traffic": Command(
        traffic.__doc__,
        common.BY_MEMORY_KIND,
        common.View(traffic, common.SAMPLES),
        (("What a framework's negotiation costs", "hvprof-report traffic RUN"),),
        ("sizes", "steps"),
    ),
    "peers": Command(
        peers.__doc__,
        (
            *common.DRAWN,
            option(
                "--counts",
                action="store_true",
                help="numbers of messages instead of bytes decide what is largest",
            ),
            option("--received", action="store_true", help="what the receivers counted"),
        ),
        common.View(peers, common.SUMS),
        (("A heat map", "hvprof-report peers --plot peers.png RUN"),),
        ("communicators", "pipeline"),
    ),
}
