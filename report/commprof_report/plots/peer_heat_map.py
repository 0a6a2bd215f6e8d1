"""Heat map: who sends how much to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import Row, units
from ..base.columns import np

MOST_FIELDS = 512  # larger jobs are drawn in blocks of ranks
TICKS = 12
PAPER = "#fcfdfe"  # also in dark mode: darker is more


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
    """Pairs that exchange nothing stay empty."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    block = -(-matrix.world_size // MOST_FIELDS) or 1
    width, last = -(-matrix.world_size // block), max(matrix.world_size - 0.5, 0.5)
    amounts, (what, show) = np.zeros((width, width)), {
        "count": ("messages", units.count), "bytes": ("volume", units.volume),
    }[matrix.quantity]
    for row in matrix.rows:
        amounts[row.sender // block, row.receiver // block] += getattr(row, matrix.quantity)
    image = axes.imshow(
        np.ma.masked_equal(amounts, 0), vmin=0, extent=(-0.5, last, last, -0.5),
        cmap=ListedColormap(colormaps["Blues"](np.linspace(0.2, 1.0, 256))),
        interpolation="nearest",
    )
    axes.figure.colorbar(
        image, ax=axes, shrink=0.85, label=f"{what} (linear)",
        format=lambda value, _: show(round(value)),
    )
    axes.set(
        xlabel="receiver (world rank)", ylabel="sender (world rank)", facecolor=PAPER,
        title=f"Point-to-point {what}", xticks=rank_ticks(matrix.world_size),
        yticks=rank_ticks(matrix.world_size),
    )
    axes.grid(visible=False)


def rank_ticks(world_size: int) -> list[int]:
    """Powers of two apart, as ranks fill hosts."""
    step = 1 << (-(-world_size // TICKS) - 1).bit_length()
    return list(range(0, world_size, step))
