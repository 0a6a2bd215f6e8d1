"""Tells commprof when a training step begins and which part of the program, a region, this is. Copy
this file into your project: where the profiler is not preloaded, nothing happens."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator

_PROCESS = ctypes.CDLL(None)


def _function(
    name: str, *parameters: type, result: type | None = None
) -> Callable[..., int | None]:
    try:
        function = getattr(_PROCESS, name)
    except AttributeError:  # not preloaded
        return lambda *_: None if result is None else 0
    function.argtypes, function.restype = parameters, result
    return function


step = _function("commprof_step")
region_begin = _function("commprof_region_begin", ctypes.c_char_p)
region_end = _function("commprof_region_end")
is_recording = _function("commprof_is_recording", result=ctypes.c_int)


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """Counts the calls made within it in this region."""
    region_begin(name.encode())
    try:
        yield
    finally:
        region_end()
