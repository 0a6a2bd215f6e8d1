"""The faults that are tried."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from .trial import Fault, Job, judge

INIT, FINALIZE = (1, 1), (0, 0)
ROUNDS_TO_THE_END = 300
A_SECOND_NS = 1_000_000_000


def after_some_calls(job: Job) -> None:
    job.until(lambda: job.progress() >= job.strikes_at)


def kill_when_there_is(pattern: str, victims: int | None = None) -> Callable[[Job], None]:
    """SIGKILL to so many of the ranks (None: all) as soon as the run folder has a file of this
    name."""

    def kill(job: Job) -> None:
        job.until(lambda: any(job.run_folder.glob(pattern)))
        job.signal(signal.SIGKILL, job.processes()[:victims])

    return kill


def terminate_ranks(job: Job) -> None:
    after_some_calls(job)
    job.signal(signal.SIGTERM, job.processes())


def terminate_mpirun(job: Job) -> None:
    after_some_calls(job)
    job.process.terminate()


def kill_mpirun(job: Job) -> None:
    after_some_calls(job)
    job.process.kill()


def kill_everything(job: Job) -> None:
    after_some_calls(job)
    job.signal(signal.SIGKILL, [*job.processes(), job.process.pid])


def is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"
    except FileNotFoundError:
        return True


def suspend_read_and_resume(job: Job) -> None:
    """All ranks stand still for as long as a report takes, wherever they are; what it says must be
    right."""
    for _ in range(5):
        before = job.progress()
        job.until(lambda: job.progress() > before + job.chance.randrange(300))
        processes = job.processes()
        job.signal(signal.SIGSTOP, processes)
        job.until(lambda: all(is_stopped(pid) for pid in processes))
        job.complaints += judge(job).complaints
        job.signal(signal.SIGCONT, processes)


FAULTS = [
    Fault(
        "SIGKILL of one rank, any time in MPI_Init",
        "SIGKILL",
        calls=INIT,
        delay_ns=(0, A_SECOND_NS // 2),
    ),
    Fault(
        "SIGKILL of all ranks, any time in MPI_Init",
        "SIGKILL",
        "all",
        calls=INIT,
        delay_ns=(0, A_SECOND_NS // 2),
    ),
    Fault("SIGKILL of one rank as its ledger appears", act=kill_when_there_is("rank-*.ledger", 1)),
    Fault("SIGKILL of all ranks as a ledger appears", act=kill_when_there_is("rank-*.ledger")),
    Fault("SIGKILL of one rank while tables grow", "SIGKILL", calls=(2, 200)),
    Fault("SIGKILL of all ranks while tables grow", "SIGKILL", "all", calls=(2, 200)),
    Fault("SIGKILL of one rank while its ledger folds", "SIGKILL", calls=(500, 5000)),
    Fault("SIGKILL of all ranks while ledgers fold", "SIGKILL", "all", calls=(500, 5000)),
    Fault("SIGKILL of a rank of many threads", "SIGKILL", calls=(2, 3000), threads=4),
    Fault(
        "SIGKILL of one rank in MPI_Finalize",
        "SIGKILL",
        calls=FINALIZE,
        delay_ns=(0, A_SECOND_NS // 10),
        rounds=ROUNDS_TO_THE_END,
    ),
    Fault(
        "SIGKILL of all ranks in MPI_Finalize",
        "SIGKILL",
        "all",
        FINALIZE,
        (0, A_SECOND_NS // 10),
        ROUNDS_TO_THE_END,
    ),
    Fault(
        "SIGKILL while a database is written",
        rounds=ROUNDS_TO_THE_END,
        act=kill_when_there_is("rank-*.db.tmp"),
    ),
    Fault(
        "SIGKILL as a database appears",
        rounds=ROUNDS_TO_THE_END,
        act=kill_when_there_is("rank-*.db"),
    ),
    Fault("SIGTERM of one rank by itself", "SIGTERM"),
    Fault("SIGTERM to all ranks (a limit of time)", act=terminate_ranks),
    Fault("SIGTERM to mpirun", act=terminate_mpirun),
    Fault("SIGKILL of mpirun", act=kill_mpirun),
    Fault("a rank hangs, then SIGKILL to everything", "hang", act=kill_everything),
    Fault("segmentation fault", "crash"),
    Fault("stack overflow", "overflow"),
    Fault("abort()", "abort"),
    Fault("MPI_Abort", "MPI_Abort"),
    Fault("exit() of one rank without MPI_Finalize", "exit"),
    Fault("exit() of all ranks without MPI_Finalize", "exit", "all"),
    Fault("_exit() of one rank without MPI_Finalize", "_exit"),
    Fault("_exit() of all ranks without MPI_Finalize", "_exit", "all"),
    Fault("no more memory (RLIMIT_AS)", "no-memory", "all", rounds=2000, may_drop=True),
    Fault("more memory than the cgroup allows", "too-much-memory", memory_bytes=400 << 20),
    Fault(
        "exception in Python, one rank (-m mpi4py)",
        calls=(5, 200),
        python=("-m", "mpi4py", "exception"),
    ),
    Fault("exception in Python, all ranks", victims="all", calls=(5, 200), python=("exception",)),
    Fault("sys.exit in Python, all ranks", victims="all", calls=(5, 200), python=("exit",)),
    Fault("os._exit in Python, one rank", calls=(5, 200), python=("_exit",)),
    Fault("SIGSTOP, report, SIGCONT, to the end", rounds=2000, act=suspend_read_and_resume),
    Fault("none: to the end", rounds=2000),
]
