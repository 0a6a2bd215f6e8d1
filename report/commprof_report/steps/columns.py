"""The columns of `steps`: the run in one row, and a row for each step; and what all steps cost."""

from __future__ import annotations

from typing import NamedTuple

from ..base import AS_EVERYWHERE, Columns, Field, Row, row_type
from ..base.units import NO_VALUE, duration

STEPS = (
    Field(
        "steps",
        "known steps; estimate of all, from the collectives that were not sampled (null: "
        "all are known)",
    ),
    Field("total_steps", ""),
    Field(
        "delimited_by",
        "`marks`, `region`, `negotiation` ([negotiated "
        "steps](#negotiated_step-steps-of-a-negotiation), from `after_ns` to `done_ns`), `calls`; "
        "empty: there are none",
    ),
    Field(
        "evidence",
        "the [evidence](METHODS.md#steps), `; ` between kinds: `marks`, `region` and "
        "its name, `bytes of the parameters`, `the only loop`, `a turn before the others, and a "
        "barrier`, `command line`; `--loop`: the user chose",
    ),
    Field("why", "why there are none; or which ranks are left out or have none, and why"),
    Field(
        "communicator",
        "the communicator whose collectives end steps (null: messages); a step in words: "
        "`5 bulk MPI_Allreduce, 102 MB`, or `31 tensors`",
    ),
    Field("period", ""),
    Field(
        "calls_per_step",
        "of the calls that count, on average; null unless found by calls; bytes also null if each "
        "rank has its own sizes",
    ),
    Field("bytes_per_step", ""),
    Field(
        "certainty",
        "`known`: the program marks steps, ranks agree on them, the user chose, or two kinds of "
        "evidence agree; `probably`: one kind; `none`",
    ),
    Field(
        "loops",
        "the nest in words: `300 x (5 Allreduce of 4 MiB); every 10: Allreduce of 8 B`; "
        "without steps all levels with their numbers for `--loop` and median times",
    ),
    Field(
        "apart",
        "ranks apart: their number of steps, the calls of one, their median; empty: there are none",
    ),
    Field("warm_up_steps", "warm-up steps; complete steps after them"),
    Field("complete_steps", ""),
    Field(
        "time_share",
        "time in the steps after the warm-up over the counted time of these ranks, "
        "without set-up; null: not all steps are known",
    ),
    Field(
        "p5_ns",
        "of the steps after the warm-up, each a mean over its ranks; the first value at "
        "which N % are reached",
    ),
    Field("p50_ns", ""),
    Field("p95_ns", ""),
    Field("step_ns", "over complete steps, or all, if none is"),
    Field("steps_per_s", "1e9 / step_ns"),
    Field(
        "wait_ns",
        "parts of communication_ns, as in [late](#late); what could not be split",
    ),
    Field("transfer_ns", ""),
    Field("unsplit_ns", ""),
    Field("communication_ns", "inside MPI but files; files; outside MPI. Null unless `is_driven`"),
    Field("file_ns", ""),
    Field("outside_ns", ""),
    Field("parallel_efficiency", AS_EVERYWHERE),
    Field("load_balance", ""),
    Field("communication_efficiency", ""),
    Field("serialization", ""),
    Field("transfer_efficiency", ""),
    Field("background_ns", "time in MPI of the other thread that communicates most in the step"),
    Field("communication_share", "over step_ns"),
    Field("background_share", ""),
    Field(
        "messages",
        "bulk collectives that begin in a step; the sum of their sizes; time in them on "
        "all threads; data_ns / step_ns",
    ),
    Field("message_bytes", ""),
    Field("data_ns", ""),
    Field("data_share", ""),
    Field("is_driven", "1: the driving threads communicate, on at least half of the ranks"),
    Field("wait_region", "the path of the wait region, or `negotiation`; empty: there is none"),
    Field(
        "wait_region_ns",
        "time of a step in it (of `negotiation` [at least](METHODS.md#steps)); over "
        "the mean of these steps",
    ),
    Field("wait_region_share", ""),
    Field(
        "wait_region_overlap",
        "the part of it during which another thread of the rank is in a data operation",
    ),
    Field(
        "negotiation",
        "the most frequent call in which threads negotiate; empty: none do, or `is_driven`",
    ),
    Field(
        "cycle_ns",
        "`idle_ns` / `rounds_idle`: the mean time from an idle round to the next one",
    ),
    Field(
        "rounds_per_step",
        "`rounds` / `steps`, `rounds_idle` / `rounds`, over the ranks; null: no rounds are "
        "recorded",
    ),
    Field("idle_rounds_share", ""),
    Field(
        "background_bulk_bytes",
        "on the thread that negotiates, mean over ranks: volume and time of bulk "
        "collectives, time of control; between none and all of it is exposed",
    ),
    Field("background_bulk_ns", ""),
    Field("background_control_ns", ""),
    Field(
        "thread",
        "name of the thread that communicates most (of the driving thread, if `is_driven`)",
    ),
    Field("thread_is_main", ""),
    Field("poll_share", "time in polls / time in MPI; all threads, and main threads"),
    Field("main_poll_share", ""),
    Field(
        "slowest_ranks",
        "the ranks that [late](#late) names; in how many steps; mean of their lead in "
        "these (by arrival: their median distance)",
    ),
    Field("slowest_steps", ""),
    Field("slowest_lead_ns", ""),
    Field("slowest_why", "why no rank is named, in words; empty: one is"),
    Field(
        "judged_steps",
        "judged steps; by arrival: of steps after the warm-up on several ranks",
    ),
    Field(
        "trend",
        "`slower` or `faster` if trend_p is below 1 % and first and last tenth differ by "
        "2 % of the median step; `none`; `unknown`: fewer than 20 steps",
    ),
    Field("trend_p", "[Kendall's test](METHODS.md#steps)"),
    Field(
        "first_tenth_ns",
        "median of the first and of the last tenth of the steps after the warm-up",
    ),
    Field("last_tenth_ns", ""),
    Field("outliers", "number of outliers; the duration above which a step is one"),
    Field("outlier_limit_ns", ""),
    Field(
        "nccl_host_ns",
        "time of NCCL's calls on the host, all threads; null: none in any step",
    ),
    Field(
        "nccl_device_ns",
        "time in which NCCL's operations ran on the device; over step_ns; null: not all were timed",
    ),
    Field("nccl_device_share", ""),
    Field(
        "gpu_steps",
        "steps after the warm-up during which the activity of some GPU is completely known, see "
        "[gpu](#gpu)",
    ),
    Field(
        "gpu_step_ns",
        "medians over these: their time, exposed communication on the GPU, its share",
    ),
    Field("gpu_exposed_ns", ""),
    Field("gpu_exposed_share", ""),
)
steps_row = row_type("StepsRow", STEPS)


def communication_text(row: Row) -> str:
    least = "" if row.is_complete or row.communication_ns is None else ">"
    return least + duration(row.communication_ns)


def remark(row: Row) -> str:
    if row.is_warm_up:
        return "warm-up"
    return f"outlier: {row.why}" if row.is_outlier else ""


STEP = (  # times are means over the ranks
    Field(
        "step",
        "its number (the program's own, or among those known); its earliest begin on a "
        "rank, since the run's start",
        "step",
    ),
    Field("begin_ns", "", "begins"),
    Field("step_ns", "as above, means over the ranks", "time"),
    Field("communication_ns", "", "communication", of_row=communication_text),
    Field("file_ns", "", "files", lambda value: duration(value or None)),
    Field("outside_ns", "", "outside MPI"),
    Field("background_ns", "", "other thread", lambda value: duration(value or None)),
    Field("ranks", "ranks on which this step is known"),
    Field(
        "slowest_rank",
        "the [slowest rank](METHODS.md#steps) and its lead; null: none, or not judged",
        "slowest",
        lambda value: NO_VALUE if value is None else f"rank {value}",
    ),
    Field("lead_ns", ""),
    Field("is_complete", "see [Steps](METHODS.md#steps)"),
    Field("is_warm_up", ""),
    Field("is_outlier", ""),
    Field(
        "why",
        "for an outlier: calls that fewer than a tenth of the steps have; what explains "
        "half of the excess or more (time outside MPI, or a call), or that nothing does. "
        "A rank is named if its `lead_ns` is half of the excess",
    ),
    Field("nccl_host_ns", "as above, of this step"),
    Field("nccl_device_ns", "", "NCCL on device"),
    Field("wait_ns", "as above, means over the ranks"),
    Field("transfer_ns", ""),
    Field("unsplit_ns", ""),
    Field("messages", "as above, of this step"),
    Field("message_bytes", ""),
    Field("data_ns", ""),
)
step_row = row_type("StepRow", STEP)


class Costs(NamedTuple):
    steps: list[Row]
    calls: Columns  # CallTimes
    # the driving threads communicate; otherwise only other threads do, and the waits of the driving
    # threads are unknown
    is_driven: bool
    thread: str  # the one that communicates most in steps, by name
    thread_is_main: bool
    poll_share: float  # share of polls, which have no samples, in the time in MPI
    main_poll_share: float  # on main threads
