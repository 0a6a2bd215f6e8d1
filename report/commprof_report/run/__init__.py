"""Reads the files of all ranks into one database, finds which files belong together, applies
filters, and aligns clocks. Other rooms take from here what most of them need."""

from .alignment import Alignment, MOST_NS, align
from .database import database_is_plain, database_write
from .rank_files import file_scan, files_mode
from .run import Profiled, Run, fact_rows, programs_text, run_open
from .selection import (
    VIEWS,
    Cells,
    Selection,
    cells_of,
    columns_of,
    histogram_of,
    traffic_classify,
    view_rows,
    views_create,
)
from .unseen import SeenRow, reason_text, seen_rows, seen_text, unseen_calls_text
from .unseen import unsampled_facts, unsampled_text
