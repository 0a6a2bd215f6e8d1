-- How long did the ranks that have steps run, without set-up?
WITH stepping AS (SELECT DISTINCT world_rank FROM run_step)
SELECT total(counted_ns) - (
    SELECT total(total_ns)
    FROM cell
    JOIN call ON call.name = cell.call
    WHERE family = 'setup' AND measure = 'call' AND world_rank IN stepping
)
FROM rank_wall
WHERE world_rank IN stepping;
