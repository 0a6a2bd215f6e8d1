"""The columns of a comparison, each said once, and the rows that have them."""

from __future__ import annotations

from typing import Any

from ..base import row_type, units
from ..base.field import Field, text

DIFFERENT = ("less", "more")  # outcomes
OTHER = "other"  # the call of small rows added up
MIXED = "mixed"  # transfer of the rows of which it is known, time of the others
SIDES = (
    Field("side", "names: what the folders of a side share, without numbers; else A, B, ..."),
    Field("reference", ""),
)
VERDICT = (
    *SIDES,
    Field(
        "metric",
        "by default `step` if there are rows per step; else `transfer`, if all runs have a "
        "`coverage` of half; else `time`, or `step` with `--skip-steps`",
    ),
    Field("verdict", "an outcome of the metric's figure; `too few`, `refused`"),
    Field("change", "of that figure; null: not known"),
    *(Field(key, "") for key in ("low", "high", "p")),
    Field("level", "confidence of this side's verdict; the smallest difference that matters"),
    Field("min_effect", ""),
    Field(
        "runs",
        "runs of both; pairs (null: not in blocks), and those that changed in the direction of the "
        "estimate",
    ),
    *(Field(key, "") for key in ("reference_runs", "pairs", "agreeing")),
    Field("failed_runs", "runs of this arm that failed in an experiment"),
    Field("detectable", "of the metric's figure; null: not known"),
    Field("pairs_needed", "fewest pairs that can show a difference"),
    Field("refused", "reasons, as text"),
    Field("allowed", ""),
    Field(
        "also_different",
        "settings, software and hosts in which all runs of one side differ from all of the other",
    ),
    Field(
        "is_control",
        "1: the side runs the reference's command once more (`--aa`); its verdict is about the "
        "experiment",
    ),
    Field("skipped", "the share of the steps that `--skip-steps` leaves out; 0: none"),
    Field("kit", "SHA-256 of the kit that all these runs replay; empty: they do not"),
    Field(
        "stands_for",
        "share of the job's time inside MPI for which replays of the kit stand, as [`replay "
        "check`](#replay) has found; null: no check is known, or gaps or arrival were not the "
        "job's",
    ),
)
OF_CONTRAST = (
    Field("first_ns", "medians over the runs of the reference and of the side"),
    Field("second_ns", ""),
    Field("change", "see [Comparisons](METHODS.md#comparisons)"),
    *(
        Field(key, "")
        for key in ("low", "high", "p", "same_p", "detectable", "agreeing", "outcome")
    ),
)
FIGURE = (
    *SIDES,
    Field("figure", "the figure; 1: the verdict is about this one"),
    Field("is_primary", ""),
    Field("noise", "the largest ratio of two runs of the same side, less 1"),
)
KEY = (
    Field("call", "of a row"),
    *(Field(key, "") for key in ("communicator", "bytes", "memory_kind", "measure")),
)
ROW = (
    *KEY,
    Field(
        "rows",
        "rows added up; calls in a run of the reference (mean); share of the time in all runs "
        "(mean)",
    ),
    Field("count", ""),
    Field("share", ""),
    Field(
        "metric",
        "what the times of the row are; `mixed` (`other` alone): transfer of the rows of which it "
        "is known, time of the others",
    ),
    Field("change_ns", "median over the side - median over the reference, per rank"),
    Field(
        "per",
        "what the times of the row are taken over: `call`, `step` (on a rank), `rank` (`other`)",
    ),
    Field("adjusted_p", "p of an exploratory row, adjusted by Benjamini and Hochberg"),
    Field(
        "reference_algorithm",
        "the most frequent algorithm that NCCL reports for this size (`ring, ll128, 16 "
        "channels`), of the reference and of the side; empty: not known",
    ),
    Field("algorithm", ""),
    Field(
        "pairs_needed",
        "of a row that all blocks agree in and that may be chance among the rows all the same: the "
        "fewest blocks that would show it if all agree; else null",
    ),
    Field("is_confirmed", "see [Comparisons](METHODS.md#comparisons)"),
    Field(
        "part_of_change",
        "`change_ns` over that of all rows (null without a verdict of `less` or `more`)",
    ),
)
SIZE = (
    Field("call", "as above"),
    *KEY[1:],
    *(Field(key, "") for key in ("metric", "count", "per")),
    Field(
        "sides",
        "the sides, and the median of each; `--csv` has a column for each side in their place, "
        "`SIDE_ns`",
    ),
    Field("values_ns", ""),
    Field(
        "best",
        "the side, but controls, with the smallest median, if it is `less` than each other side "
        "at 1 - level, adjusted by Benjamini and Hochberg (exploratory)",
    ),
)
RUN = (
    text("side", "as above", "side"),
    Field("block", "null: none", "block"),
    text("run", "its path", "run"),
    Field("start_unix_ns", "", "started", units.timestamp, False),
    Field("step_ns", "null: not known", "Step"),
    Field("wait_ns", "", "Waiting"),
    Field("transfer_ns", "", "Transfer"),
    Field("time_ns", "", "Inside MPI"),
    Field("wall_ns", "", "Wall time"),
    Field(
        "coverage", "share of the time inside MPI of which waiting and transfer are known",
    ),
    Field("arithmetic_ns", "null: not measured", "host: arithmetic"),
    Field("memory_ns", "", "host: copies in memory"),
)
COMPARED = (*FIGURE, *ROW, *OF_CONTRAST)  # of figures and rows
SAMPLES = Field("samples", "the values themselves, one of each run: of the reference, of the side")
VerdictRow, SizeRow, RunRow = (
    row_type(name, fields)
    for name, fields in (("VerdictRow", VERDICT), ("SizeRow", SIZE), ("RunRow", RUN))
)
compared_row: Any = row_type("ComparedRow", (*COMPARED, SAMPLES))


class Compared(compared_row):
    """Values of one side against those of the first: a figure of the run, per rank (`rows` per
    call), or a row: per call, or per step on a rank, or, added up as `other`, per rank. change,
    low, high, detectable: ratio - 1."""

    @property
    def difference(self) -> float | None:
        """The change, if it is beyond chance."""
        return self.change if self.outcome in DIFFERENT else None


NOTHING = Compared._make([None] * len(compared_row._fields))._replace(
    is_primary=0, per="call", reference_algorithm="", algorithm="", outcome="none", is_confirmed=0
)
