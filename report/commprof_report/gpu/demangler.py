"""A program: reads mangled C++ names, a line each, and writes what they stand for; started by kernel_names.py.

In a process of its own with little memory and time, for a hundred bytes of a mangled name can stand for gigabytes.
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
