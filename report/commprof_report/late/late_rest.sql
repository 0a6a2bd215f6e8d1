-- The calls with most of the time that was not split.
WITH split AS (
    SELECT coalesce(completion, call) AS call, total((wait_ns + transfer_ns) * factor) AS split_ns
    FROM late_scaled
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY 1
),
whole AS (
    SELECT call, sum(total_ns) AS total_ns FROM late_whole WHERE world_rank IN (SELECT world_rank FROM selected_rank) GROUP BY call
)
SELECT call, CAST(round(total_ns - coalesce(split_ns, 0)) AS INTEGER) AS rest_ns
FROM whole
LEFT JOIN split USING (call)
WHERE total_ns > coalesce(split_ns, 0)
ORDER BY rest_ns DESC, call
LIMIT 3;
