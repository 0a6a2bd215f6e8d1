-- How are the durations of each message size distributed, as far as calls carry messages? One row
-- per call, measure, memory kind, communicator (or family of communicators), size and histogram
-- bucket in use.
-- :families: names of communicators, an object in JSON by identity; those of one name share rows.
SELECT call, timed AS measure, memory_kind, coalesce(value, label) AS communicator, bytes, low_ns,
       coalesce(high_ns, max(max_ns)) AS high_ns, sum(bucket.count) AS count
FROM chosen_cell
JOIN bucket USING (cell)
JOIN bucket_bound USING (bucket)
LEFT JOIN json_each(:families) AS family ON family.key = identity
WHERE bytes > 0
GROUP BY call, timed, memory_kind, coalesce(value, identity), bytes, bucket
ORDER BY call, timed, coalesce(value, label), bytes, bucket;
