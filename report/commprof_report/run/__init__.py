"""Reads the files of all ranks into one database, finds which files belong together, applies
filters, and aligns clocks. Other rooms take from here what they need of it."""

from .alignment import Alignment, Error, MOST_NS, align, storable
from .crowding import (
    CpuTimeRow,
    Crowding,
    Use,
    core_uses,
    cpu_times,
    crowded_facts,
    scheduling_text,
    sentence,
    use_of,
)
from .database import (
    database_create,
    database_is_plain,
    database_open,
    database_write,
    file_of,
    ranks_in,
    rows_insert,
)
from .ledger import ledger_read
from .ledger_format import CUT_OFF, PEER_ANY, PEER_OUTSIDE
from .rank_files import (
    RankFile,
    file_scan,
    files_mode,
    folder_scan,
    is_of_rank,
    rank_paths,
    run_describe,
    runs_split,
)
from .run import Profiled, Run, fact_rows, programs_text, run_open
from .sampled import (
    Calls,
    Communicators,
    FurtherMessages,
    MOST_SAMPLES,
    Sampled,
    Starts,
    communicators,
    synchronizing,
)
from .selection import (
    Cells,
    Selection,
    VIEWS,
    cells_of,
    columns_of,
    histogram_of,
    run_communicators,
    select,
    traffic_classify,
    view_rows,
    views_create,
)
from .unseen import (
    ALL,
    FAR_NS,
    SeenRow,
    holes,
    holes_aligned,
    merged,
    missing,
    no_log_text,
    reason_text,
    sampled_spans,
    seen_rows,
    seen_text,
    together_share,
    unsampled_facts,
    unsampled_text,
    unseen_calls_text,
    without_holes,
)
