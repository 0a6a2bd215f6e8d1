"""Plants kernels, copies and sets on the GPU, and prints which: planted.py WHAT [FORM], of PLANTS
below."""

from __future__ import annotations

import sys
import time

from device import Device, mpi, switch, tell, wait_until

# name: how often, and how long at least
KERNELS = {"planted_long": (10, 2_000_000), "planted_short": (200, 20_000)}
ODD_BYTES = 1_000_003
REPLAYS, NODES = 20, 10
CYCLES, KERNELS_A_CYCLE, CYCLING_S = 100, 10, 25
MOMENTS = 200
COMMUNICATION, COMPUTATION, COPIED_BYTES = "ncclDevKernel_Planted", "planted_compute", 1 << 20
# runs until all that is timed has been launched: events then lie where kernels begin and end
GATE = "planted_gate"
# How communication lies beside other work: ns of that, and of the communication
FORMS = {
    "partly hidden": (2_000_000, 3_000_000),
    "hidden": (3_000_000, 2_000_000),
    "after computing": (1_000_000, 2_000_000),
    "beside a copy": (0, 2_000_000),
}


def give_up(why: str) -> None:
    tell(failed=why)
    sys.exit(mpi().calls_end() or 1)


def must_switch(traced: bool) -> None:
    if not switch(traced):
        give_up(f"tracing does not go {'on' if traced else 'off'}")


def begin() -> Device:
    """MPI, a context, and the profiler tracing."""
    mpi().calls_begin()
    device = Device()
    device.load(
        *KERNELS,
        "planted_graph",
        "planted_cycle",
        "planted_moment",
        COMMUNICATION,
        COMPUTATION,
        GATE,
    )
    device.wait_for_all()
    if not wait_until("tracing"):
        give_up("the profiler does not trace")
    return device


def kernels() -> None:
    device = begin()
    streams = [device.stream(), device.stream()]
    for stream in streams:
        device.spin(GATE, 50_000_000, stream)
    first = device.mark(streams[0])
    for name, (count, duration_ns) in KERNELS.items():
        for i in range(count):
            device.spin(name, duration_ns, streams[0 if name == "planted_long" else i % 2])
    last = device.mark(streams[0])
    device.wait_for_all()
    tell(kernels=KERNELS, events_ns=device.between_ns(first, last))


def copies() -> None:
    device = begin()
    stream = device.stream()
    on_device, also_on_device = device.device(ODD_BYTES), device.device(ODD_BYTES)
    pinned, pageable = device.pinned(ODD_BYTES), device.pageable(ODD_BYTES)
    ways = {
        "to device, pinned": (on_device, pinned),
        "to device, pageable": (on_device, pageable),
        "to host, pinned": (pinned, on_device),
        "to host, pageable": (pageable, on_device),
        "on device": (also_on_device, on_device),
    }
    for to, source in ways.values():
        for size in (1, 4096, ODD_BYTES):
            device.copy(to, source, size, stream)
    for size in (1, 4096, ODD_BYTES):
        device.fill(on_device, 7, size, stream)
    device.wait(stream)
    tell(each=[3, 1 + 4096 + ODD_BYTES], ways=list(ways))


def instantiated(device: Device, stream) -> object:
    device.begin_capture(stream)
    for _ in range(NODES):
        device.spin("planted_graph", 5_000, stream)
    return device.end_capture(stream)


def replay(device: Device, stream, instance) -> None:
    for _ in range(REPLAYS):
        device.replay(instance, stream)
    device.wait(stream)


def graph(created: str) -> None:
    """A graph that is replayed while it is traced. It was created `traced`; `before` the profiler
    began; `between` two windows of tracing; or traced and replayed, and then tracing went `off and
    on`."""
    if created == "before":
        device = Device()
        device.load("planted_graph")
        stream = device.stream()
        instance = instantiated(device, stream)
        replay(device, stream, instance)
        begin()
    else:
        device = begin()
        stream = device.stream()
        if created == "between":
            must_switch(False)
        instance = instantiated(device, stream)
    if created == "off and on":
        replay(device, stream, instance)
        must_switch(False)
    if created in ("between", "off and on"):
        must_switch(True)
    replay(device, stream, instance)
    tell(launches=NODES * REPLAYS * (2 if created == "off and on" else 1))


def cycle() -> None:
    """Tracing off and on again, by MPI_Pcontrol, kernels whenever it is on; as often as there is
    time for."""
    device = begin()
    waited_s = [0.0, 0.0]
    done, until = 0, time.monotonic() + CYCLING_S
    while done < CYCLES and time.monotonic() < until:
        for _ in range(KERNELS_A_CYCLE):
            device.spin("planted_cycle", 5_000)
        device.wait_for_all()
        for traced in (False, True):
            began = time.monotonic()
            must_switch(traced)
            waited_s[traced] += time.monotonic() - began
        done += 1
    off_ms, on_ms = (round(1e3 * seconds / done, 1) for seconds in waited_s)
    tell(cycles=done, launches=done * KERNELS_A_CYCLE, off_ms=off_ms, on_ms=on_ms)


def moments() -> None:
    """Kernels one by one, each between two readings of the host's clock."""
    device = begin()
    brackets = []
    for _ in range(MOMENTS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        device.spin("planted_moment", 50_000)
        device.wait()
        brackets.append((before, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
        time.sleep(0.01)
    tell(brackets=brackets)


def overlap(form: str) -> None:
    """Communication beside something else, over and over: how long was a communication kernel
    running and no computing one?"""
    device = begin()
    beside, communicate = device.stream(), device.stream()
    memory = device.device(COPIED_BYTES), device.pinned(COPIED_BYTES)
    exposed_ns = communicating_ns = 0
    for _ in range(20):
        spans = spans_of(device, form, beside, communicate, memory)
        communicating_ns += spans[1][1] - spans[1][0]
        exposed_ns += spans[1][1] - spans[1][0] - (both(*spans) if form != "beside a copy" else 0)
    tell(exposed_ns=exposed_ns, communicating_ns=communicating_ns)


def spans_of(
    device: Device, form: str, beside, communicate, memory: tuple[int, int]
) -> list[tuple[int, int]]:
    """When the work beside it and the communication began and ended, in ns since a common start, by
    CUDA's events."""
    beside_ns, communication_ns = FORMS[form]
    device.spin(GATE, 20_000_000, beside)
    base = device.mark(beside)
    device.after(communicate, base)
    marks = [[device.mark(beside)], [device.mark(communicate)]]
    if form == "beside a copy":
        device.copy(*memory, COPIED_BYTES, beside)
    else:
        device.spin(COMPUTATION, beside_ns, beside)
    marks[0].append(device.mark(beside))
    if form == "after computing":
        device.after(communicate, marks[0][1])
        marks[1] = [device.mark(communicate)]
    device.spin(COMMUNICATION, communication_ns, communicate)
    marks[1].append(device.mark(communicate))
    device.wait_for_all()
    return [
        (device.between_ns(base, first), device.between_ns(base, last)) for first, last in marks
    ]


def both(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


PLANTS = {plant.__name__: plant for plant in (kernels, copies, graph, cycle, moments, overlap)}

if __name__ == "__main__":
    PLANTS[sys.argv[1]](*sys.argv[2:])
    mpi().calls_end()
