"""Known facts on the calls and the communicators of a run."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.columns import Flags, TextInts, Texts

SQL = query.beside(__file__)


_InfoRow = namedtuple(
    "_InfoRow", "call library family form waits_for kind is_blocking bandwidth blocks passes"
)


class CallInfo(_InfoRow):
    """call_infos.sql. kind: whom ranks wait for in it (collectives.KINDS); None: not for each
    other."""

    @property
    def is_completing(self) -> bool:
        """It completes requests, or sends, receives or finds a message or waits for the partners of
        an epoch, and returns when that is done."""
        is_message = (
            self.family == "point-to-point" and self.form == "blocking"
            and self.bandwidth == "one-way"
        )
        return (
            self.family in ("completion", "probe") or is_message or self.is_of_epoch
        )

    @property
    def is_of_epoch(self) -> bool:
        """It may wait for the partners of an epoch of post, start, complete and wait."""
        return self.waits_for in ("targets", "origins")

    @property
    def only_starts(self) -> bool:
        """It cannot wait."""
        return (
            self.form != "blocking" or self.call == "MPI_Win_post"
            or (self.family == "point-to-point" and self.bandwidth == "silent")
        )

    @property
    def is_rooted(self) -> bool:
        """Not all wait for all."""
        return self.kind not in (None, "all")


class Known(NamedTuple):
    calls: dict[str, CallInfo]
    communicators: dict[str, query.Row]  # by identity
    hosts: dict[int, str | None]  # of all ranks, in order

    def which(self, calls: TextInts, texts: Texts, is_wanted: Callable[[CallInfo], bool]) -> Flags:
        return texts.among(calls, {name for name, info in self.calls.items() if is_wanted(info)})

    def is_nccl(self, identities: TextInts, texts: Texts) -> Flags:
        return texts.among(
            identities,
            {row.identity for row in self.communicators.values() if row.library == "nccl"},
        )


def known(connection: Connection) -> Known:
    calls = {row.call: row for row in SQL.ask(connection, "call_infos", CallInfo)}
    communicators = {
        row.identity: row for row in SQL.rows(connection, "known_communicators")
    }
    return Known(calls, communicators, dict(SQL.run(connection, "hosts").fetchall()))
