"""Programs of known calls (programs/*.calls, Fortran's too): what is counted of them, exactly."""

import json
import re
import sys

import pytest

from .harness import Peer
from .libraries import REPOSITORY
from .reporter import rows, text

sys.path.insert(0, str(REPOSITORY / "tests" / "report"))
from known_calls import CALLS

# A program, on how many ranks, and its forms: large is also played with large counts, forms in all
# of blocking, nonblocking and persistent; some: it makes other calls as well; around: calls whose
# numbers are another row's concern; same: output and exit status are those without the profiler;
# needs: of a newer MPI; after a colon an argument. Its lines: what is measured, of which
# calls (without MPI_; @ on which communicator), by rank (one for all are alike): COUNTxBYTES for
# calls that have moved them, ~ where they move nothing, =VOLUME where it is another one; columns of
# table rank; the communicators that a call is on; the rows that answer a question in SQL.
TABLE = """
point_to_point 2 large
call Buffer_attach, Buffer_detach: 1x0 | -
call Send: 3x40 3x0 4x200 1x7 | 1x0
call Ssend: 2x80 | -
call Bsend: 2x120 | -
call Rsend: 1x160 | -
call Recv: 1x0 | 3x40~ 3x0 2x80~ 2x120~ 1x200~ 1x7~
call Irecv: - | 1x400~
call Wait: - | 1x0
call Probe: - | 2x200~ 1x7~ 1x0
call Iprobe: - | 1x200~ 1x7~
call Mprobe: - | 2x200~ 1x0
call Improbe: - | 1x200~
call Mrecv: - | 3x200~ 1x0
call Sendrecv: 1x240 1x0 | 1x120 1x0
call Sendrecv_replace: 1x256
completion Irecv: - | 1x160~
poll Iprobe: - | 5x0
poll Improbe: - | 4x0
on Recv: MPI_COMM_WORLD
on Wait: - | none

probe_into_garbage 2 some
call Probe, Iprobe: - | 10x200~

nonblocking 2 large around=Waitall,Buffer_attach,Buffer_detach
call Isend: 2x40 1x200 2x0 | 2x0
call Issend: 2x80 | -
call Ibsend: 2x120 | -
call Irsend: 1x160 | -
call Irecv: 1x36~ 1x32~ | 7x400~ 1x36~ 1x32~
call Imrecv: - | 1x400~
call Mprobe: - | 1x200~
call Send: - | 1x0
call Recv: 1x0 | -
call Wait: 1x0
call Isendrecv: 1x240 ?MPI_Isendrecv
call Isendrecv_replace: 1x256 ?MPI_Isendrecv
completion Isend: 2x40 1x200 2x0 | 2x0
completion Issend: 2x80 | -
completion Ibsend: 2x120 | -
completion Irsend: 1x160 | -
completion Irecv: 2x0 | 2x40~ 2x80~ 2x120~ 1x160~ 2x0
completion Imrecv: - | 1x200~
completion Isendrecv: 1x240 ?MPI_Isendrecv
completion Isendrecv_replace: 1x256 ?MPI_Isendrecv

many_requests 2 some
call Isend: 2000x8 2000x16 1000x0 | 1000x0
call Waitany: 100x0
call Wait: 1000x0
completion Isend: 2000x8 2000x16 1000x0 | 1000x0
completion Irecv: - | 2000x8~ 2000x16~
rank untracked_requests: 0

equal_handles 2 some
completion Isend: 1x4 49x8 | -
poll Testall: 1000x0 | -

overlap 2 some
completion Iallreduce: 20x80000 1x800
completion Ibcast: 1x400 | 1x400~

completed_by_another_thread 2 some
completion Isend: 50x4 | -
completion Irecv: - | 50x4~

persistent 2 large
call Send_init: 1x40~ 1x280~ 1x0 | 1x0
call Ssend_init: 1x80~ | -
call Bsend_init: 1x120~ | -
call Rsend_init: 1x160~ | -
call Recv_init: 1x360~ | 4x400~ 1x360~
call Start: 14x0 | 2x0
call Startall: - | 3x0
call Request_free: 7x0 | 6x0
call Cancel: 2x0
call Irecv: 1x400~
call Wait: 7x0 | 3x0
call Waitall: 4x0 | 3x0
call Send: - | 3x0
call Recv: 3x0 | -
call Buffer_attach, Buffer_detach: 1x0 | -
completion Send_init: 3x40 1x0 | 1x0
completion Ssend_init: 3x80 | -
completion Bsend_init: 3x120 | -
completion Rsend_init: 3x160 | -
completion Recv_init: 1x0 | 3x40~ 3x80~ 3x120~ 3x160~ 1x0
completion Irecv: 1x0
on Start call: none
on Send_init completion: MPI_COMM_WORLD

partitioned 2 some needs=MPI_Psend_init
call Psend_init: 1x80~ | -
call Precv_init: - | 1x80~
call Pready, Pready_range, Pready_list: 3x0 | -
call Parrived: - | 3x0
call Start: 3x0
completion Psend_init: 3x80 | -
completion Precv_init: - | 3x80~

completion 2 some
call Wait, Waitany: 3x0 | -
call Waitall, Waitsome: 2x0 | -
call Test, Testall, Testany, Testsome: 1x0 | -
call Irecv: 22x400~ | -
completion Irecv: 2x40~ 3x80~ 3x120~ 3x160~ 1x200~ 1x240~ 9x0 | -
poll Test, Testall: 5x0 | -
poll Testany: 3x0 | -
poll Testsome: 2x0 | -
on Wait%: none | -
on Test%: none | -

odds_and_ends 2 some
call Request_get_status, Open_port, Comm_set_info: 1x0
call Comm_attach_buffer, Comm_flush_buffer, Comm_detach_buffer: 1x0 ?MPI_Request_get_status_all
call Buffer_attach, Buffer_flush, Buffer_detach: 1x0 ?MPI_Request_get_status_all
call Comm_iflush_buffer, Buffer_iflush: 1x0 ?MPI_Request_get_status_all
completion Comm_iflush_buffer, Buffer_iflush: 1x0 ?MPI_Request_get_status_all
completion Irecv: 1x4~

windows 2 large around=Barrier,Wait,Waitall
call Put: 3x40 1x0 2x8 2x4 | 3x40 1x0 2x4
call Get: 1x40~
call Accumulate: 1x80 | -
call Get_accumulate: 1x12 1x20
call Fetch_and_op, Compare_and_swap: 1x4
call Rput: 1x120
call Rget: 1x160~
call Raccumulate: 1x200
call Rget_accumulate: 1x240
call Win_fence, Win_lock, Win_unlock, Win_free: 4x0
call Win_lock_all, Win_unlock_all, Win_sync, Win_allocate, Win_create, Win_create_dynamic: 1x0
call Win_flush, Win_flush_all, Win_flush_local, Win_flush_local_all, Win_allocate_shared: 1x0
call Win_attach, Win_detach, Win_set_info: 1x0
call Win_start, Win_complete: 2x0 | -
call Win_post: - | 2x0
call Win_wait, Win_test: - | 1x0
completion Rput: 1x120
completion Rget: 1x160~
completion Raccumulate: 1x200
completion Rget_accumulate: 1x240
on Put: MPI_COMM_WORLD
on %accumulate: MPI_COMM_WORLD
on Win_free: MPI_COMM_SELF; MPI_COMM_WORLD
ask SELECT DISTINCT object > 0 FROM sample_epoch: 1
ask SELECT substr(call, 9), peer, number, partners FROM sample_epoch: \
    complete 1 1 1; complete 1 2 1; start 1 1 1; start 1 2 1 | \
    post 0 1 1; post 0 2 1; test 0 2 1; wait 0 1 1

files 2 large around=Barrier,Wait,Waitall
call File_write: 1x4
call File_write_all: 1x8
call File_write_at: 1x12
call File_write_at_all: 1x160
call File_write_shared: 1x20
call File_write_ordered: 1x24
call File_read: 1x4~
call File_read_all: 1x8~
call File_read_at: 1x12~ 1x40~
call File_read_at_all: 1x160~
call File_read_shared: 1x20~
call File_read_ordered: 1x24~
call File_write_all_begin: 1x84
call File_write_at_all_begin: 1x88
call File_write_ordered_begin: 1x92
call File_read_all_begin: 1x84~
call File_read_at_all_begin: 1x88~
call File_read_ordered_begin: 1x92~
call File_write_all_end, File_write_at_all_end, File_write_ordered_end: 1x0
call File_read_all_end, File_read_at_all_end, File_read_ordered_end: 1x0
call, completion File_iwrite: 1x44
call, completion File_iwrite_all: 1x48
call, completion File_iwrite_at: 1x52
call, completion File_iwrite_at_all: 1x56
call, completion File_iwrite_shared: 1x60
call, completion File_iread: 1x44~
call, completion File_iread_all: 1x48~
call, completion File_iread_at: 1x52~
call, completion File_iread_at_all: 1x56~
call, completion File_iread_shared: 1x60~
call File_open: 2x0
call File_seek_shared: 4x0
call File_delete: 1x0 | -
call File_close, File_preallocate, File_set_atomicity, File_sync: 1x0
call File_set_size, File_get_size, File_set_view, File_set_info: 1x0

huge_messages 2 some
call Bcast, Gather, Allgatherv: 1x3221225472
call Allreduce: 1x2400000000
call Send_init, Irecv: 1x3221225472~
completion Irecv: 1x4~

threads 2 some
call Send: 500x4 500x8 500x12 500x16 | -
call Allreduce: 800x32
call Irecv: - | 2000x32~
call Wait: - | 2000x0
completion Irecv: - | 500x4~ 500x8~ 500x12~ 500x16~
ask SELECT SUM(count) FROM cell WHERE call = 'MPI_Allreduce' GROUP BY communicator: \
    200; 200; 200; 200
ask SELECT DISTINCT call FROM cell JOIN thread USING (world_rank, thread) WHERE is_main: \
    MPI_Comm_dup; MPI_Comm_free; MPI_Finalize; MPI_Init_thread
ask SELECT MAX(busy) <= (SELECT wall_ns FROM rank) FROM (SELECT SUM(total_ns) AS busy FROM cell \
    WHERE measure <> 'completion' GROUP BY thread): 1

freed_early 2 some
call Isend: 1x24 | -
call Ibsend: 100x4 100x8 | -
completion Isend: 1x24 | -
completion Issend: 1x40 | -
completion Ibsend: 100x8 | -
completion Irecv: - | 1x24~ 1x40~

matched_and_freed 2 some
call Improbe: 100x0
rank untracked_requests: 0
ask SELECT call, name, bytes, count FROM cell JOIN communicator USING (communicator) WHERE \
    call IN ('MPI_Mrecv', 'MPI_Imrecv') AND measure = 'call' AND bytes: \
    - | MPI_Imrecv of Imrecv 40 1; MPI_Mrecv of Mrecv 40 1

communicators 4 some
call Comm_dup, Cart_create, Comm_set_name: 2x0
call Comm_dup_with_info, Comm_idup, Comm_create, Comm_split_type, Cart_sub: 1x0
call Graph_create, Dist_graph_create, Dist_graph_create_adjacent: 1x0
call Intercomm_create, Intercomm_merge, Comm_disconnect: 1x0
call Comm_create_group: - | 1x0 | - | 1x0
call Comm_split: 3x0
call Comm_free: 14x0 | 14x0 | 14x0 | 12x0
call Barrier: 18x0 | 18x0 | 18x0 | 16x0

many_communicators 2 some
call Barrier: 6002x0
call Comm_free: 6000x0
rank dropped_calls: 0
ask SELECT folded_communicators > 0 FROM rank: 1
ask SELECT count FROM cell JOIN communicator USING (communicator) WHERE name = 'first' \
    AND call = 'MPI_Barrier': 2

late_objects:MPI_Win_fence:0:0:16 2 some
ask SELECT object, group_concat(object_sequence) FROM (SELECT * FROM sample ORDER BY start_ns) \
    WHERE call = 'MPI_Win_fence' GROUP BY object: 1 1,2,3,4,5,6,7,8; 3 1,2,3,4,5,6,7,8

jumping_deeper 2 some same
call Allreduce: 900x4
call Finalize: 1x0
call Send: -

throwing_handler 2 some same
call Allreduce: 150x4
rank interrupted_calls: 100

passing_threads 1 some same
call Allreduce: 20000x4
call Barrier: 5000x0
rank dropped_calls: 0
ask SELECT COUNT(*) BETWEEN 2 AND 9 FROM thread: 1

many_threads 2 some same slow
call Allreduce, Sendrecv: 1280x4
completion Irecv: 640x4~
completion Isend: 640x4
rank untracked_requests, dropped_calls: 0
ask SELECT COUNT(*), MIN(made), MAX(made) FROM (SELECT SUM(count) AS made FROM cell WHERE \
    call = 'MPI_Allreduce' GROUP BY communicator): 64 20 20

guarded_statuses 1 some same
completion Irecv: 50x4~
completion Recv_init: 4x4~
completion Isend: 4x4
poll Iprobe: 2x0
poll Test, Testall, Testany, Testsome: 1x0
rank untracked_requests: 0

generalized 1 some same
call Isend: 1x4
call Request_free: 6x0
completion Irecv: 4x0 1x4~
completion Recv_init: 1x0 1x4~
completion Isend, Send_init: -
rank untracked_requests, interrupted_calls: 0

null_pointers 1 some same
call Barrier@MPI_COMM_WORLD: 1x0
call Barrier@kept: 2x0
ask SELECT name FROM communicator WHERE is_freed: kept

endless_communicators:99000 1 some slow
call Comm_free: 99000x0
call Comm_dup, Comm_split, Comm_create_group: 33000x0
call Barrier: 330x0
rank dropped_calls: 0

mpi4py_calls 2 some
call Init_thread, Finalize: 1x0
call Isend: 1x80
call Bcast: 1x120 | 1x120~
call Allreduce: 4x20
completion Irecv: 1x80~
rank thread_level: 3

many_calls 2 some slow
call Send: 3000000x0 | -
call Recv: - | 3000000x0
call Allreduce: 200000x4
ask SELECT MIN(min_ns) > 0 FROM cell: 1
ask SELECT SUM(total_ns) <= (SELECT wall_ns FROM rank) FROM cell WHERE measure <> 'completion': 1

late_receiver 2 some slow
call Bcast: 1x4 | 1x4~
call Barrier: -

collectives_alone 3 some
call Allreduce: 1x4 | 3x4 | 3x4
call Barrier: 1x0 | 2x0 | 3x0

attribute_callbacks 2 some same
call Allreduce: 1x4
call Finalize: 1x0

fork_children 2 some
call Allreduce: 2x4

fortran_mpif, fortran_use_mpi, fortran_f08 2
call Barrier, Comm_split, Comm_free: 1x0
call Send: 3x40 | -
call Recv: - | 3x40~
call Sendrecv: 1x48
call, completion Isend: 1x80 1x84
call Irecv: 2x400~
call Waitall: 2x0
call Bcast: 1x80 | 1x80~
call Allreduce: 1x40
call Gather: 1x16
call Reduce: 1x24
completion Irecv: 1x80~ 1x84~

collectives 4 forms
call Barrier: 3x0
call Bcast: 2x40 1x24~ 1x0 | 2x40~ 1x24~ 1x0 | 2x40~ 1x24 1x0 | 2x40~ 1x24~ 1x0
call Scatter: 1x24~ | 1x24~ | 1x24~ | 1x24=96
call Scatterv: 1x4~ | 1x40 | 1x12~ | 1x16~
call Reduce: 2x40
call Gather: 1x24
call Gatherv, Allgatherv: 1x4 | 1x8 | 1x12 | 1x16
call Allgather: 1x32
call Alltoall: 1x8=32
call Alltoallv: 1x24 | 1x40 | 1x56 | 1x72
call Alltoallw: 1x24 | 1x48 | 1x72 | 1x96
call Allreduce: 3x28
call Reduce_scatter: 1x40
call Reduce_scatter_block: 1x48
call Scan: 1x24
call Exscan: 1x44

in_place 4 forms
call Reduce: 1x20
call Gather: 1x24
call Gatherv, Allgatherv: 1x4 | 1x8 | 1x12 | 1x16
call Scatter: 1x28~ | 1x28~ | 1x28=112 | 1x28~
call Scatterv: 1x4~ | 1x8~ | 1x40 | 1x16~
call Allreduce: 1x36
call Allgather: 1x32
call Alltoall: 1x8=32
call Alltoallv, Alltoallw: 1x24 | 1x40 | 1x56 | 1x72
call Reduce_scatter: 1x40
call Reduce_scatter_block: 1x48
call Scan: 1x12
call Exscan: 1x44

neighborhoods 4 forms around=Cart_create,Comm_dup,Comm_set_name,Comm_free,Dist_graph_create_adjacent
call Neighbor_allgather@grid: 1x20
call Neighbor_allgatherv@grid: 1x12
call Neighbor_alltoall@grid: 1x8=32
call Neighbor_alltoall@line: 1x28=56
call Neighbor_alltoall@star: 1x12=36 | 1x0 | 1x0 | 1x0
call Neighbor_alltoallv@grid: 1x40
call Neighbor_alltoallv@star: 1x24 | 1x0 | 1x0 | 1x0
call Neighbor_alltoallw@grid: 1x48
"""


def cell_of(text):
    """'2x40~ 1x0' -> {40: (2, 0), 0: (1, 0)}"""
    cells = {}
    for word in text.replace("-", "").split():
        count, _, rest = word.rstrip("~").partition("x")
        size, _, volume = rest.partition("=")
        moved = 0 if word.endswith("~") else int(volume or int(count) * int(size))
        cells[int(size)] = (int(count), moved)
    return cells


class Program:
    """Its lines of the table."""

    def __init__(self, block):
        head, *lines = block.splitlines()
        self.asked = [line for line in lines if line.split()[0] in ("rank", "on", "ask")]
        self.lines = [line for line in lines if line not in self.asked]
        names, _, words = head.rpartition(", ")
        last, ranks, *self.options = words.split()
        self.names, self.ranks = [*filter(None, names.split(", ")), last], int(ranks)

    def option(self, name):
        return next((word.split("=")[1] for word in self.options if word.startswith(name)), "")

    def expected(self, measure, mpi):
        """call -> for each rank: bytes -> (count, volume_bytes)"""
        whole = measure == "call" and not {"some", "forms"} & {*self.options}
        calls = {name: [{0: (1, 0)}] * self.ranks for name in ("Init", "Finalize") if whole}
        for line in self.lines:
            (of, numbers), (numbers, _, needs) = (
                line.split(": "),
                line.split(": ")[1].partition("?"),
            )
            words = of.replace(",", "").split()
            measures = [word for word in words if word in ("call", "completion", "poll")]
            if measure in measures and (not needs or mpi.has(needs)):
                by_rank = [cell_of(cell) for cell in numbers.split("|")]
                by_rank = by_rank * self.ranks if len(by_rank) == 1 else by_rank
                calls.update(dict.fromkeys((set(words) - set(measures)), by_rank))
        return calls

    def of_ranks(self):
        """Columns of table rank, and their value."""
        lines = (line[5:].split(": ") for line in self.asked if line.startswith("rank "))
        return {column: int(value) for of, value in lines for column in of.split(", ")}

    def questions(self):
        """In SQL, and the answer of each rank."""
        for line in self.asked:
            kind, _, asked = line.partition(" ")
            sql, _, answers = asked.rpartition(": ")
            if kind in ("on", "ask"):
                by_rank = [" ".join(answer.split()) for answer in answers.split("|")]
                on = ON.format(*sql.split(), "%") if kind == "on" else sql
                yield on, by_rank * (self.ranks if len(by_rank) == 1 else 1)


ON = """SELECT DISTINCT COALESCE(NULLIF(name, ''), constructor, 'none') FROM cell
LEFT JOIN communicator USING (world_rank, communicator)
WHERE call LIKE 'MPI_{}' AND measure LIKE '{}'"""
PROGRAMS = [Program(block) for block in TABLE.strip().split("\n\n")]
MEASURES = ("call", "completion", "poll")


def counted(run, measure, on_communicators=False):
    calls = {}
    for rank in range(run.ranks):
        for cell in run.cells(rank, measure=measure):
            name = cell.call[4:] + f"@{cell.communicator}" * on_communicators
            sizes = calls.setdefault(name, [{} for _ in range(run.ranks)])[rank]
            count, volume = sizes.get(cell.bytes, (0, 0))
            sizes[cell.bytes] = (count + cell.count, volume + cell.volume_bytes)
    return calls


SLOW = {name for program in PROGRAMS if "slow" in program.options for name in program.names}


def marks_of(name):
    return [pytest.mark.slow] if name in SLOW else []


def with_counts(chosen, marks=pytest.mark.slow):
    """Each program as it is, and with large counts where it has these."""
    for program in chosen:
        for name in program.names:
            yield pytest.param(program, name, id=name, marks=marks_of(name))
            if {"large", "forms"} & {*program.options}:
                yield pytest.param(program, f"{name}_large", id=f"{name}_large", marks=marks)


@pytest.mark.parametrize(("program", "name"), with_counts(PROGRAMS))
def test_every_call_has_its_count_bytes_and_volume(
    mpi, profile, plain, tmp_path_factory, program, name
):
    if name.startswith("fortran"):
        mpi.require_fortran(name)
    if name.startswith("mpi4py") and not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    if needs := program.option("needs"):
        mpi.require(needs)
    name, *arguments = name.split(":")
    arguments += [str(tmp_path_factory.getbasetemp())] * name.startswith("files")
    run = profile(name, program.ranks, *arguments)
    if "same" in program.options:
        without = plain(name, program.ranks, *arguments)
        assert sorted(run.outcome.stdout.split("\n")) == sorted(without.stdout.split("\n"))
        assert run.outcome.exit_status == without.exit_status == 0
    for column, value in program.of_ranks().items():
        assert [run.rank_row(rank)[column] for rank in range(run.ranks)] == [value] * run.ranks
    for sql, answers in program.questions():
        found = [
            sorted(" ".join(map(str, row)) for row in run.query(at, sql)) for at in range(run.ranks)
        ]
        assert ["; ".join(rows) or "-" for rows in found] == answers, sql
    around = program.option("around").split(",")
    for measure in MEASURES:
        expected = program.expected(measure, mpi)
        found = counted(run, measure, any("@" in call for call in expected))
        found = {call: sizes for call, sizes in found.items() if call.split("@")[0] not in around}
        if "some" in program.options or (measure == "poll" and not expected):
            found = {call: found.get(call, [{}] * run.ranks) for call in expected}
        if "forms" in program.options:
            found = {call: sizes for call, sizes in found.items() if is_own(call)}
        assert found == expected, measure


def is_own(call):
    return call.split("@")[0] not in ("Init", "Finalize", "Wait", "Start", "Request_free")


IN_FORMS = [program for program in PROGRAMS if "forms" in program.options]


@pytest.mark.parametrize(("program", "name"), with_counts(IN_FORMS))
@pytest.mark.parametrize("form", ["nonblocking", "persistent"])
def test_every_collective_completes_with_its_bytes_in_each_form(mpi, profile, program, name, form):
    """A persistent one moves them each time that it is started."""
    if form == "persistent":
        mpi.require("MPI_Allreduce_init")
    run = profile(name.replace("_large", "") + f"_{form}" + "_large" * ("_large" in name), 4)
    expected = program.expected("call", mpi)
    around, on_communicators = program.option("around").split(","), "@" in "".join(expected)

    def own(measure):
        found = counted(run, measure, on_communicators)
        return {
            call: sizes
            for call, sizes in found.items()
            if is_own(call) and call.split("@")[0] not in around
        }

    def changed(rename, change):
        return {
            rename(*call.partition("@")): [
                {size: change(*moved) for size, moved in sizes.items()} for sizes in by_rank
            ]
            for call, by_rank in expected.items()
        }

    if form == "nonblocking":
        as_posted = changed(lambda name, *where: f"I{name.lower()}" + "".join(where), lambda *x: x)
        assert own("call") == own("completion") == as_posted
        return
    prepared = own("call")
    turns = run.counts("MPI_Start")[0] // sum(
        count for by_rank in prepared.values() for count, _ in by_rank[0].values()
    )
    rename = lambda name, *where: f"{name}_init" + "".join(where)  # noqa: E731
    assert turns >= 1 and prepared == changed(rename, lambda count, _: (count, 0))
    assert own("completion") == changed(
        rename, lambda count, volume: (turns * count, turns * volume)
    )


# A program, its ranks, one of them (all: every one), and its peers: CALL>PEER COUNTxBYTES sent,
# CALL<PEER received, in world ranks; ...: among others.
PEERS = """
peers 4 0: Recv<1 1x4, Recv<2 1x8, Recv<3 1x12, Irecv<1 1x44, Irecv<2 1x48, Irecv<3 1x52, \
    Send_init>1 2x56, Sendrecv>3 1x20, Sendrecv<1 1x20, Sendrecv_replace>3 1x24, \
    Sendrecv_replace<1 1x24, Ssend>0 1x36, Irecv<0 1x36
peers 4 1: Send>0 1x4, Isend>0 1x44, Mrecv<0 2x56, Sendrecv>0 1x20, Sendrecv<2 1x20, \
    Sendrecv_replace>0 1x24, Sendrecv_replace<2 1x24, Ssend>1 1x36, Irecv<1 1x36
peers 4 2: Send>0 1x8, Isend>0 1x48, Send_init>3 2x56, Sendrecv>1 1x20, Sendrecv<3 1x20, \
    Sendrecv_replace>1 1x24, Sendrecv_replace<3 1x24, Ssend>2 1x36, Irecv<2 1x36
peers 4 3: Send>0 1x12, Isend>0 1x52, Mrecv<2 2x56, Sendrecv>2 1x20, Sendrecv<0 1x20, \
    Sendrecv_replace>2 1x24, Sendrecv_replace<0 1x24, Ssend>3 1x36, Irecv<3 1x36
collectives 4 all:
windows 2 0: Put>1 5x136, Put>0 2x8, Get<1 1x40, Accumulate>1 1x80, Get_accumulate>1 2x32, \
    Fetch_and_op>1 1x4, Compare_and_swap>1 1x4, Rput>1 1x120, Rget<1 1x160, Raccumulate>1 1x200, \
    Rget_accumulate>1 1x240
partitioned 2 0: Psend_init>1 3x240
partitioned 2 1: Precv_init<0 3x240
generalized 1 0: ..., Irecv<0 1x4, Recv_init<0 1x4
many_threads 2 0: ..., Irecv<1 640x2560
freed_early 2 0: ..., Issend>1 1x40
freed_early 2 1: ..., Irecv<0 2x64
matched_and_freed 2 1: ..., Mrecv<0 1x40, Imrecv<0 1x40
nonblocking 2 0: ..., Isendrecv>1 1x240, Isendrecv_replace>1 1x256
nonblocking 2 1: ..., Isendrecv>0 1x240, Isendrecv_replace>0 1x256
"""
NEED = {"partitioned": "MPI_Psend_init", "nonblocking": "MPI_Isendrecv"}


def peer(text):
    call, way, which, count, size = re.fullmatch(r"(\w+)([<>])(\d) (\d+)x(\d+)", text).groups()
    direction = "sent" if way == ">" else "received"
    return Peer(f"MPI_{call}", direction, int(which), int(count), int(size))


def peers_of_a_rank(line):
    return pytest.param(line, id=line.split(":")[0], marks=marks_of(line.split()[0]))


@pytest.mark.parametrize("line", map(peers_of_a_rank, PEERS.strip().splitlines()))
def test_every_message_has_the_world_rank_of_its_partner(mpi, profile, line):
    (name, ranks, which), texts = line.split(":")[0].split(), line.partition(":")[2].strip()
    if name in NEED:
        mpi.require(NEED[name])
    *among, texts = texts.split("..., ")
    expected = {peer(text.strip()) for text in texts.split(", ") if text}
    run = profile(name, int(ranks))
    for rank in range(run.ranks) if which == "all" else [int(which)]:
        assert run.peers(rank) >= expected if among else run.peers(rank) == expected
        if name == "nonblocking" and mpi.abi != "MPICH":  # the status of MPICH 4.0.2 says nothing
            received = {each._replace(direction="received", peer=1 - rank) for each in expected}
            assert run.peers(rank) >= received


SOURCES = """
SELECT value FROM fact JOIN communicator ON key = 'sources.' || identity
WHERE name = :name AND communicator.world_rank = fact.world_rank
"""


def test_each_rank_knows_from_whom_it_receives(profile):
    """A rank that is both neighbors of a dimension is listed twice: 1,1-2,2."""
    run = profile("neighborhoods", 4)
    found = {
        name: [{*run.query(rank, SOURCES, name=name)[0][0]} - {*",-"} for rank in range(4)]
        for name in ("grid", "line", "star")
    }
    assert found == {
        "grid": [{"2", "1"}, {"3", "0"}, {"0", "3"}, {"1", "2"}],
        "line": [{"1"}, {"0", "2"}, {"1", "3"}, {"2"}],
        "star": [set(), {"0"}, {"0"}, {"0"}],
    }


def test_files_count_on_the_communicator_that_opened_them_and_have_no_peers(
    profile, tmp_path_factory
):
    run = profile("files", 2, str(tmp_path_factory.getbasetemp()))
    assert {
        cell.communicator
        for cell in run.cells(0)
        if cell.call.startswith(("MPI_File_read", "MPI_File_write"))
    } == {"MPI_COMM_WORLD"}
    opened_on = {cell.communicator: cell.count for cell in run.cells(0, "MPI_File_open")}
    assert opened_on.pop("MPI_COMM_WORLD") == 1
    assert {cell.communicator for cell in run.cells(0, "MPI_File_delete")} == {""}
    assert run.peers(0) == set()


@pytest.mark.parametrize(
    ("program", "needs", "moved"),
    [
        (
            "persistent",
            "",
            {"Send_init": 120, "Ssend_init": 240, "Bsend_init": 360, "Rsend_init": 480},
        ),
        ("partitioned", "MPI_Psend_init", {"Psend_init": 240}),
    ],
)
def test_sums_over_calls_have_what_the_starts_moved(mpi, profile, program, needs, moved):
    if needs:
        mpi.require(needs)
    run = profile(program, 2)
    volumes = {row["call"][4:]: row["volume_bytes"] for row in rows("calls", run.folder)}
    assert {call: volume for call, volume in volumes.items() if volume} == moved
    of_ranks = rows("ranks", "--per-rank", run.folder)
    assert [row["volume_bytes"] for row in of_ranks] == [sum(moved.values()), 0]


# Programs of the table say more, and call more


def test_the_outputs_that_are_compared_mean_something(plain):
    assert plain("null_pointers", 1).stdout.count("class") >= 23
    said = plain("generalized", 1).stdout
    assert (said.count("cancelled 1"), said.count("count 3 cancelled 0")) == (4, 3)
    lines = plain("guarded_statuses", 1).stdout.splitlines()
    assert len(lines) == 14 + 22 + 5 + 5
    # where MPI leaves MPI_ERROR alone it is not there
    assert any("error 0" in line for line in lines)
    assert sum("count 1" in line and "error" not in line for line in lines) > 5
    assert plain("throwing_handler", 2).stdout == "caught 100\n" * 2
    assert plain("attribute_callbacks", 2).stdout == "cleaned up\n" * 2


def test_what_callbacks_of_the_job_call_counts(profile):
    assert profile("generalized", 1).counts("MPI_Barrier")[0] > 0
    run = profile("throwing_handler", 2)
    assert all(count > 0 for count in run.counts("MPI_Barrier"))
    assert run.counts("MPI_Send") == [50, 50]  # those whose handler returned


def test_python_s_messages_of_objects_are_one_send_matched_by_a_probe(profile, mpi):
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    run = profile("mpi4py_calls", 2)
    assert run.counts("MPI_Send") == [4, 0]
    assert run.counts("MPI_Mprobe") == run.counts("MPI_Mrecv") == [0, 1]
    (pickled,) = run.cells(1, "MPI_Mrecv")
    assert pickled.bytes in run.sizes("MPI_Send")[0]
    assert {cell.bytes: cell.count for cell in run.cells(1, "MPI_Recv")} == {40: 3}
    named = run.communicator(0, "backwards")
    assert (named.world_ranks, named.is_freed) == ([1, 0], 1)


# Statuses, sizes and languages


def test_a_status_that_is_asked_for_in_vain_is_a_poll(profile):
    polls = profile("odds_and_ends", 2).counts("MPI_Request_get_status", "poll")
    assert [count >= 1 for count in polls] == [True, True]


def test_counts_that_no_int_holds_are_taken_or_refused_as_mpi_does(profile, mpi):
    run = profile("huge_counts_large", 1)
    refusal = 0 if mpi.has("MPI_Bcast_c") else 2  # MPI_ERR_COUNT
    expected = f"Bcast {refusal}\nBcast of 5 0\nAllgatherv {refusal}\nSend_init {refusal}\n"
    assert run.outcome.stdout == expected
    taken = {0: (1, 0)} if refusal else {3000000000: (1, 3000000000)}
    assert run.sizes("MPI_Bcast") == [{5: (1, 5), **taken}]
    assert run.sizes("MPI_Allgatherv") == [taken]


def test_more_sizes_than_there_is_room_for_are_folded_and_none_is_lost(profile):
    run = profile("many_sizes", 2, env={"COMMPROF_MEMORY": "4M"})
    assert run.counts("MPI_Send") == [20000, 0]
    assert run.counts("MPI_Recv") == [0, 20000]
    assert sum(cell.volume_bytes for cell in run.cells(0, "MPI_Send")) == sum(range(20000))
    assert run.rank_row(0)["folded_cells"] > 0 == run.rank_row(0)["dropped_calls"]
    folded = run.query(
        0, "SELECT bytes, count, volume_bytes FROM cell WHERE call = 'MPI_Send' AND is_folded"
    )
    assert folded
    for size, count, volume_bytes in folded:  # sizes of their power of two alone
        assert size & (size - 1) == 0
        assert count * size / 2 <= volume_bytes <= count * size


@pytest.mark.parametrize("program", ["fortran_mpif", "fortran_use_mpi", "fortran_f08"])
def test_a_split_communicator_of_fortran_is_known_by_its_members(mpi, profile, program):
    mpi.require_fortran(program)
    run = profile(program, 2)
    halves = [run.communicator(rank, "MPI_Comm_split") for rank in range(2)]
    assert [half.world_ranks for half in halves] == [[1, 0], [1, 0]]
    assert halves[0].identity == halves[1].identity


MADE = """Startall 10, Waitall 40, Waitany 40, Waitsome 40, Testall 30, Testany 30, Testsome 30,
Wait 10, Test 10, Request_get_status 20, Ibarrier 30, Send 10, Recv 10, Bcast 10, Iprobe 10,
Init 1, Finalize 1"""


@pytest.mark.parametrize("language", ["c", "mpif", "use_mpi", "f08"])
def test_calls_that_do_nothing_count_equally_in_all_languages(mpi, profile, language):
    if language != "c":
        mpi.require_fortran(f"completions_{language}")
    made = "SELECT call, sum(count) FROM cell WHERE measure IN ('call', 'poll') GROUP BY call"
    found = profile(f"completions_{language}", 1).query(0, made)
    pairs = (each.split() for each in MADE.split(","))
    assert dict(found) == {f"MPI_{call}": int(count) for call, count in pairs}


# Blocked time


def test_an_operation_is_blocked_no_longer_than_it_takes(profile):
    for program in ("overlap", "equal_handles"):
        run = profile(program, 2)
        for cell in run.cells(0, measure="completion") + run.cells(1, measure="completion"):
            assert 0 <= cell.blocked_ns <= cell.total_ns


def test_an_operation_takes_as_long_as_the_job_is_blocked_on_it_and_computes_meanwhile(profile):
    run = profile("overlap", 2)
    completions = run.cells(0, "MPI_Iallreduce", "completion")
    (reduction,) = (cell for cell in completions if cell.bytes == 80000)
    (computed_ns,) = re.findall(r"computed 0 (\d+)", run.outcome.stdout)
    # The program reads its clock after the call that starts the operation and before the one that
    # completes it, on a busy machine too.
    assert reduction.total_ns - reduction.blocked_ns >= 0.999 * int(computed_ns)


@pytest.mark.parametrize("size", ["64", "4194304"], ids=["eager", "rendezvous"])
def test_the_call_that_starts_an_operation_is_not_overlapped(profile, size):
    """Some libraries send a large message within Isend, and Wait finds it complete."""
    run = profile("no_overlap", 2, size)
    for sent, calls in (
        ("MPI_Isend", ("MPI_Isend", "MPI_Wait")),
        ("MPI_Send_init", ("MPI_Start", "MPI_Waitall")),
    ):
        (completion,) = run.cells(0, sent, "completion")
        inside_ns = sum(cell.total_ns for call in calls for cell in run.cells(0, call))
        # each is rounded to ns
        assert completion.blocked_ns == pytest.approx(inside_ns, abs=2 * completion.count)
        shown = json.loads(text("calls", "--json", run.folder))
        (row,) = (row for row in shown if row["call"] == sent)
        assert row["overlap"] == pytest.approx(1 - inside_ns / completion.total_ns, abs=1e-3)


def test_vain_tests_and_the_final_wait_are_blocked_time_of_each_request(profile):
    run = profile("completion", 2)
    (polled,) = (cell for cell in run.cells(0, "MPI_Irecv", "completion") if cell.bytes == 240)
    assert 0 < polled.blocked_ns <= polled.total_ns
    run = profile("polled_then_all", 2)
    inside_ns = sum(
        cell.total_ns
        for call, measure in (("MPI_Testsome", "poll"), ("MPI_Waitall", "call"))
        for cell in run.cells(0, call, measure)
    )
    (posted,) = run.cells(0, "MPI_Irecv", "call")
    (completed,) = run.cells(0, "MPI_Irecv", "completion")
    rounded_ns = 2 * 52  # each duration is rounded
    assert completed.blocked_ns == pytest.approx(posted.total_ns + 2 * inside_ns, abs=rounded_ns)


# Truths of every database, whatever the job did

SCHEMA_VERSION = int(
    re.search(r"user_version = (\d+)", (REPOSITORY / "src/output/schema.sql").read_text())[1]
)
SOUND = [
    pytest.param(name, marks=marks_of(name))
    for name in "point_to_point nonblocking persistent completion threads many_requests "
    "equal_handles many_calls overlap collectives communicators".split()
]
UNTRUE = {
    "a cell's histogram holds all its calls": """
        SELECT call, cell.count, SUM(bucket.count) AS in_buckets
        FROM cell LEFT JOIN bucket USING (cell) GROUP BY cell
        HAVING in_buckets IS NOT cell.count""",
    "minimum and maximum lie in the first and last bucket in use": """
        SELECT call, min_ns, max_ns, MIN(low_ns), MAX(high_ns)
        FROM cell JOIN bucket USING (cell) JOIN bucket_bound USING (bucket) GROUP BY cell
        HAVING min_ns < MIN(low_ns) OR min_ns >= MIN(high_ns) OR max_ns < MAX(low_ns)
            OR max_ns >= MAX(high_ns)""",
    "the total lies between count times minimum and count times maximum": """
        SELECT * FROM cell WHERE min_ns > max_ns
            OR total_ns NOT BETWEEN count * min_ns AND count * max_ns""",
    "nothing takes longer than the whole run": """
        SELECT call, max_ns, wall_ns FROM cell JOIN rank USING (world_rank)
        WHERE max_ns > wall_ns""",
    "no cell is empty, and only completions are blocked": """
        SELECT * FROM cell WHERE count < 1 OR blocked_ns < 0 OR blocked_ns > total_ns
            OR (measure <> 'completion' AND blocked_ns <> 0)""",
    "cells name calls that exist": """
        SELECT call FROM cell WHERE call NOT IN (SELECT name FROM call)""",
    "cells name threads that exist": """
        SELECT thread FROM cell WHERE thread NOT IN (SELECT thread FROM thread)""",
    "cells name communicators that exist": """
        SELECT call, communicator FROM cell WHERE communicator <> 0
            AND communicator NOT IN (SELECT communicator FROM communicator)""",
    "nothing was dropped or folded": """
        SELECT dropped_calls, untracked_requests, folded_cells, folded_communicators FROM rank
        WHERE dropped_calls OR untracked_requests OR folded_cells OR folded_communicators""",
    "everything is on the host where there is no GPU": """
        SELECT call, memory_kind FROM cell WHERE memory_kind <> 'host'""",
}


def for_all_ranks(run, sql):
    return [row for rank in range(run.ranks) for row in run.query(rank, sql)]


@pytest.mark.parametrize("name", SOUND)
def test_the_database_is_sound_of_this_schema_and_contradicts_nothing_that_is_always_true(
    profile, name
):
    (ranks,) = (program.ranks for program in PROGRAMS if name in program.names)
    run = profile(name, ranks)
    for pragma, value in (
        ("integrity_check", "ok"),
        ("application_id", 1668116582),
        ("user_version", SCHEMA_VERSION),
    ):
        assert for_all_ranks(run, f"PRAGMA {pragma}") == [(value,)] * run.ranks
    assert len(set(for_all_ranks(run, "SELECT run_id FROM rank"))) == 1
    found = {truth: for_all_ranks(run, sql) for truth, sql in UNTRUE.items()}
    assert found == dict.fromkeys(UNTRUE, [])
    described = "SELECT name, family, library, form, bandwidth, waits_for FROM call"
    assert set() < set(for_all_ranks(run, described)) <= set(CALLS.values())
