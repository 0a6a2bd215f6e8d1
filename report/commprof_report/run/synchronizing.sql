-- The collectives in which ranks wait for each other; of persistent ones not in the call itself,
-- but in its starts. kind: 'all', 'root-first', 'root-last', 'lower', 'neighbors', as in
-- call.waits_for. is_sure: a return proves that these ranks have arrived, unless the message is
-- empty (a library need not wait for all ranks of a window or a file). If each pair of ranks has
-- its own size (is_own_size), some messages may be empty, and it is unknown which. For NCCL the
-- begin of the kernel is the rank's arrival; NCCL's collectives do not bound clocks. is_full: ranks
-- wait in it although it moves no bytes, a Barrier. wait_state: what waiting in them is called;
-- docs/METHODS.md defines the words.
CREATE TEMP VIEW IF NOT EXISTS synchronizing AS
SELECT name AS call, form = 'blocking' AS is_blocking, form = 'persistent' AS is_persistent,
       bandwidth = 'unrated' AS is_full, bandwidth = 'own-size' AS is_own_size,
       CASE waits_for WHEN 'all-unless-empty' THEN 'all' ELSE waits_for END AS kind,
       library = 'mpi' AND form <> 'persistent' AND waits_for NOT IN ('all-unless-empty', 'lower', 'neighbors')
           AND family NOT IN ('rma', 'io') AS is_sure,
       CASE WHEN name IN ('MPI_Barrier', 'MPI_Ibarrier', 'MPI_Barrier_init') THEN 'wait at barrier'
            WHEN family = 'rma' THEN 'wait at window'
            WHEN family = 'io' THEN 'wait at file'
            WHEN waits_for = 'neighbors' THEN 'late neighbor'
            WHEN waits_for = 'root-first' THEN 'late broadcast'
            WHEN waits_for = 'root-last' THEN 'early reduce'
            WHEN waits_for = 'lower' THEN 'early scan'
            ELSE 'wait at n x n' END AS wait_state
FROM call
WHERE waits_for IN ('all', 'all-unless-empty', 'root-first', 'root-last', 'lower', 'neighbors');

SELECT * FROM synchronizing;
