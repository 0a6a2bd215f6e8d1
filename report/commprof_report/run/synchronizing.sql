-- The collectives in which ranks wait for each other. kind: 'all', 'root-first', 'root-last', 'lower', as in call.waits_for. is_sure: a
-- return proves that these ranks have arrived, unless the message is empty. If each pair of ranks has its own size, some messages may be
-- empty, and it is unknown which. For NCCL the begin of the kernel is the rank's arrival; NCCL's collectives do not bound clocks.
CREATE TEMP VIEW IF NOT EXISTS synchronizing AS
SELECT name AS call,
       CASE waits_for WHEN 'all-unless-empty' THEN 'all' ELSE waits_for END AS kind,
       library = 'mpi' AND waits_for NOT IN ('all-unless-empty', 'lower') AS is_sure,
       form = 'blocking' AS is_blocking
FROM call
WHERE waits_for IN ('all', 'all-unless-empty', 'root-first', 'root-last', 'lower');
