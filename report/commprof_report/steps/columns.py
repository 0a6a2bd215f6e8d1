"""The columns of `steps`: the run in one row, and a row for each step; and what all steps cost."""

from __future__ import annotations

from typing import NamedTuple

from ..base import AS_EVERYWHERE, Columns, Field, NO_VALUE, Row, duration, row_type

STEPS = (
    Field(
        "steps",
        "known steps; estimate of all, from collectives not sampled (null: all are known)",
    ),
    Field("total_steps", ""),
    Field(
        "delimited_by",
        "`marks`, `region`, `negotiation` ([`after_ns` to "
        "`done_ns`](#negotiated_step-steps-of-a-negotiation)), `calls`",
    ),
    Field(
        "evidence",
        "the kinds of [evidence](METHODS.md#steps), `; ` between; `marks`; `--loop`: the user "
        "chose",
    ),
    Field("why", "why there are none, or none on some ranks"),
    Field(
        "communicator",
        "the communicator whose collectives end steps (null: messages); a step in words: `5 bulk "
        "MPI_Allreduce, 102 MB`",
    ),
    Field("period", ""),
    Field(
        "calls_per_step",
        "mean of the calls that count; null unless found by calls; bytes also null if ranks have "
        "different sizes",
    ),
    Field("bytes_per_step", ""),
    Field(
        "certainty",
        "`known`: marks, a negotiation, `--loop`, or two kinds of evidence; `probably`: one "
        "kind; `none`",
    ),
    Field(
        "loops",
        "the nest in words: `300 x (5 Allreduce of 4 MiB); every 10: Allreduce of 8 B`; without "
        "steps all levels with numbers for `--loop` and median times",
    ),
    Field(
        "apart",
        "ranks apart: their number of steps, the calls of one, their median",
    ),
    Field("warm_up_steps", "numbers of [steps](METHODS.md#steps); complete ones after the warm-up"),
    Field("complete_steps", ""),
    Field(
        "time_share",
        "time in the steps after the warm-up over the ranks' counted time without set-up; null: "
        "not all steps are known",
    ),
    Field(
        "p5_ns",
        "of steps after the warm-up, means over ranks; the first value at which N % are reached",
    ),
    Field("p50_ns", ""),
    Field("p95_ns", ""),
    Field("step_ns", "over complete steps, or all, if none is"),
    Field("steps_per_s", "1e9 / step_ns"),
    Field(
        "wait_ns",
        "parts of communication_ns, as in [late](#late); the rest",
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
        "bulk collectives that begin in a step; their bytes; time in them; data_ns / step_ns",
    ),
    Field("message_bytes", ""),
    Field("data_ns", ""),
    Field("data_share", ""),
    Field("is_driven", "1: driving threads communicate, on half of the ranks or more"),
    Field("wait_region", "the path of the wait region, or `negotiation`"),
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
        "the most frequent call in which threads negotiate; empty: none, or `is_driven`",
    ),
    Field(
        "cycle_ns",
        "`idle_ns` / `rounds_idle`: the mean time from an idle round to the next one",
    ),
    Field(
        "rounds_per_step",
        "`rounds` / `steps`, `rounds_idle` / `rounds`, over the ranks",
    ),
    Field("idle_rounds_share", ""),
    Field(
        "background_bulk_bytes",
        "on the thread that negotiates, mean over ranks: volume and time of bulk collectives, "
        "time of control; some of it is exposed",
    ),
    Field("background_bulk_ns", ""),
    Field("background_control_ns", ""),
    Field(
        "thread",
        "the thread that communicates most (the driving one, if `is_driven`)",
    ),
    Field("thread_is_main", ""),
    Field("poll_share", "time in polls / time in MPI; all threads, and main threads"),
    Field("main_poll_share", ""),
    Field(
        "slowest_ranks",
        "the ranks that [late](#late) names; in how many steps; mean lead (by arrival: median "
        "distance)",
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
        "`slower` or `faster`: trend_p is below 1 %, and first and last tenth differ by 2 % of "
        "the median step; `none`; `unknown`: fewer than 20 steps",
    ),
    Field("trend_p", "[Kendall's test](METHODS.md#steps)"),
    Field(
        "first_tenth_ns",
        "medians of the first and last tenth of the steps after the warm-up",
    ),
    Field("last_tenth_ns", ""),
    Field("outliers", "number of outliers; the duration above which a step is one"),
    Field("outlier_limit_ns", ""),
    Field(
        "nccl_host_ns",
        "time of NCCL's calls on the host; null: none in any step",
    ),
    Field(
        "nccl_device_ns",
        "time in which NCCL's operations ran on the device; over step_ns; null: not all were timed",
    ),
    Field("nccl_device_share", ""),
    Field(
        "gpu_steps",
        "steps after the warm-up in which a GPU's activity is completely known ([gpu](#gpu))",
    ),
    Field(
        "gpu_step_ns",
        "medians over these: time, exposed communication, its share",
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
        "its number (the program's own, or among those known); its earliest begin, since the "
        "run's start",
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
    Field("is_complete", "[Steps](METHODS.md#steps)"),
    Field("is_warm_up", ""),
    Field("is_outlier", ""),
    Field(
        "why",
        "for an outlier: calls that fewer than a tenth of the steps have; what explains half of "
        "the excess or more; a rank whose `lead_ns` is half of it",
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
