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

from ..base.columns import Ints, np


class Efficiency(NamedTuple):
    """None: not known."""

    parallel_efficiency: float | None = None
    load_balance: float | None = None
    communication_efficiency: float | None = None
    serialization: float | None = None
    transfer_efficiency: float | None = None


def efficiency(useful_ns: Ints, ideal_ns: float, time_ns: float) -> Efficiency:
    """useful_ns: by rank. A rank's time outside MPI is longer than the ideal one only by rounding
    and by errors of clocks."""
    most_ns = float(useful_ns.max(initial=0))
    if not (0 < most_ns and 0 < ideal_ns and 0 < time_ns):
        return Efficiency()
    balance = float(np.mean(useful_ns)) / most_ns
    serialization, transfer = min(1.0, most_ns / ideal_ns), min(1.0, ideal_ns / time_ns)
    return Efficiency(
        balance * serialization * transfer, balance, serialization * transfer, serialization,
        transfer,
    )
