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
ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>)::")
LAMBDA = re.compile(r"\{lambda\([^{}]*\)(#\d+)\}")
NESTED = re.compile(r"(<[^<>]*)<[^<>]*>")  # arguments of a template within others
ARGUMENTS, NAMESPACE = re.compile("<[^<>]*>"), re.compile(r"\w*::")
PARAMETERS = re.compile(r"\([^()]*\)(?:[^():]*$)?")  # and what follows the last ones
HIDDEN = str.maketrans("() ", "\1\2\3")  # where they do not end a name
SHOWN = str.maketrans({"\0": "<...>", "\1": "(", "\2": ")", "\3": " "})


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
            command,
            input="\n".join(names).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIME_S,
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
    text = _repeated(NESTED, "\\1\0", text.replace("operator()", "operator\1\2"))
    text = ARGUMENTS.sub(lambda own: NAMESPACE.sub("", own[0]).translate(HIDDEN), text)
    return _repeated(PARAMETERS, "", text).rpartition(" ")[2].translate(SHOWN) or name


def _repeated(pattern: re.Pattern, by: str, text: str) -> str:
    while (found := pattern.sub(by, text)) != text:
        text = found
    return text


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
