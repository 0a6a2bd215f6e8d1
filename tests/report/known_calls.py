"""The functions that the library knows, as it writes them into table `call`: read from calls.def
and nccl_calls.def."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).resolve().parents[2] / "src"
MPI_LINE = re.compile(r"^CALL\((\w+), (\w+), (\w+), \w+, \w+, (\w+), (\w+)\)$", re.M)
NCCL_LINE = re.compile(r"^NCCL_CALL\((\w+), (\w+), (\w+), (\w+)\)$", re.M)


class KnownCall(NamedTuple):
    """A row of table `call`."""

    name: str
    family: str
    library: str
    form: str
    bandwidth: str
    waits_for: str


def _form(kind: str) -> str:
    return (
        "nonblocking"
        if kind.startswith("STARTING")
        else "persistent"
        if kind.startswith("PREPARING")
        else "blocking"
    )


def _calls() -> list[KnownCall]:
    mpi = MPI_LINE.findall((SOURCES / "wrappers/calls.def").read_text())
    nccl = NCCL_LINE.findall((SOURCES / "nccl/nccl_calls.def").read_text())
    rows = [("MPI_" + name, family, "mpi", _form(kind), *rest) for name, family, kind, *rest in mpi]
    rows += [("nccl" + name, family, "nccl", "blocking", *rest) for name, family, *rest in nccl]
    return [
        KnownCall(
            *(
                text if column == "name" else text.replace("_", "-")
                for column, text in zip(KnownCall._fields, row)
            )
        )
        for row in rows
    ]


CALLS = {call.name: call for call in _calls()}
