"""Whether the process that wrote a ledger is still alive, which can be found out only on its own
node; and stubs: files in a run folder that name a ledger on a node, until its first copy takes
their place.

A stub is untrusted input. It is written before the ledger is created (src/ledger/copy.h), so a rank
that was killed at its very start leaves one, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Dict, Tuple

from ..base import ReportError

RUNNING, KILLED, UNKNOWN = "running", "killed", "unknown"
# the library notes _exit and exec, but not all ways to them
CUT_OFF = "ended without MPI_Finalize: killed, or left by _exit or exec"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
STATE_FIELD, START_FIELD = 3, 22  # of /proc/<pid>/stat, counted from 1
DEAD_STATES = "ZXx"


def process_state(pid: int, facts: Mapping[str, str]) -> str:
    """`running`, `killed`, or `unknown` if the process was on another node or in another
    container."""
    namespace = _known(lambda: os.readlink(PID_NAMESPACE))
    if not is_of_this_node(facts) or facts.get("pid_namespace", "") != namespace:
        return UNKNOWN
    state, start = _state_and_start(pid)
    if not start:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return KILLED
        except OSError:  # of another user: /proc may be mounted with hidepid
            pass
        return UNKNOWN
    return RUNNING if start == facts.get("process_start") and state not in DEAD_STATES else KILLED


def is_of_this_node(facts: Mapping[str, str]) -> bool:
    return bool(facts.get("boot_id")) and facts["boot_id"] == _known(BOOT_ID.read_text).strip()


def _known(read: Callable[[], str]) -> str:
    """Empty if it cannot be read."""
    try:
        return read()
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, str]:
    """Empty if there is no such process. The second field, the name, may contain spaces and
    brackets."""
    stat = _known(lambda: Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    after_name = stat.rpartition(")")[2].split()
    if len(after_name) <= START_FIELD - 3:
        return "", ""
    return after_name[STATE_FIELD - 3], after_name[START_FIELD - 3]


PREFIX = b"commprof-ledger-at "
STUB = re.compile(re.escape(PREFIX) + rb"(\S+) (\S+) (\S+) (\d{1,9}) (\S+) (/[^\0\n]*)\n")
MOST_STUB_BYTES = 8192


Stub = Tuple[Dict[str, str], Path]  # facts by which the process is known, and its ledger


class LedgerIsNotHere(ReportError):
    """The ledger that a stub names cannot be found from here."""


def stub_read(file: BinaryIO) -> Stub | None:
    """None: the file is no stub."""
    match = STUB.fullmatch(os.pread(file.fileno(), MOST_STUB_BYTES, 0))
    if not match:
        return None
    names = ("host", "boot_id", "pid_namespace", "pid", "process_start")
    facts = (field.decode("utf-8", "replace") for field in match.groups()[:5])
    return dict(zip(names, facts)), Path(os.fsdecode(match[6]))


def not_here(path: Path, stub: Stub) -> LedgerIsNotHere:
    """Says where the ledger of this stub is, or why there is none."""
    facts, ledger = stub
    its_own = f"a {ledger.parent.parent} of its own"
    place, why = "which is not on this host", f"the rank has just begun, or its job has {its_own}"
    if not is_of_this_node(facts):
        is_host = facts["host"] == os.uname().nodename
        place = f"on host {facts['host']}"
        place = "of this host, which has been restarted since" if is_host else place
        why = (
            "nothing is left of this rank"
            if is_host
            else "read the run there, or copy the ledger from there to this file"
        )
    elif process_state(int(facts["pid"]), facts) == KILLED:
        why = f"nothing is left of this rank, unless its job had {its_own}"
    comma = "," * place.startswith("which")
    return LedgerIsNotHere(path, f"names the ledger {ledger}{comma} {place}: {why}")
