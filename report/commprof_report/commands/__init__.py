"""The commands, in the order in which help shows them. A command has a docstring, EXAMPLES,
SEE_ALSO, OPTIONS and run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType

NAMES = (
    "summary", "seen", "steps", "late", "advise", "compare", "traffic", "calls", "sizes", "latency",
    "hvprof", "communicators", "ranks", "regions", "gpu", "peers", "pipeline", "stuck", "top",
    "merge", "export", "replay", "html",
)
SEPARATOR = " -- "  # of sides; argparse takes "--" for the end of options


class Commands(Mapping[str, ModuleType]):
    """By name; a module is imported when it is first asked for."""

    def __getitem__(self, name: str) -> ModuleType:
        if name not in NAMES:
            raise KeyError(name)
        return import_module(f"{__name__}.{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


COMMANDS = Commands()
