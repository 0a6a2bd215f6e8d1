-- Which steps did the program mark? The end of the last step is not marked: it ends with its last call, not with the program.
WITH final AS (
    SELECT world_rank, max(step) AS step, max(begin_ns) AS begin_ns FROM step GROUP BY world_rank
),
final_call AS (
    SELECT sample.world_rank, final.step, max(max(sample.end_ns, coalesce(device_end_ns, 0))) AS end_ns
    FROM final
    JOIN sample ON sample.world_rank = final.world_rank AND sample.end_ns > final.begin_ns
    JOIN call ON call.name = sample.call AND call.family <> 'setup'
    GROUP BY sample.world_rank
)
SELECT step, world_rank, begin_ns, min(step.end_ns, coalesce(final_call.end_ns, step.end_ns)) AS end_ns, thread
FROM step
LEFT JOIN final_call USING (world_rank, step)
WHERE step.end_ns > begin_ns
ORDER BY world_rank, begin_ns;
