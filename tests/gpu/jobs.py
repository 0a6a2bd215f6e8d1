"""Programs under the profiler, each in a session of its own and under a time limit, and the profile
that they leave."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from machine import DOUBLES, LIBRARY, PROGRAMS, REPOSITORY, asked, compiler
from mpis import ENVIRONMENT, Mpi


class CutOff(BaseException):
    """The check's time is over: what is known is to be said. It is no error that
    could be caught."""


class Failed(Exception):
    """A check cannot go on: its name, and why."""


@dataclass
class Job:
    """Outcome of a program."""

    status: int
    hung: bool
    stdout: str
    stderr: str
    folder: Path

    @property
    def truths(self) -> list[dict[str, Any]]:
        """Truths that its processes told (programs/device.py: tell)."""
        return [
            json.loads(line[6:]) for line in self.stdout.splitlines() if line.startswith("truth ")
        ]

    @property
    def truth(self) -> dict[str, Any]:
        return {name: value for truth in self.truths for name, value in truth.items()}

    @property
    def problem(self) -> str:
        """'': it ended as it should."""
        if self.hung:
            return "it did not end in time" + self.last_words
        if "failed" in self.truth:
            return self.truth["failed"] + self.state
        return f"exit status {self.status}" + self.last_words if self.status else ""

    def must(self, check: str) -> Job:
        """Itself; ends the checks' function with a row where it did not end as it should."""
        if self.problem:
            raise Failed(check, self.problem)
        return self

    @property
    def last_words(self) -> str:
        said = [line for line in self.stderr.splitlines() if line.strip()]
        return f": {said[-1][:300]}" if said else ""

    @property
    def state(self) -> str:
        with contextlib.suppress(RuntimeError, sqlite3.Error):
            rows = self.query(
                "SELECT gpu_state, (SELECT value FROM fact WHERE key = 'gpu.reason') FROM rank"
            )
            return f" ({rows[0][0]}: {rows[0][1]})"
        return ""

    @property
    def complaints(self) -> list[str]:
        """Lines that the profiler printed, but for its closing line."""
        return [
            line
            for line in self.stderr.splitlines()
            if line.startswith("commprof:") and "profile of" not in line
        ]

    def database(self, rank: int = 0) -> Path:
        """As the rank has left it, or made of its ledger by the reporter."""
        path, ledger = self.folder / f"rank-{rank}.db", self.folder / f"rank-{rank}.ledger"
        if not path.exists() and ledger.exists():
            reporter = [sys.executable, str(REPOSITORY / "report/hvprof-report")]
            command = [*reporter, "merge", str(ledger), str(path)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                raise RuntimeError(f"the reporter cannot read {ledger.name}: {made.stderr.strip()}")
        if not path.exists():
            raise RuntimeError(f"no profile of rank {rank}{self.last_words}")
        return path

    def query(self, sql: str, rank: int = 0) -> list[tuple]:
        with contextlib.closing(
            sqlite3.connect(f"file:{self.database(rank)}?mode=ro", uri=True)
        ) as connection:
            return connection.execute(sql).fetchall()

    def report(self, *words: str) -> list[dict[str, Any]]:
        """Rows of a report of all ranks."""
        command = [sys.executable, str(REPOSITORY / "report/hvprof-report"), *words, "--json"]
        status, said = asked([*command, str(self.folder)])
        if status:
            raise RuntimeError(f"hvprof-report {' '.join(words)}: {said}")
        return json.loads(said)

    def kernels(self, rank: int = 0) -> dict[str, tuple[int, int, int, int]]:
        """name -> how many, ns of all, of the shortest, of the longest"""
        sql = """SELECT name, SUM(count), SUM(total_ns), MIN(min_ns), MAX(max_ns)
                 FROM gpu_activity JOIN gpu_kernel USING (world_rank, kernel) WHERE kind = 'kernel'
                     GROUP BY name"""
        return {name: tuple(numbers) for name, *numbers in self.query(sql, rank)}

    def counts(self, rank: int = 0) -> dict[str, int]:
        return {name: numbers[0] for name, numbers in self.kernels(rank).items()}


@dataclass
class Jobs:
    """How programs are run here. It travels to the process of each check as JSON."""

    out: Path
    one: Mpi
    several: Optional[Mpi]
    why_not_several: str = ""
    is_double: bool = False
    cupti: str = ""
    carried_cupti: str = ""  # of a wheel, for the check of newer minor versions
    why_no_torch: str = ""
    scale: float = 1.0  # of repetitions: less than 1 for a trial
    made: int = field(default=0, compare=False)

    def environment(
        self, folder: Path, profiled: bool, needs_torch: bool, dump: str
    ) -> dict[str, str]:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("COMMPROF_", "LD_PRELOAD"))
        }
        env.update(
            ENVIRONMENT,
            GPU_TEST_MPI=self.one.calls,
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONUNBUFFERED="1",
        )
        if self.is_double:
            env["LD_LIBRARY_PATH"] = str(DOUBLES)
        if not profiled:
            return env
        env.update(
            LD_PRELOAD=str(LIBRARY),
            COMMPROF_OUTPUT=str(folder),
            COMMPROF_GPU_EVERY_S="0",
            COMMPROF_COPY_S="1",
        )
        env.update(
            COMMPROF_GPU_COLLECT_MS="100",
            COMMPROF_GPU="on" if self.is_double else "auto",
            COMMPROF_QUIET="on",
        )
        if self.cupti and not needs_torch:
            env["COMMPROF_CUPTI"] = self.cupti
        if dump:
            env["COMMPROF_GPU_DUMP"] = str(self.out / "buffers" / dump)
            Path(env["COMMPROF_GPU_DUMP"]).mkdir(parents=True, exist_ok=True)
        return env

    @property
    def patience(self) -> float:
        """Factor of limits: doubles are tried on whatever machine there is."""
        return 20 if self.is_double else 1

    @property
    def libcupti(self) -> str:
        """For programs that use CUPTI themselves."""
        return str(DOUBLES / "libcupti.so.13") if self.is_double else self.cupti

    def compiled(self, name: str, *words: str) -> tuple[str, str]:
        """A program of programs/NAME.c, linked with the MPI of one rank; and '', or why there is
        none."""
        program, folder = self.out / "mpi" / name, self.out / "mpi"
        linked = [str(folder / "libmpi_one_rank.so"), f"-Wl,-rpath,{folder}", "-ldl", *words]
        source = ["-O2", "-D_GNU_SOURCE", f"-I{PROGRAMS}", str(PROGRAMS / f"{name}.c")]
        status, said = asked([compiler(), *source, *linked, "-o", str(program)])
        return str(program), said or f"exit status {status}" if status else ""

    def built(self, check: str, name: str, *words: str) -> str:
        program, problem = self.compiled(name, *words)
        if problem:
            raise Failed(check, problem)
        return program

    def command(self, program: str) -> list[str]:
        return (
            [sys.executable, str(PROGRAMS / f"{program}.py")]
            if (PROGRAMS / f"{program}.py").exists()
            else [program]
        )

    def run(
        self,
        program: str,
        *words: str,
        profiled: bool = True,
        needs_torch: bool = False,
        dump: str = "",  # a folder of buffers/
        limit_s: float = 55,
        under: tuple[str, ...] = (),
        copies: int = 1,
        **settings: str,
    ) -> Job:
        """A program of programs/, started once, or `copies` times as ranks of a job without a
        launcher (RANK, WORLD_SIZE)."""
        self.made += 1
        folder = self.out / "runs" / f"{os.getpid()}-{self.made}-{Path(program).stem}"
        folder.mkdir(parents=True)
        env = {**self.environment(folder, profiled, needs_torch, dump), **settings}
        started = []
        for rank in range(copies):
            ranked = (
                {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(copies)}
                if copies > 1
                else {}
            )
            started.append(
                subprocess.Popen(
                    [*under, *self.command(program), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=(folder / f"stdout-{rank}").open("w"),
                    stderr=(folder / f"stderr-{rank}").open("w"),
                    cwd=folder,
                    env={**env, **ranked},
                    start_new_session=True,
                )
            )
        hung = False
        try:
            for process in started:
                hung |= not ended_in(process, self.patience * limit_s)
        finally:
            for process in started:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        text = [
            "".join(path.read_text(errors="replace") for path in sorted(folder.glob(f"{name}-*")))
            for name in ("stdout", "stderr")
        ]
        return Job(
            next((process.returncode for process in started if process.returncode), 0),
            hung,
            *text,
            folder,
        )


def ended_in(process: subprocess.Popen, limit_s: float) -> bool:
    try:
        process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return False
    return True
