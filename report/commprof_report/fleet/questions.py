"""The questions to a store: columns of the answers, in the order of each question, and a note."""

from __future__ import annotations

from typing import NamedTuple

from ..base import units
from ..base.field import Field, text


def _hours(key: str, meaning: str, head: str) -> Field:
    return Field(
        key, meaning, head, lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
    )


FIELDS = {field.key: field for field in (
    text("user_name", "the user: their name, number or hash, as the store has it", "user"),
    text("program", "the program", "program", 40),
    text("library", "the MPI library, and its version", "library", 32),
    text("host", "the host", "host"),
    text("month", "year and month in which the jobs began, in UTC", "month"),
    text("cluster", "`--cluster` of `fleet add`", "cluster"),
    text("first_day", "days of the first and the last of these jobs, in UTC", "first day"),
    text("last_day", "", "last day"),
    text("run_id", "the job's id, as its launcher or scheduler said it", "job"),
    text("day", "the day on which the job began, in UTC", "day"),
    text(
        "ended", "`finalize`, `exit`, `abort`; `killed`: a rank has no end", "ended",
    ),
    text(
        "call", "the call; `(other)`: beyond the 60 rows of a job, which have the most time",
        "call",
    ),
    text(
        "role",
        "of the communicator: `world` (all ranks), `part`, `alone` (one rank), `none`, `other`",
        "role",
    ),
    Field(
        "high_bytes",
        "the class of sizes: above half of it, up to it", "up to", units.size,
    ),
    text("measure", "see [Words](#words)", "measure"),
    Field("jobs", "jobs; their users", "jobs"),
    Field("users", "", "users"),
    Field(
        "last_jobs",
        "jobs in which the host came last: its ranks spent the least time in calls in which all "
        "wait for all, or that complete messages; and in how many any host in its place would "
        "have: of jobs of the same program on as many hosts, in the same place by the lowest rank",
        "came last",
    ),
    Field("expected_jobs", "", "expected", units.mean_count),
    Field(
        "behind_share",
        "by how much less time its ranks spend in these calls than those of other hosts, of the "
        "wall time",
        "behind", units.share,
    ),
    Field(
        "p",
        "the probability that chance alone shows as much, adjusted for all hosts or calls "
        "(Benjamini and Hochberg); of a host without the user whose jobs say most against it; of "
        "a change by Pettitt's test of the days' medians", "p", lambda value: f"{value:.1g}",
    ),
    Field("is_late", "1: the host is late in other people's jobs, too", "late"),
    Field("days", "days with such jobs", "days"),
    Field(
        "before_ns", "medians of the days' medians, before the day and from it on; after / before "
        "- 1", "before",
    ),
    Field("after_ns", "", "after"),
    Field("change", "", "change", units.change),
    text("since", "settings and versions of the program's jobs since that day alone", "since", 60),
    Field("killed_jobs", "jobs that were killed", "killed"),
    Field("ranks", "ranks of the job, and its hosts", "ranks"),
    Field("hosts", "", "hosts"),
    Field("calls", "calls, unsuccessful polls included", "calls"),
    Field("volume_bytes", "sum of `volume_bytes`", "volume"),
    _hours(
        "rank_hours", "sum of the ranks' wall times: core hours, where a rank has one core",
        "rank hours",
    ),
    _hours("call_hours", "sum of the time in these calls", "hours in call"),
    Field("call_share", "of the ranks' wall times: time in these calls; in MPI", "share"),
    Field("mpi_share", "", "in MPI", units.share),
    _hours(
        "uneven_hours",
        "what ranks spend in calls in which all wait for all, or that complete messages, beyond "
        "the rank of the job that spends least in them",
        "uneven hours",
    ),
    _hours("small_hours", "time in collectives of 4 KiB or less", "small hours"),
    Field("wall_ns", "wall time of the longest rank", "wall time"),
    Field("total_ns", "sum of durations", "time"),
    Field("mean_ns", "total_ns / calls", "per call"),
    Field(
        "p50_ns", "percentiles, from histograms in halves of an octave, within which calls count "
        "as evenly spread; p99 of 100 calls or more", "p50",
    ),
    Field("p99_ns", "", "p99"),
)}


class Question(NamedTuple):
    title: str
    columns: str
    note: str


QUESTIONS = {
    "top": Question(
        "Time in a call by user and program",
        "user_name program jobs calls call_hours rank_hours call_share",
        "Time in {call}. A rank hour is a core hour where a rank has one core.",
    ),
    "programs": Question(
        "Programs that would gain",
        "program jobs users rank_hours mpi_share uneven_hours small_hours",
        "Uneven: what ranks wait beyond the one that waits least, the most that balance gains.",
    ),
    "libraries": Question(
        "Libraries under one program",
        "program library jobs users rank_hours mpi_share first_day last_day",
        "Observed, not tried: users, inputs and months differ, too. Runs of both tell: `compare`.",
    ),
    "sizes": Question(
        "Message sizes",
        "call high_bytes measure jobs calls volume_bytes call_hours mean_ns p50_ns p99_ns", "",
    ),
    "trend": Question(
        "Month by month",
        "month cluster jobs users killed_jobs rank_hours mpi_share call_hours call_share",
        "Hours in call: {call}.",
    ),
    "hosts": Question(
        "Nodes that are late in other people's jobs",
        "host jobs users last_jobs expected_jobs behind_share p is_late", "",
    ),
    "changes": Question(
        "Calls that have changed",
        "program ranks hosts call role high_bytes measure day days jobs before_ns after_ns change "
        "p since",
        "Since: what no more than a tenth of the jobs had before; it need not be the cause.",
    ),
    "job": Question(
        "One job",
        "run_id day user_name program library ended ranks hosts wall_ns call role high_bytes "
        "measure calls volume_bytes total_ns mean_ns call_share", "",
    ),
}


def fields(name: str) -> list[Field]:
    return [FIELDS[key] for key in QUESTIONS[name].columns.split()]
