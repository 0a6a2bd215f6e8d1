-- Which collectives make ranks wait for each other, and who for whom? kind: 'all' for all; 'root first': nobody returns before the
-- root has come; 'root last': the root does not return before all have come; 'lower': each waits for the ranks below it.
-- is_sure: a message that is not empty cannot be complete before they have come. Where each pair of ranks has a size of its own some
-- may be empty, and nobody knows which; so these do not bound clocks.
DROP TABLE IF EXISTS temp.synchronizing;
CREATE TEMP TABLE synchronizing (call TEXT PRIMARY KEY, kind TEXT NOT NULL, is_sure INTEGER NOT NULL, is_blocking INTEGER NOT NULL);
INSERT INTO synchronizing VALUES
    ('MPI_Barrier', 'all', 1, 1),
    ('MPI_Allreduce', 'all', 1, 1), ('MPI_Allgather', 'all', 1, 1), ('MPI_Allgatherv', 'all', 1, 1), ('MPI_Alltoall', 'all', 1, 1),
    ('MPI_Reduce_scatter_block', 'all', 1, 1),
    ('MPI_Reduce_scatter', 'all', 0, 1), ('MPI_Alltoallv', 'all', 0, 1), ('MPI_Alltoallw', 'all', 0, 1),
    ('MPI_Bcast', 'root first', 1, 1), ('MPI_Scatter', 'root first', 1, 1), ('MPI_Scatterv', 'root first', 1, 1),
    ('MPI_Reduce', 'root last', 1, 1), ('MPI_Gather', 'root last', 1, 1), ('MPI_Gatherv', 'root last', 1, 1),
    ('MPI_Scan', 'lower', 0, 1), ('MPI_Exscan', 'lower', 0, 1);
INSERT INTO synchronizing SELECT 'MPI_I' || lower(substr(call, 5, 1)) || substr(call, 6), kind, is_sure, 0 FROM synchronizing;

-- NCCL's are judged by their kernels, whose begin is the rank's coming; they do not bound clocks. What a group did in one kernel waits for
-- all.
INSERT INTO synchronizing VALUES
    ('ncclAllReduce', 'all', 0, 1), ('ncclAllGather', 'all', 0, 1), ('ncclReduceScatter', 'all', 0, 1), ('ncclAlltoAll', 'all', 0, 1),
    ('ncclGroup', 'all', 0, 1),
    ('ncclBroadcast', 'root first', 0, 1), ('ncclBcast', 'root first', 0, 1), ('ncclScatter', 'root first', 0, 1),
    ('ncclReduce', 'root last', 0, 1), ('ncclGather', 'root last', 0, 1);
