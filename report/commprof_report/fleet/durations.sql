-- How long did the calls of one rank last? A histogram of each cell, in halves of an octave.
SELECT cell, (bucket + 3) / 4 AS half, sum(count) AS count
FROM bucket
GROUP BY cell, half;
