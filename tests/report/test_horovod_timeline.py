"""`export --format perfetto --with-trace`: Horovod's timelines on the time axis of a run."""

from __future__ import annotations

import json

import pytest
from commprof_report.exporters import traces
from planted import START_UNIX_NS
from test_pytorch_traces import pair_of_ranks

START_US = START_UNIX_NS // 1_000
S, MS = 1_000_000, 1_000  # in microseconds


class Written:
    """Writes events as Horovod does: a tensor is named before its first one."""

    def __init__(self, start_us: int = START_US) -> None:
        self.events: list = []
        self.tensors: dict[str, int] = {}
        self.describe("process_name", 0, {traces.START: start_us})

    def describe(self, name: str, number: int, details: dict) -> None:
        self.events.append({"name": name, "ph": "M", "pid": number, "args": details})

    def add(self, phase: str, tensor: str, at_us: int, name: str = "", **args: str) -> None:
        if tensor not in self.tensors:
            number = self.tensors[tensor] = len(self.tensors) + 1
            self.describe("process_name", number, {"name": tensor})
            self.describe("process_sort_index", number, {"sort_index": number})
        named = {} if phase == "E" else {"name": name}
        span = {"dur": 0} if phase == "X" else {}
        place = {"ts": at_us, "pid": self.tensors[tensor]}
        self.events.append({"ph": phase, **named, **place, **span, "args": args})

    def negotiate(self, tensor: str, *ready_us: int) -> None:
        """ready_us: of each rank."""
        self.add("B", tensor, min(ready_us), "NEGOTIATE_ALLREDUCE")
        for rank, at_us in sorted(enumerate(ready_us), key=lambda item: item[1]):
            self.add("X", tensor, at_us, str(rank))
        self.add("E", tensor, max(ready_us))

    def reduce(self, tensors: list[str], at_us: int) -> None:
        for place, tensor in enumerate(tensors):
            self.add("B", tensor, at_us + place, "ALLREDUCE")
        for activity in ("MEMCPY_IN_FUSION_BUFFER", "MPI_ALLREDUCE"):
            for tensor in tensors:
                self.add("B", tensor, at_us + 5, activity)
            for tensor in tensors:
                self.add("E", tensor, at_us + 100)
            at_us += 100
        for tensor in tensors:
            self.add("E", tensor, at_us + 9, dtype="float32", shape="[64]")

    def text(self, end: str = "]") -> str:
        return "[\n" + ",\n".join(map(json.dumps, self.events)) + end

    def write(self, path, end: str = "]"):
        path.write_text(self.text(end))
        return path


def one_step() -> Written:
    """A step around the ranks' call at 1 s: it begins at 1 s and ends 50 us later."""
    made = Written()
    for place, tensor in enumerate(("c", "b", "a")):
        made.negotiate(tensor, S - 60 * MS + place, S - 10 * MS + place)
    made.reduce(["c", "b", "a"], S - 110)
    made.events.sort(key=lambda event: event.get("ts", 0))
    return made


def of_process(events: list[dict], name: str) -> list[dict]:
    named = [event for event in events if event.get("name") == "process_name"]
    (pid,) = {event["pid"] for event in named if event["args"]["name"] == name}
    return [event for event in events if event["pid"] == pid]


def tracks_of(own: list[dict]) -> dict[int, str]:
    named = [event for event in own if event.get("name") == "thread_name"]
    return {event["tid"]: event["args"]["name"] for event in named}


TENSORS = "rank 0, Horovod"


def slices(events: list[dict], process: str) -> list[tuple[str, str, float, float | None]]:
    """Track, name, begin and end in microseconds (None: not finished), as they begin."""
    own = of_process(events, process)
    tracks = tracks_of(own)
    found = [
        (tracks[event["tid"]], event["name"], event["ts"], ended(event))
        for event in own
        if event["ph"] in "BX"
    ]
    return sorted(found, key=lambda each: each[2])


def ended(event: dict) -> float | None:
    return round(event["ts"] + event["dur"], 3) if "dur" in event else None


@pytest.mark.parametrize("end", ("", ",", ",\n", "\n"), ids=repr)
def test_the_file_of_a_killed_job_has_no_end(export, tmp_path, end):
    made = one_step()
    made.negotiate("a", 2 * S, 3 * S)
    made.add("B", "a", 3 * S, "ALLREDUCE")
    made.add("B", "a", 3 * S + 1, "MPI_ALLREDUCE")
    events = export(pair_of_ranks(), made.write(tmp_path / "timeline.json", end))
    assert slices(events, TENSORS)[-2:] == [
        ("a", "ALLREDUCE", 3 * S, None),
        ("a", "MPI_ALLREDUCE", 3 * S + 1, None),
    ]
    assert slices(events, TENSORS)[-3][1:] == ("NEGOTIATE_ALLREDUCE", 2 * S, 3 * S)


def without_start(made: Written) -> str:
    del made.events[0]
    return made.text()


def started(start: object) -> str:
    made = one_step()
    made.events[0]["args"][traces.START] = start
    return made.text()


NO_START = (
    "is a list of events without absolute times (written by PyTorch without Kineto,"
    " or Horovod before 0.20.1), so it has no place on the time axis\n"
)


@pytest.mark.parametrize(
    "made, what",
    (
        (lambda: "[", NO_START),
        (lambda: "[]", NO_START),
        (lambda: "[7]", NO_START),
        (lambda: without_start(one_step()), NO_START),
        (lambda: started("1"), NO_START),
        (lambda: started(5), NO_START),
        (lambda: started(1e300), NO_START),
        (lambda: started(START_US - 3_600 * S), "is of another run: it has 20"),
        (lambda: Written().text(), "holds no event of Horovod"),
        (lambda: one_step().text() + "]", "continues after its end"),
        (lambda: one_step().text()[:-40], "ends early or is not JSON: "),
        (lambda: one_step().text().replace("}", "", 1), "ends early or is not JSON: "),
        (lambda: "[" * 100_000, "nests a value too deeply, from character 1"),
    ),
)
def test_a_file_that_is_no_timeline_of_this_run_is_one_line(refusal, tmp_path, made, what):
    (tmp_path / "a.json").write_text(made())
    said = refusal(pair_of_ranks(), tmp_path / "a.json")
    assert said.startswith(f"hvprof-report: {tmp_path}/a.json: {what}")
