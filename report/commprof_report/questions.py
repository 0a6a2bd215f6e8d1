"""The questions that the reporter can answer, and the rows it answers with. docs/SCHEMA.md defines every key.

Each function reads a run on which selection.select() was called.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from .bins import hvprof_classes
from .query import ask, run_script
from .traffic_class import traffic_classify


class CallRow(NamedTuple):
    call: str
    family: str
    count: int
    polls: int
    ranks: int
    volume_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p95_ns: float
    p99_ns: float
    max_ns: int
    share_of_wall: float | None
    dominating_bytes: int | None
    dominating_share: float | None
    completions: int | None
    completion_ns: int | None
    blocked_ns: int | None
    overlap: float | None
    library: str
    measure: str


class SizeRow(NamedTuple):
    call: str
    communicator: str
    bytes: int | None
    count: int
    volume_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p95_ns: float
    p99_ns: float
    max_ns: int
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    rank: int | None
    family: str
    identity: str
    place: str
    bytes_low: int
    bytes_high: int | None
    is_folded: int
    is_own: int
    power_of_two: int
    bandwidth_bytes: float | None
    blocked_ns: int
    overlap: float | None
    library: str
    measure: str


class SizeBucketRow(NamedTuple):
    """A bucket of the histogram of one exact size."""

    call: str
    identity: str
    place: str
    bytes: int
    bucket: int
    low_ns: int
    high_ns: int | None
    count: int


class PollRow(NamedTuple):
    call: str
    polls: int
    poll_ns: int
    found: int


class ReduceBcastRow(NamedTuple):
    identity: str
    bytes: int
    pairs: int


class HvprofRow(NamedTuple):
    """A call in one of hvprof's size classes."""

    fusion: str
    library: str
    call: str
    family: str
    rank: int | None
    bytes_low: int
    bytes_high: int | None
    ranks: int
    count: int
    sizes: int
    smallest_bytes: int
    largest_bytes: int
    message_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p99_ns: float
    max_ns: int
    is_start: int
    share_of_call: float | None
    measure: str


class LatencyRow(NamedTuple):
    call: str
    bytes_low: int | None
    bytes_high: int | None
    low_ns: int
    high_ns: int
    count: int
    share: float
    cumulative_share: float
    measure: str


class DominatingRow(NamedTuple):
    call: str
    bytes_low: int
    bytes_high: int | None
    measure: str


class CommunicatorRow(NamedTuple):
    communicator: str
    identity: str
    size: int | None
    remote_size: int | None
    members: str
    ranks: int | None
    name: str
    constructor: str
    parent: str | None
    ordinal: int
    is_inter: int
    is_freed: int | None
    count: int
    volume_bytes: int
    total_ns: int
    top_call: str | None
    role: str | None
    library: str
    device_ns: int | None


class RegionRow(NamedTuple):
    """A region with all that lies in it; own_: without."""

    region: str
    ranks: int
    count: int
    volume_bytes: int
    total_ns: int
    mean_ns: float
    max_ns: int
    max_rank: int
    share_of_wall: float | None
    top_call: str
    own_count: int
    own_ns: int
    own_mean_ns: float
    own_share_of_wall: float | None
    folded_count: int
    nccl_count: int
    nccl_host_ns: int
    nccl_device_ns: int


class RankCallRow(NamedTuple):
    """A call over the ranks that made it."""

    call: str
    family: str
    ranks: int
    count: int
    min_count: int
    max_count: int
    total_ns: int
    min_total_ns: int
    min_rank: int
    mean_total_ns: float
    max_total_ns: int
    max_rank: int
    imbalance: float | None
    library: str
    measure: str


class RankRow(NamedTuple):
    rank: int
    host: str | None
    pid: int
    wall_ns: int | None
    wall_is_estimate: int
    counted_ns: int
    reset_unix_ns: int | None
    mpi_ns: int
    mpi_share: float | None
    mpi_thread: str | None
    mpi_thread_is_main: int
    setup_ns: int
    count: int
    volume_bytes: int
    sent_count: int
    sent_bytes: int
    waited_ns: int | None
    waited_for_ns: int | None
    ended: str
    abort_code: int
    state: str
    is_copy: int
    last_unix_ns: int | None
    doing_call: str | None
    doing_awaited: str | None
    doing_communicator: str | None
    doing_bytes: int | None
    doing_peer: int | None
    doing_tag: int | None
    doing_is_inside: int | None
    doing_since_unix_ns: int | None
    doing_ns: int | None
    dropped_calls: int
    untracked_requests: int
    folded_cells: int
    folded_communicators: int
    cost_ns: float
    start_unix_ns: int
    end_unix_ns: int | None
    thread_level: int
    nccl_count: int
    nccl_volume_bytes: int
    nccl_host_ns: int
    nccl_device_ns: int | None


class RankTimeRow(NamedTuple):
    rank: int
    call: str
    total_ns: int
    library: str
    measure: str


class PeerRow(NamedTuple):
    sender: int | None
    receiver: int | None
    count: int
    bytes: int
    time_ns: int


class PositionRow(NamedTuple):
    """How far a rank is on a communicator of several."""

    communicator: str
    identity: str
    size: int
    members: str
    rank: int
    begun: int
    call: str | None
    bytes: int | None
    root: int | None


class MismatchRow(NamedTuple):
    """What a rank did where the ranks of a communicator differ first."""

    communicator: str
    identity: str
    sequence: int
    what: str
    is_first: int
    rank: int
    call: str
    bytes: int | None
    root: int | None


class WaitingRow(NamedTuple):
    """A thread that is inside a call."""

    rank: int
    thread: int
    state: str
    call: str
    awaited: str | None
    communicator: str | None
    identity: str
    family: str
    bytes: int | None
    peer: int | None
    tag: int | None
    since_unix_ns: int
    doing_ns: int


class LiveRow(NamedTuple):
    """A rank at one moment."""

    rank: int
    host: str | None
    state: str
    abort_code: int
    is_copy: int
    start_unix_ns: int
    last_unix_ns: int | None
    reset_unix_ns: int
    wall_ns: int | None
    count: int
    volume_bytes: int
    mpi_ns: int
    collective_ns: int
    doing_call: str | None
    doing_awaited: str | None
    doing_communicator: str | None
    doing_bytes: int | None
    doing_peer: int | None
    doing_tag: int | None
    doing_is_inside: int | None
    doing_ns: int | None
    has_nccl: int
    device_ns: int


class TotalRow(NamedTuple):
    rank: int
    call: str
    communicator: str
    count: int
    volume_bytes: int
    total_ns: int
    library: str


class DurationRow(NamedTuple):
    """How many calls lasted no longer than a bound."""

    rank: int
    call: str
    bound_ns: int | None
    count: int
    total_ns: int


class TrafficRow(NamedTuple):
    """A call's part in bulk or control traffic."""

    traffic: str
    call: str
    family: str
    count: int
    least_bytes: int
    most_bytes: int
    volume_bytes: int
    total_ns: int
    share_of_time: float | None
    threshold_bytes: int | None
    control_share: float | None
    library: str
    device_ns: int | None


class SequenceRow(NamedTuple):
    sequence: int


class LateRankRow(NamedTuple):
    """A rank in the collectives that make ranks wait for each other."""

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


class DeviceTotalRow(NamedTuple):
    """What NCCL's operations of a rank took on the device."""

    rank: int
    call: str
    communicator: str
    count: int
    total_ns: int


class PlaceRow(NamedTuple):
    """Where the buffers of a library's messages lay."""

    library: str
    place: str
    count: int
    volume_bytes: int


class CopiedRow(NamedTuple):
    """What the GPUs copied in one direction, while they were traced."""

    copy: str
    count: int
    volume_bytes: int
    total_ns: int


class FactRow(NamedTuple):
    key: str
    value: str
    ranks: int
    first_rank: int


def calls(connection: Connection) -> list[CallRow]:
    return ask(connection, "calls", CallRow)


def sizes(connection: Connection, per_rank: bool = False, completion: bool = False) -> list[SizeRow]:
    return ask(connection, "sizes", SizeRow, per_rank=per_rank, completion=completion)


def size_buckets(connection: Connection) -> list[SizeBucketRow]:
    return ask(connection, "size_buckets", SizeBucketRow)


def polls(connection: Connection) -> list[PollRow]:
    return ask(connection, "polls", PollRow)


def reduce_bcast(connection: Connection) -> list[ReduceBcastRow]:
    return ask(connection, "reduce_bcast", ReduceBcastRow)


def hvprof(connection: Connection, fusion: str, per_rank: bool = False) -> list[HvprofRow]:
    run_script(connection, "hvprof_class")
    connection.executemany("INSERT OR IGNORE INTO hvprof_class VALUES (?, ?)", hvprof_classes())
    return ask(connection, "hvprof", HvprofRow, fusion=fusion, per_rank=per_rank)


def dominating(connection: Connection, call: str | None = None, completion: bool = False) -> DominatingRow | None:
    rows = ask(connection, "dominating", DominatingRow, call=call, completion=completion)
    return rows[0] if rows else None


def latency(connection: Connection, call: str, low: int | None, high: int | None, measure: str = "call") -> list[LatencyRow]:
    return ask(connection, "latency", LatencyRow, call=call, bytes_low=low, bytes_high=high, measure=measure)


def communicators(connection: Connection) -> list[CommunicatorRow]:
    return ask(connection, "communicators", CommunicatorRow)


def regions(connection: Connection) -> list[RegionRow]:
    return ask(connection, "regions", RegionRow)


def ranks(connection: Connection) -> list[RankRow]:
    return ask(connection, "ranks", RankRow)


def ranks_by_call(connection: Connection) -> list[RankCallRow]:
    return ask(connection, "ranks_by_call", RankCallRow)


def rank_calls(connection: Connection) -> list[RankTimeRow]:
    return ask(connection, "rank_calls", RankTimeRow)


def peers(connection: Connection, received: bool = False) -> list[PeerRow]:
    return ask(connection, "peers", PeerRow, received=received)


def facts(connection: Connection) -> list[FactRow]:
    return ask(connection, "facts", FactRow)


def positions(connection: Connection) -> list[PositionRow]:
    return ask(connection, "positions", PositionRow)


def mismatches(connection: Connection) -> list[MismatchRow]:
    return ask(connection, "mismatches", MismatchRow)


def waiting(connection: Connection) -> list[WaitingRow]:
    return ask(connection, "waiting", WaitingRow)


def awaited_collectives(connection: Connection, rank: int, identity: str, call: str, message_bytes: int | None) -> list[int]:
    rows = ask(connection, "awaited_collectives", SequenceRow, rank=rank, identity=identity, call=call, bytes=message_bytes)
    return [row.sequence for row in rows]


def live(connection: Connection) -> list[LiveRow]:
    return ask(connection, "live", LiveRow)


def totals(connection: Connection) -> list[TotalRow]:
    return ask(connection, "totals", TotalRow)


def device_totals(connection: Connection) -> list[DeviceTotalRow]:
    return ask(connection, "device_totals", DeviceTotalRow)


def places(connection: Connection) -> list[PlaceRow]:
    return ask(connection, "places", PlaceRow)


def copied(connection: Connection) -> list[CopiedRow]:
    return ask(connection, "copied", CopiedRow)


def durations(connection: Connection) -> list[DurationRow]:
    return ask(connection, "durations", DurationRow)


def late_ranks(connection: Connection) -> list[LateRankRow]:
    return ask(connection, "late_ranks", LateRankRow)


def late_calls(connection: Connection) -> list[LateCallRow]:
    return ask(connection, "late_calls", LateCallRow)


def late_run(connection: Connection) -> LateRunRow:
    return ask(connection, "late_run", LateRunRow)[0]


def traffic(connection: Connection) -> list[TrafficRow]:
    traffic_classify(connection)
    return ask(connection, "traffic", TrafficRow)
