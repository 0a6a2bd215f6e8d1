"""Every number that decides what a report names, says or refuses, in one table.

tests/report/test_thresholds.py shows each from both sides: what is said just below it, and just
above. docs/TRUTH.md prints the table (`python3 -m commprof_report.base.thresholds`).
"""

from __future__ import annotations

from typing import NamedTuple


class Threshold(NamedTuple):
    name: str  # the room, and what is compared
    value: float
    unit: str  # of the value
    why: str
    below: str  # what the test's example comes to with a value just below
    above: str  # and just above


# fmt: off
TABLE = (
    # late: who is waited for
    Threshold("late.covered", 0.5, "share of the time inside MPI that was split",
              "what most of the time is unknown of has no verdict", "unknown", "transfer"),
    Threshold("late.negotiated", 0.5, "share of the time inside MPI on threads that negotiate",
              "ranks that agree first arrive together whoever is late", "transfer", "unknown"),
    Threshold("late.notable", 0.01, "share of the counted time",
              "nobody can gain notably from less", "little", "transfer"),
    Threshold("late.blocks", 8, "blocks of late arrivals",
              "fewer cannot name one of two ranks: 2 x 2^-7 is more than 1 %", "unknown", "spread"),
    # late: who is named
    Threshold("late.level", 0.01, "probability that chance alone shows as much",
              "of 100 healthy runs one may accuse somebody", "rank 1", "nobody"),
    Threshold("late.most-blocks", 16, "blocks of late arrivals",
              "what delays an arrival delays the next ones, too: longer blocks are independent",
              "a block each", "some in one block"),
    Threshold("late.ranks-per-named", 4, "ranks for each rank that is named",
              "where more are late, the others are early instead", "nobody", "ranks 0-1"),
    Threshold("late.majority", 0.5, "share of the waiting that the named ranks cause",
              "ranks are to blame for what they cause most of", "nobody", "rank 0"),
    Threshold("late.notably-more", 0.25, "share of the waiting, beyond that of the ranks",
              "a host, or a rank for each call, says more than the rank alone", "rank 0",
              "ranks 0-3"),
    Threshold("late.shortest", 1_000, "ns that others wait at a late arrival",
              "the profiler adds up to 0.1 us to a call, and ranks that differ in it come later at"
              " each call", "spread", "imbalance"),
    Threshold("late.slight", 0.1, "share of the mean over the blocks",
              "four blocks in which a rank is late are no evidence because of twelve in which it"
              " hardly is", "nobody", "rank 1"),
    Threshold("late.nearly-all", 0.9, "share of what ranks cause",
              "what occurs in half of the run is no property of the rank", "in both halves",
              "in the second half"),
    Threshold("late.concentrated", 0.1, "share of the late arrivals",
              "a rank that is late a few times is not a slow rank", "few", "many"),
    Threshold("late.turns", 16, "late arrivals", "fewer are in some order by chance", "no order",
              "in turn"),
    Threshold("late.most-of-turns", 0.75, "share of the late arrivals that one rank has",
              "that rank is late, the others take no turns", "in turn", "no order"),
    Threshold("late.regular", 0.9, "share of the late arrivals that the period before predicts",
              "one disturbance in ten is usual", "no order", "in turn"),
    Threshold("late.periods-seen", 4, "periods", "fewer repeat by chance", "no order", "in turn"),
    Threshold("late.period", 2, "times the ranks", "a longer order is no turn of ranks", "in turn",
              "no order"),
    Threshold("late.rest", 0.005, "share of the time inside MPI",
              "nobody need care about less", "silent", "said"),
    Threshold("late.wildcards", 0.5, "share of the messages whose other side is not known",
              "where most have no number, wildcards are the reason", "no reason", "wildcards"),
    Threshold("late.unfinished", 0.005, "share of the counted time of a rank that runs",
              "any rank that runs may be inside a call", "runs", "has not returned"),
    Threshold("late.clock-error", 0.5, "share of the median duration of a call",
              "a host that is late by the same amount in all calls looks like a clock that is off,"
              " and causes an error of half the wait", "split", "not split"),
    Threshold("late.contradiction", 10_000, "ns by which a message is received before it is sent",
              "times of one clock may contradict each other by as much", "matched", "not matched"),
    Threshold("late.fewer-messages", 8, "messages of one rank for each one of another",
              "ranks that send so differently do different work", "compared", "not compared"),
    Threshold("late.causes", 16, "causes of one wait", "chains would make them ever more",
              "all known", "some not known"),
    Threshold("late.least-cause", 0.001, "share of a wait", "chains would make them ever more",
              "not known", "known"),
    Threshold("late.mark-lead", 0.02, "share of the step", "nobody can gain notably from less",
              "nobody", "rank 0"),
    Threshold("late.mark-errors", 2.0, "errors of the clocks", "both ranks' times may be off",
              "nobody", "rank 0"),
    Threshold("late.mark-scatter", 2.0, "median absolute deviations of a rank's distance",
              "of ranks that scatter alike some are behind by one", "nobody", "rank 0"),
    Threshold("late.communicated", 0.5,
              "share of the time in visits during which another thread communicates",
              "a region that waits for communication begins with it", "another region",
              "a wait region"),
    # calls: bulk, control and negotiation
    Threshold("calls.rounds", 20, "rounds of a thread", "fewer are no negotiation", "no thread",
              "a thread that negotiates"),
    Threshold("calls.distributed", 2, "messages of a size from a root",
              "data that is distributed once is no repeated traffic", "no threshold", "8 B"),
    Threshold("calls.most-control-bytes", 65_536, "bytes of a message", "control is small",
              "control", "bulk"),
    Threshold("calls.control-share", 0.01, "share of all bytes up to a size",
              "frameworks coordinate with next to no bytes", "control", "bulk"),
    Threshold("calls.control-jump", 4, "times the next smaller size",
              "sizes of control are near each other", "control", "bulk"),
    Threshold("calls.control-bytes", 64, "bytes of a message",
              "where a call has no threshold of its own, that of a few numbers", "control", "bulk"),
    Threshold("calls.data-share", 0.5, "share of the calls of a size that are control by type",
              "a cell is what most of its calls are", "bulk", "control"),
    Threshold("calls.idle-rounds", 10, "rounds without bulk",
              "a quarter of fewer is alike by chance", "no cycle", "5.00 ms"),
    Threshold("calls.alike", 1.25, "ratio of two rounds' times",
              "a cycle that is kept varies by less", "5.56 ms", "no cycle"),
    Threshold("calls.regular", 0.25, "share of the rounds that are alike",
              "at random times it is 0.08", "no cycle", "5.00 ms"),
    # gpu
    Threshold("gpu.late", 0.005, "share of the time summed up for a device",
              "sums that lack more have no idle time", "complete", "incomplete"),
    Threshold("gpu.empty-window", 1_000_000_000, "ns of tracing without a record",
              "a GPU in use has some each second", "usual", "empty"),
    # run
    Threshold("run.off", 0.001, "share of the wall time without counting",
              "setting up and ending take time that is not counted, too", "all calls", "off"),
    Threshold("run.identity-digits", 4, "digits of a communicator's identity",
              "fewer may begin several identities", "unknown", "found"),
    # base
    Threshold("base.all", 0.9995, "share", "the rest is how clocks are read", "98.0 %", "all"),
    Threshold("base.missed-steps", 8, "steps that one rank has and another lacks",
              "beyond, the nearest in time is surer than the order", "in order", "by time"),
    Threshold("base.several-steps", 1.5, "times the time from a step to the next",
              "a longer one is two of the other's", "matched", "left out"),
    Threshold("base.same-step", 0.5, "share of a step between two ends",
              "the next step's end is nearer", "the same steps", "other steps"),
    Threshold("base.slow-start", 1.5, "times the median step", "steps vary by less after the start",
              "1 step", "2 steps"),
    Threshold("base.warm-up", 0.1, "share of the steps",
              "a run that is slow for longer has changed, not warmed up", "all slow steps",
              "not all slow steps"),
    Threshold("base.siblings", 4, "communicators of a family",
              "the band of fewer shows nothing that a list does not", "no band", "a band"),
    Threshold("base.siblings-judged", 8, "communicators of a family",
              "the band of fewer may be narrow by chance", "nobody", "the last"),
    Threshold("base.sibling-band", 3.0, "times the band of all others",
              "what is outside by less may be scatter, too", "nobody", "the last"),
    Threshold("base.sibling-gap", 0.25, "share of the siblings' median time",
              "nobody need care about less", "nobody", "the last"),
    # steps
    Threshold("steps.small", 0.9, "share of small collectives of one kind that are in steps",
              "frameworks and solvers make small ones for other ends, too", "refused", "steps"),
    Threshold("steps.timed", 0.9, "share of NCCL's operations that have device times",
              "with intermittent tracing, steps would seem long and short", "host", "device"),
    Threshold("steps.far-out", 5.0, "median absolute deviations from the median step",
              "steps that scatter alike are seldom farther out", "usual", "outlier"),
    Threshold("steps.outlier", 1.1, "times the median step", "nobody need care about less",
              "usual", "outlier"),
    Threshold("steps.foreign", 0.1, "share of the steps that have a call",
              "what every tenth step has belongs to steps", "foreign", "usual"),
    Threshold("steps.explains", 0.5, "share of an outlier's excess over the median step",
              "less is not the reason", "unexplained", "explained"),
    Threshold("steps.most-of-run", 0.75, "share of the run's waiting that is in steps",
              "who is late in the run is then late in steps", "its own test", "the run's verdict"),
    Threshold("steps.trend-steps", 20, "steps", "a tenth of fewer is one step", "unknown",
              "slower"),
    Threshold("steps.trend-parts", 16, "parts of a run",
              "the medians of shorter ones scatter, and 16 suffice for 1 %", "3 steps a part",
              "4 steps in some"),
    Threshold("steps.trend-part", 3, "steps in a part", "the median of fewer is no middle",
              "fewer parts", "16 parts"),
    Threshold("steps.trend-notable", 0.02, "share of the median step by which steps changed",
              "nobody need care about less", "none", "slower"),
    Threshold("steps.shown", 0.0005, "share of the step", "it would read 0.0", "silent", "said"),
    Threshold("steps.polls", 0.01, "share of polls in the time inside MPI of main threads",
              "polls have no samples, so that they seem to be outside", "outside MPI",
              "outside MPI or in polls"),
    Threshold("steps.sure", 0.9, "share of the calls that are in steps",
              "a tenth may be checkpoints and the like", "likely", "sure"),
    Threshold("steps.likely", 0.75, "share of the calls that are in steps",
              "a quarter that fits no step is no exception", "doubtful", "likely"),
    Threshold("steps.path", 0.5, "share of a critical path that was split",
              "a path of which most is unknown leads nowhere", "no path", "a path"),
    Threshold("steps.tracing-steps", 10, "steps with tracing, and without it",
              "medians of fewer scatter too much", "unknown", "10.0 %"),
    # roles: what a communicator is for; pipelines
    Threshold("roles.control-bytes", 1024, "bytes",
              "tensors are larger, control messages smaller", "control only", "unclear"),
    Threshold("roles.control-share", 0.01, "share of the run's bytes",
              "small messages that carry more are no mere control", "control only", "unclear"),
    Threshold("roles.purpose", 0.5, "share of a communicator's bytes",
              "its purpose is that of the calls that carry most", "unclear", "I/O"),
    Threshold("roles.often", 2.0, "times the collectives of a rank's other groups",
              "tensor-parallel groups exchange in each layer, replicas once a step",
              "unclear", "tensor-parallel group"),
    Threshold("roles.bulk", 0.01, "share of the bytes of the pair that exchanges most",
              "less is no link of a pipeline", "no link", "link"),
    Threshold("roles.messages", 8, "messages of a pair, in both directions",
              "one hand-over at the end is no pipeline", "no link", "link"),
    Threshold("roles.direction", 0.01, "difference of both directions, share of the bytes",
              "a smaller difference gives no direction", "either way", "forward"),
    Threshold("roles.slow-stage", 0.02, "of the counted time, as the lead outside MPI",
              "a stage that is hardly ahead of the others does not keep them waiting",
              "no slow stage", "slow stage"),
    # advice: what is found, and how sure it is
    Threshold("advice.notable", 0.005, "share of the counted time",
              "what could save less is not said", "nothing", "a finding"),
    Threshold("advice.many", 20, "calls a rank",
              "fewer are set-up", "nothing", "a finding"),
    Threshold("advice.background", 0.5, "share of a call's time beside the main thread",
              "compute hides what most calls on a background thread take", "sure", "possible"),
    Threshold("advice.observations", 20, "observations of a size",
              "the median of fewer is not known", "not judged", "judged"),
    Threshold("advice.knee", 1.5, "times the best time a byte",
              "sizes up to this are large enough", "large enough", "too small"),
    Threshold("advice.tiny", 64, "bytes",
              "an Allreduce up to this is a value and no tensor", "a value", "a tensor"),
    Threshold("advice.likely", 0.5, "of the time, as the least or the typical time of all calls",
              "if most is that of a few long calls, others may last as long", "possible", "likely"),
    Threshold("advice.padded", 2.0, "times the size",
              "padding that adds more than the bytes themselves is no saving to count on",
              "pad", "nothing"),
    Threshold("advice.jump", 1.5, "times as much longer as the message is larger",
              "a smaller jump may be that of the caches", "nothing", "a jump"),
    Threshold("advice.clear-jump", 4.0, "times as much longer, after pauses, as in bursts",
              "the fastest first bucket of training steps took up to 2 times as long",
              "nothing", "a jump"),
    Threshold("advice.waiting", 0.1, "share of the counted time",
              "some waiting is in every run", "little waiting", "much waiting"),
    Threshold("advice.cycle", 0.25, "of a step",
              "gradients wait for half a cycle, so for an eighth of the step", "short", "long"),
    Threshold("advice.overlap", 0.1, "share of the operations' time that is not blocked",
              "a program that overlaps hides more", "overlaps with nothing", "overlaps"),
    Threshold("advice.more-bcasts", 0.1, "share of the Reduces",
              "some Bcasts are made at the start or at the end", "pairs", "no pairs"),
    Threshold("advice.staged", 0.1, "of the bytes in MPI calls",
              "copies of a batch of data or of a loss come to less", "not staged", "staged"),
    Threshold("advice.copies-alike", 0.5, "of the copies in the other direction",
              "what is staged goes both ways", "not staged", "staged"),
    # stuck
    Threshold("stuck.after", 5.0, "s inside a call, if --after does not say otherwise",
              "an ordinary step takes less", "running", "stuck"),
    # commands
    Threshold("commands.finalize", 100_000_000, "ns of waiting in MPI_Finalize",
              "processes end that far apart by chance", "silent", "said"),
    Threshold("commands.uncounted", 0.005, "share of the wall time without counting",
              "nobody need care about less", "wall time", "counted time"),
    Threshold("commands.top", 0.02, "share of the interval between two screens",
              "ranks differ by as much from screen to screen", "all ranks about the same",
              "rank 0"),
    Threshold("commands.fusion-time", 0.1, "share of the time in a call",
              "two runs of the same differ by as much", "about the same", "10.2 % less"),
    Threshold("commands.fusion-messages", 2.0, "times as many messages",
              "two runs that fuse alike differ by less", "by chance", "fewer"),
    Threshold("commands.calls-in-step", 0.05, "calls in a step",
              "less than one in 20 steps is no part of a step", "silent", "said"),
    Threshold("commands.ratio", 1.5, "times as much time", "47 % is easier to read than 1.5 times",
              "32.0 % less", "1.5 times less"),
    # exporters: Horovod's timeline and PyTorch's traces
    Threshold("exporters.ready-lead", 0.02, "share of the time from a negotiation to the next",
              "nobody can gain notably from less", "nobody", "rank 1"),
    Threshold("exporters.ready-cycles", 2.0, "cycles of negotiation",
              "rank 0 hears of each rank once in a cycle, of itself first", "nobody", "rank 1"),
    Threshold("exporters.ready-known", 0.5, "share of the negotiations whose last rank is known",
              "Horovod's cache hides the others, not by chance", "nobody", "rank 1"),
    Threshold("exporters.often", 0.5, "share of the most negotiations of any tensor",
              "others do not occur in each step", "the other", "the longest"),
    Threshold("exporters.clock-step", 100_000, "ns by which a wall clock was set",
              "events out of place by less are seen in place", "silent", "said"),
    Threshold("exporters.earliest", 10**18, "ns from 1970 to a trace's first event",
              "times before 2001 do not count from 1970", "refused", "placed"),
    # compare: whether sides differ, and whether that may be asked
    Threshold("compare.level", 0.95, "confidence of all verdicts together",
              "usual; --level", "unknown", "same"),
    Threshold("compare.min-effect", 0.02, "ratio of a side to the reference, less 1",
              "smaller differences rarely matter; --min-effect", "same", "more"),
    Threshold("compare.until", 2 / 3, "p, over 1 - level, with --until",
              "without it, blocks until intervals are narrow find up to 8 % where 5 % is claimed",
              "same", "unknown"),
    Threshold("compare.covered", 0.5, "share of the time inside MPI that was split",
              "transfer stands for the time if it is known for most of it", "time", "transfer"),
    Threshold("compare.nearly-all", 0.9, "share of the time inside MPI that was split",
              "the rest cannot hide much", "note", "silent"),
    Threshold("compare.estimated", 0.05, "share of waiting and transfer that is estimated",
              "less changes the second digit at most", "silent", "note"),
    Threshold("compare.clock-error", 0.1, "error of the clocks, over the change per call",
              "less changes the second digit of the change at most", "silent", "note"),
    Threshold("compare.small", 0.01, "share of the time of all rows",
              "smaller rows are many, and each explains little", "other", "a row of its own"),
    Threshold("compare.work", 0.01, "difference of the mean calls or bytes of a row",
              "less explains no difference that matters", "compared", "work"),
    Threshold("compare.same-steps", 0.01, "difference of the steps, or of the bytes of a step",
              "the first and last steps may be seen in part", "alike", "differ"),
    Threshold("compare.lost-steps", 1, "difference of the steps",
              "a step may be lost at either end", "alike", "differ"),
    Threshold("compare.aside-calls", 0.5, "calls of a rank in a step",
              "calls that most steps lack are no part of them", "aside", "work"),
    Threshold("compare.aside-bytes", 0.01, "share of the bytes of the run",
              "calls that carry more are work, however rare", "aside", "work"),
    Threshold("compare.counted", 0.05, "difference of the counted parts of the wall time",
              "other parts of a program are other work", "compared", "partial"),
    Threshold("compare.switches", 10, "involuntary switches a second of a rank",
              "each costs a time slice of some milliseconds", "compared", "disturbed"),
    Threshold("compare.few-switches", 1, "involuntary switches a second of a rank",
              "fewer do not matter, however many times the other side's they are",
              "silent", "note"),
    Threshold("compare.times-the-switches", 2, "times the switches of the other side",
              "less is no other machine", "silent", "note"),
    Threshold("compare.host-sets", 3, "sets of hosts of a side",
              "from there on hosts are as random as runs", "hosts", "compared"),
    Threshold("compare.slow-host", 1.05, "times the median of the other hosts",
              "hosts of one kind differ by less", "silent", "note"),
    Threshold("compare.host-chance", 0.01, "p of a slow host, times hosts and measurements",
              "a site has many hosts that are not slow", "note", "silent"),
    Threshold("compare.settling", 0.5, "share of the runs of a side whose steps settle",
              "it is the program's or the library's, not a run's", "silent", "note"),
    Threshold("compare.trend", 3, "standard deviations of the rank correlation with time",
              "1 of 370 comparisons without a trend has more", "silent", "note"),
    Threshold("compare.outlier", 5, "standard deviations from the median of a side",
              "1 of 2 million normal runs is so far off", "silent", "note"),
    Threshold("compare.outlier-runs", 8, "runs of a side",
              "the deviation of fewer is too uncertain", "silent", "note"),
    Threshold("compare.scatter", 3, "pairs", "the scatter of two is not known",
              "silent", "advice"),
    Threshold("compare.most-pairs", 60, "pairs", "an hour of runs of 30 s; more are not asked for",
              "another block", "no more"),
    Threshold("experiment.failures", 3, "failed runs of an arm in a row",
              "the next one would fail, too", "goes on", "ends"),
)
# fmt: on

_VALUES = {each.name: each.value for each in TABLE}


def threshold(name: str) -> float:
    return _VALUES[name]


def whole(name: str) -> int:
    """A threshold that is counted."""
    value = _VALUES[name]
    assert isinstance(value, int), f"{name} is not a whole number"
    return value


def as_markdown() -> str:
    """The table of docs/TRUTH.md."""
    rows = (
        f"| `{each.name}` | {each.value:,} | {each.unit} | {each.why} | {each.below} |"
        f" {each.above} |\n"
        for each in sorted(TABLE)
    )
    return (
        "| name | value | unit | why | just below | just above |\n"
        "| --- | ---: | --- | --- | --- | --- |\n" + "".join(rows)
    )


if __name__ == "__main__":
    print(as_markdown(), end="")
