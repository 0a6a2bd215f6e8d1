"""An MPI library whose jobs run on several hosts, each with its own network, name, clock and shared
memory (cluster.sh). The hosts begin and end with a job, also with one that is killed; nothing of
them is seen from outside."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mpi.harness import compile_program
from mpi.libraries import Mpi

FOLDER = Path(__file__).resolve().parent
CLUSTER = [
    *"setpriv --pdeathsig KILL unshare --pid --fork --kill-child --mount-proc --net --uts".split(),
    str(FOLDER / "cluster.sh"),
]
AGENT = str(FOLDER / "agent.sh")


class Host(NamedTuple):
    ahead_s: int = 0  # its clock, of that of the machine
    rate: str = ""  # at which it sends to other hosts, as tc writes it; empty: as fast as it can


HOSTS = (Host(), Host(ahead_s=2_000))


@lru_cache
def refused(hosts: Sequence[Host] = HOSTS) -> str | None:
    """Why there can be no such hosts here."""
    try:
        tried = subprocess.run([*_beside(hosts), "true"], capture_output=True, text=True)
    except FileNotFoundError as error:
        return f"no hosts here: no {error.filename}"
    return f"no hosts here: {tried.stderr.strip()}" if tried.returncode else None


def _beside(hosts: Sequence[Host]) -> list[str]:
    return [*CLUSTER, *(f"{host.ahead_s},{host.rate}" for host in hosts), "--"]


def on_hosts(
    mpi: Mpi, ranks_per_host: int, hosts: Sequence[Host] = HOSTS, around: Sequence[str] = ()
) -> Mpi:
    """The library, with a launcher that fills one host after the other, h1, h2, ..., and with TCP
    between them. `around` stands before the launcher, beside the hosts."""
    names = ",".join(f"h{number + 1}:{ranks_per_host}" for number in range(len(hosts)))
    options = {
        "openmpi": f"--oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,vader,tcp "
        f"--mca btl_tcp_if_include eth0 --mca plm_rsh_agent {AGENT} --host {names}",
        "mpich": f"-launcher rsh -launcher-exec {AGENT} -hosts {names}",
    }[mpi.family]
    environment = dict(mpi.environment)
    if mpi.family == "mpich":
        closing = compile_program(mpi, "ucx_without_farewell", "-shared", "-fPIC")
        environment |= {
            "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": "eth0",
            "LD_PRELOAD": str(closing),
        }
    return mpi._replace(
        mpirun=(*_beside(hosts), *around, mpi.mpirun[0], *options.split()), environment=environment
    )
