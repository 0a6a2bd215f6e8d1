"""hvprof-report: merges the files that the ranks of a run left behind and answers questions about
them.

    import commprof_report as cp
    run = cp.open("run")
    run.sizes(call="Allreduce")

The list of layers in docs/ARCHITECTURE.md says what each room, a folder here, holds and which rooms
it may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import ReportError as ReportError

__version__ = "0.2.0"  # the Makefile takes it from here
APPLICATION_ID = 0x636D7066  # "cmpf"

if TYPE_CHECKING:
    from .api import Run


def open(*paths: object) -> Run:
    """A run: a run folder, a merged database, or one rank's file; several folders of one run;
    without any, the newest run here. It has a method for each command of hvprof-report that gives
    rows. Raises ReportError if a path does not exist."""
    # not at the top: it imports all commands, and they import this module
    from .api import run_open

    return run_open(*paths)
