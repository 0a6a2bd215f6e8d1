"""Statements of the reporter's commands about the same quantities. One question has one answer,
whoever is asked."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpi import reporter
from mpi.reporter import rows_of_ended as rows

from .ranks import expanded

Statements = dict[str, dict[str, object]]  # by quantity and command


ROUNDING = 1e-6  # relative; and a nanosecond for each of some terms
TERMS = 32
MOST_WORDS = 25  # of the headline
TIMES = re.compile(r"_ns\b|^time |^waiting ")


def agree(quantity: str, answers: Iterable[object]) -> bool:
    """Only times may be off by nanoseconds; numbers of calls, bytes and truths are equal."""
    first, *others = answers
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        slack = max(TERMS if TIMES.search(quantity) else 0, ROUNDING * abs(first))
        return all(
            isinstance(other, (int, float)) and abs(other - first) <= slack for other in others
        )
    return others == [first] * len(others)


def words(text: str) -> str:
    """Without the markup and the breaks of lines, with the units of text."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).replace("µs", "us").split())


def metrics(folder: Path) -> dict[str, float]:
    """Sums of Prometheus's metrics over all labels."""
    sums: dict[str, float] = defaultdict(float)
    for name, value in re.findall(
        r"^(\w+)\{.*\} (\S+)$", reporter.text("export", "--format", "prometheus", folder), re.M
    ):
        sums[name] += float(value)
    return sums


def sentence_of(text: str, head: str) -> str:
    """A fact of a text report, its lines joined."""
    found = re.search(rf"^{head} +(.*(?:\n {{16}}.*)*)", text, re.M)
    return " ".join(found[1].split()) if found else ""


def summed(key: str, command: str, folder: Path, *options: str) -> float:
    return sum(row[key] or 0 for row in rows(command, folder, *options))


def waiting(folder: Path) -> Iterator[tuple[str, str, object]]:
    """Quantity, command, answer."""
    (run,) = rows("late", folder, "--by", "run")
    (summary,) = rows("summary", folder)
    for name, in_summary in (
        ("verdict", "wait_verdict"),
        ("coverage", "wait_coverage"),
        ("late_ranks", "late_ranks"),
    ):
        yield name, "late", run[name]
        yield name, "summary", summary[in_summary]
    for name in ("wait_share", "late_gain_ns"):
        yield name, "late", run[name]
        yield name, "summary", summary[name]
    for quantity in ("wait_ns", "transfer_ns"):
        for by in ("run", "rank", "host", "call"):
            yield quantity, f"late --by {by}", summed(quantity, "late", folder, "--by", by)
    yield "wait_ns", "late --by state", summed("wait_ns", "late", folder, "--by", "state")
    yield "wait_ns", "late, by cause", summed("caused_ns", "late", folder) + run["unknown_cause_ns"]
    stages = {
        row["rank"]: row["wait_ns"]
        for row in rows("pipeline", folder)
        if row["wait_ns"] is not None
    }
    yield "waiting of the stages", "pipeline", sum(stages.values())
    yield (
        "waiting of the stages",
        "late",
        sum(row["wait_ns"] for row in rows("late", folder) if row["rank"] in stages),
    )
    measured = metrics(folder)
    yield "wait_ns", "prometheus", measured["commprof_wait_seconds"] * 1e9
    if "commprof_caused_wait_seconds" in measured:  # it has no causes where arrival shows none
        causes = (
            measured["commprof_caused_wait_seconds"]
            + measured["commprof_unknown_cause_wait_seconds"]
        )
        yield "wait_ns", "prometheus by cause", causes * 1e9
    for command in ("late", "summary", "advise"):
        first = " ".join(reporter.text(command, folder).partition("\n\n")[0].split())
        yield "headline", command, first if len(first.split()) <= MOST_WORDS else "too long"
    named = [
        row
        for row in rows("advise", folder)
        if row["rule"] in ("imbalance", "slow_link") and row["found"]
    ]
    is_of_cores = "Give each rank its own first" in first  # then nobody is named in words
    yield (
        "whether late ranks are named",
        "late",
        not is_of_cores and (run["late_ranks"] is not None or run["verdict"] == "by-call"),
    )
    yield "whether late ranks are named", "advise", bool(named)
    if run["late_ranks"] is not None and named and named[0]["rule"] == "imbalance":
        yield "late_gain_ns", "advise", named[0]["saving_ns"]
    yield "whether a rank did not end", "summary", summary["early_ended_ranks"] > 0
    yield (
        "whether a rank did not end",
        "ranks",
        any(row["state"] != "finalize" for row in rows("ranks", folder, "--per-rank")),
    )
    yield (
        "whether a rank did not end",
        "stuck",
        [row["what"] for row in rows("stuck", folder) if row["kind"] == "verdict"] != ["nothing"],
    )


def in_the_timeline(folder: Path, path: Path) -> Iterator[tuple[str, str, object]]:
    """Waiting is drawn as slices, if all calls are sampled, none is a poll, and clocks show it."""
    (run,) = rows("late", folder, "--by", "run")
    has_polls = any(row["polls"] for row in rows("calls", folder))
    if (run["sampled_share"] or 0) < 1 or run["estimate_share"] or has_polls:
        return
    reporter.text("export", "--format", "perfetto", "--output", path, folder)
    slices = [
        event
        for event in json.loads(path.read_text())["traceEvents"]
        if event.get("name", "").startswith("waiting for rank")
    ]
    yield "wait_ns", "perfetto", sum(event["dur"] for event in slices) * 1e3


# Quantities, and what says each: a command with options, and the key whose sum it is, without the
# rows that COLUMN!=VALUE leaves out.
TOTALS = """
count: summary count; calls count; ranks --per-rank count; ranks count
count without set-up: calls count family!=setup; traffic count; regions own_count
volume_bytes: summary volume_bytes; calls volume_bytes; sizes volume_bytes measure!=completion; \
    traffic volume_bytes; communicators volume_bytes; regions volume_bytes; \
    ranks --per-rank volume_bytes
total_ns with set-up: calls total_ns; ranks total_ns
total_ns: summary total_ns; calls total_ns family!=setup; late --by run total_ns; \
    ranks --per-rank mpi_ns; traffic total_ns; regions own_ns
setup_ns: summary setup_ns; ranks --per-rank setup_ns
counted_ns: ranks --per-rank counted_ns; late --by run counted_ns
wall_ns: ranks --per-rank wall_ns
sent_bytes: summary sent_bytes; peers bytes; ranks --per-rank sent_bytes
"""
METRICS = {  # of Prometheus, in this unit
    "count": ("commprof_calls_total", 1),
    "volume_bytes": ("commprof_bytes_total", 1),
    "total_ns with set-up": ("commprof_time_seconds_total", 1e9),
    "counted_ns": ("commprof_counted_seconds", 1e9),
    "wall_ns": ("commprof_wall_seconds", 1e9),
}


def totals(folder: Path) -> Iterator[tuple[str, str, object]]:
    for line in TOTALS.strip().splitlines():
        quantity, _, asked = line.partition(": ")
        for each in asked.split(";"):
            command, *options = each.split()
            leaves_out = options.pop().split("!=") if "!=" in options[-1] else ("", "")
            key = options.pop()
            found = rows(command, folder, *options)
            own = [row[key] or 0 for row in found if row.get(leaves_out[0]) != leaves_out[1]]
            yield quantity, " ".join(each.split()), sum(own)
    measured = metrics(folder)
    for quantity, (metric, unit) in METRICS.items():
        yield quantity, "prometheus", measured[metric] * unit
    (summary,) = rows("summary", folder)
    yield "total_ns with set-up", "summary", summary["total_ns"] + summary["setup_ns"]
    calls = rows("calls", folder)
    if not any(row["family"] == "rma" for row in calls):
        yield "sent_bytes", "peers --received", summed("bytes", "peers", folder, "--received")
    by_call = {row["call"]: row["total_ns"] for row in calls}
    for command in ("hvprof", "sizes", "ranks"):
        own_ns: dict[str, int] = defaultdict(int)
        for row in rows(command, folder):
            if row["measure"] != "completion":
                own_ns[row["call"]] += row["total_ns"]
        yield f"time in the calls of {command}", command, sum(own_ns.values())
        yield f"time in the calls of {command}", "calls", sum(by_call[call] for call in own_ns)
    most = max(by_call, key=by_call.__getitem__)
    yield f"count of {most}", "calls", sum(row["count"] for row in calls if row["call"] == most)
    words = ("--call", most, "--bytes", ":")
    yield f"count of {most}", "latency", summed("count", "latency", folder, *words)


def on_the_page(folder: Path, page: Path) -> Iterator[tuple[str, str, object]]:
    """Sentences of other commands are on the page, word for word."""
    reporter.text("html", folder, "--output", page)
    shown = words(page.read_text())
    for command in ("pipeline", "traffic") if rows("pipeline", folder) else ("traffic",):
        for line in reporter.text(command, folder).split("\n\n")[0].splitlines():
            said = line.split("  ")[-1].strip()  # without the head of the line
            yield f"{command}: {said}", command, True
            yield f"{command}: {said}", "html", said in shown
    first, *_ = reporter.text("late", folder).splitlines()
    yield "headline on the page", "late", True
    yield "headline on the page", "html", first in shown
    for command, head in (
        ("late", "Cause"),
        ("late", "Based on"),
        ("late", "Waiting"),
        ("steps", "Steps"),
        ("steps", "Slowest rank"),
    ):
        sentence = sentence_of(reporter.text(command, folder), head)
        if sentence:
            yield f"{head}: {sentence}", command, True
            # the page says once, at the top, as a sentence, why late names nobody
            once = words(sentence.removeprefix("none: "))
            yield f"{head}: {sentence}", "html", once in shown or once[1:] + "." in shown


def statements(folder: Path, page: Path) -> Statements:
    """All that can be compared."""
    found: Statements = defaultdict(dict)
    timeline = page.with_suffix(".json")
    for quantity, command, answer in (
        *waiting(folder),
        *totals(folder),
        *in_the_timeline(folder, timeline),
        *on_the_page(folder, page),
    ):
        found[quantity][command] = answer
    return found


def accused(folder: Path) -> dict[str, set[int]]:
    """Ranks that each command names as the one that the others wait for; without those that name
    nobody."""
    (run,) = rows("late", folder, "--by", "run")
    (steps,) = rows("steps", folder)
    stages = {row["rank"] for row in rows("pipeline", folder) if row["is_waited_for"]}
    found = {
        "late": set(expanded(run["late_ranks"])),
        "steps": set(expanded(steps["slowest_ranks"])),
        "pipeline": stages,
    }
    return {command: ranks for command, ranks in found.items() if ranks}
