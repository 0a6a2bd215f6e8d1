"""What the commands of the reporter say of the same quantities. One question has one answer, whoever is asked."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpi import reporter

from .ranks import expanded

Statements = dict[str, dict[str, object]]  # by quantity and command


ROUNDING = 1e-6  # relative; and a nanosecond for each of some terms
TERMS = 32


def agree(answers: Iterable[object]) -> bool:
    first, *others = answers
    if isinstance(first, (int, float)):
        return all(isinstance(other, (int, float)) and abs(other - first) <= max(TERMS, ROUNDING * first) for other in others)
    return others == [first] * len(others)


def words(text: str) -> str:
    """Without the markup, and without the breaks of lines."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def metrics(folder: Path) -> dict[str, float]:
    """Sums of Prometheus's metrics over all labels."""
    sums: dict[str, float] = defaultdict(float)
    for name, value in re.findall(r"^(\w+)\{.*\} (\S+)$", reporter.text("export", "--format", "prometheus", folder), re.M):
        sums[name] += float(value)
    return sums


def sentence_of(text: str, head: str) -> str:
    """A fact of a text report, its lines joined."""
    found = re.search(rf"^{head} +(.*(?:\n {{16}}.*)*)", text, re.M)
    return " ".join(found[1].split()) if found else ""


def waiting(folder: Path) -> Iterator[tuple[str, str, object]]:
    """Quantity, command, answer."""
    (run,) = reporter.rows("late", folder, "--by", "run")
    (summary,) = reporter.rows("summary", folder)
    for name, in_summary in (("verdict", "wait_verdict"), ("coverage", "wait_coverage"), ("late_ranks", "late_ranks")):
        yield name, "late", run[name]
        yield name, "summary", summary[in_summary]
    for name in ("wait_share", "late_gain_ns"):
        yield name, "late", run[name]
        yield name, "summary", summary[name]
    for quantity in ("wait_ns", "transfer_ns"):
        for by in ("run", "rank", "host", "call"):
            yield quantity, f"late --by {by}", sum(row[quantity] or 0 for row in reporter.rows("late", folder, "--by", by))
    text = reporter.text("late", folder)
    sentence = sentence_of(text, "Verdict")
    yield "sentence of the verdict", "late", True
    yield "sentence of the verdict", "summary", sentence_of(reporter.text("summary", folder), "Waiting").startswith(sentence)
    advice = [row for row in reporter.rows("advise", folder) if row["rule"] == "imbalance"]
    named = [row for row in advice if row["found"]]
    yield "whether late ranks are named", "late", run["late_ranks"] is not None or run["verdict"] == "by-call"
    yield "whether late ranks are named", "advise", bool(named)
    if run["late_ranks"] is not None and named:
        yield "late_gain_ns", "advise", named[0]["saving_ns"] / run["ranks"]


def totals(folder: Path) -> Iterator[tuple[str, str, object]]:
    (summary,) = reporter.rows("summary", folder)
    calls = reporter.rows("calls", folder)
    no_setup = [row for row in calls if row["family"] != "setup"]
    ranks = reporter.rows("ranks", folder, "--per-rank")
    measured = metrics(folder)
    yield "count", "summary", summary["count"]
    yield "count", "calls", sum(row["count"] for row in calls)
    yield "count", "ranks", sum(row["count"] for row in ranks)
    yield "count", "prometheus", measured["commprof_calls_total"]
    yield "volume_bytes", "summary", summary["volume_bytes"]
    yield "volume_bytes", "calls", sum(row["volume_bytes"] for row in calls)
    yield "volume_bytes", "sizes", sum(row["volume_bytes"] for row in reporter.rows("sizes", folder))
    yield "volume_bytes", "prometheus", measured["commprof_bytes_total"]
    yield "total_ns with set-up", "calls", sum(row["total_ns"] for row in calls)
    yield "total_ns with set-up", "summary", summary["total_ns"] + summary["setup_ns"]
    yield "total_ns with set-up", "prometheus", measured["commprof_time_seconds_total"] * 1e9
    yield "total_ns", "summary", summary["total_ns"]
    yield "total_ns", "calls", sum(row["total_ns"] for row in no_setup)
    yield "total_ns", "late", reporter.rows("late", folder, "--by", "run")[0]["total_ns"]
    yield "total_ns", "ranks", sum(row["mpi_ns"] for row in ranks)
    yield "counted_ns", "ranks", sum(row["counted_ns"] for row in ranks)
    yield "counted_ns", "prometheus", measured["commprof_counted_seconds"] * 1e9
    yield "counted_ns", "late", reporter.rows("late", folder, "--by", "run")[0]["counted_ns"]
    yield "sent_bytes", "summary", summary["sent_bytes"]
    yield "sent_bytes", "peers", sum(row["bytes"] for row in reporter.rows("peers", folder))


def on_the_page(folder: Path, page: Path) -> Iterator[tuple[str, str, object]]:
    """Sentences of other commands are on the page, word for word."""
    reporter.text("html", folder, "--output", page)
    shown = words(page.read_text())
    for command, head in (("late", "Verdict"), ("late", "Rests on"), ("late", "Waiting"), ("steps", "Steps"), ("steps", "Slowest rank")):
        sentence = sentence_of(reporter.text(command, folder), head)
        if sentence:
            yield f"{head}: {sentence}", command, True
            yield f"{head}: {sentence}", "html", words(sentence) in shown


def statements(folder: Path, page: Path) -> Statements:
    """All that can be compared."""
    found: Statements = defaultdict(dict)
    for quantity, command, answer in (*waiting(folder), *totals(folder), *on_the_page(folder, page)):
        found[quantity][command] = answer
    return found


def accused(folder: Path) -> dict[str, set[int]]:
    """Whom each command names as the rank that the others wait for; without those that name nobody."""
    (run,) = reporter.rows("late", folder, "--by", "run")
    (steps,) = reporter.rows("steps", folder)
    stages = {row["rank"] for row in reporter.rows("pipeline", folder) if row["is_waited_for"]}
    found = {"late": set(expanded(run["late_ranks"])), "steps": set(expanded(steps["slowest_ranks"])), "pipeline": stages}
    return {command: ranks for command, ranks in found.items() if ranks}
