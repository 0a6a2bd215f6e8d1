"""Answers of the driver and CUPTI about a stream that was destroyed, or while a stream captures.

streams.py destroyed QUESTION    of QUESTIONS below; it may crash
streams.py capture QUESTION      in each mode of capturing, about the stream that captures, another
                                 one and the default stream
streams.py capturing MODE        while the profiler begins to trace, collects, goes off and goes on
streams.py handles               how soon a destroyed stream's handle is another stream's"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import byref, c_int, c_uint32, c_uint64, c_uint8, c_void_p

from device import Device, mpi, switch, tell, wait_until

MODES = {"global": 0, "thread-local": 1, "relaxed": 2}


def cupti() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ["GPU_TEST_CUPTI"])


def stream_number(device: Device, stream: c_void_p) -> int:
    context = c_void_p()
    device.call("cuCtxGetCurrent", byref(context))
    return cupti().cuptiGetStreamIdEx(context, stream, c_uint8(0), byref(c_uint32()))


QUESTIONS: dict[str, Callable[[Device, c_void_p], int]] = {
    "cuStreamGetId": lambda device, stream: device.cuda.cuStreamGetId(stream, byref(c_uint64())),
    "cuStreamGetCtx": lambda device, stream: device.cuda.cuStreamGetCtx(stream, byref(c_void_p())),
    "cuStreamIsCapturing": lambda device, stream: device.cuda.cuStreamIsCapturing(
        stream, byref(c_int())
    ),
    "cuptiGetStreamIdEx": stream_number,
}


def destroyed(question: str) -> None:
    device = Device()
    stream = device.stream()
    device.spin("planted_stream", 5_000, stream)
    device.wait(stream)
    device.call("cuStreamDestroy_v2", stream)
    tell(answer=QUESTIONS[question](device, stream))


def capture(question: str) -> None:
    """(answer, error at the end of the capture) by mode and stream."""
    device = Device()
    device.load("planted_stream")
    one, other = device.stream(), device.stream()
    answers = {}
    for mode, number in MODES.items():
        for about, asked in (
            ("the stream that captures", one),
            ("another stream", other),
            ("the default stream", c_void_p()),
        ):
            device.call("cuStreamBeginCapture_v2", one, c_int(number))
            device.spin("planted_stream", 5_000, one)
            answer = QUESTIONS[question](device, asked)
            answers[f"{about}, {mode}"] = [
                answer,
                device.cuda.cuStreamEndCapture(one, byref(c_void_p())),
            ]
    tell(answers=answers)


BESIDE = 100


def capturing(mode: str) -> None:
    """Each capture is instantiated and replayed: its error is that of the first call that fails."""
    device = Device()
    device.load("planted_stream", "planted_beside")
    one, other = device.stream(), device.stream()
    for name in ("planted_stream", "planted_beside"):  # what is loaded late is loaded now
        device.spin(name, 5_000, one)
    device.wait_for_all()
    captures: dict[str, int] = {}

    def captured(during: str, action: Callable[[], bool]) -> None:
        device.call("cuStreamBeginCapture_v2", one, c_int(MODES[mode]))
        launches = [device.spin_error("planted_stream", 5_000, one)]
        happened = action()
        launches.append(device.spin_error("planted_stream", 5_000, one))
        graph, instance = c_void_p(), c_void_p()
        error = device.cuda.cuStreamEndCapture(one, byref(graph)) or max(launches)
        if not error:
            error = device.cuda.cuGraphInstantiateWithFlags(byref(instance), graph, c_uint64(0))
        captures[during] = error or device.cuda.cuGraphLaunch(instance, one)
        device.wait_for_all()
        tell(captures=captures)
        if not happened:
            tell(failed=f"the profiler does not come so far: {during}")

    def begin() -> bool:
        mpi().calls_begin()
        return wait_until("tracing")

    def collect() -> bool:
        for _ in range(BESIDE):
            device.spin("planted_beside", 5_000, other)
        return wait_until(records=BESIDE)

    captured("tracing begins", begin)
    captured("records are collected", collect)
    captured("tracing goes off", lambda: switch(False))
    captured("tracing goes on", lambda: switch(True))
    tell(launched=BESIDE)
    mpi().calls_end()


def handles() -> None:
    device = Device()
    seen, ids, again = set(), set(), 0
    for _ in range(100):
        stream, number = device.stream(), c_uint64()
        device.call("cuStreamGetId", stream, byref(number))
        again += stream.value in seen
        seen.add(stream.value)
        ids.add(number.value)
        device.call("cuStreamDestroy_v2", stream)
    tell(handles_used_again=again, ids=len(ids))


if __name__ == "__main__":
    WHAT = {what.__name__: what for what in (destroyed, capture, capturing, handles)}
    WHAT[sys.argv[1]](*sys.argv[2:])
