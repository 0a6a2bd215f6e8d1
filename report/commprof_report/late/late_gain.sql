-- By how much would the longest wait of another rank shrink, had the named ranks (late_named) arrived with the last of the others? Where
-- arrival times are not used, a longer call stands for an earlier arrival. Nonblocking collectives: completing calls stand for arrivals.
WITH arrival AS (
    SELECT identity, sequence, call, world_rank, CASE WHEN is_estimate THEN start_ns - end_ns ELSE start_ns END AS arrival_ns FROM late_call
),
other AS (
    SELECT identity, sequence, call, max(arrival_ns) AS last_ns
    FROM arrival
    WHERE world_rank NOT IN (SELECT world_rank FROM late_named)
    GROUP BY identity, sequence, call
),
gain AS (
    SELECT world_rank, total(factor * max(0, wait_ns - max(0, other.last_ns - arrival_ns))) AS gain_ns
    FROM late_scaled
    JOIN arrival USING (identity, sequence, call, world_rank)
    JOIN other USING (identity, sequence, call)
    WHERE last_rank IN (SELECT world_rank FROM late_named) AND world_rank NOT IN (SELECT world_rank FROM late_named)
    GROUP BY world_rank
)
SELECT CAST(round(coalesce(max(gain_ns), 0)) AS INTEGER) FROM gain;
