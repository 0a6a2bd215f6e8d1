"""Whether the process that wrote a ledger is still alive. This can be found out only on its own
node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
    if not is_of_this_node(facts) or facts.get("pid_namespace") != _pid_namespace():
        return UNKNOWN
    state, start = _state_and_start(pid)
    if not start:
        return UNKNOWN if _is_hidden(pid) else KILLED
    return RUNNING if start == facts.get("process_start") and state not in DEAD_STATES else KILLED


def is_of_this_node(facts: Mapping[str, str]) -> bool:
    return bool(facts.get("boot_id")) and facts["boot_id"] == _text(BOOT_ID).strip()


def _text(path: Path) -> str:
    """Empty if the file cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _pid_namespace() -> str | None:
    try:
        return os.readlink(PID_NAMESPACE)
    except OSError:
        return None


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process, though /proc does not show it (mounted with hidepid for
    other users)."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def _state_and_start(pid: int) -> tuple[str, str]:
    """Empty if there is no such process. The second field, the name, may contain spaces and
    brackets."""
    after_name = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    if len(after_name) <= START_FIELD - 3:
        return "", ""
    return after_name[STATE_FIELD - 3], after_name[START_FIELD - 3]
