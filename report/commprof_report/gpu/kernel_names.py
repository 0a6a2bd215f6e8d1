"""Readable names of kernels: demangled if a C++ library is found (the second line),
and shortened (the third). As a program it reads mangled names, one per line, and writes them
demangled: a process with limited memory and time, because a mangled name of a hundred bytes can
expand to gigabytes.

_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_
void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)
at::native::reduce_kernel<512, 1, ReduceOp<...>>
"""

from __future__ import annotations

import ctypes
import re
import resource
import subprocess
import sys
from collections.abc import Iterable

DEMANGLER = __file__
MANGLED = re.compile(r"_Z[\w.$]{1,4094}", re.ASCII)
TIME_S = 10
LIMITS = ((resource.RLIMIT_AS, 1 << 29), (resource.RLIMIT_CPU, 2), (resource.RLIMIT_CORE, 0))
MOST_BYTES = 1 << 16
MOST = 2000  # longer names are cut
FOLDED = "<...>"
OPERATOR = re.compile(r"operator(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?)")
ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>)::")
LAMBDA = re.compile(r"\{lambda\([^{}]*\)(#\d+)\}")
LAST_NAME = re.compile(r"\w*::$")


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Maps mangled names to demangled ones. A name that is not mangled or cannot be demangled stays
    as it is."""
    wanted = sorted({name for name in names if MANGLED.fullmatch(name)})
    return dict(zip(wanted, _demangled(wanted))) if wanted else {}


def _demangled(names: list[str]) -> list[str]:
    """The names demangled, in order; unchanged from where the demangler stopped early."""
    command = [sys.executable, "-I", "-S", "-B", DEMANGLER]
    try:
        written = subprocess.run(
            command, input="\n".join(names).encode(), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=TIME_S,
        ).stdout
    except subprocess.TimeoutExpired as late:
        written = late.stdout or b""
    except OSError:
        written = b""
    found = written.decode("utf-8", "replace").split("\n")[:-1]
    return found + names[len(found) :]


def shortened(name: str) -> str:
    """Shortens a demangled name: omits return type, parameters and the namespaces of template
    arguments, and replaces nested template arguments by <...>."""
    text = LAMBDA.sub(r"{lambda\1}", ANONYMOUS.sub("", name[:MOST])).replace(" >", ">")
    found = ""
    opened = ""  # brackets
    place = 0
    while place < len(text):
        operator = None if opened else OPERATOR.match(text, place)
        piece = operator[0] if operator else text[place]
        place += len(piece)
        if piece == "(" and not opened and found:
            place = _after_bracket(text, place)
            if not text.startswith("::", place):
                break  # the parameters end here; earlier ones belong to an enclosing function
        elif piece == " " and not opened:
            # the text so far was the return type
            found = (
                f"{found} " if found.endswith("operator") else found if "operator" in found else ""
            )
        elif piece == "<":
            opened += piece
            found += {1: piece, 2: FOLDED}.get(opened.count("<"), "")
        elif piece == ">" and opened.endswith("<"):
            opened = opened[:-1]
            found += "" if "<" in opened else piece
        else:
            found += piece if opened.count("<") < 2 else ""
            if piece == "(":
                opened += piece
            elif piece == ")" and "(" in opened:
                opened = opened[: opened.rindex("(")]
            elif opened and found.endswith("::"):
                found = LAST_NAME.sub("", found)
    return found or name


def _after_bracket(text: str, place: int) -> int:
    depth = 1
    while place < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        place += 1
    return place


def main() -> None:
    """The program."""
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
