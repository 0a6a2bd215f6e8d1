"""One run of an arm: the command, its log, its end."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ..base.forked import end_with_parent
from . import canary
from .plan import FAILED, OK, Arm, Run

PLACEHOLDER = "{}"
# no program follows, but the end, an option, or what a shell reads
WITHOUT_PROGRAM = re.compile(re.escape(PLACEHOLDER) + r"\s*(?:$|[-|&;<>()'\"])")
PATIENCE_S = 10  # between asking a job to end and killing it
# passes on that it is to end, and waits for that
SHELL = "trap 'trap \"\" TERM; kill 0; wait $!' TERM; (%s\n) & wait $!"


def launch(
    experiment: Path, block: int, arm: Arm, commprof_run: str, replay: str, directory: str,
    timeout_s: float | None,
) -> Run:
    """Runs the arm's command in a shell in the directory (empty: the current one), with the
    launcher's output in a log beside the run folder. Before the run, the hosts are measured.
    replay: the command of an arm that has no program; empty: each has one."""
    folder = experiment / f"block-{block:02d}" / arm.name
    folder.parent.mkdir(exist_ok=True)
    begins = {"--canary": canary.folder_of(folder.resolve())}
    if not arm.is_bare:
        begins["--output"] = folder.resolve()
    profiled = " ".join(
        shlex.join([commprof_run, option, str(path)]) for option, path in begins.items()
    )
    if replay and is_replay(arm.command):
        profiled = f"{profiled} {replay}"
    begin = time.monotonic()
    # a first run that failed keeps its own
    with open(folder.parent / f"{arm.name}.log", "ab") as log:
        why = _ended(arm.command.replace(PLACEHOLDER, profiled), directory or None, log, timeout_s)
    if not why and not arm.is_bare and not [*folder.glob("rank-*"), *folder.glob("node-*.tar")]:
        why = "it wrote no profile"
    return Run(
        block, arm.name, str(folder.relative_to(experiment)), FAILED if why else OK,
        time.monotonic() - begin, why,
    )


def is_replay(command: str) -> bool:
    """In an experiment with a kit, an arm without a program replays it."""
    return bool(WITHOUT_PROGRAM.search(command))


def _ended(command: str, directory: str | None, log: BinaryIO, timeout_s: float | None) -> str:
    """Why the command failed; empty: it did not."""
    job = subprocess.Popen(
        ["/bin/sh", "-c", SHELL % command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=directory,
        start_new_session=True,
        # else it would disturb the runs after resume
        preexec_fn=partial(end_with_parent, signal.SIGTERM, os.getpid()),
    )
    try:
        status = job.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"it took more than {timeout_s:g} s"
    finally:
        _end(job)
    return "" if status == 0 else f"exit status {status}" if status > 0 else f"signal {-status}"


def _end(job: subprocess.Popen) -> None:
    if job.poll() is not None:
        return
    job.terminate()
    try:
        job.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
