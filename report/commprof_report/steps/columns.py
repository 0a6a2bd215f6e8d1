"""The columns of `steps`: the run in one row, and a row for each step."""

from __future__ import annotations

from ..base.field import Field, Row, row_type
from ..base.units import NO_VALUE, duration

STEPS = (
    Field(
        "steps",
        "number of known steps; estimate of all steps, from the collectives that were not sampled "
        "(null: all are known)",
    ),
    Field("total_steps", ""),
    Field(
        "delimited_by",
        "what delimits the steps: `marks`, `region`, `negotiation` (what the ranks agree on: "
        "[negotiated steps](#negotiated_step-steps-of-a-negotiation), from `after_ns` to "
        "`done_ns`), `calls`, empty: there are none",
    ),
    Field(
        "evidence",
        "what says that these are the steps, `; ` between kinds: `marks`; `region` and its name "
        "(it is visited once a step, and has half of the time, or is a wait region); `bytes of the "
        "parameters` (a step's bulk reductions sum what was broadcast before the first of them); "
        "`order` (the only level of loops: equally many calls, of several kinds, in 9 of 10 "
        "calls); `pauses` (the pause before a step is 3 times as long as each in it, by medians); "
        "`--loop`: the user chose",
    ),
    Field(
        "why",
        "why there are none, or which ranks are left out (of visits to a region) or have none, "
        "and why the first of them has none, in words",
    ),
    Field(
        "communicator",
        "the label of the communicator with whose collectives the steps of most ranks end (null: "
        "they end with messages); a step in words: `5 bulk MPI_Allreduce, 102 MB`, or `31 "
        "tensors`",
    ),
    Field("period", ""),
    Field(
        "calls_per_step",
        "of the calls that count, on average; null unless found by calls; bytes are null if some "
        "of these calls are v- or w-variants or neighborhood collectives, in which each rank has "
        "its own",
    ),
    Field("bytes_per_step", ""),
    Field(
        "certainty",
        "`known`: the program marks steps, ranks agree on them, the user chose, or two kinds of "
        "evidence agree; `probably`: one kind; `none`",
    ),
    Field(
        "loops",
        "the nest in words: `300 x (5 Allreduce of 4 MiB); every 10: Allreduce of 8 B`: the "
        "steps, their body, and what loops around it have besides; inner loops with their mean "
        "number of iterations; calls of messages are added up. Without steps all levels, numbered "
        "as for `--loop`, with their median times. Empty: there are no loops",
    ),
    Field(
        "apart",
        "ranks apart: their number of steps, the calls of one, their median; empty: there are "
        "none",
    ),
    Field("warm_up_steps", "number of warm-up steps; of complete steps after them"),
    Field("complete_steps", ""),
    Field(
        "time_share",
        "time in the steps after the warm-up over the counted time, without set-up, of the ranks "
        "that have steps; null: not all steps are known. Text shows it below 90 %",
    ),
    Field(
        "p5_ns",
        "of the steps after the warm-up, each a mean over its ranks; pN is the first value at "
        "which N % are reached",
    ),
    Field("p50_ns", ""),
    Field("p95_ns", ""),
    Field("step_ns", "mean over complete steps (over all, if none is) and ranks"),
    Field("steps_per_s", "1e9 / step_ns"),
    Field(
        "wait_ns",
        "the parts of communication_ns: waiting for other ranks and transfer as in [late](#late), "
        "split at the borders of steps, and what could not be split; null: waits were not "
        "analysed",
    ),
    Field("transfer_ns", ""),
    Field("unsplit_ns", ""),
    Field("communication_ns", "as `step_ns`; null unless `is_driven`"),
    Field("file_ns", ""),
    Field("outside_ns", ""),
    Field("parallel_efficiency", "[efficiencies](#efficiencies) of the complete steps"),
    Field("load_balance", ""),
    Field("communication_efficiency", ""),
    Field("serialization", ""),
    Field("transfer_efficiency", ""),
    Field("background_ns", "time in MPI of the other thread that communicates most in the step"),
    Field("communication_share", "over step_ns"),
    Field("background_share", ""),
    Field(
        "messages",
        "number of bulk collectives that begin in a step (NCCL's on the device, where they were "
        "timed), sum of their sizes, and time in MPI's on all threads: means over complete steps "
        "and ranks; data_ns / step_ns. What a framework fuses is one",
    ),
    Field("message_bytes", ""),
    Field("data_ns", ""),
    Field("data_share", ""),
    Field("is_driven", "1: the driving threads communicate, on at least half of the ranks"),
    Field("wait_region", "the path of the wait region, or `negotiation`; empty: there is none"),
    Field(
        "wait_region_ns",
        "time of a step in it (of `negotiation` [at least](#steps)), mean over the same steps and "
        "their ranks; over the mean of these steps; null: there is none, as in the next",
    ),
    Field("wait_region_share", ""),
    Field(
        "wait_region_overlap",
        "the part of all time in it, of the whole run, in which another thread of the rank is in "
        "a data operation",
    ),
    Field(
        "negotiation",
        "the most frequent call in which threads negotiate; empty: none do, or `is_driven`",
    ),
    Field(
        "cycle_ns",
        "`idle_ns` / `rounds_idle`: the mean time from an idle round to the next one, over the "
        "ranks that negotiate; null: no idle rounds are recorded",
    ),
    Field(
        "rounds_per_step",
        "`rounds` / `steps`, `rounds_idle` / `rounds`, over the ranks; null: no rounds are "
        "recorded",
    ),
    Field("idle_rounds_share", ""),
    Field(
        "background_bulk_bytes",
        "volume and time of the bulk collectives, and time of the control collectives, on the "
        "thread that negotiates, of the whole run: means over the ranks that have one. Between "
        "none and all of the time is exposed; null: no negotiation",
    ),
    Field("background_bulk_ns", ""),
    Field("background_control_ns", ""),
    Field(
        "thread",
        "name of the thread that communicates most (of the driving thread, if `is_driven`)",
    ),
    Field("thread_is_main", ""),
    Field(
        "poll_share",
        'time in polls / time in MPI, of the whole run; all threads, and main threads. From 1 % '
        'of the latter on, text says "outside MPI or in polls"',
    ),
    Field("main_poll_share", ""),
    Field(
        "slowest_ranks",
        "the ranks that [late](#late) names (null: none), in how many steps, mean of their "
        "lead in these (by arrival: median of the distance from the mean of the others). Of ranks "
        "with less than half of the waiting, a step counts if they cause 30 % of its waiting",
    ),
    Field("slowest_steps", ""),
    Field("slowest_lead_ns", ""),
    Field("slowest_why", "why no rank is named, in words: late's verdict, mostly; empty: one is"),
    Field(
        "judged_steps",
        "number of judged steps; by arrival: of steps after the warm-up on several ranks",
    ),
    Field(
        "trend",
        "`none`, `slower`, `faster`, `unknown` (fewer than 20 steps). Not `none` if trend_p is "
        "below 1 %, and the first and last tenth differ in the same direction, by 2 % of the "
        "median step or more",
    ),
    Field(
        "trend_p",
        "Kendall's test: the steps after the warm-up are divided, in order of time, into up to 16 "
        "parts with the same number of steps, 3 or more. The probability that the medians of the "
        "parts, in a random order, have as large a difference between the pairs that rise and "
        "those that fall, or a larger one, of either sign. Exact, by counting permutations; null: "
        "unknown",
    ),
    Field(
        "first_tenth_ns",
        "median of the first and of the last tenth of the steps after the warm-up. Nothing is "
        "said of steps that were not run",
    ),
    Field("last_tenth_ns", ""),
    Field("outliers", "number of outliers; the duration above which a step is one"),
    Field("outlier_limit_ns", ""),
    Field(
        "nccl_host_ns",
        "time of NCCL's calls on the host, all threads; steps without any count as 0; null: none "
        "in any step",
    ),
    Field(
        "nccl_device_ns",
        "time during which at least one operation of NCCL ran on the device; over step_ns; null: "
        "not all operations of the steps were timed (sends and receives have no times of their "
        "own)",
    ),
    Field("nccl_device_share", ""),
    Field(
        "gpu_steps",
        "steps after the warm-up during which the activity of some GPU is completely known, see "
        "[gpu](#gpu)",
    ),
    Field(
        "gpu_step_ns",
        "medians over these of their time, exposed communication on the GPU, and its share; null: "
        "there are none",
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
        "its number (the program's own, if it marks steps; else among those known); its earliest "
        "begin on a rank, since the run's start",
        "step",
    ),
    Field("begin_ns", "", "begins"),
    Field("step_ns", "as above, means over the ranks", "time"),
    Field("communication_ns", "", "communication", of_row=communication_text),
    Field("file_ns", "", "files", lambda value: duration(value or None)),
    Field("outside_ns", "", "outside MPI"),
    Field("background_ns", "", "other thread", lambda value: duration(value or None)),
    Field("ranks", "number of ranks on which this step is known"),
    Field(
        "slowest_rank", "see above; null: none, or neither judged nor compared by arrival",
        "slowest", lambda value: NO_VALUE if value is None else f"rank {value}",
    ),
    Field("lead_ns", ""),
    Field("is_complete", "see above"),
    Field("is_warm_up", ""),
    Field("is_outlier", ""),
    Field(
        "why",
        "for an outlier: calls in it that fewer than a tenth of the steps have; and what explains "
        "at least half of the excess: time outside MPI (if `is_driven`), or a call (of the driving "
        "thread, if `is_driven`), on how many ranks, and a mean over these; if neither does, that "
        "none does. A rank is named only if it is the `slowest_rank` and its `lead_ns` at least "
        "half of the excess",
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
