"""Sums over calls: their number, time, bytes, and peers. Other rooms take from here what they need
of it."""

from .by_size import HVPROF, LATENCY, hvprof_rows, latency_rows, merged, odd_sizes
from .parts import (
    Negotiation,
    PEER,
    RANK,
    around,
    negotiation,
    peer_name,
    peer_rows,
    rank_rows,
    region_spans,
)
from .views import (
    CALL,
    CALLS,
    CONTROL,
    DEVICE_TOTALS,
    KINDS,
    MARKS,
    MEMORY_KINDS,
    OF_KIND,
    OF_TRAFFIC,
    RANK_CALL,
    RANK_CALLS,
    RANK_TIMES,
    SIZE,
    TOTALS,
    TRAFFIC,
    best_timed,
    busiest_threads,
    dominating_size,
    is_call,
    is_device,
    is_in_mpi,
    is_inside,
    is_mpi_call,
    is_working,
    marks,
    of_nccl,
    size_rows,
)
