"""Ranks: the state of each, and what it did."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query, units
from ..base.field import Field, Row, keys, number, row_type, text
from ..run.selection import view_rows
from ..run.crowding import cpu_times
from .views import RANK_SUMS, busiest_threads

SQL = query.beside(__file__)
RANK = (
    number("rank", "as in tables `rank` and `fact`", "rank"),
    text("host", "", "host", 20),
    Field("pid", ""),
    Field(
        "wall_ns", "wall time; 1: an estimate", "wall",
        of_row=lambda row: ("~" if row.wall_is_estimate else "") + units.duration(row.wall_ns),
    ),
    Field("wall_is_estimate", ""),
    Field("counted_ns", "as in table `rank`"),
    Field("reset_unix_ns", ""),
    Field(
        "mpi_ns", "time in MPI of its busiest thread; the same over counted_ns", "in MPI"
    ),
    Field("mpi_share", "", "MPI share"),
    Field(
        "mpi_thread", "that thread's name; 1: it is the main thread", "thread", is_number=False,
        of_row=lambda row: "main" if row.mpi_thread_is_main
        else units.shortened(row.mpi_thread or "another", 15),
    ),
    Field("mpi_thread_is_main", ""),
    Field("setup_ns", "time inside `MPI_Init`, `MPI_Finalize` and the like"),
    Field("count", "number of MPI calls; bytes passed to them", "calls"),
    Field("volume_bytes", "", "volume"),
    Field("sent_count", "point-to-point messages that it sent"),
    Field("sent_bytes", ""),
    Field("ended", "as in table `rank`"),
    Field("abort_code", ""),
    Field(
        "state",
        "see [Words](#words): `finalize`, `end`, `exit`, `abort`, `running`, `killed`, `running or "
        "killed`, `snapshot`",
    ),
    Field("is_copy", "1: read from a copy of its ledger, see [The ledger](#the-ledger)"),
    Field("last_unix_ns", "its end; without an end its last sign of life"),
    Field(
        "doing_call",
        "the call that the rank is in or returned from last, as in table `thread`; of several "
        "threads, of the one that has been inside longest",
    ),
    *(
        Field(f"doing_{key}", "")
        for key in ("request_call", "communicator", "bytes", "peer", "tag")
    ),
    Field("doing_is_inside", "1: it is inside that call, or was when last seen"),
    Field(
        "doing_since_unix_ns",
        "when it entered the call (returned from it, if it is not inside), and the time from then "
        "to `last_unix_ns`",
    ),
    Field("doing_ns", ""),
    Field("dropped_calls", "as in table `rank`"),
    *(
        Field(key, "")
        for key in (
            "dropped_messages", "dropped_completions", "interrupted_calls", "untracked_requests",
            "folded_cells", "folded_communicators",
        )
    ),
    Field("cost_ns", "cost_init_ns + cost_finalize_ns + its calls x cost_per_call_ps / 1000"),
    Field("start_unix_ns", "as in table `rank`"),
    Field("end_unix_ns", ""),
    Field("thread_level", ""),
    Field(
        "nccl_count",
        "number of NCCL calls except those that create and free communicators; bytes passed to "
        "them; their time on the host, over all threads",
        "NCCL calls",
    ),
    Field("nccl_volume_bytes", ""),
    Field("nccl_host_ns", "", "on host"),
    Field(
        "nccl_device_ns",
        "time of NCCL's operations on the device, as far as they were timed; null: none",
        "on device",
    ),
    Field(
        "affinity",
        "the cores on which its main thread may run, by its last reading (table `fact`); null: "
        "unknown",
    ),
    Field(
        "cpu_ns",
        "CPU time of all its threads between its two readings; over the time between them. A rank "
        "that spins for a core which others use has much less than 1",
    ),
    Field("cpu_share", ""),
    Field("voluntary_switches", "likewise, between the two readings"),
    Field("involuntary_switches", ""),
    Field("involuntary_switches_per_cpu_s", "involuntary_switches / cpu_ns"),
    Field(
        "core_read_ns",
        "the time between its readings of CPU time, on a core and waiting for one meanwhile "
        "([Time on a core](METHODS.md#time-on-a-core))",
    ),
    Field("core_ns", ""),
    Field("core_wait_ns", ""),
    Field("core_share", "core_ns and core_wait_ns over core_read_ns", "on a core"),
    Field("core_wait_share", "", "waits for one"),
    Field(
        "outside_ready",
        "readings between these, as in table `cpu_time`; null: there are none",
    ),
    *(
        Field(key, "")
        for key in (
            "outside_asleep", "outside_disk", "inside_ready", "inside_asleep", "inside_disk",
        )
    ),
)
RankRow = row_type("RankRow", RANK)
NO_CALL = dict.fromkeys(
    ("setup_ns", "count", "volume_bytes", "nccl_count", "nccl_volume_bytes", "nccl_host_ns",
     "mpi_ns"), 0,
)


def rank_rows(connection: Connection) -> list[Row]:
    cpu_times(connection)  # makes rank_core
    found = SQL.run(connection, "ranks")
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
            sums.get(known["rank"], {}), mpi_ns=mpi_ns, mpi_thread=name,
            mpi_share=mpi_ns / known["counted_ns"] if known["counted_ns"] else None,
            mpi_thread_is_main=is_main,
        )
        rows.append(RankRow(*map(known.get, keys(RANK))))
    return rows
