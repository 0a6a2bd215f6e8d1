-- At which collective do the ranks of a communicator first differ? All of them must call the same function, with the same root, and
-- with the same size unless each rank may have its own (is_own). On an inter-communicator sizes and roots differ between the groups.
-- Unknown values are not compared. One row per rank that has recorded this collective. is_first: they agreed on the previous one, or
-- there is none; otherwise they may have differed even earlier.
WITH made AS (
    SELECT own.identity, own.world_rank, sequence, recent.call,
           CASE WHEN is_inter OR coalesce(is_own, 0) THEN NULL ELSE bytes END AS bytes,
           CASE WHEN is_inter THEN NULL ELSE root END AS root
    FROM recent_collective AS recent
    JOIN communicator AS own USING (world_rank, communicator)
    LEFT JOIN rated_call ON rated_call.call = recent.call
    WHERE communicator > 1 AND own.world_rank IN (SELECT world_rank FROM selected_rank)
),
compared AS (
    SELECT identity, sequence,
           CASE WHEN min(call) <> max(call) THEN 'call'
                WHEN min(root) <> max(root) THEN 'root'
                WHEN min(bytes) <> max(bytes) THEN 'bytes' END AS what
    FROM made
    GROUP BY identity, sequence
    HAVING count(*) > 1
),
first AS (
    SELECT identity, min(CASE WHEN what IS NOT NULL THEN sequence END) AS sequence, min(sequence) AS oldest
    FROM compared
    GROUP BY identity
)
SELECT label AS communicator,
       identity,
       sequence,
       what,
       sequence = 1 OR sequence > oldest AS is_first,
       made.world_rank AS rank,
       made.call,
       made.bytes,
       made.root
FROM first
JOIN compared USING (identity, sequence)
JOIN made USING (identity, sequence)
JOIN run_communicator USING (identity)
ORDER BY label, identity, made.world_rank;
