"""Cost of the profiler, measured in one go: `make bench` prints the tables of docs/OVERHEAD.md.

Everything is taken with and without the profiler in turn, so that both see the same machine:
nanoseconds per call inside one process (bench/overhead.c), instructions per call (callgrind, where
valgrind is at hand), resident memory, and the time from start to end of a program that only
initializes and finalizes MPI.

PEERS="IPM=/opt/ipm/{mpi}/lib/libipm.so mpiP=/opt/mpip/{mpi}/lib/libmpiP.so" make bench
    takes other profilers in turn with ours, too; {mpi} is openmpi or mpich.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import instructions as toy_instructions
import toy

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
LIBRARY = ROOT / "build" / "lib" / "libcommprof.so"
LIBRARIES = ("openmpi", "mpich")
MEAN, LEAST = 2, 3  # the columns of bench/overhead.c with what is added
SAMPLED = ("Allreduce", "Bcast", "Send", "Recv", "Isend")
# what a ledger needs of src/base
COPYING = ("filesystems", "mapped_file", "quiet", "clock", "settings", "settings_file", "rank_list")
COUNTED = (
    "Allreduce", "Bcast", "Barrier", "Send", "Recv", "Irecv, Isend, Waitall",
    "Iprobe, nothing there",
)


def environment(run: Path | None) -> dict[str, str]:
    """The process's environment: with the profiler preloaded if there is a run folder."""
    env = dict(
        os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        COMMPROF_QUIET="1",
    )
    if run is not None:
        env.update(LD_PRELOAD=str(LIBRARY), COMMPROF_OUTPUT=str(run))
    return env


def compile_program(name: str, mpi: str) -> Path:
    program = BUILD / f"{name}.{mpi}"
    subprocess.run(
        [
            f"mpicc.{mpi}", "-w", "-O2", str(ROOT / "bench" / f"{name}.c"), "-o", str(program),
            "-ldl",
        ],
        check=True,
    )
    return program


def output_of(command: list[str], run: Path | None, **more: str) -> str:
    result = subprocess.run(
        command, env={**environment(run), **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )
    if result.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed: {result.stderr.strip()}")
    return result.stdout + result.stderr


def nanoseconds(mpi: str, run: Path) -> str:
    lines = output_of([str(compile_program("overhead", mpi)), "3000"], run).splitlines()
    return "\n".join(line for line in lines if re.search(r"\d\.\d|mean", line))


def growth(run: Path) -> str:
    """The tables of bench/growth.c, over an MPI library that does nothing."""
    return output_of([str(toy.build(BUILD, "growth"))], run)


def instructions_by_call() -> None:
    """Over an MPI library that does nothing, every call sampled; bench/instructions.py has them by
    function of the source."""
    print("instructions added (callgrind; triple: Irecv, Isend, Waitall)")
    for name, call in toy_instructions.added().items():
        print(f"{name:26} {call.instructions:8.1f}")


def compile_copy() -> Path:
    program = BUILD / "copy"
    sources = [
        ROOT / "src/ledger/ledger.c", ROOT / "src/ledger/copy.c",
        *(ROOT / f"src/base/{part}.c" for part in COPYING),
    ]
    compiler = ["cc", "-w", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/src"]
    subprocess.run(
        [*compiler, ROOT / "bench/copy.c", *sources, "-lpthread", "-o", program], check=True
    )
    return program


def copies(memory: str, disk: Path) -> str:
    """The table of bench/copy.c: one copy of a ledger, to memory and to the disk that holds the
    temporary files."""
    program = compile_copy()
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        return output_of([str(program), folder, str(disk)], None)


def instructions(program: Path, name: str, calls: int, run: Path | None, samples: str) -> int:
    """In the loop that makes the calls: neither start nor end, where samples are stored."""
    valgrind = [
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
        "--toggle-collect=count_only",
    ]
    command = [*valgrind, str(program), "--count", name, str(calls)]
    text = output_of(command, run, COMMPROF_CLOCK="counter", COMMPROF_SAMPLES=samples)
    return int(re.search(r"Collected : (\d+)", text).group(1))


def added_instructions(program: Path, name: str, run: Path, samples: str = "4M") -> float:
    """Per call, from runs of two lengths: what the first calls need cancels out."""
    few, many = 6400, 64000
    with_profiler = instructions(program, name, many, run, samples) - instructions(
        program, name, few, run, samples
    )
    without = instructions(program, name, many, None, samples) - instructions(
        program, name, few, None, samples
    )
    return (with_profiler - without) / (many - few)


def added_nanoseconds(program: Path, run: Path, column: int, **more: str) -> dict[str, float]:
    """By the name of the call."""
    rows = re.findall(
        r"^(\w.{23})((?: +-?[\d.]+){7})$", output_of([str(program), "1000"], run, **more),
        re.MULTILINE,
    )
    return {name.strip(): float(figures.split()[column]) for name, figures in rows}


def sample_log(mpi: str, run: Path) -> None:
    """Cost of sampling single calls: added to a call, in turn with and without; and to the end of a
    rank whose log is full."""
    program = BUILD / f"overhead.{mpi}"
    taken: dict[str, list[dict[str, float]]] = {"0": [], "4M": []}
    for _ in range(7):
        for samples, rows in taken.items():
            rows.append(added_nanoseconds(program, run, MEAN, COMMPROF_SAMPLES=samples))
    print("\nthe sample log               ns without     with  (the least of 7 runs, in turn)")
    for name in SAMPLED:
        without, with_log = (min(row[name] for row in taken[samples]) for samples in ("0", "4M"))
        print(f"{name:24} {without:14.1f} {with_log:8.1f}")
    if shutil.which("valgrind"):
        for name in SAMPLED:
            without, with_log = (
                added_instructions(program, name, run, samples) for samples in ("0", "4M")
            )
            print(f"{name:24} {without:14.0f} {with_log:8.0f}  instructions")
    for samples in ("0", "4M"):
        output_of([str(program), "--count", "Allreduce", "200000"], run, COMMPROF_SAMPLES=samples)
        _, finalize_ms, _ = stored_costs(run)
        size_kb = (run / "rank-0.db").stat().st_size / 1000
        print(
            f"200,000 calls, COMMPROF_SAMPLES={samples}: {finalize_ms:.1f} ms at the end, a "
            f"database of {size_kb:.0f} kB"
        )


def peers_of(mpi: str) -> dict[str, Path]:
    """The libraries of other profilers by name, from PEERS."""
    peers = {}
    for word in os.environ.get("PEERS", "").split():
        name, _, path = word.partition("=")
        peers[name] = Path(path.replace("{mpi}", mpi))
        if not peers[name].is_file():
            sys.exit(f"bench: PEERS: {word}: no file {peers[name]}")
    return peers


def beside_peers(mpi: str, run: Path, peers: dict[str, Path]) -> None:
    program, libraries = BUILD / f"overhead.{mpi}", {"commprof": LIBRARY, **peers}
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    for _ in range(7):
        for name, library in libraries.items():
            taken[name].append(added_nanoseconds(program, run, LEAST, LD_PRELOAD=str(library)))
    print("\nns added, the least of 7 runs, in turn" + "".join(f"{name:>10}" for name in libraries))
    for call in taken["commprof"][0]:
        print(
            f"{call:38}"
            + "".join(f"{min(row[call] for row in rows):10.1f}" for rows in taken.values())
        )


def start_to_end_ms(program: Path, run: Path) -> tuple[float, float]:
    """Median wall time of the program without and with the profiler, taken in turn."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(15):
        for profiled in (False, True):
            begin = time.monotonic()
            output_of([str(program)], run if profiled else None)
            taken[profiled].append((time.monotonic() - begin) * 1e3)
    return statistics.median(taken[False]), statistics.median(taken[True])


def stored_costs(run: Path) -> tuple[float, float, float]:
    """Costs that the profiler reports of itself in the last run: start and end in milliseconds, a
    call in nanoseconds."""
    with sqlite3.connect(run / "rank-0.db") as database:
        row = database.execute(
            "SELECT cost_init_ns / 1e6, cost_finalize_ns / 1e6, cost_per_call_ps / 1e3 FROM rank"
        ).fetchone()
    return row


def report(mpi: str, folder: Path) -> None:
    run = folder / mpi
    print(f"\n## {mpi}\n")
    print(nanoseconds(mpi, run))
    overhead = BUILD / f"overhead.{mpi}"
    if shutil.which("valgrind"):
        print("\ninstructions added per call (callgrind)")
        for name in COUNTED:
            print(f"{name:24} {added_instructions(overhead, name, run):8.0f}")
    else:
        print("\ninstructions: valgrind is not installed")
    sample_log(mpi, run)
    if peers := peers_of(mpi):
        beside_peers(mpi, run, peers)
    memory = compile_program("memory", mpi)
    without_kb, with_kb = int(output_of([str(memory)], None)), int(output_of([str(memory)], run))
    print(
        f"\nresident memory of a rank, 100 sizes in 4 calls: {without_kb} kB without, {with_kb} kB "
        f"with, {with_kb - without_kb} kB added"
    )
    print(f"the database it leaves: {(run / 'rank-0.db').stat().st_size / 1000:.0f} kB")
    without_ms, with_ms = start_to_end_ms(memory, run)
    print(
        f"start to end: {without_ms:.1f} ms without, {with_ms:.1f} ms with, "
        f"{with_ms - without_ms:.1f} ms added (medians of 15, in turn)"
    )
    init_ms, finalize_ms, call_ns = stored_costs(run)
    print(
        f"the profiler's own account of it: {init_ms:.1f} ms at start, {finalize_ms:.1f} ms at "
        f"end, {call_ns:.0f} ns a call"
    )


def main() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where other profilers leave their files
        print("## Each family, and growth\n")
        print(growth(Path(folder) / "toy"))
        if shutil.which("valgrind"):
            instructions_by_call()
        print(
            "## A copy of a ledger on the node (every COMMPROF_COPY_S seconds): to memory, to a "
            "disk\n"
        )
        print(copies("/dev/shm", Path(folder)))
        for mpi in LIBRARIES:
            if shutil.which(f"mpicc.{mpi}"):
                report(mpi, Path(folder))
            else:
                print(f"bench: mpicc.{mpi} is not installed, skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
