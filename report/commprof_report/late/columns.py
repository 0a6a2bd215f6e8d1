"""The columns of `late --by run`: the run in one row."""

from __future__ import annotations

from typing import Any

from ..base.field import Field, Row, keys, row_type

SUMS = (  # of its waits
    Field("ranks", "number of ranks read and selected"),
    Field(
        "collectives",
        "collectives that were split (of several operations that one call completed, the one that "
        "decided); calls in which a message decided",
    ),
    Field("message_calls", ""),
    Field(
        "total_ns",
        "exact time inside MPI (without set-up) and in NCCL's operations on the device, in the "
        "chosen calls",
    ),
    Field("sampled_ns", "the time of these collectives and calls"),
    Field(
        "coverage",
        "wait and transfer over total_ns: the share of that time that the verdict is based on, if "
        "all calls were sampled",
    ),
    Field(
        "sampled_share",
        "sampled_ns over wait and transfer: 1 if every such call was sampled; else times are "
        "scaled: the verdict is based on coverage x sampled_share of the time, in so many calls, "
        "as text says",
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
        "part of the time inside MPI, and in NCCL's operations on the device, of the whole run, "
        "on threads that [negotiate](#traffic). What ranks cause on communicators of such threads "
        "is left out of the verdict",
    ),
    Field("unknown_cause_ns", "the part of wait_ns whose cause is not known"),
    Field(
        "together_share",
        "the share of the ranks' time in which all calls of the rank's main thread are sampled "
        "(`sample_window`): only there the cause of waiting is sought",
    ),
    Field(
        "unsure",
        "operations that were not split (collectives; each side of a message): the clocks are too "
        "inaccurate, or their root was not read",
    ),
    Field(
        "uncompleted",
        "nonblocking operations that were not split on a rank: the call that completed them is "
        "not sampled",
    ),
    Field(
        "unmatched",
        "messages whose other side is not known, each side counted; receives among them that have "
        "no `number` (table [sample](#sample-single-calls) says when)",
    ),
    Field("unnumbered", ""),
    Field(
        "clocks",
        "different clocks; groups of them, but for the first, that neither collectives nor "
        "messages in both directions connect with it",
    ),
    Field("unconnected_clocks", ""),
    Field(
        "error_ns",
        "bound of the error of a wait that was split by clocks: of the distance of two ranks' "
        "arrivals",
    ),
    Field("verdict", "see above"),
    Field(
        "late_ranks",
        "the ranks named, and their hosts; null: nobody. Their programs; null, too, if all ranks "
        "run one",
    ),
    Field("late_hosts", ""),
    Field("late_programs", ""),
    Field(
        "late_share",
        "what they cause, over all waiting; at marks the sum of the distances with which they are "
        "surely last over that of all last ranks, sure or not. Less than a half: the waiting is "
        "mostly for them",
    ),
    Field(
        "late_others_share",
        "what all other ranks cause, over all waiting; at marks 1 - late_share. Else the rest has "
        "no known cause",
    ),
    Field(
        "late_direct_share",
        "the part of late_share that they cause directly; the other ranks through which they "
        "cause 1 % of the waiting or more; null: none",
    ),
    Field("late_through", ""),
    Field(
        "late_progress_share",
        "the part of what ranks wait for the named ones that is in state `no progress`; a half or "
        "more: the verdict's text begins with `no progress` and says between which calls they are "
        "outside MPI",
    ),
    Field(
        "late_gain_ns",
        "how much shorter the run would be, had they taken no longer than the other ranks "
        "(estimate, by [re-timing](#re-timing); no more than another rank is done sooner); 0: "
        "nothing, as where other ranks are done as late. null: nothing was played; then what each "
        "other rank waits for them on average decides whether they are named. At marks: the sum "
        "over the judged steps of the last of them less the last of the others, if that is "
        "positive",
    ),
    Field(
        "late_gain_share",
        "the share of the run whose calls were played for late_gain_ns, which is scaled to all of "
        "it: of its time, or sampled_share if that is less; 0: none was, as where calls of one "
        "rank overlap; null at marks",
    ),
    Field("late_p", "the probability of chance, corrected"),
    Field(
        "late_region",
        "the region in which they spend more time outside MPI than the mean of the others, if "
        "that is more than half of what they spend more in all regions together; null: there is "
        "none, or samples are missing",
    ),
    Field(
        "late_mark",
        "with verdict `marks`: `negotiation`: ranks were compared by when they hand their tensors "
        "over; the path of the wait region, or `commprof_step`; null: ranks were judged by calls, "
        "as in the next three",
    ),
    Field(
        "late_mark_steps",
        "judged steps (visits); in how many of them the named ranks are last (null: nobody is "
        "named)",
    ),
    Field("late_mark_times", ""),
    Field("late_mark_lead_ns", "median of their distance in these"),
    Field("blocks", "number of blocks of the test"),
    Field(
        "unjudged",
        "NCCL's collectives in the samples that have no times of the device on some rank",
    ),
    Field(
        "finalize_wait_ns",
        "how long the ranks waited in `MPI_Finalize` before the last one entered it, all "
        "together, and which one that was; no part of the other figures, and no verdict: it is "
        "one arrival. 0 and null: some rank's `MPI_Finalize` is not known, one returned before "
        "the last one entered (MPI need not synchronize there), or clocks do not tell. Text shows "
        "it if the mean of the others is 0.1 s and 1 % of the counted time or more",
    ),
    Field("finalize_last_rank", ""),
    Field(
        "slow_link_sender",
        "the slowest link that costs notably (above); null: none. If the named ranks lose there a "
        "half of `late_gain_ns` or more, the verdict's text begins with it",
    ),
    Field("slow_link_receiver", ""),
    Field("slow_link_times", ""),
    Field("slow_link_excess_ns", ""),
    Field(
        "late_reason",
        "[why they are late](#why-a-rank-is-late): `asleep`, `threads`, `disk`, `computes`, "
        "`core`, `ready`; null: not known",
    ),
    Field(
        "late_reason_ns",
        "time of this kind outside MPI in the whole run, mean over these ranks and over the "
        "others; null: no reason",
    ),
    Field("late_reason_others_ns", ""),
    Field(
        "parallel_efficiency",
        "[efficiencies](#efficiencies), and the share of the run whose calls were played for "
        "them; of the whole run, whatever is selected",
    ),
    Field("load_balance", ""),
    Field("communication_efficiency", ""),
    Field("serialization", ""),
    Field("transfer_efficiency", ""),
    Field("efficiency_share", ""),
)
_LateRow = row_type("LateRow", LATE)
sums_row = row_type("LateRunRow", SUMS)


def late_row(**known: Any) -> Row:
    """Columns that are not known, as of ranks where none is named, are None."""
    return _LateRow(**{**dict.fromkeys(keys(LATE)), **known})
