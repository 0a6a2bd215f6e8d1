"""Readable names of kernels: demangled if c++filt is found (the second line), and shortened (the
third). A mangled name of a hundred bytes can expand to gigabytes, so its memory and time are
limited.

_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfEEEEvT1_
void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)
at::native::reduce_kernel<512, 1, ReduceOp<...>>
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

MANGLED = re.compile(r"_Z[\w.$]{1,4094}", re.ASCII)
DEMANGLER = "ulimit -c 0; ulimit -t 2; ulimit -v 524288; exec c++filt"  # seconds of CPU time, KiB
MOST = 2000  # longer names are cut
ANONYMOUS = re.compile(r"(?:\(anonymous namespace\)|\{anonymous\}|<unnamed>)::")
LAMBDA = re.compile(r"\{lambda\([^{}]*\)(#\d+)\}")
NESTED = re.compile(r"(<[^<>]*)<[^<>]*>")  # arguments of a template within others
ARGUMENTS, NAMESPACE = re.compile("<[^<>]*>"), re.compile(r"\w*::")
PARAMETERS = re.compile(r"\([^()]*\)(?:[^():]*$)?")  # and what follows the last ones
HIDDEN = str.maketrans("() ", "\1\2\3")  # where they do not end a name
SHOWN = str.maketrans({"\0": "<...>", "\1": "(", "\2": ")", "\3": " "})


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Maps mangled names to demangled ones. A name that is not mangled, or that the demangler did
    not come to, stays as it is."""
    wanted = sorted({name for name in names if MANGLED.fullmatch(name)})
    given = "".join(f"{name}\n" for name in wanted).encode()
    command = ["/bin/sh", "-c", DEMANGLER]
    try:
        written = subprocess.run(command, input=given, capture_output=True, timeout=10).stdout
    except subprocess.TimeoutExpired as late:
        written = late.stdout or b""
    found = written.decode("utf-8", "replace").split("\n")[:-1]
    return dict(zip(wanted, found + wanted[len(found) :]))


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
