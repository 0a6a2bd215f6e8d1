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
# to see which ranks share one
NUMBERED = {
    "host": "host",
    "boot_id": "boot",
    "time_namespace": "clock",
    "cpu_quota_cgroup": "cgroup",
}
PLAIN_VALUE = re.compile(r"\d+[KMG]?|on|off|auto|counter|monotonic|full|site")
LISTS = {
    "settings.COMMPROF_RANKS": re.compile(r"[0-9,:-]*|one-per-node"),
    "settings.COMMPROF_EXCLUDE": re.compile(r"[A-Za-z0-9_,]*"),
}
LIBRARIES = (
    "mpi_library",
    "gpu.tracing_library",
    "nccl.library",
    "unseen.bypass",
    "unseen.library",
    "unseen.tool",
)
PATH = re.compile(r"\S*/\S*")


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


def _shown(key: str, value: str, pseudonym: Callable[[str, str], str]) -> str | None:
    """The value to show; None: left out."""
    if key in NUMBERED:
        return pseudonym(NUMBERED[key], value)
    if key in LIBRARIES:
        return ", ".join(PurePosixPath(path).name for path in value.split(", "))
    if key == "mpi_version":  # Open MPI's own text names the user and host that built it
        return units.library_name(value)
    if key == "gpu.reason":
        return PATH.sub("(path)", value)
    if key in LISTS:
        return value if LISTS[key].fullmatch(value) else None
    if key.startswith(("settings.", "env.HOROVOD_")):
        return value if PLAIN_VALUE.fullmatch(value) else None
    return value if key in UNCHANGED or key.startswith(("begin.", "last.", "sources.")) else None
