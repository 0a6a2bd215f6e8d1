"""`top`: rates between two looks at planted ledgers that change meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import replace

import planted
import pytest
from commprof_report.commands import stuck as top
from planted import SECOND, Cell, Doing, Rank, process_facts


class Job:
    """Two ranks that live, and a clock that goes on by what `top` sleeps."""

    def __init__(self, folder, monkeypatch) -> None:
        self.folder = folder
        self.now_s = 10.0
        self.changes: list[list[Rank]] = []
        self.between: list[Callable[[], object]] = []  # done instead of sleeping
        self.slept: list[float] = []
        monkeypatch.setattr(
            time, "clock_gettime_ns", lambda _: planted.START_NS + round(self.now_s * SECOND)
        )
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, span_s: float) -> None:
        self.slept.append(span_s)
        self.now_s += 2
        if self.between:
            self.between.pop(0)()
        if not self.changes:
            raise KeyboardInterrupt
        self.write(self.changes.pop(0))

    def write(self, ranks: list[Rank]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        planted.write_ledgers(self.folder, ranks)


@pytest.fixture
def job(tmp_path, monkeypatch) -> Job:
    return Job(tmp_path / "run", monkeypatch)


def ranks_with(
    *counts: int, doing: tuple[Doing | None, ...] = (None, None), **changes: object
) -> list[Rank]:
    """Ranks that have made so many Allreduces of 1000 bytes, 10 ms each."""
    ranks = []
    for own, count in enumerate(counts):
        cells = [
            Cell("MPI_Init_thread", 0, [SECOND], communicator=0),
            Cell("MPI_Allreduce", 1_000, [10_000_000] * count),
        ]
        rank = Rank(own, len(counts), ended="running", pid=os.getpid(), cells=cells)
        rank.facts = {"host": f"node{own}", **process_facts(os.getpid())}
        rank.communicators = planted.communicators_of(0)[:1]
        rank.doing = {0: doing[own]} if doing[own] else {}
        ranks.append(replace(rank, **changes))
    return ranks


def blocks(answer) -> list[list[str]]:
    """Each screen: its head of three lines, then the table."""
    parts = answer.out.rstrip().split("\n\n")
    return [
        [*head.splitlines(), *table.splitlines()] for head, table in zip(parts[::2], parts[1::2])
    ]


def test_the_first_screen_is_since_the_start_and_the_next_the_interval(report, job):
    job.write(ranks_with(100, 300))
    job.changes = [ranks_with(120, 350)]
    first, second = blocks(report("top", job.folder, "--count", 2))
    assert re.fullmatch("run: 2 of 2 ranks running, .*, since the start", first[0])
    assert first[1] == "all together: 40 calls/s, 40.0 KB/s, 20.0 % of the time in MPI on average"
    assert second[0].endswith(", the last 2.00 s")
    assert second[1] == "all together: 35 calls/s, 35.0 KB/s, 17.5 % of the time in MPI on average"
    assert [line.split()[:6] for line in second[4:]] == [
        ["0", "node0", "10", "10.0", "KB/s", "10.0"],
        ["1", "node1", "25", "25.0", "KB/s", "25.0"],
    ]


def test_the_call_that_a_rank_is_in_now_counts_and_is_shown(report, job):
    inside = Doing("MPI_Allreduce", 9 * SECOND, bytes=1_000)
    job.write(ranks_with(100, 100, doing=(inside, None)))
    job.changes = [ranks_with(100, 100, doing=(inside, None))]
    first, second = blocks(report("top", job.folder, "--count", 2, "--sort", "rank"))
    said = "in MPI_Allreduce (1,000 B) on MPI_COMM_WORLD, for 1.00 s"
    assert "20.0 %" in first[4] and first[4].endswith(said)
    assert "100.0 %" in second[4] and second[4].endswith("for 3.00 s")
    assert second[2] == "least time in collectives: rank 1, 0.00 %; the others 100.0 % on average"
    assert second[5].endswith("before its first call of MPI")


def test_control_c_ends_it_in_peace(report, job):
    job.write(ranks_with(1, 1))
    answer = report("top", job.folder)
    assert (answer.status, answer.err) == (0, "")


def test_a_terminal_is_drawn_anew_and_not_overflown(report, job, monkeypatch):
    job.write(ranks_with(*range(40), doing=(None,) * 40))
    assert "\033" not in report("top", job.folder, "--count", 1).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: os.terminal_size((60, 20)))
    out = report("top", job.folder, "--count", 1).out
    lines = out.replace("\033[K", "").replace("\033[J", "").replace("\033[H", "").splitlines()
    assert out.startswith("\033[J\033[H") and out.endswith("\n\033[J")
    assert len(lines) < 20 and max(map(len, lines)) < 60
    assert lines[-1] == "... and 27 more ranks"


def test_a_copy_that_was_not_renewed_keeps_its_rates_and_says_as_of_when(report, job):
    copies = ranks_with(100, 300, copied_unix_ns=planted.START_UNIX_NS + 8 * SECOND)
    for rank in copies:
        rank.facts["boot_id"] = "another"
        rank.doing = {0: Doing("MPI_Allreduce", 7 * SECOND, 0)}
    job.write(copies)
    job.changes = [copies]
    first, second = blocks(report("top", job.folder, "--count", 2))
    assert second[1] == first[1] and not second[1].startswith("all together: 0")
    assert "(as of 20" in second[4]


@pytest.fixture
def page(monkeypatch) -> list[top.LivePage]:
    """The page of top --web, once there is one."""
    made, create = [], top.LivePage.__init__

    def created(self, arguments) -> None:
        create(self, arguments)
        made.append(self)

    monkeypatch.setattr(top.LivePage, "__init__", created)
    return made


def got(url: str) -> tuple[int, str]:
    """Status and text."""
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_page_is_on_the_loopback_unless_asked(report, run_folder, page):
    assert report("top", run_folder, "--web", 0, "--count", 1).status == 0
    assert page[0].server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_one_line(report, run_folder, page, monkeypatch):
    again = []

    def ask(self) -> None:
        monkeypatch.undo()
        again.append(report("top", run_folder, "--web", self.server_address[1], "--count", 1))

    monkeypatch.setattr(top.LivePage, "wait", ask)
    report("top", run_folder, "--web", 0)
    ((status, _, err),) = again
    assert (status, err.count("\n")) == (1, 1) and "Address already in use" in err


STAGES = (
    b"",
    b"GET /",
    b"GET / HTTP/1.0\r\nX: ",
    b"GET / HTTP/1.0\r\n\r\n",
    b"\0\xff\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
)


def connected(live: top.LivePage, begin: bytes = b"") -> socket.socket:
    client = socket.create_connection(live.server_address[:2], timeout=600)
    client.sendall(begin)
    return client


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def connections_join() -> None:
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(600)


def test_connections_that_are_reset_at_any_stage_are_not_worth_a_word(
    report, run_folder, page, monkeypatch, no_pictures
):
    seen = []

    def ask(self) -> None:
        for begin in (*STAGES, f"GET /{self.token}/page HTTP/1.0\r\n\r\n".encode()) * 6:
            reset(connected(self, begin))
        seen.append(got(self.address)[0])
        connections_join()

    monkeypatch.setattr(top.LivePage, "wait", ask)
    answer = report("top", run_folder, "--web", 0)
    assert (answer.status, answer.err, seen) == (0, "", [200])
