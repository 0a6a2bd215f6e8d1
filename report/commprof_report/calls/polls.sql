-- How many polls were unsuccessful, how long did they take, and how many were successful?
SELECT call,
       sum(CASE measure WHEN 'poll' THEN count ELSE 0 END) AS polls,
       sum(CASE measure WHEN 'poll' THEN total_ns ELSE 0 END) AS poll_ns,
       sum(CASE measure WHEN 'poll' THEN 0 ELSE count END) AS found
FROM chosen_cell
WHERE NOT is_completion
GROUP BY call
HAVING polls > 0
ORDER BY poll_ns DESC, call;
