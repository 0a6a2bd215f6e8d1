-- In which region of the program is the time inside MPI spent? A region's figures include those of all regions inside it; own_: only its
-- own calls. Region '' is the program outside all regions. NCCL's calls and operations have columns of their own. visits, span_ns: the sampled
-- times that threads were in it, also where they made no call.
WITH RECURSIVE visited AS (
    SELECT name AS region, region_span.world_rank, count(*) AS visits, sum(end_ns - begin_ns) AS span_ns
    FROM region_span
    JOIN region USING (world_rank, region)
    JOIN selected_region ON selected_region.region_name = name
    WHERE region_span.world_rank IN (SELECT world_rank FROM selected_rank)
    GROUP BY name, region_span.world_rank
),
called AS (
    SELECT region, world_rank, sum(CASE library WHEN 'mpi' THEN count ELSE 0 END) AS count,
           sum(CASE library WHEN 'mpi' THEN volume_bytes ELSE 0 END) AS volume_bytes,
           sum(CASE library WHEN 'mpi' THEN total_ns ELSE 0 END) AS total_ns,
           sum(CASE WHEN is_folded AND is_call THEN count ELSE 0 END) AS folded_count,
           sum(CASE WHEN library = 'nccl' AND is_call THEN count ELSE 0 END) AS nccl_count,
           sum(CASE WHEN library = 'nccl' AND is_call THEN total_ns ELSE 0 END) AS nccl_host_ns,
           sum(CASE timed WHEN 'device' THEN total_ns ELSE 0 END) AS nccl_device_ns
    FROM chosen_cell
    WHERE NOT is_completion AND family <> 'setup'
    GROUP BY region, world_rank
),
own AS (
    SELECT * FROM called
    UNION ALL
    SELECT region, world_rank, 0, 0, 0, 0, 0, 0, 0 FROM visited WHERE (region, world_rank) NOT IN (SELECT region, world_rank FROM called)
),
-- Each region is part of itself and of its ancestors. The parent's path is the path without its last slash and the name after it.
within (region, around) AS (
    SELECT DISTINCT region, region FROM own
    UNION
    SELECT region, substr(rtrim(around, replace(around, '/', '')), 1, length(rtrim(around, replace(around, '/', ''))) - 1)
    FROM within
    WHERE around LIKE '%_/%'
),
by_rank AS (
    SELECT around AS region, world_rank, sum(count) AS count, sum(volume_bytes) AS volume_bytes, sum(total_ns) AS total_ns,
           sum(CASE WHEN own.region = around THEN count ELSE 0 END) AS own_count,
           sum(CASE WHEN own.region = around THEN total_ns ELSE 0 END) AS own_ns,
           sum(folded_count) AS folded_count, sum(nccl_count) AS nccl_count, sum(nccl_host_ns) AS nccl_host_ns,
           sum(nccl_device_ns) AS nccl_device_ns
    FROM within
    JOIN own USING (region)
    GROUP BY around, world_rank
),
ordered AS (
    SELECT *,
           row_number() OVER (PARTITION BY region ORDER BY total_ns DESC, world_rank) AS from_most,
           row_number() OVER (PARTITION BY region ORDER BY span_ns DESC, world_rank) AS from_longest
    FROM by_rank
    LEFT JOIN visited USING (region, world_rank)
),
by_call AS (
    SELECT around AS region, call,
           row_number() OVER (PARTITION BY around ORDER BY library <> 'mpi', timed <> 'device', sum(total_ns) DESC, call) AS place_of_call
    FROM within
    JOIN chosen_cell USING (region)
    WHERE NOT is_completion AND family <> 'setup'
    GROUP BY around, call, timed
),
whole AS (
    SELECT count(*) AS ranks, sum(counted_ns) AS counted_ns
    FROM rank_wall
    WHERE world_rank IN (SELECT world_rank FROM selected_rank)
)
SELECT ordered.region,
       count(*) AS ranks,
       sum(count) AS count,
       sum(volume_bytes) AS volume_bytes,
       sum(total_ns) AS total_ns,
       sum(total_ns) * 1.0 / whole.ranks AS mean_ns,
       max(total_ns) AS max_ns,
       max(CASE WHEN from_most = 1 AND count + nccl_count > 0 THEN world_rank END) AS max_rank,
       sum(total_ns) * 1.0 / nullif(whole.counted_ns, 0) AS share_of_wall,
       call AS top_call,
       sum(own_count) AS own_count,
       sum(own_ns) AS own_ns,
       sum(own_ns) * 1.0 / whole.ranks AS own_mean_ns,
       sum(own_ns) * 1.0 / nullif(whole.counted_ns, 0) AS own_share_of_wall,
       sum(folded_count) AS folded_count,
       sum(nccl_count) AS nccl_count,
       sum(nccl_host_ns) AS nccl_host_ns,
       sum(nccl_device_ns) AS nccl_device_ns,
       coalesce(sum(visits), 0) AS visits,
       coalesce(sum(span_ns), 0) AS span_ns,
       total(span_ns) / whole.ranks AS span_mean_ns,
       coalesce(max(span_ns), 0) AS span_max_ns,
       max(CASE WHEN from_longest = 1 AND span_ns > 0 THEN ordered.world_rank END) AS span_max_rank
FROM ordered
CROSS JOIN whole
LEFT JOIN by_call ON by_call.region = ordered.region AND place_of_call = 1
GROUP BY ordered.region
ORDER BY ordered.region = '', sum(total_ns) DESC, sum(nccl_device_ns) DESC, total(span_ns) DESC, ordered.region;
