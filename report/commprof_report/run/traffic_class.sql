-- Which traffic is bulk, which is control? For the whole run, whatever is selected; tables that every room may read.
-- Threads that negotiate, as Horovod's does: beside the main one, and reducing bits or gathering bytes again and again. What they call is
-- told by what it is: bits, and bytes or single numbers from or to a root, are control; all else is data, of whatever size.
CREATE TEMP TABLE told_sample AS
SELECT world_rank, thread, call, bytes, signature, count(*) AS calls,
       (op IN ('MPI_BAND', 'MPI_BOR') AND datatype <> 'MPI_BYTE') OR (
           call IN ('MPI_Gather', 'MPI_Gatherv', 'MPI_Bcast') AND (datatype = 'MPI_BYTE' OR (datatype = 'MPI_INT' AND signature.count = 1))
       ) AS is_control,
       (op IN ('MPI_BAND', 'MPI_BOR') AND datatype <> 'MPI_BYTE') OR (call = 'MPI_Gatherv' AND datatype = 'MPI_BYTE') AS is_round
FROM sample
JOIN signature USING (world_rank, signature)
JOIN thread USING (world_rank, thread)
WHERE NOT is_main AND sequence IS NOT NULL AND bytes IS NOT NULL
GROUP BY world_rank, thread, call, bytes, signature;

-- The root of a Gatherv sends nothing, so its own calls do not say that it gathers bytes.
CREATE TEMP TABLE negotiating AS
WITH sending AS (SELECT world_rank, thread FROM told_sample WHERE is_round GROUP BY 1, 2 HAVING total(calls) >= :fewest_rounds),
gathering AS (
    SELECT DISTINCT world_rank, thread, identity
    FROM sample JOIN communicator USING (world_rank, communicator) JOIN thread USING (world_rank, thread)
    WHERE call = 'MPI_Gatherv' AND NOT is_main
)
SELECT world_rank, thread FROM sending
UNION
SELECT world_rank, thread FROM gathering WHERE identity IN (SELECT identity FROM gathering JOIN sending USING (world_rank, thread));

DELETE FROM told_sample WHERE (world_rank, thread) NOT IN (SELECT world_rank, thread FROM negotiating);

-- Collectives of one rank move nothing.
CREATE TEMP TABLE alone_cell AS
SELECT cell
FROM cell
JOIN call ON call.name = cell.call
JOIN communicator_of USING (world_rank, communicator)
WHERE communicator_of.size = 1 AND family IN ('collective', 'neighborhood');

-- Messages by call and size, each counted when it moves: a persistent operation moves one each time it completes. Data distributed once
-- (at most :most_distributed Bcasts, Scatters or messages of a size) are ignored: they are not part of the repeated traffic.
CREATE TEMP TABLE moved_size AS
SELECT cell.call, cell.bytes, total(cell.count * 1.0 * cell.bytes) AS volume_bytes
FROM cell
JOIN call ON call.name = cell.call
WHERE family IN ('collective', 'neighborhood', 'point-to-point', 'rma')
  AND cell.bytes > 0
  AND cell.cell NOT IN (SELECT cell FROM alone_cell)
  AND measure = CASE form WHEN 'persistent' THEN 'completion' ELSE 'call' END
  AND NOT (count <= :most_distributed AND (family = 'point-to-point' OR waits_for = 'root-first'))
  AND (world_rank, thread, cell.call, cell.bytes) NOT IN (SELECT world_rank, thread, call, bytes FROM told_sample)
GROUP BY cell.call, cell.bytes;

-- The largest control size of each call. All sizes of all calls up to it carry at most :control_share of the
-- bytes, and no two neighbouring sizes of the call up to it differ by :jump times or more (above :control_bytes). 0: the call has none.
CREATE TEMP TABLE control_size AS
WITH size AS (
    SELECT bytes, total(total(volume_bytes)) OVER (ORDER BY bytes) AS upto, total(total(volume_bytes)) OVER () AS whole
    FROM moved_size
    GROUP BY bytes
),
judged AS (
    SELECT call, bytes, volume_bytes,
           bytes > :most_control_bytes OR upto > :control_share * whole
               OR bytes >= :jump * max(:control_bytes, coalesce(lag(bytes) OVER (PARTITION BY call ORDER BY bytes), 0)) AS is_beyond
    FROM moved_size
    JOIN size USING (bytes)
),
followed AS (
    SELECT *, total(is_beyond) OVER (PARTITION BY call ORDER BY bytes) AS beyond FROM judged
)
SELECT call,
       coalesce(max(CASE WHEN beyond = 0 THEN bytes END), 0) AS threshold_bytes,
       total(CASE WHEN beyond = 0 THEN volume_bytes END) AS volume_bytes
FROM followed
GROUP BY call;

-- A cell that a negotiating thread made is what most of its sampled calls are; else the size decides. What is distributed once has no part in
-- thresholds: it is control up to :control_bytes, whatever sizes its call repeats. Calls of family 'completion' complete operations of either kind, MPI_Start and
-- MPI_Pready start them, calls of 'group' begin and end NCCL's groups of either kind.
CREATE TEMP TABLE cell_traffic AS
SELECT cell.cell,
       CASE WHEN family = 'setup' THEN 'setup'
            WHEN family = 'io' THEN 'file'
            WHEN family = 'completion' OR cell.call IN ('MPI_Start', 'MPI_Startall') OR cell.call LIKE 'MPI_Pready%' THEN 'completion'
            WHEN family = 'group' THEN 'group'
            WHEN cell.cell IN (SELECT cell FROM alone_cell) THEN 'alone'
            WHEN coalesce(is_data, cell.bytes > CASE WHEN moved_size.call IS NULL THEN max(coalesce(threshold_bytes, 0), :control_bytes)
                                                     ELSE threshold_bytes END) THEN 'bulk'
            ELSE 'control' END AS traffic,
       is_data IS NOT NULL AS is_told,
       (world_rank, thread) IN (SELECT world_rank, thread FROM negotiating) AS is_negotiating
FROM cell
LEFT JOIN call ON call.name = cell.call
LEFT JOIN control_size ON control_size.call = cell.call
LEFT JOIN moved_size ON moved_size.call = cell.call AND moved_size.bytes = cell.bytes
LEFT JOIN (
    SELECT world_rank, thread, call, bytes, total(is_control * calls) < :data_share * total(calls) AS is_data
    FROM told_sample
    GROUP BY world_rank, thread, call, bytes
) USING (world_rank, thread, call, bytes);
