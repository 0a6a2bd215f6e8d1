"""Which algorithm a collective used, as far as the library tells.

NCCL reports it for each size. MPICH and Open MPI can be told to use one for all sizes of a call; if
they choose by themselves, nothing is known. A control variable has the value that holds, but often
as a number, whose meaning depends on the version; the environment has what the user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection

from ..base import query
from ..gpu.gpu_activity import nccl_algorithm_text

SQL = query.beside(__file__)
MCA = "OMPI_MCA_"  # before names of variables in the environment
BY_ITSELF = ("", "0", "auto", "ignore")  # the library chooses

Facts = Mapping[str, tuple[str, ...]]


def of_nccl(connection: Connection) -> dict[tuple[str, str, int], str]:
    """By call, identity of the communicator and bytes."""
    rows = SQL.run(connection, "run_nccl_algorithms")
    return {
        (call, identity, size): nccl_algorithm_text(*how) for call, identity, size, *how in rows
    }


def of_mpi(call: str, facts: Facts) -> str:
    """Empty: not known."""
    name = call.removeprefix("MPI_")
    version = next(iter(facts.get("mpi_version", ())), "")
    if version.startswith("MPICH"):
        return _value(facts, f"MPIR_CVAR_{name.upper()}_INTRA_ALGORITHM", "")
    if not version.startswith("Open MPI"):
        return ""
    if name.startswith("I"):
        return _value(facts, f"coll_libnbc_{name.lower()}_algorithm", MCA)
    rules = _value(facts, "coll_tuned_use_dynamic_rules", MCA)
    if rules in (*BY_ITSELF, "false") or _value(facts, "coll_tuned_dynamic_rules_filename", MCA):
        return ""
    return _value(facts, f"coll_tuned_{name.lower()}_algorithm", MCA)


def _value(facts: Facts, variable: str, prefix: str) -> str:
    """Empty: the library chooses, or ranks differ."""
    held, written = facts.get(f"cvar.{variable}"), facts.get(f"env.{prefix}{variable}")
    if held and held[0] in BY_ITSELF:
        return ""
    values = written or held or ()
    return values[0] if len(values) == 1 and values[0] not in BY_ITSELF else ""
