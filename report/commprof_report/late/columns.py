"""The columns of `late --by run`: the run in one row."""

from __future__ import annotations

from typing import Any

from ..base import AS_EVERYWHERE, Field, Row, keys, row_type

SUMS = (  # of its waits
    Field("ranks", "ranks read and selected"),
    Field(
        "collectives",
        "as in `--by rank`, of the run",
    ),
    Field("message_calls", ""),
    Field(
        "total_ns",
        "exact time inside MPI (without set-up) and in NCCL's operations on the device",
    ),
    Field("sampled_ns", "the time of these collectives and calls"),
    Field(
        "coverage",
        "wait and transfer over total_ns without calls that create communicators before a"
        " rank's first other call: the part of that time that was split",
    ),
    Field(
        "sampled_share",
        "sampled_ns over wait and transfer. The verdict is based on coverage x "
        "sampled_share of the time",
    ),
    Field("wait_ns", "of what was split, scaled"),
    Field("transfer_ns", ""),
    Field("wait_share", ""),
    Field("share_of_wall", "wait and transfer over the ranks' counted time"),
    Field("estimate_share", "part of both that was split by durations"),
    Field("background_share", "part of the time inside MPI on threads other than the main one"),
    Field("counted_ns", "counted time, all ranks"),
    Field(
        "transfer_calls",
        "the fewest analysed collectives and calls for messages that have half of transfer_ns "
        "together",
    ),
)
LATE = (
    *SUMS,
    Field(
        "negotiated_share",
        "part of total_ns on threads that [negotiate](METHODS.md#negotiation), which the "
        "verdict leaves out",
    ),
    Field("unknown_cause_ns", "the part of wait_ns whose cause is not known"),
    Field(
        "together_share",
        "share of the time in which all calls of main threads are sampled: only there "
        "causes are sought",
    ),
    Field(
        "unsure",
        "operations not split: the clocks are too inaccurate, or their root was not read",
    ),
    Field(
        "uncompleted",
        "nonblocking operations not split on a rank: the call that completed them is not sampled",
    ),
    Field(
        "unmatched",
        "messages whose other side is not known, each side counted; receives among them without a "
        "`number` (table [sample](#sample-single-calls))",
    ),
    Field("unnumbered", ""),
    Field(
        "clocks",
        "different clocks; groups of them that no collective connects with the first",
    ),
    Field("unconnected_clocks", ""),
    Field(
        "error_ns",
        "bound of the error of two ranks' arrivals",
    ),
    Field("verdict", "see [Verdicts](METHODS.md#verdicts)"),
    Field(
        "late_ranks",
        "the ranks named, their hosts; null: nobody. Their programs; null, too, if all run one",
    ),
    Field("late_hosts", ""),
    Field("late_programs", ""),
    Field(
        "late_share",
        "what they cause, over all waiting; at marks their distances where they are last,"
        " over those of all last ranks",
    ),
    Field(
        "late_progress_share",
        "the part of what ranks wait for them that is in state `no progress`",
    ),
    Field(
        "late_gain_ns",
        "how much shorter the run would be had they taken no longer than the others "
        "([re-timing](METHODS.md#re-timing)); null: nothing was played. At marks: sum "
        "over the judged steps of the last of them less the last of the others",
    ),
    Field(
        "late_gain_share",
        "the share of the run that was played for late_gain_ns, which is scaled; null at marks",
    ),
    Field("late_p", "the probability of chance, corrected"),
    Field(
        "late_region",
        "the region with over half of what they spend more outside MPI than the others",
    ),
    Field(
        "late_mark",
        "with verdict `marks`: `negotiation` (hand-overs were compared), the path of the wait "
        "region, or `commprof_step`",
    ),
    Field(
        "late_mark_steps",
        "judged steps (visits); in how many of them the named ranks are last (null: nobody is "
        "named)",
    ),
    Field("late_mark_times", ""),
    Field("late_mark_lead_ns", "median of their distance in these"),
    Field("blocks", "blocks of the test"),
    Field(
        "unjudged",
        "NCCL's collectives in the samples that have no times of the device on some rank",
    ),
    Field(
        "finalize_wait_ns",
        "how long all ranks waited in `MPI_Finalize` for the last one (in no other "
        "figure; 0: not known), and which one",
    ),
    Field("finalize_last_rank", ""),
    Field("slow_link_sender", "the slowest [link](METHODS.md#slow-links) that costs notably"),
    Field("slow_link_receiver", ""),
    Field("slow_link_times", ""),
    Field("slow_link_excess_ns", ""),
    Field(
        "slow_size_call",
        "the [slow size](METHODS.md#slow-links): its call, bytes, how many times as long,"
        " and the excess in all calls of a rank",
    ),
    Field("slow_size_bytes", ""),
    Field("slow_size_times", ""),
    Field("slow_size_excess_ns", ""),
    Field(
        "late_reason",
        "[why they are late](METHODS.md#why-a-rank-is-late): `asleep`, `threads`, `disk`, "
        "`files`, `computes`, `core`, `ready`; null: not known",
    ),
    Field(
        "late_reason_ns",
        "time of this kind in the run, mean over these ranks and over the others",
    ),
    Field("late_reason_others_ns", ""),
    Field("parallel_efficiency", AS_EVERYWHERE),
    Field("load_balance", ""),
    Field("communication_efficiency", ""),
    Field("serialization", ""),
    Field("transfer_efficiency", ""),
    Field("efficiency_share", "the share of the run that was played for the efficiencies"),
)
_LateRow = row_type("LateRow", LATE)
sums_row = row_type("LateRunRow", SUMS)


def late_row(**known: Any) -> Row:
    """Columns that are not known, as of ranks where none is named, are None."""
    return _LateRow(**{**dict.fromkeys(keys(LATE)), **known})
