"""Runs that are read side by side give what they give one after the other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import compared_runs
import pytest
from commprof_report.base.workers import chosen, side_by_side
from planted import ROOT

PARENT = os.getpid()


@pytest.fixture
def cores(monkeypatch):
    """How many this process may use."""

    def set_to(number: int) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(number)))

    set_to(3)
    return set_to


def with_pid(argument: int) -> tuple[int, int]:
    return argument, os.getpid()


def test_results_come_in_order_from_a_process_for_each_core(cores):
    arguments, pids = zip(*side_by_side(with_pid, range(7)))
    assert arguments == tuple(range(7))
    assert len({PARENT, *pids}) == 4


def test_this_process_does_its_part_if_it_shall_itself(cores):
    arguments, pids = zip(*side_by_side(with_pid, range(7), is_here=True))
    assert arguments == tuple(range(7))
    assert [place for place, pid in enumerate(pids) if pid == PARENT] == [0, 3, 6]
    assert len({*pids}) == 3


def pids_of(arguments: int) -> set[int]:
    return {pid for _, pid in side_by_side(with_pid, range(arguments))}


def test_nothing_is_forked_where_that_gains_nothing_or_is_unsafe(cores):
    assert pids_of(1) == {PARENT}
    of_children = side_by_side(lambda _: pids_of(2), range(2))  # which have none of their own
    assert all(len(pids) == 1 for pids in of_children)
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert pids_of(2) == {PARENT}
    ended.set()
    thread.join()
    assert PARENT not in pids_of(2)
    cores(1)
    assert pids_of(2) == {PARENT}


def test_copies_of_this_process_are_none_of_an_executors(cores):
    token = chosen.set(object())
    with_others = [*side_by_side(with_pid, range(3), is_here=True)]
    chosen.reset(token)
    assert with_others == [(place, PARENT) for place in range(3)]


def fails_from_2_on(argument: int) -> int:
    if argument >= 2:
        raise ValueError(f"{argument} in {os.getpid()}")
    return argument


def test_the_first_error_in_order_is_raised_here_and_ends_the_children(cores):
    results = side_by_side(fails_from_2_on, range(7))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match=f"2 in {PARENT}"):
        next(results)
    assert multiprocessing.active_children() == []


def test_errors_here_end_the_children(cores):
    results = side_by_side(lambda place: signal.pause() if place else 1 / place, range(3), True)
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert multiprocessing.active_children() == []


def killed_in_a_child(argument: int) -> int:
    if os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return argument


def test_what_a_killed_child_did_not_do_is_done_here(cores):
    for is_here in (False, True):
        found = side_by_side(killed_in_a_child, range(4), is_here)
        assert list(found) == [0, 1, 2, 3]


def started(words: str) -> subprocess.Popen:
    """A Python of its own, on three cores, that an interrupt ends also if the tests run in the
    background of a script."""
    first = (
        "import multiprocessing, os, signal; os.sched_getaffinity = lambda _: range(3); from "
        "commprof_report.base.workers import side_by_side; "
    )
    first += "signal.signal(signal.SIGINT, signal.default_int_handler); "
    how = {"env": {**os.environ, "PYTHONPATH": str(ROOT / "report")}}
    how |= dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", first + words], **how)


# the pipe ends when the last of them has ended
ENDLESS = "side_by_side(lambda _: (os.write(1, b'x'), signal.pause()), range(3))"
INTERRUPTED = """
try:
    list({})
except KeyboardInterrupt:
    print(multiprocessing.active_children())"""


def test_children_end_with_a_killed_parent():
    with started(f"list({ENDLESS})") as parent:
        assert parent.stdout.read(3) == b"xxx"
        parent.kill()
        assert parent.stdout.read() == b""


def test_an_interrupt_ends_all_children():
    with started(INTERRUPTED.format(ENDLESS)) as parent:
        assert parent.stdout.read(3) == b"xxx"
        parent.send_signal(signal.SIGINT)
        assert parent.communicate() == (b"[]\n", b"")


@pytest.mark.parametrize("child", range(3))
def test_an_interrupt_ends_a_child_that_has_just_begun(child):
    """Sent by the child, before its parent can know of it."""
    by = f"os.kill(os.getppid(), signal.SIGINT) if place == {child} else None"
    one = f"lambda place: ({by}, signal.pause())"
    with started(INTERRUPTED.format(f"side_by_side({one}, range(3))")) as parent:
        assert parent.communicate() == (b"[]\n", b"")


def compared(report, cores, runs: list[Path], *words: str):
    """Output of compare; the same from three processes as from this one."""
    cores(1)
    alone = report("compare", *compared_runs.words(runs), *words)
    cores(3)
    assert report("compare", *compared_runs.words(runs), *words) == alone
    return alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [(), ("--json",), ("--json", "--by", "run"), ("--metric", "p99"), ("--skip-steps", "25%")],
)
def test_compare_gives_the_same_from_several_processes(report, cores, slower, options):
    answer = compared(report, cores, slower, *options)
    assert answer.status == 0 and answer.out


@pytest.mark.slow
def test_it_gives_the_same_error_of_the_first_run_that_cannot_be_read(report, cores, equal):
    runs = compared_runs.changed(equal, "UPDATE cell SET count = 'many'")
    runs[5].unlink()
    first = next(run for run in runs if run.name[0] == "b")
    answer = compared(report, cores, runs)
    assert (answer.status, answer.out) == (1, "")
    assert answer.err == f"hvprof-report: {first}: is damaged: impossible values in table cell\n"
