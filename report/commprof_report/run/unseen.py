"""Gaps of the profile: each reason with its size and the way out. seen.sql has the table of
reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

from ..base import query, units
from ..base.field import Field, Row, row_type
from ..base.thresholds import threshold

SQL = query.beside(__file__)

OFF_SHARE = threshold("run.off")
ALL = "all calls"
# Calls are counted all the same.
NOT_OF_CALLS = ("dropped-", "gpu", "nccl-datatype", "sizes", "untracked")


# a reason why something was not seen, of all ranks that have it alike
SEEN = (
    Field("reason", "its name, as below"),
    Field(
        "effect",
        "`missing`: in no figure; `foreign`: in the figures, but not the job's own; `elsewhere`: "
        "not of this job; `merged`: counted, but not apart",
    ),
    Field("ranks", "the ranks that have it, as text; empty: all that were selected, or the run"),
    Field(
        "amount",
        "how much, summed over ranks, and of what (`call`, `process`, `ns`, ...); null: not known",
    ),
    Field("unit", ""),
    Field("share", "of a time: `amount` over the wall time of these ranks; else null"),
    Field("what", "the reason in words; what it concerns: a setting, a path"),
    Field("detail", ""),
    Field("way_out", "what shows it in the next run; empty: nothing"),
)
SeenRow = row_type("SeenRow", SEEN)


def view_text() -> str:
    """The view of merged databases. A view has no parameters."""
    return f"CREATE VIEW seen AS\n{SQL.text('seen')}".replace(":off_share", f"{OFF_SHARE:g}")


def seen_rows(connection: Connection) -> list[Row]:
    """The reasons that concern the selected ranks, what is missing first."""
    selected = {rank for (rank,) in connection.execute("SELECT world_rank FROM selected_rank")}
    found: dict[tuple, list[tuple]] = {}
    for rank, *rest, amount, unit, whole, what, detail, way_out in SQL.run(
        connection, "seen", off_share=OFF_SHARE
    ):
        if rank is None or rank in selected:
            found.setdefault((*rest, unit, what, detail, way_out), []).append((rank, amount, whole))
    return [_row(key, of_ranks, len(selected)) for key, of_ranks in found.items()]


def _row(key: tuple, of_ranks: Sequence[tuple], selected: int) -> Row:
    reason, effect, unit, what, detail, way_out = key
    ranks, amounts, wholes = zip(*of_ranks)
    is_counted = unit != "ns" or None not in wholes
    amount = None if None in amounts else sum(amounts) if is_counted else max(amounts)
    share = (
        None if None in wholes or amount is None or not sum(wholes) else amount / sum(wholes)
    )
    named = units.Ranks(() if None in ranks or len(ranks) == selected else ranks)
    return SeenRow(reason, effect, named, amount, unit, share, what, detail, way_out)


def missing(rows: Iterable[Row]) -> list[Row]:
    """The reasons for which figures lack something, or have what is not the job's."""
    return [row for row in rows if row.effect in ("missing", "foreign")]


def merged(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.effect == "merged"]


def unseen_calls_text(connection: Connection) -> str:
    """The reasons for which calls are missing: what statements do not rest on. "":
    there are none."""
    rows = missing(seen_rows(connection))
    return "; ".join(reason_text(row) for row in rows if not row.reason.startswith(NOT_OF_CALLS))


def reason_text(row: Row) -> str:
    """1,234 calls dropped: the ledger was full, on ranks 0-3"""
    detail = f": {units.shortened(row.detail, 100)}" if row.detail else ""
    ranks = f", on {units.rank_names(row.ranks)}" if row.ranks else ""
    return f"{_amount_text(row)}{row.what}{detail}{ranks}"


def _amount_text(row: Row) -> str:
    if row.amount is None:
        return ""
    if row.unit == "ns" and row.share is None:
        return f"up to {units.duration(row.amount)} "
    if row.unit == "ns":
        return f"{units.share(row.share)} of the time "
    return f"{units.counted(row.amount, row.unit)} "


def way_out_text(row: Row) -> str:
    return f"{reason_text(row)} ({row.way_out})" if row.way_out else reason_text(row)


def seen_text(rows: Sequence[Row], is_over: bool) -> str:
    """All calls; or not all: each reason, and the way out. is_over: no rank may still be
    running."""
    lacking, elsewhere = (
        missing(rows), [reason_text(row) for row in rows if row.effect == "elsewhere"],
    )
    whole = (
        f"not all: {'; '.join(map(way_out_text, lacking))}" if lacking
        else f"{ALL}{'' if is_over else ' so far'}"
    )
    return "; ".join([whole, *elsewhere])
