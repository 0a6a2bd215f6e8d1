"""Communicators: the members of each, and the time of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection

from ..base import query
from ..base.field import Field, Row, row_type, text
from ..base.members import members_shown
from ..base.units import shortened
from ..calls.views import COMMUNICATOR_USE
from ..run.cells import view_rows

SQL = query.beside(__file__)


COMMUNICATOR = (
    text("communicator", "label and identity", "communicator", 32),
    text("identity", "", "identity"),
    Field(
        "size",
        "as in table `communicator`, from the lowest rank that has a name for it, else the lowest"
        " rank",
        "size",
    ),
    Field("remote_size", ""),
    Field(
        "members", "", "world ranks", lambda members: shortened(members_shown(members), 24), False
    ),
    Field("ranks", "ranks whose files mention it"),
    Field("name", "as in table `communicator`, from such a rank"),
    Field("constructor", "", "made by", lambda call: call.replace("MPI_", ""), False),
    text("parent", "label of the communicator that it was created from", "from", 20),
    Field("ordinal", "as in table `communicator`, from such a rank"),
    Field("is_inter", ""),
    Field("is_freed", ""),
    Field("count", "of the calls on it", "calls"),
    Field("volume_bytes", "", "volume"),
    Field("total_ns", "", "time"),
    text(
        "top_call", "the call with the most time on it; for NCCL by time on the device",
        "most time in",
    ),
    text("role", "its purpose, in words; null: the row stands for several", "role"),
    Field(
        "library",
        "MPI's or NCCL's; time of NCCL's operations on the device (`total_ns` is that of the "
        "calls on the host); null: none",
    ),
    Field("device_ns", "", "on device"),
)
CommunicatorRow = row_type("CommunicatorRow", COMMUNICATOR)


def communicator_rows(
    connection: Connection, roles: Mapping[str, str]
) -> list[Row]:
    """roles: by identity."""
    nothing = {"count": 0, "volume_bytes": 0, "total_ns": 0, "top_call": None, "device_ns": None}
    used = {row.identity: row for row in view_rows(connection, COMMUNICATOR_USE)}
    found = SQL.run(connection, "communicators")
    names = [column[0] for column in found.description]
    known = (dict(zip(names, values)) for values in found)
    rows = [
        CommunicatorRow(
            **each, role=roles.get(each["identity"]),
            **{
                name: getattr(used.get(each["identity"]), name, value)
                for name, value in nothing.items()
            },
        )
        for each in known
    ]
    return sorted(
        rows, key=lambda row: (
            -max(row.total_ns, row.device_ns or 0), -(row.size or -1), row.communicator,
        ),
    )
