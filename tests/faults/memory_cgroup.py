"""A control group whose processes may use so much memory together, beyond which the kernel ends one
of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The memory controller of either version of cgroups: where groups are made, the limit of a group,
# and that with swap.
CONTROLLERS = (
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max", "memory.swap.max"),
)
NAME = f"commprof-faults-{os.getpid()}"


def _remove(group: Path) -> None:
    while True:  # its processes have ended; the kernel may need a moment to see that
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.01)


@contextmanager
def limited(memory_bytes: int) -> Iterator[list[str]]:
    """Gives the words to be put before a command that shall run in such a group; none where no
    group can be made."""
    for parent, limit, swap_limit in CONTROLLERS:
        group = Path(parent) / NAME
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / limit).exists():
                (group / limit).write_text(str(memory_bytes))
                if (group / swap_limit).exists():
                    (group / swap_limit).write_text(
                        str(memory_bytes if "memsw" in swap_limit else 0)
                    )
                yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
                return
        finally:
            _remove(group)
    yield []
