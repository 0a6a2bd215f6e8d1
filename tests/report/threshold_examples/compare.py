"""Sides of runs: whether they differ, and whether that may be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from commprof_report.compare import comparison, refusals, sides as table_of
from commprof_report.compare.figures import Figures, Key, NO_GROUP, RankRow, Row, StepWork
from commprof_report.compare.judge import Rules, Shift, contrast, outcome
from commprof_report.compare.sides import RowTable, Side
from commprof_report.experiment.plan import FAILED, Run
from commprof_report.experiment_main import gives_up
from commprof_report.steps.long_steps import Trend

WHO = {"rank": 0, "host": "node00", "affinity": "0", "state": "finalize", "threads": 1}
TIMES = {"wall_ns": 1_000, "counted_ns": 1_000, "start_unix_ns": 0, "core_wait": 0.0}
RANK = RankRow(unrecorded_calls=0, **WHO, **TIMES)  # type: ignore[arg-type]
STEADY = Trend("none", 1.0, 100.0, 100.0)
RULES = Rules()
ONE = RULES.of_one(1, True)


def run(**differing: object) -> Figures:
    """One rank."""
    unknown = "step_ns wait_ns transfer_ns time_ns wall_ns crowding steps".split()
    empty = "facts labels canaries nccl_algorithms".split()
    none = "start_unix_ns missing estimate_share error_ns negotiates".split()
    usual = {"path": Path("run"), "run_id": "", "world_size": 1, "ranks": [RANK], "coverage": 1.0}
    usual |= {"step_trend": STEADY, **dict.fromkeys(unknown), **dict.fromkeys(none, 0)}
    usual |= {name: {} for name in empty}
    rows: Any = differing.pop("rows", {})
    parts = {(each, "bulk"): row for each, row in rows.items()}
    return Figures(**{**usual, "parts": parts, **differing})  # type: ignore[arg-type]


RUN = run()


def side(runs: Iterable[Figures], name: str = "a") -> Side:
    return Side(name, list(runs), None, 0)


def rank(**differing: object) -> RankRow:
    return RANK._replace(**differing)  # type: ignore[arg-type]


def key(call: str) -> Key:
    return Key(f"MPI_{call}", NO_GROUP, 8, "host", "call")


def row(total_ns: float = 1_000, count: int = 1, volume_bytes: float = 8) -> Row:
    return Row("collective", "mpi", count, round(volume_bytes), round(total_ns), 1, 1_000)


def note(found: Iterable[str]) -> str:
    return "note" if list(found) else "silent"


def refused(found: Iterable[refusals.Refusal]) -> str:
    return next((each.kind for each in found if each.kind != refusals.NOTED), "compared")


def outcome_of(p: float, rules: Rules) -> str:
    """The outcome for a shift that is not found."""
    return outcome(Shift(0.0, -1.0, 1.0, 1.0), p, rules.level)


def of_small_rows(share: float) -> str:
    small = row(share * 1e6)
    rows = {key("Bcast"): row((1 - 2 * share) * 1e6), key("Reduce"): small, key("Scan"): small}
    sides = [side([run(rows=rows)]), side([run(rows=rows)], "b")]
    table = RowTable(sides, list(rows), "time")
    *_, last = table.tested(ONE, sides[1], shows_all=False, is_found=False)
    return "other" if last.call == "other" else "a row of its own"


def of_calls(difference: float) -> str:
    """In ten million calls."""
    many = round(1e7 / (1 - difference))
    rows = [{key("Bcast"): row(count=count, volume_bytes=0)} for count in (10_000_000, many)]
    sides = [side([run(rows=each)], name) for each, name in zip(rows, "ab")]
    return refused(refusals._work(sides, [key("Bcast")]))


def of_steps(difference: int) -> str:
    counts = 10, 10 + difference
    sides = [side([run(steps=StepWork(count, None))]) for count in counts]
    return "differ" if table_of.step_difference(sides) else "alike"


def aside(calls: float, byte_share: float) -> str:
    """A call beside the steps, of a million."""
    rows = {
        key("Bcast"): row(count=round(calls * 1e6), volume_bytes=byte_share * 1e6),
        key("Allreduce"): row(volume_bytes=(1 - byte_share) * 1e6),
    }
    found = run(rows=rows, steps=StepWork(1_000_000, None))
    return "aside" if table_of.calls_aside([found], [key("Bcast")]) else "work"


def of_counted(difference: float) -> str:
    parts = [1_000_000, round((1 - difference) * 1_000_000)]
    return refused(
        refusals._partial([run(ranks=[rank(wall_ns=1_000_000, counted_ns=each)]) for each in parts])
    )


def waiting(core_wait: float) -> Figures:
    return run(ranks=[rank(core_wait=core_wait)])


def of_disturbed(disturbed: Figures) -> str:
    """One of eight blocks."""
    sides = [side([waiting(0.0)] * 7 + [each], name) for each, name in zip((disturbed, RUN), "ab")]
    return note(
        each.what for each in refusals.disturbances(ONE, sides) if each.kind == refusals.NOTED
    )


def of_disturbed_blocks(share: float) -> str:
    bad = round(share * 100)
    sides = [side([waiting(0.1)] * bad + [waiting(0.0)] * (100 - bad), name) for name in "ab"]
    return refused(refusals.disturbances(ONE, sides))


def of_waits(share: float, times: float) -> str:
    sides = [side([waiting(each)] * 8, name) for each, name in zip((share, share * times), "ab")]
    return refused(refusals.disturbances(ONE, sides))


def of_hosts(sets: int) -> str:
    """Two of each side ran on the same nodes."""

    def runs(name: str) -> list[Figures]:
        return [run(ranks=[rank(host=f"{name}{place}")]) for place in (*range(sets), 0)]

    return refused(refusals._hosts([side(runs(name), name) for name in "ab"]))


def of_coarse_clocks(part: float) -> str:
    """A call of a rank takes a thousand ns more."""
    split = Row("collective", "mpi", 1, 8, 2_000, 1, 1_000, 1_000.0, 2_000)
    of_run = run(error_ns=part * 1_000, rows={key("Bcast"): split})
    figure = comparison._figure(ONE, ("a", "b"), "transfer", [1_000] * 8, [2_000] * 8)
    return note(refusals.coarse_clocks(side([of_run] * 8), side([of_run] * 8), figure, 0.0))


def of_settling(share: float) -> str:
    settled = Trend("faster", 0.001, 200.0, 100.0)
    found = round(100 * share)
    runs = [run(step_trend=settled)] * found + [run()] * (100 - found)
    return note(refusals._settling(side(runs), 0.0))


def of_failures(count: int) -> str:
    failed = Run(1, "a", "block-01/a", FAILED, 1.0, "exit status 7")
    return "ends" if gives_up([failed] * count) else "goes on"


EXAMPLES: dict[str, Callable[[Any], str]] = {
    "compare.level": lambda level: outcome_of(1 - level, RULES),
    "compare.min-effect": lambda effect: contrast([1.0] * 8, [1 + effect] * 8, rules=ONE).outcome,
    "compare.covered": lambda share: comparison._default_metric(
        [side([run(coverage=share)])], RULES
    ),
    "compare.nearly-all": lambda share: note(
        refusals.notes_of_sides([side([run(coverage=share)])], "time", RULES, 0)
    ),
    "compare.estimated": lambda share: note(
        refusals.notes_of_sides([side([run(estimate_share=share)])], "transfer", RULES, 0)
    ),
    "compare.clock-error": of_coarse_clocks,
    "compare.small": of_small_rows,
    "compare.work": of_calls,
    "compare.same-steps": lambda part: "alike" if table_of.alike(1 - part, 1.0) else "differ",
    "compare.lost-steps": of_steps,
    "compare.aside-calls": lambda calls: aside(calls, 0.0),
    "compare.aside-bytes": lambda share: aside(0.1, share),
    "compare.counted": of_counted,
    "compare.disturbed": lambda share: of_disturbed(waiting(share)),
    "compare.disturbed-blocks": of_disturbed_blocks,
    "compare.few-waits": lambda share: of_waits(share, 2.001),
    "compare.times-the-waits": lambda times: of_waits(0.012, times),
    "compare.host-sets": of_hosts,
    "compare.settling": of_settling,
    "experiment.failures": of_failures,
}
