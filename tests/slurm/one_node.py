"""A Slurm of one node in a folder: slurmctld and slurmd with a configuration and ports of their
own, without munge.

Slurm takes a step's unreaped processes for running ones, so no ancestor may adopt its orphans
without reaping them, as the jobs of mpi.harness.launch do."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import NamedTuple

from mpi.harness import LIBRARY, Outcome, unprofiled_environment
from mpi.libraries import AS_ROOT, REPOSITORY

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol")
TIMEOUT_S = 300  # for anything; no machine is that slow
LOOK_S = 0.05

# Nothing is isolated or limited, so this runs in containers too. Tasks may share cores: ranks
# outnumber them here.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1
PartitionName=all Nodes=ALL Default=YES State=UP
TaskProlog={folder}/task_prolog
"""
TASK_PROLOG = re.compile(r"```sh\n(#!/bin/sh\n# TaskProlog=.*?)```", re.DOTALL)  # in docs/SITES.md


def missing() -> str:
    """The first of Slurm's programs that is not here, or why it cannot be started;
    empty: it can."""
    if os.geteuid() != 0:
        return "root"
    return next((name for name in PROGRAMS if not which(name)), "")


def task_prolog(library: Path) -> str:
    """The script of docs/SITES.md, for this library."""
    text = TASK_PROLOG.search((REPOSITORY / "docs/SITES.md").read_text())[1]
    (installed,) = set(re.findall(r"/opt/commprof/\S*/libcommprof\.so", text))
    return text.replace(installed, str(library))


def unused_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, other)]


class Slurm(NamedTuple):
    """A running one; jobs are started by `run`."""

    configuration: Path

    def run(self, command: list[str], folder: Path, **environment: str) -> Outcome:
        surroundings = (
            unprofiled_environment()
            | AS_ROOT
            | {"SLURM_CONF": str(self.configuration)}
            | environment
        )
        done = subprocess.run(
            command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def batch(self, script: str, folder: Path, *options: str) -> str:
        """Output of a batch script, once its job (or array of jobs) has ended."""
        (folder / "script").write_text("#!/bin/bash\n" + script)
        submitted = self.run(
            ["sbatch", "--wait", "--output=printed-%a", *options, "script"], folder
        )
        printed = "".join(each.read_text() for each in sorted(folder.glob("printed-*")))
        assert submitted.stdout.startswith("Submitted"), submitted
        return printed


@contextmanager
def started(folder: Path) -> Iterator[Slurm]:
    host = socket.gethostname().partition(".")[0]
    controller_port, node_port = unused_ports()
    for name in ("state", "spool"):
        (folder / name).mkdir()
    slurm = Slurm(folder / "slurm.conf")
    slurm.configuration.write_text(
        CONFIGURATION.format(
            host=host, folder=folder, controller_port=controller_port, node_port=node_port
        )
    )
    (folder / "task_prolog").write_text(task_prolog(LIBRARY))
    (folder / "task_prolog").chmod(0o755)
    environment = os.environ | {"SLURM_CONF": str(slurm.configuration)}
    daemons = []
    try:
        for name in ("slurmctld", "slurmd"):
            with open(folder / f"{name}.log", "w") as log:
                daemons.append(
                    subprocess.Popen(
                        [name, "-D"],
                        env=environment,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        deadline = time.monotonic() + TIMEOUT_S
        while "idle" not in slurm.run(["sinfo", "--noheader"], folder).stdout:
            assert time.monotonic() < deadline and all(each.poll() is None for each in daemons), (
                logs(folder)
            )
            time.sleep(LOOK_S)
        yield slurm
    finally:
        for each in reversed(daemons):
            each.terminate()
        for each in daemons:
            each.wait(TIMEOUT_S)


def logs(folder: Path) -> str:
    return "\n".join(each.read_text()[-2000:] for each in folder.glob("*.log"))
