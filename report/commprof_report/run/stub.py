"""Stubs: files in a run folder that name a ledger on a node, until its first copy takes their
place.

A stub is untrusted input. It is written before the ledger is created (src/ledger/copy.h), so a rank
that was killed at its very start leaves one, too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..base.errors import ReportError
from . import process

PREFIX = b"commprof-ledger-at "
STUB = re.compile(re.escape(PREFIX) + rb"(\S+) (\S+) (\S+) (\d{1,9}) (\S+) (/[^\0\n]*)\n")
MOST_BYTES = 8192


class Stub(NamedTuple):
    host: str
    pid: int
    facts: dict[str, str]  # by which the process is known (process.py)
    ledger: Path


class LedgerIsNotHere(ReportError):
    """The ledger that a stub names cannot be found from here."""


def stub_read(file: BinaryIO) -> Stub | None:
    """None: the file is no stub."""
    match = STUB.fullmatch(os.pread(file.fileno(), MOST_BYTES, 0))
    if not match:
        return None
    host, boot_id, pid_namespace, pid, process_start = (
        field.decode("utf-8", "replace") for field in match.groups()[:5]
    )
    facts = {"boot_id": boot_id, "pid_namespace": pid_namespace, "process_start": process_start}
    return Stub(host, int(pid), facts, Path(os.fsdecode(match[6])))


def not_here(path: Path, stub: Stub) -> LedgerIsNotHere:
    """Says where the ledger of this stub is, or why there is none."""
    its_own = f"a {stub.ledger.parent.parent} of its own"
    place, why = "which is not on this host", f"the rank has just begun, or its job has {its_own}"
    if not process.is_of_this_node(stub.facts):
        is_host = stub.host == os.uname().nodename
        place = f"on host {stub.host}"
        place = "of this host, which has been restarted since" if is_host else place
        why = (
            "nothing is left of this rank" if is_host
            else "read the run there, or copy the ledger from there to this file"
        )
    elif process.process_state(stub.pid, stub.facts) == process.KILLED:
        why = f"nothing is left of this rank, unless its job had {its_own}"
    comma = "," * place.startswith("which")
    return LedgerIsNotHere(path, f"names the ledger {stub.ledger}{comma} {place}: {why}")
