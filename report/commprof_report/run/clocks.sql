-- Which clock does each rank read? Ranks with the same boot id and time namespace read one CLOCK_MONOTONIC; it is named by the lowest
-- of them. A rank whose boot id is unknown has a clock of its own.
SELECT rank.world_rank,
       min(rank.world_rank) OVER (
           PARTITION BY coalesce(nullif(boot.value, '') || ' ' || coalesce(zone.value, ''), 'rank ' || rank.world_rank)
       ) AS clock,
       start_monotonic_ns,
       start_unix_ns
FROM rank
LEFT JOIN fact AS boot ON boot.world_rank = rank.world_rank AND boot.key = 'boot_id'
LEFT JOIN fact AS zone ON zone.world_rank = rank.world_rank AND zone.key = 'time_namespace'
ORDER BY rank.world_rank;
