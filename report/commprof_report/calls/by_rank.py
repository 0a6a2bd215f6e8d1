"""Ranks: the state of each, and how calls differ between them."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.cpu_time import cpu_times

SQL = query.beside(__file__)


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
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    sent_count: int
    sent_bytes: int
    ended: str
    abort_code: int
    state: str
    is_copy: int
    last_unix_ns: int | None
    doing_call: str | None
    doing_request_call: str | None
    doing_communicator: str | None
    doing_bytes: int | None
    doing_peer: int | None
    doing_tag: int | None
    doing_is_inside: int | None
    doing_since_unix_ns: int | None
    doing_ns: int | None
    dropped_calls: int
    dropped_messages: int
    dropped_completions: int
    interrupted_calls: int
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
    affinity: str | None
    cpu_ns: int | None
    cpu_share: float | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    involuntary_switches_per_cpu_s: float | None
    core_read_ns: int | None
    core_ns: int | None
    core_wait_ns: int | None
    core_share: float | None
    core_wait_share: float | None
    outside_ready: int | None
    outside_asleep: int | None
    outside_disk: int | None
    inside_ready: int | None
    inside_asleep: int | None
    inside_disk: int | None


class RankCallRow(NamedTuple):
    """A call, summed over the ranks that made it."""

    call: str
    family: str
    ranks: int
    count: int  # type: ignore[assignment]  # hides tuple.count
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


class RankTimeRow(NamedTuple):
    rank: int
    call: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    total_ns: int
    library: str
    measure: str


def rank_rows(connection: Connection) -> list[RankRow]:
    cpu_times(connection)  # makes rank_core
    return SQL.ask(connection, "ranks", RankRow)


def rank_call_rows(connection: Connection) -> list[RankCallRow]:
    return SQL.ask(connection, "ranks_by_call", RankCallRow)


def rank_time_rows(connection: Connection) -> list[RankTimeRow]:
    return SQL.ask(connection, "rank_calls", RankTimeRow)
