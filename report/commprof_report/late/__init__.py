"""Which part of a collective is waiting, and which rank the others wait for. Other rooms take from
here what they need of it."""

from .depends import Waits
from .judgement import Kind, LATE, remedy
from .late_ranks import Late, RegionWorkRow, is_beside_main, region_rows
from .marks import (
    HANDED,
    NOTABLE_LEAD,
    WaitRegion,
    covered_ns,
    handed_steps,
    marked_steps,
    steps_agreed_on,
)
from .messages import Link
from .reading import CallInfo, is_on, known
from .sentences import (
    ALL,
    LINK,
    NOTABLE_SHARE,
    PROGRESS,
    basis_text,
    call_text,
    calls_text,
    details,
    efficiency_text,
    headline,
    held_up_text,
    inside_text,
    is_crowded,
    is_held_up,
    is_mostly,
    is_through_link,
    is_unknown,
    lacks_cores,
    least_factor_text,
    links_text,
    mark_text,
    not_known,
    notable_rest,
    reaching,
    rest_text,
    slow_size_text,
    unfinished_text,
    unknown_cause_text,
    verdict_text,
    when_text,
)
from .sums import (
    CALL,
    HOST,
    RANK,
    ROOT_CAUSE,
    SIZE,
    STATE,
    Sums,
    estimated,
    rounded,
    share,
    transfer_shares,
)
from .verdict import (
    COVERED,
    CallCause,
    FEWEST_BLOCKS,
    LEVEL,
    MAJORITY,
    MOSTLY,
    MOSTLY_LEVEL,
    NEGOTIATED,
    NOTABLE,
    spans,
    sums_of,
)
from .wait_split import (
    ABSENT,
    COUNT,
    Called,
    FILES,
    NOBODY,
    OUTSIDE,
    Piece,
    TRANSFER,
    Timeline,
    UNSEEN,
    UNSPLIT,
    WAITING,
    WaitSplit,
    called,
    timeline,
    timelines,
    wait_split,
)
