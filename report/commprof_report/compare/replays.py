"""Replays among the runs of a comparison (commprof-replay(1)): which kit they replay, with which
options, and for which share of the job's time a check of that kit has found that they stand."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path

from ..base import units
from ..base.aside import written_whole
from ..base.errors import ReportError
from ..base.json_file import json_read, list_in, number_in, text_in, whole_in
from .figures import Figures
from .sides import Side

# facts by which a run of commprof-replay says what it replayed, and the options it was given
FACT = "env.COMMPROF_REPLAY_"
RECORDED = "recorded"  # by default
FORMAT, VERSION = "commprof-replay-check", 1
MOST_RUNS, MOST_NAMED = 10**6, 3
DIGITS = 12  # of a SHA-256 that is shown


# Result of `replay check`: shares of the job's time inside MPI, the numbers of runs, the replays'
# library, within what the means of rows agree, and the largest rows for which they do not stand.
Checked = namedtuple("Checked", "kit share tested_share jobs replays library margin failing")


def kit_replayed(run: Figures) -> str:
    """The SHA-256 of the kit that it replays; empty: it is no replay."""
    return run.fact(f"{FACT}KIT")


def altered(run: Figures) -> str:
    """gaps none, arrival together: the options by which it makes the calls otherwise than the
    job."""
    options = {
        key.removeprefix(FACT): values for key, values in run.facts.items()
        if key.startswith(FACT)
    }
    return ", ".join(
        f"{name.lower()} {value}" for name, (value, *_) in sorted(options.items())
        if name not in ("KIT", "REPEAT") and value != RECORDED
    )


def kit_of(sides: Sequence[Side]) -> str:
    """Empty: not all runs are replays of one kit."""
    kits = {kit_replayed(run) for side in sides for run in side.runs}
    return kits.pop() if len(kits) == 1 else ""


def checked_write(path: Path, checked: Checked, mode: int) -> None:
    with written_whole(path, mode) as file:
        json.dump({"format": FORMAT, "version": VERSION, **checked._asdict()}, file, indent=1)
        file.write("\n")


def checked_read(path: Path) -> Checked:
    values = json_read(path)
    try:
        if text_in(values, "format") != FORMAT or whole_in(values, "version", 0, 99) != VERSION:
            raise ValueError(f"it is not version {VERSION} of {FORMAT}")
        return Checked(
            text_in(values, "kit"), number_in(values, "share", 0, 1.001),
            number_in(values, "tested_share", 0, 1.001), whole_in(values, "jobs", 1, MOST_RUNS),
            whole_in(values, "replays", 1, MOST_RUNS), text_in(values, "library"),
            number_in(values, "margin", 0, 1e9),
            tuple(str(name) for name in list_in(values, "failing")),
        )
    except ValueError as error:
        raise ReportError(path, f"is not the result of a check: {error}") from None


def stands_for(sides: Sequence[Side], checked: Checked | None) -> float | None:
    is_known = checked is not None and checked.kit == kit_of(sides) and not _altered(sides)
    return checked.share if checked and is_known else None


def _altered(sides: Sequence[Side]) -> str:
    return next(filter(None, (altered(run) for side in sides for run in side.runs)), "")


def stands_text(sides: Sequence[Side], checked: Checked | None) -> str:
    """For how much of the job the compared replays stand; empty: they are no replays of one kit."""
    kit = kit_of(sides)
    if not kit:
        return ""
    if otherwise := _altered(sides):
        return f"not the job as it ran: {otherwise}"
    if checked is None:
        return (
            "an unknown share of the job: no check of the kit is at hand (hvprof-report replay "
            "check JOB... -- REPLAY... -o FILE; then --check FILE)"
        )
    if checked.kit != kit:
        return f"an unknown share of the job: the check is of kit {checked.kit[:DIGITS]}"
    failing = f"; not for {', '.join(checked.failing)}" if checked.failing else ""
    tested = checked.tested_share
    return (
        f"{units.share(checked.share)} of the job's time inside MPI, "
        f"{f'{units.share(tested)} by a test' if tested else 'as an estimate'}, within "
        f"{units.share(checked.margin)}: "
        f"{units.counted(checked.replays, 'replay')} against {units.counted(checked.jobs, 'run')} "
        f"of the job under {checked.library}{failing}"
    )
