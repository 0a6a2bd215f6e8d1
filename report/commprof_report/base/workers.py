"""A function of several arguments, side by side: in processes of this host, one for each core that
this process may use as far as there is memory for it, or through another library's executor:
`--executor mpi` (mpi4py.futures, in all processes that mpiexec has started) and `--executor
dask=ADDRESS` (dask.distributed), whose workers must have the same files and this package.

A worker prints nothing. If it sends no result, because of an error or because it was killed, this
process calls the function itself: so errors are raised here, as if there were no workers.

The processes are our own. concurrent.futures.ProcessPoolExecutor does worse in three ways, tried
with Python 3.11: after an interrupt of this process alone it waits until the tasks that are running
have ended (6.0 s of 6; ours are ended at once); when this process is killed its workers stay for
ever, each holding the pipe open that would tell the others; and one killed worker takes the results
of all with it (BrokenProcessPool). Ours are copies of this process, each of which sends the results
of every n-th argument; they end when these are no longer wanted, after an interrupt too, and with
this process, however it ends.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from .core import ReportError, is_worker, option, present

Argument = TypeVar("Argument")
Result = TypeVar("Result")

PR_SET_PDEATHSIG = 1
WORKER_KIB = 1 << 19  # memory that a process needs
EXECUTOR = option(
    "--executor",
    metavar="mpi|dask=ADDRESS",
    help="read many files in the processes of an MPI job (mpiexec -n 8 hvprof-report ... "
    "--executor mpi; needs mpi4py) or of a Dask cluster (needs distributed); by default in "
    "processes of this host",
)
chosen: ContextVar[Any] = ContextVar("chosen", default=None)  # a concurrent.futures.Executor


@contextmanager
def executor_open(name: str | None) -> Iterator[bool]:
    """name: of --executor. Gives whether this process is the one that answers; the others of an MPI
    job work for it, and are done then."""
    if not name:
        yield True
        return
    try:
        opened: Any = (
            import_module("mpi4py.futures").MPICommExecutor()
            if name == "mpi"
            else import_module("distributed").Client(name.removeprefix("dask=")).get_executor()
        )
    except (ImportError, OSError, ValueError) as error:
        raise ReportError(f"--executor {name}", f"cannot be used: {error}") from None
    with opened as executor:
        chosen.set(executor)
        yield executor is not None


def side_by_side(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], is_here: bool = False
) -> Iterator[Result]:
    """The results in the order of the arguments, as `map` gives them. Without an executor it is
    `map` for one argument or process, in a child, and where other threads could hold a lock at the
    time of the fork. is_here: this process does its part, the first argument and every n-th, and
    copies of it do the others, which may be anything; with an executor there are no copies."""
    executor = chosen.get()
    sent = (
        _submitted(executor, function, arguments)
        if executor and not is_here
        else _forked(function, arguments, is_here)
    )
    with closing(sent):
        for result, argument in zip(sent, arguments):
            yield from result or [function(argument)]


def _sent(function: Callable[[Argument], Result], argument: Argument) -> list[Result]:
    """In a worker; empty: whoever wants the result calls the function, to meet its error."""
    is_worker.set(True)
    with suppress(Exception):
        return [function(argument)]
    return []


def _submitted(
    executor: Any, function: Callable[[Argument], Result], arguments: Sequence[Argument]
) -> Generator[list[Result], None, None]:
    futures = [executor.submit(_sent, function, argument) for argument in arguments]
    try:
        for future in futures:
            result: list[Result] = []
            with suppress(Exception):  # its worker was killed
                result = future.result()
            yield result
    finally:
        for future in futures:
            future.cancel()


def _forked(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], is_here: bool
) -> Generator[list[Result], None, None]:
    free = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
    at_once = min(len(arguments), len(os.sched_getaffinity(0)), int(present(free)[1]) // WORKER_KIB)
    if (
        at_once < 2
        or threading.active_count() > 1
        or is_worker.get()
        or chosen.get()
        or (known := sys.modules.get("multiprocessing"))
        and known.parent_process()
    ):
        yield from ([] for _ in arguments)
        return
    # not at the top: small runs need no workers, and start in a tenth of a second
    fork = import_module("multiprocessing").get_context("fork")
    workers: list[tuple[Any, Any]] = []  # pipe and process
    # an interrupt of this process waits until each child is known, which would not be ended
    # otherwise; that of a child until nothing prints it
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for first in range(is_here, at_once):
            receiver, sender = fork.Pipe(duplex=False)
            words = function, arguments[first::at_once], receiver, sender, os.getpid()
            child = fork.Process(target=_run, args=words, daemon=True)
            child.start()
            workers.append((receiver, child))
            sender.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for place in range(len(arguments)):
            result: list[Result] = []
            if place % at_once or not is_here:
                with suppress(EOFError, OSError):  # its worker was killed
                    result = workers[place % at_once - is_here][0].recv()
            yield result
    finally:
        for _, child in workers:
            child.kill()
            child.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _run(
    function: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    receiver: Any,
    sender: Any,
    parent: int,
) -> None:
    """The child; it ends without a word if it is interrupted or nobody reads its
    results any more."""
    end_with_parent(signal.SIGKILL, parent)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    receiver.close()
    sys.stderr = None  # type: ignore[assignment]  # prints nothing then
    with suppress(Exception):
        for argument in arguments:
            sender.send(_sent(function, argument))


def end_with_parent(number: int, parent: int) -> None:
    """In a child: it gets this signal as soon as its parent has ended, even if that was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        signal.raise_signal(number)
