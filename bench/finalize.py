"""MPI_Finalize of a node's ranks with and without the profiler: the slowest rank's, medians of runs
in turn. And what ranks do in the run folder, counted.

/usr/bin/python3 bench/finalize.py [--ranks N] [--runs N] [--calls N]

With --calls so many processes are each a rank of one job over an MPI library that does nothing, and
strace counts what they do to files of the run folder: so there can be 512. COMMPROF_OUTPUT_PER=node
and other settings are passed on.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import toy
from run import BUILD, LIBRARIES, compile_program, environment, output_of, print_row

LAUNCH = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
COUNTED = {
    "opens with O_CREAT": r"open(at)?\(.*O_CREAT",
    "renames": r"rename",
    "removes": r"unlink|rmdir",
    "fsyncs": r"f(data)?sync\(",
    "links": r"(sym)?link(at)?\(",
    "folders": r"mkdir",
}
AT_A_TIME = 16  # processes under strace


def slowest_ms(program: Path, mpi: str, ranks: int, run: Path | None) -> float:
    lines = output_of([*LAUNCH[mpi], "-n", str(ranks), str(program)], run)
    return max(float(ms) for ms in re.findall(r"^\d+ ([\d.]+)$", lines, re.MULTILINE))


def ends(ranks: int, runs: int, folder: Path) -> None:
    print_row("ms, MPI_Finalize of the slowest rank", "", ["without", "with", "added", "ratio"])
    for mpi in (mpi for mpi in LIBRARIES if shutil.which(f"mpicc.{mpi}")):
        program = compile_program("memory", mpi)
        taken: dict[bool, list[float]] = {False: [], True: []}
        for number in range(runs):
            for profiled, times in taken.items():
                run = folder / f"{mpi}-{number}" if profiled else None
                times.append(slowest_ms(program, mpi, ranks, run))
        without, profiled_ms = (statistics.median(times) for times in taken.values())
        figures = [without, profiled_ms, profiled_ms - without, profiled_ms / without]
        print_row(f"{mpi}, {ranks} ranks", "", [f"{figure:.1f}" for figure in figures])


def traced(rank: int, program: Path, folder: Path) -> subprocess.Popen[bytes]:
    strace = ["strace", "-f", "-y", "-o", str(folder / f"trace-{rank}")]
    profiler = {
        name: value
        for name, value in environment(folder / "run").items()
        if name == "LD_PRELOAD" or name.startswith("COMMPROF_")
    }
    assigned = [f"-E{name}={value}" for name, value in profiler.items()]
    job = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "TOY_RANK": str(rank)}
    return subprocess.Popen(
        [*strace, *assigned, str(program), "400"],
        env={**os.environ, **job},
        stdout=subprocess.DEVNULL,
    )


def count(trace: Path, run: Path) -> Counter[str]:
    lines = [
        line
        for line in trace.read_text(errors="replace").splitlines()
        if str(run) in line and not re.search(r"= -1 ", line)
    ]
    return Counter(
        {
            name: sum(bool(re.match(rf"\d+ +(?:{pattern})", line)) for line in lines)
            for name, pattern in COUNTED.items()
        }
    )


def file_calls(ranks: int, folder: Path) -> None:
    program = toy.build(BUILD, "end")
    for first in range(0, ranks, AT_A_TIME):
        batch = [
            traced(rank, program, folder) for rank in range(first, min(ranks, first + AT_A_TIME))
        ]
        for process in batch:
            process.wait()
    counts = [count(folder / f"trace-{rank}", folder / "run") for rank in range(ranks)]
    print_row(f"calls in the run folder, {ranks} ranks", "", ["rank 0", "least", "most"])
    for name in COUNTED:
        others = [each[name] for each in counts[1:] or counts]
        print_row(name, "", [str(counts[0][name]), str(min(others)), str(max(others))])
    files = [path for path in (folder / "run").rglob("*") if path.is_file()]
    size_kb = sum(path.stat().st_size for path in files) / 1000
    print_row("left: files; kB for each rank", "", [str(len(files)), f"{size_kb / ranks:.0f}"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--calls", type=int, default=0, help="ranks whose calls are counted")
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        print(f"# load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        if arguments.ranks:
            ends(arguments.ranks, arguments.runs, Path(folder))
        if arguments.calls:
            file_calls(arguments.calls, Path(folder))


if __name__ == "__main__":
    main()
