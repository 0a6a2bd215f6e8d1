"""A function of several arguments, each in a process of its own, on as many cores as this process
may use.

A child begins as a copy of this process, sends its result and ends. It prints nothing. If it sends
none, because of an error or because it was killed, this process calls the function itself: so
errors are raised here, as if there were no children. They end when this process no longer wants
their results, after an interrupt too, and with this process, however it ends.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

PR_SET_PDEATHSIG = 1
# Python heeds an interrupt between two calls of the system; one that comes right before a call that
# waits is not heeded before that ends.
HEEDED_S = 0.5
MOST = 8  # children at a time, which bounds their memory on hosts of many cores


def forked(
    function: Callable[[Argument], Result], arguments: Sequence[Argument]
) -> Iterator[Result]:
    """The results in the order of the arguments, as `map` gives them. It is `map` for one argument
    or core, in a child, and where other threads could hold a lock at the time of the fork."""
    at_once = min(MOST, len(os.sched_getaffinity(0)))
    if (
        min(at_once, len(arguments)) < 2 or multiprocessing.parent_process()
        or threading.active_count() > 1
    ):
        yield from map(function, arguments)
        return
    children: dict[Connection, tuple[int, BaseProcess]] = {}
    results: dict[int, list[Result]] = {}  # by place; empty: call the function here
    waiting = iter(range(len(arguments)))
    try:
        for place, argument in enumerate(arguments):
            while place not in results:
                with _uninterrupted():
                    for begun in islice(waiting, at_once - len(children)):
                        receiver, child = _begin(function, arguments[begun])
                        children[receiver] = begun, child
                # wait() gives some of these
                for receiver in wait(list(children), HEEDED_S):  # type: ignore[assignment]
                    ended, child = children[receiver]
                    results[ended] = []
                    with receiver, suppress(EOFError):
                        results[ended] = [receiver.recv()]
                    child.join()
                    del children[receiver]
            yield from results.pop(place) or [function(argument)]
    finally:
        for _, child in children.values():
            child.kill()
            child.join()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits: of this process until each child is known, which would not be ended
    otherwise; of a child until nothing prints it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(
    function: Callable[[Argument], Result], argument: Argument
) -> tuple[Connection, BaseProcess]:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(
        target=_run, args=(function, argument, receiver, sender, os.getpid()), daemon=True
    )
    child.start()
    sender.close()
    return receiver, child


def _run(
    function: Callable[[Argument], Result], argument: Argument, receiver: Connection,
    sender: Connection, parent: int,
) -> None:
    """The child; it ends without a word if it is interrupted or nobody reads its
    result any more."""
    end_with_parent(signal.SIGKILL, parent)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    receiver.close()
    sys.stderr = None  # type: ignore[assignment]  # prints nothing then
    with suppress(Exception):
        sender.send(function(argument))


def end_with_parent(number: int, parent: int) -> None:
    """In a child: it gets this signal as soon as its parent has ended, even if that was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        signal.raise_signal(number)
