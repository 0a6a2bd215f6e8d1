"""Heat maps of ranks and steps: time outside MPI, waiting for others, waiting caused."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..steps.rank_steps import Field, RankSteps
from .axis import time_label

# percentile at which the darkest shade begins, so that one outlier leaves the others their shades;
# at 100 - CUT the lightest does,
CUT = 98
# but the shades span this part of the darkest at least, so that noise does not look like a
# difference
RANGE = 0.1
MOST_STEPS, MOST_RANKS = 8, 4  # ticks
MAPS = (
    ("outside_ns", "Time outside MPI"),
    ("wait_ns", "Waiting for other ranks"),
    ("caused_ns", "Waiting that the rank causes, of all others together"),
)


def draw(axes, rows: RankSteps) -> None:
    """Leaves out a map without any time."""
    shown = maps_of(rows)
    figure = axes.figure
    axes.remove()
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (field, title) in zip(panels, shown):
        draw_map(panel, rows, field)
        panel.set_title(title)
    panels[-1].set_xlabel("step")
    number(panels[-1].xaxis, rows.steps, MOST_STEPS)


def maps_of(rows: RankSteps) -> list[tuple[Field, str]]:
    fields = [(getattr(rows, key), title) for key, title in MAPS]
    return [(field, title) for field, title in fields if any(map(any, field))] or fields[:1]


def draw_map(axes, rows: RankSteps, field: Field) -> None:
    from numpy import array, nanpercentile
    from numpy.ma import masked_invalid

    times = masked_invalid(array(field, dtype=float))
    low, top = nanpercentile(times.compressed(), (100 - CUT, CUT))
    low = min(low, (1 - RANGE) * top)
    image = axes.imshow(
        times, cmap="cividis_r", vmin=low, vmax=top or times.max() or 1, aspect="auto",
        interpolation="nearest",
    )
    bar = axes.figure.colorbar(image, ax=axes, format=time_label, extend="both" if low else "max")
    bar.outline.set_visible(False)
    axes.set_ylabel("rank")
    axes.grid(visible=False)
    number(axes.yaxis, rows.ranks, MOST_RANKS)


def number(axis, firsts: Sequence[int], most: int) -> None:
    """At round numbers: 0, 50, 100. Steps that were not sampled whole have no column, so places are
    not numbers, and a tick is at the next one that there is."""
    from matplotlib.ticker import MaxNLocator

    rounds = MaxNLocator(most, steps=[1, 2, 5, 10], integer=True)
    ticks = [tick for tick in rounds.tick_values(firsts[0], firsts[-1]) if tick >= firsts[0]]
    places = sorted({bisect_left(firsts, tick) for tick in ticks if tick <= firsts[-1]})
    axis.set_ticks(places, [str(firsts[place]) for place in places])


def figure_size(rows: RankSteps) -> tuple[float, float]:
    return 9, 0.5 + len(maps_of(rows)) * min(3.0, 0.9 + 0.1 * len(rows.ranks))
