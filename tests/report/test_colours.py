"""A call has one colour in all pictures; waiting and transfer have theirs; all of them differ, for
colour-blind readers, too, and have another value in dark mode."""

from __future__ import annotations

from itertools import combinations

import pytest
from commprof_report.display.pictures import DARK, PAPER, TRANSFER, WAITING, in_both_modes, of_call

MAIN = tuple(
    (
        "MPI_Allreduce MPI_Reduce_scatter MPI_Bcast MPI_Allgather MPI_Alltoall MPI_Barrier "
        "MPI_Send MPI_Recv MPI_Waitall"
    ).split()
)
# of light, in sRGB (Vienot, Brettel and Mollon 1999)
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.11, 0.89, 0), (0.11, 0.89, 0), (0.004, -0.004, 1)),
    "no green": ((0.29, 0.71, 0), (0.29, 0.71, 0), (-0.02, 0.02, 1)),
}
NEAREST = 20  # of 255


def seen(colour: str, matrix) -> list[float]:
    linear = [(one / 255) ** 2.2 for one in bytes.fromhex(colour[1:])]
    mixed = [sum(part * one for part, one in zip(row, linear)) for row in matrix]
    return [255 * max(0.0, one) ** (1 / 2.2) for one in mixed]


@pytest.mark.parametrize("matrix", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("is_dark", (False, True))
def test_colour_blind_readers_distinguish_the_calls_of_training(matrix, is_dark):
    colours = [*map(of_call, MAIN), TRANSFER, WAITING]
    shown = [DARK.get(colour, colour) if is_dark else colour for colour in colours]
    for one, other in combinations(shown, 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one, matrix), seen(other, matrix))) ** 0.5
        assert distance > NEAREST, (one, other)


def test_a_picture_in_the_page_is_dark_in_dark_mode():
    drawn = in_both_modes(f'<svg><defs></defs><path style="fill: {PAPER}"/></svg>'.encode())
    assert f"dark){{:root{{--colour-ffffff:{DARK[PAPER]};}}}}" in drawn.decode()
    assert 'style="fill: var(--colour-ffffff)"' in drawn.decode()
