"""Heat map: who sends how much to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from ..base.query import Row

MOST_FIELDS = 512  # larger jobs are drawn in blocks of ranks
TICKS = 12


class Matrix(NamedTuple):
    rows: Sequence[Row]
    world_size: int
    quantity: str  # "bytes" or "count"


def matrix_of(rows: Sequence[Row], world_size: int, quantity: str) -> Matrix | None:
    """None: nothing to draw. Processes outside the job, and ranks that are not known, have no place
    in it."""
    ranks = range(world_size)
    inside = [
        row for row in rows
        if row.sender in ranks and row.receiver in ranks and getattr(row, quantity)
    ]
    return Matrix(inside, world_size, quantity) if inside else None


def figure_size(matrix: Matrix) -> tuple[float, float]:
    return 6.6, 5.4


def draw(axes, matrix: Matrix) -> None:
    ranks_per_field = -(-matrix.world_size // MOST_FIELDS) or 1
    amounts = fields(matrix, ranks_per_field)
    last = max(matrix.world_size - 0.5, 0.5)
    image = axes.imshow(
        amounts, cmap=shades(), vmin=0, extent=(-0.5, last, last, -0.5),
        interpolation="nearest",
    )
    what = "messages" if matrix.quantity == "count" else "bytes"
    show = units.count if matrix.quantity == "count" else units.volume
    bar = axes.figure.colorbar(
        image, ax=axes, shrink=0.85, label=what, format=lambda value, _: show(round(value))
    )
    bar.outline.set_visible(False)
    axes.set_xlabel("receiver (world rank)")
    axes.set_ylabel("sender (world rank)")
    axes.set_title(
        "Point-to-point messages" if matrix.quantity == "count" else "Point-to-point volume"
    )
    axes.grid(visible=False)
    ticks = rank_ticks(matrix.world_size)
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)


def fields(matrix: Matrix, ranks_per_field: int):
    """The sums, sender by receiver. Pairs that exchange nothing stay empty."""
    from numpy import add, zeros
    from numpy.ma import masked_equal

    width = -(-matrix.world_size // ranks_per_field)
    amounts = zeros((width, width))
    pairs = [(row.sender, row.receiver, getattr(row, matrix.quantity)) for row in matrix.rows]
    senders, receivers, values = zip(*pairs)
    places = [[rank // ranks_per_field for rank in ranks] for ranks in (senders, receivers)]
    add.at(amounts, tuple(places), values)
    return masked_equal(amounts, 0)


def shades():
    """Light to dark blue, beginning where it can be told from white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap
    from numpy import linspace

    return ListedColormap(colormaps["Blues"](linspace(0.2, 1.0, 256)))


def rank_ticks(world_size: int) -> list[int]:
    """Powers of two apart, as ranks fill hosts."""
    step = 1 << (-(-world_size // TICKS) - 1).bit_length()
    return list(range(0, world_size, step))
