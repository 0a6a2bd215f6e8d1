"""Heat maps of ranks and steps: time outside MPI, waiting for others, waiting caused."""

from __future__ import annotations

from collections.abc import Sequence

from ..steps.rank_steps import Field, RankSteps
from .axis import time_label

# percentile at which the darkest shade begins, so that one outlier leaves the others their shades;
# at 100 - CUT the lightest does,
CUT = 98
# but the shades span this part of the darkest at least, so that noise does not look like a
# difference
RANGE = 0.1
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
    number(panels[-1].xaxis, rows.steps)


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
    number(axes.yaxis, rows.ranks)


def number(axis, firsts: Sequence[int]) -> None:
    """Steps that were not sampled whole have no column, so places are not numbers."""
    axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter(
        lambda place, _: str(firsts[round(place)]) if 0 <= place < len(firsts) else ""
    )


def figure_size(rows: RankSteps) -> tuple[float, float]:
    return 9, 0.5 + len(maps_of(rows)) * min(3.0, 0.9 + 0.1 * len(rows.ranks))
