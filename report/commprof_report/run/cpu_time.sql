-- For how long was each rank on a core, for how long did it wait for one, and what did the readings find? Of its main thread, or of all threads
-- that call MPI if that does not, between the first reading and the last. inside_ns, outside_ns: counted time, without that of setting up.
CREATE TEMP TABLE IF NOT EXISTS rank_core AS
WITH read AS ( -- counters that only rise
    SELECT world_rank, thread, coalesce(max(is_main), 0) AS is_main,
           max(at_ns) - min(at_ns) AS read_ns,
           max(core_ns) - min(core_ns) AS core_ns,
           CASE WHEN count(waiting_ns) = count(*)
                THEN max(waiting_ns) - min(waiting_ns) END AS core_wait_ns,
           max(outside_ready) - min(outside_ready) AS outside_ready,
           max(outside_asleep) - min(outside_asleep) AS outside_asleep,
           max(outside_disk) - min(outside_disk) AS outside_disk,
           max(inside_ready) - min(inside_ready) AS inside_ready,
           max(inside_asleep) - min(inside_asleep) AS inside_asleep,
           max(inside_disk) - min(inside_disk) AS inside_disk
    FROM cpu_time
    LEFT JOIN thread USING (world_rank, thread)
    GROUP BY world_rank, thread
    HAVING max(at_ns) > min(at_ns)
),
called AS (
    SELECT cell.world_rank, thread, sum(CASE WHEN family = 'setup' THEN 0 ELSE total_ns END) AS inside_ns,
           sum(CASE family WHEN 'setup' THEN total_ns ELSE 0 END) AS setup_ns
    FROM cell
    LEFT JOIN call ON call.name = cell.call
    WHERE measure IN ('call', 'poll', 'captured')
    GROUP BY cell.world_rank, thread
)
SELECT read.world_rank, sum(read_ns) AS read_ns, sum(core_ns) AS core_ns,
       CASE WHEN count(core_wait_ns) = count(*) THEN sum(core_wait_ns) END AS core_wait_ns,
       sum(outside_ready) AS outside_ready, sum(outside_asleep) AS outside_asleep, sum(outside_disk) AS outside_disk,
       sum(inside_ready) AS inside_ready, sum(inside_asleep) AS inside_asleep, sum(inside_disk) AS inside_disk,
       sum(coalesce(inside_ns, 0)) AS inside_ns,
       sum(max(0, counted_ns - coalesce(inside_ns, 0) - coalesce(setup_ns, 0))) AS outside_ns, max(is_main) AS is_of_main
FROM read
JOIN rank_wall ON rank_wall.world_rank = read.world_rank
LEFT JOIN called ON called.world_rank = read.world_rank AND called.thread = read.thread
WHERE is_main OR read.world_rank NOT IN (SELECT world_rank FROM read WHERE is_main)
GROUP BY read.world_rank;

SELECT world_rank AS rank, read_ns, core_ns, core_wait_ns, outside_ready, outside_asleep, outside_disk, inside_ready, inside_asleep,
       inside_disk, inside_ns, outside_ns, is_of_main
FROM rank_core
ORDER BY world_rank;
