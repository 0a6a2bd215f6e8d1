"""`export --format perfetto --with-trace`: traces of PyTorch's profiler on the time axis of a run.

recordings/pytorch-2.13.json is Kineto's own: two of the steps of rank 0 of a job of two, whose
MPI_Allreduce was called inside record_function("reduce by MPI") under commprof. STARTED_UNIX_NS and
CALLS are what commprof recorded of that rank.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import planted
import pytest
from commprof_report.base import files
from planted import SECOND, Rank, Sample

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDING = Path(__file__).parent / "recordings" / "pytorch-2.13.json"
STARTED_UNIX_NS, WALL_NS = 1795381856813349142, 33_487_138_776
CALLS = ((26_087_366_114, 26_087_385_703), (26_088_397_925, 26_088_416_984))
BASE_NS = 1_782_967_788_000_000_000  # Kineto's bases are three months apart
HOUR_NS = 3_600 * SECOND
MARK = "a call in PyTorch's eyes"


def recorded_rank() -> Rank:
    times = {"start_unix_ns": STARTED_UNIX_NS, "wall_ns": WALL_NS}
    rank = Rank(0, 1, communicators=[planted.communicators_of(0)[0]], **times)
    rank.samples = [
        Sample("MPI_Allreduce", *call, sequence=number) for number, call in enumerate(CALLS, 1)
    ]
    rank.facts["host"] = "node00"
    return rank


def pair_of_ranks() -> list[Rank]:
    """On two hosts, whose wall clocks are 7 ms apart. Rank 1's monotonic clock says 3 s more."""
    ranks = []
    for number in range(2):
        facts = {"host": f"node{number:02d}", "boot_id": f"boot-{number}"}
        facts["time_namespace"] = "time:[1]"
        known = [planted.communicators_of(number)[0]]
        samples = [
            Sample("MPI_Allreduce", at * SECOND, at * SECOND + 50_000, sequence=at, bytes=8)
            for at in range(1, 9)
        ]
        ranks.append(Rank(number, 2, facts=facts, communicators=known, samples=samples))
    ranks[1].start_unix_ns += 7_000_000
    ranks[1].start_monotonic_ns += 3 * SECOND
    return ranks


def kineto(rank: Rank, base_ns: int = BASE_NS, **keys: object) -> dict:
    """A trace in Kineto's form, which has each call of the rank as a slice of its
    own, and a flow."""

    def about(what: str, pid: int, **arguments: str) -> dict:
        return {"ph": "M", "name": what, "ts": 0.0, "pid": pid, "tid": 0, "args": arguments}

    shift_ns = rank.start_unix_ns - base_ns
    where, on_gpu = {"pid": rank.process, "tid": rank.process}, {"pid": 0, "tid": 7}
    events = [
        about("process_name", rank.process, name="python3"),
        about("process_labels", rank.process, labels="CPU"),
        about("process_labels", 0, labels="GPU 0"),
    ]
    for number, sample in enumerate(rank.samples):
        at = {"ts": (shift_ns + sample.start_ns) / 1_000}
        times = {**at, "dur": (sample.end_ns - sample.start_ns) / 1_000}
        flow = {"id": number, "cat": "ac2g", "name": "ac2g", **at}
        call = {"cat": "cpu_op", "name": MARK, "args": {"External id": number}}
        events += [
            {"ph": "X", **call, **where, **times},
            {"ph": "s", **flow, **where},
            {"ph": "X", "cat": "kernel", "name": "gemm", **on_gpu, **times},
            {"ph": "f", **flow, **on_gpu, "bp": "e"},
        ]
    based = {"baseTimeNanoseconds": base_ns} if base_ns else {}
    return {"schemaVersion": 1, **based, **keys, "traceEvents": events, "traceName": "x"}


def written(path: Path, trace: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(trace))
    return path


def slices(events: list[dict], name: str) -> list[tuple[float, float]]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == name]


def process_names(events: list[dict]) -> dict[int, str]:
    return {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }


def rank_of_slices(events: list[dict], name: str = MARK) -> set[str]:
    names = process_names(events)
    return {names[event["pid"]] for event in events if event["name"] == name}


def test_each_recorded_call_lies_in_the_function_that_called_it(export):
    events = export([recorded_rank()], RECORDING)
    calls, marks = slices(events, "MPI_Allreduce"), slices(events, "reduce by MPI")
    entered = [round(call[0] - mark[0], 3) for call, mark in zip(calls, marks)]
    left = [round(mark[1] - call[1], 3) for call, mark in zip(calls, marks)]
    assert (entered, left) == ([16.244, 18.066], [11.297, 11.607])


def twins() -> list[Rank]:
    """Two ranks whose process ids are equal, on two hosts."""
    ranks = pair_of_ranks()
    ranks[1].pid = ranks[0].process
    return ranks


def test_a_file_that_does_not_say_its_rank_asks_for_it(refusal, export, tmp_path):
    trace = written(tmp_path / "a.json", kineto(twins()[1]))
    said = f"does not say its rank (process 4000): give it as RANK={trace}\n"
    assert refusal(twins(), trace) == f"hvprof-report: {trace}: {said}"
    assert rank_of_slices(export(twins(), f"1={trace}")) == {"rank 1, PyTorch: CPU"}


def test_compressed_files_and_folders_are_read(export, tmp_path):
    ranks = pair_of_ranks()
    folder = tmp_path / "traces"
    written(folder / "0.json", kineto(ranks[0]))
    (folder / "1.json.gz").write_bytes(compressed(kineto(ranks[1])))
    (folder / "notes.txt").write_text("no trace")
    assert rank_of_slices(export(ranks, folder)) == {"rank 0, PyTorch: CPU", "rank 1, PyTorch: CPU"}


def test_what_was_before_the_run_is_left_out_or_cut(export, tmp_path):
    """Perfetto drops what has a time below zero. Kineto writes 0 where it has no time."""
    trace = kineto(pair_of_ranks()[0])
    start_us = (pair_of_ranks()[0].start_unix_ns - BASE_NS) / 1_000
    early = {"name": "early", "pid": 1, "tid": 1}
    for begin, end in ((-2_000, -1_000), (-1_000, 2_500)):
        times = {"ts": start_us + begin, "dur": end - begin}
        trace["traceEvents"].append({"ph": "X", **early, **times})
    trace["traceEvents"].append({"ph": "X", **early, "ts": 0.0, "dur": 1e12})
    trace["traceEvents"].append({"ph": "i", **early, "ts": start_us - 1, "s": "t"})
    found = slices(export(pair_of_ranks(), written(tmp_path / "a.json", trace)), "early")
    assert found == [(0, pytest.approx(2_500, abs=0.002))]


def test_numbers_that_json_does_not_have_stay_readable(export, tmp_path):
    text = json.dumps(kineto(pair_of_ranks()[0]))
    for number, value in ((3, "NaN"), (4, "1e999")):
        text = text.replace(f'"External id": {number}', f'"value": {value}')
    (tmp_path / "a.json").write_text(text)
    events = export(pair_of_ranks(), tmp_path / "a.json")
    marks = [event["args"] for event in events if event["name"] == MARK]
    assert len(marks) == 7 and {"value": "NaN"} in marks


def having(**keys: object) -> Callable[[dict], str]:
    return lambda trace: json.dumps({**trace, **keys})


def compressed(trace: dict) -> bytes:
    return gzip.compress(json.dumps(trace).encode())


def cut_short(trace: dict) -> str:
    text = json.dumps(trace)
    return text[: text.index(MARK) + 40]


@pytest.mark.parametrize(
    "content, what",
    (
        (lambda trace: "once upon a time", "is not JSON: { is expected at character 0"),
        (lambda trace: "", "ends early or is not JSON: { is expected at character 0"),
        (cut_short, "ends early or is not JSON: "),
        (lambda trace: json.dumps(trace)[:-1] + "} }", "continues after its end"),
        (lambda trace: compressed(trace)[:-40], "ends early: its gzip stream has no end"),
        (lambda trace: b"\x1f\x8b" + b"x" * 50, "is damaged: "),
        (lambda trace: b"\xff\xfe\0", "is not JSON: { is expected"),
        (lambda trace: json.dumps(trace["traceEvents"]), "is a list of events without absolute "),
        (lambda trace: '{"traceEvents": [' + "[" * 100_000, "nests a value too deeply, from char"),
        (
            lambda trace: '{"x": ' + "[" * 66 + "]" * 66 + "}",
            "nests a value too deeply, from character ",
        ),
        (
            lambda trace: '{"traceEvents": [{"ts": ' + "9" * 10_000,
            "holds a number of too many digits, from character 17",
        ),
        (having(traceEvents=[]), "holds no event of PyTorch's profiler"),
        (lambda trace: json.dumps({"traceEvents": 7}), "is not JSON: [ is expected"),
        (having(baseTimeNanoseconds=0), "has times that do not count from 1970"),
        (having(baseTimeNanoseconds=BASE_NS + HOUR_NS), "is of another run: it has 20"),
        (having(baseTimeNanoseconds=BASE_NS - HOUR_NS), "is of another run: it has 20"),
    ),
)
def test_a_file_that_is_no_trace_of_this_run_is_one_line(refusal, tmp_path, content, what):
    made = content(kineto(pair_of_ranks()[0]))
    (tmp_path / "a.json").write_bytes(made if isinstance(made, bytes) else made.encode())
    assert refusal(pair_of_ranks(), tmp_path / "a.json").startswith(
        f"hvprof-report: {tmp_path}/a.json: {what}"
    )


EVENT = '{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "args": {"a": ['
EXPANDS = (
    "expands to more than 100 times its size, which no trace does; if it is one, unpack it "
    "with gunzip"
)
LARGE = "holds a value of more than 2 MiB"
BOMBS = {  # what is repeated, how many times, between what; what is said of it, not compressed
    "values in an event": ("[],", 41_000_000, EVENT, "1]}}]}", f"{LARGE}, or is not JSON"),
    "objects in an event": ('{"":0},', 10_000_000, EVENT, "1]}}]}", LARGE),
    "a long text": ("x", 1 << 27, '{"a": "', '"}', LARGE),
    "wide characters": ("\U0001f600", 1 << 24, '{"a": "', '"}', LARGE),
    "brackets": ("[", 1 << 25, '{"a": ', "", "nests a value too deeply, from character 6"),
    "events": ("{},", 20_000_000, '{"traceEvents": [', "1]}", None),
    "white space": (" ", 1 << 27, "{", "}", None),
    "keys": ('"a":1,', 20_000_000, "{", '"b":1}', None),
}
LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv.pop(1))
from commprof_report import main
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (256 << 20),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
sys.exit(main.main(sys.argv[1:]))
"""


def within_limits(folder: Path, trace: Path) -> subprocess.CompletedProcess:
    how = ["--format", "perfetto", "--output", folder / "out.json"]
    words = ["export", folder, *how, "--with-trace", trace]
    return subprocess.run(
        [sys.executable, "-c", LIMITED, ROOT / "report", *words], capture_output=True, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_was_made_to_exhaust_its_reader_is_refused_within_256_mb(tmp_path, bomb):
    repeated, times, before, after, said = BOMBS[bomb]
    folder = planted.write_databases(tmp_path / "run", pair_of_ranks())
    for opener, name, what in ((gzip.open, "a.json.gz", EXPANDS), (open, "a.json", said)):
        if what:
            with opener(tmp_path / name, "wt", encoding="utf-8") as file:
                file.write(before)
                for _ in range(8):
                    file.write(repeated * (times // 8))
                file.write(after)
            ended = within_limits(folder, tmp_path / name)
            assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr[-500:]
            assert ended.stderr.startswith(f"hvprof-report: {tmp_path / name}: {what}")


def test_a_value_that_would_fill_the_memory_is_refused(monkeypatch, refusal, tmp_path):
    monkeypatch.setattr(files, "MOST_CHARACTERS", 1 << 20)
    trace = written(tmp_path / "a.json", {"stacks": "x" * (9 << 20), **kineto(pair_of_ranks()[0])})
    assert "holds a value of more than 1 MiB, or is not JSON, from character 11" in refusal(
        pair_of_ranks(), trace
    )
