-- By how much would the waiting of another rank shrink at most, had the named ranks (late_named) not been late? Of each wait, the part that
-- they caused, if it ended within the times of late_span. A rank may wait on for the next one: the last of the others, without the rank
-- through which they caused the wait. Where arrival times are not used, a longer call stands for an earlier arrival; a completing call stands
-- for an arrival. Calls for messages depend on ranks that are not known here: the part that the last rank caused alone; if the call waits for
-- messages of others, too, no more than by how much longer than these the named rank was in its own time (own_time.py). is_scaled: the
-- sampled calls stand for all.
WITH arrival AS (
    SELECT identity, sequence, call, world_rank, CASE WHEN is_estimate THEN start_ns - end_ns ELSE start_ns END AS arrival_ns FROM late_call
    WHERE sequence > 0
),
other AS (
    SELECT identity, sequence, call, world_rank, arrival_ns,
           lead(arrival_ns) OVER latest AS before_ns, row_number() OVER latest AS place
    FROM arrival
    WHERE world_rank NOT IN (SELECT world_rank FROM late_named)
    WINDOW latest AS (PARTITION BY identity, sequence, call ORDER BY arrival_ns DESC)
),
excess AS (
    SELECT identity, sequence,
           max(0, max(CASE world_rank WHEN awaited_rank THEN own_ns END)
                  - max(CASE WHEN world_rank NOT IN (SELECT world_rank FROM late_named) THEN own_ns END)) AS excess_ns
    FROM late_compared
    WHERE awaited_rank IN (SELECT world_rank FROM late_named)
    GROUP BY identity, sequence
),
caused AS (
    SELECT wait, sum(CASE cause_rank WHEN last_rank THEN min(caused_ns, coalesce(excess_ns, caused_ns)) ELSE caused_ns END) AS caused_ns
    FROM late_cause
    JOIN late_scaled USING (wait)
    LEFT JOIN excess USING (identity, sequence)
    WHERE cause_rank IN (SELECT world_rank FROM late_named)
    GROUP BY wait
),
saved AS (
    SELECT late_scaled.world_rank, late_scaled.sequence, wait_ns, alone_ns,
           CASE WHEN :is_scaled THEN factor ELSE 1.0 END * caused_ns / wait_ns AS part,
           CASE last_rank WHEN other.world_rank THEN before_ns ELSE other.arrival_ns END - arrival.arrival_ns AS next_ns
    FROM late_scaled
    JOIN caused USING (wait)
    LEFT JOIN arrival
      ON arrival.identity = late_scaled.identity AND arrival.sequence = late_scaled.sequence AND arrival.call = late_scaled.call
     AND arrival.world_rank = late_scaled.world_rank
    LEFT JOIN other
      ON other.identity = late_scaled.identity AND other.sequence = late_scaled.sequence AND other.call = late_scaled.call AND place = 1
    WHERE late_scaled.world_rank NOT IN (SELECT world_rank FROM late_named)
      AND late_scaled.start_ns + wait_ns
          <= (SELECT end_ns FROM late_span WHERE begin_ns <= late_scaled.start_ns + wait_ns ORDER BY begin_ns DESC LIMIT 1)
),
gain AS (
    SELECT world_rank, total(part * CASE WHEN sequence < 0 THEN alone_ns ELSE max(0, wait_ns - max(0, coalesce(next_ns, 0))) END) AS gain_ns
    FROM saved
    GROUP BY world_rank
)
SELECT CAST(round(coalesce(max(gain_ns), 0)) AS INTEGER) FROM gain;
