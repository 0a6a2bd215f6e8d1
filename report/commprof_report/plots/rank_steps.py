"""Heat map: time outside MPI of each rank in each step."""

from __future__ import annotations

from ..steps.rank_steps import RankSteps
from .axis import time_label

CUT = 98  # percentile at which the darkest shade begins, so that one outlier leaves the others their shades; at 100 - CUT the lightest does,
RANGE = 0.1  # but the shades span this part of the darkest at least, so that noise does not look like a difference


def draw(axes, rows: RankSteps) -> None:
    from numpy import array, nanpercentile
    from numpy.ma import masked_invalid

    times = masked_invalid(array(rows.outside_ns, dtype=float))
    edges = (rows.steps[0] - 0.5, rows.steps[-1] + 0.5, rows.ranks[-1] + 0.5, rows.ranks[0] - 0.5)
    low, top = nanpercentile(times.compressed(), (100 - CUT, CUT))
    low = min(low, (1 - RANGE) * top)
    image = axes.imshow(times, cmap="cividis_r", vmin=low, vmax=top or 1, extent=edges, aspect="auto", interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes, label="outside MPI", format=time_label, extend="both" if low else "max")
    bar.outline.set_visible(False)
    axes.set_xlabel("step")
    axes.set_ylabel("rank")
    axes.set_title("Time outside MPI by rank and step")
    axes.grid(visible=False)
    axes.yaxis.get_major_locator().set_params(integer=True)


def figure_size(rows: RankSteps) -> tuple[float, float]:
    return 9, min(6.0, 1.8 + 0.16 * len(rows.ranks))
