-- What is known of each call: whether ranks wait for each other in it, and how its bandwidth is computed (call.bandwidth in schema.sql).
-- blocks: 'n' if S is n times `bytes`, else '1'. passes: busbw is S / t times 2(n-1)/n (2), (n-1)/n (1), 1 (0); null: undefined.
SELECT name AS call, library, family, form, waits_for, kind, coalesce(synchronizing.is_blocking, 0) AS is_blocking, bandwidth,
       CASE WHEN waits_for LIKE 'all%' AND bandwidth <> 'unrated' THEN CASE bandwidth WHEN 'allgather' THEN 'n' ELSE '1' END END AS blocks,
       CASE bandwidth WHEN 'allreduce' THEN 2 WHEN 'reduce-scatter' THEN 1 WHEN 'allgather' THEN 1 WHEN 'one-way' THEN 0 END AS passes
FROM call
LEFT JOIN synchronizing ON synchronizing.call = call.name;
