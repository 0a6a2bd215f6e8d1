-- The collectives that make ranks wait for each other. kind: 'all', 'root-first', 'root-last', 'lower', as in call.waits_for. is_sure: the
-- return proves that they have arrived, unless the message is empty: where each pair of ranks has a size of its own some may be empty, and
-- nobody knows which. NCCL's are judged by their kernels, whose begin is the rank's arrival; they do not bound clocks.
CREATE TEMP VIEW IF NOT EXISTS synchronizing AS
SELECT name AS call,
       CASE waits_for WHEN 'all-unless-empty' THEN 'all' ELSE waits_for END AS kind,
       library = 'mpi' AND waits_for NOT IN ('all-unless-empty', 'lower') AS is_sure,
       form = 'blocking' AS is_blocking
FROM call
WHERE waits_for IN ('all', 'all-unless-empty', 'root-first', 'root-last', 'lower');
