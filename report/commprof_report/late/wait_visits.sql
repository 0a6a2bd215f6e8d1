-- When was each rank in a wait region (:regions, a list), in which its thread calls no MPI? On the
-- thread that visited it most often. And from when to when does the main thread of a rank that
-- negotiates wait, handing over its last tensor in the middle between two rounds, or at the latest
-- if it could be at any time?
DROP TABLE IF EXISTS temp.wait_visit;
CREATE TEMP TABLE wait_visit AS
WITH visited AS (
    SELECT name, region_span.*,
           count(*) OVER (PARTITION BY region_span.world_rank, region_span.region, thread) AS visits
    FROM region_span
    JOIN region USING (world_rank, region)
    WHERE name IN (SELECT value FROM json_each(:regions)) AND end_ns > begin_ns
),
chosen AS (
    SELECT world_rank, region, thread, row_number() OVER (PARTITION BY world_rank, region ORDER BY visits DESC, thread) AS place FROM visited
),
calling AS (
    SELECT world_rank, thread, region.name
    FROM cell
    JOIN region USING (world_rank, region)
    JOIN call ON call.name = cell.call
    WHERE library = 'mpi' AND measure IN ('call', 'poll')
)
SELECT DISTINCT name, world_rank, thread, begin_ns, end_ns
FROM visited
JOIN chosen USING (world_rank, region, thread)
WHERE place = 1
  AND NOT EXISTS (
      SELECT 1
      FROM calling
      WHERE calling.world_rank = visited.world_rank AND calling.thread = visited.thread
        AND substr(calling.name || '/', 1, length(visited.name) + 1) = visited.name || '/'
  )
UNION ALL
SELECT
    :handed, world_rank, -1,
    (CASE handed_after_ns WHEN after_ns THEN handed_ns ELSE handed_after_ns END + handed_ns) / 2,
    done_ns
FROM negotiated_step
WHERE done_ns > handed_ns;
