"""Removes what identifies people and machines from a run: hosts, users, paths, arguments.
docs/PRIVACY.md lists what stays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ..base import Texts, units
from .run import Run

HELP = "leave out hosts, users, paths, arguments and the name of the run (docs/PRIVACY.md)"
UNCHANGED = {
    "program",
    "mpi_abi",
    "clock",
    "commprof_version",
    "launcher",
    "launcher_size",
    "region_refused",
    "cpu_model",
    "cpu_quota_cores",
    "gpu",
    "gpu.device_memory",
    "gpu.driver",
    "gpu.traced_part",
    "gpu.unseen_graph_launches",
    "nccl.algorithms",
    "nccl.device_times",
    "nccl.unknown_datatype",
    "nccl.unknown_operation",
    "nccl.version",
    "unseen.damaged",
    "unseen.dlsym",
    "unseen.gloo",
    "unseen.off",
    "spawned.profiled",
    # not shown as facts in a report
    "signatures_full",
    "process_state",
    "last_sign_unix_ns",
    "ledger_copied_unix_ns",
}
Pseudonym = Callable[[str, str], str]  # of a kind and a name


def _numbered(kind: str) -> Callable[[str, Pseudonym], str]:
    """To see which ranks share one."""
    return lambda value, pseudonym: pseudonym(kind, value)


def _if_like(pattern: str) -> Callable[[str, Pseudonym], str | None]:
    return lambda value, pseudonym: value if re.fullmatch(pattern, value) else None


# by pattern of the key, the first that fits: the value to show; None: left out
SHOWN: dict[str, Callable[[str, Pseudonym], str | None]] = {
    "host": _numbered("host"),
    "boot_id": _numbered("boot"),
    "time_namespace": _numbered("clock"),
    "cpu_quota_cgroup": _numbered("cgroup"),
    r"mpi_library|gpu\.tracing_library|nccl\.library|unseen\.(bypass|library|tool)": (
        lambda value, _: ", ".join(PurePosixPath(path).name for path in value.split(", "))
    ),
    # Open MPI's own text names the user and host that built it
    "mpi_version": lambda value, _: units.library_name(value),
    r"gpu\.reason": lambda value, _: re.sub(r"\S*/\S*", "(path)", value),
    r"settings\.COMMPROF_RANKS": _if_like("[0-9,:-]*|one-per-node"),
    r"settings\.COMMPROF_EXCLUDE": _if_like("[A-Za-z0-9_,]*"),
    r"(settings\.|env\.HOROVOD_).*": _if_like(r"\d+[KMG]?|on|off|auto|counter|monotonic|full|site"),
    r"(begin|last|sources)\..*|" + "|".join(map(re.escape, UNCHANGED)): lambda value, _: value,
}


def anonymise(run: Run) -> None:
    """Changes the run in place. Pseudonyms (host-1, ...) are numbered in the order of ranks, so
    that equal names stay equal."""
    facts = run.connection.execute(
        "SELECT world_rank, key, value FROM fact ORDER BY world_rank, key"
    ).fetchall()
    numbers: dict[str, Texts] = defaultdict(Texts)  # by kind

    def pseudonym(kind: str, name: str) -> str:
        return f"{kind}-{numbers[kind].number(name) + 1}"

    anonymous = [
        (rank, key, shown)
        for rank, key, value in facts
        if (shown := _shown(key, value, pseudonym)) is not None
    ]
    uuids = run.connection.execute(
        "SELECT uuid FROM gpu_device WHERE uuid <> '' ORDER BY world_rank, device"
    ).fetchall()
    run.connection.execute("DELETE FROM fact")
    run.connection.executemany("INSERT INTO fact VALUES (?, ?, ?)", anonymous)
    run.connection.executemany(
        "UPDATE gpu_device SET uuid = ? WHERE uuid = ?",
        [(pseudonym("gpu", uuid), uuid) for (uuid,) in uuids],
    )
    run.connection.execute("UPDATE rank SET run_id = '', pid = 0")
    run.connection.execute("UPDATE thread SET tid = 0")
    run.path, run.run_id = Path("run"), ""
    if run.notes:
        run.notes = [
            f"{len(run.notes)} remarks on the files of this run are left out, because they may "
            "name paths"
        ]


def _shown(key: str, value: str, pseudonym: Pseudonym) -> str | None:
    """The value to show; None: left out."""
    fitting = (show for pattern, show in SHOWN.items() if re.fullmatch(pattern, key, re.S))
    return next(fitting, lambda *_: None)(value, pseudonym)
