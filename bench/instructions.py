"""How many instructions the profiler adds to a call: callgrind counts them, so the figures repeat.

/usr/bin/python3 bench/instructions.py [--functions]

Over bench/toy_mpi.c, an MPI library that does nothing, on one thread, with all that is on by
default, but for the clock, which is the program's own: every call takes as long, is sampled, has a
signature and a message number. Counted are the instructions in libcommprof.so and in the functions
of the C library that it calls. With --functions also those
of each function of the source, wherever the compiler has inlined it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import toy

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "build" / "lib" / "libcommprof.so"
TIMES = 512  # eight pages of samples


class Added(NamedTuple):
    """To one call (or triple)."""

    instructions: float
    by_function: dict[str, float]  # of the source


@cache
def functions_of(path: str) -> list[tuple[int, str]]:
    """First line and name of each function in a file of the source: they begin in
    the first column."""
    lines = Path(path).read_text(errors="replace").splitlines() if Path(path).is_file() else []
    bare = (re.sub(r"__attribute__\(\([^)]*\)*", "", line) for line in lines)
    matches = (
        (number, re.match(r"BODY\((\w+)|[a-zA-Z][^;={}(]*\b(\w+)\(", line))
        for number, line in enumerate(bare, 1)
    )
    return [(number, match[1] or match[2]) for number, match in matches if match]


def function_at(path: str, line: int) -> str:
    """`file:function`; the wrappers that are expanded from calls.def: `calls.def`."""
    before = [name for number, name in functions_of(path) if number <= line]
    return (
        f"{Path(path).name}:{before[-1]}"
        if before and not path.endswith(".def")
        else Path(path).name
    )


def read_dump(dump: Path) -> tuple[str, Counter[str]]:
    """Instructions that callgrind counted, by function of the source, and the measured function
    that they belong to ("": none)."""
    counts: Counter[str] = Counter()
    measured, is_ours, is_inclusive, file = "", False, False, ""
    for line in dump.read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            is_ours = not value.endswith((toy.LIBRARY, "/instructions"))
        elif key in ("fl", "fi", "fe"):
            file = value
        elif key == "fn":
            measured = (
                value.removeprefix("measured_") if value.startswith("measured_") else measured
            )
        elif key == "calls":
            is_inclusive = True  # the next line is what the callee took
        elif line[:1].isdigit():
            if is_ours and not is_inclusive:
                number, count = line.split()
                counts[function_at(file, int(number))] += int(count)
            is_inclusive = False
    return measured, counts


def added(library: Path = LIBRARY) -> dict[str, Added]:
    """By the call's name; `triple`: Irecv, Isend, Waitall."""
    with tempfile.TemporaryDirectory() as folder:
        program = toy.build(Path(folder), "instructions")
        env = {
            name: value for name, value in os.environ.items() if not name.startswith("COMMPROF_")
        }
        env.update(
            LD_PRELOAD=str(library),
            COMMPROF_OUTPUT=f"{folder}/run",
            COMMPROF_QUIET="1",
            COMMPROF_CLOCK="monotonic",
            COMMPROF_MEMORY="64M",
            COMMPROF_SAMPLES="16M",
            COMMPROF_CPU_TIME="off",  # its thread would read all the time, by that clock
        )
        options = [
            "--compress-strings=no",
            "--compress-pos=no",
            "--dump-before=first_*",
            "--dump-before=measured_*",
        ]
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/dump",
            *options,
            program,
            str(TIMES),
        ]
        subprocess.run(
            command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        dumps = dict(read_dump(dump) for dump in Path(folder).glob("dump.*"))
    dumps.pop("", None)
    return {
        name: Added(
            sum(counts.values()) / TIMES, {at: count / TIMES for at, count in counts.items()}
        )
        for name, counts in sorted(dumps.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--functions", action="store_true", help="also by function of the source")
    parser.add_argument(
        "--library", type=Path, default=LIBRARY, help="instead of build/lib/libcommprof.so"
    )
    arguments = parser.parse_args()
    for name, call in added(arguments.library).items():
        print(f"{name:12} {call.instructions:8.1f}")
        for at, count in (
            sorted(call.by_function.items(), key=lambda item: -item[1])
            if arguments.functions
            else ()
        ):
            if count >= 0.5:
                print(f"    {count:8.1f}  {at}")


if __name__ == "__main__":
    main()
