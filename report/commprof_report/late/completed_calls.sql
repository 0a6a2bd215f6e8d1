-- Of the calls in :calls (a list in JSON): how many samples are there, how many calls were there, and how long did they take?
WITH sampled AS (
    SELECT world_rank, call, count(*) AS samples, total(end_ns - start_ns) AS sampled_ns
    FROM sample
    WHERE call IN (SELECT value FROM json_each(:calls))
    GROUP BY world_rank, call
),
counted AS (
    SELECT world_rank, call, total(count) AS count, total(total_ns) AS total_ns
    FROM cell
    WHERE measure = 'call' AND call IN (SELECT value FROM json_each(:calls))
    GROUP BY world_rank, call
)
SELECT world_rank, call, samples, sampled_ns, count, total_ns FROM sampled JOIN counted USING (world_rank, call);
