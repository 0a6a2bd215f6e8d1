"""For how much of real jobs their replays stand: each program is recorded under one library, then
runs in turns with replays of its kit under both. About 12 minutes on two idle cores.

    bench/replay_proof.py FOLDER [--blocks 4] [--recorded mpich] [--programs kmeans lammps]

Programs need PyTorch and LAMMPS of Debian, and from the Python package registry an
mpi4py for any library. LAMMPS has Open MPI alone: under MPICH its replays must have made the job's
calls, which is all that is known of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # the distribution's, which has PyTorch and numpy
MPI4PY = "mpi4py==4.1.2"
TIMES, OTHER = ("unknown", "longer", "shorter"), ("other calls", "absent")  # failing verdicts
STAND = ("stands", "near")  # the others
MOST_NAMED = 3  # rows for which replays do not stand
NAMED_FROM = 0.005  # of the time inside MPI


class Library(NamedTuple):
    name: str
    soname: str
    bound: str  # launches ranks with a core each
    crowded: str  # launches more ranks than cores


OPEN_MPI = "mpirun.openmpi --mca btl self,vader"
LIBRARIES = {
    "openmpi": Library(
        "openmpi",
        "libmpi.so.40",
        f"{OPEN_MPI} --bind-to core",
        f"{OPEN_MPI} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1",
    ),
    "mpich": Library("mpich", "libmpich.so.12", "mpirun.mpich -bind-to core", "mpirun.mpich"),
}


class Program(NamedTuple):
    """source: in this repository, of C, Python or MPI calls (tests/mpi/programs/calls.py); empty:
    `words` name an installed program."""

    name: str
    ranks: int
    source: str
    words: str = ""
    only: str = ""  # the library with which it is built


MELT = f"lmp -log none -var cells 16 -var steps 400 -in {ROOT}/tests/suites/melt.in"
PROGRAMS = (
    Program("data_parallel", 2, "examples/data_parallel/train.py", "--epochs 2 --pictures 256"),
    Program("kmeans", 2, "examples/kmeans/kmeans.c", "600000"),
    Program("parameter_server", 2, "examples/parameter_server/train.c", "20 50"),
    Program("dask", 2, "examples/dask_like/train.py", "--epochs 20 --rows 2048"),
    Program("memory_aware", 2, "examples/memory_aware/train.py", "--epochs 4"),
    # halos by Irecv, Send and Waitall; the first one's also by Sendrecv, in sizes that change
    Program("halo", 2, "tests/mpi/programs/loops.calls", "dynamics 800"),
    Program("multigrid", 2, "tests/mpi/programs/loops.calls", "multigrid 800"),
    # the calls of PyTorch's DDP on its own thread: no PyTorch that can be installed has MPI
    Program("ddp", 2, "tests/mpi/programs/plants.calls", "ddp 300 6000 0 0"),
    Program("lammps", 2, "", MELT, "openmpi"),
    # more ranks than two cores
    Program("hybrid", 4, "examples/hybrid_parallel/train.py", "--epochs 3"),
)


class Proof:
    """In a folder of its own, which has all runs and logs at the end."""

    def __init__(self, folder: Path, recorded: str, blocks: int) -> None:
        self.folder, self.recorded, self.blocks = folder, recorded, blocks
        self.environment = dict(
            os.environ,
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMP_NUM_THREADS="1",
            COMMPROF_QUIET="on",
            PATH=f"{ROOT / 'build/bin'}:{os.environ['PATH']}",
        )

    def make(self, *words: str) -> str:
        """Output of a command, which must not fail; its errors are shown."""
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    def command(self, program: Program, library: Library) -> str:
        if not program.source:
            return program.words
        source = ROOT / program.source
        if source.suffix == ".py":
            return f"{self.python(library)} {source} {program.words}"
        if source.suffix == ".calls":
            names = self.folder / f"calls_names.{library.name}"
            shared = ["-shared", "-fPIC", "-Wl,--no-as-needed"]
            names_of = str(source.parent / "calls_names.c")
            self.make(f"mpicc.{library.name}", *shared, names_of, "-o", str(names))
            player = source.parent / "calls.py"
            return f"{PYTHON} {player} {names} {source} -- {program.words}"
        binary = self.folder / f"{program.name}.{library.name}"
        flags = ["-std=gnu11", "-O2", "-w", "-pthread", f"-I{ROOT / 'include'}"]
        self.make(f"mpicc.{library.name}", *flags, str(source), "-lm", "-o", str(binary))
        return f"{binary} {program.words}"

    def python(self, library: Library) -> str:
        """With one mpi4py for all libraries: that of the wheels, which opens the one it is
        given."""
        modules, own = self.folder / "python", self.folder / f"lib.{library.name}"
        if not modules.exists():
            pip = [PYTHON, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--no-deps"]
            self.make(*pip, "--target", str(modules), MPI4PY)
        own.mkdir(exist_ok=True)
        multiarch = self.make("gcc", "-print-multiarch").strip()
        installed = Path("/usr/lib", multiarch, library.soname)
        if library.name == "mpich" and not (own / "libmpi.so.12").exists():
            (own / "libmpi.so.12").symlink_to(installed)  # the name that mpi4py needs
        return f"env PYTHONPATH={modules} LD_LIBRARY_PATH={own} MPI4PY_LIBMPI={installed} {PYTHON}"

    def launched(self, program: Program, library: Library) -> str:
        is_crowded = program.ranks > len(os.sched_getaffinity(0))
        return f"{library.crowded if is_crowded else library.bound} -n {program.ranks}"

    def record(self, program: Program) -> Path:
        library = LIBRARIES[program.only or self.recorded]
        run, kit = self.folder / f"{program.name}.job", self.folder / f"{program.name}.kit"
        launched = self.launched(program, library).split()
        command = shlex.split(self.command(program, library))
        self.make(*launched, "commprof-run", "--output", str(run), *command)
        shown = self.make("hvprof-report", "replay", "kit", str(run), "-o", str(kit))
        kit.with_suffix(".txt").write_text(shown)
        return kit

    def checked(self, program: Program, library: Library, kit: Path) -> list[dict]:
        """Rows of the check, of runs of the job and replays in turns."""
        runs, launched = self.folder / program.name / library.name, self.launched(program, library)
        job = f"job: {launched} {{}} {self.command(program, library)}"
        said = self.make(
            "commprof-experiment",
            "run",
            str(runs),
            "--kit",
            str(kit),
            "--blocks",
            str(self.blocks),
            "--arm",
            job,
            "--arm",
            f"replay: {launched} {{}}",
        )
        (self.folder / f"{program.name}.{library.name}.log").write_text(said)
        return json.loads(self.make("hvprof-report", "replay", "check", str(runs), "--json"))

    def replayed(self, program: Program, library: Library, kit: Path) -> list[dict]:
        """Rows of the check, of one replay under a library that the program was not built with."""
        run = str(self.folder / program.name / library.name)
        launched = self.launched(program, library).split()
        self.make(*launched, "commprof-run", "--output", run, "commprof-replay", str(kit))
        job = str(self.folder / f"{program.name}.job")
        return json.loads(self.make("hvprof-report", "replay", "check", job, "--", run, "--json"))

    def line(self, program: Program, library: Library, kit: Path) -> str:
        begin_s = time.monotonic()
        is_comparable = program.only in ("", library.name)
        rows = (self.checked if is_comparable else self.replayed)(program, library, kit)
        if not is_comparable:
            rows = [row for row in rows if row["verdict"] in OTHER]
        shares = share_of(rows, STAND), share_of(rows, STAND[:1]), str(self.blocks)
        cells = [
            program.name,
            str(program.ranks),
            library.name,
            *(shares if is_comparable else ("no job here", "-", "1")),
            failing(rows) or ("-" if is_comparable else "calls and bytes are equal"),
            f"{time.monotonic() - begin_s:.0f}",
        ]
        return f"| {' | '.join(cells)} |"


def share_of(rows: list[dict], verdicts: tuple[str, ...]) -> str:
    """In the time inside MPI."""
    return f"{100 * sum(row['share'] for row in rows if row['verdict'] in verdicts):.1f} %"


def failing(rows: list[dict]) -> str:
    """The rows for which the replays do not stand, and why: those with other calls, whatever their
    time, and then the largest ones."""
    found = [row for row in rows if row["verdict"] in OTHER]
    found += [row for row in rows if row["verdict"] in TIMES and row["share"] >= NAMED_FROM]
    named = [
        f"{row['call']} {'' if row['bytes'] is None else row['bytes']} "
        f"({100 * row['share']:.1f} %: {row['verdict']}{change_text(row)})"
        for row in found[:MOST_NAMED]
    ]
    return ", ".join([*named, *["..."][: len(found) > MOST_NAMED]])


def change_text(row: dict) -> str:
    return "" if row["change"] is None else f" {100 * row['change']:+.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="must be new")
    parser.add_argument("--blocks", type=int, default=4, help="runs of the job, and replays")
    parser.add_argument("--recorded", choices=LIBRARIES, default="openmpi", help="default: openmpi")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--programs", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    proof = Proof(arguments.folder.resolve(), arguments.recorded, arguments.blocks)
    print(
        f"Recorded under {arguments.recorded}.\n\n| program | ranks | library | stands for | by a "
        "test | runs of each | not for (of the time inside MPI) | took, s |\n"
        "|---|---:|---|---:|---:|---:|---|---:|",
        flush=True,
    )
    for program in PROGRAMS:
        if program.name not in arguments.programs:
            continue
        if not program.source and not shutil.which(program.words.split()[0]):
            print(f"replay_proof: {program.name} is not installed", file=sys.stderr)
            continue
        try:
            kit = proof.record(program)
            for library in LIBRARIES.values():
                print(proof.line(program, library, kit), flush=True)
        except subprocess.CalledProcessError as error:
            last = "\n".join(error.stdout.splitlines()[-5:])
            print(f"replay_proof: {program.name}: {error}\n{last}", file=sys.stderr)


if __name__ == "__main__":
    main()
