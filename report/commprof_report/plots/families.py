"""Bands: the siblings of each family of communicators, their median, and the sibling that lies
outside the band of all others."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import units
from ..base.siblings import Family
from ..display.colours import ALERT, NEUTRAL
from .axis import time_axis, time_text

ROW, MARGINS = 0.42, 1.0  # inches
HALF = 0.28  # of the height of a band


def height(families: Sequence[Family]) -> float:
    return MARGINS + ROW * len(families) if families else 0.0


def beneath(axes, families: Sequence[Family], head: str):
    """Draws them below, if there are any; the axes that are left."""
    if not families:
        return axes
    figure, low = axes.figure, height(families)
    axes.remove()
    left, below = figure.subplots(
        2, 1, gridspec_kw={"height_ratios": (figure.get_figheight() - low, low)}
    )
    draw(below, families, head)
    return left


def draw(axes, families: Sequence[Family], head: str) -> None:
    for place, family in enumerate(families):
        axes.fill_betweenx(
            [place - HALF, place + HALF], family.low_ns, family.high_ns, color=NEUTRAL,
            alpha=0.25, linewidth=0,
        )
        axes.vlines(family.median_ns, place - HALF, place + HALF, color=NEUTRAL, linewidth=2)
        axes.plot(
            [each.value_ns for each in family.siblings], [place] * len(family.siblings), "o",
            color=NEUTRAL, markersize=3, alpha=0.6,
        )
        if family.outside:
            name, value_ns, _ = family.outside
            axes.plot([value_ns], [place], "o", color=ALERT, markersize=6)
            text = f"{units.visible(units.shortened(name, 32))}: {time_text(value_ns)}"
            on_left = value_ns > family.median_ns
            axes.annotate(
                text, (value_ns, place), (-6 if on_left else 6, 8), textcoords="offset points",
                ha="right" if on_left else "left", fontsize=8,
            )
    axes.set_yticks(
        range(len(families)),
        [units.visible(units.shortened(family.name, 56)) for family in families],
    )
    axes.set_ylim(len(families) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(head)
    axes.set_xlabel(
        "a dot: a communicator; the line: their median; the band: all of them, but one that lies "
        "far from all others"
    )
    time_axis(axes.xaxis)
