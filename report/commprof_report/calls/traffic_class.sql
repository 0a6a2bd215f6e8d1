-- What of the traffic is bulk, what is control? Of the whole run, whatever is selected.
-- Messages by call and size, each where it is counted as moved: a persistent operation moves one whenever it completes. Data handed out once
-- (no more than two Bcasts, Scatters or messages of a size) say nothing of what is repeated.
DROP TABLE IF EXISTS temp.moved_size;
CREATE TEMP TABLE moved_size AS
SELECT cell.call, cell.bytes, total(cell.count * 1.0 * cell.bytes) AS volume_bytes
FROM cell
JOIN call ON call.name = cell.call
WHERE family IN ('collective', 'neighborhood', 'point-to-point', 'rma')
  AND cell.bytes > 0
  AND measure = CASE form WHEN 'persistent' THEN 'completion' ELSE 'call' END
  AND NOT (count <= 2 AND (family = 'point-to-point' OR waits_for = 'root-first'))
GROUP BY cell.call, cell.bytes;

-- The largest size of each call that is control: up to it all sizes of all calls carry no more than the 100th part of the bytes, and from
-- one of the call's sizes to the next it is no leap (above 64 bytes, to four times as much or more). 0: none is.
DROP TABLE IF EXISTS temp.control_size;
CREATE TEMP TABLE control_size AS
WITH size AS (
    SELECT bytes, total(total(volume_bytes)) OVER (ORDER BY bytes) AS upto, total(total(volume_bytes)) OVER () AS whole
    FROM moved_size
    GROUP BY bytes
),
judged AS (
    SELECT call, bytes, volume_bytes,
           bytes > 65536 OR upto > 0.01 * whole
               OR bytes >= 4 * max(64, coalesce(lag(bytes) OVER (PARTITION BY call ORDER BY bytes), 0)) AS is_beyond
    FROM moved_size
    JOIN size USING (bytes)
),
followed AS (
    SELECT *, total(is_beyond) OVER (PARTITION BY call ORDER BY bytes) AS beyond FROM judged
)
SELECT call,
       coalesce(max(CASE WHEN beyond = 0 THEN bytes END), 0) AS threshold_bytes,
       total(CASE WHEN beyond = 0 THEN volume_bytes END) AS volume_bytes
FROM followed
GROUP BY call;

-- Of calls that are not among these (data handed out once) 64 bytes and less. 'completion' completes operations of either kind, 'group'
-- begins and ends NCCL's groups of them.
DROP TABLE IF EXISTS temp.cell_traffic;
CREATE TEMP TABLE cell_traffic AS
SELECT cell.cell,
       CASE WHEN family = 'setup' THEN 'setup'
            WHEN family = 'io' THEN 'file'
            WHEN family = 'completion' THEN 'completion'
            WHEN family = 'group' THEN 'group'
            WHEN cell.bytes > coalesce(threshold_bytes, 64) THEN 'bulk'
            ELSE 'control' END AS traffic
FROM cell
LEFT JOIN call ON call.name = cell.call
LEFT JOIN control_size ON control_size.call = cell.call;

DROP TABLE IF EXISTS temp.control_cell;
CREATE TEMP TABLE control_cell (cell INTEGER PRIMARY KEY);
INSERT INTO control_cell SELECT cell FROM cell_traffic WHERE traffic = 'control';
