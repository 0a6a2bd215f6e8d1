-- How long did each rank run, without set-up?
SELECT world_rank, coalesce(counted_ns, 0) - coalesce(setup_ns, 0)
FROM rank_wall
LEFT JOIN (
    SELECT world_rank, total(total_ns) AS setup_ns
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE family = 'setup' AND measure = 'call'
    GROUP BY world_rank
) USING (world_rank);
