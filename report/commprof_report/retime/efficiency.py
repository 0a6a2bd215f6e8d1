"""The efficiencies of the POP centre of excellence: how much of the time of all ranks is work, and
what the rest is lost to.

    parallel efficiency = load balance x communication efficiency
    load balance        = mean useful time / most useful time, of all ranks
    communication       = serialization x transfer
    serialization       = most useful time / time on an ideal network
    transfer            = time on an ideal network / time

Useful is what a rank does outside MPI. On an ideal network nothing takes time to move: calls last
only as long as they wait for other ranks. After POP, "Efficiency metrics" (https://pop-coe.eu), and
Rosas, Gimenez, Labarta: "Scalability prediction for fundamental performance factors" (2014).
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import Ints


class Efficiency(NamedTuple):
    load_balance: float
    serialization: float
    transfer: float

    @property
    def communication(self) -> float:
        return self.serialization * self.transfer

    @property
    def parallel(self) -> float:
        return self.load_balance * self.communication


def efficiency(useful_ns: Ints, ideal_ns: int, time_ns: int) -> Efficiency | None:
    """useful_ns: by rank. None: nothing lasted. A rank's time outside MPI may be longer than the
    ideal one only by rounding and errors of clocks."""
    most_ns = int(useful_ns.max(initial=0))
    if not (0 < most_ns and 0 < ideal_ns and 0 < time_ns):
        return None
    return Efficiency(
        float(np.mean(useful_ns)) / most_ns, min(1.0, most_ns / ideal_ns),
        min(1.0, ideal_ns / time_ns),
    )
