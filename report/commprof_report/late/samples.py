"""All sampled calls of a run, and which of them make each rank's timeline."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Any

from ..base import query
from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Ints, TextInts, Texts, found_in, grouped, read
from ..run.sampled import Calls, sampled
from .known import Known

SQL = query.beside(__file__)

COLUMNS = (
    "world_rank", "thread", "call", "region", "start_ns", "end_ns", "polled_since_ns", "polled_ns",
)


def samples(connection: Connection, known: Known, texts: Texts) -> Calls:
    """Without MPI_Init and the like; by rank, in order of time."""
    every = sampled(connection).in_texts(texts).calls
    calls = Calls(**{name: getattr(every, name) for name in COLUMNS})
    calls = calls.take(~known.which(calls.call, texts, lambda call: call.family == "setup"))
    return calls.take(np.lexsort((calls.end_ns, calls.start_ns, calls.world_rank)))


def polls(rows: Calls) -> Calls:
    """The unsuccessful polls before each call, as if they followed one another."""
    rows = rows.take(rows.polled_ns != NONE)
    since_ns = rows.polled_since_ns
    return rows.changed(start_ns=since_ns, end_ns=since_ns + rows.polled_ns)


def are_chosen(connection: Any, texts: Texts, **columns: TextInts) -> Flags:
    """Which of the calls did the user select, whatever their rank and size? Those on communicators
    that are not known are among them. columns: call, identity, region."""
    found = np.ones(len(columns["call"]), bool)
    for name, chosen in connection.chosen.texts.items():
        if name in columns:
            found &= texts.among(columns[name], {None, *chosen})
    return found


def region_names(
    connection: Connection, world_rank: Ints, region: Ints, texts: Texts
) -> TextInts:
    regions = read(Columns, SQL.run(connection, "region_names"), texts)
    place = found_in((world_rank, region), (regions.world_rank, regions.region))
    return np.append(regions.name, texts.number(""))[place]


def followed(connection: Connection, rows: Calls) -> dict[int, int]:
    """By rank the thread whose calls are its timeline: the main one; where that calls no MPI, the
    one with the most time in MPI. rows: calls of MPI."""
    order, groups = grouped(rows.world_rank, rows.thread)
    first = order[groups.first]
    rank, thread = rows.world_rank[first], rows.thread[first]
    inside_ns = groups.sum((rows.end_ns - rows.start_ns)[order])
    others = dict.fromkeys(
        connection.execute("SELECT world_rank, thread FROM thread WHERE NOT is_main")
    )
    is_main = np.array([pair not in others for pair in zip(rank.tolist(), thread.tolist())], bool)
    best = np.lexsort((thread, -inside_ns, ~is_main, rank))[::-1]
    return dict(zip(rank[best].tolist(), thread[best].tolist()))  # the last one of a rank counts


def is_on(rows: Calls, threads: dict[int, int]) -> Flags:
    """Which of the calls are on these threads, by rank?"""
    thread_of = np.full(max(threads, default=0) + 1, NONE)
    thread_of[list(threads)] = list(threads.values())
    return rows.thread == thread_of[np.minimum(rows.world_rank, len(thread_of) - 1)]
