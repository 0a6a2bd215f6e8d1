"""The sampled calls of a run as columns, and which of them are bulk: what all stages of steps read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from sqlite3 import Connection

from ..base import query
from ..base.columns import NONE, Columns, Flags, Ints, TextInts, Texts, found_in, np, read
from ..base.thresholds import whole
from ..run.traffic_class import traffic_classify
from ..late.known import Known, known
from ..run.sampled import Calls, FurtherMessages, Starts, sampled

SQL = query.beside(__file__)

KIND = ("world_rank", "thread", "call", "bytes", "signature")


@dataclass(frozen=True)
class Told(Columns):
    """told.sql: a kind of collective of a thread that negotiates."""

    world_rank: Ints
    thread: Ints
    call: TextInts
    bytes: Ints
    signature: Ints
    is_control: Ints


@dataclass(frozen=True)
class SampledCalls:
    calls: Calls  # by rank, in order of time
    messages: FurtherMessages
    starts: Starts
    threads: Columns
    windows: Columns
    texts: Texts
    known: Known
    is_control: Ints  # of each call, by what it is; NONE: its thread does not negotiate
    is_large: Flags  # it is bulk, if it is a collective: else by its size

    def on_main(self, rows: Ints) -> Flags:
        """Which of these calls are on main threads? A thread that is not known is one."""
        return np.append(self.threads.is_main, True)[self._threads[rows]]

    def is_negotiated(self, rows: Ints) -> Flags:
        """Which of these calls are on threads that negotiate?"""
        return np.append(self.threads.is_negotiating, False)[self._threads[rows]]

    @cached_property
    def _threads(self) -> Ints:
        """The row of the thread of each call; -1: it is not known."""
        calls, threads = self.calls, self.threads
        return found_in((calls.world_rank, calls.thread), (threads.world_rank, threads.thread))


def sampled_calls(connection: Connection, about: Known | None = None) -> SampledCalls:
    """about: where the caller has it."""
    traffic_classify(connection)
    texts = Texts()
    _, calls, messages, starts = sampled(connection).in_texts(texts)
    calls = calls.take(np.lexsort((calls.end_ns, calls.start_ns, calls.world_rank)))
    told = read(Told, SQL.run(connection, "told"), texts)
    threads = read(Columns, SQL.run(connection, "threads"), texts)
    windows = read(Columns, SQL.run(connection, "windows"), texts)
    is_control = np.full(len(calls), NONE)
    own = np.flatnonzero(np.isin(calls.thread, told.thread))
    keys = ([getattr(rows, name) for name in KIND] for rows in (calls.take(own), told))
    is_control[own] = np.append(told.is_control, NONE)[found_in(*keys)]
    limits = dict(connection.execute("SELECT call, threshold_bytes FROM control_size"))
    limit = np.array(
        [limits.get(call, whole("calls.control-bytes")) for call in texts.texts], np.int64
    )
    is_large = np.where(is_control == NONE, calls.bytes > limit[calls.call], is_control == 0)
    return SampledCalls(
        calls, messages, starts, threads, windows, texts, about or known(connection), is_control,
        is_large,
    )
