"""Cost of the profiler, measured in one go: `make bench` prints the table of docs/OVERHEAD.md, one
line a row: what a call takes beyond two readings of the clock, what the end takes, memory.

Everything is taken with and without the profiler in turn, so that both see the same machine:
nanoseconds per call inside one process, in two MPI libraries (bench/overhead.c) and in one that
does nothing (bench/growth.c); instructions per call (callgrind, where valgrind is at hand);
milliseconds of the end; resident memory. With --more also the figures of the sample log and of
copies of a ledger.

PEERS="IPM=/opt/ipm/{mpi}/lib/libipm.so mpiP=/opt/mpip/{mpi}/lib/libmpiP.so" make bench
    takes other profilers in turn with ours, too; {mpi} is openmpi or mpich.
CALLS="Allreduce;Irecv, Isend, Waitall"
    only these: mpisee ends a job whose request another library started, as the other rows do.
"""

from __future__ import annotations

import argparse
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
ADDED, FLOOR = 1, 2  # columns of bench/overhead.c
RUNS = 5
CALLS = os.environ.get("CALLS", "")
SAMPLED = ("Allreduce", "Bcast", "Send", "Recv", "Isend")
# what a ledger needs of src/base
COPYING = ("filesystems", "mapped_file", "quiet", "clock", "settings", "settings_file", "rank_list")
# rows whose instructions bench/instructions.py counts, under its name
INSTRUCTIONS = {
    "Allreduce": "Allreduce",
    "Bcast": "Bcast",
    "Barrier": "Barrier",
    "Send": "Send",
    "Recv": "Recv",
    "Irecv, Isend, Waitall": "triple",
    "Waitany of 1000": "Waitany",
    "Allreduce, sizes at random: 10000": "sizes",
    "Allreduce, communicators: 1000": "comms",
    "Irecv, Wait, open requests: 1": "Wait",
}
# the first ones are README's
FIRST = ("Allreduce", "Isend", "Wait", "Irecv, Isend, Waitall")


def environment(run: Path | None) -> dict[str, str]:
    """The process's environment: with the profiler preloaded if there is a run folder."""
    env = dict(
        os.environ,
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        COMMPROF_QUIET="1",
        COMMPROF_DLSYM="off",  # the programs look MPI's own functions up
    )
    if run is not None:
        env.update(LD_PRELOAD=str(LIBRARY), COMMPROF_OUTPUT=str(run))
    return env


def compile_program(name: str, mpi: str) -> Path:
    program = BUILD / f"{name}.{mpi}"
    subprocess.run(
        [
            f"mpicc.{mpi}",
            "-w",
            "-O2",
            str(ROOT / "bench" / f"{name}.c"),
            "-o",
            str(program),
            "-ldl",
        ],
        check=True,
    )
    return program


def output_of(command: list[str], run: Path | None, **more: str) -> str:
    result = subprocess.run(
        command,
        env={**environment(run), **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if result.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed: {result.stderr.strip()}")
    return result.stdout + result.stderr


def taken(program: Path, run: Path, *arguments: str, **more: str) -> dict[str, list[float]]:
    """The rows of bench/overhead.c or bench/growth.c: figures by the name of the call."""
    rows = re.findall(
        r"^(\w.{33}) ((?: +-?[\d.]+)+)$",
        output_of([str(program), *arguments], run, **more),
        re.MULTILINE,
    )
    return {name.strip(): [float(figure) for figure in figures.split()] for name, figures in rows}


def least(
    program: Path, run: Path, libraries: dict[str, Path]
) -> dict[str, dict[str, list[float]]]:
    """By the name of the call and of the library: what it adds and the floor, the least of several
    runs, in turn."""
    found: dict[str, dict[str, list[float]]] = {}
    in_mpi = program.name.startswith("overhead")
    asked = ["4000", *CALLS.split(";")] if in_mpi and CALLS else []
    for _ in range(RUNS):
        for library, path in libraries.items():
            for name, figures in taken(program, run, *asked, LD_PRELOAD=str(path)).items():
                pair = figures[-3:-1] if in_mpi else figures[:2]
                before = found.setdefault(name, {}).get(library, pair)
                found[name][library] = [min(one) for one in zip(before, pair)]
    return found


def compile_copy() -> Path:
    program = BUILD / "copy"
    sources = [
        ROOT / "src/ledger/ledger.c",
        ROOT / "src/ledger/copy.c",
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
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
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


def sample_log(mpi: str, run: Path) -> None:
    """Cost of sampling single calls: added to a call, in turn with and without; and to the end of a
    rank whose log is full."""
    program = BUILD / f"overhead.{mpi}"
    all_rows: dict[str, list[dict[str, list[float]]]] = {"0": [], "4M": []}
    for _ in range(7):
        for samples, rows in all_rows.items():
            rows.append(taken(program, run, COMMPROF_SAMPLES=samples))
    print("\nthe sample log               ns without     with  (the least of 7 runs, in turn)")
    for name in SAMPLED:
        without, with_log = (
            min(row[name][ADDED] for row in all_rows[samples]) for samples in ("0", "4M")
        )
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


def resident_kb(program: Path, run: Path | None) -> int:
    return int(output_of([str(program)], run).split()[0])


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


def print_row(name: str, floor: str, figures: list[str]) -> None:
    print(f"{name:36}{floor:>8}" + "".join(f" {figure:>12}" for figure in figures), flush=True)


def calls(folder: Path) -> None:
    """The rows in nanoseconds: a library that does nothing, each MPI library, and peers."""
    columns: dict[str, dict[str, list[float]]] = {}
    floors: dict[str, float] = {}
    programs = {"no MPI": (toy.build(BUILD, "growth"), {"commprof": LIBRARY})}
    for mpi in (mpi for mpi in LIBRARIES if shutil.which(f"mpicc.{mpi}")):
        programs[mpi] = compile_program("overhead", mpi), {"commprof": LIBRARY, **peers_of(mpi)}
    for mpi, (program, libraries) in programs.items():
        for call, by_library in least(program, folder / mpi, libraries).items():
            for library, (added, floor) in by_library.items():
                column = mpi if library == "commprof" else f"{library} {mpi[0]}"
                columns.setdefault(column, {})[call] = [added, floor]
                floors[call] = floor
    counted = toy_instructions.added() if shutil.which("valgrind") else {}
    print_row("ns beyond two readings of the clock", "floor", [*columns, "instructions"])
    for call in dict.fromkeys([*FIRST, *floors]):
        beyond = [
            f"{column[call][0] - column[call][1]:.1f}" if call in column else ""
            for column in columns.values()
        ]
        of = counted.get(INSTRUCTIONS.get(call, ""))
        beyond.append(f"{of.instructions:.0f}" if of else "")
        print_row(call, f"{floors[call]:.1f}", beyond)


def ends(folder: Path) -> None:
    """The rows in milliseconds and kilobytes."""
    end = toy.build(BUILD, "end")
    print_row("ms on a core, MPI_Finalize", "", ["least", "median"])
    for name, count in (("of a rank without calls", 0), ("of a rank with a full log", 200000)):
        times = sorted(
            float(output_of([str(end), str(count)], folder / "end").split()[1])
            for _ in range(2 * RUNS)
        )
        print_row(name, "", [f"{times[0]:.1f}", f"{statistics.median(times):.1f}"])
    for mpi in (mpi for mpi in LIBRARIES if shutil.which(f"mpicc.{mpi}")):
        memory, run = compile_program("memory", mpi), folder / mpi
        added_kb = resident_kb(memory, run) - resident_kb(memory, None)
        database_kb = (run / "rank-0.db").stat().st_size / 1000
        without_ms, with_ms = start_to_end_ms(memory, run)
        sizes = [f"{added_kb}", f"{database_kb:.0f}"]
        print_row(f"{mpi}: kB of memory; of the database", "", sizes)
        print_row(
            f"{mpi}: ms, start to end; added",
            "",
            [
                f"{without_ms:.1f}",
                f"{with_ms - without_ms:.1f}",
            ],
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--more", action="store_true", help="also the sample log, and copies")
    more = parser.parse_args().more
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where other profilers leave their files
        print(f"# load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        calls(Path(folder))
        ends(Path(folder))
        if more:
            print(copies("/dev/shm", Path(folder)))
            for mpi in (mpi for mpi in LIBRARIES if shutil.which(f"mpicc.{mpi}")):
                sample_log(mpi, Path(folder) / mpi)


if __name__ == "__main__":
    main()
