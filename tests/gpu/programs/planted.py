"""Plants kernels, copies and sets on the GPU, and tells which: planted.py WHAT, of the functions below."""

from __future__ import annotations

import sys
import time

from device import Device, Span, mpi, tell, wait_until

KERNELS = {"planted_long": (10, 2_000_000), "planted_short": (200, 20_000)}  # name: how often, and how long at least
ODD_BYTES = 1_000_003
REPLAYS, NODES = 20, 10
CYCLES, KERNELS_A_CYCLE, CYCLING_S = 100, 10, 40
MOMENTS = 200


def begin() -> Device:
    """MPI, a context, and the profiler tracing."""
    mpi().calls_begin()
    device = Device()
    device.load(*KERNELS, "planted_graph", "planted_cycle", "planted_moment", "ncclDevKernel_Planted", "planted_compute")
    device.wait_for_all()
    if not wait_until("tracing"):
        tell(failed="the profiler does not trace")
        sys.exit(mpi().calls_end() or 1)
    return device


def kernels() -> None:
    device = begin()
    streams = [device.stream(), device.stream()]
    first = device.mark(streams[0]) if not device.is_double else None
    for name, (count, duration_ns) in KERNELS.items():
        for i in range(count):
            device.spin(name, duration_ns, streams[0 if name == "planted_long" else i % 2])
    last = device.mark(streams[0]) if first else None
    device.wait_for_all()
    spans_ns = device.between_ns(first, last) if first and last else None
    tell(kernels=KERNELS, events_ns=spans_ns)


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


def graph() -> None:
    device = begin()
    stream = device.stream()
    device.begin_capture(stream)
    for _ in range(NODES):
        device.spin("planted_graph", 5_000, stream)
    instance = device.end_capture(stream)
    for _ in range(REPLAYS):
        device.replay(instance, stream)
    device.wait(stream)
    tell(launches=NODES * REPLAYS)


def cycle() -> None:
    """Tracing off and on again, by MPI_Pcontrol, kernels whenever it is on; as often as there is time for."""
    device = begin()
    waited_s = [0.0, 0.0]
    done, until = 0, time.monotonic() + CYCLING_S
    while done < CYCLES and time.monotonic() < until:
        for _ in range(KERNELS_A_CYCLE):
            device.spin("planted_cycle", 5_000)
        device.wait_for_all()
        for level, state in enumerate(("paused", "tracing")):
            began = time.monotonic()
            mpi().calls_pcontrol(level)
            if not wait_until(state):
                tell(failed=f"cycle {done}: not {state}")
                sys.exit(1)
            waited_s[level] += time.monotonic() - began
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


def overlap() -> None:
    """Communication beside computation, over and over: how long was a communication kernel running and no computing one?"""
    device = begin()
    beside = device.stream(), device.stream()
    exposed_ns = communicating_ns = 0
    for _ in range(20):
        exposed, communicating = plant_overlap(device, *beside)
        exposed_ns, communicating_ns = exposed_ns + exposed, communicating_ns + communicating
    tell(exposed_ns=exposed_ns, communicating_ns=communicating_ns)


def plant_overlap(device: Device, compute, communicate) -> tuple[int, int]:
    """The communication's last part stands alone. Returns how long, and how long all of it was."""
    if device.is_double:
        spans = device.spin("planted_compute", 2_000_000, compute), device.spin("ncclDevKernel_Planted", 3_000_000, communicate)
        device.wait_for_all()
        return exposed_of(*spans), spans[1].end_ns - spans[1].start_ns
    base = device.mark(compute)
    device.after(communicate, base)
    marks = []
    for name, duration_ns, stream in (("planted_compute", 2_000_000, compute), ("ncclDevKernel_Planted", 3_000_000, communicate)):
        marks.append((device.mark(stream), device.spin(name, duration_ns, stream), device.mark(stream)))
    device.wait_for_all()
    spans = [Span(device.between_ns(base, first), device.between_ns(base, last)) for first, _, last in marks]
    return exposed_of(*spans), spans[1].end_ns - spans[1].start_ns


def exposed_of(compute: Span, communicate: Span) -> int:
    both = min(compute.end_ns, communicate.end_ns) - max(compute.start_ns, communicate.start_ns)
    return communicate.end_ns - communicate.start_ns - max(both, 0)


if __name__ == "__main__":
    {what.__name__: what for what in (kernels, copies, graph, cycle, moments, overlap)}[sys.argv[1]]()
    mpi().calls_end()
