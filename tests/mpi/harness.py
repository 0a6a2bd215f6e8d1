"""Compile a test program with an MPI's own compiler, run it with and without the profiler, ask what
was recorded."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from .libraries import REPOSITORY, SYSTEM_PYTHON, Mpi

PROGRAMS = Path(__file__).resolve().parent / "programs"
LIBRARY = REPOSITORY / "build/lib/libcommprof.so"
COMMPROF_RUN = REPOSITORY / "build/bin/commprof-run"
REPORT = REPOSITORY / "build/bin/hvprof-report"
TIMEOUT_S = 600  # for a job; no machine is that slow
CLOCK_ERROR = 1e-4  # by which the first slope of a clock may be off: measured across MPI_Init
STRAGGLERS_S, LOOK_S = 5, 0.01

C_FLAGS = [f"-I{REPOSITORY / 'include'}"]
C_FLAGS += "-g -O1 -pthread -Wall -Wextra -Wno-stringop-overflow -Wno-stringop-overread".split()
C_ERRORS = ["-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration"]
# A weak function that nobody defines at link time must still be looked up when the program starts.
C_LINK_FLAGS = ["-Wl,-z,dynamic-undefined-weak"]


def command_for(mpi: Mpi, program: str) -> list[str]:
    """The command that runs a program of the programs folder, compiled if need be; a path is taken
    as it is."""
    if "/" in program:
        return [program]
    script = PROGRAMS / f"{program}.py"
    if script.exists():
        return [mpi.python, str(script)]
    name, *forms = re.split(FORMS, program)
    if (calls := PROGRAMS / f"{name}.calls").exists():
        names = compile_program(mpi, "calls_names", "-shared", "-fPIC", "-Wl,--no-as-needed")
        form = [each for each in forms if each]
        return [SYSTEM_PYTHON, str(PROGRAMS / "calls.py"), str(names), str(calls), *form, "--"]
    return [str(compile_program(mpi, program))]


# A program of calls has these forms by the end of its name.
FORMS = "_(large)|_(nonblocking)|_(persistent)"


def source_of(name: str) -> Path:
    return next(
        path for path in PROGRAMS.glob(f"{name}.*") if path.suffix in (".c", ".cpp", ".f", ".f90")
    )


def compile_program(mpi: Mpi, name: str, *flags: str, suffix: str = "") -> Path:
    """`suffix` tells binaries of different flags apart."""
    binary = REPOSITORY / "build/tests" / mpi.name / f"{name}{suffix}"
    source = source_of(name)
    if source.suffix == ".c":
        command = [mpi.mpicc, *C_FLAGS, *C_ERRORS, str(source), *C_LINK_FLAGS, *flags]
    elif source.suffix == ".cpp":
        c_functions_alone = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
        linked = [*C_LINK_FLAGS, "-lstdc++", *flags]
        command = [mpi.mpicc, *C_FLAGS, *c_functions_alone, str(source), *linked]
    else:
        command = [mpi.mpifort, "-g", str(source), *flags]
    compile_to(binary, command, source, *PROGRAMS.glob("*.h"), *PROGRAMS.glob("*.inc"))
    return binary


def compile_to(binary: Path, command: list[str], *inputs: Path) -> None:
    """Unless it is newer than its inputs. All at once, for another worker may be about to run what
    is there."""
    changed = max(path.stat().st_mtime for path in (Path(__file__), *inputs))
    if binary.exists() and binary.stat().st_mtime > changed:
        return
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = f"{binary}.{os.getpid()}"
    subprocess.run([*command, "-o", unfinished], check=True, cwd=binary.parent)
    os.replace(unfinished, binary)


class Outcome(NamedTuple):
    """Outcome of a job, as seen by whoever starts it."""

    exit_status: int
    stdout: str
    stderr: str


@lru_cache
def become_reaper() -> None:
    """Processes whose launcher has left them behind become children of this one
    (prctl(PR_SET_CHILD_SUBREAPER))."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


class Straggler(NamedTuple):
    """A child process of ours at one instant."""

    pid: int
    is_idle: bool
    ran_s: float


def stragglers() -> list[Straggler]:
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    states = {
        int(pid): Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in pids
    }
    return [
        Straggler(pid, state[0] not in "RD", (int(state[11]) + int(state[12])) / ticks_a_second)
        for pid, state in states.items()
    ]


def end_stragglers(patience_s: float = STRAGGLERS_S) -> None:
    """Wait for the ranks that outlive their launcher; some MPI libraries leave them running for
    ever when a job fails. One that has run for so long, or was seen idle, is killed; time in which
    a busy machine lets it do neither does not count."""
    ran_s: dict[int, float] = {}
    looks_idle: Counter[int] = Counter()
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            continue
        for straggler in stragglers():
            pid = straggler.pid
            looks_idle[pid] += straggler.is_idle
            has_run_s = straggler.ran_s - ran_s.setdefault(pid, straggler.ran_s)
            if has_run_s + looks_idle[pid] * LOOK_S >= patience_s:
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)


def unprofiled_environment() -> dict[str, str]:
    """Environment of the tests, without what concerns a profiler."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMMPROF_", "LD_PRELOAD"))
    }


def start(
    mpi: Mpi, ranks: int, command: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.Popen[str]:
    """A job in a folder and in a session of its own; what it leaves behind becomes ours."""
    become_reaper()
    return subprocess.Popen(
        [*mpi.mpirun, "-n", str(ranks), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=unprofiled_environment() | mpi.environment | environment,
        start_new_session=True,
    )


def launch(
    mpi: Mpi, ranks: int, command: list[str], folder: Path, environment: dict[str, str]
) -> Outcome:
    """Run a job in a folder; everything it started is gone afterwards, even if
    it hung or failed."""
    job = start(mpi, ranks, command, folder, environment)
    try:
        stdout, stderr = job.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        stdout, stderr = job.communicate()
        raise AssertionError(
            f"hung for {TIMEOUT_S} s: {command}\n{stdout[-2000:]}\n{stderr[-2000:]}"
        ) from None
    finally:
        end_stragglers()
    return Outcome(job.returncode, stdout, stderr)


class Cell(NamedTuple):
    call: str
    # its name; the call that made it, if it has none; '' for calls without a communicator
    communicator: str
    bytes: int
    measure: str
    thread: int
    count: int
    volume_bytes: int
    total_ns: int
    min_ns: int
    max_ns: int
    blocked_ns: int


class Communicator(NamedTuple):
    identity: str
    parent_identity: str | None
    name: str
    constructor: str
    size: int
    remote_size: int
    comm_rank: int
    members: str
    is_inter: int
    is_freed: int

    @property
    def world_ranks(self) -> list[int]:
        """'0-3,8,16-30:2' written out."""
        return [rank for part in self.members.split(",") for rank in expand(part)]


def expand(part: str) -> range:
    span, _, stride = part.partition(":")
    low, _, high = span.partition("-")
    return range(int(low), int(high or low) + 1, int(stride or 1))


class Peer(NamedTuple):
    call: str
    direction: str
    peer: int
    count: int
    bytes: int


CELLS = """
    SELECT call, COALESCE(NULLIF(name, ''), constructor, ''), bytes, measure, thread, count,
           volume_bytes, total_ns, min_ns, max_ns, blocked_ns
    FROM cell LEFT JOIN communicator USING (world_rank, communicator)
    WHERE (:call IS NULL OR call = :call) AND measure = :measure
    ORDER BY call, communicator, bytes, thread"""

SIZES = """
    SELECT call, bytes, SUM(count), SUM(volume_bytes) FROM cell
    WHERE (:call IS NULL OR call = :call) AND measure = :measure GROUP BY call, bytes"""

COMMUNICATORS = """
    SELECT identity, parent_identity, name, constructor, size, remote_size, comm_rank, members,
           is_inter, is_freed
    FROM communicator WHERE :name IN (name, constructor) ORDER BY communicator"""


@dataclass
class Run:
    """A job that ran under the profiler, and the folder it left."""

    ranks: int
    folder: Path  # the run folder
    outcome: Outcome

    def database(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.db"

    def ledger(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.ledger"

    def query(self, rank: int, sql: str, **parameters: object) -> list[tuple]:
        assert self.database(rank).exists(), f"{self.files()}\n{self.outcome.stderr}"
        with closing(
            sqlite3.connect(f"file:{self.database(rank)}?mode=ro", uri=True)
        ) as connection:
            return connection.execute(sql, parameters).fetchall()

    def files(self) -> list[str]:
        """Files that `ls` shows: without .jobs, which says whose the folder is."""
        return (
            sorted(path.name for path in self.folder.iterdir() if path.name[0] != ".")
            if self.folder.exists()
            else []
        )

    def cells(self, rank: int, call: str | None = None, measure: str = "call") -> list[Cell]:
        return [Cell(*row) for row in self.query(rank, CELLS, call=call, measure=measure)]

    def sizes(self, call: str, measure: str = "call") -> list[dict[int, tuple[int, int]]]:
        """For each rank: bytes -> (count, volume_bytes), over all communicators and threads."""
        answers = [
            self.query(rank, SIZES, call=call, measure=measure) for rank in range(self.ranks)
        ]
        return [{size: (count, sum_) for _, size, count, sum_ in rows} for rows in answers]

    def table(self, measure: str = "call") -> dict[str, list[dict[int, tuple[int, int]]]]:
        """sizes() of all calls that any rank made."""
        calls: dict[str, list[dict[int, tuple[int, int]]]] = {}
        for rank in range(self.ranks):
            for call, size, count, volume in self.query(rank, SIZES, call=None, measure=measure):
                by_rank = calls.setdefault(call, [{} for _ in range(self.ranks)])
                by_rank[rank][size] = (count, volume)
        return calls

    def counts(self, call: str, measure: str = "call") -> list[int]:
        """For each rank: how often it was called."""
        return [
            sum(cell.count for cell in self.cells(rank, call, measure))
            for rank in range(self.ranks)
        ]

    def calls(self, rank: int) -> set[str]:
        """The calls that were counted at all."""
        return {row[0] for row in self.query(rank, "SELECT DISTINCT call FROM cell")}

    def communicators(self, rank: int, name: str) -> list[Communicator]:
        """Communicators with this name, or made by this call."""
        return [Communicator(*row) for row in self.query(rank, COMMUNICATORS, name=name)]

    def communicator(self, rank: int, name: str) -> Communicator:
        (only,) = self.communicators(rank, name)
        return only

    def peers(self, rank: int) -> set[Peer]:
        return {
            Peer(*row)
            for row in self.query(rank, "SELECT call, direction, peer, count, bytes FROM peer")
        }

    def facts(self, rank: int) -> dict[str, str]:
        return dict(self.query(rank, "SELECT key, value FROM fact"))

    def rank_row(self, rank: int) -> dict[str, object]:
        columns = [
            name for (name,) in self.query(rank, "SELECT name FROM pragma_table_info('rank')")
        ]
        (row,) = self.query(rank, "SELECT * FROM rank")
        return dict(zip(columns, row))


def profiled(mpi: Mpi, ranks: int, command: Iterable[object], folder: Path, **settings: str) -> Run:
    """A job whose run folder is <folder>/run."""
    environment = {"COMMPROF_OUTPUT": str(folder / "run"), **settings}
    outcome = launch(mpi, ranks, list(map(str, command)), folder, environment)
    return Run(ranks, folder / "run", outcome)


def profiled_each(
    mpi: Mpi, commands: Sequence[Sequence[object]], folder: Path, **settings: str
) -> Run:
    """The same, where each rank has a command of its own."""
    first, *others = commands
    command = [*first, *(word for each in others for word in (":", "-n", "1", *each))]
    return replace(profiled(mpi, 1, command, folder, **settings), ranks=len(commands))


def calls_in_ledger(path: Path) -> Counter[str]:
    """How often each call was counted in a ledger that was left behind, by the layout of
    src/ledger/ledger_format.h."""
    data = path.read_bytes()
    assert data[:16] == b"commprof-ledger\n"

    def number(at: int, size: int = 4, signed: bool = False) -> int:
        return int.from_bytes(data[at : at + size], "little", signed=signed)

    header_bytes, chunk_bytes, chunk_header_bytes, _, _, chunks = (
        number(20 + 4 * i) for i in range(6)
    )
    names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for chunk in range(header_bytes, header_bytes + chunks * chunk_bytes, chunk_bytes):
        kind, entry_bytes, used = (number(chunk + 4 * i) for i in range(3))
        first = chunk + chunk_header_bytes
        for entry in range(first, first + used * entry_bytes, entry_bytes):
            if kind == 1:
                names[number(entry)] = data[entry + 4 : entry + 40].rstrip(b"\0").decode()
            if kind == 4 and number(entry + 14, 1) & 15 == 0 and number(entry + 64, 8) == 1:
                blocks = (number(at, signed=True) for at in range(entry + 72, entry + 224, 4))
                counts[names[number(entry + 8, 2)]] += sum(
                    number(entry + at + 8 * i, 8) for at in blocks if at for i in range(8)
                )
    return counts


def ended_in_ledger(path: Path) -> int:
    """enum ledger_ended: 0 running or killed, 1 finalized, 2 exited, 3 aborted."""
    return int.from_bytes(path.read_bytes()[44:48], "little")


def abort_code_in_ledger(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[68:72], "little")


def copied_unix_ns_in_ledger(path: Path) -> int:
    """When a copy was made; 0 for a ledger itself."""
    return int.from_bytes(path.read_bytes()[216:224], "little")
