-- How much does each rank send to each other? As the sender counted, or with :received as the receiver did. -1: outside the job; null: unknown.
SELECT CASE WHEN :received THEN peer ELSE world_rank END AS sender,
       CASE WHEN :received THEN world_rank ELSE peer END AS receiver,
       sum(count) AS count,
       sum(bytes) AS bytes,
       sum(time_ns) AS time_ns,
       sum(CASE WHEN call IN (SELECT name FROM call WHERE family = 'rma') THEN count ELSE 0 END) AS rma_count
FROM run_peer
WHERE direction = CASE WHEN :received THEN 'received' ELSE 'sent' END
  AND call IN (SELECT call FROM selected_call)
  AND world_rank IN (SELECT world_rank FROM selected_rank)
GROUP BY 1, 2
ORDER BY 1, 2;
