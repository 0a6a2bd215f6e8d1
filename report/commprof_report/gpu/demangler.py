"""A program, started by kernel_names.py, that reads mangled C++ names, one per line, and writes
them demangled.

It is a separate process with limited memory and time, because a mangled name of a hundred bytes can
expand to gigabytes.
"""

from __future__ import annotations

import ctypes
import resource
import sys

LIMITS = ((resource.RLIMIT_AS, 1 << 29), (resource.RLIMIT_CPU, 2), (resource.RLIMIT_CORE, 0))
MOST_BYTES = 1 << 16


def main() -> None:
    for limit, value in LIMITS:
        resource.setrlimit(limit, (value, value))
    demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    demangle.restype = ctypes.c_void_p
    libc = ctypes.CDLL(None)
    libc.strlen.argtypes = libc.free.argtypes = [ctypes.c_void_p]
    libc.strlen.restype = ctypes.c_size_t
    for line in sys.stdin.buffer:
        name = line.rstrip(b"\n")
        found = demangle(name, None, None, ctypes.byref(ctypes.c_int()))
        is_short = found and libc.strlen(found) <= MOST_BYTES
        sys.stdout.buffer.write((ctypes.string_at(found) if is_short else name) + b"\n")
        sys.stdout.buffer.flush()
        libc.free(found)


if __name__ == "__main__":
    main()
