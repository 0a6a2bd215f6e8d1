-- How many collectives did each rank start on each communicator, and is the time in them notable?
WITH spent AS (
    SELECT world_rank, communicator, total(total_ns) AS total_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE family IN ('collective', 'neighborhood', 'communicator') AND measure IN ('call', 'poll')
    GROUP BY world_rank, communicator
),
whole AS (
    SELECT world_rank, total(total_ns) AS total_ns FROM spent GROUP BY world_rank
)
SELECT communicator.world_rank, communicator, collectives
FROM communicator
JOIN spent USING (world_rank, communicator)
JOIN whole USING (world_rank)
WHERE collectives > 0 AND spent.total_ns > 0.01 * whole.total_ns;
