"""How well replays stand for the job: row by row, calls and bytes of each rank, and times."""

from __future__ import annotations

import math
from collections import Counter, namedtuple
from collections.abc import Sequence
from fractions import Fraction

from ..base import UsageError, threshold, units
from ..compare.judge import Compared, Rules, contrast, known
from ..compare.comparison import with_groups_of
from ..compare.figures import Figures, Key, Row

SETUP = ("setup", "communicator")
WITHIN, LEVEL = threshold("replay.within"), threshold("compare.level")
SMALL, SCATTER = threshold("compare.small"), threshold("replay.scatter")


STANDS = ("stands", "near")
# A row of the job: medians over the runs, of the mean of a call; share: of the time inside MPI;
# change, low, high, margin: ratios - 1. verdict: stands, near (its estimate is within the margin,
# which the runs are too few to prove), unknown (also where runs of the job itself differ too much),
# longer, shorter, other calls, absent.
CheckRow = namedtuple(
    "CheckRow",
    "call communicator bytes measure count share job_ns replay_ns change low high margin verdict",
)


class Check(namedtuple("Check", "rows jobs replays passes made")):
    """rows: CheckRow. jobs, replays: how many. passes: of each replay. made: share of the job's
    calls in a pass, of the replay with least."""

    def share(self, *verdicts: str) -> float:
        """The share of the job's time inside MPI in rows with these verdicts."""
        return sum(row.share for row in self.rows if row.verdict in verdicts)

    @property
    def margin(self) -> float:
        """The widest margin of a row that stands and is no small part of the time."""
        margins = [row.margin for row in self.rows if row.verdict in STANDS and row.share >= SMALL]
        return max(margins, default=WITHIN)


def check(jobs: Sequence[Figures], replays: Sequence[Figures]) -> Check:
    """A replay stands for the job on the library that the job had."""
    libraries = [
        {run.library for run in runs if run.fact("mpi_version")} for runs in (jobs, replays)
    ]
    if len(set.union(*libraries)) > 1:
        job, replay = (" and ".join(sorted(own)) for own in libraries)
        raise UsageError(
            "replay",
            f"check needs one MPI library: the job ran under {job}, its replay under "
            f"{replay}; compare says how libraries differ",
        )
    jobs, replays = ([with_groups_of(jobs[0], run) for run in runs] for runs in (jobs, replays))
    passes = [_passes(jobs[0], replay) for replay in replays]
    made = min(_calls(run) / (number or 1) for run, number in zip(replays, passes))
    if 0 in passes:
        raise UsageError(
            "replay",
            f"check needs a kit of the whole job: a replay made {units.count(round(made))} of its "
            f"{units.counted(_calls(jobs[0]), 'call')} (commprof-run --record for as long as a "
            "short job takes)",
        )
    whole_ns = sum(row.total_ns for key, row in jobs[0].rows.items() if key.measure == "call")
    rows = [
        _checked(key, row, jobs, replays, passes, whole_ns)
        for key, row in jobs[0].rows.items()
        if row.family not in SETUP and key.measure in ("call", "completion") and row.count
    ]
    made /= _calls(jobs[0]) or 1
    return Check(sorted(rows, key=lambda row: -row.share), len(jobs), len(replays), passes, made)


def _calls(run: Figures) -> int:
    return sum(row.count for row in run.rows.values() if row.family not in SETUP)


def _passes(job: Figures, replay: Figures) -> int:
    """How often the replay made the job's calls: the ratio that most calls have."""
    ratios: Counter[Fraction] = Counter()
    for key, row in job.rows.items():
        if row.family not in SETUP and row.count and key in replay.rows:
            ratios[Fraction(replay.rows[key].count, row.count)] += row.count
    return round(ratios.most_common(1)[0][0]) if ratios else 0


def _checked(
    key: Key,
    row: Row,
    jobs: Sequence[Figures],
    replays: Sequence[Figures],
    passes: Sequence[int],
    whole_ns: int,
) -> CheckRow:
    first, second = (
        [run.rows[key].value("time") if key in run.rows else None for run in runs]
        for runs in (jobs, replays)
    )
    # within which a row is the same: a tenth, or as far as runs of the job are apart
    own = [value for value in known(first) if value > 0]
    margin = max(WITHIN, max(own) / min(own) - 1) if own else WITHIN
    found = contrast(first, second, rules=Rules(level=LEVEL, min_effect=margin, pairs=False))
    is_equal = all(
        key in replay.rows
        and (
            getattr(replay.rows[key], name)
            == {rank: number * of_pass for rank, of_pass in getattr(row, name).items()}
        )
        for replay, number in zip(replays, passes)
        for name in ("calls", "bytes")
    )
    verdict = (
        _verdict(found, margin)
        if is_equal
        else ("other calls" if any(key in replay.rows for replay in replays) else "absent")
    )
    return CheckRow(
        key.call,
        jobs[0].labels.get(key.group, ""),
        key.bytes,
        key.measure,
        row.count,
        row.total_ns / (whole_ns or 1) if key.measure == "call" else 0.0,
        found.first_ns,
        found.second_ns,
        found.change,
        found.low,
        found.high,
        margin,
        verdict,
    )


def _verdict(found: Compared, margin: float) -> str:
    change = found.change
    if change is None or margin > SCATTER:
        return "unknown"
    if found.outcome == "same":
        return "stands"
    if abs(math.log1p(change)) <= math.log1p(margin):
        return "near"
    if found.difference is None and found.outcome != "none":
        return "unknown"
    return "longer" if change > 0 else "shorter"
