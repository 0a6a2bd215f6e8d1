"""calls.py NAMES SCRIPT [FORM...] [-- ARGUMENT...]: plays a script of MPI calls, in Python's words:
MPI_Send is `Send(sent, 10, INT, 1, 7, WORLD)`, and so is every function and constant of mpi.h (in
NAMES, which is calls_names.c, linked to MPI). A list is a vector of counts or displacements; arrays
are ints(), longs(), handles(), statuses(). A script that names THREAD_MULTIPLE or another level of
threads is initialized with it. `collective("Bcast", ...)` is MPI_Bcast; in the form
nonblocking MPI_Ibcast and a wait; in the form persistent MPI_Bcast_init, `rounds` times start and
wait, and a free. In the form large every call that has a large-count form takes it; Open MPI 4 has
none, and then those of the profiler are found, as mpi4py finds them."""

import builtins
import ctypes
import mmap
import os
import re
import sys
import threading
import time
from functools import partial

divider = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
library, script, *forms = sys.argv[1:divider]
names = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
names.calls_name.restype = ctypes.c_int64
everything = ctypes.CDLL(None)
NO_RESERVE = 0x4000  # which mmap has from Python 3.13 on
kept = []  # what requests may still point to


def call(name, *arguments):
    """The error that MPI returns."""
    return bound(name, *arguments)()


def bound(name, *arguments):
    """The call, to be made as often as one likes: in 0.3 us, where call() needs 2."""
    is_large = "large" in forms and hasattr(everything, f"MPI_{name}_c")
    whole = ctypes.c_int64 if is_large else ctypes.c_int

    def as_c(value):
        if isinstance(value, (int, type(None))):
            return ctypes.c_int64(value or 0)
        if isinstance(value, str):
            return value.encode()
        return (whole * len(value))(*value) if isinstance(value, list) else value

    given = [as_c(value) for value in arguments]
    if any(isinstance(value, list) for value in arguments):
        kept.append(given)
    return partial(getattr(everything, f"MPI_{name}{'_c' * is_large}"), *given)


def wait_for(request):
    call("Wait", request, play["STATUS_IGNORE"])


def collective(name, *arguments):
    if "nonblocking" in forms:
        request = handles(1)
        call(f"I{name.lower()}", *arguments, request)
        wait_for(request)
    elif "persistent" in forms:
        request = handles(1)
        call(f"{name}_init", *arguments, play["INFO_NULL"], request)
        for _ in range(play["rounds"]):
            call("Start", request)
            wait_for(request)
        call("Request_free", request)
    else:
        call(name, *arguments)


def check(claim):
    """If a result of MPI is wrong, the program fails."""
    if not claim:
        line = sys._getframe(1).f_lineno
        print(
            f"{script}:{line}: does not hold on rank {play.get('rank')}",
            file=sys.stderr,
            flush=True,
        )
        os._exit(99)


def ints(count, of=ctypes.c_int):
    return (of * count)()


def handles(count):
    return ints(count, ctypes.c_int if play["HANDLE_BYTES"] == 4 else ctypes.c_int64)


def statuses(count):
    return ints(count * play["STATUS_BYTES"], ctypes.c_char)


def told(status, place, index=0):
    """A status's SOURCE or TAG."""
    at = index * play["STATUS_BYTES"] + play[f"{place}_AT"]
    return int.from_bytes(status[at : at + 4], "little", signed=True)


def count_of(status, datatype):
    arrived = ints(1, ctypes.c_int64)
    call("Get_count", status, datatype, arrived)
    return arrived[0]


def nothing_of(size):
    """The address of so many bytes that take no memory until they are used."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    kept.append(memory)
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def on_threads(count, function, meanwhile=lambda: None):
    """function(0), function(1), ..., each on a thread; returns when all have ended."""
    threads = [threading.Thread(target=function, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    meanwhile()
    for thread in threads:
        thread.join()


def busy(until_ns):
    """Computes for so long."""
    until_ns += time.monotonic_ns()
    while time.monotonic_ns() < until_ns:
        pass


def say(*words, end="\n", **more):
    """print, but a line in one piece: mpirun mixes what ranks write."""
    print(" ".join(map(str, words)) + end, end="", **more)


class Play(dict):
    """Names of a script: its own, Python's, the constants of mpi.h, else an MPI function."""

    def __missing__(self, name):
        if hasattr(builtins, name):
            return getattr(builtins, name)
        is_known = ctypes.c_int()
        value = names.calls_name(name.encode(), ctypes.byref(is_known))
        self[name] = value if is_known.value else partial(call, name)
        return self[name]


def begin(level=None):
    """MPI, with a level of threads; for a script that does not call it, this has been done."""
    rank, size, provided = ints(1), ints(1), ints(1)
    if level:
        call("Init_thread", None, None, play[level], provided)
    else:
        call("Init", None, None)
    call("Comm_rank", play["WORLD"], rank)
    call("Comm_size", play["WORLD"], size)
    play.update(
        rank=rank[0], size=size[0], other=1 - rank[0], thread_level=provided[0], is_begun=True
    )


def end():
    sys.stdout.flush()
    if play.pop("is_begun", False):
        call("Finalize")


def itself():
    """This program and its arguments, for MPI_Comm_spawn."""
    words = [word.encode() for word in (__file__, *sys.argv[1:])]
    return sys.executable, (ctypes.c_char_p * (len(words) + 1))(*words)


helpers = (
    begin,
    end,
    itself,
    call,
    bound,
    collective,
    check,
    ints,
    handles,
    statuses,
    told,
    count_of,
    on_threads,
    nothing_of,
    busy,
    wait_for,
)
play = Play({helper.__name__: helper for helper in helpers})
with open(script) as file:
    text = file.read()
play.update(
    arguments=sys.argv[divider + 1 :],
    rounds=play["ROUNDS"],
    longs=partial(ints, of=ctypes.c_int64),
    doubles=partial(ints, of=ctypes.c_double),
    chars=partial(ints, of=ctypes.c_char),
    at=ctypes.byref,  # at(array, bytes)
    sent=(ctypes.c_int * 256)(*range(256)),
    received=ints(256),
    now_ns=time.monotonic_ns,
    print=say,
    sleep=time.sleep,
)
levels = re.findall(r"\bTHREAD_\w+", text)
if not re.search(r"^ *(begin|Session_init)\(", text, re.MULTILINE):
    begin(levels[0] if levels else None)
exec(compile(text, script, "exec"), play)
end()
