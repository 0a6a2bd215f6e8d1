"""Axes that read in units: 10 µs, 4 MiB."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..base import units

FAR = 300  # times the lowest: then powers of ten are ticks enough


def time_label(ns: float, _position: int = 0) -> str:
    """A tick of a time axis: 100 ns, 20 µs, 1.5 s."""
    for unit_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(ns) >= unit_ns:
            return f"{ns / unit_ns:g} {unit}"
    return f"{ns:g} ns" if ns else "0"


def time_text(ns: float) -> str:
    return units.duration(ns).replace("us", "µs")


def size_label(message_bytes: float, _position: int = 0) -> str:
    return units.size(int(message_bytes))


def time_axis(axis, is_log: bool = False) -> None:
    """`axis` is axes.xaxis or axes.yaxis, holding nanoseconds."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis.set_major_formatter(time_label)
    low, high = axis.get_view_interval()
    subs = (1,) if is_log and high > FAR * low else (1, 2, 5)
    axis.set_major_locator(
        LogLocator(10, subs=subs, numticks=12) if is_log else MaxNLocator(6, steps=[1, 2, 5, 10])
    )
    if is_log:
        axis.set_minor_formatter(NullFormatter())


def size_axis(axis, low: int, high: int, most: int = 7) -> None:
    """Ticks at powers of two, about so many at most."""
    from matplotlib.ticker import NullLocator

    first, last = max(low, 1).bit_length() - 1, max(high, 1).bit_length()
    step = max(1, -(-(last - first) // most))
    axis.set_ticks([1 << power for power in range(first, last + 1, step)])
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(size_label)


def readable(
    ticks: Iterable[float], place: Callable[[float], float], low: float, high: float, apart: float
) -> list[float]:
    """Ticks within bounds of their places, the first ones first, as many as can be read."""
    chosen: list[float] = []
    for tick in ticks:
        if low <= place(tick) <= high and all(
            abs(place(tick) - place(other)) >= apart for other in chosen
        ):
            chosen.append(tick)
    return chosen
