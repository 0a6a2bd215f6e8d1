"""The GPU through CUDA's driver interface alone (ctypes), kernels of chosen names and durations,
and the profile's state as its ledger says. With the double of libcuda.so.1 (tests/doubles) the same
calls plant the same things there."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import time
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "report"))
from commprof_report.run.ledger_format import layout

# Every driver and every GPU of today takes this version of PTX for this target, and compiles it for
# itself.
SPIN = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry {name}(.param .u64 duration_ns)
{{
    .reg .u64 %t<4>;
    .reg .pred %p;
    ld.param.u64 %t0, [duration_ns];
    mov.u64 %t1, %globaltimer;
again:
    mov.u64 %t2, %globaltimer;
    sub.u64 %t3, %t2, %t1;
    setp.lt.u64 %p, %t3, %t0;
    @%p bra again;
    ret;
}}
"""
EMPTY = (
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry {name}()\n{{\n    ret;\n}}\n"
)

NON_BLOCKING, CAPTURE_THREAD_LOCAL, ATTACH_GLOBAL = 1, 1, 1


class CudaError(RuntimeError):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Device:
    """The first GPU, with its primary context: that which PyTorch uses, too."""

    def __init__(self, context: bool = True) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.functions: dict[str, c_void_p] = {}
        self.kept: list[object] = []
        self.call("cuInit", c_uint(0))
        if context:
            current = c_void_p()
            self.call("cuDevicePrimaryCtxRetain", byref(current), c_int(0))
            self.call("cuCtxSetCurrent", current)

    def call(self, name: str, *arguments: object) -> None:
        error = getattr(self.cuda, name)(*arguments)
        if error:
            text = c_char_p()
            self.cuda.cuGetErrorString(error, byref(text))
            raise CudaError(error, f"{name}: {error} {(text.value or b'').decode()}")

    # Work

    def function(self, name: str, source: str) -> c_void_p:
        if name not in self.functions:
            module, function = c_void_p(), c_void_p()
            self.call(
                "cuModuleLoadData", byref(module), c_char_p(source.format(name=name).encode())
            )
            self.call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
            self.functions[name] = function
        return self.functions[name]

    def load(self, *names: str) -> None:
        """Compile these kernels now: while a stream captures nothing can be loaded."""
        for name in names:
            self.function(name, SPIN)

    def launch(
        self, function: c_void_p, stream: Optional[c_void_p], parameters: object = None
    ) -> None:
        self.call("cuLaunchKernel", function, *[c_uint(1)] * 6, c_uint(0), stream, parameters, None)

    def spin(self, name: str, duration_ns: int, stream: Optional[c_void_p] = None) -> None:
        """A kernel that runs so long."""
        duration = c_uint64(duration_ns)
        self.launch(self.function(name, SPIN), stream, (c_void_p * 1)(ctypes.addressof(duration)))

    def spin_error(self, name: str, duration_ns: int, stream: Optional[c_void_p]) -> int:
        """As spin; the driver's answer where the launch fails."""
        try:
            self.spin(name, duration_ns, stream)
        except CudaError as error:
            return error.code
        return 0

    def empty(self, name: str = "empty") -> c_void_p:
        return self.function(name, EMPTY)

    def copy(self, to: int, source: int, size: int, stream: Optional[c_void_p] = None) -> None:
        self.call("cuMemcpyAsync", c_uint64(to), c_uint64(source), c_size_t(size), stream)

    def fill(self, to: int, value: int, size: int, stream: Optional[c_void_p] = None) -> None:
        self.call("cuMemsetD8Async", c_uint64(to), ctypes.c_ubyte(value), c_size_t(size), stream)

    # Memory

    def available_bytes(self) -> int:
        """On the device, for all processes."""
        available, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(available), byref(total))
        return available.value

    def device(self, size: int) -> int:
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def managed(self, size: int) -> int:
        address = c_uint64()
        self.call("cuMemAllocManaged", byref(address), c_size_t(size), c_uint(ATTACH_GLOBAL))
        return address.value

    def pinned(self, size: int) -> int:
        address = c_void_p()
        self.call("cuMemHostAlloc", byref(address), c_size_t(size), c_uint(0))
        return address.value or 0

    def pageable(self, size: int) -> int:
        """Pages of their own: nothing that CUDA has registered lies near."""
        pages = mmap.mmap(-1, size)
        self.kept.append(pages)
        return ctypes.addressof(ctypes.c_char.from_buffer(pages))

    # Streams

    def stream(self) -> c_void_p:
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(NON_BLOCKING))
        return stream

    def wait(self, stream: Optional[c_void_p] = None) -> None:
        self.call("cuStreamSynchronize", stream)

    def wait_for_all(self) -> None:
        self.call("cuCtxSynchronize")

    def begin_capture(self, stream: c_void_p) -> None:
        self.call("cuStreamBeginCapture_v2", stream, c_int(CAPTURE_THREAD_LOCAL))

    def end_capture(self, stream: c_void_p) -> c_void_p:
        graph, instance = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        self.call("cuGraphInstantiateWithFlags", byref(instance), graph, c_uint64(0))
        return instance

    def replay(self, graph: c_void_p, stream: c_void_p) -> None:
        self.call("cuGraphLaunch", graph, stream)

    # Events

    def mark(self, stream: Optional[c_void_p] = None) -> c_void_p:
        event = c_void_p()
        self.call("cuEventCreate", byref(event), c_uint(0))
        self.call("cuEventRecord", event, stream)
        return event

    def after(self, stream: c_void_p, event: c_void_p) -> None:
        self.call("cuStreamWaitEvent", stream, event, c_uint(0))

    def between_ns(self, first: c_void_p, last: c_void_p) -> int:
        milliseconds = c_float()
        name = (
            "cuEventElapsedTime_v2"
            if hasattr(self.cuda, "cuEventElapsedTime_v2")
            else "cuEventElapsedTime"
        )
        self.call(name, byref(milliseconds), first, last)
        return round(milliseconds.value * 1e6)

    def has_context(self) -> bool:
        flags, active = c_uint(), c_int()
        self.call("cuDevicePrimaryCtxGetState", c_int(0), byref(flags), byref(active))
        return bool(active.value)


# MPI, through tests/gpu/programs/mpi_calls.c

_mpi: Optional[ctypes.CDLL] = None


def mpi() -> ctypes.CDLL:
    global _mpi
    if _mpi is None:
        _mpi = ctypes.CDLL(os.environ["GPU_TEST_MPI"])
        _mpi.calls_allreduce.argtypes = [c_void_p, c_void_p, c_int]
        _mpi.calls_send_to_self.argtypes = [c_void_p, c_void_p, c_int]
    return _mpi


# The profile, by its ledger

STATES = ["none", "dormant", "tracing", "paused", "yielded", "refused", "stopped"]
PATIENCE_S = 20


def ledger() -> Optional[str]:
    """This process's: the file that is mapped."""
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if line.rstrip().endswith(".ledger")), None)


def look() -> Optional[tuple[str, int]]:
    """The GPU side's state and how many records it has counted; None where nobody profiles."""
    path = ledger()
    if not path:
        return None
    with open(path, "rb") as file:
        header = layout("header").unpack(file.read(4096))
    return STATES[header.gpu_state], header.gpu_records


def wait_until(state: Optional[str] = None, records: int = 0) -> bool:
    """Waits until the profile has come so far; at once where there is none. False: it does not, in
    20 s."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        seen = look()
        if "COMMPROF_OUTPUT" not in os.environ or (
            seen and state in (None, seen[0]) and seen[1] >= records
        ):
            return True
        if seen and seen[0] == "refused":
            return False
        time.sleep(0.005)
    return False


def switch(traced: bool) -> bool:
    """Tracing on or off, by MPI_Pcontrol; waits until the profile says so."""
    mpi().calls_pcontrol(int(traced))
    return wait_until("tracing" if traced else "paused")


def tell(**truth: object) -> None:
    """Prints the truth for the check that started this to compare with the profile."""
    sys.stdout.write(f"truth {json.dumps(truth)}\n")  # in one piece: ranks share their output
    sys.stdout.flush()


if __name__ == "__main__":  # device.py: which GPU is here? Exit status 1: none.
    try:
        device = Device(context=False)
        count, version, name = c_int(), c_int(), ctypes.create_string_buffer(256)
        device.call("cuDeviceGetCount", byref(count))
        if count.value == 0:
            raise CudaError(0, "cuDeviceGetCount: there is none")
        device.call("cuDeviceGetName", name, c_int(len(name)), c_int(0))
        device.call("cuDriverGetVersion", byref(version))
        tell(
            count=count.value,
            name=name.value.decode(),
            cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
        )
    except (OSError, CudaError) as error:
        sys.exit(str(error))
