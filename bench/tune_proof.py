"""Does `hvprof-report tune` undo a bad algorithm, and leave good ones alone? About an hour on two
idle cores.

    bench/tune_proof.py FOLDER [--libraries openmpi mpich] [--blocks 8] [--healthy 10]

The plant is a ring with segments of 1 KiB: Open MPI's segmented_ring for an Allreduce of 1 MiB, and
MPICH's tsp_ring for a Bcast of 1 MiB. The kit is recorded and searched with the plant; then the job
runs in turns as it is by default, with the plant, and with the plant and the file. Healthy searches
have no plant, and a file is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ARMS = ("default", "planted", "tuned")


class Library(NamedTuple):
    """sizes: of Allreduce, Bcast, Allgather and Alltoall."""

    launch: str
    plant: str
    sizes: str


LIBRARIES = {
    "openmpi": Library(
        "mpirun.openmpi --mca btl self,vader --oversubscribe --bind-to none "
        "--mca mpi_yield_when_idle 1 -n 4",
        "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allreduce_algorithm=5 "
        "OMPI_MCA_coll_tuned_allreduce_algorithm_segmentsize=1024",
        "1048576 32768 8192 8192",
    ),
    "mpich": Library(
        "mpirun.mpich -n 2",
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM=nb MPIR_CVAR_IBCAST_INTRA_ALGORITHM=tsp_ring "
        "MPIR_CVAR_IBCAST_RING_CHUNK_SIZE=1024",
        "32768 1048576 8192 8192",
    ),
}
HEALTHY = ("65536 8192 4096 4096", "1024 65536 16384 1024", "262144 1024 1024 32768")


class Proof:
    def __init__(self, folder: Path, name: str, steps: int, budget: str) -> None:
        self.folder, self.name, self.library = folder, name, LIBRARIES[name]
        self.steps, self.budget = steps, budget
        self.environment = dict(
            os.environ,
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            COMMPROF_QUIET="on",
            PATH=f"{ROOT / 'build/bin'}:{os.environ['PATH']}",
        )
        self.program = folder / f"collectives.{name}"
        source = ROOT / "bench/collectives.c"
        self.shell(f"mpicc.{name} -O2 {source} -o {self.program}")

    def shell(self, command: str) -> str:
        """Its output; it must not fail."""
        with open(self.folder / f"{self.name}.log", "a", encoding="utf-8") as log:
            log.write(f"$ {command}\n")
            log.flush()
            said = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=True,
            ).stdout
            log.write(said)
        return said

    def job(self, sizes: str) -> str:
        return f"{self.program} {self.steps} {sizes}"

    def searched(self, case: str, sizes: str, plant: str) -> str:
        """Folder of a search in the kit of a run, with the plant in the environment."""
        launch, begin = self.library.launch, f"export {plant}; " if plant else ""
        run, kit, found = (f"{self.name}-{case}{end}" for end in (".job", ".kit", ".tuned"))
        self.shell(f"{begin}{launch} commprof-run --record 600 --output {run} {self.job(sizes)}")
        self.shell(f"hvprof-report replay kit {run} -o {kit}")
        self.shell(
            f"{begin}hvprof-report tune search {kit} --budget {self.budget} -o {found} "
            f"--launch {shlex.quote(f'{launch} {{}}')}"
        )
        self.shell(f"hvprof-report tune write {found}")
        return found

    def planted(self, blocks: int) -> None:
        plant, launch = self.library.plant, self.library.launch
        begin_s = time.monotonic()
        found = self.searched("planted", self.library.sizes, plant)
        search_s = time.monotonic() - begin_s
        if not (self.folder / found / "settings.sh").exists():
            print(f"{self.name}: MISSED, no file is written", flush=True)
            return
        print(self.shell(f"export {plant}; hvprof-report tune verify {found}"), flush=True)
        job = f"{launch} {{}} {self.job(self.library.sizes)}"
        settings = self.folder / found / "settings.sh"
        commands = (job, f"env {plant} {job}", f"export {plant}; . {settings}; {job}")
        arms = " ".join(
            f"--arm {shlex.quote(f'{arm}: {command}')}" for arm, command in zip(ARMS, commands)
        )
        runs = f"{self.name}-exp"
        self.shell(f"commprof-experiment run {runs} --blocks {blocks} {arms}")
        times = {arm: self.times(runs, arm) for arm in ARMS}
        default = median(times["default"])
        for arm, own in times.items():
            print(
                f"{self.name} {arm}: median {median(own):.3f} s of {len(own)} runs "
                f"({min(own):.3f} to {max(own):.3f}), {100 * (median(own) / default - 1):+.1f} %",
                flush=True,
            )
        pairs = [tuned / own for own, tuned in zip(times["default"], times["tuned"])]
        print(f"{self.name} tuned over default, median of blocks: x{median(pairs):.3f}")
        print(f"{self.name} search took {search_s:.0f} s", flush=True)

    def times(self, runs: str, arm: str) -> list[float]:
        """Times of complete blocks, in order; the first, discarded run is none of them."""
        logs = sorted((self.folder / runs).glob(f"block-*/{arm}.log"))[1:]
        found = (re.search(r"steps took ([0-9.]+) s", log.read_text()) for log in logs)
        return [float(match[1]) for match in found if match]

    def healthy(self, number: int) -> bool:
        """Was nothing written?"""
        found = self.searched(f"healthy-{number}", HEALTHY[number % len(HEALTHY)], "")
        is_quiet = not (self.folder / found / "settings.sh").exists()
        said = "nothing" if is_quiet else (self.folder / found / "how-to-apply.txt").read_text()
        print(f"{self.name} healthy {number}: {said}", flush=True)
        return is_quiet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--libraries", nargs="+", default=[*LIBRARIES], choices=LIBRARIES)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--healthy", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--budget", default="5m")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.libraries:
        proof = Proof(folder, name, arguments.steps, arguments.budget)
        if arguments.blocks:
            proof.planted(arguments.blocks)
        quiet = [proof.healthy(number) for number in range(arguments.healthy)]
        print(f"{name}: nothing is written in {sum(quiet)} of {len(quiet)} healthy searches")


if __name__ == "__main__":
    main()
