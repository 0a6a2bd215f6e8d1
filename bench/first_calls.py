"""Cost of the first calls of a process: medians and maxima over many processes, without and with
the profiler in turn.

/usr/bin/python3 bench/first_calls.py [PROCESSES]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from run import BUILD, LIBRARIES, compile_program, output_of

SHOWN = (1, 2, 10)


def times_us(program: Path, run: Path | None) -> dict[tuple[str, int], float]:
    """By call and number."""
    rows = (line.split() for line in output_of([str(program)], run).splitlines())
    return {
        (row[0], int(row[1])): float(row[2]) / 1e3
        for row in rows
        if len(row) == 3 and row[0] in ("Allreduce", "Send")
    }


def measured(program: Path, processes: int) -> dict[bool, list[dict[tuple[str, int], float]]]:
    taken: dict[bool, list[dict[tuple[str, int], float]]] = {False: [], True: []}
    for _ in range(processes):
        for profiled, rows in taken.items():
            with tempfile.TemporaryDirectory(dir=BUILD) as folder:
                rows.append(times_us(program, Path(folder) / "run" if profiled else None))
    return taken


def main() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    for mpi in LIBRARIES:
        taken = measured(compile_program("first_calls", mpi), processes)
        print(f"{mpi:22} us without: median, max    with: median, max")
        for key in ((call, number) for call in ("Allreduce", "Send") for number in SHOWN):
            figures = [
                choose([row[key] for row in taken[profiled]])
                for profiled in (False, True)
                for choose in (statistics.median, max)
            ]
            print(
                f"{key[0]:>12} {key[1]:>3}      "
                + " ".join(f"{figure:12.2f}" for figure in figures)
            )


if __name__ == "__main__":
    main()
